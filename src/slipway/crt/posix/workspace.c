/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels ask for the same few sizes again and again, last in first out: every thread keeps the
 * blocks it has given back, and hands out the smallest that is large enough. */
#include "slipway/workspace.h"

#include <pthread.h>
#include <stdlib.h>

#include "slipway/platform.h"

#define CACHED_BLOCKS 16
#define ALIGNMENT 64
#define PAGE 4096

typedef struct {
  void *memory;
  size_t size_bytes;
  int is_used;
} block;

typedef struct {
  block blocks[CACHED_BLOCKS];
} thread_blocks;

static pthread_key_t blocks_key;
static pthread_once_t blocks_once = PTHREAD_ONCE_INIT;

static void free_blocks(void *value) {
  thread_blocks *mine = value;
  for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
    slw_platform_free(mine->blocks[i].memory);
  }
  free(mine);
}

static void make_key(void) { (void)pthread_key_create(&blocks_key, free_blocks); }

static thread_blocks *blocks_of_thread(void) {
  thread_blocks *mine;
  (void)pthread_once(&blocks_once, make_key);
  mine = pthread_getspecific(blocks_key);
  if (mine == NULL) {
    mine = calloc(1, sizeof *mine);
    if (mine != NULL && pthread_setspecific(blocks_key, mine) != 0) {
      free(mine);
      mine = NULL;
    }
  }
  return mine;
}

static block *smallest_free(thread_blocks *mine, size_t size_bytes) {
  block *best = NULL;
  for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
    block *b = &mine->blocks[i];
    if (b->memory != NULL && !b->is_used && b->size_bytes >= size_bytes &&
        (best == NULL || b->size_bytes < best->size_bytes)) {
      best = b;
    }
  }
  return best;
}

/* An empty slot, or that of the smallest block that nobody uses. */
static block *slot_for_new(thread_blocks *mine) {
  block *slot = NULL;
  for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
    block *b = &mine->blocks[i];
    if (b->memory == NULL) {
      return b;
    }
    if (!b->is_used && (slot == NULL || b->size_bytes < slot->size_bytes)) {
      slot = b;
    }
  }
  if (slot != NULL) {
    slw_platform_free(slot->memory);
    slot->memory = NULL;
  }
  return slot;
}

void *slw_workspace_alloc(uint64_t nbytes, int32_t device_type, int32_t device_id) {
  thread_blocks *mine;
  block *chosen;
  size_t size_bytes;
  (void)device_id;
  if (device_type != kDLCPU || nbytes > SIZE_MAX / 2) {
    return NULL;
  }
  size_bytes = ((size_t)nbytes + PAGE - 1) & ~(size_t)(PAGE - 1);
  if (size_bytes == 0) {
    size_bytes = PAGE;
  }
  mine = blocks_of_thread();
  if (mine == NULL) {
    return slw_platform_alloc(size_bytes, ALIGNMENT);
  }
  chosen = smallest_free(mine, size_bytes);
  if (chosen == NULL) {
    chosen = slot_for_new(mine);
    if (chosen == NULL) {
      return slw_platform_alloc(size_bytes, ALIGNMENT); /* not cached: freed on return */
    }
    chosen->memory = slw_platform_alloc(size_bytes, ALIGNMENT);
    if (chosen->memory == NULL) {
      return NULL;
    }
    chosen->size_bytes = size_bytes;
  }
  chosen->is_used = 1;
  return chosen->memory;
}

void slw_workspace_free(void *ptr, int32_t device_type, int32_t device_id) {
  thread_blocks *mine = blocks_of_thread();
  (void)device_type;
  (void)device_id;
  if (ptr == NULL) {
    return;
  }
  if (mine != NULL) {
    for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
      if (mine->blocks[i].memory == ptr) {
        mine->blocks[i].is_used = 0;
        return;
      }
    }
  }
  slw_platform_free(ptr);
}

void slw_workspace_trim(void) {
  thread_blocks *mine = blocks_of_thread();
  if (mine == NULL) {
    return;
  }
  for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
    if (!mine->blocks[i].is_used) {
      slw_platform_free(mine->blocks[i].memory);
      mine->blocks[i].memory = NULL;
    }
  }
}
