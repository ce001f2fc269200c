/* SPDX-License-Identifier: Apache-2.0
 * The runtime's memory on a device: a list of blocks in one static array, first fit, neighbours
 * joined when freed.  Only the RPC session uses it; inference needs none.
 */
#include <string.h>

#include "board.h"
#include "model_config.h"
#include "slipway/platform.h"

#define UNIT 16u

typedef struct block {
  uint32_t size; /* bytes with this head, a multiple of UNIT */
  uint32_t is_used;
  uint32_t reserved[2]; /* zero: what lies in front of an object */
} block;

static uint8_t heap[MODEL_HEAP_BYTES / UNIT * UNIT] __attribute__((aligned(UNIT)));

static block *next_of(block *at) { return (block *)(void *)((uint8_t *)at + at->size); }
static int is_end(const block *at) { return (const uint8_t *)at >= heap + sizeof heap; }

static void join_free(block *at) {
  block *next = next_of(at);
  while (!is_end(next) && next->is_used == 0u) {
    at->size += next->size;
    next = next_of(at);
  }
}

static void split(block *at, uint32_t size) {
  if (at->size - size >= 2u * UNIT) {
    block *rest = (block *)(void *)((uint8_t *)at + size);
    rest->size = at->size - size;
    rest->is_used = 0u;
    at->size = size;
  }
}

void *slw_platform_alloc(size_t size_bytes, size_t alignment_bytes) {
  block *at = (block *)(void *)heap;
  if (size_bytes > sizeof heap) {
    return NULL;
  }
  if (at->size == 0u) {
    at->size = sizeof heap;
  }
  for (; !is_end(at); at = next_of(at)) {
    uintptr_t data = (uintptr_t)(at + 1);
    uintptr_t start = (data + alignment_bytes - 1u) & ~(uintptr_t)(alignment_bytes - 1u);
    uint32_t skip = (uint32_t)(start - data);
    uint32_t need = (uint32_t)((sizeof(block) + size_bytes + UNIT - 1u) / UNIT * UNIT);
    if (at->is_used != 0u) {
      continue;
    }
    join_free(at);
    if (at->size < skip + need) {
      continue;
    }
    if (skip > 0u) { /* the gap becomes a free block; both are multiples of UNIT */
      block *moved = (block *)(void *)((uint8_t *)at + skip);
      moved->size = at->size - skip;
      at->size = skip;
      at = moved;
    }
    split(at, need);
    at->is_used = 1u;
    memset(at->reserved, 0, sizeof at->reserved);
    memset(at + 1, 0, size_bytes);
    return at + 1;
  }
  return NULL;
}

void slw_platform_free(void *memory) {
  if (memory != NULL) {
    ((block *)memory - 1)->is_used = 0u;
  }
}

uint64_t slw_platform_time_ns(void) { return board_time_ns(); }

void slw_platform_sleep_ms(uint32_t duration_ms) {
  uint64_t end = board_time_ns() + (uint64_t)duration_ms * 1000000u;
  while (board_time_ns() < end) {
  }
}
