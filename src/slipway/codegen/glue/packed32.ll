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
@.str.21 = private unnamed_addr constant [19 x i8] c"is on device type \00", align 1
@.str.22 = private unnamed_addr constant [19 x i8] c"is not aligned to \00", align 1
@.str.23 = private unnamed_addr constant [7 x i8] c" bytes\00", align 1
@.str.24 = private unnamed_addr constant [24 x i8] c"has a null data pointer\00", align 1
@slw_put_type.names = internal constant [7 x [8 x i8]] [[8 x i8] c"int\00\00\00\00\00", [8 x i8] c"uint\00\00\00\00", [8 x i8] c"float\00\00\00", [8 x i8] c"handle\00\00", [8 x i8] c"bfloat\00\00", [8 x i8] c"complex\00", [8 x i8] c"bool\00\00\00\00"], align 1
@.str.25 = private unnamed_addr constant [5 x i8] c"type\00", align 1
@.str.26 = private unnamed_addr constant [2 x i8] c"x\00", align 1
@.str.27 = private unnamed_addr constant [2 x i8] c"[\00", align 1
@.str.28 = private unnamed_addr constant [5 x i8] c"] = \00", align 1

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
  br i1 %11, label %12, label %330

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
  br label %327

21:                                               ; preds = %12, %324
  %22 = phi i32 [ 0, %12 ], [ %325, %324 ]
  %23 = mul nuw nsw i32 %22, 40
  %24 = getelementptr inbounds nuw i8, ptr %13, i32 %23
  %25 = getelementptr inbounds nuw %struct.SlwAny, ptr %1, i32 %22
  %26 = load i32, ptr %25, align 8
  %27 = load i32, ptr %24, align 4
  switch i32 %27, label %254 [
    i32 0, label %28
    i32 1, label %247
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
  br label %327

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
  br label %327

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
  br label %327

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
  br label %327

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
  br label %327

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
  br i1 %215, label %216, label %227

216:                                              ; preds = %211
  %217 = getelementptr inbounds nuw i8, ptr %39, i32 4
  %218 = load i32, ptr %217, align 4
  %219 = icmp eq i32 %218, %214
  br i1 %219, label %227, label %220

220:                                              ; preds = %216
  %221 = getelementptr inbounds nuw i8, ptr %24, i32 24
  %222 = getelementptr inbounds nuw i8, ptr %39, i32 4
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.21)
  %223 = load i32, ptr %222, align 4
  %224 = sext i32 %223 to i64
  tail call fastcc void @slw_put_int(i64 noundef %224)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.17)
  %225 = load i32, ptr %221, align 4
  %226 = sext i32 %225 to i64
  tail call fastcc void @slw_put_int(i64 noundef %226)
  br label %327

227:                                              ; preds = %216, %211
  %228 = load ptr, ptr %39, align 8
  %229 = ptrtoint ptr %228 to i32
  %230 = getelementptr inbounds nuw i8, ptr %39, i32 32
  %231 = load i64, ptr %230, align 8
  %232 = trunc i64 %231 to i32
  %233 = add i32 %232, %229
  %234 = getelementptr inbounds nuw i8, ptr %24, i32 28
  %235 = load i32, ptr %234, align 4
  %236 = add i32 %235, -1
  %237 = and i32 %233, %236
  %238 = icmp eq i32 %237, 0
  br i1 %238, label %243, label %239

239:                                              ; preds = %227
  %240 = getelementptr inbounds nuw i8, ptr %24, i32 28
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.22)
  %241 = load i32, ptr %240, align 4
  %242 = sext i32 %241 to i64
  tail call fastcc void @slw_put_int(i64 noundef %242)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.23)
  br label %327

243:                                              ; preds = %227
  %244 = icmp ne i32 %233, 0
  %245 = select i1 %244, i1 true, i1 %212
  br i1 %245, label %322, label %246

246:                                              ; preds = %243
  tail call fastcc void @slw_begin(ptr noundef nonnull readonly %0, i32 noundef %22)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.24)
  br label %327

247:                                              ; preds = %21
  %248 = add i32 %26, -1
  %249 = icmp ult i32 %248, 2
  br i1 %249, label %250, label %316

250:                                              ; preds = %247
  %251 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %252 = load i64, ptr %251, align 8
  %253 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %252, ptr %253, align 8
  br label %324

254:                                              ; preds = %21
  %255 = icmp eq i32 %27, 2
  %256 = icmp eq i32 %26, 3
  %257 = select i1 %255, i1 %256, i1 false
  br i1 %257, label %258, label %262

258:                                              ; preds = %254
  %259 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %260 = load i64, ptr %259, align 8
  %261 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %260, ptr %261, align 8
  br label %324

262:                                              ; preds = %254
  %263 = add i32 %26, -1
  %264 = icmp ult i32 %263, 2
  %265 = select i1 %255, i1 %264, i1 false
  br i1 %265, label %266, label %291

266:                                              ; preds = %262
  %267 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %268 = load i64, ptr %267, align 8
  %269 = icmp eq i64 %268, 0
  br i1 %269, label %288, label %270

270:                                              ; preds = %266
  %271 = tail call i64 @llvm.abs.i64(i64 %268, i1 false)
  %272 = icmp sgt i64 %271, -1
  br i1 %272, label %273, label %284

273:                                              ; preds = %270, %273
  %274 = phi i64 [ %277, %273 ], [ 1086, %270 ]
  %275 = phi i64 [ %276, %273 ], [ %271, %270 ]
  %276 = shl nuw i64 %275, 1
  %277 = add i64 %274, -1
  %278 = icmp sgt i64 %276, -1
  br i1 %278, label %273, label %279

279:                                              ; preds = %273
  %280 = lshr i64 %275, 10
  %281 = and i64 %280, 4503599627370495
  %282 = shl i64 %277, 52
  %283 = or disjoint i64 %281, %282
  br label %284

284:                                              ; preds = %279, %270
  %285 = phi i64 [ 4890909195324358656, %270 ], [ %283, %279 ]
  %286 = and i64 %268, -9223372036854775808
  %287 = or i64 %285, %286
  br label %288

288:                                              ; preds = %266, %284
  %289 = phi i64 [ %287, %284 ], [ 0, %266 ]
  %290 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %289, ptr %290, align 8
  br label %324

291:                                              ; preds = %262
  %292 = icmp eq i32 %27, 3
  br i1 %292, label %293, label %316

293:                                              ; preds = %291
  switch i32 %26, label %316 [
    i32 0, label %299
    i32 4, label %294
    i32 70, label %302
    i32 7, label %302
  ]

294:                                              ; preds = %293
  %295 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %296 = load ptr, ptr %295, align 8
  %297 = ptrtoint ptr %296 to i32
  %298 = zext i32 %297 to i64
  br label %299

299:                                              ; preds = %293, %294
  %300 = phi i64 [ %298, %294 ], [ 0, %293 ]
  %301 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %300, ptr %301, align 8
  br label %324

302:                                              ; preds = %293, %293
  %303 = icmp eq i32 %26, 70
  %304 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %305 = load ptr, ptr %304, align 8
  %306 = select i1 %303, i32 24, i32 0
  %307 = getelementptr inbounds nuw i8, ptr %305, i32 %306
  %308 = load ptr, ptr %307, align 8
  %309 = ptrtoint ptr %308 to i32
  %310 = getelementptr inbounds nuw i8, ptr %307, i32 32
  %311 = load i64, ptr %310, align 8
  %312 = trunc i64 %311 to i32
  %313 = add i32 %312, %309
  %314 = zext i32 %313 to i64
  %315 = getelementptr inbounds nuw i64, ptr %3, i32 %22
  store i64 %314, ptr %315, align 8
  br label %324

316:                                              ; preds = %293, %291, %247
  tail call fastcc void @slw_begin(ptr noundef nonnull %0, i32 noundef %22)
  %317 = load i32, ptr %24, align 4
  %318 = icmp eq i32 %317, 1
  %319 = icmp eq i32 %317, 2
  %320 = select i1 %319, ptr @.str.6, ptr @.str.7
  %321 = select i1 %318, ptr @.str.5, ptr %320
  tail call fastcc void @slw_put(ptr noundef nonnull %321)
  br label %327

322:                                              ; preds = %243
  %323 = zext i32 %233 to i64
  store i64 %323, ptr %40, align 8
  br label %324

324:                                              ; preds = %299, %302, %288, %250, %258, %322
  %325 = add nuw nsw i32 %22, 1
  %326 = icmp eq i32 %325, %2
  br i1 %326, label %330, label %21

327:                                              ; preds = %14, %316, %37, %49, %88, %142, %201, %220, %239, %246
  %328 = phi ptr [ @.str.15, %246 ], [ @.str.15, %239 ], [ @.str.15, %220 ], [ @.str.15, %201 ], [ @.str.15, %142 ], [ @.str.3, %88 ], [ @.str.15, %49 ], [ @.str.3, %37 ], [ @.str.3, %316 ], [ @.str.3, %14 ]
  %329 = tail call range(i32 -1, 1) i32 @slw_raise(ptr noundef %6, ptr noundef nonnull %328, ptr noundef nonnull @slw_text)
  br label %330

330:                                              ; preds = %324, %327, %10
  %331 = phi i32 [ 1, %10 ], [ %329, %327 ], [ 1, %324 ]
  ret i32 %331
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
  %6 = select i1 %4, ptr %5, ptr @.str.25
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
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.26)
  %13 = sext i32 %2 to i64
  tail call fastcc void @slw_put_int(i64 noundef %13)
  br label %14

14:                                               ; preds = %12, %10
  ret void
}

define internal fastcc void @slw_put_expected(ptr noundef readonly captures(none) %0, i32 noundef %1, i64 noundef %2, i64 noundef %3) unnamed_addr minsize optsize nounwind "no-builtins" {
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.13)
  tail call fastcc void @slw_put(ptr noundef %0)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.27)
  %5 = sext i32 %1 to i64
  tail call fastcc void @slw_put_int(i64 noundef %5)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.28)
  tail call fastcc void @slw_put_int(i64 noundef %3)
  tail call fastcc void @slw_put(ptr noundef nonnull @.str.17)
  tail call fastcc void @slw_put_int(i64 noundef %2)
  ret void
}
