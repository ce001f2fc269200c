define weak hidden float @slw_fmod32(float noundef %0, float noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = bitcast float %0 to i32
  %4 = and i32 %3, -2147483648
  %5 = tail call float @llvm.fabs.f32(float %0)
  %6 = bitcast float %5 to i32
  %7 = tail call float @llvm.fabs.f32(float %1)
  %8 = bitcast float %7 to i32
  %9 = add nsw i32 %8, -2139095041
  %10 = icmp ult i32 %9, -2139095040
  %11 = icmp samesign ugt i32 %6, 2139095039
  %12 = select i1 %10, i1 true, i1 %11
  br i1 %12, label %13, label %16

13:                                               ; preds = %2
  %14 = fmul float %0, %1
  %15 = fdiv float %14, %14
  br label %76

16:                                               ; preds = %2
  %17 = icmp samesign ult i32 %6, %8
  br i1 %17, label %76, label %18

18:                                               ; preds = %16
  %19 = lshr i32 %6, 23
  %20 = lshr i32 %8, 23
  %21 = and i32 %6, 8388607
  %22 = and i32 %8, 8388607
  %23 = icmp eq i32 %19, 0
  %24 = or disjoint i32 %21, 8388608
  %25 = select i1 %23, i32 %21, i32 %24
  %26 = tail call i32 @llvm.umax.i32(i32 %19, i32 1)
  %27 = icmp eq i32 %20, 0
  %28 = or disjoint i32 %22, 8388608
  %29 = select i1 %27, i32 %22, i32 %28
  %30 = tail call i32 @llvm.umax.i32(i32 %20, i32 1)
  %31 = icmp samesign ugt i32 %19, %30
  br i1 %31, label %32, label %44

32:                                               ; preds = %18, %32
  %33 = phi i32 [ %39, %32 ], [ %26, %18 ]
  %34 = phi i32 [ %38, %32 ], [ %25, %18 ]
  %35 = icmp ult i32 %34, %29
  %36 = select i1 %35, i32 0, i32 %29
  %37 = sub nuw i32 %34, %36
  %38 = shl i32 %37, 1
  %39 = add nsw i32 %33, -1
  %40 = icmp samesign ugt i32 %39, %30
  br i1 %40, label %32, label %41

41:                                               ; preds = %32
  %42 = add nsw i32 %26, -1
  %43 = tail call i32 @llvm.umin.i32(i32 %30, i32 %42)
  br label %44

44:                                               ; preds = %41, %18
  %45 = phi i32 [ %25, %18 ], [ %38, %41 ]
  %46 = phi i32 [ %26, %18 ], [ %43, %41 ]
  %47 = icmp ult i32 %45, %29
  %48 = select i1 %47, i32 0, i32 %29
  %49 = sub nuw i32 %45, %48
  %50 = bitcast i32 %49 to float
  %51 = tail call i1 @llvm.is.fpclass.f32(float %50, i32 64)
  br i1 %51, label %56, label %52

52:                                               ; preds = %44
  %53 = icmp ult i32 %49, 8388608
  %54 = icmp samesign ugt i32 %46, 1
  %55 = and i1 %53, %54
  br i1 %55, label %58, label %66

56:                                               ; preds = %44
  %57 = bitcast i32 %4 to float
  br label %76

58:                                               ; preds = %52, %58
  %59 = phi i32 [ %62, %58 ], [ %46, %52 ]
  %60 = phi i32 [ %61, %58 ], [ %49, %52 ]
  %61 = shl nuw nsw i32 %60, 1
  %62 = add nsw i32 %59, -1
  %63 = icmp ult i32 %60, 4194304
  %64 = icmp samesign ugt i32 %59, 2
  %65 = select i1 %63, i1 %64, i1 false
  br i1 %65, label %58, label %66

66:                                               ; preds = %58, %52
  %67 = phi i32 [ %49, %52 ], [ %61, %58 ]
  %68 = phi i32 [ %46, %52 ], [ %62, %58 ]
  %69 = icmp ugt i32 %67, 8388607
  %70 = add i32 %67, -8388608
  %71 = shl nuw nsw i32 %68, 23
  %72 = or i32 %71, %70
  %73 = select i1 %69, i32 %72, i32 %67
  %74 = or i32 %73, %4
  %75 = bitcast i32 %74 to float
  br label %76

76:                                               ; preds = %16, %66, %56, %13
  %77 = phi float [ %15, %13 ], [ %75, %66 ], [ %57, %56 ], [ %0, %16 ]
  ret float %77
}

define weak hidden double @slw_fmod64(double noundef %0, double noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = bitcast double %0 to i64
  %4 = and i64 %3, -9223372036854775808
  %5 = tail call double @llvm.fabs.f64(double %0)
  %6 = bitcast double %5 to i64
  %7 = tail call double @llvm.fabs.f64(double %1)
  %8 = bitcast double %7 to i64
  %9 = add nsw i64 %8, -9218868437227405313
  %10 = icmp ult i64 %9, -9218868437227405312
  %11 = icmp samesign ugt i64 %6, 9218868437227405311
  %12 = select i1 %10, i1 true, i1 %11
  br i1 %12, label %13, label %16

13:                                               ; preds = %2
  %14 = fmul double %0, %1
  %15 = fdiv double %14, %14
  br label %76

16:                                               ; preds = %2
  %17 = icmp samesign ult i64 %6, %8
  br i1 %17, label %76, label %18

18:                                               ; preds = %16
  %19 = lshr i64 %6, 52
  %20 = lshr i64 %8, 52
  %21 = trunc nuw nsw i64 %20 to i32
  %22 = and i64 %6, 4503599627370495
  %23 = and i64 %8, 4503599627370495
  %24 = icmp eq i64 %19, 0
  %25 = trunc nuw nsw i64 %19 to i32
  %26 = or disjoint i64 %22, 4503599627370496
  %27 = select i1 %24, i64 %22, i64 %26
  %28 = select i1 %24, i32 1, i32 %25
  %29 = icmp eq i64 %20, 0
  %30 = or disjoint i64 %23, 4503599627370496
  %31 = select i1 %29, i64 %23, i64 %30
  %32 = select i1 %29, i32 1, i32 %21
  %33 = icmp samesign ugt i32 %28, %32
  br i1 %33, label %34, label %43

34:                                               ; preds = %18, %34
  %35 = phi i32 [ %41, %34 ], [ %28, %18 ]
  %36 = phi i64 [ %40, %34 ], [ %27, %18 ]
  %37 = icmp ult i64 %36, %31
  %38 = select i1 %37, i64 0, i64 %31
  %39 = sub nuw i64 %36, %38
  %40 = shl i64 %39, 1
  %41 = add nsw i32 %35, -1
  %42 = icmp samesign ugt i32 %41, %32
  br i1 %42, label %34, label %43

43:                                               ; preds = %34, %18
  %44 = phi i64 [ %27, %18 ], [ %40, %34 ]
  %45 = phi i32 [ %28, %18 ], [ %32, %34 ]
  %46 = icmp ult i64 %44, %31
  %47 = select i1 %46, i64 0, i64 %31
  %48 = sub nuw i64 %44, %47
  %49 = bitcast i64 %48 to double
  %50 = tail call i1 @llvm.is.fpclass.f64(double %49, i32 64)
  br i1 %50, label %55, label %51

51:                                               ; preds = %43
  %52 = icmp ult i64 %48, 4503599627370496
  %53 = icmp samesign ugt i32 %45, 1
  %54 = and i1 %52, %53
  br i1 %54, label %57, label %65

55:                                               ; preds = %43
  %56 = bitcast i64 %4 to double
  br label %76

57:                                               ; preds = %51, %57
  %58 = phi i32 [ %61, %57 ], [ %45, %51 ]
  %59 = phi i64 [ %60, %57 ], [ %48, %51 ]
  %60 = shl nuw nsw i64 %59, 1
  %61 = add nsw i32 %58, -1
  %62 = icmp ult i64 %59, 2251799813685248
  %63 = icmp samesign ugt i32 %58, 2
  %64 = select i1 %62, i1 %63, i1 false
  br i1 %64, label %57, label %65

65:                                               ; preds = %57, %51
  %66 = phi i64 [ %48, %51 ], [ %60, %57 ]
  %67 = phi i32 [ %45, %51 ], [ %61, %57 ]
  %68 = icmp ugt i64 %66, 4503599627370495
  %69 = add i64 %66, -4503599627370496
  %70 = zext nneg i32 %67 to i64
  %71 = shl nuw nsw i64 %70, 52
  %72 = or i64 %71, %69
  %73 = select i1 %68, i64 %72, i64 %66
  %74 = or i64 %73, %4
  %75 = bitcast i64 %74 to double
  br label %76

76:                                               ; preds = %16, %65, %55, %13
  %77 = phi double [ %15, %13 ], [ %75, %65 ], [ %56, %55 ], [ %0, %16 ]
  ret double %77
}

define weak hidden float @slw_fma32(float noundef %0, float noundef %1, float noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = fpext float %0 to double
  %5 = fpext float %1 to double
  %6 = fmul double %4, %5
  %7 = fpext float %2 to double
  %8 = fadd double %6, %7
  %9 = fsub double %8, %6
  %10 = fsub double %8, %9
  %11 = fsub double %6, %10
  %12 = fsub double %7, %9
  %13 = fadd double %12, %11
  %14 = fsub double %13, %13
  %15 = fcmp oeq double %14, 0.000000e+00
  %16 = fcmp une double %13, 0.000000e+00
  %17 = and i1 %16, %15
  br i1 %17, label %18, label %30

18:                                               ; preds = %3
  %19 = bitcast double %8 to i64
  %20 = and i64 %19, 1
  %21 = icmp eq i64 %20, 0
  br i1 %21, label %22, label %30

22:                                               ; preds = %18
  %23 = fcmp ogt double %13, 0.000000e+00
  %24 = fcmp ule double %8, 0.000000e+00
  %25 = xor i1 %24, %23
  %26 = or disjoint i64 %19, 1
  %27 = add i64 %19, -1
  %28 = select i1 %25, i64 %26, i64 %27
  %29 = bitcast i64 %28 to double
  br label %30

30:                                               ; preds = %22, %18, %3
  %31 = phi double [ %29, %22 ], [ %8, %18 ], [ %8, %3 ]
  %32 = fptrunc double %31 to float
  ret float %32
}

define weak hidden double @slw_fma64(double noundef %0, double noundef %1, double noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = fmul double %0, %1
  %5 = fsub double %4, %4
  %6 = fcmp oeq double %5, 0.000000e+00
  br i1 %6, label %9, label %7

7:                                                ; preds = %3
  %8 = fadd double %4, %2
  br label %60

9:                                                ; preds = %3
  %10 = bitcast double %0 to i64
  %11 = and i64 %10, -134217728
  %12 = bitcast i64 %11 to double
  %13 = bitcast double %1 to i64
  %14 = and i64 %13, -134217728
  %15 = bitcast i64 %14 to double
  %16 = fsub double %0, %12
  %17 = fsub double %1, %15
  %18 = fmul double %12, %15
  %19 = fsub double %18, %4
  %20 = fmul double %17, %12
  %21 = fadd double %19, %20
  %22 = fmul double %16, %15
  %23 = fadd double %22, %21
  %24 = fmul double %16, %17
  %25 = fadd double %24, %23
  %26 = fadd double %2, %25
  %27 = fsub double %26, %2
  %28 = fsub double %26, %27
  %29 = fsub double %2, %28
  %30 = fsub double %25, %27
  %31 = fadd double %30, %29
  %32 = fadd double %4, %26
  %33 = fsub double %32, %4
  %34 = fsub double %32, %33
  %35 = fsub double %4, %34
  %36 = fsub double %26, %33
  %37 = fadd double %36, %35
  %38 = fadd double %31, %37
  %39 = fsub double %38, %31
  %40 = fsub double %38, %39
  %41 = fsub double %31, %40
  %42 = fsub double %37, %39
  %43 = fadd double %42, %41
  %44 = fcmp une double %43, 0.000000e+00
  br i1 %44, label %45, label %57

45:                                               ; preds = %9
  %46 = bitcast double %38 to i64
  %47 = and i64 %46, 1
  %48 = icmp eq i64 %47, 0
  br i1 %48, label %49, label %57

49:                                               ; preds = %45
  %50 = fcmp ogt double %43, 0.000000e+00
  %51 = fcmp ule double %38, 0.000000e+00
  %52 = xor i1 %51, %50
  %53 = or disjoint i64 %46, 1
  %54 = add i64 %46, -1
  %55 = select i1 %52, i64 %53, i64 %54
  %56 = bitcast i64 %55 to double
  br label %57

57:                                               ; preds = %49, %45, %9
  %58 = phi double [ %56, %49 ], [ %38, %45 ], [ %38, %9 ]
  %59 = fadd double %32, %58
  br label %60

60:                                               ; preds = %57, %7
  %61 = phi double [ %59, %57 ], [ %8, %7 ]
  ret double %61
}

define weak hidden i64 @__udivdi3(i64 noundef %0, i64 noundef %1) minsize optsize nounwind "no-builtins" {
  br label %3

3:                                                ; preds = %3, %2
  %4 = phi i64 [ %1, %2 ], [ %7, %3 ]
  %5 = phi i32 [ 0, %2 ], [ %10, %3 ]
  %6 = icmp sgt i64 %4, -1
  %7 = shl i64 %4, 1
  %8 = icmp ule i64 %7, %0
  %9 = and i1 %6, %8
  %10 = add nuw nsw i32 %5, 1
  br i1 %9, label %3, label %11

11:                                               ; preds = %3, %11
  %12 = phi i32 [ %23, %11 ], [ %5, %3 ]
  %13 = phi i64 [ %21, %11 ], [ 0, %3 ]
  %14 = phi i64 [ %22, %11 ], [ %4, %3 ]
  %15 = phi i64 [ %19, %11 ], [ %0, %3 ]
  %16 = shl i64 %13, 1
  %17 = icmp uge i64 %15, %14
  %18 = select i1 %17, i64 %14, i64 0
  %19 = sub nuw i64 %15, %18
  %20 = zext i1 %17 to i64
  %21 = or disjoint i64 %16, %20
  %22 = lshr i64 %14, 1
  %23 = add nsw i32 %12, -1
  %24 = icmp sgt i32 %12, 0
  br i1 %24, label %11, label %25

25:                                               ; preds = %11
  ret i64 %21
}

define weak hidden i64 @__umoddi3(i64 noundef %0, i64 noundef %1) minsize optsize nounwind "no-builtins" {
  br label %3

3:                                                ; preds = %3, %2
  %4 = phi i64 [ %1, %2 ], [ %7, %3 ]
  %5 = phi i32 [ 0, %2 ], [ %10, %3 ]
  %6 = icmp sgt i64 %4, -1
  %7 = shl i64 %4, 1
  %8 = icmp ule i64 %7, %0
  %9 = and i1 %6, %8
  %10 = add nuw nsw i32 %5, 1
  br i1 %9, label %3, label %11

11:                                               ; preds = %3, %11
  %12 = phi i32 [ %23, %11 ], [ %5, %3 ]
  %13 = phi i64 [ %21, %11 ], [ 0, %3 ]
  %14 = phi i64 [ %22, %11 ], [ %4, %3 ]
  %15 = phi i64 [ %19, %11 ], [ %0, %3 ]
  %16 = shl i64 %13, 1
  %17 = icmp uge i64 %15, %14
  %18 = select i1 %17, i64 %14, i64 0
  %19 = sub nuw i64 %15, %18
  %20 = zext i1 %17 to i64
  %21 = or disjoint i64 %16, %20
  %22 = lshr i64 %14, 1
  %23 = add nsw i32 %12, -1
  %24 = icmp sgt i32 %12, 0
  br i1 %24, label %11, label %25

25:                                               ; preds = %11
  %26 = mul i64 %21, %1
  %27 = sub i64 %0, %26
  ret i64 %27
}

define weak hidden i64 @__divdi3(i64 noundef %0, i64 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = tail call i64 @llvm.abs.i64(i64 %0, i1 false)
  %4 = tail call i64 @llvm.abs.i64(i64 %1, i1 false)
  br label %5

5:                                                ; preds = %5, %2
  %6 = phi i64 [ %4, %2 ], [ %9, %5 ]
  %7 = phi i32 [ 0, %2 ], [ %12, %5 ]
  %8 = icmp sgt i64 %6, -1
  %9 = shl i64 %6, 1
  %10 = icmp ule i64 %9, %3
  %11 = and i1 %8, %10
  %12 = add nuw nsw i32 %7, 1
  br i1 %11, label %5, label %13

13:                                               ; preds = %5, %13
  %14 = phi i32 [ %25, %13 ], [ %7, %5 ]
  %15 = phi i64 [ %23, %13 ], [ 0, %5 ]
  %16 = phi i64 [ %24, %13 ], [ %6, %5 ]
  %17 = phi i64 [ %21, %13 ], [ %3, %5 ]
  %18 = shl i64 %15, 1
  %19 = icmp uge i64 %17, %16
  %20 = select i1 %19, i64 %16, i64 0
  %21 = sub nuw i64 %17, %20
  %22 = zext i1 %19 to i64
  %23 = or disjoint i64 %18, %22
  %24 = lshr i64 %16, 1
  %25 = add nsw i32 %14, -1
  %26 = icmp sgt i32 %14, 0
  br i1 %26, label %13, label %27

27:                                               ; preds = %13
  %28 = lshr i64 %0, 63
  %29 = trunc nuw nsw i64 %28 to i32
  %30 = lshr i64 %1, 63
  %31 = trunc nuw nsw i64 %30 to i32
  %32 = icmp eq i32 %29, %31
  %33 = sub i64 0, %23
  %34 = select i1 %32, i64 %23, i64 %33
  ret i64 %34
}

define weak hidden i64 @__moddi3(i64 noundef %0, i64 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = tail call i64 @__divdi3(i64 noundef %0, i64 noundef %1)
  %4 = mul i64 %3, %1
  %5 = sub i64 %0, %4
  ret i64 %5
}

define weak hidden noundef ptr @memcpy(ptr noundef returned writeonly captures(ret: address, provenance) %0, ptr noundef readonly captures(none) %1, i32 noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = icmp eq i32 %2, 0
  br i1 %4, label %14, label %5

5:                                                ; preds = %3, %5
  %6 = phi ptr [ %10, %5 ], [ %1, %3 ]
  %7 = phi ptr [ %12, %5 ], [ %0, %3 ]
  %8 = phi i32 [ %9, %5 ], [ %2, %3 ]
  %9 = add i32 %8, -1
  %10 = getelementptr inbounds nuw i8, ptr %6, i32 1
  %11 = load i8, ptr %6, align 1
  %12 = getelementptr inbounds nuw i8, ptr %7, i32 1
  store i8 %11, ptr %7, align 1
  %13 = icmp eq i32 %9, 0
  br i1 %13, label %14, label %5

14:                                               ; preds = %5, %3
  ret ptr %0
}

define weak hidden noundef ptr @memmove(ptr noundef returned writeonly captures(address, ret: address, provenance) %0, ptr noundef readonly captures(address) %1, i32 noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = icmp ugt ptr %0, %1
  %5 = icmp eq i32 %2, 0
  br i1 %4, label %6, label %7

6:                                                ; preds = %3
  br i1 %5, label %24, label %17

7:                                                ; preds = %3
  br i1 %5, label %24, label %8

8:                                                ; preds = %7, %8
  %9 = phi ptr [ %13, %8 ], [ %1, %7 ]
  %10 = phi ptr [ %15, %8 ], [ %0, %7 ]
  %11 = phi i32 [ %12, %8 ], [ %2, %7 ]
  %12 = add i32 %11, -1
  %13 = getelementptr inbounds nuw i8, ptr %9, i32 1
  %14 = load i8, ptr %9, align 1
  %15 = getelementptr inbounds nuw i8, ptr %10, i32 1
  store i8 %14, ptr %10, align 1
  %16 = icmp eq i32 %12, 0
  br i1 %16, label %24, label %8

17:                                               ; preds = %6, %17
  %18 = phi i32 [ %19, %17 ], [ %2, %6 ]
  %19 = add i32 %18, -1
  %20 = getelementptr inbounds nuw i8, ptr %1, i32 %19
  %21 = load i8, ptr %20, align 1
  %22 = getelementptr inbounds nuw i8, ptr %0, i32 %19
  store i8 %21, ptr %22, align 1
  %23 = icmp eq i32 %19, 0
  br i1 %23, label %24, label %17

24:                                               ; preds = %8, %17, %6, %7
  ret ptr %0
}

define weak hidden noundef ptr @memset(ptr noundef returned writeonly captures(ret: address, provenance) %0, i32 noundef %1, i32 noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = icmp eq i32 %2, 0
  br i1 %4, label %13, label %5

5:                                                ; preds = %3
  %6 = trunc i32 %1 to i8
  br label %7

7:                                                ; preds = %5, %7
  %8 = phi ptr [ %0, %5 ], [ %11, %7 ]
  %9 = phi i32 [ %2, %5 ], [ %10, %7 ]
  %10 = add i32 %9, -1
  %11 = getelementptr inbounds nuw i8, ptr %8, i32 1
  store i8 %6, ptr %8, align 1
  %12 = icmp eq i32 %10, 0
  br i1 %12, label %13, label %7

13:                                               ; preds = %7, %3
  ret ptr %0
}
