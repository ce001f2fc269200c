/* Products of a warp as NVIDIA's PTX describes them: which element is in which thread's register.
 *
 * For m16n8k16 of 16 bits and m16n8k32 of 8 bits, thread 4 g + t has, in 32 bits each, of A row g,
 * row g + 8, then both again from the second half of the steps; of B, column g of both halves; of C
 * and D two columns from 2 t on, of row g and of row g + 8.  Four bytes begin at byte 4 t of a half.
 * m16n8k8 of 16 bits is that without the second half, m8n8k16 of 8 bits without row g + 8 besides.
 */
#pragma once
#include <stdint.h>
#include <string.h>

#define SLW_WARP_PRODUCTS                                                                         \
  SLW_WARP(f16, Half, Half, float)                                                                \
  SLW_WARP(bf16, Bfloat, Bfloat, float)                                                           \
  SLW_WARP(s8_s8, Signed, Signed, int32_t)                                                        \
  SLW_WARP(s8_u8, Signed, Unsigned, int32_t)                                                      \
  SLW_WARP(u8_s8, Unsigned, Signed, int32_t)                                                      \
  SLW_WARP(u8_u8, Unsigned, Unsigned, int32_t)

/* A model of each instruction on registers, and, for CUDA C, the function that uses it. */
#define SLW_WARP(name, A, B, Sum)                                                                 \
  extern "C" void slw_model_##name(const uint32_t *a, const uint32_t *b, uint32_t *c);            \
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
SLW_WARP_PRODUCTS
#undef SLW_WARP
