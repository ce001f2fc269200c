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
  br label %90

16:                                               ; preds = %2
  %17 = icmp samesign ult i32 %6, %8
  br i1 %17, label %90, label %18

18:                                               ; preds = %16
  %19 = lshr i32 %6, 23
  %20 = lshr i32 %8, 23
  %21 = and i32 %6, 8388607
  %22 = and i32 %8, 8388607
  %23 = icmp eq i32 %19, 0
  br i1 %23, label %26, label %24

24:                                               ; preds = %18
  %25 = or disjoint i32 %21, 8388608
  br label %32

26:                                               ; preds = %18, %26
  %27 = phi i32 [ %30, %26 ], [ 1, %18 ]
  %28 = phi i32 [ %29, %26 ], [ %21, %18 ]
  %29 = shl nuw nsw i32 %28, 1
  %30 = add nsw i32 %27, -1
  %31 = icmp samesign ult i32 %28, 4194304
  br i1 %31, label %26, label %32

32:                                               ; preds = %26, %24
  %33 = phi i32 [ %25, %24 ], [ %29, %26 ]
  %34 = phi i32 [ %19, %24 ], [ %30, %26 ]
  %35 = icmp eq i32 %20, 0
  br i1 %35, label %38, label %36

36:                                               ; preds = %32
  %37 = or disjoint i32 %22, 8388608
  br label %44

38:                                               ; preds = %32, %38
  %39 = phi i32 [ %42, %38 ], [ 1, %32 ]
  %40 = phi i32 [ %41, %38 ], [ %22, %32 ]
  %41 = shl nuw nsw i32 %40, 1
  %42 = add nsw i32 %39, -1
  %43 = icmp samesign ult i32 %40, 4194304
  br i1 %43, label %38, label %44

44:                                               ; preds = %38, %36
  %45 = phi i32 [ %37, %36 ], [ %41, %38 ]
  %46 = phi i32 [ %20, %36 ], [ %42, %38 ]
  %47 = icmp sgt i32 %34, %46
  br i1 %47, label %48, label %57

48:                                               ; preds = %44, %48
  %49 = phi i32 [ %55, %48 ], [ %34, %44 ]
  %50 = phi i32 [ %54, %48 ], [ %33, %44 ]
  %51 = icmp ult i32 %50, %45
  %52 = select i1 %51, i32 0, i32 %45
  %53 = sub nuw i32 %50, %52
  %54 = shl i32 %53, 1
  %55 = add nsw i32 %49, -1
  %56 = icmp sgt i32 %55, %46
  br i1 %56, label %48, label %57

57:                                               ; preds = %48, %44
  %58 = phi i32 [ %33, %44 ], [ %54, %48 ]
  %59 = phi i32 [ %34, %44 ], [ %46, %48 ]
  %60 = icmp ult i32 %58, %45
  %61 = select i1 %60, i32 0, i32 %45
  %62 = sub nuw i32 %58, %61
  %63 = bitcast i32 %62 to float
  %64 = tail call i1 @llvm.is.fpclass.f32(float %63, i32 64)
  br i1 %64, label %67, label %65

65:                                               ; preds = %57
  %66 = icmp ult i32 %62, 8388608
  br i1 %66, label %69, label %75

67:                                               ; preds = %57
  %68 = bitcast i32 %4 to float
  br label %90

69:                                               ; preds = %65, %69
  %70 = phi i32 [ %73, %69 ], [ %59, %65 ]
  %71 = phi i32 [ %72, %69 ], [ %62, %65 ]
  %72 = shl nuw nsw i32 %71, 1
  %73 = add nsw i32 %70, -1
  %74 = icmp samesign ult i32 %71, 4194304
  br i1 %74, label %69, label %75

75:                                               ; preds = %69, %65
  %76 = phi i32 [ %62, %65 ], [ %72, %69 ]
  %77 = phi i32 [ %59, %65 ], [ %73, %69 ]
  %78 = icmp sgt i32 %77, 0
  br i1 %78, label %79, label %83

79:                                               ; preds = %75
  %80 = add i32 %76, -8388608
  %81 = shl i32 %77, 23
  %82 = or i32 %81, %80
  br label %86

83:                                               ; preds = %75
  %84 = sub nsw i32 1, %77
  %85 = lshr i32 %76, %84
  br label %86

86:                                               ; preds = %83, %79
  %87 = phi i32 [ %82, %79 ], [ %85, %83 ]
  %88 = or i32 %87, %4
  %89 = bitcast i32 %88 to float
  br label %90

90:                                               ; preds = %16, %86, %67, %13
  %91 = phi float [ %15, %13 ], [ %89, %86 ], [ %68, %67 ], [ %0, %16 ]
  ret float %91
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
  br label %94

16:                                               ; preds = %2
  %17 = icmp samesign ult i64 %6, %8
  br i1 %17, label %94, label %18

18:                                               ; preds = %16
  %19 = lshr i64 %6, 52
  %20 = lshr i64 %8, 52
  %21 = trunc nuw nsw i64 %20 to i32
  %22 = and i64 %6, 4503599627370495
  %23 = and i64 %8, 4503599627370495
  %24 = icmp eq i64 %19, 0
  br i1 %24, label %28, label %25

25:                                               ; preds = %18
  %26 = trunc nuw nsw i64 %19 to i32
  %27 = or disjoint i64 %22, 4503599627370496
  br label %34

28:                                               ; preds = %18, %28
  %29 = phi i32 [ %32, %28 ], [ 1, %18 ]
  %30 = phi i64 [ %31, %28 ], [ %22, %18 ]
  %31 = shl nuw nsw i64 %30, 1
  %32 = add nsw i32 %29, -1
  %33 = icmp samesign ult i64 %30, 2251799813685248
  br i1 %33, label %28, label %34

34:                                               ; preds = %28, %25
  %35 = phi i64 [ %27, %25 ], [ %31, %28 ]
  %36 = phi i32 [ %26, %25 ], [ %32, %28 ]
  %37 = icmp eq i64 %20, 0
  br i1 %37, label %40, label %38

38:                                               ; preds = %34
  %39 = or disjoint i64 %23, 4503599627370496
  br label %46

40:                                               ; preds = %34, %40
  %41 = phi i32 [ %44, %40 ], [ 1, %34 ]
  %42 = phi i64 [ %43, %40 ], [ %23, %34 ]
  %43 = shl nuw nsw i64 %42, 1
  %44 = add nsw i32 %41, -1
  %45 = icmp samesign ult i64 %42, 2251799813685248
  br i1 %45, label %40, label %46

46:                                               ; preds = %40, %38
  %47 = phi i64 [ %39, %38 ], [ %43, %40 ]
  %48 = phi i32 [ %21, %38 ], [ %44, %40 ]
  %49 = icmp sgt i32 %36, %48
  br i1 %49, label %50, label %59

50:                                               ; preds = %46, %50
  %51 = phi i32 [ %57, %50 ], [ %36, %46 ]
  %52 = phi i64 [ %56, %50 ], [ %35, %46 ]
  %53 = icmp ult i64 %52, %47
  %54 = select i1 %53, i64 0, i64 %47
  %55 = sub nuw i64 %52, %54
  %56 = shl i64 %55, 1
  %57 = add nsw i32 %51, -1
  %58 = icmp sgt i32 %57, %48
  br i1 %58, label %50, label %59

59:                                               ; preds = %50, %46
  %60 = phi i64 [ %35, %46 ], [ %56, %50 ]
  %61 = phi i32 [ %36, %46 ], [ %48, %50 ]
  %62 = icmp ult i64 %60, %47
  %63 = select i1 %62, i64 0, i64 %47
  %64 = sub nuw i64 %60, %63
  %65 = bitcast i64 %64 to double
  %66 = tail call i1 @llvm.is.fpclass.f64(double %65, i32 64)
  br i1 %66, label %69, label %67

67:                                               ; preds = %59
  %68 = icmp ult i64 %64, 4503599627370496
  br i1 %68, label %71, label %77

69:                                               ; preds = %59
  %70 = bitcast i64 %4 to double
  br label %94

71:                                               ; preds = %67, %71
  %72 = phi i32 [ %75, %71 ], [ %61, %67 ]
  %73 = phi i64 [ %74, %71 ], [ %64, %67 ]
  %74 = shl nuw nsw i64 %73, 1
  %75 = add nsw i32 %72, -1
  %76 = icmp samesign ult i64 %73, 2251799813685248
  br i1 %76, label %71, label %77

77:                                               ; preds = %71, %67
  %78 = phi i64 [ %64, %67 ], [ %74, %71 ]
  %79 = phi i32 [ %61, %67 ], [ %75, %71 ]
  %80 = icmp sgt i32 %79, 0
  br i1 %80, label %81, label %86

81:                                               ; preds = %77
  %82 = add i64 %78, -4503599627370496
  %83 = zext nneg i32 %79 to i64
  %84 = shl i64 %83, 52
  %85 = or i64 %84, %82
  br label %90

86:                                               ; preds = %77
  %87 = sub nsw i32 1, %79
  %88 = zext nneg i32 %87 to i64
  %89 = lshr i64 %78, %88
  br label %90

90:                                               ; preds = %86, %81
  %91 = phi i64 [ %85, %81 ], [ %89, %86 ]
  %92 = or i64 %91, %4
  %93 = bitcast i64 %92 to double
  br label %94

94:                                               ; preds = %16, %90, %69, %13
  %95 = phi double [ %15, %13 ], [ %93, %90 ], [ %70, %69 ], [ %0, %16 ]
  ret double %95
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
  br label %64

9:                                                ; preds = %3
  %10 = insertelement <2 x double> poison, double %0, i64 0
  %11 = insertelement <2 x double> %10, double %1, i64 1
  %12 = bitcast <2 x double> %11 to <2 x i64>
  %13 = and <2 x i64> %12, splat (i64 -134217728)
  %14 = bitcast <2 x i64> %13 to <2 x double>
  %15 = fsub <2 x double> %11, %14
  %16 = shufflevector <2 x double> %14, <2 x double> poison, <2 x i32> <i32 1, i32 0>
  %17 = extractelement <2 x double> %14, i64 0
  %18 = extractelement <2 x double> %14, i64 1
  %19 = fmul double %17, %18
  %20 = fsub double %19, %4
  %21 = extractelement <2 x double> %15, i64 1
  %22 = extractelement <2 x double> %15, i64 0
  %23 = fmul <2 x double> %15, %16
  %24 = extractelement <2 x double> %23, i64 1
  %25 = fadd double %20, %24
  %26 = extractelement <2 x double> %23, i64 0
  %27 = fadd double %26, %25
  %28 = fmul double %22, %21
  %29 = fadd double %28, %27
  %30 = fadd double %2, %29
  %31 = fsub double %30, %2
  %32 = fsub double %30, %31
  %33 = fsub double %2, %32
  %34 = fsub double %29, %31
  %35 = fadd double %34, %33
  %36 = fadd double %4, %30
  %37 = fsub double %36, %4
  %38 = fsub double %36, %37
  %39 = fsub double %4, %38
  %40 = fsub double %30, %37
  %41 = fadd double %40, %39
  %42 = fadd double %35, %41
  %43 = fsub double %42, %35
  %44 = fsub double %42, %43
  %45 = fsub double %35, %44
  %46 = fsub double %41, %43
  %47 = fadd double %46, %45
  %48 = fcmp une double %47, 0.000000e+00
  br i1 %48, label %49, label %61

49:                                               ; preds = %9
  %50 = bitcast double %42 to i64
  %51 = and i64 %50, 1
  %52 = icmp eq i64 %51, 0
  br i1 %52, label %53, label %61

53:                                               ; preds = %49
  %54 = fcmp ogt double %47, 0.000000e+00
  %55 = fcmp ule double %42, 0.000000e+00
  %56 = xor i1 %55, %54
  %57 = or disjoint i64 %50, 1
  %58 = add i64 %50, -1
  %59 = select i1 %56, i64 %57, i64 %58
  %60 = bitcast i64 %59 to double
  br label %61

61:                                               ; preds = %53, %49, %9
  %62 = phi double [ %60, %53 ], [ %42, %49 ], [ %42, %9 ]
  %63 = fadd double %36, %62
  br label %64

64:                                               ; preds = %61, %7
  %65 = phi double [ %63, %61 ], [ %8, %7 ]
  ret double %65
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
  %28 = xor i64 %1, %0
  %29 = sub i64 0, %23
  %30 = icmp slt i64 %28, 0
  %31 = select i1 %30, i64 %29, i64 %23
  ret i64 %31
}

define weak hidden i64 @__moddi3(i64 noundef %0, i64 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = tail call i64 @__divdi3(i64 noundef %0, i64 noundef %1)
  %4 = mul i64 %3, %1
  %5 = sub i64 %0, %4
  ret i64 %5
}

define weak hidden noundef ptr @memcpy(ptr noundef returned writeonly captures(ret: address, provenance) %0, ptr noundef readonly captures(none) %1, i64 noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %14, label %5

5:                                                ; preds = %3, %5
  %6 = phi ptr [ %10, %5 ], [ %1, %3 ]
  %7 = phi ptr [ %12, %5 ], [ %0, %3 ]
  %8 = phi i64 [ %9, %5 ], [ %2, %3 ]
  %9 = add i64 %8, -1
  %10 = getelementptr inbounds nuw i8, ptr %6, i64 1
  %11 = load i8, ptr %6, align 1
  %12 = getelementptr inbounds nuw i8, ptr %7, i64 1
  store i8 %11, ptr %7, align 1
  %13 = icmp eq i64 %9, 0
  br i1 %13, label %14, label %5

14:                                               ; preds = %5, %3
  ret ptr %0
}

define weak hidden noundef ptr @memmove(ptr noundef returned writeonly captures(address, ret: address, provenance) %0, ptr noundef readonly captures(address) %1, i64 noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = icmp ugt ptr %0, %1
  %5 = icmp eq i64 %2, 0
  br i1 %4, label %6, label %7

6:                                                ; preds = %3
  br i1 %5, label %24, label %17

7:                                                ; preds = %3
  br i1 %5, label %24, label %8

8:                                                ; preds = %7, %8
  %9 = phi ptr [ %13, %8 ], [ %1, %7 ]
  %10 = phi ptr [ %15, %8 ], [ %0, %7 ]
  %11 = phi i64 [ %12, %8 ], [ %2, %7 ]
  %12 = add i64 %11, -1
  %13 = getelementptr inbounds nuw i8, ptr %9, i64 1
  %14 = load i8, ptr %9, align 1
  %15 = getelementptr inbounds nuw i8, ptr %10, i64 1
  store i8 %14, ptr %10, align 1
  %16 = icmp eq i64 %12, 0
  br i1 %16, label %24, label %8

17:                                               ; preds = %6, %17
  %18 = phi i64 [ %19, %17 ], [ %2, %6 ]
  %19 = add i64 %18, -1
  %20 = getelementptr inbounds nuw i8, ptr %1, i64 %19
  %21 = load i8, ptr %20, align 1
  %22 = getelementptr inbounds nuw i8, ptr %0, i64 %19
  store i8 %21, ptr %22, align 1
  %23 = icmp eq i64 %19, 0
  br i1 %23, label %24, label %17

24:                                               ; preds = %8, %17, %6, %7
  ret ptr %0
}

define weak hidden noundef ptr @memset(ptr noundef returned writeonly captures(ret: address, provenance) %0, i32 noundef %1, i64 noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %13, label %5

5:                                                ; preds = %3
  %6 = trunc i32 %1 to i8
  br label %7

7:                                                ; preds = %5, %7
  %8 = phi ptr [ %0, %5 ], [ %11, %7 ]
  %9 = phi i64 [ %2, %5 ], [ %10, %7 ]
  %10 = add i64 %9, -1
  %11 = getelementptr inbounds nuw i8, ptr %8, i64 1
  store i8 %6, ptr %8, align 1
  %12 = icmp eq i64 %10, 0
  br i1 %12, label %13, label %7

13:                                               ; preds = %7, %3
  ret ptr %0
}
