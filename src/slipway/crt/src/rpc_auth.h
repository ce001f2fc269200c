/* SPDX-License-Identifier: Apache-2.0
 * Proof that a peer has the token, without sending it: HMAC-SHA-256 (RFC 2104).
 */
#ifndef SLIPWAY_RPC_AUTH_H
#define SLIPWAY_RPC_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLW_RPC_MAC_BYTES 32u

/* out = HMAC(token, label || first || second); the label, under 32 bytes, with its NUL. */
void slw_rpc_mac(const uint8_t *token, size_t token_size, const char *label,
                 const uint8_t first[32], const uint8_t second[32],
                 uint8_t out[SLW_RPC_MAC_BYTES]);

/* Compare in a time that does not depend on where they differ. */
bool slw_rpc_mac_equal(const uint8_t a[SLW_RPC_MAC_BYTES], const uint8_t b[SLW_RPC_MAC_BYTES]);

#endif
