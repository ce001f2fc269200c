/* The sum of two quantised tensors by vectors (MVE), as TFLite's reference kernels compute it: both are shifted left by
 * `left` bits and scaled to a common scale, their sum is scaled to the output's.  No shift but that
 * one is to the left, which whoever chose this kernel has checked.
 */
struct slw_scaling {
  int32_t multiplier, shift;
};

struct slw_addition {
  struct slw_scaling a, b, out;
  int32_t zero_a, zero_b, zero, low, high, left;
  uint32_t size;
};

#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__)
static inline int32x4_t slw_scaled(int32x4_t v, const struct slw_scaling *scaling) {
  v = vqrdmulhq_n_s32(v, scaling->multiplier);
  /* A shift by 0 rounds nothing: its bits are all zero, and those of the others begin with a one. */
  v = vaddq_s32(v, vshrq_n_s32(vandq_s32(v, vdupq_n_s32(scaling->shift)), 31));
  return vrshlq_n_s32(v, scaling->shift);
}

static SLW_SHARED void slw_add_int8(const struct slw_addition *layer, const int8_t *a,
                                    const int8_t *b, int8_t *out) {
  const struct slw_addition add = *layer;
  const int32x4_t low = vdupq_n_s32(add.low);
  const int32x4_t high = vdupq_n_s32(add.high);
  for (uint32_t i = 0; i < add.size; i += 4u) {
    const mve_pred16_t active = vctp32q(add.size - i);
    int32x4_t x = vaddq_n_s32(vldrbq_z_s32(a + i, active), -add.zero_a);
    int32x4_t y = vaddq_n_s32(vldrbq_z_s32(b + i, active), -add.zero_b);
    x = slw_scaled(vshlq_r_s32(x, add.left), &add.a);
    y = slw_scaled(vshlq_r_s32(y, add.left), &add.b);
    x = vaddq_n_s32(slw_scaled(vaddq_s32(x, y), &add.out), add.zero);
    vstrbq_p_s32(out + i, vminq_s32(vmaxq_s32(x, low), high), active);
  }
}
#else
/* sum * multiplier * 2^(shift - 31) with both roundings; shift is at most 0. */
static inline int32_t slw_scaled(int32_t sum, struct slw_scaling scaling) {
  int32_t value = (int32_t)(((int64_t)sum * scaling.multiplier + 1073741824) >> 31);
  if (scaling.shift != 0) {
    value += (value >> 31) + (int32_t)(1u << ~scaling.shift);
    value >>= -scaling.shift;
  }
  return value;
}

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
