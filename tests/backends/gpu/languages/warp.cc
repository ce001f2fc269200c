/* The models of warp.h. */
#include "warp.h"

#include <string.h>

#include <cmath>

#include "fibres.h"

namespace slw {

struct Registers {
  uint32_t a[4], b[2], c[4];
};
static Registers of_threads[1024];

static float as_float(uint32_t bits) {
  float made;
  memcpy(&made, &bits, 4);
  return made;
}

static uint32_t as_bits(float value) {
  uint32_t made;
  memcpy(&made, &value, 4);
  return made;
}

static float half_value(uint32_t bits) {
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

/* Of `rows` rows of eight, and `halves` of the depth: those of sm_75 are parts of the others. */
template <class A, class B, class Sum, size_t rows, size_t halves>
static void warp_product(const uint32_t *a, const uint32_t *b, uint32_t *c) {
  const size_t self = fibres.at, warp = self & ~size_t{31};
  const size_t lane = self & 31, g = lane >> 2, t = lane & 3;
  Registers &own = of_threads[self];
  memcpy(own.a, a, 4 * rows * halves);
  memcpy(own.b, b, 4 * halves);
  memcpy(own.c, c, 8 * rows);
  meet();
  for (size_t at = 0; at < 2 * rows; ++at) {
    const size_t column = 2 * t + at % 2;
    Sum sum = 0;
    for (size_t half = 0; half < halves; ++half) {
      for (size_t four = 0; four < 4; ++four) {
        const uint32_t left = of_threads[warp + 4 * g + four].a[at / 2 + rows * half];
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

/* AMD's of 16 x 16 by 16: thread 16 h + j gives row j of A and column j of B, whatever h, and has of column
 * j rows h, h + 2, and so on (AMD's RDNA3 instruction set architecture, section 7.9).  Threads of both
 * halves that give other rows or columns make nothing of it. */
struct Rows {
  uint32_t a[8], b[8];
};
static Rows given[1024];

template <class A, class B, class Sum>
static void wmma(const uint32_t *a, const uint32_t *b, uint32_t *c) {
  constexpr size_t words = 16 / A::count;
  const size_t self = fibres.at, wave = self & ~size_t{31};
  const size_t h = (self & 31) >> 4, j = self & 15;
  memcpy(given[self].a, a, 4 * words);
  memcpy(given[self].b, b, 4 * words);
  meet();
  const bool alike = memcmp(&given[self], &given[self ^ 16], 4 * words) == 0 &&
                     memcmp(given[self].b, given[self ^ 16].b, 4 * words) == 0;
  for (size_t at = 0; at < 8; ++at) {
    Sum sum = 0;
    for (size_t word = 0; word < words; ++word) {
      for (int i = 0; i < A::count; ++i) {
        sum += (Sum)A::value(given[wave + 2 * at + h].a[word], i) *
               (Sum)B::value(given[wave + j].b[word], i);
      }
    }
    if constexpr (std::is_same_v<Sum, float>) {
      c[at] = as_bits(as_float(c[at]) + sum);
    } else {
      c[at] += (uint32_t)sum;
    }
    c[at] = alike ? c[at] : 0xffffffffU;
  }
  meet();
}

/* The same on RDNA 4: thread 16 h + j gives steps 8 h to 8 h + 7 of row j of A and of column j of B, and has
 * rows 8 h to 8 h + 7 of column j (AMD's RDNA4 instruction set architecture, section 7.12). */
template <class A, class B, class Sum>
static void wmma12(const uint32_t *a, const uint32_t *b, uint32_t *c) {
  constexpr size_t words = 8 / A::count;
  const size_t self = fibres.at, wave = self & ~size_t{31};
  const size_t h = (self & 31) >> 4, j = self & 15;
  memcpy(given[self].a, a, 4 * words);
  memcpy(given[self].b, b, 4 * words);
  meet();
  for (size_t at = 0; at < 8; ++at) {
    Sum sum = 0;
    for (size_t half = 0; half < 32; half += 16) {
      for (size_t word = 0; word < words; ++word) {
        for (int i = 0; i < A::count; ++i) {
          sum += (Sum)A::value(given[wave + half + 8 * h + at].a[word], i) *
                 (Sum)B::value(given[wave + half + j].b[word], i);
        }
      }
    }
    if constexpr (std::is_same_v<Sum, float>) {
      c[at] = as_bits(as_float(c[at]) + sum);
    } else {
      c[at] += (uint32_t)sum;
    }
  }
  meet();
}

/* CDNA's of 16 x 16, of waves of 64: thread 16 g + j gives `words` of row j of A and of column j of B, the g-th
 * of four parts, and has rows 4 g to 4 g + 3 of column j (AMD's CDNA3 instruction set architecture, 7.1.4). */
template <class A, class B, class Sum, size_t words>
static void mfma(const uint32_t *a, const uint32_t *b, uint32_t *c) {
  const size_t self = fibres.at, wave = self & ~size_t{63};
  const size_t g = (self & 63) >> 4, j = self & 15;
  memcpy(given[self].a, a, 4 * words);
  memcpy(given[self].b, b, 4 * words);
  meet();
  for (size_t at = 0; at < 4; ++at) {
    Sum sum = 0;
    for (size_t part = 0; part < 64; part += 16) {
      for (size_t word = 0; word < words; ++word) {
        for (int i = 0; i < A::count; ++i) {
          sum += (Sum)A::value(given[wave + part + 4 * g + at].a[word], i) *
                 (Sum)B::value(given[wave + part + j].b[word], i);
        }
      }
    }
    if constexpr (std::is_same_v<Sum, float>) {
      c[at] = as_bits(as_float(c[at]) + sum);
    } else {
      c[at] += (uint32_t)sum;
    }
  }
  meet();
}

struct Whole {
  static constexpr int count = 1;
  static float value(uint32_t word, int) { return as_float(word); }
};

} // namespace slw

#define SLW_MFMA(name, A, Sum, words)                                                             \
  extern "C" void slw_model_mfma_##name(const uint32_t *a, const uint32_t *b, uint32_t *c) {      \
    slw::mfma<slw::A, slw::A, Sum, words>(a, b, c);                                               \
  }
SLW_MFMA(f16, Half, float, 2)
SLW_MFMA(bf16, Bfloat, float, 2)
SLW_MFMA(f32, Whole, float, 1)
SLW_MFMA(s8, Signed, int32_t, 1)
SLW_MFMA(s8_wide, Signed, int32_t, 2)

#define SLW_WARP(name, A, B, Sum)                                                                 \
  extern "C" void slw_model_wmma12_##name(const uint32_t *a, const uint32_t *b, uint32_t *c) {    \
    slw::wmma12<slw::A, slw::B, Sum>(a, b, c);                                                    \
  }
SLW_WARP_PRODUCTS
#undef SLW_WARP

#define SLW_WARP(name, A, B, Sum)                                                                 \
  extern "C" void slw_model_wmma_##name(const uint32_t *a, const uint32_t *b, uint32_t *c) {      \
    slw::wmma<slw::A, slw::B, Sum>(a, b, c);                                                      \
  }
SLW_WARP_PRODUCTS
#undef SLW_WARP

#define SLW_WARP(name, A, B, Sum)                                                                 \
  extern "C" void slw_model_##name(const uint32_t *a, const uint32_t *b, uint32_t *c) {           \
    slw::warp_product<slw::A, slw::B, Sum, 2, 2>(a, b, c);                                        \
  }
SLW_WARP_PRODUCTS
#undef SLW_WARP

#define SLW_WARP(name, A, B, Sum)                                                                 \
  extern "C" void slw_model_part_##name(const uint32_t *a, const uint32_t *b, uint32_t *c) {      \
    slw::warp_product<slw::A, slw::B, Sum, std::is_same_v<Sum, float> ? 2 : 1, 1>(a, b, c);       \
  }
SLW_WARP_PRODUCTS
