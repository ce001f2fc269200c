/* Functions that generated code calls where the CPU has no instruction: fmod, fma, long division,
 * memory moves.  Compiled to support32.ll / support64.ll by tools/generate_glue.py, and copied in
 * part by the C generator.  A library contains this only if it calls one of them.
 */

typedef signed int slw_s32;
typedef unsigned int slw_w32;
typedef signed long long slw_s64;
typedef unsigned long long slw_w64;

typedef union {
  float f;
  slw_w32 u;
} SlwBits32;

typedef union {
  double f;
  slw_w64 u;
} SlwBits64;

/* BEGIN slw_fmod32 */
/* x - trunc(x / y) * y, exactly, by shifting and subtracting. */
float slw_fmod32(float x, float y);
float slw_fmod32(float x, float y) {
  SlwBits32 a, b;
  slw_w32 sign;
  slw_s32 ea, eb;
  a.f = x;
  b.f = y;
  sign = a.u & 0x80000000U;
  a.u ^= sign;
  b.u &= 0x7FFFFFFFU;
  if (b.u == 0U || b.u > 0x7F800000U || a.u >= 0x7F800000U) {
    return (x * y) / (x * y);
  }
  if (a.u < b.u) {
    return x;
  }
  ea = (slw_s32)(a.u >> 23);
  eb = (slw_s32)(b.u >> 23);
  a.u &= 0x007FFFFFU;
  b.u &= 0x007FFFFFU;
  if (ea != 0) {
    a.u |= 0x00800000U;
  } else { /* a denormal number: its highest bit goes where that of others is */
    for (ea = 1; a.u < 0x00800000U; --ea) {
      a.u <<= 1;
    }
  }
  if (eb != 0) {
    b.u |= 0x00800000U;
  } else { /* a denormal number: its highest bit goes where that of others is */
    for (eb = 1; b.u < 0x00800000U; --eb) {
      b.u <<= 1;
    }
  }
  for (; ea > eb; --ea) {
    if (a.u >= b.u) {
      a.u -= b.u;
    }
    a.u <<= 1;
  }
  if (a.u >= b.u) {
    a.u -= b.u;
  }
  if (a.u == 0U) {
    a.u = sign;
    return a.f;
  }
  for (; a.u < 0x00800000U; --ea) {
    a.u <<= 1;
  }
  if (ea > 0) {
    a.u = (a.u - 0x00800000U) | ((slw_w32)ea << 23);
  } else {
    a.u >>= 1 - ea;
  }
  a.u |= sign;
  return a.f;
}
/* END */

/* BEGIN slw_fmod64 */
double slw_fmod64(double x, double y);
double slw_fmod64(double x, double y) {
  const slw_w64 hidden = 1ULL << 52;
  const slw_w64 infinity = 0x7FFULL << 52;
  SlwBits64 a, b;
  slw_w64 sign;
  slw_s32 ea, eb;
  a.f = x;
  b.f = y;
  sign = a.u & (1ULL << 63);
  a.u ^= sign;
  b.u &= ~(1ULL << 63);
  if (b.u == 0U || b.u > infinity || a.u >= infinity) {
    return (x * y) / (x * y);
  }
  if (a.u < b.u) {
    return x;
  }
  ea = (slw_s32)(a.u >> 52);
  eb = (slw_s32)(b.u >> 52);
  a.u &= hidden - 1U;
  b.u &= hidden - 1U;
  if (ea != 0) {
    a.u |= hidden;
  } else { /* a denormal number: its highest bit goes where that of others is */
    for (ea = 1; a.u < hidden; --ea) {
      a.u <<= 1;
    }
  }
  if (eb != 0) {
    b.u |= hidden;
  } else { /* a denormal number: its highest bit goes where that of others is */
    for (eb = 1; b.u < hidden; --eb) {
      b.u <<= 1;
    }
  }
  for (; ea > eb; --ea) {
    if (a.u >= b.u) {
      a.u -= b.u;
    }
    a.u <<= 1;
  }
  if (a.u >= b.u) {
    a.u -= b.u;
  }
  if (a.u == 0U) {
    a.u = sign;
    return a.f;
  }
  for (; a.u < hidden; --ea) {
    a.u <<= 1;
  }
  if (ea > 0) {
    a.u = (a.u - hidden) | ((slw_w64)(slw_w32)ea << 52);
  } else {
    a.u >>= 1 - ea;
  }
  a.u |= sign;
  return a.f;
}
/* END */

/* BEGIN slw_fma32 */
/* a * b + c rounded once: exact product in double, sum rounded to odd, then to float. */
float slw_fma32(float a, float b, float c);
float slw_fma32(float a, float b, float c) {
  double product = (double)a * (double)b;
  double addend = (double)c;
  SlwBits64 sum;
  double part, error;
  sum.f = product + addend;
  part = sum.f - product;
  error = (product - (sum.f - part)) + (addend - part);
  if (error - error == 0.0 && error != 0.0 && (sum.u & 1U) == 0U) {
    sum.u = ((error > 0.0) == (sum.f > 0.0)) ? sum.u + 1U : sum.u - 1U;
  }
  return (float)sum.f;
}
/* END */

/* BEGIN slw_fma64 */
/* a * b + c rounded once (Boldo and Melquiond), while no step over- or underflows. */
double slw_fma64(double a, double b, double c);
double slw_fma64(double a, double b, double c) {
  const slw_w64 head = ~((1ULL << 27) - 1U);
  SlwBits64 ah, bh, odd;
  double al, bl, high, low, t, tl, part, v, vl, error;
  high = a * b;
  if (!(high - high == 0.0)) {
    return high + c;
  }
  ah.f = a;
  bh.f = b;
  ah.u &= head;
  bh.u &= head;
  al = a - ah.f;
  bl = b - bh.f;
  low = ((ah.f * bh.f - high) + ah.f * bl + al * bh.f) + al * bl;
  t = c + low;
  part = t - c;
  tl = (c - (t - part)) + (low - part);
  v = high + t;
  part = v - high;
  vl = (high - (v - part)) + (t - part);
  odd.f = tl + vl;
  part = odd.f - tl;
  error = (tl - (odd.f - part)) + (vl - part);
  if (error != 0.0 && (odd.u & 1U) == 0U) {
    odd.u = ((error > 0.0) == (odd.f > 0.0)) ? odd.u + 1U : odd.u - 1U;
  }
  return v + odd.f;
}
/* END */

slw_w64 __udivdi3(slw_w64 n, slw_w64 d);
slw_w64 __umoddi3(slw_w64 n, slw_w64 d);
slw_s64 __divdi3(slw_s64 n, slw_s64 d);
slw_s64 __moddi3(slw_s64 n, slw_s64 d);
void *memcpy(void *to, const void *from, __SIZE_TYPE__ size);
void *memmove(void *to, const void *from, __SIZE_TYPE__ size);
void *memset(void *to, int value, __SIZE_TYPE__ size);

slw_w64 __udivdi3(slw_w64 n, slw_w64 d) {
  slw_w64 quotient = 0;
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

slw_w64 __umoddi3(slw_w64 n, slw_w64 d) { return n - __udivdi3(n, d) * d; }

slw_s64 __divdi3(slw_s64 n, slw_s64 d) {
  slw_w64 a = n < 0 ? 0U - (slw_w64)n : (slw_w64)n;
  slw_w64 b = d < 0 ? 0U - (slw_w64)d : (slw_w64)d;
  slw_w64 q = __udivdi3(a, b);
  return (slw_s64)((n < 0) != (d < 0) ? 0U - q : q);
}

slw_s64 __moddi3(slw_s64 n, slw_s64 d) {
  return (slw_s64)((slw_w64)n - (slw_w64)__divdi3(n, d) * (slw_w64)d);
}

void *memcpy(void *to, const void *from, __SIZE_TYPE__ size) {
  char *out = (char *)to;
  const char *in = (const char *)from;
  while (size-- != 0U) {
    *out++ = *in++;
  }
  return to;
}

void *memmove(void *to, const void *from, __SIZE_TYPE__ size) {
  char *out = (char *)to;
  const char *in = (const char *)from;
  if (out <= in) {
    return memcpy(to, from, size);
  }
  while (size-- != 0U) {
    out[size] = in[size];
  }
  return to;
}

void *memset(void *to, int value, __SIZE_TYPE__ size) {
  char *out = (char *)to;
  while (size-- != 0U) {
    *out++ = (char)value;
  }
  return to;
}
