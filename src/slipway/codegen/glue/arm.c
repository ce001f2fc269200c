/* The helpers of the ARM run-time ABI that LLVM calls on 32-bit ARM: division, and conversion
 * between 64-bit integers and floating point.  Compiled to arm.ll by tools/generate_glue.py,
 * which adds __aeabi_ldivmod and __aeabi_uldivmod (their results have no spelling in C).
 */

typedef signed int s32;
typedef unsigned int u32;
typedef signed long long s64;
typedef unsigned long long u64;

#define BASE __attribute__((pcs("aapcs")))

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

static u64 of_double(double value) {
  Double in;
  int exponent;
  u64 bits;
  in.f = value;
  exponent = (int)((in.u >> 52) & 0x7FFU) - 1023;
  bits = (in.u & ((1ULL << 52) - 1U)) | (1ULL << 52);
  if (exponent < 0) {
    return 0;
  }
  if (exponent > 63) {
    return ~0ULL;
  }
  return exponent <= 52 ? bits >> (52 - exponent) : bits << (exponent - 52);
}

BASE u64 __aeabi_d2ulz(double value);
BASE u64 __aeabi_d2ulz(double value) { return value < 0.0 ? 0U : of_double(value); }

BASE s64 __aeabi_d2lz(double value);
BASE s64 __aeabi_d2lz(double value) {
  u64 size = of_double(value);
  return (s64)(value < 0.0 ? 0U - size : size);
}

BASE u64 __aeabi_f2ulz(float value);
BASE u64 __aeabi_f2ulz(float value) { return __aeabi_d2ulz((double)value); }

BASE s64 __aeabi_f2lz(float value);
BASE s64 __aeabi_f2lz(float value) { return __aeabi_d2lz((double)value); }
