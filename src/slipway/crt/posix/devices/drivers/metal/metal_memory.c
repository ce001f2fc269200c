/* SPDX-License-Identifier: Apache-2.0 */
/* Metal's memory has objects; tensors have addresses (device_space.h).  Where the processor sees the device's memory
 * it is copied directly, else through a buffer that both see. */
#include <string.h>

#include "../device_space.h"
#include "metal.h"
#include "slipway/error.h"
#include "slipway/format.h"

#define STAGING_BYTES ((size_t)4 << 20)

static slw_device_space space = SLW_DEVICE_SPACE_EMPTY;

static mtl_object make_buffer(const slw_metal_device *device, size_t size_bytes, mtl_count options) {
  mtl_object made = SLW_SEND(mtl_object, device->id, "newBufferWithLength:options:",
                             (mtl_count, mtl_count), (mtl_count)size_bytes, options);
  if (made == NULL) {
    char what[80];
    (void)slw_format(what, sizeof what, "asking for %zu bytes", size_bytes);
    (void)slw_metal_failed(device, what, 8, "more than it has, or than one buffer may have");
  }
  return made;
}

slw_status slw_metal_alloc(int32_t device_id, size_t size_bytes, void **out) {
  slw_metal_device *device = slw_metal_device_of(device_id);
  mtl_object made;
  slw_status status;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  made = make_buffer(device, (size_bytes > 0U) ? size_bytes : 1U,
                     device->is_unified ? MTL_STORAGE_SHARED : MTL_STORAGE_PRIVATE);
  if (made == NULL) {
    return SLW_ERROR_MEMORY;
  }
  status = slw_device_space_add(&space, size_bytes, device_id, made, out);
  if (status != SLW_OK) {
    SLW_ASK(void, made, "release");
  }
  return status;
}

/* Command buffers keep what they use. */
void slw_metal_release(void *memory) {
  mtl_object gone = slw_device_space_remove(&space, memory);
  if (gone != NULL && slw_driver_works(&slw_metal)) {
    SLW_ASK(void, gone, "release");
  }
}

mtl_object slw_metal_locate(const void *address, size_t size_bytes, size_t *offset,
                            int32_t *device_id) {
  slw_device_range range;
  if (!slw_device_space_find(&space, address, &range, offset)) {
    slw_error_set("DeviceError", "an address that is to be in the memory of a Metal device is not: "
                                 "the tensor has been freed, or lies elsewhere.");
    return NULL;
  }
  if (size_bytes > range.size_bytes - *offset) {
    slw_error_set("DeviceError", "a copy would go beyond the end of memory of a Metal device.");
    return NULL;
  }
  *device_id = range.device_id;
  return range.held;
}

static slw_status record_copy(slw_metal_device *device, mtl_object from, size_t from_offset,
                              mtl_object to, size_t to_offset, size_t size_bytes) {
  mtl_object encoder = slw_metal_encoder(device, 1);
  if (encoder == NULL) {
    return SLW_ERROR_CALL;
  }
  SLW_SEND(void, encoder, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",
           (mtl_object, mtl_count, mtl_object, mtl_count, mtl_count), from, (mtl_count)from_offset,
           to, (mtl_count)to_offset, (mtl_count)size_bytes);
  return SLW_OK;
}

static char *contents_of(mtl_object buffer) { return SLW_ASK(char *, buffer, "contents"); }

static slw_status move_staged(slw_metal_device *device, mtl_object buffer, size_t offset, char *host,
                              const char *source, size_t size_bytes) {
  slw_status status = SLW_OK;
  if (device->staging == NULL) {
    device->staging = make_buffer(device, STAGING_BYTES, MTL_STORAGE_SHARED);
    status = (device->staging != NULL) ? SLW_OK : SLW_ERROR_MEMORY;
  }
  while (status == SLW_OK && size_bytes > 0U) {
    size_t piece = (size_bytes < STAGING_BYTES) ? size_bytes : STAGING_BYTES;
    if (source != NULL) {
      memcpy(contents_of(device->staging), source, piece);
      source += piece;
      status = record_copy(device, device->staging, 0, buffer, offset, piece);
    } else {
      status = record_copy(device, buffer, offset, device->staging, 0, piece);
    }
    if (status == SLW_OK) {
      status = slw_metal_wait(device);
    }
    if (status == SLW_OK && host != NULL) {
      memcpy(host, contents_of(device->staging), piece);
      host += piece;
    }
    offset += piece;
    size_bytes -= piece;
  }
  return status;
}

static slw_status move(const void *address, char *host, const char *source, size_t size_bytes) {
  size_t offset = 0;
  int32_t id = 0;
  mtl_object buffer = slw_metal_locate(address, size_bytes, &offset, &id);
  slw_metal_device *device = (buffer != NULL) ? slw_metal_device_of(id) : NULL;
  slw_status status;
  void *pool;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  pool = slw_metal_calls.objc_autoreleasePoolPush();
  (void)pthread_mutex_lock(&device->lock);
  status = slw_metal_wait(device);
  if (status == SLW_OK && !device->is_unified) {
    status = move_staged(device, buffer, offset, host, source, size_bytes);
  } else if (status == SLW_OK && source != NULL) {
    memcpy(contents_of(buffer) + offset, source, size_bytes);
  } else if (status == SLW_OK) {
    memcpy(host, contents_of(buffer) + offset, size_bytes);
  }
  (void)pthread_mutex_unlock(&device->lock);
  slw_metal_calls.objc_autoreleasePoolPop(pool);
  return status;
}

slw_status slw_metal_read(const void *from, void *host, size_t size_bytes) {
  return move(from, host, NULL, size_bytes);
}

slw_status slw_metal_write(void *to, const void *host, size_t size_bytes) {
  return move(to, NULL, host, size_bytes);
}

slw_status slw_metal_copy(const void *from, void *to, size_t size_bytes) {
  size_t from_offset = 0;
  size_t to_offset = 0;
  int32_t from_id = 0;
  int32_t to_id = 0;
  mtl_object source = slw_metal_locate(from, size_bytes, &from_offset, &from_id);
  mtl_object target = slw_metal_locate(to, size_bytes, &to_offset, &to_id);
  slw_metal_device *device;
  slw_status status;
  void *pool;
  if (source == NULL || target == NULL) {
    return SLW_ERROR_CALL;
  }
  if (from_id != to_id) {
    slw_error_set("DeviceError", "two Metal devices have no memory in common: copy to cpu(0) first.");
    return SLW_ERROR_TENSOR;
  }
  device = slw_metal_device_of(from_id);
  if (device == NULL || size_bytes == 0U) {
    return (device == NULL) ? SLW_ERROR_CALL : SLW_OK;
  }
  pool = slw_metal_calls.objc_autoreleasePoolPush();
  (void)pthread_mutex_lock(&device->lock);
  status = record_copy(device, source, from_offset, target, to_offset, size_bytes);
  (void)pthread_mutex_unlock(&device->lock);
  slw_metal_calls.objc_autoreleasePoolPop(pool);
  return status;
}
