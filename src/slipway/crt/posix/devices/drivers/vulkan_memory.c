/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan's memory: a buffer for each allocation.  One that is released may still be in use by
 * recorded kernels; all work is in order, so another allocation may have it at once, and what
 * nobody wants is destroyed when nothing runs. */
#include <stdlib.h>
#include <string.h>

#include "device_space.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "vulkan.h"

#define SPARE_SHARE 16U /* of the device's memory, at most one part in so many lies spare */

static slw_device_space space = SLW_DEVICE_SPACE_EMPTY;

static uint32_t choose_type(const slw_vulkan_device *device, uint32_t allowed, int is_for_host) {
  uint32_t seen = VK_MEMORY_HOST_VISIBLE | VK_MEMORY_HOST_COHERENT;
  uint32_t here = VK_MEMORY_DEVICE_LOCAL;
  int is_apart = device->properties.kind == VK_KIND_DISCRETE;
  uint32_t wanted[3];
  wanted[0] = is_for_host ? (seen | VK_MEMORY_HOST_CACHED) : is_apart ? here : (here | seen);
  wanted[1] = is_for_host ? seen : here;
  wanted[2] = is_for_host ? VK_MEMORY_HOST_VISIBLE : 0U;
  for (int k = 0; k < 3; ++k) {
    for (uint32_t i = 0; i < device->memory.num_types; ++i) {
      if ((allowed >> i & 1U) != 0U &&
          (device->memory.types[i].properties & wanted[k]) == wanted[k]) {
        return i;
      }
    }
  }
  return 0;
}

slw_status slw_vulkan_make_buffer(slw_vulkan_device *device, size_t size_bytes, int is_for_host,
                                  slw_vulkan_buffer *out) {
  vk_buffer_info info = {VK_TYPE_BUFFER, NULL, 0, size_bytes,
                         VK_USAGE_STORAGE | VK_USAGE_TRANSFER_BOTH, 0, 0, NULL};
  vk_requirements needs = {0, 0, 0};
  vk_allocate_info allocation = {VK_TYPE_ALLOCATE, NULL, 0, 0};
  slw_vulkan_buffer made = {0, 0, NULL, size_bytes};
  char what[80];
  uint32_t seen = VK_MEMORY_HOST_VISIBLE | VK_MEMORY_HOST_COHERENT;
  vk_result code = slw_vk.CreateBuffer(device->device, &info, NULL, &made.buffer);
  if (code == VK_SUCCESS) {
    slw_vk.GetBufferMemoryRequirements(device->device, made.buffer, &needs);
    allocation.size = needs.size;
    allocation.memory_type = choose_type(device, needs.types, is_for_host);
    code = slw_vk.AllocateMemory(device->device, &allocation, NULL, &made.memory);
  }
  if (code == VK_SUCCESS) {
    code = slw_vk.BindBufferMemory(device->device, made.buffer, made.memory, 0);
  }
  if (code == VK_SUCCESS && (is_for_host || getenv("SLIPWAY_VULKAN_STAGING") == NULL) &&
      (device->memory.types[allocation.memory_type].properties & seen) == seen) {
    void *mapped = NULL;
    code = slw_vk.MapMemory(device->device, made.memory, 0, (uint64_t)VK_WHOLE, 0, &mapped);
    made.mapped = mapped;
  }
  if (code == VK_SUCCESS) {
    *out = made;
    return SLW_OK;
  }
  if (made.buffer != 0U) {
    slw_vk.DestroyBuffer(device->device, made.buffer, NULL);
  }
  if (made.memory != 0U) {
    slw_vk.FreeMemory(device->device, made.memory, NULL);
  }
  (void)slw_format(what, sizeof what, "asking for %zu bytes", size_bytes);
  return slw_vulkan_failed(device, what, code);
}

/* The smallest spare buffer that is large enough, and not much larger. */
static int take_spare(slw_vulkan_device *device, size_t size_bytes, slw_vulkan_buffer *out) {
  size_t best = device->num_spare;
  for (size_t i = 0; i < device->num_spare; ++i) {
    size_t size = device->spare[i].size_bytes;
    if (size >= size_bytes && size / 2U <= size_bytes &&
        (best == device->num_spare || size < device->spare[best].size_bytes)) {
      best = i;
    }
  }
  if (best == device->num_spare) {
    return 0;
  }
  *out = device->spare[best];
  device->spare_bytes -= out->size_bytes;
  device->spare[best] = device->spare[--device->num_spare];
  return 1;
}

static void destroy(const slw_vulkan_device *device, const slw_vulkan_buffer *gone) {
  slw_vk.DestroyBuffer(device->device, gone->buffer, NULL);
  slw_vk.FreeMemory(device->device, gone->memory, NULL);
}

/* Destroy what is spare, once nothing runs. */
static slw_status trim(slw_vulkan_device *device) {
  slw_status status = slw_vulkan_wait(device);
  while (status == SLW_OK && device->num_spare > 0U) {
    --device->num_spare;
    device->spare_bytes -= device->spare[device->num_spare].size_bytes;
    destroy(device, &device->spare[device->num_spare]);
  }
  return status;
}

slw_status slw_vulkan_trim(int32_t device_id) {
  slw_vulkan_device *device = slw_vulkan_device_of(device_id);
  slw_status status;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&device->lock);
  status = trim(device);
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}

/* Keep a buffer for the next allocation of its size, or destroy it: what is kept has a bound. */
static void keep(slw_vulkan_device *device, const slw_vulkan_buffer *gone) {
  size_t most = (size_t)(slw_vulkan_memory_of(device) / SPARE_SHARE);
  if (device->num_spare == SLW_VULKAN_SPARE || gone->size_bytes > most - device->spare_bytes) {
    device->is_untold = trim(device) != SLW_OK;
  }
  if (device->num_spare == SLW_VULKAN_SPARE || gone->size_bytes > most - device->spare_bytes) {
    slw_vulkan_settle(device); /* a lost device has no work that could use it */
    destroy(device, gone);
    return;
  }
  device->spare[device->num_spare++] = *gone;
  device->spare_bytes += gone->size_bytes;
}

static slw_status obtain(slw_vulkan_device *device, size_t size_bytes, slw_vulkan_buffer *out) {
  size_t size = (size_bytes > 0U) ? (size_bytes + 255U) & ~(size_t)255U : 256U;
  slw_status status;
  if (take_spare(device, size, out)) {
    return SLW_OK;
  }
  status = slw_vulkan_make_buffer(device, size, 0, out);
  if (status != SLW_OK && device->num_spare > 0U && trim(device) == SLW_OK) {
    status = slw_vulkan_make_buffer(device, size, 0, out); /* what was spare was in the way */
  }
  return status;
}

slw_status slw_vulkan_alloc(int32_t device_id, size_t size_bytes, void **out) {
  slw_vulkan_device *device = slw_vulkan_device_of(device_id);
  slw_vulkan_buffer *made;
  slw_status status;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  made = calloc(1, sizeof *made);
  if (made == NULL) {
    slw_error_set("MemoryError", "no memory for the list of device memory");
    return SLW_ERROR_MEMORY;
  }
  (void)pthread_mutex_lock(&device->lock);
  status = obtain(device, size_bytes, made);
  if (status == SLW_OK) {
    status = slw_device_space_add(&space, size_bytes, device_id, made, out);
    if (status != SLW_OK) {
      destroy(device, made);
    }
  }
  (void)pthread_mutex_unlock(&device->lock);
  if (status != SLW_OK) {
    free(made);
  }
  return status;
}

void slw_vulkan_release(void *memory) {
  slw_device_range range;
  size_t offset = 0;
  slw_vulkan_buffer *gone;
  slw_vulkan_device *device;
  if (!slw_device_space_find(&space, memory, &range, &offset) || offset != 0U) {
    return;
  }
  device = slw_vulkan_device_of(range.device_id);
  gone = slw_device_space_remove(&space, memory);
  if (device != NULL && gone != NULL) {
    (void)pthread_mutex_lock(&device->lock);
    keep(device, gone);
    (void)pthread_mutex_unlock(&device->lock);
  }
  free(gone);
}

const slw_vulkan_buffer *slw_vulkan_locate(const void *address, size_t size_bytes, size_t *offset,
                                           int32_t *device_id) {
  slw_device_range range;
  if (!slw_device_space_find(&space, address, &range, offset)) {
    slw_error_set("DeviceError", "an address that is to be in the memory of a Vulkan device is not: "
                                 "the tensor has been freed, or lies elsewhere.");
    return NULL;
  }
  if (size_bytes > range.size_bytes - *offset) {
    slw_error_set("DeviceError", "a copy would go beyond the end of memory of a Vulkan device.");
    return NULL;
  }
  *device_id = range.device_id;
  return range.held;
}
