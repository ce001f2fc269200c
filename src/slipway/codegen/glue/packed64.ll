%struct.anon = type { i64, i32, i32, %union.anon, %struct.SlwBytes, %struct.SlwBytes, %struct.SlwBytes, ptr, ptr, ptr }
%union.anon = type { ptr }
%struct.SlwBytes = type { ptr, i64 }
%struct.SlwAny = type { i32, i32, %union.anon.0 }
%union.anon.0 = type { i64 }

@slw_error = internal global %struct.anon zeroinitializer, align 8
@.str = private unnamed_addr constant [1 x i8] zeroinitializer, align 1
@.str.1 = private unnamed_addr constant [5 x i8] c"got \00", align 1
@.str.2 = private unnamed_addr constant [22 x i8] c" arguments, expected \00", align 1
@.str.3 = private unnamed_addr constant [10 x i8] c"TypeError\00", align 1
@.str.4 = private unnamed_addr constant [17 x i8] c"must be a tensor\00", align 1
@.str.5 = private unnamed_addr constant [19 x i8] c"must be an integer\00", align 1
@.str.6 = private unnamed_addr constant [17 x i8] c"must be a number\00", align 1
@.str.7 = private unnamed_addr constant [18 x i8] c"must be a pointer\00", align 1
@slw_used = internal unnamed_addr global i32 0, align 4
@.str.8 = private unnamed_addr constant [3 x i8] c": \00", align 1
@.str.9 = private unnamed_addr constant [10 x i8] c"argument \00", align 1
@.str.10 = private unnamed_addr constant [3 x i8] c" (\00", align 1
@.str.11 = private unnamed_addr constant [3 x i8] c") \00", align 1
@slw_text = internal global [400 x i8] zeroinitializer, align 1
@.str.12 = private unnamed_addr constant [2 x i8] c"-\00", align 1
@.str.13 = private unnamed_addr constant [5 x i8] c"has \00", align 1
@.str.14 = private unnamed_addr constant [23 x i8] c" dimensions, expected \00", align 1
@.str.15 = private unnamed_addr constant [11 x i8] c"ValueError\00", align 1
@.str.16 = private unnamed_addr constant [11 x i8] c"has dtype \00", align 1
@.str.17 = private unnamed_addr constant [12 x i8] c", expected \00", align 1
@.str.18 = private unnamed_addr constant [6 x i8] c"shape\00", align 1
@.str.19 = private unnamed_addr constant [8 x i8] c"strides\00", align 1
@.str.20 = private unnamed_addr constant [39 x i8] c" (a compact array); make it contiguous\00", align 1
@.str.21 = private unnamed_addr constant [24 x i8] c"is on a device of kind \00", align 1
@.str.22 = private unnamed_addr constant [22 x i8] c"; copy it there first\00", align 1
@.str.23 = private unnamed_addr constant [19 x i8] c"is not aligned to \00", align 1
@.str.24 = private unnamed_addr constant [7 x i8] c" bytes\00", align 1
@.str.25 = private unnamed_addr constant [24 x i8] c"has a null data pointer\00", align 1
@slw_put_type.names = internal constant [7 x [8 x i8]] [[8 x i8] c"int\00\00\00\00\00", [8 x i8] c"uint\00\00\00\00", [8 x i8] c"float\00\00\00", [8 x i8] c"handle\00\00", [8 x i8] c"bfloat\00\00", [8 x i8] c"complex\00", [8 x i8] c"bool\00\00\00\00"], align 1
@.str.26 = private unnamed_addr constant [5 x i8] c"type\00", align 1
@.str.27 = private unnamed_addr constant [2 x i8] c"x\00", align 1
@.str.28 = private unnamed_addr constant [2 x i8] c"[\00", align 1
@.str.29 = private unnamed_addr constant [5 x i8] c"] = \00", align 1
@slw_put_device.names = internal constant [17 x [8 x i8]] [[8 x i8] zeroinitializer, [8 x i8] c"cpu\00\00\00\00\00", [8 x i8] c"cuda\00\00\00\00", [8 x i8] zeroinitializer, [8 x i8] c"opencl\00\00", [8 x i8] zeroinitializer, [8 x i8] zeroinitializer, [8 x i8] c"vulkan\00\00", [8 x i8] c"metal\00\00\00", [8 x i8] zeroinitializer, [8 x i8] c"rocm\00\00\00\00", [8 x i8] zeroinitializer, [8 x i8] zeroinitializer, [8 x i8] zeroinitializer, [8 x i8] zeroinitializer, [8 x i8] c"webgpu\00\00", [8 x i8] c"hexagon\00"], align 1
@.str.30 = private unnamed_addr constant [13 x i8] c"device type \00", align 1

define weak hidden range(i32 -1, 1) i32 @slw_raise(ptr noundef writeonly captures(address_is_null) %0, ptr noundef %1, ptr noundef %2) minsize optsize nounwind "no-builtins" {
  %4 = load ptr, ptr @__TVMFFIErrorSetRaisedFromCStr, align 8
  %5 = icmp eq ptr %4, null
  br i1 %5, label %7, label %6

6:                                                ; preds = %3
  tail call void %4(ptr noundef %1, ptr noundef %2)
  br label %28

7:                                                ; preds = %3
  %8 = load ptr, ptr @__tvm_ffi__library_ctx, align 8
  %9 = icmp eq ptr %8, null
  %10 = icmp eq ptr %0, null
  %11 = or i1 %10, %9
  br i1 %11, label %28, label %12

12:                                               ; preds = %7
  store i64 5368709120, ptr @slw_error, align 8
  store i32 67, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 8), align 8
  store ptr @slw_keep, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 16), align 8
  store ptr %1, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 24), align 8
  br label %13

13:                                               ; preds = %13, %12
  %14 = phi i64 [ 0, %12 ], [ %18, %13 ]
  store i64 %14, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 32), align 8
  %15 = getelementptr inbounds nuw i8, ptr %1, i64 %14
  %16 = load i8, ptr %15, align 1
  %17 = icmp eq i8 %16, 0
  %18 = add i64 %14, 1
  br i1 %17, label %19, label %13

19:                                               ; preds = %13
  store ptr %2, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 40), align 8
  br label %20

20:                                               ; preds = %20, %19
  %21 = phi i64 [ 0, %19 ], [ %25, %20 ]
  store i64 %21, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 48), align 8
  %22 = getelementptr inbounds nuw i8, ptr %2, i64 %21
  %23 = load i8, ptr %22, align 1
  %24 = icmp eq i8 %23, 0
  %25 = add i64 %21, 1
  br i1 %24, label %26, label %20

26:                                               ; preds = %20
  store ptr @.str, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 56), align 8
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 64), align 8
  store ptr @slw_no_backtrace, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 72), align 8
  store <2 x ptr> zeroinitializer, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i64 80), align 8
  store <2 x i32> <i32 67, i32 0>, ptr %0, align 8
  %27 = getelementptr inbounds nuw i8, ptr %0, i64 8
  store ptr @slw_error, ptr %27, align 8
  br label %28

28:                                               ; preds = %7, %26, %6
  %29 = phi i32 [ -1, %6 ], [ 0, %26 ], [ -1, %7 ]
  ret i32 %29
}

define internal void @slw_keep(ptr readnone captures(none) %0, i32 %1) minsize optsize nounwind "no-builtins" {
  ret void
}

define internal void @slw_no_backtrace(ptr readnone captures(none) %0, ptr readnone captures(none) %1, i32 %2) minsize optsize nounwind "no-builtins" {
  ret void
}

define weak hidden range(i32 -1, 2) i32 @slw_check_args(ptr noundef readonly captures(none) %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef writeonly captures(none) %3, ptr noundef captures(none) %4, ptr noundef captures(none) %5, ptr noundef writeonly captures(address_is_null) %6) minsize optsize nounwind "no-builtins" {
  %8 = load i32, ptr %0, align 4
  %9 = icmp eq i32 %2, %8
  br i1 %9, label %10, label %15

10:                                               ; preds = %7
  %11 = icmp sgt i32 %2, 0
  br i1 %11, label %12, label %329

12:                                               ; preds = %10
  %13 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %14 = zext nneg i32 %2 to i64
  br label %23

15:                                               ; preds = %7
  store i32 0, ptr @slw_used, align 4
  %16 = getelementptr inbounds nuw i8, ptr %0, i64 4
  %17 = load i32, ptr %16, align 4
  %18 = sext i32 %17 to i64
  %19 = getelementptr inbounds i8, ptr %0, i64 %18
  tail call fastcc void @slw_put(ptr noundef nonnull readonly %19)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.8)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.1)
  %20 = sext i32 %2 to i64
  tail call fastcc void @slw_put_int(i64 noundef %20)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.2)
  %21 = load i32, ptr %0, align 4
  %22 = sext i32 %21 to i64
  tail call fastcc void @slw_put_int(i64 noundef %22)
  br label %326

23:                                               ; preds = %12, %323
  %24 = phi i64 [ 0, %12 ], [ %324, %323 ]
  %25 = mul nuw nsw i64 %24, 40
  %26 = getelementptr inbounds nuw i8, ptr %13, i64 %25
  %27 = getelementptr inbounds nuw %struct.SlwAny, ptr %1, i64 %24
  %28 = load i32, ptr %27, align 8
  %29 = load i32, ptr %26, align 4
  switch i32 %29, label %256 [
    i32 0, label %30
    i32 1, label %249
  ]

30:                                               ; preds = %23
  switch i32 %28, label %39 [
    i32 7, label %35
    i32 70, label %31
  ]

31:                                               ; preds = %30
  %32 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %33 = load ptr, ptr %32, align 8
  %34 = getelementptr inbounds nuw i8, ptr %33, i64 24
  br label %41

35:                                               ; preds = %30
  %36 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %37 = load ptr, ptr %36, align 8
  %38 = icmp eq ptr %37, null
  br i1 %38, label %39, label %41

39:                                               ; preds = %30, %35
  %40 = trunc nuw nsw i64 %24 to i32
  tail call fastcc void @slw_begin(ptr noundef nonnull %0, i32 noundef %40)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.4)
  br label %326

41:                                               ; preds = %31, %35
  %42 = phi ptr [ %34, %31 ], [ %37, %35 ]
  %43 = getelementptr inbounds nuw i64, ptr %3, i64 %24
  %44 = getelementptr inbounds nuw i8, ptr %26, i64 32
  %45 = load i32, ptr %44, align 4
  %46 = sext i32 %45 to i64
  %47 = getelementptr inbounds i32, ptr %0, i64 %46
  %48 = getelementptr inbounds nuw i8, ptr %42, i64 16
  %49 = load i32, ptr %48, align 8
  %50 = getelementptr inbounds nuw i8, ptr %26, i64 20
  %51 = load i32, ptr %50, align 4
  %52 = icmp eq i32 %49, %51
  br i1 %52, label %60, label %53

53:                                               ; preds = %41
  %54 = trunc nuw nsw i64 %24 to i32
  %55 = getelementptr inbounds nuw i8, ptr %42, i64 16
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %54)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.13)
  %56 = load i32, ptr %55, align 8
  %57 = sext i32 %56 to i64
  tail call fastcc void @slw_put_int(i64 noundef %57)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.14)
  %58 = load i32, ptr %50, align 4
  %59 = sext i32 %58 to i64
  tail call fastcc void @slw_put_int(i64 noundef %59)
  br label %326

60:                                               ; preds = %41
  %61 = getelementptr inbounds nuw i8, ptr %42, i64 20
  %62 = load i8, ptr %61, align 4
  %63 = zext i8 %62 to i32
  %64 = getelementptr inbounds nuw i8, ptr %26, i64 8
  %65 = load i32, ptr %64, align 4
  %66 = icmp eq i32 %65, %63
  br i1 %66, label %71, label %67

67:                                               ; preds = %60
  %68 = icmp eq i32 %65, 6
  %69 = icmp eq i8 %62, 1
  %70 = and i1 %69, %68
  br i1 %70, label %71, label %93

71:                                               ; preds = %67, %60
  %72 = getelementptr inbounds nuw i8, ptr %42, i64 21
  %73 = load i8, ptr %72, align 1
  %74 = zext i8 %73 to i32
  %75 = getelementptr inbounds nuw i8, ptr %26, i64 12
  %76 = load i32, ptr %75, align 4
  %77 = icmp eq i32 %76, %74
  br i1 %77, label %82, label %78

78:                                               ; preds = %71
  %79 = icmp eq i32 %65, 6
  %80 = icmp eq i8 %73, 1
  %81 = and i1 %79, %80
  br i1 %81, label %82, label %93

82:                                               ; preds = %78, %71
  %83 = getelementptr inbounds nuw i8, ptr %42, i64 22
  %84 = load i16, ptr %83, align 2
  %85 = zext i16 %84 to i32
  %86 = getelementptr inbounds nuw i8, ptr %26, i64 16
  %87 = load i32, ptr %86, align 4
  %88 = icmp eq i32 %87, %85
  br i1 %88, label %89, label %93

89:                                               ; preds = %82
  %90 = icmp sgt i32 %49, 0
  br i1 %90, label %91, label %212

91:                                               ; preds = %89
  %92 = getelementptr inbounds nuw i8, ptr %42, i64 24
  br label %117

93:                                               ; preds = %82, %78, %67
  %94 = trunc nuw nsw i64 %24 to i32
  %95 = getelementptr inbounds nuw i8, ptr %42, i64 20
  %96 = getelementptr inbounds nuw i8, ptr %26, i64 8
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %94)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.16)
  %97 = load i8, ptr %95, align 4
  %98 = zext i8 %97 to i32
  %99 = getelementptr inbounds nuw i8, ptr %42, i64 21
  %100 = load i8, ptr %99, align 1
  %101 = zext i8 %100 to i32
  %102 = getelementptr inbounds nuw i8, ptr %42, i64 22
  %103 = load i16, ptr %102, align 2
  %104 = zext i16 %103 to i32
  tail call fastcc void @slw_put_type(i32 noundef %98, i32 noundef %101, i32 noundef %104)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.17)
  %105 = load i32, ptr %96, align 4
  %106 = getelementptr inbounds nuw i8, ptr %26, i64 12
  %107 = load i32, ptr %106, align 4
  %108 = getelementptr inbounds nuw i8, ptr %26, i64 16
  %109 = load i32, ptr %108, align 4
  tail call fastcc void @slw_put_type(i32 noundef %105, i32 noundef %107, i32 noundef %109)
  br label %326

110:                                              ; preds = %148
  %111 = icmp ne i32 %152, 0
  %112 = icmp sgt i32 %149, 0
  br i1 %112, label %113, label %212

113:                                              ; preds = %110
  %114 = getelementptr inbounds nuw i8, ptr %42, i64 32
  %115 = getelementptr inbounds nuw i8, ptr %26, i64 36
  %116 = zext nneg i32 %149 to i64
  br label %156

117:                                              ; preds = %148, %91
  %118 = phi i32 [ %49, %91 ], [ %149, %148 ]
  %119 = phi i64 [ 0, %91 ], [ %153, %148 ]
  %120 = phi i32 [ 0, %91 ], [ %152, %148 ]
  %121 = load ptr, ptr %92, align 8
  %122 = getelementptr inbounds nuw i64, ptr %121, i64 %119
  %123 = load i64, ptr %122, align 8
  %124 = shl nuw nsw i64 %119, 3
  %125 = getelementptr inbounds nuw i8, ptr %47, i64 %124
  %126 = load i64, ptr %125, align 4
  %127 = xor i64 %126, -1
  %128 = icmp sgt i64 %126, -1
  br i1 %128, label %139, label %129

129:                                              ; preds = %117
  %130 = getelementptr inbounds nuw i8, ptr %5, i64 %127
  %131 = load i8, ptr %130, align 1
  %132 = icmp eq i8 %131, 0
  br i1 %132, label %133, label %136

133:                                              ; preds = %129
  store i8 1, ptr %130, align 1
  %134 = getelementptr inbounds nuw i64, ptr %4, i64 %127
  store i64 %123, ptr %134, align 8
  %135 = load i32, ptr %50, align 4
  br label %148

136:                                              ; preds = %129
  %137 = getelementptr inbounds nuw i64, ptr %4, i64 %127
  %138 = load i64, ptr %137, align 8
  br label %139

139:                                              ; preds = %136, %117
  %140 = phi i64 [ %138, %136 ], [ %126, %117 ]
  %141 = icmp eq i64 %140, %123
  br i1 %141, label %148, label %142

142:                                              ; preds = %139
  %143 = trunc nuw nsw i64 %24 to i32
  %144 = trunc nuw nsw i64 %119 to i32
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %143)
  %145 = load ptr, ptr %92, align 8
  %146 = getelementptr inbounds nuw i64, ptr %145, i64 %119
  %147 = load i64, ptr %146, align 8
  tail call fastcc void @slw_put_expected(ptr noundef nonnull @.str.18, i32 noundef %144, i64 noundef %140, i64 noundef %147)
  br label %326

148:                                              ; preds = %139, %133
  %149 = phi i32 [ %135, %133 ], [ %118, %139 ]
  %150 = icmp eq i64 %123, 0
  %151 = zext i1 %150 to i32
  %152 = or i32 %120, %151
  %153 = add nuw nsw i64 %119, 1
  %154 = sext i32 %149 to i64
  %155 = icmp slt i64 %153, %154
  br i1 %155, label %117, label %110

156:                                              ; preds = %206, %113
  %157 = phi i64 [ %116, %113 ], [ %159, %206 ]
  %158 = phi i64 [ 1, %113 ], [ %210, %206 ]
  %159 = add nsw i64 %157, -1
  %160 = load ptr, ptr %114, align 8
  %161 = icmp eq ptr %160, null
  br i1 %161, label %165, label %162

162:                                              ; preds = %156
  %163 = getelementptr inbounds nuw i64, ptr %160, i64 %159
  %164 = load i64, ptr %163, align 8
  br label %165

165:                                              ; preds = %162, %156
  %166 = phi i64 [ %164, %162 ], [ %158, %156 ]
  %167 = load i32, ptr %115, align 4
  %168 = icmp eq i32 %167, 0
  br i1 %168, label %191, label %169

169:                                              ; preds = %165
  %170 = load i32, ptr %50, align 4
  %171 = trunc nuw nsw i64 %159 to i32
  %172 = add nsw i32 %170, %171
  %173 = shl nsw i32 %172, 1
  %174 = sext i32 %173 to i64
  %175 = getelementptr inbounds i32, ptr %47, i64 %174
  %176 = load i64, ptr %175, align 4
  %177 = xor i64 %176, -1
  %178 = icmp sgt i64 %176, -1
  br i1 %178, label %179, label %181

179:                                              ; preds = %169
  %180 = icmp eq i64 %176, %166
  br i1 %180, label %206, label %193

181:                                              ; preds = %169
  %182 = getelementptr inbounds nuw i8, ptr %5, i64 %177
  %183 = load i8, ptr %182, align 1
  %184 = icmp eq i8 %183, 0
  br i1 %184, label %185, label %187

185:                                              ; preds = %181
  store i8 1, ptr %182, align 1
  %186 = getelementptr inbounds nuw i64, ptr %4, i64 %177
  store i64 %166, ptr %186, align 8
  br label %206

187:                                              ; preds = %181
  %188 = getelementptr inbounds nuw i64, ptr %4, i64 %177
  %189 = load i64, ptr %188, align 8
  %190 = icmp eq i64 %189, %166
  br i1 %190, label %206, label %193

191:                                              ; preds = %165
  %192 = icmp eq i64 %166, %158
  br i1 %192, label %206, label %193

193:                                              ; preds = %191, %187, %179
  %194 = phi i64 [ %189, %187 ], [ %158, %191 ], [ %176, %179 ]
  %195 = load ptr, ptr %92, align 8
  %196 = getelementptr inbounds nuw i64, ptr %195, i64 %159
  %197 = load i64, ptr %196, align 8
  %198 = icmp eq i64 %197, 1
  %199 = select i1 %198, i1 true, i1 %111
  br i1 %199, label %206, label %200

200:                                              ; preds = %193
  %201 = trunc nuw nsw i64 %24 to i32
  %202 = trunc nuw nsw i64 %159 to i32
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %201)
  tail call fastcc void @slw_put_expected(ptr noundef nonnull @.str.19, i32 noundef %202, i64 noundef %194, i64 noundef %166)
  %203 = load i32, ptr %115, align 4
  %204 = icmp eq i32 %203, 0
  %205 = select i1 %204, ptr @.str.20, ptr @.str
  tail call fastcc void @slw_put(ptr noundef nonnull %205)
  br label %326

206:                                              ; preds = %193, %191, %187, %185, %179
  %207 = load ptr, ptr %92, align 8
  %208 = getelementptr inbounds nuw i64, ptr %207, i64 %159
  %209 = load i64, ptr %208, align 8
  %210 = mul nsw i64 %209, %158
  %211 = icmp samesign ugt i64 %157, 1
  br i1 %211, label %156, label %212

212:                                              ; preds = %206, %110, %89
  %213 = phi i1 [ false, %89 ], [ %111, %110 ], [ %111, %206 ]
  %214 = getelementptr inbounds nuw i8, ptr %26, i64 24
  %215 = load i32, ptr %214, align 4
  %216 = icmp sgt i32 %215, -1
  br i1 %216, label %217, label %227

217:                                              ; preds = %212
  %218 = getelementptr inbounds nuw i8, ptr %42, i64 8
  %219 = load i32, ptr %218, align 8
  %220 = icmp eq i32 %219, %215
  br i1 %220, label %227, label %221

221:                                              ; preds = %217
  %222 = trunc nuw nsw i64 %24 to i32
  %223 = getelementptr inbounds nuw i8, ptr %26, i64 24
  %224 = getelementptr inbounds nuw i8, ptr %42, i64 8
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %222)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.21)
  %225 = load i32, ptr %224, align 8
  tail call fastcc void @slw_put_device(i32 noundef %225)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.17)
  %226 = load i32, ptr %223, align 4
  tail call fastcc void @slw_put_device(i32 noundef %226)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.22)
  br label %326

227:                                              ; preds = %217, %212
  %228 = load ptr, ptr %42, align 8
  %229 = ptrtoint ptr %228 to i64
  %230 = getelementptr inbounds nuw i8, ptr %42, i64 40
  %231 = load i64, ptr %230, align 8
  %232 = add i64 %231, %229
  %233 = getelementptr inbounds nuw i8, ptr %26, i64 28
  %234 = load i32, ptr %233, align 4
  %235 = sext i32 %234 to i64
  %236 = add nsw i64 %235, -1
  %237 = and i64 %236, %232
  %238 = icmp eq i64 %237, 0
  br i1 %238, label %244, label %239

239:                                              ; preds = %227
  %240 = trunc nuw nsw i64 %24 to i32
  %241 = getelementptr inbounds nuw i8, ptr %26, i64 28
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %240)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.23)
  %242 = load i32, ptr %241, align 4
  %243 = sext i32 %242 to i64
  tail call fastcc void @slw_put_int(i64 noundef %243)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.24)
  br label %326

244:                                              ; preds = %227
  %245 = icmp ne i64 %232, 0
  %246 = select i1 %245, i1 true, i1 %213
  br i1 %246, label %322, label %247

247:                                              ; preds = %244
  %248 = trunc nuw nsw i64 %24 to i32
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %248)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.25)
  br label %326

249:                                              ; preds = %23
  %250 = add i32 %28, -1
  %251 = icmp ult i32 %250, 2
  br i1 %251, label %252, label %315

252:                                              ; preds = %249
  %253 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %254 = load i64, ptr %253, align 8
  %255 = getelementptr inbounds nuw i64, ptr %3, i64 %24
  store i64 %254, ptr %255, align 8
  br label %323

256:                                              ; preds = %23
  %257 = icmp eq i32 %29, 2
  %258 = icmp eq i32 %28, 3
  %259 = select i1 %257, i1 %258, i1 false
  br i1 %259, label %260, label %264

260:                                              ; preds = %256
  %261 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %262 = load i64, ptr %261, align 8
  %263 = getelementptr inbounds nuw i64, ptr %3, i64 %24
  store i64 %262, ptr %263, align 8
  br label %323

264:                                              ; preds = %256
  %265 = add i32 %28, -1
  %266 = icmp ult i32 %265, 2
  %267 = select i1 %257, i1 %266, i1 false
  br i1 %267, label %268, label %293

268:                                              ; preds = %264
  %269 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %270 = load i64, ptr %269, align 8
  %271 = icmp eq i64 %270, 0
  br i1 %271, label %290, label %272

272:                                              ; preds = %268
  %273 = tail call i64 @llvm.abs.i64(i64 %270, i1 false)
  %274 = icmp sgt i64 %273, -1
  br i1 %274, label %275, label %286

275:                                              ; preds = %272, %275
  %276 = phi i64 [ %279, %275 ], [ 1086, %272 ]
  %277 = phi i64 [ %278, %275 ], [ %273, %272 ]
  %278 = shl nuw i64 %277, 1
  %279 = add i64 %276, -1
  %280 = icmp sgt i64 %278, -1
  br i1 %280, label %275, label %281

281:                                              ; preds = %275
  %282 = lshr i64 %277, 10
  %283 = and i64 %282, 4503599627370495
  %284 = shl i64 %279, 52
  %285 = or disjoint i64 %283, %284
  br label %286

286:                                              ; preds = %281, %272
  %287 = phi i64 [ 4890909195324358656, %272 ], [ %285, %281 ]
  %288 = and i64 %270, -9223372036854775808
  %289 = or i64 %287, %288
  br label %290

290:                                              ; preds = %268, %286
  %291 = phi i64 [ %289, %286 ], [ 0, %268 ]
  %292 = getelementptr inbounds nuw i64, ptr %3, i64 %24
  store i64 %291, ptr %292, align 8
  br label %323

293:                                              ; preds = %264
  %294 = icmp eq i32 %29, 3
  br i1 %294, label %295, label %315

295:                                              ; preds = %293
  switch i32 %28, label %315 [
    i32 0, label %300
    i32 4, label %296
    i32 70, label %303
    i32 7, label %303
  ]

296:                                              ; preds = %295
  %297 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %298 = load ptr, ptr %297, align 8
  %299 = ptrtoint ptr %298 to i64
  br label %300

300:                                              ; preds = %295, %296
  %301 = phi i64 [ %299, %296 ], [ 0, %295 ]
  %302 = getelementptr inbounds nuw i64, ptr %3, i64 %24
  store i64 %301, ptr %302, align 8
  br label %323

303:                                              ; preds = %295, %295
  %304 = icmp eq i32 %28, 70
  %305 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %306 = load ptr, ptr %305, align 8
  %307 = select i1 %304, i64 24, i64 0
  %308 = getelementptr inbounds nuw i8, ptr %306, i64 %307
  %309 = load ptr, ptr %308, align 8
  %310 = ptrtoint ptr %309 to i64
  %311 = getelementptr inbounds nuw i8, ptr %308, i64 40
  %312 = load i64, ptr %311, align 8
  %313 = add i64 %312, %310
  %314 = getelementptr inbounds nuw i64, ptr %3, i64 %24
  store i64 %313, ptr %314, align 8
  br label %323

315:                                              ; preds = %295, %293, %249
  %316 = trunc nuw nsw i64 %24 to i32
  tail call fastcc void @slw_begin(ptr noundef nonnull %0, i32 noundef %316)
  %317 = load i32, ptr %26, align 4
  %318 = icmp eq i32 %317, 1
  %319 = icmp eq i32 %317, 2
  %320 = select i1 %319, ptr @.str.6, ptr @.str.7
  %321 = select i1 %318, ptr @.str.5, ptr %320
  tail call fastcc void @slw_put(ptr noundef nonnull %321)
  br label %326

322:                                              ; preds = %244
  store i64 %232, ptr %43, align 8
  br label %323

323:                                              ; preds = %300, %303, %290, %252, %260, %322
  %324 = add nuw nsw i64 %24, 1
  %325 = icmp eq i64 %324, %14
  br i1 %325, label %329, label %23

326:                                              ; preds = %15, %315, %39, %53, %93, %142, %200, %221, %239, %247
  %327 = phi ptr [ @.str.15, %247 ], [ @.str.15, %239 ], [ @.str.15, %221 ], [ @.str.15, %200 ], [ @.str.15, %142 ], [ @.str.3, %93 ], [ @.str.15, %53 ], [ @.str.3, %39 ], [ @.str.3, %315 ], [ @.str.3, %15 ]
  %328 = tail call range(i32 -1, 1) i32 @slw_raise(ptr noundef %6, ptr noundef nonnull %327, ptr noundef nonnull @slw_text)
  br label %329

329:                                              ; preds = %323, %326, %10
  %330 = phi i32 [ 1, %10 ], [ %328, %326 ], [ 1, %323 ]
  ret i32 %330
}

define internal fastcc void @slw_begin(ptr noundef readonly captures(none) %0, i32 noundef %1) unnamed_addr minsize optsize nounwind "no-builtins" {
  store i32 0, ptr @slw_used, align 4
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 4
  %4 = load i32, ptr %3, align 4
  %5 = sext i32 %4 to i64
  %6 = getelementptr inbounds i8, ptr %0, i64 %5
  tail call fastcc void @slw_put(ptr noundef %6)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.8)
  %7 = icmp sgt i32 %1, -1
  br i1 %7, label %8, label %17

8:                                                ; preds = %2
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.9)
  %9 = zext nneg i32 %1 to i64
  tail call fastcc void @slw_put_int(i64 noundef %9)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.10)
  %10 = mul nuw nsw i32 %1, 10
  %11 = zext nneg i32 %10 to i64
  %12 = getelementptr inbounds nuw i32, ptr %0, i64 %11
  %13 = getelementptr inbounds nuw i8, ptr %12, i64 12
  %14 = load i32, ptr %13, align 4
  %15 = sext i32 %14 to i64
  %16 = getelementptr inbounds i8, ptr %0, i64 %15
  tail call fastcc void @slw_put(ptr noundef %16)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.11)
  br label %17

17:                                               ; preds = %8, %2
  ret void
}

define internal fastcc void @slw_put(ptr noundef readonly captures(none) %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = load i32, ptr @slw_used, align 4
  %3 = load i8, ptr %0, align 1
  %4 = icmp ne i8 %3, 0
  %5 = icmp ult i32 %2, 399
  %6 = select i1 %4, i1 %5, i1 false
  br i1 %6, label %7, label %22

7:                                                ; preds = %1
  %8 = zext nneg i32 %2 to i64
  br label %9

9:                                                ; preds = %7, %9
  %10 = phi i64 [ %8, %7 ], [ %14, %9 ]
  %11 = phi i8 [ %3, %7 ], [ %16, %9 ]
  %12 = phi ptr [ %0, %7 ], [ %15, %9 ]
  %13 = getelementptr inbounds nuw i8, ptr @slw_text, i64 %10
  store i8 %11, ptr %13, align 1
  %14 = add nuw nsw i64 %10, 1
  %15 = getelementptr inbounds nuw i8, ptr %12, i64 1
  %16 = load i8, ptr %15, align 1
  %17 = icmp ne i8 %16, 0
  %18 = icmp samesign ult i64 %10, 398
  %19 = and i1 %17, %18
  br i1 %19, label %9, label %20

20:                                               ; preds = %9
  %21 = trunc nuw nsw i64 %14 to i32
  store i32 %21, ptr @slw_used, align 4
  br label %22

22:                                               ; preds = %20, %1
  %23 = phi i32 [ %21, %20 ], [ %2, %1 ]
  %24 = zext i32 %23 to i64
  %25 = getelementptr inbounds nuw i8, ptr @slw_text, i64 %24
  store i8 0, ptr %25, align 1
  ret void
}

define internal fastcc void @slw_put_int(i64 noundef %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = alloca [2 x i8], align 4
  %3 = icmp slt i64 %0, 0
  %4 = tail call i64 @llvm.abs.i64(i64 %0, i1 false)
  store i16 48, ptr %2, align 4
  %5 = lshr i64 %4, 3
  %6 = icmp eq i64 %5, 0
  br i1 %6, label %17, label %7

7:                                                ; preds = %1, %12
  %8 = phi i32 [ %13, %12 ], [ 1, %1 ]
  %9 = phi i64 [ %10, %12 ], [ 1, %1 ]
  %10 = mul i64 %9, 10
  %11 = icmp ugt i64 %10, %4
  br i1 %11, label %17, label %12

12:                                               ; preds = %7
  %13 = add nuw nsw i32 %8, 1
  %14 = icmp samesign ugt i32 %8, 17
  %15 = icmp ugt i64 %10, %5
  %16 = or i1 %15, %14
  br i1 %16, label %17, label %7

17:                                               ; preds = %7, %12, %1
  %18 = phi i64 [ 1, %1 ], [ %10, %12 ], [ %9, %7 ]
  %19 = phi i32 [ 1, %1 ], [ %13, %12 ], [ %8, %7 ]
  br i1 %3, label %20, label %21

20:                                               ; preds = %17
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.12)
  br label %21

21:                                               ; preds = %20, %17
  %22 = load i32, ptr @slw_used, align 4
  br label %26

23:                                               ; preds = %67, %61
  %24 = phi i64 [ 1, %61 ], [ %70, %67 ]
  %25 = icmp sgt i32 %28, 1
  br i1 %25, label %26, label %73

26:                                               ; preds = %21, %23
  %27 = phi i32 [ %19, %21 ], [ %32, %23 ]
  %28 = phi i32 [ %19, %21 ], [ %65, %23 ]
  %29 = phi i64 [ %18, %21 ], [ %24, %23 ]
  %30 = phi i64 [ %4, %21 ], [ %44, %23 ]
  %31 = phi i32 [ %22, %21 ], [ %62, %23 ]
  %32 = add nsw i32 %27, -1
  %33 = icmp ult i64 %30, %29
  br i1 %33, label %42, label %34

34:                                               ; preds = %26, %34
  %35 = phi i64 [ %37, %34 ], [ %30, %26 ]
  %36 = phi i8 [ %38, %34 ], [ 48, %26 ]
  %37 = sub nuw i64 %35, %29
  %38 = add nuw nsw i8 %36, 1
  %39 = icmp uge i64 %37, %29
  %40 = icmp samesign ult i8 %36, 56
  %41 = select i1 %39, i1 %40, i1 false
  br i1 %41, label %34, label %42

42:                                               ; preds = %34, %26
  %43 = phi i8 [ 48, %26 ], [ %38, %34 ]
  %44 = phi i64 [ %30, %26 ], [ %37, %34 ]
  %45 = icmp ult i32 %31, 399
  br i1 %45, label %46, label %61

46:                                               ; preds = %42
  %47 = zext nneg i32 %31 to i64
  br label %48

48:                                               ; preds = %48, %46
  %49 = phi i64 [ %47, %46 ], [ %53, %48 ]
  %50 = phi i8 [ %43, %46 ], [ %55, %48 ]
  %51 = phi ptr [ %2, %46 ], [ %54, %48 ]
  %52 = getelementptr inbounds nuw i8, ptr @slw_text, i64 %49
  store i8 %50, ptr %52, align 1
  %53 = add nuw nsw i64 %49, 1
  %54 = getelementptr inbounds nuw i8, ptr %51, i64 1
  %55 = load i8, ptr %54, align 1
  %56 = icmp ne i8 %55, 0
  %57 = icmp samesign ult i64 %49, 398
  %58 = and i1 %57, %56
  br i1 %58, label %48, label %59

59:                                               ; preds = %48
  %60 = trunc nuw nsw i64 %53 to i32
  store i32 %60, ptr @slw_used, align 4
  br label %61

61:                                               ; preds = %42, %59
  %62 = phi i32 [ %60, %59 ], [ %31, %42 ]
  %63 = zext i32 %62 to i64
  %64 = getelementptr inbounds nuw i8, ptr @slw_text, i64 %63
  store i8 0, ptr %64, align 1
  %65 = add nsw i32 %28, -1
  %66 = icmp sgt i32 %28, 2
  br i1 %66, label %67, label %23

67:                                               ; preds = %61, %67
  %68 = phi i32 [ %71, %67 ], [ 1, %61 ]
  %69 = phi i64 [ %70, %67 ], [ 1, %61 ]
  %70 = mul i64 %69, 10
  %71 = add nuw nsw i32 %68, 1
  %72 = icmp eq i32 %71, %32
  br i1 %72, label %23, label %67

73:                                               ; preds = %23
  ret void
}

define internal fastcc void @slw_put_type(i32 noundef %0, i32 noundef %1, i32 noundef %2) unnamed_addr minsize optsize nounwind "no-builtins" {
  %4 = icmp ult i32 %0, 7
  %5 = zext nneg i32 %0 to i64
  %6 = getelementptr inbounds nuw [8 x i8], ptr @slw_put_type.names, i64 %5
  %7 = select i1 %4, ptr %6, ptr @.str.26
  tail call fastcc void @slw_put(ptr noundef nonnull %7)
  %8 = icmp eq i32 %0, 6
  br i1 %8, label %11, label %9

9:                                                ; preds = %3
  %10 = sext i32 %1 to i64
  tail call fastcc void @slw_put_int(i64 noundef %10)
  br label %11

11:                                               ; preds = %9, %3
  %12 = icmp eq i32 %2, 1
  br i1 %12, label %15, label %13

13:                                               ; preds = %11
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.27)
  %14 = sext i32 %2 to i64
  tail call fastcc void @slw_put_int(i64 noundef %14)
  br label %15

15:                                               ; preds = %13, %11
  ret void
}

define internal fastcc void @slw_put_expected(ptr noundef readonly captures(none) %0, i32 noundef %1, i64 noundef %2, i64 noundef %3) unnamed_addr minsize optsize nounwind "no-builtins" {
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.13)
  tail call fastcc void @slw_put(ptr noundef %0)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.28)
  %5 = sext i32 %1 to i64
  tail call fastcc void @slw_put_int(i64 noundef %5)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.29)
  tail call fastcc void @slw_put_int(i64 noundef %3)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.17)
  tail call fastcc void @slw_put_int(i64 noundef %2)
  ret void
}

define internal fastcc void @slw_put_device(i32 noundef %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = add i32 %0, -1
  %3 = icmp ult i32 %2, 16
  br i1 %3, label %4, label %11

4:                                                ; preds = %1
  %5 = zext nneg i32 %0 to i64
  %6 = shl nuw nsw i64 1, %5
  %7 = and i64 %6, 31337
  %8 = icmp eq i64 %7, 0
  br i1 %8, label %9, label %11

9:                                                ; preds = %4
  %10 = getelementptr inbounds nuw [8 x i8], ptr @slw_put_device.names, i64 %5
  tail call fastcc void @slw_put(ptr noundef nonnull %10)
  br label %13

11:                                               ; preds = %4, %1
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.30)
  %12 = sext i32 %0 to i64
  tail call fastcc void @slw_put_int(i64 noundef %12)
  br label %13

13:                                               ; preds = %11, %9
  ret void
}
