/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL as a kind of device: the functions of device_api.h. */
#include <string.h>

#include "device_text.h"
#include "devices.h"
#include "opencl.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/object.h"

static slw_status checked(int32_t device_id, const char *what, cl_int code) {
  return (code == CL_SUCCESS) ? SLW_OK
                              : slw_opencl_failed(slw_opencl_device_of(device_id), what, code);
}

/* Whether `size_bytes` from an address on are there. */
static cl_object place(const void *address, size_t size_bytes, size_t *offset,
                       int32_t *device_id) {
  size_t left = 0;
  cl_object buffer = slw_opencl_locate(address, offset, &left, device_id);
  if (buffer != NULL && size_bytes > left) {
    slw_error_set("DeviceError", "a copy would go beyond the end of memory of an OpenCL device.");
    return NULL;
  }
  return buffer;
}

static slw_status device_of(const void *address, int32_t *device_id) {
  size_t offset = 0;
  return (place(address, 0, &offset, device_id) != NULL) ? SLW_OK : SLW_ERROR_CALL;
}

static slw_status read_memory(const void *from, void *host, size_t size_bytes) {
  size_t offset = 0;
  int32_t id = 0;
  cl_object buffer = place(from, size_bytes, &offset, &id);
  slw_opencl_device *device = (buffer != NULL) ? slw_opencl_device_of(id) : NULL;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  return checked(id, "reading its memory",
                 slw_opencl_driver()->EnqueueReadBuffer(device->queue, buffer, 1, offset,
                                                        size_bytes, host, 0, NULL, NULL));
}

static slw_status write_memory(void *to, const void *host, size_t size_bytes) {
  size_t offset = 0;
  int32_t id = 0;
  cl_object buffer = place(to, size_bytes, &offset, &id);
  slw_opencl_device *device = (buffer != NULL) ? slw_opencl_device_of(id) : NULL;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  return checked(id, "writing its memory",
                 slw_opencl_driver()->EnqueueWriteBuffer(device->queue, buffer, 1, offset,
                                                         size_bytes, host, 0, NULL, NULL));
}

static slw_status copy_memory(const void *from, void *to, size_t size_bytes) {
  size_t from_offset = 0;
  size_t to_offset = 0;
  int32_t from_id = 0;
  int32_t to_id = 0;
  cl_object source = place(from, size_bytes, &from_offset, &from_id);
  cl_object target = place(to, size_bytes, &to_offset, &to_id);
  slw_opencl_device *device;
  if (source == NULL || target == NULL) {
    return SLW_ERROR_CALL;
  }
  if (from_id != to_id) {
    slw_error_set("DeviceError", "two OpenCL devices have no memory in common: copy to cpu(0) first.");
    return SLW_ERROR_TENSOR;
  }
  device = slw_opencl_device_of(from_id);
  return checked(from_id, "copying its memory",
                 slw_opencl_driver()->EnqueueCopyBuffer(device->queue, source, target, from_offset,
                                                        to_offset, size_bytes, 0, NULL, NULL));
}

static slw_status synchronize(int32_t device_id) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  return (device == NULL) ? SLW_ERROR_CALL
                          : checked(device_id, "waiting for its work",
                                    slw_opencl_driver()->Finish(device->queue));
}

static slw_status wait_all(void) {
  slw_status status = SLW_OK;
  for (int32_t id = 0; status == SLW_OK && slw_opencl_is_open(id) >= 0; ++id) {
    if (slw_opencl_is_open(id) > 0) {
      status = synchronize(id);
    }
  }
  return status;
}

/* --- launching ------------------------------------------------------------------------------- */

static slw_status set_arguments(const slw_device_launch *launch, slw_opencl_device *device,
                                cl_object kernel) {
  for (int32_t i = 0; launch->signature[i] != '\0'; ++i) {
    const TVMFFIAny *arg = &launch->args[i];
    cl_int code = CL_SUCCESS;
    slw_status status = SLW_OK;
    if (launch->signature[i] == 'p') {
      int32_t id = 0;
      cl_object buffer = (arg->v_ptr != NULL) ? slw_opencl_buffer_at(arg->v_ptr, &id) : NULL;
      if (buffer == NULL && arg->v_ptr != NULL) {
        return SLW_ERROR_CALL;
      }
      code = slw_opencl_driver()->SetKernelArg(kernel, (cl_uint)i, sizeof buffer, &buffer);
    } else {
      slw_device_scalar scalar;
      status = slw_device_scalar_of(launch->signature[i], arg, &scalar);
      if (status == SLW_OK) {
        code = slw_opencl_driver()->SetKernelArg(kernel, (cl_uint)i, scalar.size_bytes,
                                                 &scalar.value);
      }
    }
    if (status != SLW_OK) {
      return status;
    }
    if (code != CL_SUCCESS) {
      char what[160];
      (void)slw_format(what, sizeof what, "giving kernel %s its argument %d", launch->kernel,
                       (int)i);
      return slw_opencl_failed(device, what, code);
    }
  }
  return SLW_OK;
}

static slw_status enqueue(const slw_device_launch *launch, slw_opencl_device *device,
                          int32_t device_id) {
  size_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  size_t global[3];
  size_t most = 0;
  cl_int code;
  slw_status status;
  cl_object kernel = slw_opencl_kernel(device, device_id, launch->digest, launch->kernel, &most);
  if (kernel == NULL) {
    return SLW_ERROR_CALL;
  }
  if (most > 0U && threads > most) {
    (void)slw_error_setf("DeviceError",
                         "kernel %s is launched with %zu threads in a block, and opencl(%d) (%s) "
                         "runs it with %zu at most. Split its axes by less, or compile for a target "
                         "with -max_threads_per_block=%zu.",
                         launch->kernel, threads, (int)device_id, device->name, most, most);
    return SLW_ERROR_ARGUMENT;
  }
  status = set_arguments(launch, device, kernel);
  if (status != SLW_OK) {
    return status;
  }
  for (int i = 0; i < 3; ++i) {
    global[i] = launch->grid[i] * launch->block[i];
  }
  code = slw_opencl_driver()->EnqueueNDRangeKernel(device->queue, kernel, 3, NULL, global,
                                                   launch->block, 0, NULL, NULL);
  if (code != CL_SUCCESS) {
    char what[160];
    (void)slw_format(what, sizeof what, "launching kernel %s", launch->kernel);
    return slw_opencl_failed(device, what, code);
  }
  return SLW_OK;
}

static slw_status launch_kernel(const slw_device_launch *launch) {
  int32_t device_id = 0;
  slw_opencl_device *device;
  slw_status status;
  if (slw_opencl_driver() == NULL ||
      slw_device_of_launch(launch, "opencl", device_of, &device_id) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  device = slw_opencl_device_of(device_id);
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  slw_opencl_lock();
  status = enqueue(launch, device, device_id);
  slw_opencl_unlock();
  return status;
}

/* --- properties ------------------------------------------------------------------------------ */

static void set_int(TVMFFIAny *out, uint64_t value) {
  memset(out, 0, sizeof *out);
  out->type_index = kTVMFFIInt;
  out->v_int64 = (int64_t)value;
}

static slw_status give_text(const slw_opencl_device *device, cl_uint what, TVMFFIAny *out) {
  char text[256] = "";
  (void)slw_opencl_driver()->GetDeviceInfo(device->id, what, sizeof text - 1, text, NULL);
  return slw_any_set_string(out, text, strlen(text));
}

static slw_status give_dimensions(const slw_opencl_device *device, TVMFFIAny *out) {
  size_t sizes[3] = {0, 0, 0};
  char text[80];
  size_t used;
  (void)slw_opencl_driver()->GetDeviceInfo(device->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes,
                                           sizes, NULL);
  used = slw_format(text, sizeof text, "[%zu, %zu, %zu]", sizes[0], sizes[1], sizes[2]);
  return slw_any_set_string(out, text, used);
}

static slw_status give_number(const slw_opencl_device *device, cl_uint what, size_t size_bytes,
                              uint64_t unit, TVMFFIAny *out) {
  uint64_t value = 0;
  (void)slw_opencl_driver()->GetDeviceInfo(device->id, what, size_bytes, &value, NULL);
  set_int(out, value * unit);
  return SLW_OK;
}

static slw_status give_attribute(int32_t device_id, int32_t attribute, TVMFFIAny *out) {
  slw_opencl_device *device;
  memset(out, 0, sizeof *out);
  if (attribute == SLW_DEVICE_EXIST) {
    set_int(out, (uint64_t)slw_opencl_exists(device_id));
    return SLW_OK;
  }
  device = slw_opencl_device_of(device_id);
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  switch (attribute) {
    case SLW_DEVICE_MAX_THREADS_PER_BLOCK:
      return give_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t), 1, out);
    case SLW_DEVICE_WARP_SIZE: /* what OpenCL 1.2 does not say; nothing is built on more */
      set_int(out, 1);
      return SLW_OK;
    case SLW_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK:
      return give_number(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(uint64_t), 1, out);
    case SLW_DEVICE_COMPUTE_VERSION:
    case SLW_DEVICE_API_VERSION:
      return give_text(device, CL_DEVICE_VERSION, out);
    case SLW_DEVICE_NAME:
      return give_text(device, CL_DEVICE_NAME, out);
    case SLW_DEVICE_MAX_CLOCK_RATE:
      return give_number(device, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(cl_uint), 1000, out);
    case SLW_DEVICE_MULTI_PROCESSOR_COUNT:
      return give_number(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint), 1, out);
    case SLW_DEVICE_MAX_THREAD_DIMENSIONS:
      return give_dimensions(device, out);
    case SLW_DEVICE_DRIVER_VERSION:
      return give_text(device, CL_DRIVER_VERSION, out);
    case SLW_DEVICE_TOTAL_GLOBAL_MEMORY:
      return give_number(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(uint64_t), 1, out);
    default:
      return SLW_OK;
  }
}

static const slw_device_api OPENCL = {
    "opencl",     slw_opencl_alloc, slw_opencl_release,  device_of,     read_memory,
    write_memory, copy_memory,      slw_opencl_add_code, launch_kernel, synchronize,
    wait_all,     give_attribute,
};

void slw_opencl_setup(void) { slw_device_register(kDLOpenCL, &OPENCL); }
