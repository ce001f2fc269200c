/* Words of two 16-bit or four 8-bit numbers: with the DSP extension two products are summed by one
 * instruction (smlad).  In a widened word of four bytes the order is (0, 2), (1, 3), which is what
 * sxtb16 gives.  Elsewhere, and without optimisation, which leaves too few registers for the inner
 * loops, the same is computed by plain C.
 */
static inline uint32_t slw_load4(const int8_t *at) {
  uint32_t word;
  __builtin_memcpy(&word, at, 4);
  return word;
}

#if defined(__ARM_FEATURE_SIMD32) && defined(__OPTIMIZE__)
static inline uint32_t slw_even(uint32_t bytes) {
  uint32_t pair;
  __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(bytes));
  return pair;
}
static inline uint32_t slw_odd(uint32_t bytes) {
  uint32_t pair;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(bytes));
  return pair;
}
static inline int32_t slw_dot2(uint32_t a, uint32_t b, int32_t sum) {
  int32_t result;
  __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
static inline int32_t slw_low(uint32_t a, uint32_t b, int32_t sum) {
  int32_t result;
  __asm__("smlabb %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
static inline int32_t slw_high(uint32_t a, uint32_t b, int32_t sum) {
  int32_t result;
  __asm__("smlatt %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
static inline int32_t slw_high_product(int32_t sum, int32_t multiplier) {
  int32_t result;
  __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(sum * 2), "r"(multiplier));
  return result;
}
/* Saturate half of the value. */
static inline int8_t slw_saturate_half(int32_t value) {
  int32_t result;
  __asm__("ssat %0, #8, %1, asr #1" : "=r"(result) : "r"(value));
  return (int8_t)result;
}

/* Two output channels of three pixels: sums[2 * pixel + channel] = bias + weights x columns.  This
 * takes every register.  gcc does not give away r7 where it keeps a frame pointer there: the others
 * are named, and r7 is saved with the end of the weights. */
static SLW_SHARED void slw_dot_2x3(const uint32_t *weights, const uint32_t *columns,
                                   uint32_t words, const int32_t *bias, int32_t *sums) {
  register int32_t a0 __asm__("r0") = bias[0];
  register int32_t a1 __asm__("r1") = bias[1];
  register int32_t b0 __asm__("r2") = a0;
  register int32_t b1 __asm__("r3") = a1;
  register int32_t c0 __asm__("r4") = a0;
  register int32_t c1 __asm__("r9") = a1;
  register const uint32_t *p __asm__("r6") = weights;
  register const uint32_t *c __asm__("r8") = columns;
  register const uint32_t *end __asm__("r5") = weights + 2u * words;
  /* Words in pairs, so that the end, which has no register, is loaded half as often. */
  __asm__ volatile(
      "push {%[x], r7}\n"
      "1:\n"
#define SLW_STEP                    \
  "ldrd r10, r11, [%[p]], #8\n"     \
  "ldrd %[x], r7, [%[c]], #8\n"     \
  "sxtb16 r12, r10\n"               \
  "sxtb16 lr, r11\n"                \
  "sxtb16 r10, r10, ror #8\n"       \
  "sxtb16 r11, r11, ror #8\n"       \
  "smlad %[a0], r12, %[x], %[a0]\n" \
  "smlad %[a1], lr, %[x], %[a1]\n"  \
  "smlad %[a0], r10, r7, %[a0]\n"   \
  "smlad %[a1], r11, r7, %[a1]\n"   \
  "ldrd %[x], r7, [%[c]], #8\n"     \
  "smlad %[b0], r12, %[x], %[b0]\n" \
  "smlad %[b1], lr, %[x], %[b1]\n"  \
  "smlad %[b0], r10, r7, %[b0]\n"   \
  "smlad %[b1], r11, r7, %[b1]\n"   \
  "ldrd %[x], r7, [%[c]], #8\n"     \
  "smlad %[c0], r12, %[x], %[c0]\n" \
  "smlad %[c1], lr, %[x], %[c1]\n"  \
  "smlad %[c0], r10, r7, %[c0]\n"   \
  "smlad %[c1], r11, r7, %[c1]\n"
      SLW_STEP SLW_STEP
#undef SLW_STEP
      "ldr r12, [sp]\n"
      "cmp %[p], r12\n"
      "bne 1b\n"
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

/* Widen `count` bytes, a multiple of 4, into every third pair of words: three pixels interleave. */
static inline uint32_t *slw_widen(uint32_t *to, const int8_t *from, uint32_t count) {
  const int8_t *end = from + count;
  uint32_t x;
  uint32_t y;
  if (count == 0u) {
    return to;
  }
  __asm__ volatile(
      "1: ldr %[x], [%[f]], #4\n"
      "sxtb16 %[y], %[x]\n"
      "sxtb16 %[x], %[x], ror #8\n"
      "strd %[y], %[x], [%[t]], #24\n"
      "cmp %[f], %[e]\n"
      "bne 1b\n"
      : [f] "+r"(from), [t] "+r"(to), [x] "=&r"(x), [y] "=&r"(y)
      : [e] "r"(end)
      : "cc", "memory");
  return to;
}

/* One window of four channels: returns the weights behind it. */
static inline const uint32_t *slw_taps(const int8_t **tap, const int8_t **end, uint32_t offset,
                                       const uint32_t *weights, int32_t *s0, int32_t *s1,
                                       int32_t *s2, int32_t *s3) {
  uint32_t x;
  uint32_t y;
  uint32_t w;
  uint32_t v;
  __asm__ volatile(
      "1: ldr %[x], [%[t]], #4\n"
      "ldrd %[w], %[v], [%[p]], #8\n"
      "ldr %[x], [%[x], %[o]]\n"
      "sxtb16 %[y], %[x]\n"
      "sxtb16 %[x], %[x], ror #8\n"
      "smlabb %[s0], %[y], %[w], %[s0]\n"
      "smlatt %[s2], %[y], %[w], %[s2]\n"
      "smlabb %[s1], %[x], %[v], %[s1]\n"
      "smlatt %[s3], %[x], %[v], %[s3]\n"
      "cmp %[t], %[e]\n"
      "bne 1b\n"
      : [s0] "+r"(*s0), [s1] "+r"(*s1), [s2] "+r"(*s2), [s3] "+r"(*s3), [t] "+r"(tap),
        [p] "+r"(weights), [x] "=&r"(x), [y] "=&r"(y), [w] "=&r"(w), [v] "=&r"(v)
      : [o] "r"(offset), [e] "r"(end)
      : "cc", "memory");
  return weights;
}

/* A window of 3 x 3 pixels, four channels; lines and pixels lie so many bytes apart. */
static inline const uint32_t *slw_taps_3x3(const int8_t *data, uint32_t line, uint32_t pixel,
                                           const uint32_t *weights, int32_t *s0, int32_t *s1,
                                           int32_t *s2, int32_t *s3) {
  uint32_t x;
  uint32_t y;
  uint32_t w;
  uint32_t v;
  __asm__ volatile(
#define SLW_TAP(address)                  \
  "ldrd %[w], %[v], [%[p]], #8\n"         \
  "ldr %[x], [" address "]\n"             \
  "sxtb16 %[y], %[x]\n"                   \
  "sxtb16 %[x], %[x], ror #8\n"           \
  "smlabb %[s0], %[y], %[w], %[s0]\n"     \
  "smlatt %[s2], %[y], %[w], %[s2]\n"     \
  "smlabb %[s1], %[x], %[v], %[s1]\n"     \
  "smlatt %[s3], %[x], %[v], %[s3]\n"
#define SLW_LINE SLW_TAP("%[d]") SLW_TAP("%[d], %[c]") SLW_TAP("%[d], %[c], lsl #1")
      SLW_LINE "add %[d], %[d], %[l]\n" SLW_LINE "add %[d], %[d], %[l]\n" SLW_LINE
#undef SLW_LINE
#undef SLW_TAP
      : [s0] "+r"(*s0), [s1] "+r"(*s1), [s2] "+r"(*s2), [s3] "+r"(*s3), [d] "+r"(data),
        [p] "+r"(weights), [x] "=&r"(x), [y] "=&r"(y), [w] "=&r"(w), [v] "=&r"(v)
      : [l] "r"(line), [c] "r"(pixel)
      : "memory");
  return weights;
}

/* Four output channels of one row, `size` a multiple of 8: returns the weights behind it. */
static inline const uint32_t *slw_dot_4x1(const uint32_t *weights, const int8_t *row,
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
  uint32_t t;
  __asm__ volatile(
      "1:\n"
#define SLW_TWO(a, b)                                                   \
  "ldrd %[w], %[v], [%[p]], #8\n"                                       \
  "sxtb16 %[t], %[w]\n smlad %[" a "], %[t], %[y], %[" a "]\n"          \
  "sxtb16 %[t], %[w], ror #8\n smlad %[" a "], %[t], %[x], %[" a "]\n"  \
  "sxtb16 %[t], %[v]\n smlad %[" b "], %[t], %[y], %[" b "]\n"          \
  "sxtb16 %[t], %[v], ror #8\n smlad %[" b "], %[t], %[x], %[" b "]\n"
#define SLW_STEP                                                                        \
  "ldr %[x], [%[r]], #4\n sxtb16 %[y], %[x]\n sxtb16 %[x], %[x], ror #8\n"              \
  SLW_TWO("s0", "s1") SLW_TWO("s2", "s3")
      SLW_STEP SLW_STEP
#undef SLW_STEP
#undef SLW_TWO
      "cmp %[r], %[e]\n"
      "bne 1b\n"
      : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [r] "+r"(row),
        [p] "+r"(weights), [x] "=&r"(x), [y] "=&r"(y), [w] "=&r"(w), [v] "=&r"(v), [t] "=&r"(t)
      : [e] "r"(end)
      : "cc", "memory");
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
  return weights;
}
#else
static inline uint32_t slw_pair(int32_t low, int32_t high) {
  return ((uint32_t)low & 0xFFFFu) | ((uint32_t)high << 16);
}
static inline uint32_t slw_even(uint32_t bytes) {
  return slw_pair((int8_t)(uint8_t)bytes, (int8_t)(uint8_t)(bytes >> 16));
}
static inline uint32_t slw_odd(uint32_t bytes) { return slw_even(bytes >> 8); }
static inline int32_t slw_low(uint32_t a, uint32_t b, int32_t sum) {
  return sum + (int32_t)(int16_t)(uint16_t)a * (int16_t)(uint16_t)b;
}
static inline int32_t slw_high(uint32_t a, uint32_t b, int32_t sum) {
  return slw_low(a >> 16, b >> 16, sum);
}
static inline int32_t slw_dot2(uint32_t a, uint32_t b, int32_t sum) {
  return slw_high(a, b, slw_low(a, b, sum));
}
static inline int32_t slw_high_product(int32_t sum, int32_t multiplier) {
  return (int32_t)(((int64_t)sum * multiplier + 1073741824) >> 31);
}
static inline int8_t slw_saturate_half(int32_t value) {
  value >>= 1;
  value = value < -128 ? -128 : value;
  return (int8_t)(value > 127 ? 127 : value);
}
static inline const uint32_t *slw_taps(const int8_t **tap, const int8_t **end, uint32_t offset,
                                       const uint32_t *weights, int32_t *s0, int32_t *s1,
                                       int32_t *s2, int32_t *s3) {
  for (; tap != end; ++tap, weights += 2) {
    const uint32_t bytes = slw_load4(*tap + offset);
    *s0 = slw_low(slw_even(bytes), weights[0], *s0);
    *s2 = slw_high(slw_even(bytes), weights[0], *s2);
    *s1 = slw_low(slw_odd(bytes), weights[1], *s1);
    *s3 = slw_high(slw_odd(bytes), weights[1], *s3);
  }
  return weights;
}
static inline const uint32_t *slw_taps_3x3(const int8_t *data, uint32_t line, uint32_t pixel,
                                           const uint32_t *weights, int32_t *s0, int32_t *s1,
                                           int32_t *s2, int32_t *s3) {
  const int8_t *window[9];
  for (uint32_t i = 0; i < 9u; ++i) {
    window[i] = data + i / 3u * line + i % 3u * pixel;
  }
  return slw_taps(window, window + 9, 0, weights, s0, s1, s2, s3);
}
static inline const uint32_t *slw_dot_4x1(const uint32_t *weights, const int8_t *row,
                                          uint32_t size, int32_t *sums) {
  for (; size > 0u; size -= 4u, row += 4, weights += 4) {
    const uint32_t bytes = slw_load4(row);
    for (uint32_t c = 0; c < 4u; ++c) {
      sums[c] = slw_dot2(slw_even(weights[c]), slw_even(bytes), sums[c]);
      sums[c] = slw_dot2(slw_odd(weights[c]), slw_odd(bytes), sums[c]);
    }
  }
  return weights;
}
static inline void slw_dot_2x3(const uint32_t *weights, const uint32_t *columns, uint32_t words,
                               const int32_t *bias, int32_t *sums) {
  for (uint32_t i = 0; i < 6u; ++i) {
    sums[i] = bias[i % 2u];
  }
  for (; words > 0u; --words, weights += 2) {
    for (uint32_t pixel = 0; pixel < 3u; ++pixel, columns += 2) {
      for (uint32_t c = 0; c < 2u; ++c) {
        const int32_t sum = slw_dot2(slw_even(weights[c]), columns[0], sums[2u * pixel + c]);
        sums[2u * pixel + c] = slw_dot2(slw_odd(weights[c]), columns[1], sum);
      }
    }
  }
}
static inline uint32_t *slw_widen(uint32_t *to, const int8_t *from, uint32_t count) {
  for (; count > 0u; count -= 4u, from += 4, to += 6) {
    const uint32_t bytes = slw_load4(from);
    to[0] = slw_even(bytes);
    to[1] = slw_odd(bytes);
  }
  return to;
}
#endif
