/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan as a kind of device: the functions of device_api.h. */
#include <string.h>

#include "../devices.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/object.h"
#include "vulkan.h"

#define STAGING_BYTES ((size_t)4 << 20)
#define MAX_ARGUMENTS 128 /* backends/gpu/limits.py */
#define MAX_PUSHED 256    /* bytes */

static slw_status device_of(const void *address, int32_t *device_id) {
  size_t offset = 0;
  return (slw_vulkan_locate(address, 0, &offset, device_id) != NULL) ? SLW_OK : SLW_ERROR_CALL;
}

/* --- copies ---------------------------------------------------------------------------------- */

static slw_status copy_parts(slw_vulkan_device *device, vk_object from, size_t from_offset,
                             vk_object to, size_t to_offset, size_t size_bytes) {
  slw_vulkan_batch *batch = slw_vulkan_record(device, 0);
  vk_copy part = {from_offset, to_offset, size_bytes};
  if (batch == NULL) {
    return SLW_ERROR_CALL;
  }
  slw_vulkan_order(batch);
  slw_vk.CmdCopyBuffer(batch->commands, from, to, 1, &part);
  return SLW_OK;
}

/* Bytes to or from memory that the processor does not see, a piece at a time. */
static slw_status move_staged(slw_vulkan_device *device, const slw_vulkan_buffer *buffer,
                              size_t offset, char *host, const char *source, size_t size_bytes) {
  slw_vulkan_buffer *staging = &device->staging;
  slw_status status = SLW_OK;
  if (staging->buffer == 0U) {
    status = slw_vulkan_make_buffer(device, STAGING_BYTES, 1, staging);
  }
  while (status == SLW_OK && size_bytes > 0U) {
    size_t piece = (size_bytes < STAGING_BYTES) ? size_bytes : STAGING_BYTES;
    if (source != NULL) {
      memcpy(staging->mapped, source, piece);
      source += piece;
      status = copy_parts(device, staging->buffer, 0, buffer->buffer, offset, piece);
    } else {
      status = copy_parts(device, buffer->buffer, offset, staging->buffer, 0, piece);
    }
    if (status == SLW_OK) {
      status = slw_vulkan_wait(device);
    }
    if (status == SLW_OK && host != NULL) {
      memcpy(host, staging->mapped, piece);
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
  const slw_vulkan_buffer *buffer = slw_vulkan_locate(address, size_bytes, &offset, &id);
  slw_vulkan_device *device = (buffer != NULL) ? slw_vulkan_device_of(id) : NULL;
  slw_status status;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&device->lock);
  status = slw_vulkan_wait(device);
  if (status == SLW_OK && buffer->mapped != NULL) {
    if (source != NULL) {
      memcpy(buffer->mapped + offset, source, size_bytes);
    } else {
      memcpy(host, buffer->mapped + offset, size_bytes);
    }
  } else if (status == SLW_OK) {
    status = move_staged(device, buffer, offset, host, source, size_bytes);
  }
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}

static slw_status read_memory(const void *from, void *host, size_t size_bytes) {
  return (size_bytes == 0U) ? SLW_OK : move(from, host, NULL, size_bytes);
}

static slw_status write_memory(void *to, const void *host, size_t size_bytes) {
  return (size_bytes == 0U) ? SLW_OK : move(to, NULL, host, size_bytes);
}

static slw_status copy_memory(const void *from, void *to, size_t size_bytes) {
  size_t from_offset = 0;
  size_t to_offset = 0;
  int32_t from_id = 0;
  int32_t to_id = 0;
  const slw_vulkan_buffer *source = slw_vulkan_locate(from, size_bytes, &from_offset, &from_id);
  const slw_vulkan_buffer *target = slw_vulkan_locate(to, size_bytes, &to_offset, &to_id);
  slw_vulkan_device *device;
  slw_status status;
  if (source == NULL || target == NULL || size_bytes == 0U) {
    return (source == NULL || target == NULL) ? SLW_ERROR_CALL : SLW_OK;
  }
  if (from_id != to_id) {
    slw_error_set("DeviceError", "two Vulkan devices have no memory in common: copy to cpu(0) first.");
    return SLW_ERROR_TENSOR;
  }
  device = slw_vulkan_device_of(from_id);
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&device->lock);
  status = copy_parts(device, source->buffer, from_offset, target->buffer, to_offset, size_bytes);
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}

static slw_status synchronize(int32_t device_id) {
  slw_vulkan_device *device = slw_vulkan_device_of(device_id);
  slw_status status;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&device->lock);
  status = slw_vulkan_wait(device);
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}

static slw_status wait_all(void) { return slw_driver_wait(&slw_vulkan, synchronize); }

static slw_status add_code(const char *digest, const void *code, size_t size_bytes) {
  return slw_driver_add_code(&slw_vulkan, digest, code, size_bytes);
}

static void drop_code(const char *digest) { slw_driver_drop_code(&slw_vulkan, digest); }

/* --- launching ------------------------------------------------------------------------------- */

typedef struct {
  vk_buffer_range buffers[MAX_ARGUMENTS];
  vk_write writes[MAX_ARGUMENTS];
  uint32_t num_buffers;
  union {
    char bytes[MAX_PUSHED];
    uint64_t aligned;
  } pushed;
  uint32_t num_pushed; /* bytes */
} arguments;

static slw_status refuse(const slw_device_launch *launch, int32_t device_id,
                         const slw_vulkan_device *device, const char *what, size_t requested,
                         size_t most, const char *advice) {
  (void)slw_error_setf("DeviceError", "kernel %s is launched with %zu %s, and vulkan(%d) (%s) takes "
                                      "%zu at most. %s",
                       launch->kernel, requested, what, (int)device_id, device->properties.name,
                       most, advice);
  return SLW_ERROR_ARGUMENT;
}

static slw_status check_limits(const slw_device_launch *launch, int32_t device_id,
                               const slw_vulkan_device *device) {
  const vk_properties *limits = &device->properties;
  slw_status status =
      slw_driver_check_threads(&slw_vulkan, device_id, launch, limits->max_threads);
  if (status != SLW_OK) {
    return status;
  }
  for (int i = 0; i < 3; ++i) {
    if (launch->block[i] > limits->max_sizes[i]) {
      return refuse(launch, device_id, device, "threads along an axis", launch->block[i],
                    limits->max_sizes[i], "Split its axes by less.");
    }
    if (launch->grid[i] > limits->max_groups[i]) {
      return refuse(launch, device_id, device, "blocks along an axis", launch->grid[i],
                    limits->max_groups[i], "Let each thread compute more, or bind another axis too.");
    }
  }
  return SLW_OK;
}

static slw_status take_buffer(const slw_device_launch *launch, const slw_vulkan_device *device,
                              int32_t device_id, const void *address, arguments *out) {
  vk_buffer_range *range = &out->buffers[out->num_buffers];
  vk_write write = {VK_TYPE_WRITE, NULL, 0, out->num_buffers, 0, 1, VK_DESCRIPTOR_STORAGE_BUFFER,
                    NULL, range, NULL};
  size_t offset = 0;
  size_t left;
  int32_t id = 0;
  const slw_vulkan_buffer *buffer = NULL;
  if (address != NULL) {
    buffer = slw_vulkan_locate(address, 0, &offset, &id);
    if (buffer == NULL) {
      return SLW_ERROR_CALL;
    }
  }
  if (buffer != NULL && offset % device->properties.storage_alignment != 0U) {
    (void)slw_error_setf("DeviceError",
                         "kernel %s: a tensor begins %zu bytes into its memory, and vulkan(%d) (%s) "
                         "takes offsets at multiples of %zu only. Copy it into a tensor of its own.",
                         launch->kernel, offset, (int)device_id, device->properties.name,
                         (size_t)device->properties.storage_alignment);
    return SLW_ERROR_TENSOR;
  }
  left = (buffer != NULL) ? buffer->size_bytes - offset : 0U;
  if (left > device->properties.max_storage_range) {
    left = device->properties.max_storage_range;
  }
  range->buffer = (buffer != NULL) ? buffer->buffer : device->staging.buffer;
  range->offset = offset;
  range->range = (buffer != NULL) ? left : (uint64_t)VK_WHOLE;
  out->writes[out->num_buffers++] = write;
  return SLW_OK;
}

static slw_status take_arguments(const slw_device_launch *launch, const slw_vulkan_device *device,
                                 int32_t device_id, arguments *out) {
  const vk_properties *limits = &device->properties;
  for (size_t i = 0; launch->signature[i] != '\0'; ++i) {
    char kind = launch->signature[i];
    slw_device_scalar scalar;
    slw_status status;
    uint32_t offset;
    if (i == MAX_ARGUMENTS) {
      return refuse(launch, device_id, device, "arguments", strlen(launch->signature), i,
                    "Compute fewer tensors in one kernel.");
    }
    if (kind == 'p') {
      status = take_buffer(launch, device, device_id, launch->args[i].v_ptr, out);
      if (status != SLW_OK) {
        return status;
      }
      continue;
    }
    /* The kernel takes what is smaller than four bytes as four. */
    status = slw_device_scalar_of((kind == '1' || kind == '2') ? '4' : kind, &launch->args[i],
                                  &scalar);
    if (status != SLW_OK) {
      return status;
    }
    offset = slw_vulkan_push_offset(kind, &out->num_pushed);
    if (out->num_pushed > limits->max_push_bytes || out->num_pushed > MAX_PUSHED) {
      return refuse(launch, device_id, device, "bytes of numbers", out->num_pushed,
                    limits->max_push_bytes, "Give it fewer sizes that are not known.");
    }
    memcpy(out->pushed.bytes + offset, &scalar.value, scalar.size_bytes);
  }
  if (out->num_buffers > limits->max_storage_buffers) {
    return refuse(launch, device_id, device, "tensors", out->num_buffers,
                  limits->max_storage_buffers, "Compute fewer tensors in one kernel.");
  }
  return SLW_OK;
}

static slw_status enqueue(const slw_device_launch *launch, slw_vulkan_device *device,
                          const slw_device_kernel *kernel, arguments *given) {
  slw_vulkan_batch *batch = slw_vulkan_record(device, given->num_buffers);
  vk_sets_info info = {VK_TYPE_SETS, NULL, 0, 1, &kernel->handles[SLW_VULKAN_SET_LAYOUT]};
  vk_object set = 0;
  vk_result code;
  char what[160];
  if (batch == NULL) {
    return SLW_ERROR_CALL;
  }
  info.pool = batch->sets;
  code = slw_vk.AllocateDescriptorSets(device->device, &info, &set);
  if (code != VK_SUCCESS) {
    (void)slw_format(what, sizeof what, "launching kernel %s", launch->kernel);
    return slw_vulkan_failed(device, what, code);
  }
  ++batch->num_sets;
  batch->num_descriptors += given->num_buffers;
  for (uint32_t i = 0; i < given->num_buffers; ++i) {
    given->writes[i].set = set;
  }
  slw_vk.UpdateDescriptorSets(device->device, given->num_buffers, given->writes, 0, NULL);
  slw_vulkan_order(batch);
  slw_vk.CmdBindPipeline(batch->commands, VK_BIND_COMPUTE, kernel->handles[SLW_VULKAN_PIPELINE]);
  slw_vk.CmdBindDescriptorSets(batch->commands, VK_BIND_COMPUTE, kernel->handles[SLW_VULKAN_LAYOUT], 0, 1, &set, 0, NULL);
  if (given->num_pushed > 0U) {
    slw_vk.CmdPushConstants(batch->commands, kernel->handles[SLW_VULKAN_LAYOUT], VK_STAGE_COMPUTE, 0,
                         (given->num_pushed + 3U) & ~3U, given->pushed.bytes);
  }
  slw_vk.CmdDispatch(batch->commands, (uint32_t)launch->grid[0], (uint32_t)launch->grid[1],
                  (uint32_t)launch->grid[2]);
  return SLW_OK;
}

static slw_status launch_on(const slw_device_launch *launch, slw_vulkan_device *device,
                            int32_t device_id) {
  const slw_device_kernel *kernel;
  arguments given;
  slw_status status = check_limits(launch, device_id, device);
  if (status != SLW_OK) {
    return status;
  }
  kernel = slw_driver_kernel(&slw_vulkan, device_id, launch);
  if (kernel == NULL) {
    return SLW_ERROR_CALL;
  }
  given.num_buffers = given.num_pushed = 0;
  memset(&given.pushed, 0, sizeof given.pushed);
  status = (device->staging.buffer == 0U)
               ? slw_vulkan_make_buffer(device, STAGING_BYTES, 1, &device->staging)
               : SLW_OK;
  if (status == SLW_OK) {
    status = take_arguments(launch, device, device_id, &given);
  }
  return (status == SLW_OK) ? enqueue(launch, device, kernel, &given) : status;
}

static slw_status launch_kernel(const slw_device_launch *launch) {
  int32_t device_id = 0;
  slw_vulkan_device *device;
  slw_status status;
  if (slw_driver_of_launch(&slw_vulkan, launch, device_of, &device_id) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  device = slw_vulkan_device_of(device_id);
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&device->lock);
  status = launch_on(launch, device, device_id);
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}

/* --- properties ------------------------------------------------------------------------------ */

static slw_status set_version(TVMFFIAny *out, uint32_t version) {
  char text[80];
  size_t used = slw_format(text, sizeof text, "Vulkan %u.%u.%u", (unsigned)(version >> 22 & 127U),
                           (unsigned)(version >> 12 & 1023U), (unsigned)(version & 4095U));
  return slw_any_set_string(out, text, used);
}

static slw_status give_attribute(int32_t device_id, int32_t attribute, TVMFFIAny *out) {
  const slw_vulkan_device *device;
  const vk_properties *is;
  memset(out, 0, sizeof *out);
  if (attribute == SLW_DEVICE_EXIST) {
    return slw_device_give_int(out, (uint64_t)slw_driver_has(&slw_vulkan, device_id));
  }
  device = slw_vulkan_device_of(device_id);
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  is = &device->properties;
  switch (attribute) {
    case SLW_DEVICE_MAX_THREADS_PER_BLOCK:
      return slw_device_give_int(out, is->max_threads);
    case SLW_DEVICE_WARP_SIZE: /* what Vulkan 1.1 says of subgroups is nothing to build on */
      return slw_device_give_int(out, 1);
    case SLW_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK:
      return slw_device_give_int(out, is->max_shared_bytes);
    case SLW_DEVICE_COMPUTE_VERSION:
    case SLW_DEVICE_API_VERSION:
      return set_version(out, is->api);
    case SLW_DEVICE_NAME:
      return slw_any_set_string(out, is->name, strlen(is->name));
    case SLW_DEVICE_MAX_THREAD_DIMENSIONS:
      return slw_device_give_dimensions(out, is->max_sizes[0], is->max_sizes[1],
                                        is->max_sizes[2]);
    case SLW_DEVICE_DRIVER_VERSION:
      return set_version(out, is->driver);
    case SLW_DEVICE_TOTAL_GLOBAL_MEMORY:
      return slw_device_give_int(out, slw_vulkan_memory_of(device));
    default:
      return SLW_OK;
  }
}

static const slw_device_api VULKAN = {
    "vulkan",     slw_vulkan_alloc, slw_vulkan_release,  device_of,     read_memory,
    write_memory, copy_memory,      add_code,            drop_code,       launch_kernel,
    synchronize,  wait_all,         give_attribute,      slw_vulkan_launches, slw_vulkan_mark,
    slw_vulkan_between, slw_vulkan_trim, NULL,
    NULL,
};

void slw_vulkan_setup(void) { slw_device_register(kDLVulkan, &VULKAN); }
