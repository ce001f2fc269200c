/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc_auth.h"

#include <string.h>

#include "slipway/sha256.h"

#define LABEL_MAX_BYTES 32u

void slw_rpc_mac(const uint8_t *token, size_t token_size, const char *label,
                 const uint8_t first[32], const uint8_t second[32],
                 uint8_t out[SLW_RPC_MAC_BYTES]) {
  uint8_t message[LABEL_MAX_BYTES + 64u];
  size_t at = 0;
  do {
    message[at] = (uint8_t)label[at];
  } while (label[at++] != '\0');
  memcpy(message + at, first, 32);
  memcpy(message + at + 32u, second, 32);
  slw_hmac_sha256(token, token_size, message, at + 64u, out);
}

bool slw_rpc_mac_equal(const uint8_t a[SLW_RPC_MAC_BYTES], const uint8_t b[SLW_RPC_MAC_BYTES]) {
  volatile uint8_t difference = 0;
  unsigned i;
  for (i = 0; i < SLW_RPC_MAC_BYTES; ++i) {
    difference = (uint8_t)(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}
