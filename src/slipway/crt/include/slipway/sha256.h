/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * SHA-256 (FIPS 180-4). Freestanding.
 */
#ifndef SLIPWAY_SHA256_H_
#define SLIPWAY_SHA256_H_

#include "slipway/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_SHA256_BYTES 32

typedef struct {
  uint32_t state[8];
  uint64_t length_bytes;
  uint8_t block[64];
} slw_sha256;

SLW_API void slw_sha256_init(slw_sha256 *hash);
SLW_API void slw_sha256_update(slw_sha256 *hash, const void *data, size_t size_bytes);
SLW_API void slw_sha256_final(slw_sha256 *hash, uint8_t digest[SLW_SHA256_BYTES]);

/** HMAC-SHA-256 (RFC 2104) of one message. */
SLW_API void slw_hmac_sha256(const void *key, size_t key_bytes, const void *message,
                             size_t message_bytes, uint8_t digest[SLW_SHA256_BYTES]);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_SHA256_H_ */
