/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/device_api.h"

#include <string.h>

#include "slipway/platform.h"
#include "slipway/timer.h"

#define KINDS 17
#define PIECE_BYTES ((size_t)1 << 20)

#define CLOCKED_KINDS 5 /* that are counted, and the first devices of each */
#define CLOCKED_DEVICES (SLW_DEVICE_CLOCKS / CLOCKED_KINDS)

static const slw_device_api *kinds[KINDS];

void slw_device_register(int32_t device_type, const slw_device_api *api) {
  if (device_type >= 0 && device_type < KINDS) {
    kinds[device_type] = api;
  }
}

const slw_device_api *slw_device_find(int32_t device_type) {
  return (device_type >= 0 && device_type < KINDS) ? kinds[device_type] : NULL;
}

const char *slw_device_kind(int32_t device_type) {
  static const char names[KINDS][8] = {"unknown", "cpu",     "cuda",   "unknown", "opencl",  "aocl",
                                       "sdaccel", "vulkan",  "metal",  "vpi",     "rocm",    "unknown",
                                       "ext_dev", "unknown", "unknown", "webgpu", "hexagon"};
  return names[((uint32_t)device_type < KINDS) ? device_type : 0];
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

/* --- clocks ---------------------------------------------------------------------------------- */

/* The kind that is number `index` of those that have clocks, or NULL. */
static const slw_device_api *clocked_kind(int index) {
  for (int i = 0; i < KINDS; ++i) {
    if (kinds[i] != NULL && kinds[i]->mark != NULL && index-- == 0) {
      return kinds[i];
    }
  }
  return NULL;
}

void slw_device_note(slw_device_work *out) {
  memset(out, 0, sizeof *out);
  for (int kind = 0; kind < CLOCKED_KINDS; ++kind) {
    const slw_device_api *api = clocked_kind(kind);
    for (int32_t id = 0; api != NULL && id < CLOCKED_DEVICES; ++id) {
      out->launches[kind * CLOCKED_DEVICES + id] = api->launches(id);
    }
  }
}

slw_device_clock slw_device_clock_since(const slw_device_work *before) {
  slw_device_clock found = {NULL, 0};
  slw_device_work now;
  int count = 0;
  slw_device_note(&now);
  for (int i = 0; i < SLW_DEVICE_CLOCKS; ++i) {
    if (now.launches[i] != before->launches[i]) {
      found.api = clocked_kind(i / CLOCKED_DEVICES);
      found.device_id = i % CLOCKED_DEVICES;
      ++count;
    }
  }
  if (count != 1) {
    found.api = NULL;
  }
  return found;
}

slw_status slw_device_span_begin(slw_device_span *span, slw_device_clock clock) {
  span->clock = clock;
  if (clock.api != NULL) {
    return clock.api->mark(clock.device_id, &span->from);
  }
  span->from = slw_time_ns();
  return SLW_OK;
}

slw_status slw_device_span_end(slw_device_span *span, uint64_t *duration_ns) {
  const slw_device_clock *clock = &span->clock;
  uint64_t to = 0;
  slw_status status;
  if (clock->api == NULL) {
    status = slw_device_wait_all();
    *duration_ns = slw_time_ns() - span->from;
    return status;
  }
  status = clock->api->mark(clock->device_id, &to);
  return (status == SLW_OK) ? clock->api->between(clock->device_id, span->from, to, duration_ns)
                            : status;
}
