/* Sums of 16-bit data for cores with vectors (MVE): eight products are summed by one instruction. */
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)
static inline const int8_t *slw_half_dot(const int8_t *weights, const int16_t *window,
                                         uint32_t size, int32_t *sums) {
  int32_t s0 = sums[0];
  int32_t s1 = sums[1];
  int32_t s2 = sums[2];
  int32_t s3 = sums[3];
  for (const int16_t *end = window + size; window != end; window += 8, weights += 32) {
    const int16x8_t x = vldrhq_s16(window);
    s0 = vmladavaq_s16(s0, x, vldrbq_s16(weights));
    s1 = vmladavaq_s16(s1, x, vldrbq_s16(weights + 8));
    s2 = vmladavaq_s16(s2, x, vldrbq_s16(weights + 16));
    s3 = vmladavaq_s16(s3, x, vldrbq_s16(weights + 24));
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
  return weights;
}

/* Four channels of a depthwise window. */
static inline void slw_half_taps(const int8_t *weights, const int8_t **tap, const int8_t **end,
                                 uint32_t channel, int32_t *sums) {
  int32x4_t total = vldrwq_s32(sums);
  for (; tap != end; ++tap, weights += 4) {
    const int16_t *at = (const int16_t *)(const void *)*tap + channel;
    total = vaddq_s32(total, vmulq_s32(vldrhq_s32(at), vldrbq_s32(weights)));
  }
  vstrwq_s32(sums, total);
}
#else
static inline const int8_t *slw_half_dot(const int8_t *weights, const int16_t *window,
                                         uint32_t size, int32_t *sums) {
  for (const int16_t *end = window + size; window != end; window += 8) {
    for (uint32_t c = 0; c < 4u; ++c, weights += 8) {
      for (uint32_t i = 0; i < 8u; ++i) {
        sums[c] += window[i] * weights[i];
      }
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
