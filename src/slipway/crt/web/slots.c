/* SPDX-License-Identifier: Apache-2.0 */
/* What compiled kernels ask of their surroundings: errors, workspace, functions by name, threads.
 * Tasks of parallel loops ask for errors and workspace too; where there is one thread, the slot of
 * those loops stays empty. */
#include <string.h>

#include "registry.h"
#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/platform.h"
#include "slipway/workspace.h"
#include "threads.h"
#include "web.h"

#define CACHED_BLOCKS 16
#define ALIGNMENT 64

extern slw_error_set_fn __TVMFFIErrorSetRaisedFromCStr __attribute__((weak));
extern slw_workspace_alloc_fn __slipway_workspace_alloc __attribute__((weak));
extern slw_workspace_free_fn __slipway_workspace_free __attribute__((weak));
extern int (*__slipway_parallel_launch)(slw_parallel_body body, void *closure, int32_t num_tasks)
    __attribute__((weak));
extern int (*__TVMFFIFunctionGetGlobal)(const TVMFFIByteArray *name, TVMFFIObject **out)
    __attribute__((weak));
extern int (*__TVMFFIFunctionCall)(TVMFFIObject *function, TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result) __attribute__((weak));

/* Kernels ask for the same few sizes again and again: blocks given back are kept. */
static struct {
  void *memory;
  uint64_t size_bytes;
  int is_used;
} cache[CACHED_BLOCKS];

static void *get_block(uint64_t nbytes) {
  size_t best = CACHED_BLOCKS;
  for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
    if (cache[i].memory != NULL && !cache[i].is_used && cache[i].size_bytes >= nbytes &&
        (best == CACHED_BLOCKS || cache[i].size_bytes < cache[best].size_bytes)) {
      best = i;
    }
  }
  if (best < CACHED_BLOCKS) {
    cache[best].is_used = 1;
    return cache[best].memory;
  }
  for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
    if (!cache[i].is_used) {
      slw_platform_free(cache[i].memory);
      cache[i].size_bytes = nbytes;
      cache[i].memory = slw_web_alloc((size_t)nbytes, ALIGNMENT);
      cache[i].is_used = (cache[i].memory != NULL);
      return cache[i].memory;
    }
  }
  return slw_web_alloc((size_t)nbytes, ALIGNMENT);
}

static void give_block(void *ptr) {
  for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
    if (cache[i].memory == ptr && ptr != NULL) {
      cache[i].is_used = 0;
      return;
    }
  }
  slw_platform_free(ptr);
}

void *slw_workspace_alloc(uint64_t nbytes, int32_t device_type, int32_t device_id) {
  void *found;
  (void)device_id;
  if (device_type != kDLCPU || nbytes > SIZE_MAX) {
    return NULL;
  }
  slw_web_lock();
  found = get_block(nbytes);
  slw_web_unlock();
  return found;
}

void slw_workspace_free(void *ptr, int32_t device_type, int32_t device_id) {
  (void)device_type;
  (void)device_id;
  slw_web_lock();
  give_block(ptr);
  slw_web_unlock();
}

void slw_workspace_trim(void) {
  for (size_t i = 0; i < CACHED_BLOCKS; ++i) {
    if (!cache[i].is_used) {
      slw_platform_free(cache[i].memory);
      cache[i].memory = NULL;
    }
  }
}

static int get_global(const TVMFFIByteArray *name, TVMFFIObject **out) {
  const slw_function *found = slw_web_find(name->data, name->size);
  TVMFFIAny made = {0};
  if (found == NULL) {
    *out = NULL;
    return 0;
  }
  if (slw_any_set_function(&made, *found, NULL) != SLW_OK) {
    return slw_error_setf("MemoryError", "the page has no memory for a function object");
  }
  *out = made.v_obj;
  return 0;
}

static int call_function(TVMFFIObject *function, TVMFFIAny *args, int32_t num_args,
                         TVMFFIAny *result) {
  TVMFFIAny value = {0};
  slw_function found;
  value.type_index = kTVMFFIFunction;
  value.v_obj = function;
  if (slw_any_get_function(&value, &found) != SLW_OK) {
    return slw_error_setf("TypeError", "what was called is no function");
  }
  return found.call(found.self, args, num_args, result);
}

static void set_error(const char *kind, const char *message) {
  slw_web_lock();
  slw_error_set(kind, message);
  slw_web_unlock();
}

void slw_web_fill_slots(void) {
#ifdef SLW_WEB_THREADS
  if (&__slipway_parallel_launch != NULL) {
    __slipway_parallel_launch = slw_parallel_launch;
  }
#endif
  if (&__TVMFFIErrorSetRaisedFromCStr != NULL) {
    __TVMFFIErrorSetRaisedFromCStr = set_error;
  }
  if (&__slipway_workspace_alloc != NULL && &__slipway_workspace_free != NULL) {
    __slipway_workspace_alloc = slw_workspace_alloc;
    __slipway_workspace_free = slw_workspace_free;
  }
  if (&__TVMFFIFunctionGetGlobal != NULL && &__TVMFFIFunctionCall != NULL) {
    __TVMFFIFunctionGetGlobal = get_global;
    __TVMFFIFunctionCall = call_function;
  }
}
