/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a Metal device: kernels and copies are recorded to one command buffer, which goes to the
 * device when it is full or somebody waits.  Its encoders run what they are given in order. */
#include <string.h>

#include "metal.h"
#include "slipway/format.h"

#define COMMANDS_OF_A_BUFFER 64

static void release(mtl_object *object) {
  if (*object != NULL) {
    SLW_ASK(void, *object, "release");
    *object = NULL;
  }
}

/* Wait for the oldest that the device was given. */
static slw_status finish_oldest(slw_metal_device *device) {
  mtl_object commands = device->pending[0];
  slw_status status = SLW_OK;
  SLW_ASK(void, commands, "waitUntilCompleted");
  if (SLW_ASK(mtl_count, commands, "status") == MTL_STATUS_ERROR) {
    mtl_object error = SLW_ASK(mtl_object, commands, "error");
    int code = (error != NULL) ? (int)SLW_ASK(long, error, "code") : 1;
    status = slw_metal_failed(device, "its work", code, slw_metal_words(error));
  } else if (device->has_times) {
    device->busy_seconds +=
        SLW_ASK(double, commands, "GPUEndTime") - SLW_ASK(double, commands, "GPUStartTime");
  }
  SLW_ASK(void, commands, "release");
  --device->num_pending;
  memmove(device->pending, device->pending + 1, device->num_pending * sizeof device->pending[0]);
  return status;
}

mtl_object slw_metal_encoder(slw_metal_device *device, int copies) {
  if (device->num_commands == COMMANDS_OF_A_BUFFER && slw_metal_flush(device) != SLW_OK) {
    return NULL;
  }
  if (device->commands == NULL) {
    mtl_object made = SLW_ASK(mtl_object, device->queue, "commandBuffer");
    if (made == NULL) {
      (void)slw_metal_failed(device, "recording work for it", 0, "it gives no command buffer");
      return NULL;
    }
    device->commands = SLW_ASK(mtl_object, made, "retain");
    device->has_times = SLW_SEND(signed char, made, "respondsToSelector:", (mtl_selector),
                                 slw_metal_calls.sel_registerName("GPUEndTime")) != 0;
  }
  if (device->encoder != NULL && device->copies != copies) {
    SLW_ASK(void, device->encoder, "endEncoding");
    release(&device->encoder);
  }
  if (device->encoder == NULL) {
    mtl_object made = SLW_ASK(mtl_object, device->commands,
                              copies ? "blitCommandEncoder" : "computeCommandEncoder");
    if (made == NULL) {
      (void)slw_metal_failed(device, "recording work for it", 0, "it gives no encoder");
      return NULL;
    }
    device->encoder = SLW_ASK(mtl_object, made, "retain");
    device->copies = copies;
  }
  ++device->num_commands;
  return device->encoder;
}

slw_status slw_metal_flush(slw_metal_device *device) {
  slw_status status = SLW_OK;
  if (device->commands == NULL) {
    return SLW_OK;
  }
  if (device->encoder != NULL) {
    SLW_ASK(void, device->encoder, "endEncoding");
    release(&device->encoder);
  }
  if (device->num_pending == SLW_METAL_PENDING) {
    status = finish_oldest(device);
  }
  SLW_ASK(void, device->commands, "commit");
  device->pending[device->num_pending++] = device->commands;
  device->commands = NULL;
  device->num_commands = 0;
  return status;
}

slw_status slw_metal_wait(slw_metal_device *device) {
  slw_status status = slw_metal_flush(device);
  while (device->num_pending > 0U) {
    slw_status other = finish_oldest(device);
    status = (status != SLW_OK) ? status : other;
  }
  return status;
}
