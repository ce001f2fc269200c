/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/sha256.h"

#include <string.h>

#define BLOCK 64U

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t ROUND_CONSTANT[64] = {
    0x428a2f98U, 0x71374491U, 0xb5c0fbcfU, 0xe9b5dba5U, 0x3956c25bU, 0x59f111f1U, 0x923f82a4U,
    0xab1c5ed5U, 0xd807aa98U, 0x12835b01U, 0x243185beU, 0x550c7dc3U, 0x72be5d74U, 0x80deb1feU,
    0x9bdc06a7U, 0xc19bf174U, 0xe49b69c1U, 0xefbe4786U, 0x0fc19dc6U, 0x240ca1ccU, 0x2de92c6fU,
    0x4a7484aaU, 0x5cb0a9dcU, 0x76f988daU, 0x983e5152U, 0xa831c66dU, 0xb00327c8U, 0xbf597fc7U,
    0xc6e00bf3U, 0xd5a79147U, 0x06ca6351U, 0x14292967U, 0x27b70a85U, 0x2e1b2138U, 0x4d2c6dfcU,
    0x53380d13U, 0x650a7354U, 0x766a0abbU, 0x81c2c92eU, 0x92722c85U, 0xa2bfe8a1U, 0xa81a664bU,
    0xc24b8b70U, 0xc76c51a3U, 0xd192e819U, 0xd6990624U, 0xf40e3585U, 0x106aa070U, 0x19a4c116U,
    0x1e376c08U, 0x2748774cU, 0x34b0bcb5U, 0x391c0cb3U, 0x4ed8aa4aU, 0x5b9cca4fU, 0x682e6ff3U,
    0x748f82eeU, 0x78a5636fU, 0x84c87814U, 0x8cc70208U, 0x90befffaU, 0xa4506cebU, 0xbef9a3f7U,
    0xc67178f2U};

static uint32_t rotate(uint32_t x, unsigned by) { return (x >> by) | (x << (32U - by)); }

static void add_block(uint32_t state[8], const uint8_t *p) {
  uint32_t w[64];
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (size_t i = 0; i < 16; ++i, p += 4) {
    w[i] = ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | p[3];
  }
  for (size_t i = 16; i < 64; ++i) {
    uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  for (size_t i = 0; i < 64; ++i) {
    uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + ROUND_CONSTANT[i] + w[i];
    uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

void slw_sha256_init(slw_sha256 *hash) {
  static const uint32_t START[8] = {0x6a09e667U, 0xbb67ae85U, 0x3c6ef372U, 0xa54ff53aU,
                                    0x510e527fU, 0x9b05688cU, 0x1f83d9abU, 0x5be0cd19U};
  memset(hash, 0, sizeof *hash);
  memcpy(hash->state, START, sizeof START);
}

void slw_sha256_update(slw_sha256 *hash, const void *data, size_t size_bytes) {
  const uint8_t *p = data;
  size_t used = (size_t)(hash->length_bytes % BLOCK);
  hash->length_bytes += size_bytes;
  if (used > 0) {
    size_t room = BLOCK - used;
    size_t taken = (size_bytes < room) ? size_bytes : room;
    if (taken > 0) {
      memcpy(hash->block + used, p, taken);
    }
    p += taken;
    size_bytes -= taken;
    if (used + taken < BLOCK) {
      return;
    }
    add_block(hash->state, hash->block);
  }
  for (; size_bytes >= BLOCK; p += BLOCK, size_bytes -= BLOCK) {
    add_block(hash->state, p);
  }
  if (size_bytes > 0) {
    memcpy(hash->block, p, size_bytes);
  }
}

void slw_sha256_final(slw_sha256 *hash, uint8_t digest[SLW_SHA256_BYTES]) {
  uint64_t length_bits = hash->length_bytes * 8U;
  uint8_t tail[BLOCK + 8] = {0x80};
  size_t used = (size_t)(hash->length_bytes % BLOCK);
  size_t padding = (used < 56U) ? 56U - used : 120U - used;
  for (size_t i = 0; i < 8; ++i) {
    tail[padding + i] = (uint8_t)(length_bits >> (56U - 8U * i));
  }
  slw_sha256_update(hash, tail, padding + 8U);
  for (size_t i = 0; i < 32; ++i) {
    digest[i] = (uint8_t)(hash->state[i / 4] >> (24U - 8U * (i % 4)));
  }
}

void slw_hmac_sha256(const void *key, size_t key_bytes, const void *message, size_t message_bytes,
                     uint8_t digest[SLW_SHA256_BYTES]) {
  uint8_t pad[BLOCK] = {0};
  slw_sha256 hash;
  if (key_bytes > BLOCK) {
    slw_sha256_init(&hash);
    slw_sha256_update(&hash, key, key_bytes);
    slw_sha256_final(&hash, pad);
  } else if (key_bytes > 0) {
    memcpy(pad, key, key_bytes);
  }
  for (size_t i = 0; i < BLOCK; ++i) {
    pad[i] ^= 0x36U;
  }
  slw_sha256_init(&hash);
  slw_sha256_update(&hash, pad, BLOCK);
  slw_sha256_update(&hash, message, message_bytes);
  slw_sha256_final(&hash, digest);
  for (size_t i = 0; i < BLOCK; ++i) {
    pad[i] ^= 0x36U ^ 0x5cU;
  }
  slw_sha256_init(&hash);
  slw_sha256_update(&hash, pad, BLOCK);
  slw_sha256_update(&hash, digest, SLW_SHA256_BYTES);
  slw_sha256_final(&hash, digest);
}
