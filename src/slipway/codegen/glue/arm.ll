define weak hidden arm_aapcscc i32 @__clzsi2(i32 noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = icmp eq i32 %0, 0
  %3 = zext i1 %2 to i32
  br label %4

4:                                                ; preds = %1, %4
  %5 = phi i32 [ 16, %1 ], [ %14, %4 ]
  %6 = phi i32 [ %3, %1 ], [ %13, %4 ]
  %7 = phi i32 [ %0, %1 ], [ %12, %4 ]
  %8 = sub nuw nsw i32 32, %5
  %9 = lshr i32 %7, %8
  %10 = icmp eq i32 %9, 0
  %11 = select i1 %10, i32 %5, i32 0
  %12 = shl i32 %7, %11
  %13 = add nuw nsw i32 %11, %6
  %14 = lshr i32 %5, 1
  %15 = icmp eq i32 %14, 0
  br i1 %15, label %16, label %4

16:                                               ; preds = %4
  ret i32 %13
}

define weak hidden arm_aapcscc i64 @__aeabi_lmul(i64 noundef %0, i64 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = trunc i64 %0 to i32
  %4 = and i32 %3, 65535
  %5 = trunc i64 %1 to i32
  %6 = and i32 %5, 65535
  %7 = lshr i32 %3, 16
  %8 = mul nuw i32 %6, %7
  %9 = tail call i32 asm "", "=r,0"(i32 %8)
  %10 = lshr i32 %5, 16
  %11 = mul nuw i32 %10, %4
  %12 = and i32 %9, 65535
  %13 = mul nuw i32 %6, %4
  %14 = lshr i32 %13, 16
  %15 = add nuw i32 %14, %11
  %16 = add nuw i32 %15, %12
  %17 = mul nuw i32 %10, %7
  %18 = lshr i32 %9, 16
  %19 = lshr i32 %16, 16
  %20 = lshr i64 %1, 32
  %21 = trunc nuw i64 %20 to i32
  %22 = mul i32 %21, %3
  %23 = lshr i64 %0, 32
  %24 = trunc nuw i64 %23 to i32
  %25 = mul i32 %24, %5
  %26 = add i32 %22, %25
  %27 = add i32 %26, %17
  %28 = add i32 %27, %18
  %29 = add i32 %28, %19
  %30 = zext i32 %29 to i64
  %31 = shl nuw i64 %30, 32
  %32 = mul i32 %5, %3
  %33 = zext i32 %32 to i64
  %34 = or disjoint i64 %31, %33
  ret i64 %34
}

define weak hidden arm_aapcscc i64 @__aeabi_llsl(i64 noundef %0, i32 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = trunc i64 %0 to i32
  %4 = lshr i64 %0, 32
  %5 = trunc nuw i64 %4 to i32
  %6 = icmp sgt i32 %1, 31
  br i1 %6, label %7, label %12

7:                                                ; preds = %2
  %8 = add nsw i32 %1, -32
  %9 = shl i32 %3, %8
  %10 = zext i32 %9 to i64
  %11 = shl nuw i64 %10, 32
  br label %27

12:                                               ; preds = %2
  %13 = icmp sgt i32 %1, 0
  br i1 %13, label %14, label %20

14:                                               ; preds = %12
  %15 = shl i32 %5, %1
  %16 = sub nuw nsw i32 32, %1
  %17 = lshr i32 %3, %16
  %18 = or disjoint i32 %15, %17
  %19 = shl i32 %3, %1
  br label %20

20:                                               ; preds = %14, %12
  %21 = phi i32 [ %19, %14 ], [ %3, %12 ]
  %22 = phi i32 [ %18, %14 ], [ %5, %12 ]
  %23 = zext i32 %22 to i64
  %24 = shl nuw i64 %23, 32
  %25 = zext i32 %21 to i64
  %26 = or disjoint i64 %24, %25
  br label %27

27:                                               ; preds = %20, %7
  %28 = phi i64 [ %11, %7 ], [ %26, %20 ]
  ret i64 %28
}

define weak hidden arm_aapcscc i64 @__aeabi_llsr(i64 noundef %0, i32 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = trunc i64 %0 to i32
  %4 = lshr i64 %0, 32
  %5 = trunc nuw i64 %4 to i32
  %6 = icmp sgt i32 %1, 31
  br i1 %6, label %7, label %11

7:                                                ; preds = %2
  %8 = add nsw i32 %1, -32
  %9 = lshr i32 %5, %8
  %10 = zext i32 %9 to i64
  br label %26

11:                                               ; preds = %2
  %12 = icmp sgt i32 %1, 0
  br i1 %12, label %13, label %19

13:                                               ; preds = %11
  %14 = lshr i32 %3, %1
  %15 = sub nuw nsw i32 32, %1
  %16 = shl i32 %5, %15
  %17 = or disjoint i32 %16, %14
  %18 = lshr i32 %5, %1
  br label %19

19:                                               ; preds = %13, %11
  %20 = phi i32 [ %17, %13 ], [ %3, %11 ]
  %21 = phi i32 [ %18, %13 ], [ %5, %11 ]
  %22 = zext i32 %21 to i64
  %23 = shl nuw i64 %22, 32
  %24 = zext i32 %20 to i64
  %25 = or disjoint i64 %23, %24
  br label %26

26:                                               ; preds = %19, %7
  %27 = phi i64 [ %10, %7 ], [ %25, %19 ]
  ret i64 %27
}

define weak hidden arm_aapcscc i64 @__aeabi_lasr(i64 noundef %0, i32 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = ashr i64 %0, 63
  %4 = xor i64 %3, %0
  %5 = trunc i64 %4 to i32
  %6 = lshr i64 %4, 32
  %7 = trunc nuw i64 %6 to i32
  %8 = icmp sgt i32 %1, 31
  br i1 %8, label %9, label %13

9:                                                ; preds = %2
  %10 = add nsw i32 %1, -32
  %11 = lshr i32 %7, %10
  %12 = zext i32 %11 to i64
  br label %28

13:                                               ; preds = %2
  %14 = icmp sgt i32 %1, 0
  br i1 %14, label %15, label %21

15:                                               ; preds = %13
  %16 = lshr i32 %5, %1
  %17 = sub nuw nsw i32 32, %1
  %18 = shl i32 %7, %17
  %19 = or disjoint i32 %18, %16
  %20 = lshr i32 %7, %1
  br label %21

21:                                               ; preds = %15, %13
  %22 = phi i32 [ %19, %15 ], [ %5, %13 ]
  %23 = phi i32 [ %20, %15 ], [ %7, %13 ]
  %24 = zext i32 %23 to i64
  %25 = shl nuw i64 %24, 32
  %26 = zext i32 %22 to i64
  %27 = or disjoint i64 %25, %26
  br label %28

28:                                               ; preds = %9, %21
  %29 = phi i64 [ %12, %9 ], [ %27, %21 ]
  %30 = xor i64 %29, %3
  ret i64 %30
}

define weak hidden arm_aapcscc i64 @__aeabi_uidivmod(i32 noundef %0, i32 noundef %1) minsize optsize nounwind "no-builtins" {
  br label %3

3:                                                ; preds = %2, %3
  %4 = phi i32 [ 0, %2 ], [ %18, %3 ]
  %5 = phi i32 [ 31, %2 ], [ %19, %3 ]
  %6 = phi i32 [ 0, %2 ], [ %16, %3 ]
  %7 = shl i32 %6, 1
  %8 = lshr i32 %0, %5
  %9 = and i32 %8, 1
  %10 = or disjoint i32 %9, %7
  %11 = icmp sgt i32 %6, -1
  %12 = icmp ult i32 %10, %1
  %13 = select i1 %11, i1 %12, i1 false
  %14 = shl nuw i32 1, %5
  %15 = select i1 %13, i32 0, i32 %1
  %16 = sub i32 %10, %15
  %17 = select i1 %13, i32 0, i32 %14
  %18 = or i32 %17, %4
  %19 = add nsw i32 %5, -1
  %20 = icmp eq i32 %5, 0
  br i1 %20, label %21, label %3

21:                                               ; preds = %3
  %22 = zext i32 %16 to i64
  %23 = shl nuw i64 %22, 32
  %24 = zext i32 %18 to i64
  %25 = or disjoint i64 %23, %24
  ret i64 %25
}

define weak hidden arm_aapcscc i32 @__aeabi_uidiv(i32 noundef %0, i32 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = tail call arm_aapcscc i64 @__aeabi_uidivmod(i32 noundef %0, i32 noundef %1)
  %4 = trunc i64 %3 to i32
  ret i32 %4
}

define weak hidden arm_aapcscc i64 @__aeabi_idivmod(i32 noundef %0, i32 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = icmp slt i32 %0, 0
  %4 = tail call i32 @llvm.abs.i32(i32 %0, i1 false)
  %5 = tail call i32 @llvm.abs.i32(i32 %1, i1 false)
  %6 = tail call arm_aapcscc i64 @__aeabi_uidivmod(i32 noundef %4, i32 noundef %5)
  %7 = trunc i64 %6 to i32
  %8 = lshr i64 %6, 32
  %9 = trunc nuw i64 %8 to i32
  %10 = xor i32 %1, %0
  %11 = sub i32 0, %7
  %12 = icmp slt i32 %10, 0
  %13 = select i1 %12, i32 %11, i32 %7
  %14 = sub i32 0, %9
  %15 = select i1 %3, i32 %14, i32 %9
  %16 = zext i32 %15 to i64
  %17 = shl nuw i64 %16, 32
  %18 = zext i32 %13 to i64
  %19 = or disjoint i64 %17, %18
  ret i64 %19
}

define weak hidden arm_aapcscc i32 @__aeabi_idiv(i32 noundef %0, i32 noundef %1) minsize optsize nounwind "no-builtins" {
  %3 = tail call i32 @llvm.abs.i32(i32 %0, i1 false)
  %4 = tail call i32 @llvm.abs.i32(i32 %1, i1 false)
  %5 = tail call arm_aapcscc i64 @__aeabi_uidivmod(i32 noundef %3, i32 noundef %4)
  %6 = trunc i64 %5 to i32
  %7 = xor i32 %1, %0
  %8 = sub i32 0, %6
  %9 = icmp slt i32 %7, 0
  %10 = select i1 %9, i32 %8, i32 %6
  ret i32 %10
}

define weak hidden i64 @slw_udiv64(i64 noundef %0, i64 noundef %1) minsize optsize nounwind "no-builtins" {
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

define weak hidden i64 @slw_div64(i64 noundef %0, i64 noundef %1) minsize optsize nounwind "no-builtins" {
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

define weak hidden arm_aapcscc float @__aeabi_ul2f(i64 noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = tail call fastcc i32 @to_single(i64 noundef %0)
  %3 = bitcast i32 %2 to float
  ret float %3
}

define internal fastcc i32 @to_single(i64 noundef %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = icmp eq i64 %0, 0
  br i1 %2, label %31, label %3

3:                                                ; preds = %1
  %4 = icmp sgt i64 %0, -1
  br i1 %4, label %5, label %14

5:                                                ; preds = %3, %5
  %6 = phi i64 [ %8, %5 ], [ %0, %3 ]
  %7 = phi i32 [ %9, %5 ], [ 190, %3 ]
  %8 = shl nuw i64 %6, 1
  %9 = add nsw i32 %7, -1
  %10 = icmp sgt i64 %8, -1
  br i1 %10, label %5, label %11

11:                                               ; preds = %5
  %12 = shl i32 %9, 23
  %13 = add i32 %12, -8388608
  br label %14

14:                                               ; preds = %11, %3
  %15 = phi i32 [ 1585446912, %3 ], [ %13, %11 ]
  %16 = phi i64 [ %0, %3 ], [ %8, %11 ]
  %17 = lshr i64 %16, 40
  %18 = trunc nuw nsw i64 %17 to i32
  %19 = shl i64 %16, 24
  %20 = icmp ugt i64 %19, -9223372036854775808
  br i1 %20, label %27, label %21

21:                                               ; preds = %14
  %22 = icmp eq i64 %19, -9223372036854775808
  %23 = and i32 %18, 1
  %24 = icmp ne i32 %23, 0
  %25 = select i1 %22, i1 %24, i1 false
  %26 = zext i1 %25 to i32
  br label %27

27:                                               ; preds = %21, %14
  %28 = phi i32 [ 1, %14 ], [ %26, %21 ]
  %29 = add i32 %15, %18
  %30 = add i32 %29, %28
  br label %31

31:                                               ; preds = %1, %27
  %32 = phi i32 [ %30, %27 ], [ 0, %1 ]
  ret i32 %32
}

define weak hidden arm_aapcscc float @__aeabi_l2f(i64 noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = tail call noundef range(i64 0, -9223372036854775807) i64 @llvm.abs.i64(i64 %0, i1 false)
  %3 = tail call fastcc i32 @to_single(i64 noundef %2)
  %4 = icmp slt i64 %0, 0
  %5 = select i1 %4, i32 -2147483648, i32 0
  %6 = or i32 %3, %5
  %7 = bitcast i32 %6 to float
  ret float %7
}

define weak hidden arm_aapcscc double @__aeabi_ul2d(i64 noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = tail call fastcc i64 @to_double(i64 noundef %0)
  %3 = bitcast i64 %2 to double
  ret double %3
}

define internal fastcc i64 @to_double(i64 noundef %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = icmp eq i64 %0, 0
  br i1 %2, label %31, label %3

3:                                                ; preds = %1
  %4 = icmp sgt i64 %0, -1
  br i1 %4, label %5, label %11

5:                                                ; preds = %3, %5
  %6 = phi i64 [ %8, %5 ], [ %0, %3 ]
  %7 = phi i32 [ %9, %5 ], [ 1086, %3 ]
  %8 = shl nuw i64 %6, 1
  %9 = add nsw i32 %7, -1
  %10 = icmp sgt i64 %8, -1
  br i1 %10, label %5, label %11

11:                                               ; preds = %5, %3
  %12 = phi i32 [ 1086, %3 ], [ %9, %5 ]
  %13 = phi i64 [ %0, %3 ], [ %8, %5 ]
  %14 = zext i32 %12 to i64
  %15 = shl i64 %14, 52
  %16 = lshr i64 %13, 11
  %17 = add nsw i64 %16, -4503599627370496
  %18 = or disjoint i64 %17, %15
  %19 = shl i64 %13, 53
  %20 = icmp ugt i64 %19, -9223372036854775808
  br i1 %20, label %27, label %21

21:                                               ; preds = %11
  %22 = icmp eq i64 %19, -9223372036854775808
  %23 = and i64 %13, 2048
  %24 = icmp ne i64 %23, 0
  %25 = and i1 %22, %24
  %26 = zext i1 %25 to i32
  br label %27

27:                                               ; preds = %21, %11
  %28 = phi i32 [ 1, %11 ], [ %26, %21 ]
  %29 = zext nneg i32 %28 to i64
  %30 = add i64 %18, %29
  br label %31

31:                                               ; preds = %1, %27
  %32 = phi i64 [ %30, %27 ], [ 0, %1 ]
  ret i64 %32
}

define weak hidden arm_aapcscc double @__aeabi_l2d(i64 noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = tail call noundef range(i64 0, -9223372036854775807) i64 @llvm.abs.i64(i64 %0, i1 false)
  %3 = tail call fastcc i64 @to_double(i64 noundef %2)
  %4 = and i64 %0, -9223372036854775808
  %5 = or i64 %3, %4
  %6 = bitcast i64 %5 to double
  ret double %6
}

define weak hidden arm_aapcscc range(i64 -1, -2047) i64 @__aeabi_d2ulz(double noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = bitcast double %0 to i64
  %3 = tail call fastcc i64 @unsigned_of(i64 noundef %2)
  ret i64 %3
}

define internal fastcc range(i64 -1, -2047) i64 @unsigned_of(i64 noundef %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = icmp sgt i64 %0, -1
  br i1 %2, label %3, label %21

3:                                                ; preds = %1
  %4 = lshr i64 %0, 52
  %5 = trunc nuw nsw i64 %4 to i32
  %6 = and i64 %0, 4503599627370495
  %7 = or disjoint i64 %6, 4503599627370496
  %8 = icmp samesign ult i32 %5, 1023
  br i1 %8, label %21, label %9

9:                                                ; preds = %3
  %10 = icmp samesign ugt i32 %5, 1086
  br i1 %10, label %21, label %11

11:                                               ; preds = %9
  %12 = icmp samesign ult i32 %5, 1076
  br i1 %12, label %13, label %17

13:                                               ; preds = %11
  %14 = sub nuw nsw i32 1075, %5
  %15 = zext nneg i32 %14 to i64
  %16 = lshr i64 %7, %15
  br label %21

17:                                               ; preds = %11
  %18 = add nsw i32 %5, -1075
  %19 = zext nneg i32 %18 to i64
  %20 = shl nuw i64 %7, %19
  br label %21

21:                                               ; preds = %17, %13, %9, %3, %1
  %22 = phi i64 [ 0, %1 ], [ -1, %9 ], [ 0, %3 ], [ %16, %13 ], [ %20, %17 ]
  ret i64 %22
}

define weak hidden arm_aapcscc i64 @__aeabi_d2lz(double noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = bitcast double %0 to i64
  %3 = tail call fastcc i64 @signed_of(i64 noundef %2)
  ret i64 %3
}

define internal fastcc i64 @signed_of(i64 noundef %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = lshr i64 %0, 52
  %3 = trunc nuw nsw i64 %2 to i32
  %4 = and i32 %3, 2047
  %5 = and i64 %0, 4503599627370495
  %6 = or disjoint i64 %5, 4503599627370496
  %7 = icmp samesign ult i32 %4, 1023
  br i1 %7, label %20, label %8

8:                                                ; preds = %1
  %9 = icmp samesign ugt i32 %4, 1086
  br i1 %9, label %20, label %10

10:                                               ; preds = %8
  %11 = icmp samesign ult i32 %4, 1076
  br i1 %11, label %12, label %16

12:                                               ; preds = %10
  %13 = sub nuw nsw i32 1075, %4
  %14 = zext nneg i32 %13 to i64
  %15 = lshr i64 %6, %14
  br label %20

16:                                               ; preds = %10
  %17 = add nsw i32 %4, -1075
  %18 = zext nneg i32 %17 to i64
  %19 = shl nuw i64 %6, %18
  br label %20

20:                                               ; preds = %1, %8, %12, %16
  %21 = phi i64 [ -1, %8 ], [ 0, %1 ], [ %15, %12 ], [ %19, %16 ]
  %22 = sub i64 0, %21
  %23 = icmp slt i64 %0, 0
  %24 = select i1 %23, i64 %22, i64 %21
  ret i64 %24
}

define weak hidden arm_aapcscc range(i64 -1, -2047) i64 @__aeabi_f2ulz(float noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = bitcast float %0 to i32
  %3 = tail call fastcc i64 @widened(i32 noundef %2)
  %4 = tail call fastcc i64 @unsigned_of(i64 noundef %3)
  ret i64 %4
}

define internal fastcc i64 @widened(i32 noundef %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = lshr i32 %0, 31
  %3 = zext nneg i32 %2 to i64
  %4 = shl nuw i64 %3, 63
  %5 = lshr i32 %0, 23
  %6 = and i32 %5, 255
  %7 = icmp eq i32 %6, 0
  br i1 %7, label %19, label %8

8:                                                ; preds = %1
  %9 = icmp eq i32 %6, 255
  %10 = add nuw nsw i32 %6, 896
  %11 = select i1 %9, i32 2047, i32 %10
  %12 = zext nneg i32 %11 to i64
  %13 = shl nuw nsw i64 %12, 52
  %14 = and i32 %0, 8388607
  %15 = zext nneg i32 %14 to i64
  %16 = shl nuw nsw i64 %15, 29
  %17 = or disjoint i64 %13, %16
  %18 = or disjoint i64 %17, %4
  br label %19

19:                                               ; preds = %1, %8
  %20 = phi i64 [ %18, %8 ], [ %4, %1 ]
  ret i64 %20
}

define weak hidden arm_aapcscc i64 @__aeabi_f2lz(float noundef %0) minsize optsize nounwind "no-builtins" {
  %2 = bitcast float %0 to i32
  %3 = tail call fastcc i64 @widened(i32 noundef %2)
  %4 = tail call fastcc i64 @signed_of(i64 noundef %3)
  ret i64 %4
}

define weak hidden arm_aapcscc { i64, i64 } @__aeabi_ldivmod(i64 %n, i64 %d) nounwind {
  %q = call i64 @slw_div64(i64 %n, i64 %d)
  %p = mul i64 %q, %d
  %r = sub i64 %n, %p
  %a = insertvalue { i64, i64 } poison, i64 %q, 0
  %b = insertvalue { i64, i64 } %a, i64 %r, 1
  ret { i64, i64 } %b
}

define weak hidden arm_aapcscc { i64, i64 } @__aeabi_uldivmod(i64 %n, i64 %d) nounwind {
  %q = call i64 @slw_udiv64(i64 %n, i64 %d)
  %p = mul i64 %q, %d
  %r = sub i64 %n, %p
  %a = insertvalue { i64, i64 } poison, i64 %q, 0
  %b = insertvalue { i64, i64 } %a, i64 %r, 1
  ret { i64, i64 } %b
}
