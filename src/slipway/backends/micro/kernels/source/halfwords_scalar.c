/* Sums of 16-bit data for cores that only multiply words: an element of the window, then its weights. */
static inline const int8_t *slw_half_dot(const int8_t *weights, const int16_t *window,
                                         uint32_t size, int32_t *sums) {
  const int16_t *end = window + size;
  int32_t s0 = sums[0];
  int32_t s1 = sums[1];
  int32_t s2 = sums[2];
  int32_t s3 = sums[3];
#define SLW_STEP(k)               \
  {                               \
    const int32_t x = window[k];  \
    s0 += x * weights[4 * (k)];     \
    s1 += x * weights[4 * (k) + 1]; \
    s2 += x * weights[4 * (k) + 2]; \
    s3 += x * weights[4 * (k) + 3]; \
  }
  SLW_ROLLED for (; window != end; window += 4, weights += 16) {
    SLW_STEP(0)
    SLW_STEP(1)
    SLW_STEP(2)
    SLW_STEP(3)
  }
#undef SLW_STEP
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
  return weights;
}

/* Four channels of a depthwise window. */
static inline void slw_half_taps(const int8_t *weights, const int8_t **tap, const int8_t **end,
                                 uint32_t channel, int32_t *sums) {
  int32_t s0 = sums[0];
  int32_t s1 = sums[1];
  int32_t s2 = sums[2];
  int32_t s3 = sums[3];
  SLW_ROLLED for (; tap != end; ++tap, weights += 4) {
    const int16_t *at = (const int16_t *)(const void *)*tap + channel;
    s0 += at[0] * weights[0];
    s1 += at[1] * weights[1];
    s2 += at[2] * weights[2];
    s3 += at[3] * weights[3];
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}
