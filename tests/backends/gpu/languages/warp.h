/* Products of a warp as NVIDIA's PTX describes them: which element is in which thread's register.
 *
 * For m16n8k16 of 16 bits and m16n8k32 of 8 bits, thread 4 g + t has, in 32 bits each, of A row g,
 * row g + 8, then both again from the second half of the steps; of B, column g of both halves; of C
 * and D two columns from 2 t on, of row g and of row g + 8.  Four bytes begin at byte 4 t of a half.
 */
#pragma once
#include "exchange.h"

namespace slw {

struct Registers {
  uint32_t a[4], b[2], c[4];
};
inline Registers of_threads[1024];

inline float as_float(uint32_t bits) {
  float made;
  memcpy(&made, &bits, 4);
  return made;
}

inline uint32_t as_bits(float value) {
  uint32_t made;
  memcpy(&made, &value, 4);
  return made;
}

inline float half_value(uint32_t bits) {
  const uint32_t size = bits & 0x7fff;
  float value = size >= 0x7c00 ? (size == 0x7c00 ? INFINITY : NAN)
                : size < 0x400 ? std::ldexp((float)size, -24)
                               : std::ldexp((float)(size % 1024 + 1024), (int)(size >> 10) - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

/* Element `at` of four bytes. */
struct Half {
  static constexpr int count = 2;
  static float value(uint32_t word, int at) { return half_value(word >> (16 * at) & 0xffff); }
};
struct Bfloat {
  static constexpr int count = 2;
  static float value(uint32_t word, int at) { return as_float(word >> (16 * at) << 16); }
};
struct Signed {
  static constexpr int count = 4;
  static int32_t value(uint32_t word, int at) { return (int8_t)(word >> (8 * at)); }
};
struct Unsigned {
  static constexpr int count = 4;
  static int32_t value(uint32_t word, int at) { return (uint8_t)(word >> (8 * at)); }
};

template <class A, class B, class Sum>
void warp_product(const uint32_t *a, const uint32_t *b, uint32_t *c) {
  const size_t self = now.at, warp = self & ~size_t{31};
  const size_t lane = self & 31, g = lane >> 2, t = lane & 3;
  Registers &own = of_threads[self];
  memcpy(own.a, a, sizeof own.a);
  memcpy(own.b, b, sizeof own.b);
  memcpy(own.c, c, sizeof own.c);
  meet();
  for (size_t at = 0; at < 4; ++at) {
    const size_t column = 2 * t + at % 2;
    Sum sum = 0;
    for (size_t half = 0; half < 2; ++half) {
      for (size_t four = 0; four < 4; ++four) {
        const uint32_t left = of_threads[warp + 4 * g + four].a[at / 2 + 2 * half];
        const uint32_t right = of_threads[warp + 4 * column + four].b[half];
        for (int i = 0; i < A::count; ++i) {
          sum += (Sum)A::value(left, i) * (Sum)B::value(right, i);
        }
      }
    }
    if constexpr (std::is_same_v<Sum, float>) {
      c[at] = as_bits(as_float(own.c[at]) + sum);
    } else {
      c[at] = own.c[at] + (uint32_t)sum;
    }
  }
  meet();
}

} // namespace slw

/* A model of each instruction on registers, and, for CUDA C, the function that uses it. */
#define SLW_WARP_PRODUCTS
#define SLW_WARP(name, A, B, Sum)                                                                 \
  extern "C" __attribute__((used)) inline void slw_model_##name(                                  \
      const uint32_t *a, const uint32_t *b, uint32_t *c) {                                        \
    slw::warp_product<A, B, Sum>(a, b, c);                                                        \
  }                                                                                               \
  inline void slw_warp_##name(const void *a0, const void *a1, const void *b, Sum *c0, Sum *c1) {  \
    const uint32_t *p = (const uint32_t *)a0, *q = (const uint32_t *)a1;                          \
    const uint32_t rows[4] = {p[0], q[0], p[1], q[1]};                                            \
    uint32_t sums[4];                                                                             \
    memcpy(sums, c0, 8);                                                                          \
    memcpy(sums + 2, c1, 8);                                                                      \
    slw_model_##name(rows, (const uint32_t *)b, sums);                                            \
    memcpy(c0, sums, 8);                                                                          \
    memcpy(c1, sums + 2, 8);                                                                      \
  }
SLW_WARP(f16, slw::Half, slw::Half, float)
SLW_WARP(bf16, slw::Bfloat, slw::Bfloat, float)
SLW_WARP(s8_s8, slw::Signed, slw::Signed, int32_t)
SLW_WARP(s8_u8, slw::Signed, slw::Unsigned, int32_t)
SLW_WARP(u8_s8, slw::Unsigned, slw::Signed, int32_t)
SLW_WARP(u8_u8, slw::Unsigned, slw::Unsigned, int32_t)
