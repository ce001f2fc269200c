/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in WebAssembly: blocks after one another from __heap_base, the page grown as needed.
 *
 * Every block has a tag in front: its size and that of the block before it, so that a block given
 * back joins its free neighbours.  Free blocks are in one list, and the first that is large enough
 * is taken: a model asks for few blocks, mostly once. */
#include <stdint.h>
#include <string.h>

#include "slipway/platform.h"
#include "web.h"

#define PAGE_BYTES ((size_t)65536)
#define GRAIN ((size_t)16) /* sizes and places of blocks are multiples */
#define MAX_BYTES ((size_t)0xFFF00000u)

typedef struct block {
  size_t size_bytes;   /* with the tag */
  size_t before_bytes; /* size of the block before; 0: this is the first */
  size_t is_free;
  size_t padding;
  struct block *next; /* the free list, inside the block's own room */
  struct block *previous;
} block;

#define TAG_BYTES offsetof(block, next)
#define MIN_BYTES (sizeof(block) + GRAIN - sizeof(block) % GRAIN)

extern unsigned char __heap_base;

static block *free_list;
static block *last;      /* the block that ends at `end` */
static uintptr_t end; /* of all blocks */

static block *after(const block *b) { return (block *)((uintptr_t)b + b->size_bytes); }

static void take_out(block *b) {
  if (b->previous != NULL) {
    b->previous->next = b->next;
  } else {
    free_list = b->next;
  }
  if (b->next != NULL) {
    b->next->previous = b->previous;
  }
  b->is_free = 0;
}

static void put_in(block *b) {
  b->is_free = 1;
  b->previous = NULL;
  b->next = free_list;
  if (free_list != NULL) {
    free_list->previous = b;
  }
  free_list = b;
}

static void resized(block *b, size_t size_bytes) {
  b->size_bytes = size_bytes;
  if (b == last) {
    end = (uintptr_t)b + size_bytes;
  } else {
    after(b)->before_bytes = size_bytes;
  }
}

/* Append a block of `size_bytes`; NULL when the engine gives no more pages. */
static block *append(size_t size_bytes) {
  block *made;
  size_t have = (size_t)__builtin_wasm_memory_size(0) * PAGE_BYTES;
  if (end == 0) {
    end = ((uintptr_t)&__heap_base + GRAIN - 1) & ~(uintptr_t)(GRAIN - 1);
  }
  if (size_bytes > MAX_BYTES - end) {
    return NULL;
  }
  if (end + size_bytes > have) {
    size_t pages = (end + size_bytes - have + PAGE_BYTES - 1) / PAGE_BYTES;
    if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) {
      return NULL;
    }
  }
  made = (block *)end;
  made->before_bytes = (last != NULL) ? last->size_bytes : 0;
  made->size_bytes = size_bytes;
  made->is_free = 0;
  last = made;
  end += size_bytes;
  return made;
}

static block *find(size_t size_bytes) {
  for (block *b = free_list; b != NULL; b = b->next) {
    if (b->size_bytes >= size_bytes) {
      take_out(b);
      return b;
    }
  }
  return append(size_bytes);
}

static void split(block *b, size_t size_bytes) {
  size_t tail_bytes = b->size_bytes - size_bytes;
  block *tail;
  if (tail_bytes < MIN_BYTES) {
    return;
  }
  tail = (block *)((uintptr_t)b + size_bytes);
  tail->size_bytes = tail_bytes;
  tail->before_bytes = size_bytes;
  if (b == last) {
    last = tail;
  } else {
    after(b)->before_bytes = tail_bytes;
  }
  b->size_bytes = size_bytes;
  put_in(tail);
}

void *slw_web_alloc(size_t size_bytes, size_t alignment_bytes) {
  block *b;
  uintptr_t start;
  size_t room;
  if (alignment_bytes < GRAIN) {
    alignment_bytes = GRAIN;
  }
  if (size_bytes > MAX_BYTES - alignment_bytes - 4 * MIN_BYTES) {
    return NULL;
  }
  /* The word in front of what is handed out leads back to the tag. */
  room = TAG_BYTES + GRAIN + (alignment_bytes - GRAIN) + size_bytes;
  room = (room + GRAIN - 1) & ~(GRAIN - 1);
  b = find((room < MIN_BYTES) ? MIN_BYTES : room);
  if (b == NULL) {
    return NULL;
  }
  split(b, (room < MIN_BYTES) ? MIN_BYTES : room);
  start = ((uintptr_t)b + TAG_BYTES + GRAIN + alignment_bytes - 1) &
          ~(uintptr_t)(alignment_bytes - 1);
  ((block **)start)[-1] = b;
  return (void *)start;
}

void slw_platform_free(void *memory) {
  block *b;
  if (memory == NULL) {
    return;
  }
  b = ((block **)memory)[-1];
  if (b != last && after(b)->is_free) {
    block *next = after(b);
    take_out(next);
    if (next == last) {
      last = b;
    }
    resized(b, b->size_bytes + next->size_bytes);
  }
  if (b->before_bytes > 0) {
    block *before = (block *)((uintptr_t)b - b->before_bytes);
    if (before->is_free) {
      take_out(before);
      if (b == last) {
        last = before;
      }
      resized(before, before->size_bytes + b->size_bytes);
      b = before;
    }
  }
  put_in(b);
}

void *slw_platform_alloc(size_t size_bytes, size_t alignment_bytes) {
  void *memory = slw_web_alloc(size_bytes, alignment_bytes);
  if (memory != NULL) {
    memset(memory, 0, size_bytes);
  }
  return memory;
}
