/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of a Vulkan device: its queue writes times into slots of a pool, one after the other,
 * and a mark is the number of its slot. */
#include "vulkan.h"

#define MARKS 64 /* that are kept; a span has two */

enum { VK_QUERY_TIME = 2, VK_AT_END = 0x2000, VK_RESULT_64_BITS = 1, VK_RESULT_WAIT = 2 };

uint64_t slw_vulkan_launches(int32_t device_id) {
  uint64_t count = slw_driver_launches(&slw_vulkan, device_id);
  const slw_vulkan_device *device = NULL;
  if (count != 0U) { /* whoever asks must not open a device that nobody used */
    device = slw_vulkan_device_of(device_id);
  }
  return (device != NULL && device->time_bits != 0U) ? count : 0U;
}

static slw_status mark_on(slw_vulkan_device *device, uint64_t *out) {
  vk_queries_info info = {VK_TYPE_QUERIES, NULL, 0, VK_QUERY_TIME, MARKS, 0};
  slw_vulkan_batch *batch;
  uint32_t slot = device->num_marks % MARKS;
  vk_result code = VK_SUCCESS;
  if (device->times == 0U) {
    code = slw_vk.CreateQueryPool(device->device, &info, NULL, &device->times);
  }
  if (code != VK_SUCCESS) {
    device->times = 0U;
    return slw_vulkan_failed(device, "marking a time", code);
  }
  batch = slw_vulkan_record(device, 0);
  if (batch == NULL) {
    return SLW_ERROR_CALL;
  }
  slw_vulkan_order(batch);
  slw_vk.CmdResetQueryPool(batch->commands, device->times, slot, 1);
  slw_vk.CmdWriteTimestamp(batch->commands, VK_AT_END, device->times, slot);
  ++device->num_marks;
  *out = slot;
  return slw_vulkan_flush(device); /* so that its time is that of now */
}

slw_status slw_vulkan_mark(int32_t device_id, uint64_t *out) {
  slw_vulkan_device *device = slw_vulkan_device_of(device_id);
  slw_status status;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&device->lock);
  status = mark_on(device, out);
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}

static slw_status read_span(slw_vulkan_device *device, uint64_t from, uint64_t to,
                            uint64_t *duration_ns) {
  uint64_t slots[2] = {from, to};
  uint64_t times[2] = {0, 0};
  uint64_t counted = (device->time_bits < 64U) ? (1ULL << device->time_bits) - 1U : UINT64_MAX;
  slw_status status = slw_vulkan_wait(device);
  vk_result code = VK_SUCCESS;
  if (status != SLW_OK) {
    return status;
  }
  for (int i = 0; i < 2 && code == VK_SUCCESS; ++i) {
    code = slw_vk.GetQueryPoolResults(device->device, device->times, (uint32_t)slots[i], 1,
                                      sizeof times[i], &times[i], sizeof times[i],
                                      VK_RESULT_64_BITS | VK_RESULT_WAIT);
  }
  /* A counter of few bits begins again. */
  *duration_ns = (uint64_t)((double)((times[1] - times[0]) & counted) *
                            (double)device->properties.timestamp_ns);
  return (code == VK_SUCCESS) ? SLW_OK : slw_vulkan_failed(device, "reading its clock", code);
}

slw_status slw_vulkan_between(int32_t device_id, uint64_t from, uint64_t to,
                              uint64_t *duration_ns) {
  slw_vulkan_device *device = slw_vulkan_device_of(device_id);
  slw_status status;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&device->lock);
  status = read_span(device, from, to, duration_ns);
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}
