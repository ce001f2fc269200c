/* slipway/platform.h over a C library, as a firmware with a heap has it. */
#include <stdlib.h>
#include <string.h>

#include "slipway/platform.h"

void *slw_platform_alloc(size_t size_bytes, size_t alignment_bytes) {
  size_t alignment = alignment_bytes < sizeof(void *) ? sizeof(void *) : alignment_bytes;
  char *block = malloc(size_bytes + alignment + sizeof(void *));
  char *memory;
  if (block == NULL) return NULL;
  memory = block + sizeof(void *);
  memory += (alignment - (size_t)memory % alignment) % alignment;
  memcpy(memory - sizeof block, &block, sizeof block);
  return memset(memory, 0, size_bytes);
}

void slw_platform_free(void *memory) {
  void *block;
  if (memory == NULL) return;
  memcpy(&block, (char *)memory - sizeof block, sizeof block);
  free(block);
}

uint64_t slw_platform_time_ns(void) { return 0; }

void slw_platform_sleep_ms(uint32_t duration_ms) { (void)duration_ms; }
