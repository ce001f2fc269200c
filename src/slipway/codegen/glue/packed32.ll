%struct.anon = type { i64, i32, i32, %union.anon, %struct.SlwBytes, %struct.SlwBytes, %struct.SlwBytes, ptr, ptr, ptr }
%union.anon = type { i64 }
%struct.SlwBytes = type { ptr, i32 }
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
  %4 = load ptr, ptr @__TVMFFIErrorSetRaisedFromCStr, align 4
  %5 = icmp eq ptr %4, null
  br i1 %5, label %7, label %6

6:                                                ; preds = %3
  tail call void %4(ptr noundef %1, ptr noundef %2)
  br label %29

7:                                                ; preds = %3
  %8 = load ptr, ptr @__tvm_ffi__library_ctx, align 4
  %9 = icmp eq ptr %8, null
  %10 = icmp eq ptr %0, null
  %11 = or i1 %10, %9
  br i1 %11, label %29, label %12

12:                                               ; preds = %7
  store i64 5368709120, ptr @slw_error, align 8
  store i32 67, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 8), align 8
  store ptr @slw_keep, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 16), align 8
  store ptr %1, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 24), align 8
  br label %13

13:                                               ; preds = %13, %12
  %14 = phi i32 [ 0, %12 ], [ %18, %13 ]
  store i32 %14, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 28), align 4
  %15 = getelementptr inbounds nuw i8, ptr %1, i32 %14
  %16 = load i8, ptr %15, align 1
  %17 = icmp eq i8 %16, 0
  %18 = add i32 %14, 1
  br i1 %17, label %19, label %13

19:                                               ; preds = %13
  store ptr %2, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 32), align 8
  br label %20

20:                                               ; preds = %20, %19
  %21 = phi i32 [ 0, %19 ], [ %25, %20 ]
  store i32 %21, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 36), align 4
  %22 = getelementptr inbounds nuw i8, ptr %2, i32 %21
  %23 = load i8, ptr %22, align 1
  %24 = icmp eq i8 %23, 0
  %25 = add i32 %21, 1
  br i1 %24, label %26, label %20

26:                                               ; preds = %20
  store ptr @.str, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 40), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 44), align 4
  store ptr @slw_no_backtrace, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 48), align 8
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 52), align 4
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @slw_error, i32 56), align 8
  store i32 67, ptr %0, align 8
  %27 = getelementptr inbounds nuw i8, ptr %0, i32 4
  store i32 0, ptr %27, align 4
  %28 = getelementptr inbounds nuw i8, ptr %0, i32 8
  store i64 0, ptr %28, align 8
  store ptr @slw_error, ptr %28, align 8
  br label %29

29:                                               ; preds = %7, %26, %6
  %30 = phi i32 [ -1, %6 ], [ 0, %26 ], [ -1, %7 ]
  ret i32 %30
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
  br i1 %9, label %10, label %14

10:                                               ; preds = %7
  %11 = icmp sgt i32 %2, 0
  br i1 %11, label %12, label %328

12:                                               ; preds = %10
  %13 = getelementptr inbounds nuw i8, ptr %0, i32 8
  br label %21

14:                                               ; preds = %7
  store i32 0, ptr @slw_used, align 4
  %15 = getelementptr inbounds nuw i8, ptr %0, i32 4
  %16 = load i32, ptr %15, align 4
  %17 = getelementptr inbounds i8, ptr %0, i32 %16
  tail call fastcc void @slw_put(ptr noundef nonnull readonly %17)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.8)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.1)
  %18 = sext i32 %2 to i64
  tail call fastcc void @slw_put_int(i64 noundef %18)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.2)
  %19 = load i32, ptr %0, align 4
  %20 = sext i32 %19 to i64
  tail call fastcc void @slw_put_int(i64 noundef %20)
  br label %325

21:                                               ; preds = %12, %322
  %22 = phi i32 [ 0, %12 ], [ %323, %322 ]
  %23 = mul nuw nsw i32 %22, 40
  %24 = getelementptr inbounds nuw i8, ptr %13, i32 %23
  %25 = getelementptr inbounds nuw %struct.SlwAny, ptr %1, i32 %22
  %26 = load i32, ptr %25, align 8
  %27 = load i32, ptr %24, align 4
  switch i32 %27, label %252 [
    i32 0, label %28
    i32 1, label %245
  ]

28:                                               ; preds = %21
  switch i32 %26, label %37 [
    i32 7, label %33
    i32 70, label %29
  ]

29:                                               ; preds = %28
  %30 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %31 = load ptr, ptr %30, align 8
  %32 = getelementptr inbounds nuw i8, ptr %31, i32 24
  br label %38

33:                                               ; preds = %28
  %34 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %35 = load ptr, ptr %34, align 8
  %36 = icmp eq ptr %35, null
  br i1 %36, label %37, label %38

37:                                               ; preds = %28, %33
  tail call fastcc void @slw_begin(ptr noundef nonnull %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.4)
  br label %325

38:                                               ; preds = %29, %33
  %39 = phi ptr [ %32, %29 ], [ %35, %33 ]
  %40 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  %41 = getelementptr inbounds nuw i8, ptr %24, i32 32
  %42 = load i32, ptr %41, align 4
  %43 = getelementptr inbounds i32, ptr %0, i32 %42
  %44 = getelementptr inbounds nuw i8, ptr %39, i32 12
  %45 = load i32, ptr %44, align 4
  %46 = getelementptr inbounds nuw i8, ptr %24, i32 20
  %47 = load i32, ptr %46, align 4
  %48 = icmp eq i32 %45, %47
  br i1 %48, label %55, label %49

49:                                               ; preds = %38
  %50 = getelementptr inbounds nuw i8, ptr %39, i32 12
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.13)
  %51 = load i32, ptr %50, align 4
  %52 = sext i32 %51 to i64
  tail call fastcc void @slw_put_int(i64 noundef %52)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.14)
  %53 = load i32, ptr %46, align 4
  %54 = sext i32 %53 to i64
  tail call fastcc void @slw_put_int(i64 noundef %54)
  br label %325

55:                                               ; preds = %38
  %56 = getelementptr inbounds nuw i8, ptr %39, i32 16
  %57 = load i8, ptr %56, align 8
  %58 = zext i8 %57 to i32
  %59 = getelementptr inbounds nuw i8, ptr %24, i32 8
  %60 = load i32, ptr %59, align 4
  %61 = icmp eq i32 %60, %58
  br i1 %61, label %66, label %62

62:                                               ; preds = %55
  %63 = icmp eq i32 %60, 6
  %64 = icmp eq i8 %57, 1
  %65 = and i1 %64, %63
  br i1 %65, label %66, label %88

66:                                               ; preds = %62, %55
  %67 = getelementptr inbounds nuw i8, ptr %39, i32 17
  %68 = load i8, ptr %67, align 1
  %69 = zext i8 %68 to i32
  %70 = getelementptr inbounds nuw i8, ptr %24, i32 12
  %71 = load i32, ptr %70, align 4
  %72 = icmp eq i32 %71, %69
  br i1 %72, label %77, label %73

73:                                               ; preds = %66
  %74 = icmp eq i32 %60, 6
  %75 = icmp eq i8 %68, 1
  %76 = and i1 %74, %75
  br i1 %76, label %77, label %88

77:                                               ; preds = %73, %66
  %78 = getelementptr inbounds nuw i8, ptr %39, i32 18
  %79 = load i16, ptr %78, align 2
  %80 = zext i16 %79 to i32
  %81 = getelementptr inbounds nuw i8, ptr %24, i32 16
  %82 = load i32, ptr %81, align 4
  %83 = icmp eq i32 %82, %80
  br i1 %83, label %84, label %88

84:                                               ; preds = %77
  %85 = icmp sgt i32 %45, 0
  br i1 %85, label %86, label %211

86:                                               ; preds = %84
  %87 = getelementptr inbounds nuw i8, ptr %39, i32 20
  br label %110

88:                                               ; preds = %77, %73, %62
  %89 = getelementptr inbounds nuw i8, ptr %39, i32 16
  %90 = getelementptr inbounds nuw i8, ptr %24, i32 8
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.16)
  %91 = load i8, ptr %89, align 8
  %92 = zext i8 %91 to i32
  %93 = getelementptr inbounds nuw i8, ptr %39, i32 17
  %94 = load i8, ptr %93, align 1
  %95 = zext i8 %94 to i32
  %96 = getelementptr inbounds nuw i8, ptr %39, i32 18
  %97 = load i16, ptr %96, align 2
  %98 = zext i16 %97 to i32
  tail call fastcc void @slw_put_type(i32 noundef %92, i32 noundef %95, i32 noundef %98)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.17)
  %99 = load i32, ptr %90, align 4
  %100 = getelementptr inbounds nuw i8, ptr %24, i32 12
  %101 = load i32, ptr %100, align 4
  %102 = getelementptr inbounds nuw i8, ptr %24, i32 16
  %103 = load i32, ptr %102, align 4
  tail call fastcc void @slw_put_type(i32 noundef %99, i32 noundef %101, i32 noundef %103)
  br label %325

104:                                              ; preds = %146
  %105 = icmp ne i32 %150, 0
  %106 = icmp sgt i32 %147, 0
  br i1 %106, label %107, label %211

107:                                              ; preds = %104
  %108 = getelementptr inbounds nuw i8, ptr %39, i32 24
  %109 = getelementptr inbounds nuw i8, ptr %24, i32 36
  br label %153

110:                                              ; preds = %146, %86
  %111 = phi i32 [ %45, %86 ], [ %147, %146 ]
  %112 = phi i32 [ 0, %86 ], [ %151, %146 ]
  %113 = phi i32 [ 0, %86 ], [ %150, %146 ]
  %114 = load ptr, ptr %87, align 4
  %115 = getelementptr inbounds nuw i64, ptr %114, i32 %112
  %116 = load i64, ptr %115, align 8
  %117 = shl nsw i32 %112, 3
  %118 = getelementptr inbounds nuw i8, ptr %43, i32 %117
  %119 = getelementptr inbounds nuw i8, ptr %118, i32 4
  %120 = load i32, ptr %119, align 4
  %121 = zext i32 %120 to i64
  %122 = shl nuw i64 %121, 32
  %123 = load i32, ptr %118, align 4
  %124 = icmp sgt i64 %122, -1
  br i1 %124, label %125, label %128

125:                                              ; preds = %110
  %126 = zext i32 %123 to i64
  %127 = or disjoint i64 %122, %126
  br label %139

128:                                              ; preds = %110
  %129 = xor i32 %123, -1
  %130 = getelementptr inbounds i8, ptr %5, i32 %129
  %131 = load i8, ptr %130, align 1
  %132 = icmp eq i8 %131, 0
  br i1 %132, label %133, label %136

133:                                              ; preds = %128
  store i8 1, ptr %130, align 1
  %134 = getelementptr inbounds i64, ptr %4, i32 %129
  store i64 %116, ptr %134, align 8
  %135 = load i32, ptr %46, align 4
  br label %146

136:                                              ; preds = %128
  %137 = getelementptr inbounds i64, ptr %4, i32 %129
  %138 = load i64, ptr %137, align 8
  br label %139

139:                                              ; preds = %136, %125
  %140 = phi i64 [ %127, %125 ], [ %138, %136 ]
  %141 = icmp eq i64 %140, %116
  br i1 %141, label %146, label %142

142:                                              ; preds = %139
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  %143 = load ptr, ptr %87, align 4
  %144 = getelementptr inbounds nuw i64, ptr %143, i32 %112
  %145 = load i64, ptr %144, align 8
  tail call fastcc void @slw_put_expected(ptr noundef nonnull @.str.18, i32 noundef %112, i64 noundef %140, i64 noundef %145)
  br label %325

146:                                              ; preds = %139, %133
  %147 = phi i32 [ %135, %133 ], [ %111, %139 ]
  %148 = icmp eq i64 %116, 0
  %149 = zext i1 %148 to i32
  %150 = or i32 %113, %149
  %151 = add nuw nsw i32 %112, 1
  %152 = icmp slt i32 %151, %147
  br i1 %152, label %110, label %104

153:                                              ; preds = %205, %107
  %154 = phi i32 [ %147, %107 ], [ %156, %205 ]
  %155 = phi i64 [ 1, %107 ], [ %209, %205 ]
  %156 = add nsw i32 %154, -1
  %157 = load ptr, ptr %108, align 8
  %158 = icmp eq ptr %157, null
  br i1 %158, label %162, label %159

159:                                              ; preds = %153
  %160 = getelementptr inbounds nuw i64, ptr %157, i32 %156
  %161 = load i64, ptr %160, align 8
  br label %162

162:                                              ; preds = %159, %153
  %163 = phi i64 [ %161, %159 ], [ %155, %153 ]
  %164 = load i32, ptr %109, align 4
  %165 = icmp eq i32 %164, 0
  br i1 %165, label %192, label %166

166:                                              ; preds = %162
  %167 = load i32, ptr %46, align 4
  %168 = add nsw i32 %167, %156
  %169 = shl nsw i32 %168, 3
  %170 = getelementptr inbounds i8, ptr %43, i32 %169
  %171 = getelementptr inbounds nuw i8, ptr %170, i32 4
  %172 = load i32, ptr %171, align 4
  %173 = zext i32 %172 to i64
  %174 = shl nuw i64 %173, 32
  %175 = load i32, ptr %170, align 4
  %176 = icmp sgt i64 %174, -1
  br i1 %176, label %177, label %181

177:                                              ; preds = %166
  %178 = zext i32 %175 to i64
  %179 = or disjoint i64 %174, %178
  %180 = icmp eq i64 %179, %163
  br i1 %180, label %205, label %194

181:                                              ; preds = %166
  %182 = xor i32 %175, -1
  %183 = getelementptr inbounds i8, ptr %5, i32 %182
  %184 = load i8, ptr %183, align 1
  %185 = icmp eq i8 %184, 0
  br i1 %185, label %186, label %188

186:                                              ; preds = %181
  store i8 1, ptr %183, align 1
  %187 = getelementptr inbounds i64, ptr %4, i32 %182
  store i64 %163, ptr %187, align 8
  br label %205

188:                                              ; preds = %181
  %189 = getelementptr inbounds i64, ptr %4, i32 %182
  %190 = load i64, ptr %189, align 8
  %191 = icmp eq i64 %190, %163
  br i1 %191, label %205, label %194

192:                                              ; preds = %162
  %193 = icmp eq i64 %163, %155
  br i1 %193, label %205, label %194

194:                                              ; preds = %192, %188, %177
  %195 = phi i64 [ %190, %188 ], [ %155, %192 ], [ %179, %177 ]
  %196 = load ptr, ptr %87, align 4
  %197 = getelementptr inbounds nuw i64, ptr %196, i32 %156
  %198 = load i64, ptr %197, align 8
  %199 = icmp eq i64 %198, 1
  %200 = select i1 %199, i1 true, i1 %105
  br i1 %200, label %205, label %201

201:                                              ; preds = %194
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put_expected(ptr noundef nonnull @.str.19, i32 noundef %156, i64 noundef %195, i64 noundef %163)
  %202 = load i32, ptr %109, align 4
  %203 = icmp eq i32 %202, 0
  %204 = select i1 %203, ptr @.str.20, ptr @.str
  tail call fastcc void @slw_put(ptr noundef nonnull %204)
  br label %325

205:                                              ; preds = %194, %192, %188, %186, %177
  %206 = load ptr, ptr %87, align 4
  %207 = getelementptr inbounds nuw i64, ptr %206, i32 %156
  %208 = load i64, ptr %207, align 8
  %209 = mul nsw i64 %208, %155
  %210 = icmp samesign ugt i32 %154, 1
  br i1 %210, label %153, label %211

211:                                              ; preds = %205, %104, %84
  %212 = phi i1 [ false, %84 ], [ %105, %104 ], [ %105, %205 ]
  %213 = getelementptr inbounds nuw i8, ptr %24, i32 24
  %214 = load i32, ptr %213, align 4
  %215 = icmp sgt i32 %214, -1
  br i1 %215, label %216, label %225

216:                                              ; preds = %211
  %217 = getelementptr inbounds nuw i8, ptr %39, i32 4
  %218 = load i32, ptr %217, align 4
  %219 = icmp eq i32 %218, %214
  br i1 %219, label %225, label %220

220:                                              ; preds = %216
  %221 = getelementptr inbounds nuw i8, ptr %24, i32 24
  %222 = getelementptr inbounds nuw i8, ptr %39, i32 4
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.21)
  %223 = load i32, ptr %222, align 4
  tail call fastcc void @slw_put_device(i32 noundef %223)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.17)
  %224 = load i32, ptr %221, align 4
  tail call fastcc void @slw_put_device(i32 noundef %224)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.22)
  br label %325

225:                                              ; preds = %216, %211
  %226 = load ptr, ptr %39, align 8
  %227 = ptrtoint ptr %226 to i32
  %228 = getelementptr inbounds nuw i8, ptr %39, i32 32
  %229 = load i64, ptr %228, align 8
  %230 = trunc i64 %229 to i32
  %231 = add i32 %230, %227
  %232 = getelementptr inbounds nuw i8, ptr %24, i32 28
  %233 = load i32, ptr %232, align 4
  %234 = add i32 %233, -1
  %235 = and i32 %231, %234
  %236 = icmp eq i32 %235, 0
  br i1 %236, label %241, label %237

237:                                              ; preds = %225
  %238 = getelementptr inbounds nuw i8, ptr %24, i32 28
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.23)
  %239 = load i32, ptr %238, align 4
  %240 = sext i32 %239 to i64
  tail call fastcc void @slw_put_int(i64 noundef %240)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.24)
  br label %325

241:                                              ; preds = %225
  %242 = icmp ne i32 %231, 0
  %243 = select i1 %242, i1 true, i1 %212
  br i1 %243, label %320, label %244

244:                                              ; preds = %241
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.25)
  br label %325

245:                                              ; preds = %21
  %246 = add i32 %26, -1
  %247 = icmp ult i32 %246, 2
  br i1 %247, label %248, label %314

248:                                              ; preds = %245
  %249 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %250 = load i64, ptr %249, align 8
  %251 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %250, ptr %251, align 8
  br label %322

252:                                              ; preds = %21
  %253 = icmp eq i32 %27, 2
  %254 = icmp eq i32 %26, 3
  %255 = select i1 %253, i1 %254, i1 false
  br i1 %255, label %256, label %260

256:                                              ; preds = %252
  %257 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %258 = load i64, ptr %257, align 8
  %259 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %258, ptr %259, align 8
  br label %322

260:                                              ; preds = %252
  %261 = add i32 %26, -1
  %262 = icmp ult i32 %261, 2
  %263 = select i1 %253, i1 %262, i1 false
  br i1 %263, label %264, label %289

264:                                              ; preds = %260
  %265 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %266 = load i64, ptr %265, align 8
  %267 = icmp eq i64 %266, 0
  br i1 %267, label %286, label %268

268:                                              ; preds = %264
  %269 = tail call i64 @llvm.abs.i64(i64 %266, i1 false)
  %270 = icmp sgt i64 %269, -1
  br i1 %270, label %271, label %282

271:                                              ; preds = %268, %271
  %272 = phi i64 [ %275, %271 ], [ 1086, %268 ]
  %273 = phi i64 [ %274, %271 ], [ %269, %268 ]
  %274 = shl nuw i64 %273, 1
  %275 = add i64 %272, -1
  %276 = icmp sgt i64 %274, -1
  br i1 %276, label %271, label %277

277:                                              ; preds = %271
  %278 = lshr i64 %273, 10
  %279 = and i64 %278, 4503599627370495
  %280 = shl i64 %275, 52
  %281 = or disjoint i64 %279, %280
  br label %282

282:                                              ; preds = %277, %268
  %283 = phi i64 [ 4890909195324358656, %268 ], [ %281, %277 ]
  %284 = and i64 %266, -9223372036854775808
  %285 = or i64 %283, %284
  br label %286

286:                                              ; preds = %264, %282
  %287 = phi i64 [ %285, %282 ], [ 0, %264 ]
  %288 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %287, ptr %288, align 8
  br label %322

289:                                              ; preds = %260
  %290 = icmp eq i32 %27, 3
  br i1 %290, label %291, label %314

291:                                              ; preds = %289
  switch i32 %26, label %314 [
    i32 0, label %297
    i32 4, label %292
    i32 70, label %300
    i32 7, label %300
  ]

292:                                              ; preds = %291
  %293 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %294 = load ptr, ptr %293, align 8
  %295 = ptrtoint ptr %294 to i32
  %296 = zext i32 %295 to i64
  br label %297

297:                                              ; preds = %291, %292
  %298 = phi i64 [ %296, %292 ], [ 0, %291 ]
  %299 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %298, ptr %299, align 8
  br label %322

300:                                              ; preds = %291, %291
  %301 = icmp eq i32 %26, 70
  %302 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %303 = load ptr, ptr %302, align 8
  %304 = select i1 %301, i32 24, i32 0
  %305 = getelementptr inbounds nuw i8, ptr %303, i32 %304
  %306 = load ptr, ptr %305, align 8
  %307 = ptrtoint ptr %306 to i32
  %308 = getelementptr inbounds nuw i8, ptr %305, i32 32
  %309 = load i64, ptr %308, align 8
  %310 = trunc i64 %309 to i32
  %311 = add i32 %310, %307
  %312 = zext i32 %311 to i64
  %313 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %312, ptr %313, align 8
  br label %322

314:                                              ; preds = %291, %289, %245
  tail call fastcc void @slw_begin(ptr noundef nonnull %0, i32 noundef %22)
  %315 = load i32, ptr %24, align 4
  %316 = icmp eq i32 %315, 1
  %317 = icmp eq i32 %315, 2
  %318 = select i1 %317, ptr @.str.6, ptr @.str.7
  %319 = select i1 %316, ptr @.str.5, ptr %318
  tail call fastcc void @slw_put(ptr noundef nonnull %319)
  br label %325

320:                                              ; preds = %241
  %321 = zext i32 %231 to i64
  store i64 %321, ptr %40, align 8
  br label %322

322:                                              ; preds = %297, %300, %286, %248, %256, %320
  %323 = add nuw nsw i32 %22, 1
  %324 = icmp eq i32 %323, %2
  br i1 %324, label %328, label %21

325:                                              ; preds = %14, %314, %37, %49, %88, %142, %201, %220, %237, %244
  %326 = phi ptr [ @.str.15, %244 ], [ @.str.15, %237 ], [ @.str.15, %220 ], [ @.str.15, %201 ], [ @.str.15, %142 ], [ @.str.3, %88 ], [ @.str.15, %49 ], [ @.str.3, %37 ], [ @.str.3, %314 ], [ @.str.3, %14 ]
  %327 = tail call range(i32 -1, 1) i32 @slw_raise(ptr noundef %6, ptr noundef nonnull %326, ptr noundef nonnull @slw_text)
  br label %328

328:                                              ; preds = %322, %325, %10
  %329 = phi i32 [ 1, %10 ], [ %327, %325 ], [ 1, %322 ]
  ret i32 %329
}

define internal fastcc void @slw_begin(ptr noundef readonly captures(none) %0, i32 noundef %1) unnamed_addr minsize optsize nounwind "no-builtins" {
  store i32 0, ptr @slw_used, align 4
  %3 = getelementptr inbounds nuw i8, ptr %0, i32 4
  %4 = load i32, ptr %3, align 4
  %5 = getelementptr inbounds i8, ptr %0, i32 %4
  tail call fastcc void @slw_put(ptr noundef %5)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.8)
  %6 = icmp sgt i32 %1, -1
  br i1 %6, label %7, label %14

7:                                                ; preds = %2
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.9)
  %8 = zext nneg i32 %1 to i64
  tail call fastcc void @slw_put_int(i64 noundef %8)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.10)
  %9 = mul nuw nsw i32 %1, 40
  %10 = getelementptr inbounds nuw i8, ptr %0, i32 %9
  %11 = getelementptr inbounds nuw i8, ptr %10, i32 12
  %12 = load i32, ptr %11, align 4
  %13 = getelementptr inbounds i8, ptr %0, i32 %12
  tail call fastcc void @slw_put(ptr noundef %13)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.11)
  br label %14

14:                                               ; preds = %7, %2
  ret void
}

define internal fastcc void @slw_put(ptr noundef readonly captures(none) %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = load i32, ptr @slw_used, align 4
  %3 = load i8, ptr %0, align 1
  %4 = icmp ne i8 %3, 0
  %5 = icmp ult i32 %2, 399
  %6 = select i1 %4, i1 %5, i1 false
  br i1 %6, label %7, label %19

7:                                                ; preds = %1, %7
  %8 = phi i8 [ %14, %7 ], [ %3, %1 ]
  %9 = phi ptr [ %13, %7 ], [ %0, %1 ]
  %10 = phi i32 [ %12, %7 ], [ %2, %1 ]
  %11 = getelementptr inbounds nuw i8, ptr @slw_text, i32 %10
  store i8 %8, ptr %11, align 1
  %12 = add nuw nsw i32 %10, 1
  %13 = getelementptr inbounds nuw i8, ptr %9, i32 1
  %14 = load i8, ptr %13, align 1
  %15 = icmp ne i8 %14, 0
  %16 = icmp samesign ult i32 %10, 398
  %17 = and i1 %15, %16
  br i1 %17, label %7, label %18

18:                                               ; preds = %7
  store i32 %12, ptr @slw_used, align 4
  br label %19

19:                                               ; preds = %18, %1
  %20 = phi i32 [ %12, %18 ], [ %2, %1 ]
  %21 = getelementptr inbounds nuw i8, ptr @slw_text, i32 %20
  store i8 0, ptr %21, align 1
  ret void
}

define internal fastcc void @slw_put_int(i64 noundef %0) unnamed_addr minsize optsize nounwind "no-builtins" {
  %2 = alloca [2 x i8], align 2
  %3 = icmp slt i64 %0, 0
  %4 = tail call i64 @llvm.abs.i64(i64 %0, i1 false)
  store i16 48, ptr %2, align 2
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

23:                                               ; preds = %63, %58
  %24 = phi i64 [ 1, %58 ], [ %66, %63 ]
  %25 = icmp sgt i32 %28, 1
  br i1 %25, label %26, label %69

26:                                               ; preds = %21, %23
  %27 = phi i32 [ %19, %21 ], [ %32, %23 ]
  %28 = phi i32 [ %19, %21 ], [ %61, %23 ]
  %29 = phi i64 [ %18, %21 ], [ %24, %23 ]
  %30 = phi i64 [ %4, %21 ], [ %44, %23 ]
  %31 = phi i32 [ %22, %21 ], [ %59, %23 ]
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
  br i1 %45, label %46, label %58

46:                                               ; preds = %42, %46
  %47 = phi i8 [ %53, %46 ], [ %43, %42 ]
  %48 = phi ptr [ %52, %46 ], [ %2, %42 ]
  %49 = phi i32 [ %51, %46 ], [ %31, %42 ]
  %50 = getelementptr inbounds nuw i8, ptr @slw_text, i32 %49
  store i8 %47, ptr %50, align 1
  %51 = add nuw nsw i32 %49, 1
  %52 = getelementptr inbounds nuw i8, ptr %48, i32 1
  %53 = load i8, ptr %52, align 1
  %54 = icmp ne i8 %53, 0
  %55 = icmp samesign ult i32 %49, 398
  %56 = and i1 %55, %54
  br i1 %56, label %46, label %57

57:                                               ; preds = %46
  store i32 %51, ptr @slw_used, align 4
  br label %58

58:                                               ; preds = %42, %57
  %59 = phi i32 [ %51, %57 ], [ %31, %42 ]
  %60 = getelementptr inbounds nuw i8, ptr @slw_text, i32 %59
  store i8 0, ptr %60, align 1
  %61 = add nsw i32 %28, -1
  %62 = icmp sgt i32 %28, 2
  br i1 %62, label %63, label %23

63:                                               ; preds = %58, %63
  %64 = phi i32 [ %67, %63 ], [ 1, %58 ]
  %65 = phi i64 [ %66, %63 ], [ 1, %58 ]
  %66 = mul i64 %65, 10
  %67 = add nuw nsw i32 %64, 1
  %68 = icmp eq i32 %67, %32
  br i1 %68, label %23, label %63

69:                                               ; preds = %23
  ret void
}

define internal fastcc void @slw_put_type(i32 noundef %0, i32 noundef %1, i32 noundef %2) unnamed_addr minsize optsize nounwind "no-builtins" {
  %4 = icmp ult i32 %0, 7
  %5 = getelementptr inbounds [8 x i8], ptr @slw_put_type.names, i32 %0
  %6 = select i1 %4, ptr %5, ptr @.str.26
  tail call fastcc void @slw_put(ptr noundef nonnull %6)
  %7 = icmp eq i32 %0, 6
  br i1 %7, label %10, label %8

8:                                                ; preds = %3
  %9 = sext i32 %1 to i64
  tail call fastcc void @slw_put_int(i64 noundef %9)
  br label %10

10:                                               ; preds = %8, %3
  %11 = icmp eq i32 %2, 1
  br i1 %11, label %14, label %12

12:                                               ; preds = %10
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.27)
  %13 = sext i32 %2 to i64
  tail call fastcc void @slw_put_int(i64 noundef %13)
  br label %14

14:                                               ; preds = %12, %10
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
  br i1 %3, label %4, label %10

4:                                                ; preds = %1
  %5 = shl nuw nsw i32 1, %0
  %6 = and i32 %5, 31337
  %7 = icmp eq i32 %6, 0
  br i1 %7, label %8, label %10

8:                                                ; preds = %4
  %9 = getelementptr inbounds nuw [8 x i8], ptr @slw_put_device.names, i32 %0
  tail call fastcc void @slw_put(ptr noundef nonnull %9)
  br label %12

10:                                               ; preds = %4, %1
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.30)
  %11 = sext i32 %0 to i64
  tail call fastcc void @slw_put_int(i64 noundef %11)
  br label %12

12:                                               ; preds = %10, %8
  ret void
}
