/* Sums of 16-bit data for cores that multiply pairs of it: the four weights of a channel lie as 0, 2, 1,
 * 3, so that sxtb16 widens them to the pairs that the data lies in. */
#if defined(__ARM_FEATURE_SIMD32) && defined(__OPTIMIZE__)
static inline const int8_t *slw_half_dot(const int8_t *weights, const int16_t *window,
                                         uint32_t size, int32_t *sums) {
  const int16_t *end = window + size;
  int32_t s0 = sums[0];
  int32_t s1 = sums[1];
  int32_t s2 = sums[2];
  int32_t s3 = sums[3];
  uint32_t x;
  uint32_t y;
  uint32_t w;
  uint32_t v;
  uint32_t t;
  __asm__ volatile(
      "1:\n"
      "ldr %[x], [%[r]], #4\n"
      "ldr %[y], [%[r]], #4\n"
#define SLW_TWO(a, b)                                                   \
  "ldrd %[w], %[v], [%[p]], #8\n"                                       \
  "sxtb16 %[t], %[w]\n smlad %[" a "], %[t], %[x], %[" a "]\n"          \
  "sxtb16 %[t], %[w], ror #8\n smlad %[" a "], %[t], %[y], %[" a "]\n"  \
  "sxtb16 %[t], %[v]\n smlad %[" b "], %[t], %[x], %[" b "]\n"          \
  "sxtb16 %[t], %[v], ror #8\n smlad %[" b "], %[t], %[y], %[" b "]\n"
      SLW_TWO("s0", "s1") SLW_TWO("s2", "s3")
#undef SLW_TWO
      "cmp %[r], %[e]\n"
      "bne 1b\n"
      : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [r] "+r"(window),
        [p] "+r"(weights), [x] "=&r"(x), [y] "=&r"(y), [w] "=&r"(w), [v] "=&r"(v), [t] "=&r"(t)
      : [e] "r"(end)
      : "cc", "memory");
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
  return weights;
}

/* Four channels of a depthwise window. */
static inline void slw_half_taps(const int8_t *weights, const int8_t **tap, const int8_t **end,
                                 uint32_t channel, int32_t *sums) {
  const uint32_t offset = 2u * channel;
  int32_t s0 = sums[0];
  int32_t s1 = sums[1];
  int32_t s2 = sums[2];
  int32_t s3 = sums[3];
  uint32_t x;
  uint32_t y;
  uint32_t w;
  uint32_t v;
  __asm__ volatile(
      "1: ldr %[y], [%[t]], #4\n"
      "ldr %[w], [%[p]], #4\n"
      "add %[y], %[y], %[o]\n"
      "ldr %[x], [%[y]]\n"
      "sxtb16 %[v], %[w]\n"
      "sxtb16 %[w], %[w], ror #8\n"
      "smlabb %[s0], %[x], %[v], %[s0]\n"
      "ldr %[y], [%[y], #4]\n"
      "smlatb %[s1], %[x], %[w], %[s1]\n"
      "smlabt %[s2], %[y], %[v], %[s2]\n"
      "smlatt %[s3], %[y], %[w], %[s3]\n"
      "cmp %[t], %[e]\n"
      "bne 1b\n"
      : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [t] "+r"(tap),
        [p] "+r"(weights), [x] "=&r"(x), [y] "=&r"(y), [w] "=&r"(w), [v] "=&r"(v)
      : [o] "r"(offset), [e] "r"(end)
      : "cc", "memory");
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}
#else
static inline const int8_t *slw_half_dot(const int8_t *weights, const int16_t *window,
                                         uint32_t size, int32_t *sums) {
  for (const int16_t *end = window + size; window != end; window += 4) {
    for (uint32_t c = 0; c < 4u; ++c, weights += 4) {
      sums[c] += window[0] * weights[0] + window[1] * weights[2];
      sums[c] += window[2] * weights[1] + window[3] * weights[3];
    }
  }
  return weights;
}

static inline void slw_half_taps(const int8_t *weights, const int8_t **tap, const int8_t **end,
                                 uint32_t channel, int32_t *sums) {
  for (; tap != end; ++tap, weights += 4) {
    const int16_t *at = (const int16_t *)(const void *)*tap + channel;
    for (uint32_t c = 0; c < 4u; ++c) {
      sums[c] += at[c] * weights[c];
    }
  }
}
#endif
