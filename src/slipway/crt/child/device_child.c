/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic child of a static server: opens the drivers of devices, and does what it is asked over
 * its socket until the other side closes that (device_wire.h). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../posix/devices/device_wire.h"
#include "../posix/devices/devices.h"
#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/sha256.h"

static void *address_of(uint64_t number) { return (void *)(uintptr_t)number; }

static slw_status launch(const slw_device_api *api, char *data, size_t size_bytes) {
  slw_device_wire_launch head;
  slw_device_launch made;
  size_t args_bytes;
  const char *text;
  if (size_bytes < sizeof head) {
    return SLW_ERROR_FORMAT;
  }
  memcpy(&head, data, sizeof head);
  args_bytes = (size_t)head.num_args * sizeof(TVMFFIAny);
  text = data + sizeof head + args_bytes;
  memset(&made, 0, sizeof made);
  for (int i = 0; i < 3; ++i) {
    made.grid[i] = (size_t)head.grid[i];
    made.block[i] = (size_t)head.block[i];
  }
  made.args = (const TVMFFIAny *)(const void *)(data + sizeof head);
  made.digest = text;
  made.kernel = made.digest + strlen(made.digest) + 1U;
  made.signature = made.kernel + strlen(made.kernel) + 1U;
  return api->launch(&made);
}

/* The value of an attribute, as the answer's numbers or as text that is to be freed. */
static slw_status give_attribute(const slw_device_api *api, slw_device_message *message,
                                 char **out, size_t *out_bytes) {
  TVMFFIAny value;
  const char *text = NULL;
  size_t length = 0;
  slw_status status = api->attribute(message->device, (int32_t)message->first, &value);
  if (status != SLW_OK) {
    return status;
  }
  if (value.type_index != kTVMFFIInt && slw_any_get_bytes(&value, &text, &length) == SLW_OK) {
    *out = malloc(length + 1U);
    if (*out != NULL) {
      memcpy(*out, text, length);
      *out_bytes = length;
    }
    slw_any_clear(&value);
    return (*out != NULL) ? SLW_OK : SLW_ERROR_MEMORY;
  }
  message->second = (uint64_t)value.type_index;
  message->first = (value.type_index == kTVMFFIInt) ? (uint64_t)value.v_int64 : 0U;
  return SLW_OK;
}

/* Do what a message asks, and make it the answer, with the bytes that belong to it. */
static slw_status answer(slw_device_message *message, char *data, char **out, size_t *out_bytes) {
  const slw_device_api *api = slw_device_find(message->kind);
  size_t size_bytes = (size_t)message->size_bytes;
  void *made = NULL;
  slw_status status;
  if (api == NULL) {
    return SLW_ERROR_UNSUPPORTED;
  }
  switch ((slw_device_op)message->op) {
    case SLW_DEVICE_ALLOC:
      status = api->alloc(message->device, (size_t)message->first, &made);
      message->first = (uint64_t)(uintptr_t)made;
      return status;
    case SLW_DEVICE_ALLOC_IMAGE:
      if (api->alloc_image == NULL) {
        return SLW_ERROR_UNSUPPORTED;
      }
      status = api->alloc_image(message->device, (size_t)message->first, (size_t)message->second,
                                (int32_t)message->third, &made);
      message->first = (uint64_t)(uintptr_t)made;
      return status;
    case SLW_DEVICE_RELEASE:
      api->release(address_of(message->first));
      return SLW_OK;
    case SLW_DEVICE_WHERE:
      return api->device_of(address_of(message->first), &message->device);
    case SLW_DEVICE_READ:
      *out = malloc((size_t)message->second + 1U);
      *out_bytes = (*out != NULL) ? (size_t)message->second : 0U;
      return (*out != NULL) ? api->read(address_of(message->first), *out, *out_bytes)
                            : SLW_ERROR_MEMORY;
    case SLW_DEVICE_WRITE:
      return api->write(address_of(message->first), data, size_bytes);
    case SLW_DEVICE_COPY:
      return api->copy(address_of(message->first), address_of(message->second),
                       (size_t)message->third);
    case SLW_DEVICE_ADD_CODE:
      return (size_bytes < 2U * SLW_SHA256_BYTES)
                 ? SLW_ERROR_FORMAT
                 : api->add_code(data, data + 2U * SLW_SHA256_BYTES,
                                 size_bytes - 2U * SLW_SHA256_BYTES);
    case SLW_DEVICE_DROP_CODE:
      if (size_bytes != 2U * SLW_SHA256_BYTES) {
        return SLW_ERROR_FORMAT;
      }
      api->drop_code(data); /* a NUL stands behind it */
      return SLW_OK;
    case SLW_DEVICE_LAUNCH:
      return launch(api, data, size_bytes);
    case SLW_DEVICE_SYNC:
      return api->synchronize(message->device);
    case SLW_DEVICE_WAIT_ALL:
      return api->wait_all();
    case SLW_DEVICE_LAUNCHES:
      message->first = api->launches(message->device);
      return SLW_OK;
    case SLW_DEVICE_MARK:
      return api->mark(message->device, &message->first);
    case SLW_DEVICE_BETWEEN:
      return api->between(message->device, message->first, message->second, &message->first);
    case SLW_DEVICE_TRIM:
      return (api->trim != NULL) ? api->trim(message->device) : SLW_OK;
    case SLW_DEVICE_ATTRIBUTE:
      return give_attribute(api, message, out, out_bytes);
    default:
      return SLW_ERROR_FORMAT;
  }
}

/* The thread's error as an answer's bytes: kind, NUL, message. */
static void tell_error(slw_status status, char **out, size_t *out_bytes) {
  const char *kind;
  if (slw_error_kind()[0] == '\0') {
    slw_error_set((status == SLW_ERROR_MEMORY) ? "MemoryError" : "DeviceError",
                  (status == SLW_ERROR_MEMORY)
                      ? "the machine has no memory for a copy of what is on the device"
                      : "the part of this server that opens drivers does not know this request: it "
                        "has no such kind of device");
  }
  kind = slw_error_kind();
  size_t kind_bytes = strlen(kind) + 1U;
  size_t size_bytes = kind_bytes + strlen(slw_error_message());
  free(*out);
  *out_bytes = 0;
  *out = malloc(size_bytes + 1U);
  if (*out != NULL) {
    memcpy(*out, kind, kind_bytes);
    memcpy(*out + kind_bytes, slw_error_message(), size_bytes - kind_bytes);
    *out_bytes = size_bytes;
  }
}

/* @return 0: there may be more */
static int serve_one(int socket) {
  slw_device_message message;
  char *data;
  char *out = NULL;
  size_t out_bytes = 0;
  int failed;
  if (slw_device_take(socket, &message, sizeof message) != 0) {
    return -1;
  }
  data = calloc(1, (size_t)message.size_bytes + 1U);
  if (data == NULL || slw_device_take(socket, data, (size_t)message.size_bytes) != 0) {
    free(data);
    return -1;
  }
  slw_error_clear();
  message.status = (int32_t)answer(&message, data, &out, &out_bytes);
  if (message.status != (int32_t)SLW_OK) {
    tell_error((slw_status)message.status, &out, &out_bytes);
  }
  message.size_bytes = out_bytes;
  failed = slw_device_send(socket, &message, sizeof message) != 0 ||
           slw_device_send(socket, out, out_bytes) != 0;
  free(data);
  free(out);
  return failed ? -1 : 0;
}

int main(void) {
  /* A driver's compilers are programs: the other side would wait for one that outlives this. */
  (void)fcntl(SLW_DEVICE_SOCKET, F_SETFD, FD_CLOEXEC);
  slw_opencl_setup();
  slw_cuda_setup();
  slw_hip_setup();
  slw_vulkan_setup();
  while (serve_one(SLW_DEVICE_SOCKET) == 0) {
  }
  return 0;
}
