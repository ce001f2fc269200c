%struct.SlwName = type { ptr, i64 }

define weak hidden range(i32 -2, 1) i32 @slw_call_packed(ptr noundef %0, ptr noundef captures(none) %1, ptr noundef %2, i32 noundef %3, ptr noundef %4) minsize optsize nounwind "no-builtins" {
  %6 = alloca %struct.SlwName, align 8
  %7 = alloca ptr, align 8
  %8 = load ptr, ptr @__TVMFFIFunctionGetGlobal, align 8
  %9 = icmp eq ptr %8, null
  %10 = load ptr, ptr @__TVMFFIFunctionCall, align 8
  %11 = icmp eq ptr %10, null
  %12 = select i1 %9, i1 true, i1 %11
  br i1 %12, label %39, label %13

13:                                               ; preds = %5
  %14 = load ptr, ptr %1, align 8
  %15 = icmp eq ptr %14, null
  br i1 %15, label %16, label %33

16:                                               ; preds = %13
  store ptr null, ptr %7, align 8
  store ptr %0, ptr %6, align 8
  br label %17

17:                                               ; preds = %17, %16
  %18 = phi i64 [ 0, %16 ], [ %22, %17 ]
  %19 = getelementptr inbounds nuw i8, ptr %0, i64 %18
  %20 = load i8, ptr %19, align 1
  %21 = icmp eq i8 %20, 0
  %22 = add i64 %18, 1
  br i1 %21, label %23, label %17

23:                                               ; preds = %17
  %24 = getelementptr inbounds nuw i8, ptr %6, i64 8
  store i64 %18, ptr %24, align 8
  %25 = call i32 %8(ptr noundef nonnull %6, ptr noundef nonnull %7)
  %26 = icmp ne i32 %25, 0
  %27 = load ptr, ptr %7, align 8
  %28 = icmp eq ptr %27, null
  %29 = select i1 %26, i1 true, i1 %28
  br i1 %29, label %32, label %30

30:                                               ; preds = %23
  store ptr %27, ptr %1, align 8
  %31 = load ptr, ptr @__TVMFFIFunctionCall, align 8
  br label %33

32:                                               ; preds = %23
  br label %39

33:                                               ; preds = %30, %13
  %34 = phi ptr [ %27, %30 ], [ %14, %13 ]
  %35 = phi ptr [ %31, %30 ], [ %10, %13 ]
  %36 = call i32 %35(ptr noundef nonnull %34, ptr noundef %2, i32 noundef %3, ptr noundef %4)
  %37 = icmp ne i32 %36, 0
  %38 = sext i1 %37 to i32
  br label %39

39:                                               ; preds = %32, %5, %33
  %40 = phi i32 [ -2, %32 ], [ %38, %33 ], [ -2, %5 ]
  ret i32 %40
}
