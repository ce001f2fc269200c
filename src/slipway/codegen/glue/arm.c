/* The helpers of the ARM run-time ABI that LLVM calls on 32-bit ARM: division, products and shifts
 * of 64 bits, leading zeros, and conversion between 64-bit integers and floating point, of which only the bits are
 * looked at: a processor may have no instruction for more.  Compiled to arm.ll by
 * tools/generate_glue.py, which adds __aeabi_ldivmod and __aeabi_uldivmod (their results have no
 * spelling in C).
 */

typedef signed int s32;
typedef unsigned int u32;
typedef signed long long s64;
typedef unsigned long long u64;

#define BASE __attribute__((pcs("aapcs")))

/* Thumb of ARMv6 has none of these, and small code calls the shifts on all others, too. */
BASE int __clzsi2(u32 value);
BASE int __clzsi2(u32 value) {
  int count = value == 0U ? 1 : 0;
  int step;
  for (step = 16; step != 0; step >>= 1) {
    if ((value >> (32 - step)) == 0U) {
      count += step;
      value <<= step;
    }
  }
  return count;
}

BASE u64 __aeabi_lmul(u64 a, u64 b);
BASE u64 __aeabi_lmul(u64 a, u64 b) {
  u32 low = (u32)a & 0xFFFFU;
  u32 other = (u32)b & 0xFFFFU;
  u32 cross = ((u32)a >> 16) * other;
  u32 middle;
  u32 high;
  __asm__("" : "+r"(cross)); /* else a compiler sees what product this is, and calls it */
  middle = low * ((u32)b >> 16) + (cross & 0xFFFFU) + ((low * other) >> 16);
  high = ((u32)a >> 16) * ((u32)b >> 16) + (cross >> 16) + (middle >> 16);
  high += (u32)a * (u32)(b >> 32) + (u32)(a >> 32) * (u32)b;
  return ((u64)high << 32) | ((u32)a * (u32)b);
}

BASE u64 __aeabi_llsl(u64 value, int count);
BASE u64 __aeabi_llsl(u64 value, int count) {
  u32 low = (u32)value;
  u32 high = (u32)(value >> 32);
  if (count >= 32) {
    return (u64)(low << (count - 32)) << 32;
  }
  if (count > 0) {
    high = (high << count) | (low >> (32 - count));
    low <<= count;
  }
  return ((u64)high << 32) | low;
}

BASE u64 __aeabi_llsr(u64 value, int count);
BASE u64 __aeabi_llsr(u64 value, int count) {
  u32 low = (u32)value;
  u32 high = (u32)(value >> 32);
  if (count >= 32) {
    return high >> (count - 32);
  }
  if (count > 0) {
    low = (low >> count) | (high << (32 - count));
    high >>= count;
  }
  return ((u64)high << 32) | low;
}

BASE s64 __aeabi_lasr(s64 value, int count);
BASE s64 __aeabi_lasr(s64 value, int count) {
  u64 bits = value < 0 ? ~(u64)value : (u64)value;
  bits = __aeabi_llsr(bits, count);
  return (s64)(value < 0 ? ~bits : bits);
}

/* The numerator and remainder shift through the loop; 32 steps always. */
BASE u64 __aeabi_uidivmod(u32 n, u32 d);
BASE u64 __aeabi_uidivmod(u32 n, u32 d) {
  u32 quotient = 0;
  u32 rest = 0;
  int bit;
  for (bit = 31; bit >= 0; --bit) {
    u32 top = rest >> 31;
    rest = (rest << 1) | ((n >> bit) & 1U);
    if (top != 0U || rest >= d) {
      rest -= d;
      quotient |= 1U << bit;
    }
  }
  return ((u64)rest << 32) | quotient;
}

BASE u32 __aeabi_uidiv(u32 n, u32 d);
BASE u32 __aeabi_uidiv(u32 n, u32 d) { return (u32)__aeabi_uidivmod(n, d); }

BASE u64 __aeabi_idivmod(s32 n, s32 d);
BASE u64 __aeabi_idivmod(s32 n, s32 d) {
  u64 both = __aeabi_uidivmod(n < 0 ? 0U - (u32)n : (u32)n, d < 0 ? 0U - (u32)d : (u32)d);
  u32 quotient = (u32)both;
  u32 rest = (u32)(both >> 32);
  quotient = (n < 0) != (d < 0) ? 0U - quotient : quotient;
  rest = n < 0 ? 0U - rest : rest;
  return ((u64)rest << 32) | quotient;
}

BASE s32 __aeabi_idiv(s32 n, s32 d);
BASE s32 __aeabi_idiv(s32 n, s32 d) { return (s32)(u32)__aeabi_idivmod(n, d); }

u64 slw_udiv64(u64 n, u64 d);
u64 slw_udiv64(u64 n, u64 d) {
  u64 quotient = 0;
  int shift = 0;
  while ((d >> 63) == 0U && (d << 1) <= n) {
    d <<= 1;
    ++shift;
  }
  for (; shift >= 0; --shift) {
    quotient <<= 1;
    if (n >= d) {
      n -= d;
      quotient |= 1U;
    }
    d >>= 1;
  }
  return quotient;
}

s64 slw_div64(s64 n, s64 d);
s64 slw_div64(s64 n, s64 d) {
  u64 a = n < 0 ? 0U - (u64)n : (u64)n;
  u64 b = d < 0 ? 0U - (u64)d : (u64)d;
  u64 q = slw_udiv64(a, b);
  return (s64)((n < 0) != (d < 0) ? 0U - q : q);
}

typedef union {
  float f;
  u32 u;
} Single;

typedef union {
  double f;
  u64 u;
} Double;

/* Round the magnitude to nearest even; sign already taken off. */
static u32 to_single(u64 value) {
  int exponent = 127 + 63;
  u32 bits;
  u64 rest;
  if (value == 0U) {
    return 0;
  }
  while ((value >> 63) == 0U) {
    value <<= 1;
    --exponent;
  }
  bits = ((u32)exponent << 23) + ((u32)(value >> 40) - (1U << 23));
  rest = value << 24;
  return bits + (rest > (1ULL << 63) || (rest == (1ULL << 63) && (bits & 1U) != 0U) ? 1U : 0U);
}

static u64 to_double(u64 value) {
  int exponent = 1023 + 63;
  u64 bits;
  u64 rest;
  if (value == 0U) {
    return 0;
  }
  while ((value >> 63) == 0U) {
    value <<= 1;
    --exponent;
  }
  bits = ((u64)(u32)exponent << 52) + ((value >> 11) - (1ULL << 52));
  rest = value << 53;
  return bits + (rest > (1ULL << 63) || (rest == (1ULL << 63) && (bits & 1U) != 0U) ? 1U : 0U);
}

static u64 magnitude(s64 value) { return value < 0 ? 0U - (u64)value : (u64)value; }

BASE float __aeabi_ul2f(u64 value);
BASE float __aeabi_ul2f(u64 value) {
  Single out;
  out.u = to_single(value);
  return out.f;
}

BASE float __aeabi_l2f(s64 value);
BASE float __aeabi_l2f(s64 value) {
  Single out;
  out.u = to_single(magnitude(value)) | (value < 0 ? 0x80000000U : 0U);
  return out.f;
}

BASE double __aeabi_ul2d(u64 value);
BASE double __aeabi_ul2d(u64 value) {
  Double out;
  out.u = to_double(value);
  return out.f;
}

BASE double __aeabi_l2d(s64 value);
BASE double __aeabi_l2d(s64 value) {
  Double out;
  out.u = to_double(magnitude(value)) | (value < 0 ? 1ULL << 63 : 0U);
  return out.f;
}

/* The size of a number of these bits, cut to an integer; too large: the largest one. */
static u64 of_double(u64 in) {
  int exponent = (int)((in >> 52) & 0x7FFU) - 1023;
  u64 bits = (in & ((1ULL << 52) - 1U)) | (1ULL << 52);
  if (exponent < 0) {
    return 0;
  }
  if (exponent > 63) {
    return ~0ULL;
  }
  return exponent <= 52 ? bits >> (52 - exponent) : bits << (exponent - 52);
}

/* A float's bits as a double's; numbers that round to zero here become zero. */
static u64 widened(u32 in) {
  u64 sign = (u64)(in >> 31) << 63;
  u32 exponent = (in >> 23) & 0xFFU;
  if (exponent == 0U) {
    return sign;
  }
  exponent = exponent == 0xFFU ? 0x7FFU : exponent + 1023U - 127U;
  return sign | ((u64)exponent << 52) | ((u64)(in & 0x7FFFFFU) << 29);
}

static u64 unsigned_of(u64 in) { return (in >> 63) != 0U ? 0U : of_double(in); }

static s64 signed_of(u64 in) {
  u64 size = of_double(in);
  return (s64)((in >> 63) != 0U ? 0U - size : size);
}

BASE u64 __aeabi_d2ulz(double value);
BASE u64 __aeabi_d2ulz(double value) {
  Double in;
  in.f = value;
  return unsigned_of(in.u);
}

BASE s64 __aeabi_d2lz(double value);
BASE s64 __aeabi_d2lz(double value) {
  Double in;
  in.f = value;
  return signed_of(in.u);
}

BASE u64 __aeabi_f2ulz(float value);
BASE u64 __aeabi_f2ulz(float value) {
  Single in;
  in.f = value;
  return unsigned_of(widened(in.u));
}

BASE s64 __aeabi_f2lz(float value);
BASE s64 __aeabi_f2lz(float value) {
  Single in;
  in.f = value;
  return signed_of(widened(in.u));
}
