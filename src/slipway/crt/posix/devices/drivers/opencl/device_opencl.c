/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL as a kind of device: the functions of device_api.h. */
#include <string.h>

#include "../../devices.h"
#include "opencl.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/object.h"

static slw_status checked(int32_t device_id, const char *what, cl_int code) {
  return (code == CL_SUCCESS) ? SLW_OK
                              : slw_opencl_failed(device_id, what, code);
}

/* Whether `size_bytes` from an address on are there. */
static cl_object buffer_of(const void *address, size_t size_bytes, size_t *offset,
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
  return (buffer_of(address, 0, &offset, device_id) != NULL) ? SLW_OK : SLW_ERROR_CALL;
}

/* Queue a copy between the host and what is known to be there. */
static cl_int queue_move(cl_object queue, cl_object memory, const void *address, size_t offset,
                         void *host, const void *source, size_t size_bytes, cl_uint waits,
                         cl_object *done, int *is_refused) {
  slw_opencl_rows rows;
  int is_image = slw_opencl_rows_of(address, size_bytes, &rows);
  *is_refused = is_image < 0;
  if (is_image < 0) {
    return CL_SUCCESS;
  }
  if (is_image != 0 && source != NULL) {
    return slw_cl.EnqueueWriteImage(queue, memory, waits, rows.origin, rows.region, 0, 0, source, 0,
                                    NULL, done);
  }
  if (is_image != 0) {
    return slw_cl.EnqueueReadImage(queue, memory, waits, rows.origin, rows.region, 0, 0, host, 0, NULL,
                                   done);
  }
  return (source != NULL) ? slw_cl.EnqueueWriteBuffer(queue, memory, waits, offset, size_bytes, source,
                                                      0, NULL, done)
                          : slw_cl.EnqueueReadBuffer(queue, memory, waits, offset, size_bytes, host, 0,
                                                     NULL, done);
}

/* Copy between the host and a device: to `host`, or from `source`.  Other threads' work may be queued
 * meanwhile. */
static slw_status move(const void *address, void *host, const void *source, size_t size_bytes) {
  const char *what = (source != NULL) ? "writing its memory" : "reading its memory";
  size_t offset = 0;
  int32_t id = 0;
  cl_object buffer = buffer_of(address, size_bytes, &offset, &id);
  slw_opencl_device *device = (buffer != NULL) ? slw_opencl_device_of(id) : NULL;
  cl_object queue = NULL;
  cl_object event = NULL;
  cl_object *done = &event;
  cl_uint waits = 0;
  cl_int code;
  int is_refused = 0;
  if (device == NULL || slw_opencl_begin(device, id, 1, &queue) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  if (device->streams.count == 0U) { /* there is no order to keep */
    slw_opencl_end();
    waits = 1;
    done = NULL;
  }
  code = queue_move(queue, buffer, address, offset, host, source, size_bytes, waits, done, &is_refused);
  if (is_refused) {
    if (done != NULL) {
      slw_opencl_end();
    }
    return SLW_ERROR_ARGUMENT;
  }
  return (done == NULL) ? checked(id, what, code) : slw_opencl_finish(id, done, what, code);
}

static slw_status read_memory(const void *from, void *host, size_t size_bytes) {
  return move(from, host, NULL, size_bytes);
}

static slw_status write_memory(void *to, const void *host, size_t size_bytes) {
  return move(to, NULL, host, size_bytes);
}

static slw_status copy_memory(const void *from, void *to, size_t size_bytes) {
  size_t from_offset = 0;
  size_t to_offset = 0;
  int32_t from_id = 0;
  int32_t to_id = 0;
  cl_object source = buffer_of(from, size_bytes, &from_offset, &from_id);
  cl_object target = buffer_of(to, size_bytes, &to_offset, &to_id);
  cl_object queue = NULL;
  slw_opencl_device *device;
  slw_opencl_rows rows;
  slw_opencl_rows to_rows;
  int is_image;
  int to_image;
  cl_int code;
  if (source == NULL || target == NULL) {
    return SLW_ERROR_CALL;
  }
  if (from_id != to_id) {
    slw_error_set("DeviceError", "two OpenCL devices have no memory in common: copy to cpu(0) first.");
    return SLW_ERROR_TENSOR;
  }
  is_image = slw_opencl_rows_of(from, size_bytes, &rows);
  to_image = slw_opencl_rows_of(to, size_bytes, &to_rows);
  if (is_image < 0 || to_image < 0) {
    return SLW_ERROR_ARGUMENT;
  }
  device = slw_opencl_device_of(from_id);
  if (device == NULL || slw_opencl_begin(device, from_id, 0, &queue) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  if (is_image != 0 && to_image != 0) { /* of one width, or the driver refuses */
    code = slw_cl.EnqueueCopyImage(queue, source, target, rows.origin, to_rows.origin, rows.region, 0,
                                   NULL, NULL);
  } else if (is_image != 0) {
    code = slw_cl.EnqueueCopyImageToBuffer(queue, source, target, rows.origin, rows.region, to_offset, 0,
                                           NULL, NULL);
  } else if (to_image != 0) {
    code = slw_cl.EnqueueCopyBufferToImage(queue, source, target, from_offset, to_rows.origin,
                                           to_rows.region, 0, NULL, NULL);
  } else {
    code = slw_cl.EnqueueCopyBuffer(queue, source, target, from_offset, to_offset, size_bytes, 0, NULL,
                                    NULL);
  }
  slw_opencl_end();
  return checked(from_id, "copying its memory", code);
}

static slw_status synchronize(int32_t device_id) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  cl_object queue = NULL;
  if (device == NULL || slw_opencl_begin(device, device_id, 1, &queue) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  slw_opencl_end();
  return checked(device_id, "waiting for its work", slw_cl.Finish(queue));
}

static slw_status wait_all(void) { return slw_driver_wait(&slw_opencl, synchronize); }

static slw_status add_code(const char *digest, const void *code, size_t size_bytes) {
  return slw_driver_add_code(&slw_opencl, digest, code, size_bytes);
}

static void drop_code(const char *digest) { slw_driver_drop_code(&slw_opencl, digest); }

/* --- launching ------------------------------------------------------------------------------- */

static slw_status set_arguments(const slw_device_launch *launch, int32_t device_id,
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
      code = slw_cl.SetKernelArg(kernel, (cl_uint)i, sizeof buffer, &buffer);
    } else if (launch->signature[i] == 's') { /* none is an error there */
      size_t given = (arg->v_int64 > 0) ? (size_t)arg->v_int64 : 1U;
      code = slw_cl.SetKernelArg(kernel, (cl_uint)i, given, NULL);
    } else {
      slw_device_scalar scalar;
      status = slw_device_scalar_of(launch->signature[i], arg, &scalar);
      if (status == SLW_OK) {
        code = slw_cl.SetKernelArg(kernel, (cl_uint)i, scalar.size_bytes,
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
      return slw_opencl_failed(device_id, what, code);
    }
  }
  return SLW_OK;
}

/* A kernel keeps its arguments from one call to the next. */
static pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;

static slw_status enqueue(const slw_device_launch *launch, slw_opencl_device *device,
                          int32_t device_id, cl_object kernel) {
  size_t global[3];
  cl_object queue = NULL;
  cl_int code;
  slw_status status = set_arguments(launch, device_id, kernel);
  if (status != SLW_OK) {
    return status;
  }
  for (int i = 0; i < 3; ++i) {
    global[i] = launch->grid[i] * launch->block[i];
  }
  status = slw_opencl_begin(device, device_id, 0, &queue);
  if (status != SLW_OK) {
    return status;
  }
  code = slw_cl.EnqueueNDRangeKernel(queue, kernel, 3, NULL, global, launch->block, 0, NULL, NULL);
  slw_opencl_end();
  if (code != CL_SUCCESS) {
    char what[160];
    (void)slw_format(what, sizeof what, "launching kernel %s", launch->kernel);
    return slw_opencl_failed(device_id, what, code);
  }
  return SLW_OK;
}

static slw_status launch_kernel(const slw_device_launch *launch) {
  int32_t device_id = 0;
  slw_opencl_device *device;
  const slw_device_kernel *kernel;
  slw_status status;
  if (slw_driver_of_launch(&slw_opencl, launch, device_of, &device_id) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  device = slw_opencl_device_of(device_id);
  kernel = (device != NULL) ? slw_driver_kernel(&slw_opencl, device_id, launch) : NULL;
  if (kernel == NULL) {
    return SLW_ERROR_CALL;
  }
  status = slw_driver_check_threads(&slw_opencl, device_id, launch, kernel->most_threads);
  if (status != SLW_OK) {
    return status;
  }
  (void)pthread_mutex_lock(&launching);
  status = enqueue(launch, device, device_id, (cl_object)(uintptr_t)kernel->handles[0]);
  (void)pthread_mutex_unlock(&launching);
  return status;
}

/* --- the device's clock -------------------------------------------------------------------------- */

static uint64_t launches(int32_t device_id) { return slw_driver_launches(&slw_opencl, device_id); }

/* Change to a queue that keeps times, which costs some drivers a little: from the first mark on.  The
 * queue before stays, for who may just be using it. */
static cl_int keep_times(slw_opencl_device *device) {
  cl_int code = slw_cl.Finish(device->queue);
  cl_object queue = NULL;
  if (code == CL_SUCCESS) {
    queue = slw_cl.CreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
  }
  if (code == CL_SUCCESS) {
    device->queue = queue;
    device->has_times = 1;
  }
  return code;
}

static slw_status mark(int32_t device_id, uint64_t *out) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  cl_object queue = NULL;
  cl_object event = NULL;
  cl_int code = CL_SUCCESS;
  if (device == NULL || slw_opencl_begin(device, device_id, 1, &queue) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  if (!device->has_times) {
    code = keep_times(device);
    queue = device->queue;
  }
  if (code != CL_SUCCESS) {
    slw_opencl_end();
    return slw_opencl_failed(device_id, "asking it for times", code);
  }
  code = slw_cl.EnqueueMarkerWithWaitList(queue, 0, NULL, &event);
  if (code == CL_SUCCESS) {
    code = slw_cl.Flush(queue); /* so that its time is that of now */
  }
  slw_opencl_end();
  *out = (uint64_t)(uintptr_t)event;
  return checked(device_id, "marking a time", code);
}

static slw_status between(int32_t device_id, uint64_t from, uint64_t to, uint64_t *duration_ns) {
  cl_object events[2] = {(cl_object)(uintptr_t)from, (cl_object)(uintptr_t)to};
  uint64_t times[2] = {0, 0};
  cl_int code = slw_cl.WaitForEvents(2, events);
  for (int i = 0; i < 2; ++i) {
    if (code == CL_SUCCESS) {
      code = slw_cl.GetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof times[i],
                                          &times[i], NULL);
    }
    (void)slw_cl.ReleaseEvent(events[i]);
  }
  *duration_ns = (times[1] > times[0]) ? times[1] - times[0] : 0U;
  return checked(device_id, "reading its clock", code);
}

/* --- properties ------------------------------------------------------------------------------ */

static slw_status give_text(const slw_opencl_device *device, cl_uint what, TVMFFIAny *out) {
  char text[256] = "";
  (void)slw_cl.GetDeviceInfo(device->id, what, sizeof text - 1, text, NULL);
  return slw_any_set_string(out, text, strlen(text));
}

static slw_status give_dimensions(const slw_opencl_device *device, TVMFFIAny *out) {
  size_t sizes[3] = {0, 0, 0};
  (void)slw_cl.GetDeviceInfo(device->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes,
                                           sizes, NULL);
  return slw_device_give_dimensions(out, sizes[0], sizes[1], sizes[2]);
}

static slw_status give_number(const slw_opencl_device *device, cl_uint what, size_t size_bytes,
                              uint64_t unit, TVMFFIAny *out) {
  uint64_t value = 0;
  (void)slw_cl.GetDeviceInfo(device->id, what, size_bytes, &value, NULL);
  return slw_device_give_int(out, value * unit);
}

static slw_status give_attribute(int32_t device_id, int32_t attribute, TVMFFIAny *out) {
  slw_opencl_device *device;
  memset(out, 0, sizeof *out);
  if (attribute == SLW_DEVICE_EXIST) {
    return slw_device_give_int(out, (uint64_t)slw_driver_has(&slw_opencl, device_id));
  }
  device = slw_opencl_device_of(device_id);
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  switch (attribute) {
    case SLW_DEVICE_MAX_THREADS_PER_BLOCK:
      return give_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t), 1, out);
    case SLW_DEVICE_WARP_SIZE: /* what OpenCL 1.2 does not say; nothing is built on more */
      return slw_device_give_int(out, 1);
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
    write_memory, copy_memory,      add_code,            drop_code,     launch_kernel,
    synchronize,  wait_all,         give_attribute,      launches,      mark,
    between,      NULL,             &slw_opencl_streams, slw_opencl_alloc_image,
};

void slw_opencl_setup(void) { slw_device_register(kDLOpenCL, &OPENCL); }
