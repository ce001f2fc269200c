/* Layers whose constants lie in one stream of words: for each group of channels their biases and
 * their weights; behind all of them, for each channel, its multiplier, its rounding term
 * (2 * zero point + 1) << right, and `right`, its right shift less 1: of one group where all channels
 * have the same.
 *
 * Twice a sum becomes an output by two roundings, as slw_requantize_plain has it.
 */
#if defined(__ARM_FEATURE_SIMD32) && defined(__OPTIMIZE__)
#define SLW_SCALE(sum, multiplier, half, right, to) \
  "smmulr " sum ", " sum ", " multiplier "\n"       \
  "add " sum ", " sum ", " sum ", asr #31\n"        \
  "add " sum ", " sum ", " half "\n"                \
  "asr " sum ", " sum ", " right "\n"               \
  "ssat " sum ", #8, " sum ", asr #1\n"             \
  "strb " sum ", " to "\n"
#endif
static inline int8_t slw_output_at(int32_t sum, const uint32_t *scale) {
  const int32_t value = slw_high_product(sum, (int32_t)scale[0]);
  return slw_saturate_half((value + (value >> 31) + (int32_t)scale[1]) >> scale[2]);
}
