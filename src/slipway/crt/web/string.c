/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a C library and of a compiler's that the runtime, and what compilers emit, may
 * call.  Copies are one instruction of WebAssembly (bulk memory), so that none calls itself. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size_bytes) {
  return __builtin_memcpy(to, from, size_bytes);
}

void *memmove(void *to, const void *from, size_t size_bytes) {
  return __builtin_memmove(to, from, size_bytes);
}

void *memset(void *to, int value, size_t size_bytes) {
  return __builtin_memset(to, value, size_bytes);
}

int memcmp(const void *a, const void *b, size_t size_bytes) {
  const unsigned char *x = a;
  const unsigned char *y = b;
  for (size_t i = 0; i < size_bytes; ++i) {
    if (x[i] != y[i]) {
      return (x[i] < y[i]) ? -1 : 1;
    }
  }
  return 0;
}

void *memchr(const void *at, int value, size_t size_bytes) {
  const unsigned char *from = at;
  for (size_t i = 0; i < size_bytes; ++i) {
    if (from[i] == (unsigned char)value) {
      return (void *)(uintptr_t)(from + i);
    }
  }
  return NULL;
}

int strcmp(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return (int)(unsigned char)*a - (int)(unsigned char)*b;
}

size_t strlen(const char *text) {
  const volatile char *at = text; /* volatile: else the loop becomes a call of strlen */
  while (*at != '\0') {
    ++at;
  }
  return (size_t)(at - (const volatile char *)text);
}

/* The product of two 128-bit numbers: how compilers check a 64-bit product for overflow. */
__extension__ typedef unsigned __int128 u128;

u128 __multi3(u128 a, u128 b) {
  const uint64_t a0 = (uint64_t)a;
  const uint64_t b0 = (uint64_t)b;
  const uint64_t low = (a0 & 0xffffffffu) * (b0 & 0xffffffffu);
  const uint64_t cross = (a0 >> 32) * (b0 & 0xffffffffu) + (low >> 32);
  const uint64_t other = (a0 & 0xffffffffu) * (b0 >> 32) + (cross & 0xffffffffu);
  const uint64_t high = (a0 >> 32) * (b0 >> 32) + (cross >> 32) + (other >> 32) +
                        (uint64_t)(a >> 64) * b0 + a0 * (uint64_t)(b >> 64);
  return ((u128)high << 64) | (other << 32) | (low & 0xffffffffu);
}
