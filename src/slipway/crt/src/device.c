/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/device_api.h"

#include <string.h>

#include "slipway/platform.h"

#define KINDS 17
#define PIECE_BYTES ((size_t)1 << 20)

static const slw_device_api *kinds[KINDS];

void slw_device_register(int32_t device_type, const slw_device_api *api) {
  if (device_type >= 0 && device_type < KINDS) {
    kinds[device_type] = api;
  }
}

const slw_device_api *slw_device_find(int32_t device_type) {
  return (device_type >= 0 && device_type < KINDS) ? kinds[device_type] : NULL;
}

/* Two kinds have no memory in common: through the processor's, a piece at a time. */
static slw_status move_between(const slw_device_api *source, const void *from,
                               const slw_device_api *target, void *to, size_t size_bytes) {
  const size_t most = (size_bytes < PIECE_BYTES) ? size_bytes : PIECE_BYTES;
  char *piece = slw_platform_alloc(most, 64);
  slw_status status = (piece != NULL) ? SLW_OK : SLW_ERROR_MEMORY;
  for (size_t at = 0; at < size_bytes && status == SLW_OK; at += most) {
    size_t size = (size_bytes - at < most) ? size_bytes - at : most;
    status = source->read((const char *)from + at, piece, size);
    if (status == SLW_OK) {
      status = target->write((char *)to + at, piece, size);
    }
  }
  slw_platform_free(piece);
  return status;
}

slw_status slw_device_move(const void *from, int32_t from_type, void *to, int32_t to_type,
                           size_t size_bytes) {
  const slw_device_api *source = slw_device_find(from_type);
  const slw_device_api *target = slw_device_find(to_type);
  if ((from_type != kDLCPU && source == NULL) || (to_type != kDLCPU && target == NULL)) {
    return SLW_ERROR_TENSOR;
  }
  if (size_bytes == 0U) {
    return SLW_OK;
  }
  if (from_type == kDLCPU && to_type == kDLCPU) {
    memmove(to, from, size_bytes);
    return SLW_OK;
  }
  if (from_type == kDLCPU) {
    return target->write(to, from, size_bytes);
  }
  if (to_type == kDLCPU) {
    return source->read(from, to, size_bytes);
  }
  return (source == target) ? source->copy(from, to, size_bytes)
                            : move_between(source, from, target, to, size_bytes);
}

slw_status slw_device_wait_all(void) {
  slw_status status = SLW_OK;
  for (int i = 0; i < KINDS && status == SLW_OK; ++i) {
    if (kinds[i] != NULL) {
      status = kinds[i]->wait_all();
    }
  }
  return (status == SLW_OK) ? SLW_OK : SLW_ERROR_CALL;
}
