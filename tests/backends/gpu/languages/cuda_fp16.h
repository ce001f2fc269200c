/* CUDA's float16, as far as kernels use it. */
#pragma once
#include "half.h"

using __half = slw::Half;

inline __half __ushort_as_half(uint16_t bits) {
  __half made;
  made.bits = bits;
  return made;
}
inline uint16_t __half_as_ushort(__half value) { return value.bits; }
inline float __half2float(__half value) { return value; }
inline __half __float2half_rn(float value) { return value; }
inline __half __hfma(__half a, __half b, __half c) { return slw::half_fma(a, b, c); }
