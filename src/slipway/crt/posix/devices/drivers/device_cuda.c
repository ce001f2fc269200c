/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA, or HIP (hip.c), as a kind of device: the functions of device_api.h.  A device's own queue is its default
 * stream, which the driver keeps in order with the others.  Its addresses are the driver's own. */
#include <string.h>

#include "cuda.h"
#include "../devices.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/object.h"

#define MAX_ARGUMENTS 128 /* backends/gpu/limits.py */

#ifdef SLW_HIP /* 60443483 is 6.4 */
#define GPU_MAJOR(version) ((version) / 10000000)
#define GPU_MINOR(version) ((version) / 100000 % 100)
#else /* 12090 is 12.9 */
#define GPU_MAJOR(version) ((version) / 1000)
#define GPU_MINOR(version) ((version) % 1000 / 10)
#endif

static slw_status checked(int32_t device_id, const char *what, cu_int code) {
  return (code == CU_SUCCESS) ? SLW_OK : slw_cuda_failed(device_id, what, code);
}

static cu_pointer pointer_of(const void *address) { return (cu_pointer)(uintptr_t)address; }

static slw_status device_of(const void *address, int32_t *device_id) {
  if (!slw_driver_works(&slw_cuda)) {
    return SLW_ERROR_CALL;
  }
  if (slw_cu.PointerGetAttribute(device_id, CU_POINTER_DEVICE_ORDINAL, pointer_of(address)) !=
      CU_SUCCESS) {
    slw_error_set("DeviceError", "an address is not in memory of a " SLW_GPU_TITLE " device.");
    return SLW_ERROR_TENSOR;
  }
  return SLW_OK;
}

/* Make the device of an address the one in use. */
static int use_of(const void *address, int32_t *device_id) {
  return device_of(address, device_id) == SLW_OK && slw_cuda_use(*device_id);
}

static slw_status read_memory(const void *from, void *host, size_t size_bytes) {
  int32_t id = 0;
  return !use_of(from, &id) ? SLW_ERROR_CALL
                      : checked(id, "reading its memory",
                                slw_cu.MemcpyDtoH(host, pointer_of(from), size_bytes));
}

static slw_status write_memory(void *to, const void *host, size_t size_bytes) {
  int32_t id = 0;
  return !use_of(to, &id) ? SLW_ERROR_CALL
                      : checked(id, "writing its memory",
                                slw_cu.MemcpyHtoD(pointer_of(to), host, size_bytes));
}

static slw_status copy_memory(const void *from, void *to, size_t size_bytes) {
  int32_t id = 0;
  cu_object stream = NULL;
  if (!use_of(to, &id) || slw_cuda_stream_of(id, &stream) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  return checked(id, "copying its memory",
                 (stream == NULL)
                     ? slw_cu.MemcpyDtoD(pointer_of(to), pointer_of(from), size_bytes)
                     : slw_cu.MemcpyDtoDAsync(pointer_of(to), pointer_of(from), size_bytes, stream));
}

static slw_status synchronize(int32_t device_id) {
  return !slw_cuda_use(device_id) ? SLW_ERROR_CALL
                      : checked(device_id, "its work", slw_cu.CtxSynchronize());
}

static slw_status wait_all(void) { return slw_driver_wait(&slw_cuda, synchronize); }

static slw_status add_code(const char *digest, const void *code, size_t size_bytes) {
  return slw_driver_add_code(&slw_cuda, digest, code, size_bytes);
}

static void drop_code(const char *digest) { slw_driver_drop_code(&slw_cuda, digest); }

/* --- launching ------------------------------------------------------------------------------- */

static slw_status enqueue(const slw_device_launch *launch, int32_t device_id, cu_object kernel) {
  slw_device_scalar values[MAX_ARGUMENTS];
  void *arguments[MAX_ARGUMENTS];
  size_t count = strlen(launch->signature);
  size_t given = 0; /* of shared memory */
  cu_object stream = NULL;
  cu_int code;
  if (count > MAX_ARGUMENTS) {
    (void)slw_error_setf("DeviceError", "kernel %s takes %zu arguments, and %d are the most.",
                         launch->kernel, count, MAX_ARGUMENTS);
    return SLW_ERROR_ARGUMENT;
  }
  if (count > 0U && launch->signature[count - 1U] == 's') {
    --count;
    given = (size_t)launch->args[count].v_int64;
  }
  for (size_t i = 0; i < count; ++i) {
    char kind = (launch->signature[i] == 'p') ? '8' : launch->signature[i];
    slw_status status = slw_device_scalar_of(kind, &launch->args[i], &values[i]);
    if (status != SLW_OK) {
      return status;
    }
    arguments[i] = &values[i].value;
  }
  if (slw_cuda_stream_of(device_id, &stream) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  code = slw_cu.LaunchKernel(kernel, (unsigned)launch->grid[0], (unsigned)launch->grid[1],
                          (unsigned)launch->grid[2], (unsigned)launch->block[0],
                          (unsigned)launch->block[1], (unsigned)launch->block[2],
                          (unsigned)given, stream,
                          arguments, NULL);
  if (code != CU_SUCCESS) {
    char what[160];
    (void)slw_format(what, sizeof what, "launching kernel %s", launch->kernel);
    return slw_cuda_failed(device_id, what, code);
  }
  return SLW_OK;
}

static slw_status launch_kernel(const slw_device_launch *launch) {
  int32_t device_id = 0;
  const slw_device_kernel *kernel;
  slw_status status;
  if (slw_driver_of_launch(&slw_cuda, launch, device_of, &device_id) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  kernel = slw_cuda_use(device_id) ? slw_driver_kernel(&slw_cuda, device_id, launch) : NULL;
  if (kernel == NULL) {
    return SLW_ERROR_CALL;
  }
  status = slw_driver_check_threads(&slw_cuda, device_id, launch, kernel->most_threads);
  return (status == SLW_OK) ? enqueue(launch, device_id, (cu_object)(uintptr_t)kernel->handles[0])
                            : status;
}

/* --- the device's clock -------------------------------------------------------------------------- */

static uint64_t launches(int32_t device_id) { return slw_driver_launches(&slw_cuda, device_id); }

static slw_status mark(int32_t device_id, uint64_t *out) {
  cu_object event = NULL;
  cu_int code;
  if (!slw_cuda_use(device_id)) {
    return SLW_ERROR_CALL;
  }
  code = slw_cu.EventCreate(&event, 0U);
  if (code == CU_SUCCESS) {
    code = slw_cu.EventRecord(event, NULL);
  }
  *out = (uint64_t)(uintptr_t)event;
  return checked(device_id, "marking a time", code);
}

static slw_status between(int32_t device_id, uint64_t from, uint64_t to, uint64_t *duration_ns) {
  cu_object events[2] = {(cu_object)(uintptr_t)from, (cu_object)(uintptr_t)to};
  float milliseconds = 0.0F;
  cu_int code;
  if (!slw_cuda_use(device_id)) {
    return SLW_ERROR_CALL;
  }
  code = slw_cu.EventSynchronize(events[1]);
  if (code == CU_SUCCESS) {
    code = slw_cu.EventElapsedTime(&milliseconds, events[0], events[1]);
  }
  (void)slw_cu.EventDestroy(events[0]);
  (void)slw_cu.EventDestroy(events[1]);
  *duration_ns = (milliseconds > 0.0F) ? (uint64_t)((double)milliseconds * 1e6) : 0U;
  return checked(device_id, "reading its clock", code);
}

/* --- properties ------------------------------------------------------------------------------ */

static size_t attribute_of(int32_t device_id, cu_int attribute) {
  cu_int value = 0;
  (void)slw_cu.DeviceGetAttribute(&value, attribute, slw_cuda_handle(device_id));
  return (size_t)value;
}

static slw_status set_version(TVMFFIAny *out, const char *format, cu_int major, cu_int minor) {
  char text[80];
  size_t used = slw_format(text, sizeof text, format, (int)major, (int)minor);
  return slw_any_set_string(out, text, used);
}

static slw_status give_attribute(int32_t device_id, int32_t attribute, TVMFFIAny *out) {
  size_t memory = 0;
  cu_int version = 0;
  memset(out, 0, sizeof *out);
  if (attribute == SLW_DEVICE_EXIST) {
    return slw_device_give_int(out, (uint64_t)slw_driver_has(&slw_cuda, device_id));
  }
  if (!slw_cuda_use(device_id)) {
    return SLW_ERROR_CALL;
  }
  switch (attribute) {
    case SLW_DEVICE_MAX_THREADS_PER_BLOCK:
      return slw_device_give_int(out, attribute_of(device_id, CU_MAX_THREADS_PER_BLOCK));
    case SLW_DEVICE_WARP_SIZE:
      return slw_device_give_int(out, attribute_of(device_id, CU_WARP_SIZE));
    case SLW_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK:
      return slw_device_give_int(out, attribute_of(device_id, CU_MAX_SHARED_MEMORY_PER_BLOCK));
#ifndef SLW_HIP
    case SLW_DEVICE_MAX_SHARED_MEMORY_OF_LAUNCH:
      return slw_device_give_int(out,
                                 attribute_of(device_id, CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
#endif
    case SLW_DEVICE_COMPUTE_VERSION: /* "8.0" is sm_80 */
      return set_version(out, "%d.%d", (cu_int)attribute_of(device_id, CU_COMPUTE_CAPABILITY_MAJOR),
                         (cu_int)attribute_of(device_id, CU_COMPUTE_CAPABILITY_MINOR));
    case SLW_DEVICE_NAME:
      return slw_any_set_string(out, slw_cuda.name(device_id), strlen(slw_cuda.name(device_id)));
    case SLW_DEVICE_MAX_CLOCK_RATE:
      return slw_device_give_int(out, attribute_of(device_id, CU_CLOCK_RATE));
    case SLW_DEVICE_MULTI_PROCESSOR_COUNT:
      return slw_device_give_int(out, attribute_of(device_id, CU_MULTIPROCESSOR_COUNT));
    case SLW_DEVICE_MAX_THREAD_DIMENSIONS:
      return slw_device_give_dimensions(out, attribute_of(device_id, CU_MAX_BLOCK_DIM_X),
                                        attribute_of(device_id, CU_MAX_BLOCK_DIM_Y),
                                        attribute_of(device_id, CU_MAX_BLOCK_DIM_Z));
    case SLW_DEVICE_API_VERSION:
    case SLW_DEVICE_DRIVER_VERSION:
      (void)slw_cu.DriverGetVersion(&version);
      return set_version(out, SLW_GPU_TITLE " %d.%d", GPU_MAJOR(version), GPU_MINOR(version));
    case SLW_DEVICE_TOTAL_GLOBAL_MEMORY:
      (void)slw_cu.DeviceTotalMem(&memory, slw_cuda_handle(device_id));
      return slw_device_give_int(out, memory);
    default:
      return SLW_OK;
  }
}

static const slw_device_api API = {
    SLW_GPU_NAME,       slw_cuda_alloc, slw_cuda_release, device_of,     read_memory, write_memory,
    copy_memory,  add_code,     drop_code,     launch_kernel, synchronize,   wait_all,
    give_attribute, launches,   mark,          between,         slw_cuda_trim, &slw_cuda_streams,
    NULL,
};

void slw_cuda_setup(void) { slw_device_register(SLW_GPU_KIND, &API); }
