/* SPDX-License-Identifier: Apache-2.0 */
#include "device_space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "slipway/error.h"

/* Index of the first allocation whose base lies above `address`. */
static size_t above(const slw_device_space *space, const void *address) {
  size_t low = 0;
  size_t high = space->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2U;
    if ((uintptr_t)space->ranges[middle].base <= (uintptr_t)address) {
      low = middle + 1U;
    } else {
      high = middle;
    }
  }
  return low;
}

static slw_device_range *find(const slw_device_space *space, const void *address) {
  size_t index = above(space, address);
  slw_device_range *found;
  if (index == 0U) {
    return NULL;
  }
  found = &space->ranges[index - 1U];
  return ((uintptr_t)address - (uintptr_t)found->base < found->size_bytes) ? found : NULL;
}

static int make_room(slw_device_space *space) {
  size_t wanted = (space->capacity > 0U) ? 2U * space->capacity : 64U;
  slw_device_range *grown;
  if (space->count < space->capacity) {
    return 1;
  }
  grown = realloc(space->ranges, wanted * sizeof *grown);
  if (grown == NULL) {
    return 0;
  }
  space->ranges = grown;
  space->capacity = wanted;
  return 1;
}

slw_status slw_device_space_add(slw_device_space *space, size_t size_bytes, int32_t device_id,
                                void *held, void **base) {
  slw_device_range made;
  int entered;
  made.size_bytes = (size_bytes > 0U) ? size_bytes : 1U;
  made.device_id = device_id;
  made.held = held;
  made.base = mmap(NULL, made.size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
  if (made.base == MAP_FAILED) {
    (void)slw_error_setf("MemoryError",
                         "this process has no address space left for %zu bytes of the memory of device "
                         "%d: release arrays, or raise its limit (ulimit -v).",
                         made.size_bytes, (int)device_id);
    return SLW_ERROR_MEMORY;
  }
  (void)pthread_mutex_lock(&space->lock);
  entered = make_room(space);
  if (entered) {
    size_t index = above(space, made.base);
    memmove(&space->ranges[index + 1U], &space->ranges[index],
            (space->count - index) * sizeof *space->ranges);
    space->ranges[index] = made;
    ++space->count;
  }
  (void)pthread_mutex_unlock(&space->lock);
  if (!entered) {
    (void)munmap(made.base, made.size_bytes);
    slw_error_set("MemoryError", "no memory for the list of device memory");
    return SLW_ERROR_MEMORY;
  }
  *base = made.base;
  return SLW_OK;
}

int slw_device_space_find(slw_device_space *space, const void *address, slw_device_range *range,
                          size_t *offset) {
  slw_device_range *found;
  (void)pthread_mutex_lock(&space->lock);
  found = find(space, address);
  if (found != NULL) {
    *range = *found;
    *offset = (size_t)((uintptr_t)address - (uintptr_t)found->base);
  }
  (void)pthread_mutex_unlock(&space->lock);
  return found != NULL;
}

void *slw_device_space_remove(slw_device_space *space, const void *base) {
  slw_device_range gone = {NULL, 0, 0, NULL};
  slw_device_range *found;
  (void)pthread_mutex_lock(&space->lock);
  found = find(space, base);
  if (found != NULL && found->base == base) {
    gone = *found;
    memmove(found, found + 1,
            (size_t)(&space->ranges[space->count] - (found + 1)) * sizeof *found);
    --space->count;
  }
  (void)pthread_mutex_unlock(&space->lock);
  if (gone.base != NULL) {
    (void)munmap(gone.base, gone.size_bytes);
  }
  return gone.held;
}
