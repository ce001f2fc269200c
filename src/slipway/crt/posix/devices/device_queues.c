/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of devices, and copies beside the host's work, as functions of the runtime. */
#include <string.h>

#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/packed.h"

/* The streams of a kind of device; NULL where a device has its own queue only. */
static const slw_device_streams *streams_of(const TVMFFIAny *args, int32_t num_args,
                                            int32_t wanted) {
  const slw_device_api *api = (num_args == wanted) ? slw_device_find((int32_t)args[0].v_int64) : NULL;
  return (api != NULL) ? api->streams : NULL;
}

static int refused(const TVMFFIAny *args) {
  return slw_error_setf("DeviceError", "%s devices have one queue each: use sync and copyto.",
                        slw_device_kind((int32_t)args[0].v_int64));
}

static void give_int(TVMFFIAny *result, uint64_t value) {
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = (int64_t)value;
}

static slw_status act(const slw_device_streams *streams, const char *what, int32_t device_id,
                      uint64_t stream, uint64_t before, TVMFFIAny *result) {
  uint64_t made = 0;
  slw_status status;
  switch (what[0]) {
    case 'm': /* make */
      status = streams->make(device_id, &made);
      give_int(result, made);
      return status;
    case 'd': /* drop */
      return streams->drop(device_id, stream);
    case 'u': /* use */
      return streams->use(device_id, stream);
    case 's': /* sync */
      return streams->synchronize(device_id, stream);
    default: /* wait */
      return streams->wait(device_id, stream, before);
  }
}

/* (device type, device, what, stream, stream before): "has" tells whether there are streams, "make" makes
 * one and returns its number; "drop", "use", "sync" and "wait" are the functions of
 * slw_device_streams. */
int slw_packed_device_stream(void *handle, const TVMFFIAny *args, int32_t num_args,
                             TVMFFIAny *result) {
  const slw_device_streams *streams = streams_of(args, num_args, 5);
  const char *what = "";
  size_t size = 0;
  (void)handle;
  if (num_args != 5 || slw_any_get_bytes(&args[2], &what, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "this takes a device, what to do, and two streams");
  }
  if (what[0] == 'h') {
    give_int(result, (uint64_t)(streams != NULL));
    return 0;
  }
  if (streams == NULL) {
    return refused(args);
  }
  return (act(streams, what, (int32_t)args[1].v_int64, (uint64_t)args[3].v_int64,
              (uint64_t)args[4].v_int64, result) == SLW_OK)
             ? 0
             : -1;
}

/* (device type, device, bytes) -> the address of memory of the host that the device can copy beside the
 * host's work; (device type, device, 0, address) releases it. */
int slw_packed_device_pinned(void *handle, const TVMFFIAny *args, int32_t num_args,
                             TVMFFIAny *result) {
  const slw_device_streams *streams = streams_of(args, num_args, (num_args == 4) ? 4 : 3);
  void *memory = NULL;
  (void)handle;
  if (streams == NULL) {
    return refused(args);
  }
  if (num_args == 4) {
    streams->host_release((void *)(uintptr_t)args[3].v_int64);
    return 0;
  }
  if (streams->host_alloc((int32_t)args[1].v_int64, (size_t)args[2].v_int64, &memory) != SLW_OK) {
    return -1;
  }
  give_int(result, (uint64_t)(uintptr_t)memory);
  return 0;
}

/* (device type, address there, address in pinned memory, bytes, whether the device is read): copy in the
 * stream that this thread uses, and return before the bytes are copied */
int slw_packed_device_copy_later(void *handle, const TVMFFIAny *args, int32_t num_args,
                                 TVMFFIAny *result) {
  const slw_device_streams *streams = streams_of(args, num_args, 5);
  void *there, *here;
  size_t size_bytes;
  (void)handle;
  (void)result;
  if (streams == NULL) {
    return refused(args);
  }
  there = (void *)(uintptr_t)args[1].v_int64;
  here = (void *)(uintptr_t)args[2].v_int64;
  size_bytes = (size_t)args[3].v_int64;
  return (((args[4].v_int64 != 0) ? streams->read_later(there, here, size_bytes)
                                  : streams->write_later(there, here, size_bytes)) == SLW_OK)
             ? 0
             : -1;
}
