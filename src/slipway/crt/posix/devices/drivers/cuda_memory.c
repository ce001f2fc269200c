/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of CUDA, or of HIP (hip.c).  The driver waits for the whole device where memory is given back to it, so what
 * is released is kept for the next allocation of its size, within a bound; all work is in one queue
 * then, so that one may have it at once.  With streams there is no such order, and nothing is kept. */
#include <stdlib.h>

#include "cuda.h"
#include "slipway/error.h"
#include "slipway/format.h"

#define SPARE_PIECES 32U /* of a device */
#define SPARE_SHARE 16U  /* of its memory, at most one part in so many */

typedef struct piece {
  struct piece *next;
  cu_pointer base;
  size_t size_bytes;
} piece;

static pthread_mutex_t lock_of_memory = PTHREAD_MUTEX_INITIALIZER;
static piece *pieces_in_use[SLW_MAX_DEVICES];
static struct {
  piece *first; /* the one that was released last */
  size_t count;
  size_t size_bytes;
} spare[SLW_MAX_DEVICES];

/* The smallest spare piece that is large enough, and at most twice as large. */
static piece *take_spare(int32_t device_id, size_t size_bytes) {
  piece **best = NULL;
  piece *found;
  for (piece **at = &spare[device_id].first; *at != NULL; at = &(*at)->next) {
    size_t size = (*at)->size_bytes;
    if (size >= size_bytes && size / 2U <= size_bytes &&
        (best == NULL || size < (*best)->size_bytes)) {
      best = at;
    }
  }
  if (best == NULL) {
    return NULL;
  }
  found = *best;
  *best = found->next;
  --spare[device_id].count;
  spare[device_id].size_bytes -= found->size_bytes;
  return found;
}

static void free_spare(int32_t device_id) {
  while (spare[device_id].first != NULL) {
    piece *gone = spare[device_id].first;
    spare[device_id].first = gone->next;
    (void)slw_cu.MemFree(gone->base);
    free(gone);
  }
  spare[device_id].count = 0;
  spare[device_id].size_bytes = 0;
}

static cu_int make(int32_t device_id, size_t size_bytes, piece *made) {
  cu_int code = slw_cu.MemAlloc(&made->base, size_bytes);
  if (code != CU_SUCCESS && spare[device_id].first != NULL) { /* it may only be spare */
    free_spare(device_id);
    code = slw_cu.MemAlloc(&made->base, size_bytes);
  }
  made->size_bytes = size_bytes;
  return code;
}

slw_status slw_cuda_alloc(int32_t device_id, size_t size_bytes, void **out) {
  size_t wanted = (size_bytes > 0U) ? size_bytes : 1U;
  cu_int code = CU_SUCCESS;
  piece *made;
  if (!slw_cuda_use(device_id)) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&lock_of_memory);
  if (slw_cuda_has_streams(device_id)) {
    free_spare(device_id);
  }
  made = take_spare(device_id, wanted);
  if (made == NULL) {
    made = malloc(sizeof *made);
    code = (made != NULL) ? make(device_id, wanted, made) : CU_SUCCESS;
  }
  if (made != NULL && code == CU_SUCCESS) {
    made->next = pieces_in_use[device_id];
    pieces_in_use[device_id] = made;
    *out = (void *)(uintptr_t)made->base;
  }
  (void)pthread_mutex_unlock(&lock_of_memory);
  if (made == NULL) {
    slw_error_set("MemoryError", "no memory for the list of device memory");
    return SLW_ERROR_MEMORY;
  }
  if (code != CU_SUCCESS) {
    char what[80];
    free(made);
    (void)slw_format(what, sizeof what, "asking for %zu bytes", size_bytes);
    return slw_cuda_failed(device_id, what, code);
  }
  return SLW_OK;
}

static piece *take_used(cu_pointer base, int32_t *device_id) {
  for (int32_t id = 0; id < SLW_MAX_DEVICES; ++id) {
    for (piece **at = &pieces_in_use[id]; *at != NULL; at = &(*at)->next) {
      piece *found = *at;
      if (found->base == base) {
        *at = found->next;
        *device_id = id;
        return found;
      }
    }
  }
  return NULL;
}

static void keep(int32_t device_id, piece *gone) {
  size_t total = 0;
  (void)slw_cu.DeviceTotalMem(&total, slw_cuda_handle(device_id));
  if (slw_cuda_has_streams(device_id) || spare[device_id].count == SPARE_PIECES ||
      gone->size_bytes > total / SPARE_SHARE - spare[device_id].size_bytes) {
    free_spare(device_id);
  }
  if (slw_cuda_has_streams(device_id) || gone->size_bytes > total / SPARE_SHARE) {
    (void)slw_cu.MemFree(gone->base); /* which waits for what still uses it */
    free(gone);
    return;
  }
  gone->next = spare[device_id].first;
  spare[device_id].first = gone;
  ++spare[device_id].count;
  spare[device_id].size_bytes += gone->size_bytes;
}

void slw_cuda_release(void *memory) {
  int32_t device_id = 0;
  piece *gone;
  if (memory == NULL || !slw_driver_works(&slw_cuda)) {
    return;
  }
  (void)pthread_mutex_lock(&lock_of_memory);
  gone = take_used((cu_pointer)(uintptr_t)memory, &device_id);
  if (gone != NULL && slw_cuda_use(device_id)) {
    keep(device_id, gone);
  }
  (void)pthread_mutex_unlock(&lock_of_memory);
}

slw_status slw_cuda_trim(int32_t device_id) {
  if (!slw_cuda_use(device_id)) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&lock_of_memory);
  free_spare(device_id);
  (void)pthread_mutex_unlock(&lock_of_memory);
  return SLW_OK;
}
