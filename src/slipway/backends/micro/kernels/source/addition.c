/* One step from one scale to another, for kernels that go from element to element. */
struct slw_scaling {
  int32_t multiplier, shift;
};

/* sum * multiplier * 2^(shift - 31) with both roundings; shift is at most 0. */
static inline int32_t slw_scaled(int32_t sum, struct slw_scaling scaling) {
  int32_t value = (int32_t)(((int64_t)sum * scaling.multiplier + 1073741824) >> 31);
  if (scaling.shift != 0) {
    value += (value >> 31) + (int32_t)(1u << ~scaling.shift);
    value >>= -scaling.shift;
  }
  return value;
}

/* The sum of two quantised tensors by vectors (MVE), as TFLite's reference kernels compute it: both are shifted left by
 * `left` bits and scaled to a common scale, their sum is scaled to the output's.  No shift but that
 * one is to the left, which whoever chose this kernel has checked.
 */
struct slw_addition {
  struct slw_scaling a, b, out;
  int32_t zero_a, zero_b, zero, low, high, left;
  uint32_t size;
};

#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)
/* A shift by 0 rounds nothing: its bits are all zero, and those of the others begin with a one. */
#define SLW_SCALED(v, multiplier, shift, shifts)  \
  "vqrdmulh.s32 " v ", " v ", " multiplier "\n"   \
  "vand q2, " v ", " shifts "\n"                  \
  "vshr.s32 q2, q2, #31\n"                        \
  "vadd.i32 " v ", " v ", q2\n"                   \
  "vrshl.s32 " v ", " shift "\n"

/* The fields of the layer are read by their offsets. */
static SLW_SHARED void slw_add_int8(const struct slw_addition *layer, const int8_t *a,
                                    const int8_t *b, int8_t *out) {
  register const int8_t *r0 __asm__("r0") = a;
  register const int8_t *r1 __asm__("r1") = b;
  register int8_t *r2 __asm__("r2") = out;
  register const void *r3 __asm__("r3") = layer;
  __asm__ volatile(
      "ldrd r4, r5, [r3]\n"
      "ldrd r6, r8, [r3, #8]\n"
      "ldrd r9, r10, [r3, #16]\n"
      "ldrd r11, r12, [r3, #32]\n"
      "ldr lr, [r3, #40]\n"
      "vdup.32 q3, r5\n"
      "vdup.32 q4, r8\n"
      "vdup.32 q5, r11\n"
      "vdup.32 q6, r12\n"
      "vdup.32 q7, lr\n"
      "ldrd r11, r12, [r3, #24]\n"
      "ldr lr, [r3, #48]\n"
      "ldr r3, [r3, #44]\n"
      "rsb r11, r11, #0\n"
      "rsb r12, r12, #0\n"
      "wlstp.32 lr, lr, 2f\n"
      "1: vldrb.s32 q0, [r0], #4\n"
      "vldrb.s32 q1, [r1], #4\n"
      "vadd.i32 q0, q0, r11\n"
      "vadd.i32 q1, q1, r12\n"
      "vshl.s32 q0, r3\n"
      "vshl.s32 q1, r3\n"
      SLW_SCALED("q0", "r4", "r5", "q3")
      SLW_SCALED("q1", "r6", "r8", "q4")
      "vadd.i32 q0, q0, q1\n"
      "vqrdmulh.s32 q0, q0, r9\n"
      "vshr.s32 q2, q0, #31\n"
      "vadd.i32 q0, q0, q2\n"
      "vrshl.s32 q0, r10\n"
      "vadd.i32 q0, q0, q5\n"
      "vmax.s32 q0, q0, q6\n"
      "vmin.s32 q0, q0, q7\n"
      "vstrb.32 q0, [r2], #4\n"
      "letp lr, 1b\n"
      "2:\n"
      : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)
      :
      : "cc", "memory", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "q0", "q1", "q2",
        "q3", "q4", "q5", "q6", "q7");
}
#else
static SLW_SHARED void slw_add_int8(const struct slw_addition *layer, const int8_t *a,
                                    const int8_t *b, int8_t *out) {
  const struct slw_addition add = *layer; /* which stores to the output cannot change */
  for (uint32_t i = 0; i < add.size; ++i) {
    const int32_t x = slw_scaled((a[i] - add.zero_a) * (1 << add.left), add.a);
    const int32_t y = slw_scaled((b[i] - add.zero_b) * (1 << add.left), add.b);
    int32_t sum = slw_scaled(x + y, add.out) + add.zero;
    sum = sum < add.low ? add.low : sum;
    out[i] = (int8_t)(sum > add.high ? add.high : sum);
  }
}
#endif

/* The product of two quantised tensors, as TFLite's reference kernels compute it; the second may be
 * one value a channel (`rows` of `channels` elements read the same ones), as the gates of
 * squeeze-excite are.  The shift of the scale is to the right, which whoever chose this kernel has
 * checked.
 */
struct slw_product {
  struct slw_scaling out;
  int32_t zero_a, zero_b, zero, low, high;
  uint32_t rows, channels;
};

#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)
/* The fields of the layer are read by their offsets. */
static SLW_SHARED void slw_multiply_int8(const struct slw_product *layer, const int8_t *a,
                                         const int8_t *b, int8_t *out) {
  register const int8_t *r0 __asm__("r0") = a;
  register const int8_t *r1 __asm__("r1") = b;
  register int8_t *r2 __asm__("r2") = out;
  register const void *r3 __asm__("r3") = layer;
  __asm__ volatile(
      "ldrd r4, r5, [r3, #16]\n"
      "ldr r6, [r3, #24]\n"
      "vdup.32 q5, r4\n"
      "vdup.32 q6, r5\n"
      "vdup.32 q7, r6\n"
      "ldrd r4, r5, [r3]\n"
      "ldrd r6, r8, [r3, #8]\n"
      "ldrd r9, r10, [r3, #28]\n"
      "rsb r6, r6, #0\n"
      "rsb r8, r8, #0\n"
      "rsb r11, r10, #0\n"
      "and r11, r11, #3\n" /* what the last vector of a row goes beyond it */
      "mov r12, r1\n"
      "1: mov r1, r12\n"
      "wlstp.32 lr, r10, 3f\n"
      "2: vldrb.s32 q0, [r0], #4\n"
      "vldrb.s32 q1, [r1], #4\n"
      "vadd.i32 q0, q0, r6\n"
      "vadd.i32 q1, q1, r8\n"
      "vmul.i32 q0, q0, q1\n"
      "vqrdmulh.s32 q0, q0, r4\n"
      "vshr.s32 q2, q0, #31\n"
      "vadd.i32 q0, q0, q2\n"
      "vrshl.s32 q0, r5\n"
      "vadd.i32 q0, q0, q5\n"
      "vmax.s32 q0, q0, q6\n"
      "vmin.s32 q0, q0, q7\n"
      "vstrb.32 q0, [r2], #4\n"
      "letp lr, 2b\n"
      "3: sub r0, r0, r11\n"
      "sub r2, r2, r11\n"
      "subs r9, r9, #1\n"
      "bne 1b\n"
      : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)
      :
      : "cc", "memory", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "q0", "q1", "q2",
        "q5", "q6", "q7");
}
#else
static SLW_SHARED void slw_multiply_int8(const struct slw_product *layer, const int8_t *a,
                                         const int8_t *b, int8_t *out) {
  const struct slw_product mul = *layer; /* which stores to the output cannot change */
  for (uint32_t row = 0; row < mul.rows; ++row) {
    for (uint32_t i = 0; i < mul.channels; ++i) {
      int32_t value = slw_scaled((*a++ - mul.zero_a) * (b[i] - mul.zero_b), mul.out) + mul.zero;
      value = value < mul.low ? mul.low : value;
      *out++ = (int8_t)(value > mul.high ? mul.high : value);
    }
  }
}
#endif
