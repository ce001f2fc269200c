/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Reading little-endian numbers from bytes of any alignment, and arithmetic that cannot wrap.
 * Private to the runtime.
 */
#ifndef SLW_BYTES_H_
#define SLW_BYTES_H_

#include <stddef.h>
#include <stdint.h>

static inline uint16_t slw_load16(const uint8_t *p) {
  return (uint16_t)((uint32_t)p[0] | ((uint32_t)p[1] << 8));
}

static inline uint32_t slw_load32(const uint8_t *p) {
  return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}

static inline uint64_t slw_load64(const uint8_t *p) {
  return (uint64_t)slw_load32(p) | ((uint64_t)slw_load32(p + 4) << 32);
}

/** Return whether [offset, offset + size) lies inside `total` bytes. */
static inline int slw_in_range(uint64_t offset, uint64_t size, uint64_t total) {
  return offset <= total && size <= total - offset;
}

/** Store a * b; return 0 if it overflows. */
static inline int slw_multiply(uint64_t a, uint64_t b, uint64_t *product) {
  if (b != 0 && a > UINT64_MAX / b) {
    return 0;
  }
  *product = a * b;
  return 1;
}

static inline int slw_text_equal(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

#endif /* SLW_BYTES_H_ */
