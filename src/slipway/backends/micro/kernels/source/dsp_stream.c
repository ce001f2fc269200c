/* Layers whose constants lie in one stream of words, by groups of channels: their biases, their weights,
 * and how their sums become outputs, which is one of two:
 *
 * - `exact`: for each channel its multiplier, its rounding term (2 * zero point + 1) << right, and
 *   `right`, its right shift less 1.  Twice a sum becomes an output by two roundings, as
 *   slw_requantize_plain has it.
 * - `line`: for all of them a right shift, then for each its multiplier.  256 times a sum, to which the
 *   bias has added what is rounded and the zero point, is multiplied and shifted once.  Whoever chose
 *   these kernels has checked that every sum gives the same output as by two roundings.
 */
#if defined(__ARM_FEATURE_SIMD32) && defined(__OPTIMIZE__)
#define SLW_SCALE(sum, multiplier, half, right, to) \
  "smmulr " sum ", " sum ", " multiplier "\n"       \
  "add " sum ", " sum ", " sum ", asr #31\n"        \
  "add " sum ", " sum ", " half "\n"                \
  "asr " sum ", " sum ", " right "\n"               \
  "ssat " sum ", #8, " sum ", asr #1\n"             \
  "strb " sum ", [" to "], #1\n"
#define SLW_LINE(sum, multiplier, right, to)   \
  "smmul " sum ", " sum ", " multiplier "\n"  \
  "asr " sum ", " sum ", " right "\n"         \
  "ssat " sum ", #8, " sum "\n"               \
  "strb " sum ", [" to "], #1\n"
#endif
static inline int8_t slw_output_at(int32_t sum, const uint32_t *scale) {
  const int32_t value = slw_high_product(sum, (int32_t)scale[0]);
  return slw_saturate_half((value + (value >> 31) + (int32_t)scale[1]) >> scale[2]);
}
/* The output of channel `c` of a group whose scales these are, from 256 times its sum. */
static inline int8_t slw_line_at(int32_t sum, const uint32_t *scales, uint32_t c) {
  const int32_t value = (int32_t)(((int64_t)sum * (int32_t)scales[1u + c]) >> 32) >> scales[0];
  return (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
}
