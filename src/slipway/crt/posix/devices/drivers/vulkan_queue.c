/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a Vulkan device: commands are recorded to one batch while others run, and a batch goes to
 * the device when it is full or somebody waits.  All work is in order: a barrier stands in front of
 * each command. */
#include <stdint.h>
#include <string.h>

#include "vulkan.h"

#define SETS_OF_A_BATCH 32
#define DESCRIPTORS_OF_A_BATCH 512

slw_status slw_vulkan_open_queue(slw_vulkan_device *device) {
  vk_command_pool_info pool_info = {VK_TYPE_COMMAND_POOL, NULL, VK_POOL_RESET_COMMANDS,
                                    device->family};
  vk_pool_size sizes = {VK_DESCRIPTOR_STORAGE_BUFFER, DESCRIPTORS_OF_A_BATCH};
  vk_descriptor_pool_info sets_info = {VK_TYPE_DESCRIPTOR_POOL, NULL, 0, SETS_OF_A_BATCH, 1, &sizes};
  vk_fence_info fence_info = {VK_TYPE_FENCE, NULL, 0};
  vk_object pool = 0;
  vk_result code = slw_vk.CreateCommandPool(device->device, &pool_info, NULL, &pool);
  memset(device->batches, 0, sizeof device->batches);
  for (size_t i = 0; i < SLW_VULKAN_BATCHES && code == VK_SUCCESS; ++i) {
    slw_vulkan_batch *batch = &device->batches[i];
    vk_commands_info commands = {VK_TYPE_COMMANDS, NULL, pool, 0, 1};
    code = slw_vk.AllocateCommandBuffers(device->device, &commands, &batch->commands);
    if (code == VK_SUCCESS) {
      code = slw_vk.CreateDescriptorPool(device->device, &sets_info, NULL, &batch->sets);
    }
    if (code == VK_SUCCESS) {
      code = slw_vk.CreateFence(device->device, &fence_info, NULL, &batch->fence);
    }
  }
  return (code == VK_SUCCESS) ? SLW_OK : slw_vulkan_failed(device, "opening its queue", code);
}

static slw_status work_failed(slw_vulkan_device *device, const char *what, vk_result code) {
  device->failure = code;
  return slw_vulkan_failed(device, what, code);
}

static slw_status finish(slw_vulkan_device *device, slw_vulkan_batch *batch) {
  vk_result code;
  if (!batch->is_submitted) {
    return SLW_OK;
  }
  code = slw_vk.WaitForFences(device->device, 1, &batch->fence, 1, UINT64_MAX);
  if (code == VK_SUCCESS) {
    code = slw_vk.ResetFences(device->device, 1, &batch->fence);
  }
  batch->is_submitted = code != VK_SUCCESS; /* nothing else may use its fence and its memory before */
  return (code == VK_SUCCESS) ? SLW_OK : work_failed(device, "waiting for its work", code);
}

static slw_status begin(slw_vulkan_device *device, slw_vulkan_batch *batch) {
  vk_begin_info info = {VK_TYPE_BEGIN, NULL, VK_ONE_TIME_SUBMIT, NULL};
  vk_result code;
  slw_status status = finish(device, batch);
  if (status != SLW_OK) {
    return status;
  }
  code = slw_vk.ResetDescriptorPool(device->device, batch->sets, 0);
  if (code == VK_SUCCESS) {
    code = slw_vk.BeginCommandBuffer(batch->commands, &info);
  }
  if (code != VK_SUCCESS) {
    return slw_vulkan_failed(device, "recording work for it", code);
  }
  batch->num_sets = batch->num_descriptors = 0;
  batch->is_recording = 1;
  return SLW_OK;
}

slw_vulkan_batch *slw_vulkan_record(slw_vulkan_device *device, uint32_t num_descriptors) {
  slw_vulkan_batch *batch = &device->batches[device->current];
  if (batch->is_recording &&
      (batch->num_sets == SETS_OF_A_BATCH ||
       batch->num_descriptors + num_descriptors > DESCRIPTORS_OF_A_BATCH)) {
    if (slw_vulkan_flush(device) != SLW_OK) {
      return NULL;
    }
    batch = &device->batches[device->current];
  }
  if (!batch->is_recording && begin(device, batch) != SLW_OK) {
    return NULL;
  }
  return batch;
}

void slw_vulkan_order(const slw_vulkan_batch *batch) {
  uint32_t writes = VK_SHADER_WRITE | VK_TRANSFER_WRITE;
  uint32_t at = VK_AT_COMPUTE | VK_AT_TRANSFER;
  vk_barrier barrier = {VK_TYPE_BARRIER, NULL, writes,
                        writes | VK_SHADER_READ | VK_TRANSFER_READ};
  slw_vk.CmdPipelineBarrier(batch->commands, at, at, 0, 1, &barrier, 0, NULL, 0, NULL);
}

slw_status slw_vulkan_flush(slw_vulkan_device *device) {
  slw_vulkan_batch *batch = &device->batches[device->current];
  vk_barrier barrier = {VK_TYPE_BARRIER, NULL, VK_SHADER_WRITE | VK_TRANSFER_WRITE, VK_HOST_READ};
  vk_submit submit = {VK_TYPE_SUBMIT, NULL, 0, NULL, NULL, 1, &batch->commands, 0, NULL};
  vk_result code;
  if (!batch->is_recording) {
    return SLW_OK;
  }
  batch->is_recording = 0;
  slw_vk.CmdPipelineBarrier(batch->commands, VK_AT_COMPUTE | VK_AT_TRANSFER, VK_AT_HOST, 0, 1,
                         &barrier, 0, NULL, 0, NULL);
  code = slw_vk.EndCommandBuffer(batch->commands);
  if (code == VK_SUCCESS) {
    code = slw_vk.QueueSubmit(device->queue, 1, &submit, batch->fence);
  }
  if (code != VK_SUCCESS) {
    return work_failed(device, "giving it work", code);
  }
  batch->is_submitted = 1;
  device->current = (device->current + 1U) % SLW_VULKAN_BATCHES;
  return SLW_OK;
}

slw_status slw_vulkan_wait(slw_vulkan_device *device) {
  slw_status status;
  if (device->is_untold) {
    device->is_untold = 0;
    return slw_vulkan_failed(device, "work that it was given before", device->failure);
  }
  status = slw_vulkan_flush(device);
  for (size_t i = 0; i < SLW_VULKAN_BATCHES && status == SLW_OK; ++i) {
    status = finish(device, &device->batches[(device->current + i) % SLW_VULKAN_BATCHES]);
  }
  return status;
}

void slw_vulkan_settle(slw_vulkan_device *device) {
  device->is_untold = slw_vulkan_wait(device) != SLW_OK;
}
