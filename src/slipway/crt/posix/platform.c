/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/platform.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Large blocks come from mmap: zeroed without touching them, and given back at once.
 * The words in front of every block say how it was obtained. The last two stay zero: tvm-ffi
 * reserves the 16 bytes before an object for its allocator, zero meaning "freed by its deleter". */
typedef struct {
  void *base;
  size_t mapped_bytes; /* 0: from malloc */
  uint64_t reserved[2];
} block_head;

#define MAP_FROM_BYTES ((size_t)1 << 20)
#define HUGE_FROM_BYTES ((size_t)8 << 20)

void *slw_platform_alloc(size_t size_bytes, size_t alignment_bytes) {
  size_t room;
  char *base;
  uintptr_t start;
  block_head head = {NULL, 0, {0, 0}};
  if (alignment_bytes < sizeof(void *)) {
    alignment_bytes = sizeof(void *);
  }
  room = sizeof(block_head) + alignment_bytes;
  if (size_bytes > SIZE_MAX - room) {
    return NULL;
  }
  room += size_bytes;
  if (size_bytes >= MAP_FROM_BYTES) {
    base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
      return NULL;
    }
    head.mapped_bytes = room;
#ifdef MADV_HUGEPAGE
    if (size_bytes >= HUGE_FROM_BYTES) {
      (void)madvise(base, room, MADV_HUGEPAGE); /* fewer page walks; a wish, not a need */
    }
#endif
  } else {
    base = calloc(1, room);
    if (base == NULL) {
      return NULL;
    }
    head.mapped_bytes = 0;
  }
  head.base = base;
  start = ((uintptr_t)base + sizeof head + alignment_bytes - 1) & ~(uintptr_t)(alignment_bytes - 1);
  memcpy((char *)start - sizeof head, &head, sizeof head);
  return (void *)start;
}

void slw_platform_free(void *memory) {
  block_head head;
  if (memory == NULL) {
    return;
  }
  memcpy(&head, (char *)memory - sizeof head, sizeof head);
  if (head.mapped_bytes != 0) {
    (void)munmap(head.base, head.mapped_bytes);
  } else {
    free(head.base);
  }
}

uint64_t slw_platform_time_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void slw_platform_sleep_ms(uint32_t duration_ms) {
  struct timespec left = {(time_t)(duration_ms / 1000U), (long)(duration_ms % 1000U) * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}
