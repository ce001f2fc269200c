/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc_auth.h"

#include <string.h>

/* FIPS 180-4, section 4.2.2: cube roots of the first 64 primes, fractional parts. */
static const uint32_t ROUND[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
    0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
    0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
    0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
    0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
    0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
    0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
    0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
    0xc67178f2u};

static uint32_t rotate(uint32_t x, unsigned n) { return x >> n | x << (32u - n); }

static void compress(uint32_t state[8], const uint8_t block[64]) {
  uint32_t w[64];
  uint32_t v[8];
  unsigned i;
  for (i = 0; i < 16u; ++i) {
    w[i] = (uint32_t)block[4u * i] << 24 | (uint32_t)block[4u * i + 1u] << 16 |
           (uint32_t)block[4u * i + 2u] << 8 | block[4u * i + 3u];
  }
  for (i = 16; i < 64u; ++i) {
    uint32_t s0 = rotate(w[i - 15u], 7) ^ rotate(w[i - 15u], 18) ^ w[i - 15u] >> 3;
    uint32_t s1 = rotate(w[i - 2u], 17) ^ rotate(w[i - 2u], 19) ^ w[i - 2u] >> 10;
    w[i] = w[i - 16u] + s0 + w[i - 7u] + s1;
  }
  memcpy(v, state, sizeof(v));
  for (i = 0; i < 64u; ++i) {
    uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
    uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + ROUND[i] + w[i];
    uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
    uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    v[7] = v[6];
    v[6] = v[5];
    v[5] = v[4];
    v[4] = v[3] + t1;
    v[3] = v[2];
    v[2] = v[1];
    v[1] = v[0];
    v[0] = t1 + t2;
  }
  for (i = 0; i < 8u; ++i) {
    state[i] += v[i];
  }
}

void slw_rpc_sha256_init(slw_rpc_sha256 *hash) {
  static const uint32_t start[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                    0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  memcpy(hash->state, start, sizeof(start));
  hash->total = 0;
}

void slw_rpc_sha256_add(slw_rpc_sha256 *hash, const void *data, size_t size) {
  const uint8_t *bytes = (const uint8_t *)data;
  while (size > 0u) {
    size_t used = (size_t)(hash->total % 64u);
    size_t count = 64u - used < size ? 64u - used : size;
    memcpy(hash->block + used, bytes, count);
    hash->total += count;
    bytes += count;
    size -= count;
    if (used + count == 64u) {
      compress(hash->state, hash->block);
    }
  }
}

void slw_rpc_sha256_end(slw_rpc_sha256 *hash, uint8_t out[SLW_RPC_MAC_BYTES]) {
  static const uint8_t padding[64] = {0x80};
  uint8_t length[8];
  uint64_t bits = hash->total * 8u;
  size_t used = (size_t)(hash->total % 64u);
  unsigned i;
  for (i = 0; i < 8u; ++i) {
    length[i] = (uint8_t)(bits >> (56u - 8u * i));
  }
  slw_rpc_sha256_add(hash, padding, (used < 56u ? 56u : 120u) - used);
  slw_rpc_sha256_add(hash, length, 8);
  for (i = 0; i < 32u; ++i) {
    out[i] = (uint8_t)(hash->state[i / 4u] >> (24u - 8u * (i % 4u)));
  }
}

void slw_rpc_mac(const uint8_t *token, size_t token_size, const char *label,
                 const uint8_t first[32], const uint8_t second[32],
                 uint8_t out[SLW_RPC_MAC_BYTES]) {
  slw_rpc_sha256 hash;
  uint8_t key[64] = {0};
  uint8_t inner[SLW_RPC_MAC_BYTES];
  size_t label_size = 0;
  unsigned i;
  while (label[label_size] != '\0') {
    ++label_size;
  }
  if (token_size > sizeof(key)) {
    slw_rpc_sha256_init(&hash);
    slw_rpc_sha256_add(&hash, token, token_size);
    slw_rpc_sha256_end(&hash, key);
  } else {
    memcpy(key, token, token_size);
  }
  for (i = 0; i < sizeof(key); ++i) {
    key[i] ^= 0x36u;
  }
  slw_rpc_sha256_init(&hash);
  slw_rpc_sha256_add(&hash, key, sizeof(key));
  slw_rpc_sha256_add(&hash, label, label_size + 1u);
  slw_rpc_sha256_add(&hash, first, 32);
  slw_rpc_sha256_add(&hash, second, 32);
  slw_rpc_sha256_end(&hash, inner);
  for (i = 0; i < sizeof(key); ++i) {
    key[i] ^= 0x36u ^ 0x5cu;
  }
  slw_rpc_sha256_init(&hash);
  slw_rpc_sha256_add(&hash, key, sizeof(key));
  slw_rpc_sha256_add(&hash, inner, sizeof(inner));
  slw_rpc_sha256_end(&hash, out);
}

bool slw_rpc_mac_equal(const uint8_t a[SLW_RPC_MAC_BYTES], const uint8_t b[SLW_RPC_MAC_BYTES]) {
  volatile uint8_t difference = 0;
  unsigned i;
  for (i = 0; i < SLW_RPC_MAC_BYTES; ++i) {
    difference = (uint8_t)(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}
