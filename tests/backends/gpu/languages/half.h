/* A number of sixteen bits, which not every compiler of C++ has: computed in float, rounded once. */
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace slw {
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    const uint16_t sign = (uint16_t)(word >> 16 & 0x8000);
    const float size = std::fabs(value);
    if (size != size) {
      bits = sign | 0x7e00;
    } else if (size >= 65520.0F) {
      bits = sign | 0x7c00;
    } else {
      int power; /* of what is below the least normal number, that of it */
      std::frexp(size, &power);
      power = power < -13 || size == 0 ? -13 : power;
      const int parts = (int)std::nearbyint(std::ldexp(size, 11 - power)); /* to even */
      bits = (uint16_t)(sign | (parts + ((power + 13) << 10)));
    }
  }
  operator float() const {
    const int size = bits & 0x7fff;
    const float value = size >= 0x7c00 ? (size == 0x7c00 ? INFINITY : NAN)
                        : size < 0x400 ? std::ldexp((float)size, -24)
                                       : std::ldexp((float)(size % 1024 + 1024), size / 1024 - 25);
    return (bits & 0x8000) != 0 ? -value : value;
  }
  Half operator-() const {
    Half made;
    made.bits = (uint16_t)(bits ^ 0x8000);
    return made;
  }
};
inline Half half_fma(Half a, Half b, Half c) {
  /* The product and the sum have 53 bits at most, but of what lies far apart. */
  return (float)std::fma((double)(float)a, (double)(float)b, (double)(float)c);
}
} // namespace slw
