/* SPDX-License-Identifier: Apache-2.0 */
#include "device_streams.h"

#include <stdlib.h>

#include "slipway/error.h"

static _Atomic uint64_t last_number;

slw_stream *slw_stream_add(const slw_device_driver *driver, int32_t device_id, slw_stream_set *set,
                           void *queue) {
  for (size_t i = 0; i < SLW_MAX_STREAMS; ++i) {
    slw_stream *added = &set->streams[i];
    if (added->number == 0U) {
      added->number = ++last_number;
      added->queue = queue;
      added->seen = 0;
      added->has_work = 0;
      ++set->count;
      ++set->own_work; /* what the own queue was given before comes first */
      return added;
    }
  }
  (void)slw_error_setf("DeviceError",
                       "%s(%d) has %d streams already: free those that are not needed any more "
                       "(free_raw_stream).",
                       driver->kind, (int)device_id, SLW_MAX_STREAMS);
  return NULL;
}

slw_stream *slw_stream_find(const slw_device_driver *driver, int32_t device_id, slw_stream_set *set,
                            uint64_t number) {
  for (size_t i = 0; i < SLW_MAX_STREAMS && number != 0U; ++i) {
    if (set->streams[i].number == number) {
      return &set->streams[i];
    }
  }
  (void)slw_error_setf("DeviceError",
                       "%s(%d) has no such stream any more: it was freed while this thread gave it "
                       "work. Choose another: set_raw_stream(None).",
                       driver->kind, (int)device_id);
  return NULL;
}

void slw_stream_remove(slw_stream_set *set, slw_stream *gone) {
  gone->number = 0;
  gone->queue = NULL;
  --set->count;
}

slw_status slw_pinned_add(slw_pinned_list *list, const slw_pinned *made) {
  slw_pinned *kept = malloc(sizeof *kept);
  if (kept == NULL) {
    slw_error_set("MemoryError", "no memory for the list of the host's pinned memory");
    return SLW_ERROR_MEMORY;
  }
  *kept = *made;
  (void)pthread_mutex_lock(&list->lock);
  kept->next = list->first;
  list->first = kept;
  (void)pthread_mutex_unlock(&list->lock);
  return SLW_OK;
}

int slw_pinned_remove(slw_pinned_list *list, const void *base, slw_pinned *out) {
  slw_pinned **at;
  slw_pinned *found;
  (void)pthread_mutex_lock(&list->lock);
  at = &list->first;
  while (*at != NULL && (*at)->base != base) {
    at = &(*at)->next;
  }
  found = *at;
  if (found != NULL) {
    *at = found->next;
    *out = *found;
  }
  (void)pthread_mutex_unlock(&list->lock);
  free(found);
  return found != NULL;
}

static int holds(const slw_pinned *memory, const char *address, size_t size_bytes) {
  return address >= memory->base && address <= memory->base + memory->size_bytes &&
         size_bytes <= memory->size_bytes - (size_t)(address - memory->base);
}

slw_status slw_pinned_check(const slw_device_driver *driver, slw_pinned_list *list,
                            const void *address, size_t size_bytes, slw_pinned *out) {
  const slw_pinned *found;
  (void)pthread_mutex_lock(&list->lock);
  found = list->first;
  while (found != NULL && !holds(found, address, size_bytes)) {
    found = found->next;
  }
  if (found != NULL && out != NULL) {
    *out = *found;
  }
  (void)pthread_mutex_unlock(&list->lock);
  if (found != NULL) {
    return SLW_OK;
  }
  (void)slw_error_setf("DeviceError",
                       "%s copies beside the host's work only from and to pinned memory of the host, "
                       "and these bytes are in none: make the array with nd.empty_pinned.",
                       driver->title);
  return SLW_ERROR_ARGUMENT;
}
