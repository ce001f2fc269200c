/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA as a kind of device: the functions of device_api.h.  All work of a device is in its default
 * stream, in order.  Its addresses are the driver's own. */
#include <string.h>

#include "cuda.h"
#include "device_text.h"
#include "devices.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/object.h"

#define MAX_ARGUMENTS 128 /* backends/gpu/limits.py */

static slw_status checked(int32_t device_id, const char *what, cu_int code) {
  return (code == CU_SUCCESS) ? SLW_OK : slw_cuda_failed(device_id, what, code);
}

static cu_pointer pointer_of(const void *address) { return (cu_pointer)(uintptr_t)address; }

static slw_status alloc_memory(int32_t device_id, size_t size_bytes, void **out) {
  const slw_cuda_functions *cu = slw_cuda_use(device_id);
  cu_pointer made = 0;
  cu_int code;
  if (cu == NULL) {
    return SLW_ERROR_CALL;
  }
  code = cu->MemAlloc(&made, (size_bytes > 0U) ? size_bytes : 1U);
  if (code != CU_SUCCESS) {
    char what[80];
    (void)slw_format(what, sizeof what, "asking for %zu bytes", size_bytes);
    return slw_cuda_failed(device_id, what, code);
  }
  *out = (void *)(uintptr_t)made;
  return SLW_OK;
}

/* The driver waits for what still uses the memory. */
static void release_memory(void *memory) {
  int32_t device_id = 0;
  const slw_cuda_functions *cu = slw_cuda_driver();
  if (cu != NULL && memory != NULL &&
      cu->PointerGetAttribute(&device_id, CU_POINTER_DEVICE_ORDINAL, pointer_of(memory)) ==
          CU_SUCCESS &&
      slw_cuda_use(device_id) != NULL) {
    (void)cu->MemFree(pointer_of(memory));
  }
}

static slw_status device_of(const void *address, int32_t *device_id) {
  const slw_cuda_functions *cu = slw_cuda_driver();
  if (cu == NULL) {
    return SLW_ERROR_CALL;
  }
  if (cu->PointerGetAttribute(device_id, CU_POINTER_DEVICE_ORDINAL, pointer_of(address)) !=
      CU_SUCCESS) {
    slw_error_set("DeviceError", "an address is not in memory of a CUDA device.");
    return SLW_ERROR_TENSOR;
  }
  return SLW_OK;
}

/* Make the device of an address the one in use. */
static const slw_cuda_functions *use_of(const void *address, int32_t *device_id) {
  return (device_of(address, device_id) == SLW_OK) ? slw_cuda_use(*device_id) : NULL;
}

static slw_status read_memory(const void *from, void *host, size_t size_bytes) {
  int32_t id = 0;
  const slw_cuda_functions *cu = use_of(from, &id);
  return (cu == NULL) ? SLW_ERROR_CALL
                      : checked(id, "reading its memory",
                                cu->MemcpyDtoH(host, pointer_of(from), size_bytes));
}

static slw_status write_memory(void *to, const void *host, size_t size_bytes) {
  int32_t id = 0;
  const slw_cuda_functions *cu = use_of(to, &id);
  return (cu == NULL) ? SLW_ERROR_CALL
                      : checked(id, "writing its memory",
                                cu->MemcpyHtoD(pointer_of(to), host, size_bytes));
}

static slw_status copy_memory(const void *from, void *to, size_t size_bytes) {
  int32_t id = 0;
  const slw_cuda_functions *cu = use_of(to, &id);
  return (cu == NULL) ? SLW_ERROR_CALL
                      : checked(id, "copying its memory",
                                cu->MemcpyDtoD(pointer_of(to), pointer_of(from), size_bytes));
}

static slw_status synchronize(int32_t device_id) {
  const slw_cuda_functions *cu = slw_cuda_use(device_id);
  return (cu == NULL) ? SLW_ERROR_CALL
                      : checked(device_id, "its work", cu->CtxSynchronize());
}

static slw_status wait_all(void) {
  slw_status status = SLW_OK;
  for (int32_t id = 0; status == SLW_OK && slw_cuda_is_open(id) >= 0; ++id) {
    if (slw_cuda_is_open(id) > 0) {
      status = synchronize(id);
    }
  }
  return status;
}

/* --- launching ------------------------------------------------------------------------------- */

static slw_status enqueue(const slw_device_launch *launch, const slw_cuda_functions *cu,
                          int32_t device_id, cu_object kernel) {
  slw_device_scalar values[MAX_ARGUMENTS];
  void *arguments[MAX_ARGUMENTS];
  size_t count = strlen(launch->signature);
  cu_int code;
  if (count > MAX_ARGUMENTS) {
    (void)slw_error_setf("DeviceError", "kernel %s takes %zu arguments, and %d are the most.",
                         launch->kernel, count, MAX_ARGUMENTS);
    return SLW_ERROR_ARGUMENT;
  }
  for (size_t i = 0; i < count; ++i) {
    char kind = (launch->signature[i] == 'p') ? '8' : launch->signature[i];
    slw_status status = slw_device_scalar_of(kind, &launch->args[i], &values[i]);
    if (status != SLW_OK) {
      return status;
    }
    arguments[i] = &values[i].value;
  }
  code = cu->LaunchKernel(kernel, (unsigned)launch->grid[0], (unsigned)launch->grid[1],
                          (unsigned)launch->grid[2], (unsigned)launch->block[0],
                          (unsigned)launch->block[1], (unsigned)launch->block[2], 0U, NULL,
                          arguments, NULL);
  if (code != CU_SUCCESS) {
    char what[160];
    (void)slw_format(what, sizeof what, "launching kernel %s", launch->kernel);
    return slw_cuda_failed(device_id, what, code);
  }
  return SLW_OK;
}

static slw_status launch_kernel(const slw_device_launch *launch) {
  size_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  size_t most = 0;
  int32_t device_id = 0;
  const slw_cuda_functions *cu;
  cu_object kernel;
  if (slw_cuda_driver() == NULL ||
      slw_device_of_launch(launch, "cuda", device_of, &device_id) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  cu = slw_cuda_use(device_id);
  kernel = (cu != NULL) ? slw_cuda_kernel(device_id, launch->digest, launch->kernel, &most) : NULL;
  if (kernel == NULL) {
    return SLW_ERROR_CALL;
  }
  if (most > 0U && threads > most) {
    (void)slw_error_setf("DeviceError",
                         "kernel %s is launched with %zu threads in a block, and cuda(%d) (%s) runs "
                         "it with %zu at most. Split its axes by less, or compile for a target with "
                         "-max_threads_per_block=%zu.",
                         launch->kernel, threads, (int)device_id, slw_cuda_name(device_id), most,
                         most);
    return SLW_ERROR_ARGUMENT;
  }
  return enqueue(launch, cu, device_id, kernel);
}

/* --- properties ------------------------------------------------------------------------------ */

static slw_status set_int(TVMFFIAny *out, int64_t value) {
  memset(out, 0, sizeof *out);
  out->type_index = kTVMFFIInt;
  out->v_int64 = value;
  return SLW_OK;
}

static cu_int attribute_of(int32_t device_id, cu_int attribute) {
  cu_int value = 0;
  (void)slw_cuda_driver()->DeviceGetAttribute(&value, attribute, slw_cuda_handle(device_id));
  return value;
}

static slw_status set_text(TVMFFIAny *out, const char *format, int32_t a, int32_t b, int32_t c) {
  char text[80];
  size_t used = slw_format(text, sizeof text, format, (int)a, (int)b, (int)c);
  return slw_any_set_string(out, text, used);
}

static slw_status set_version(TVMFFIAny *out) {
  cu_int version = 0;
  (void)slw_cuda_driver()->DriverGetVersion(&version);
  return set_text(out, "CUDA %d.%d", version / 1000, version % 1000 / 10, 0);
}

static slw_status give_attribute(int32_t device_id, int32_t attribute, TVMFFIAny *out) {
  size_t memory = 0;
  memset(out, 0, sizeof *out);
  if (attribute == SLW_DEVICE_EXIST) {
    return set_int(out, slw_cuda_exists(device_id));
  }
  if (slw_cuda_use(device_id) == NULL) {
    return SLW_ERROR_CALL;
  }
  switch (attribute) {
    case SLW_DEVICE_MAX_THREADS_PER_BLOCK:
      return set_int(out, attribute_of(device_id, CU_MAX_THREADS_PER_BLOCK));
    case SLW_DEVICE_WARP_SIZE:
      return set_int(out, attribute_of(device_id, CU_WARP_SIZE));
    case SLW_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK:
      return set_int(out, attribute_of(device_id, CU_MAX_SHARED_MEMORY_PER_BLOCK));
    case SLW_DEVICE_COMPUTE_VERSION: /* "8.0" is sm_80 */
      return set_text(out, "%d.%d", attribute_of(device_id, CU_COMPUTE_CAPABILITY_MAJOR),
                      attribute_of(device_id, CU_COMPUTE_CAPABILITY_MINOR), 0);
    case SLW_DEVICE_NAME:
      return slw_any_set_string(out, slw_cuda_name(device_id), strlen(slw_cuda_name(device_id)));
    case SLW_DEVICE_MAX_CLOCK_RATE:
      return set_int(out, attribute_of(device_id, CU_CLOCK_RATE));
    case SLW_DEVICE_MULTI_PROCESSOR_COUNT:
      return set_int(out, attribute_of(device_id, CU_MULTIPROCESSOR_COUNT));
    case SLW_DEVICE_MAX_THREAD_DIMENSIONS:
      return set_text(out, "[%d, %d, %d]", attribute_of(device_id, CU_MAX_BLOCK_DIM_X),
                      attribute_of(device_id, CU_MAX_BLOCK_DIM_Y),
                      attribute_of(device_id, CU_MAX_BLOCK_DIM_Z));
    case SLW_DEVICE_API_VERSION:
    case SLW_DEVICE_DRIVER_VERSION:
      return set_version(out);
    case SLW_DEVICE_TOTAL_GLOBAL_MEMORY:
      (void)slw_cuda_driver()->DeviceTotalMem(&memory, slw_cuda_handle(device_id));
      return set_int(out, (int64_t)memory);
    default:
      return SLW_OK;
  }
}

static const slw_device_api CUDA = {
    "cuda",       alloc_memory, release_memory,    device_of,     read_memory, write_memory,
    copy_memory,  slw_cuda_add_code, launch_kernel, synchronize,   wait_all,    give_attribute,
};

void slw_cuda_setup(void) { slw_device_register(kDLCUDA, &CUDA); }
