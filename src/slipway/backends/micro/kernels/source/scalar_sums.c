/* Sums of products for cores that only multiply words: four output channels of four pixels at once,
 * so that each byte that was loaded is used four times.  What is below for RISC-V is in words of the
 * machine and in this very order: the compiler would rename the sums, which leaves no registers.
 */
#if defined(__riscv_mul) && defined(__GNUC__)
typedef long slw_word;

/* Four sums += x * w0 ... x * w3. */
static inline void slw_mac4(slw_word x, slw_word w0, slw_word w1, slw_word w2, slw_word w3,
                            slw_word *s0, slw_word *s1, slw_word *s2, slw_word *s3) {
  slw_word t;
  __asm__ volatile(
      "mul %[t], %[x], %[w0]\n add %[s0], %[s0], %[t]\n"
      "mul %[t], %[x], %[w1]\n add %[s1], %[s1], %[t]\n"
      "mul %[t], %[x], %[w2]\n add %[s2], %[s2], %[t]\n"
      "mul %[t], %[x], %[w3]\n add %[s3], %[s3], %[t]\n"
      : [s0] "+r"(*s0), [s1] "+r"(*s1), [s2] "+r"(*s2), [s3] "+r"(*s3), [t] "=&r"(t)
      : [x] "r"(x), [w0] "r"(w0), [w1] "r"(w1), [w2] "r"(w2), [w3] "r"(w3)
      : "memory");
}

/* The same of eight. */
static inline void slw_mac8(slw_word x, slw_word w0, slw_word w1, slw_word w2, slw_word w3,
                            slw_word w4, slw_word w5, slw_word w6, slw_word w7, slw_word *s0,
                            slw_word *s1, slw_word *s2, slw_word *s3, slw_word *s4, slw_word *s5,
                            slw_word *s6, slw_word *s7) {
  slw_word t;
  __asm__ volatile(
      "mul %[t], %[x], %[w0]\n add %[s0], %[s0], %[t]\n"
      "mul %[t], %[x], %[w1]\n add %[s1], %[s1], %[t]\n"
      "mul %[t], %[x], %[w2]\n add %[s2], %[s2], %[t]\n"
      "mul %[t], %[x], %[w3]\n add %[s3], %[s3], %[t]\n"
      "mul %[t], %[x], %[w4]\n add %[s4], %[s4], %[t]\n"
      "mul %[t], %[x], %[w5]\n add %[s5], %[s5], %[t]\n"
      "mul %[t], %[x], %[w6]\n add %[s6], %[s6], %[t]\n"
      "mul %[t], %[x], %[w7]\n add %[s7], %[s7], %[t]\n"
      : [s0] "+r"(*s0), [s1] "+r"(*s1), [s2] "+r"(*s2), [s3] "+r"(*s3), [s4] "+r"(*s4),
        [s5] "+r"(*s5), [s6] "+r"(*s6), [s7] "+r"(*s7), [t] "=&r"(t)
      : [x] "r"(x), [w0] "r"(w0), [w1] "r"(w1), [w2] "r"(w2), [w3] "r"(w3),
        [w4] "r"(w4), [w5] "r"(w5), [w6] "r"(w6), [w7] "r"(w7)
      : "memory");
}
#else
typedef int32_t slw_word;
static inline void slw_mac4(slw_word x, slw_word w0, slw_word w1, slw_word w2, slw_word w3,
                            slw_word *s0, slw_word *s1, slw_word *s2, slw_word *s3) {
  *s0 += x * w0;
  *s1 += x * w1;
  *s2 += x * w2;
  *s3 += x * w3;
}

static inline void slw_mac8(slw_word x, slw_word w0, slw_word w1, slw_word w2, slw_word w3,
                            slw_word w4, slw_word w5, slw_word w6, slw_word w7, slw_word *s0,
                            slw_word *s1, slw_word *s2, slw_word *s3, slw_word *s4, slw_word *s5,
                            slw_word *s6, slw_word *s7) {
  slw_mac4(x, w0, w1, w2, w3, s0, s1, s2, s3);
  slw_mac4(x, w4, w5, w6, w7, s4, s5, s6, s7);
}
#endif

/* sums[4 * pixel + channel] = bias[channel] + weights x windows; returns the weights after them. */
#if defined(__riscv_xlen) && __riscv_xlen == 64
/* Two sums in a word: a product with low + 2^32 * high is both products. */
static inline int64_t slw_pair(int32_t low, int32_t high) {
  return low + (INT64_C(1) << 32) * high;
}

/* Two pairs += *at * w0, *at * w1; in this order, so that there are registers for all of it. */
static inline void slw_mac_two(const int8_t *at, int64_t w0, int64_t w1, int64_t *s0,
                               int64_t *s1) {
#if defined(__GNUC__)
  int64_t t;
  int64_t u;
  __asm__ volatile(
      "lb %[t], %[at]\n"
      "mul %[u], %[t], %[w0]\n mul %[t], %[t], %[w1]\n"
      "add %[s0], %[s0], %[u]\n add %[s1], %[s1], %[t]\n"
      : [s0] "+r"(*s0), [s1] "+r"(*s1), [t] "=&r"(t), [u] "=&r"(u)
      : [at] "m"(*at), [w0] "r"(w0), [w1] "r"(w1)
      : "memory");
#else
  *s0 += *at * w0;
  *s1 += *at * w1;
#endif
}

static inline void slw_unpair(int64_t pair, int32_t *sums) {
  sums[0] = (int32_t)(uint32_t)pair;
  sums[1] = (int32_t)((pair - sums[0]) >> 32);
}

static SLW_SHARED const int8_t *slw_tile(const int8_t *weights, const int8_t *const *windows,
                                         uint32_t size, const int32_t *bias, int32_t *sums) {
  const int8_t *a = windows[0];
  const int8_t *b = windows[1];
  const int8_t *c = windows[2];
  const int8_t *d = windows[3];
  const int8_t *first = a + size % 4u;
  const int8_t *end = a + size;
  int64_t a0 = slw_pair(bias[0], bias[1]), a1 = slw_pair(bias[2], bias[3]);
  int64_t b0 = a0, b1 = a1, c0 = a0, c1 = a1, d0 = a0, d1 = a1;
#define SLW_STEP(k)                                                                          \
  {                                                                                          \
    const int64_t w0 = slw_pair(weights[4 * (k)], weights[4 * (k) + 1]);                     \
    const int64_t w1 = slw_pair(weights[4 * (k) + 2], weights[4 * (k) + 3]);                 \
    slw_mac_two(a + (k), w0, w1, &a0, &a1);                                                  \
    slw_mac_two(b + (k), w0, w1, &b0, &b1);                                                  \
    slw_mac_two(c + (k), w0, w1, &c0, &c1);                                                  \
    slw_mac_two(d + (k), w0, w1, &d0, &d1);                                                  \
  }
  for (; a != first; ++a, ++b, ++c, ++d, weights += 4) {
    SLW_STEP(0)
  }
  for (; a != end; a += 4, b += 4, c += 4, d += 4, weights += 16) {
    SLW_STEP(0)
    SLW_STEP(1)
    SLW_STEP(2)
    SLW_STEP(3)
  }
#undef SLW_STEP
  slw_unpair(a0, sums), slw_unpair(a1, sums + 2);
  slw_unpair(b0, sums + 4), slw_unpair(b1, sums + 6);
  slw_unpair(c0, sums + 8), slw_unpair(c1, sums + 10);
  slw_unpair(d0, sums + 12), slw_unpair(d1, sums + 14);
  return weights;
}
#else
static SLW_SHARED const int8_t *slw_tile(const int8_t *weights, const int8_t *const *windows,
                                         uint32_t size, const int32_t *bias, int32_t *sums) {
  const int8_t *a = windows[0];
  const int8_t *b = windows[1];
  const int8_t *c = windows[2];
  const int8_t *d = windows[3];
  const int8_t *first = a + size % 8u;
  const int8_t *end = a + size;
  slw_word a0 = bias[0], a1 = bias[1], a2 = bias[2], a3 = bias[3];
  slw_word b0 = bias[0], b1 = bias[1], b2 = bias[2], b3 = bias[3];
  slw_word c0 = bias[0], c1 = bias[1], c2 = bias[2], c3 = bias[3];
  slw_word d0 = bias[0], d1 = bias[1], d2 = bias[2], d3 = bias[3];
#define SLW_STEP(k)                                                                          \
  {                                                                                          \
    const slw_word w0 = weights[4 * (k)];                                                    \
    const slw_word w1 = weights[4 * (k) + 1];                                                \
    const slw_word w2 = weights[4 * (k) + 2];                                                \
    const slw_word w3 = weights[4 * (k) + 3];                                                \
    slw_mac4(a[k], w0, w1, w2, w3, &a0, &a1, &a2, &a3);                                          \
    slw_mac4(b[k], w0, w1, w2, w3, &b0, &b1, &b2, &b3);                                          \
    slw_mac4(c[k], w0, w1, w2, w3, &c0, &c1, &c2, &c3);                                          \
    slw_mac4(d[k], w0, w1, w2, w3, &d0, &d1, &d2, &d3);                                          \
  }
  for (; a != first; ++a, ++b, ++c, ++d, weights += 4) {
    SLW_STEP(0)
  }
  for (; a != end; a += 8, b += 8, c += 8, d += 8, weights += 32) {
    SLW_STEP(0)
    SLW_STEP(1)
    SLW_STEP(2)
    SLW_STEP(3)
    SLW_STEP(4)
    SLW_STEP(5)
    SLW_STEP(6)
    SLW_STEP(7)
  }
#undef SLW_STEP
  sums[0] = (int32_t)a0, sums[1] = (int32_t)a1, sums[2] = (int32_t)a2, sums[3] = (int32_t)a3;
  sums[4] = (int32_t)b0, sums[5] = (int32_t)b1, sums[6] = (int32_t)b2, sums[7] = (int32_t)b3;
  sums[8] = (int32_t)c0, sums[9] = (int32_t)c1, sums[10] = (int32_t)c2, sums[11] = (int32_t)c3;
  sums[12] = (int32_t)d0, sums[13] = (int32_t)d1, sums[14] = (int32_t)d2, sums[15] = (int32_t)d3;
  return weights;
}
#endif

/* One window: sums[channel] = bias[channel] + weights x window. */
static inline void slw_row(const int8_t *weights, const int8_t *window, uint32_t size,
                           const int32_t *bias, int32_t *sums) {
  const int8_t *end = window + size;
  slw_word s0 = bias[0], s1 = bias[1], s2 = bias[2], s3 = bias[3];
  for (; window != end; ++window, weights += 4) {
    slw_mac4(*window, weights[0], weights[1], weights[2], weights[3], &s0, &s1, &s2, &s3);
  }
  sums[0] = (int32_t)s0, sums[1] = (int32_t)s1, sums[2] = (int32_t)s2, sums[3] = (int32_t)s3;
}

/* The same of eight channels; `more` are the weights of the second four. */
static inline void slw_row_of_eight(const int8_t *weights, const int8_t *more,
                                    const int8_t *window, uint32_t size, const int32_t *bias,
                                    int32_t *sums) {
  const int8_t *first = window + size % 4u;
  const int8_t *end = window + size;
  slw_word s0 = bias[0], s1 = bias[1], s2 = bias[2], s3 = bias[3];
  slw_word s4 = bias[4], s5 = bias[5], s6 = bias[6], s7 = bias[7];
#define SLW_STEP(k)                                                                          \
  slw_mac8(window[k], weights[4 * (k)], weights[4 * (k) + 1], weights[4 * (k) + 2],          \
           weights[4 * (k) + 3], more[4 * (k)], more[4 * (k) + 1], more[4 * (k) + 2],        \
           more[4 * (k) + 3], &s0, &s1, &s2, &s3, &s4, &s5, &s6, &s7);
  for (; window != first; ++window, weights += 4, more += 4) {
    SLW_STEP(0)
  }
  for (; window != end; window += 4, weights += 16, more += 16) {
    SLW_STEP(0)
    SLW_STEP(1)
    SLW_STEP(2)
    SLW_STEP(3)
  }
#undef SLW_STEP
  sums[0] = (int32_t)s0, sums[1] = (int32_t)s1, sums[2] = (int32_t)s2, sums[3] = (int32_t)s3;
  sums[4] = (int32_t)s4, sums[5] = (int32_t)s5, sums[6] = (int32_t)s6, sums[7] = (int32_t)s7;
}

/* s0 ... s3 += at[0] * w0 ... at[3] * w3 */
#if defined(__riscv_mul) && defined(__GNUC__)
static inline void slw_mac_pairs(const int8_t *at, slw_word w0, slw_word w1, slw_word w2,
                                 slw_word w3, slw_word *s0, slw_word *s1, slw_word *s2,
                                 slw_word *s3) {
  slw_word t;
  slw_word u;
  __asm__ volatile(
      "lb %[t], 0(%[at])\n lb %[u], 1(%[at])\n"
      "mul %[t], %[t], %[w0]\n mul %[u], %[u], %[w1]\n"
      "add %[s0], %[s0], %[t]\n add %[s1], %[s1], %[u]\n"
      "lb %[t], 2(%[at])\n lb %[u], 3(%[at])\n"
      "mul %[t], %[t], %[w2]\n mul %[u], %[u], %[w3]\n"
      "add %[s2], %[s2], %[t]\n add %[s3], %[s3], %[u]\n"
      : [s0] "+r"(*s0), [s1] "+r"(*s1), [s2] "+r"(*s2), [s3] "+r"(*s3), [t] "=&r"(t), [u] "=&r"(u)
      : [at] "r"(at), [w0] "r"(w0), [w1] "r"(w1), [w2] "r"(w2), [w3] "r"(w3)
      : "memory");
}
#else
static inline void slw_mac_pairs(const int8_t *at, slw_word w0, slw_word w1, slw_word w2,
                                 slw_word w3, slw_word *s0, slw_word *s1, slw_word *s2,
                                 slw_word *s3) {
  *s0 += at[0] * w0;
  *s1 += at[1] * w1;
  *s2 += at[2] * w2;
  *s3 += at[3] * w3;
}
#endif

/* sums[4 * pixel + channel] = bias[channel] + the taps' weights x four pixels' data, four channels
 * from `channel` on. taps: a pointer for each pixel, of each tap. */
static inline void slw_taps(const int8_t *weights, const int8_t *const *tap, uint32_t taps,
                            uint32_t channel, const int32_t *bias, int32_t *sums) {
  const int8_t *const *first = tap + 4u * (taps % 3u);
  const int8_t *const *end = tap + 4u * taps;
  slw_word a0 = bias[0], a1 = bias[1], a2 = bias[2], a3 = bias[3];
  slw_word b0 = bias[0], b1 = bias[1], b2 = bias[2], b3 = bias[3];
  slw_word c0 = bias[0], c1 = bias[1], c2 = bias[2], c3 = bias[3];
  slw_word d0 = bias[0], d1 = bias[1], d2 = bias[2], d3 = bias[3];
#define SLW_TAP(k)                                                                           \
  {                                                                                          \
    const slw_word w0 = weights[4 * (k)];                                                    \
    const slw_word w1 = weights[4 * (k) + 1];                                                \
    const slw_word w2 = weights[4 * (k) + 2];                                                \
    const slw_word w3 = weights[4 * (k) + 3];                                                \
    slw_mac_pairs(tap[4 * (k)] + channel, w0, w1, w2, w3, &a0, &a1, &a2, &a3);               \
    slw_mac_pairs(tap[4 * (k) + 1] + channel, w0, w1, w2, w3, &b0, &b1, &b2, &b3);           \
    slw_mac_pairs(tap[4 * (k) + 2] + channel, w0, w1, w2, w3, &c0, &c1, &c2, &c3);           \
    slw_mac_pairs(tap[4 * (k) + 3] + channel, w0, w1, w2, w3, &d0, &d1, &d2, &d3);           \
  }
  for (; tap != first; tap += 4, weights += 4) {
    SLW_TAP(0)
  }
  for (; tap != end; tap += 12, weights += 12) {
    SLW_TAP(0)
    SLW_TAP(1)
    SLW_TAP(2)
  }
#undef SLW_TAP
  sums[0] = (int32_t)a0, sums[1] = (int32_t)a1, sums[2] = (int32_t)a2, sums[3] = (int32_t)a3;
  sums[4] = (int32_t)b0, sums[5] = (int32_t)b1, sums[6] = (int32_t)b2, sums[7] = (int32_t)b3;
  sums[8] = (int32_t)c0, sums[9] = (int32_t)c1, sums[10] = (int32_t)c2, sums[11] = (int32_t)c3;
  sums[12] = (int32_t)d0, sums[13] = (int32_t)d1, sums[14] = (int32_t)d2, sums[15] = (int32_t)d3;
}
