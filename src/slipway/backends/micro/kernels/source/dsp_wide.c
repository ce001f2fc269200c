/* Layers whose weights lie in memory as 16 bits, in the order that dsp_words.c widens to: twice the
 * flash, and no instructions to widen them.  For the rest see dsp.c.
 */
#if defined(__ARM_FEATURE_SIMD32) && defined(__OPTIMIZE__)
/* As slw_dot_2x3; four steps at a time, after two where their number is odd. */
static SLW_SHARED void slw_dot_2x3_wide(const uint32_t *weights, const uint32_t *columns,
                                        uint32_t words, const int32_t *bias, int32_t *sums) {
  register int32_t a0 __asm__("r0") = bias[0];
  register int32_t a1 __asm__("r1") = bias[1];
  register int32_t b0 __asm__("r2") = a0;
  register int32_t b1 __asm__("r3") = a1;
  register int32_t c0 __asm__("r4") = a0;
  register int32_t c1 __asm__("r9") = a1;
  register const uint32_t *p __asm__("r6") = weights;
  register const uint32_t *c __asm__("r8") = columns;
  register const uint32_t *end __asm__("r5") = weights + 4u * words;
  __asm__ volatile(
      "push {%[x], r7}\n"
      "sub r12, %[x], %[p]\n"
      "tst r12, #32\n"
      "beq 1f\n"
#define SLW_STEP                    \
  "ldrd r10, r11, [%[p]], #8\n"     \
  "ldrd r12, lr, [%[p]], #8\n"      \
  "ldrd %[x], r7, [%[c]], #8\n"     \
  "smlad %[a0], r10, %[x], %[a0]\n" \
  "smlad %[a1], r12, %[x], %[a1]\n" \
  "smlad %[a0], r11, r7, %[a0]\n"   \
  "smlad %[a1], lr, r7, %[a1]\n"    \
  "ldrd %[x], r7, [%[c]], #8\n"     \
  "smlad %[b0], r10, %[x], %[b0]\n" \
  "smlad %[b1], r12, %[x], %[b1]\n" \
  "smlad %[b0], r11, r7, %[b0]\n"   \
  "smlad %[b1], lr, r7, %[b1]\n"    \
  "ldrd %[x], r7, [%[c]], #8\n"     \
  "smlad %[c0], r10, %[x], %[c0]\n" \
  "smlad %[c1], r12, %[x], %[c1]\n" \
  "smlad %[c0], r11, r7, %[c0]\n"   \
  "smlad %[c1], lr, r7, %[c1]\n"
      SLW_STEP SLW_STEP
      "ldr r12, [sp]\n"
      "cmp %[p], r12\n"
      "beq 2f\n"
      "1:\n"
      SLW_STEP SLW_STEP SLW_STEP SLW_STEP
#undef SLW_STEP
      "ldr r12, [sp]\n"
      "cmp %[p], r12\n"
      "bne 1b\n"
      "2:\n"
      "pop {%[x], r7}\n"
      : [a0] "+r"(a0), [a1] "+r"(a1), [b0] "+r"(b0), [b1] "+r"(b1), [c0] "+r"(c0),
        [c1] "+r"(c1), [p] "+r"(p), [c] "+r"(c), [x] "+r"(end)
      :
      : "cc", "memory", "r10", "r11", "r12", "lr");
  sums[0] = a0;
  sums[1] = a1;
  sums[2] = b0;
  sums[3] = b1;
  sums[4] = c0;
  sums[5] = c1;
}

/* As slw_widen, 16 bytes at a time. */
static inline uint32_t *slw_widen_wide(uint32_t *to, const int8_t *from, uint32_t count) {
  const int8_t *end = from + (count & ~15u);
  uint32_t x;
  uint32_t y;
  if (count >= 16u) {
    __asm__ volatile(
        "1:\n"
#define SLW_STEP                \
  "ldr %[x], [%[f]], #4\n"      \
  "sxtb16 %[y], %[x]\n"         \
  "sxtb16 %[x], %[x], ror #8\n" \
  "strd %[y], %[x], [%[t]], #24\n"
        SLW_STEP SLW_STEP SLW_STEP SLW_STEP
#undef SLW_STEP
        "cmp %[f], %[e]\n"
        "bne 1b\n"
        : [f] "+r"(from), [t] "+r"(to), [x] "=&r"(x), [y] "=&r"(y)
        : [e] "r"(end)
        : "cc", "memory");
  }
  return slw_widen(to, from, count & 15u);
}

/* As slw_dot_4x1. */
static inline const uint32_t *slw_dot_4x1_wide(const uint32_t *weights, const int8_t *row,
                                               uint32_t size, int32_t *sums) {
  const int8_t *end = row + size;
  int32_t s0 = sums[0];
  int32_t s1 = sums[1];
  int32_t s2 = sums[2];
  int32_t s3 = sums[3];
  uint32_t x;
  uint32_t y;
  uint32_t w;
  uint32_t v;
  __asm__ volatile(
      "1:\n"
#define SLW_ONE(a)                  \
  "ldrd %[w], %[v], [%[p]], #8\n"   \
  "smlad %[" a "], %[w], %[y], %[" a "]\n smlad %[" a "], %[v], %[x], %[" a "]\n"
#define SLW_STEP                                                           \
  "ldr %[x], [%[r]], #4\n sxtb16 %[y], %[x]\n sxtb16 %[x], %[x], ror #8\n" \
  SLW_ONE("s0") SLW_ONE("s1") SLW_ONE("s2") SLW_ONE("s3")
      SLW_STEP SLW_STEP
#undef SLW_STEP
#undef SLW_ONE
      "cmp %[r], %[e]\n"
      "bne 1b\n"
      : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [r] "+r"(row),
        [p] "+r"(weights), [x] "=&r"(x), [y] "=&r"(y), [w] "=&r"(w), [v] "=&r"(v)
      : [e] "r"(end)
      : "cc", "memory");
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
  return weights;
}
#else
static inline uint32_t *slw_widen_wide(uint32_t *to, const int8_t *from, uint32_t count) {
  return slw_widen(to, from, count);
}
static inline const uint32_t *slw_dot_4x1_wide(const uint32_t *weights, const int8_t *row,
                                               uint32_t size, int32_t *sums) {
  for (; size > 0u; size -= 4u, row += 4) {
    const uint32_t bytes = slw_load4(row);
    for (uint32_t c = 0; c < 4u; ++c, weights += 2) {
      sums[c] = slw_dot2(weights[0], slw_even(bytes), sums[c]);
      sums[c] = slw_dot2(weights[1], slw_odd(bytes), sums[c]);
    }
  }
  return weights;
}
static inline void slw_dot_2x3_wide(const uint32_t *weights, const uint32_t *columns,
                                    uint32_t words, const int32_t *bias, int32_t *sums) {
  for (uint32_t i = 0; i < 6u; ++i) {
    sums[i] = bias[i % 2u];
  }
  for (; words > 0u; --words, weights += 4) {
    for (uint32_t pixel = 0; pixel < 3u; ++pixel, columns += 2) {
      for (uint32_t c = 0; c < 2u; ++c) {
        const int32_t sum = slw_dot2(weights[2u * c], columns[0], sums[2u * pixel + c]);
        sums[2u * pixel + c] = slw_dot2(weights[2u * c + 1u], columns[1], sum);
      }
    }
  }
}
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define SLW_LARGE __attribute__((optimize("O3")))
#else
#define SLW_LARGE
#endif

/* weights: for each pair of output channels, of both in turn, two words for 4 elements. */
static SLW_SHARED void slw_conv_wide(const struct slw_layer *layer, const int8_t *data,
                                     const uint32_t *weights, const struct slw_scales *scales,
                                     int8_t *out, uint8_t *workspace) {
  slw_conv_with(slw_dot_2x3_wide, 4u, slw_widen_wide, layer, data, weights, scales, out, workspace);
}

/* weights: for each four output channels, of each in turn, two words for 4 elements of the row. */
static SLW_SHARED void slw_dense_wide(const struct slw_layer *layer, const int8_t *data,
                                      const uint32_t *weights, const struct slw_scales *scales,
                                      int8_t *out, uint8_t *workspace) {
  (void)workspace;
  slw_dense_with(slw_dot_4x1_wide, layer, data, weights, scales, out);
}

/* The weights of slw_depthwise_int8; only the code is another. */
static SLW_SHARED SLW_LARGE void slw_depthwise_wide(const struct slw_layer *layer,
                                                    const int8_t *data, const uint32_t *weights,
                                                    const struct slw_scales *scales, int8_t *out,
                                                    uint8_t *workspace) {
  slw_depthwise_with(layer, data, weights, scales, out, workspace);
}
