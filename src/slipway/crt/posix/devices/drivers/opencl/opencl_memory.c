/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL's memory has handles; tensors have addresses (device_space.h).  An address inside an
 * allocation is a part of its buffer, made when a kernel is first given it. */
#include <stdlib.h>
#include <string.h>

#include "../device_space.h"
#include "opencl.h"
#include "slipway/error.h"
#include "slipway/format.h"

typedef struct {
  size_t offset;
  cl_object buffer;
} part;

typedef struct {
  cl_object buffer;
  part *parts;
  size_t num_parts;
  size_t row_bytes; /* of an image; 0: it is a buffer */
  size_t width;     /* of an image, in texels */
} allocation;

static slw_device_space space = SLW_DEVICE_SPACE_EMPTY;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the parts */

/* Remember what the driver has made, or say why it has not. */
static slw_status enter(int32_t device_id, cl_object buffer, size_t size_bytes, cl_int code,
                        size_t width, size_t row_bytes, void **out) {
  allocation *made;
  slw_status status;
  if (code != CL_SUCCESS) {
    char what[80];
    (void)slw_format(what, sizeof what, "asking for %zu bytes", size_bytes);
    return slw_opencl_failed(device_id, what, code);
  }
  made = calloc(1, sizeof *made);
  if (made == NULL) {
    (void)slw_cl.ReleaseMemObject(buffer);
    slw_error_set("MemoryError", "no memory for the list of device memory");
    return SLW_ERROR_MEMORY;
  }
  made->buffer = buffer;
  made->width = width;
  made->row_bytes = row_bytes;
  status = slw_device_space_add(&space, size_bytes, device_id, made, out);
  if (status != SLW_OK) {
    (void)slw_cl.ReleaseMemObject(buffer);
    free(made);
  }
  return status;
}

slw_status slw_opencl_alloc(int32_t device_id, size_t size_bytes, void **out) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  uint64_t most = 0;
  cl_object buffer;
  cl_int code = CL_SUCCESS;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)slw_cl.GetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL);
  if (most > 0U && size_bytes > most) {
    (void)slw_error_setf("DeviceError", "opencl(%d) (%s) has no allocation of %zu bytes: one may "
                                        "have %llu.",
                         (int)device_id, device->name, size_bytes, (unsigned long long)most);
    return SLW_ERROR_MEMORY;
  }
  buffer = slw_cl.CreateBuffer(device->context, device->memory,
                               (size_bytes > 0U) ? size_bytes : 1U, NULL, &code);
  return enter(device_id, buffer, size_bytes, code, 0, 0, out);
}

slw_status slw_opencl_alloc_image(int32_t device_id, size_t width, size_t height, int32_t bits,
                                  void **out) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  cl_image_format format = {CL_RGBA, (bits == 16) ? CL_HALF_FLOAT : CL_FLOAT};
  cl_image_desc desc;
  cl_uint has = 0;
  size_t most[2] = {0, 0};
  cl_object image;
  cl_int code = CL_SUCCESS;
  const size_t row_bytes = width * 4U * (size_t)(bits / 8);
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)slw_cl.GetDeviceInfo(device->id, CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, NULL);
  (void)slw_cl.GetDeviceInfo(device->id, CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof most[0], &most[0], NULL);
  (void)slw_cl.GetDeviceInfo(device->id, CL_DEVICE_IMAGE2D_MAX_HEIGHT, sizeof most[1], &most[1],
                             NULL);
  if (has == 0U || width > most[0] || height > most[1]) {
    (void)slw_error_setf("DeviceError",
                         "opencl(%d) (%s) has no image of %zu x %zu texels, which memory in scope "
                         "\"global.texture\" is: %s%zu x %zu. Keep it in scope \"global\", or compile with "
                         "-texture_spatial_limit for such a device.",
                         (int)device_id, device->name, width, height,
                         (has == 0U) ? "it has no images; 0 of " : "the largest is ", most[0], most[1]);
    return SLW_ERROR_UNSUPPORTED;
  }
  memset(&desc, 0, sizeof desc);
  desc.type = CL_MEM_OBJECT_IMAGE2D;
  desc.width = width;
  desc.height = height;
  image = slw_cl.CreateImage(device->context, device->memory, &format, &desc, NULL, &code);
  return enter(device_id, image, row_bytes * height, code, width, row_bytes, out);
}

void slw_opencl_release(void *memory) {
  allocation *gone = slw_device_space_remove(&space, memory);
  if (gone == NULL || !slw_driver_works(&slw_opencl)) {
    return;
  }
  /* The driver keeps what queued work still uses. */
  for (size_t i = 0; i < gone->num_parts; ++i) {
    (void)slw_cl.ReleaseMemObject(gone->parts[i].buffer);
  }
  (void)slw_cl.ReleaseMemObject(gone->buffer);
  free(gone->parts);
  free(gone);
}

cl_object slw_opencl_locate(const void *address, size_t *offset, size_t *left,
                            int32_t *device_id) {
  slw_device_range range;
  if (!slw_device_space_find(&space, address, &range, offset)) {
    slw_error_set("DeviceError", "an address that is to be in the memory of an OpenCL device is not: "
                                 "the tensor has been freed, or lies elsewhere.");
    return NULL;
  }
  *left = range.size_bytes - *offset;
  *device_id = range.device_id;
  return ((const allocation *)range.held)->buffer;
}

int slw_opencl_rows_of(const void *address, size_t size_bytes, slw_opencl_rows *rows) {
  slw_device_range range;
  size_t offset = 0;
  const allocation *found;
  if (!slw_device_space_find(&space, address, &range, &offset)) {
    return 0;
  }
  found = range.held;
  if (found->row_bytes == 0U) {
    return 0;
  }
  if (offset % found->row_bytes != 0U || size_bytes % found->row_bytes != 0U || size_bytes == 0U) {
    (void)slw_error_setf("DeviceError", "a copy of %zu bytes of an image of an OpenCL device is of no whole "
                                        "rows, which have %zu.", size_bytes, found->row_bytes);
    return -1;
  }
  memset(rows, 0, sizeof *rows);
  rows->origin[1] = offset / found->row_bytes;
  rows->region[0] = found->width;
  rows->region[1] = size_bytes / found->row_bytes;
  rows->region[2] = 1;
  return 1;
}

static cl_object known_part(const allocation *found, size_t offset) {
  for (size_t i = 0; i < found->num_parts; ++i) {
    if (found->parts[i].offset == offset) {
      return found->parts[i].buffer;
    }
  }
  return NULL;
}

static cl_object make_part(const slw_device_range *range, size_t offset) {
  slw_opencl_device *device = slw_opencl_device_of(range->device_id);
  allocation *found = range->held;
  cl_region region = {offset, range->size_bytes - offset};
  cl_int code = CL_SUCCESS;
  cl_object buffer;
  part *grown;
  if (offset % device->base_alignment != 0U) {
    (void)slw_error_setf("DeviceError",
                         "opencl(%d) (%s): a tensor begins %zu bytes into its memory, and this device "
                         "takes offsets at multiples of %zu only. Copy it into a tensor of its own.",
                         (int)range->device_id, device->name, offset, device->base_alignment);
    return NULL;
  }
  grown = realloc(found->parts, (found->num_parts + 1U) * sizeof *grown);
  if (grown == NULL) {
    slw_error_set("MemoryError", "no memory for a part of device memory");
    return NULL;
  }
  found->parts = grown;
  buffer = slw_cl.CreateSubBuffer(found->buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                               &region, &code);
  if (code != CL_SUCCESS) {
    (void)slw_opencl_failed(range->device_id, "taking a part of its memory", code);
    return NULL;
  }
  grown[found->num_parts].offset = offset;
  grown[found->num_parts].buffer = buffer;
  ++found->num_parts;
  return buffer;
}

cl_object slw_opencl_buffer_at(const void *address, int32_t *device_id) {
  slw_device_range range;
  size_t offset = 0;
  cl_object buffer;
  if (!slw_device_space_find(&space, address, &range, &offset)) {
    slw_error_set("DeviceError", "a kernel was given an address that is not in the memory of an "
                                 "OpenCL device.");
    return NULL;
  }
  *device_id = range.device_id;
  if (offset == 0U) {
    return ((const allocation *)range.held)->buffer;
  }
  (void)pthread_mutex_lock(&lock);
  buffer = known_part(range.held, offset);
  if (buffer == NULL) {
    buffer = make_part(&range, offset);
  }
  (void)pthread_mutex_unlock(&lock);
  return buffer;
}
