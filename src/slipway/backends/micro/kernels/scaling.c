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
