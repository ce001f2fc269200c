/* SPDX-License-Identifier: Apache-2.0 */
/* Images that a host linked for this device's memory: received in place, checked, started. */
#include <string.h>

#include "slipway/device_session.h"
#include "slipway/error.h"
#include "slipway/format.h"

#define SPACE_TEXT_BYTES 256

static uint8_t *aligned(uint8_t *at) {
  return (uint8_t *)(((uintptr_t)at + SLW_CODE_ALIGNMENT - 1u) &
                     ~(uintptr_t)(SLW_CODE_ALIGNMENT - 1u));
}

static void forget(slw_device_image *image) { memset(image, 0, sizeof *image); }

/* Images are stacked: the next one goes after the last that is still needed. */
static uint8_t *first_free(const slw_device *device) {
  uint8_t *at = aligned(device->code_begin);
  size_t i;
  for (i = 0; i < SLW_DEVICE_IMAGES; ++i) {
    if (device->images[i].begin != NULL && device->images[i].end > at) {
      at = aligned(device->images[i].end);
    }
  }
  return at < device->code_end ? at : device->code_end;
}

static slw_device_image *find_image(slw_device *device, const char *name) {
  size_t i;
  for (i = 0; i < SLW_DEVICE_IMAGES; ++i) {
    if (device->images[i].begin != NULL && strcmp(device->images[i].name, name) == 0) {
      return &device->images[i];
    }
  }
  return NULL;
}

/* Nobody can load it any more; its memory is free once its last module has gone. */
static void remove_image(slw_device_image *image) {
  image->name[0] = '\0';
  if (image->num_modules == 0u) {
    forget(image);
  }
}

int slw_device_code_space(void *handle, const TVMFFIAny *args, int32_t num_args,
                          TVMFFIAny *result) {
  const slw_device *device = handle;
  /* Function pointers and data pointers have one size on all these machines. */
  void *(*copy)(void *, const void *, size_t) = memcpy;
  void *(*move)(void *, const void *, size_t) = memmove;
  void *(*fill)(void *, int, size_t) = memset;
  char text[SPACE_TEXT_BYTES];
  size_t used;
  (void)args;
  (void)num_args;
  used = slw_format(text, sizeof text, "0x%llx 0x%llx\nmemcpy 0x%llx\nmemmove 0x%llx\n"
                    "memset 0x%llx\n",
                    (unsigned long long)(uintptr_t)first_free(device),
                    (unsigned long long)(uintptr_t)device->code_end,
                    (unsigned long long)(uintptr_t)copy, (unsigned long long)(uintptr_t)move,
                    (unsigned long long)(uintptr_t)fill);
  return slw_any_set_string(result, text, used) == SLW_OK
             ? 0
             : slw_error_setf("MemoryError", "the device has no memory for a text");
}

static int file_create(void *context, const char *name, uint64_t size, void **memory) {
  slw_device *device = context;
  slw_device_image *image = find_image(device, name);
  uint8_t *at;
  size_t i;
  if (image != NULL) {
    remove_image(image);
  }
  at = first_free(device);
  if (strlen(name) >= SLW_DEVICE_NAME_BYTES) {
    (void)slw_error_setf("ValueError", "the name is longer than the %u bytes this device keeps",
                         (unsigned)SLW_DEVICE_NAME_BYTES - 1u);
    return SLW_RPC_FAIL_ARGUMENT;
  }
  if (size > (uint64_t)(device->code_end - at)) {
    (void)slw_error_setf("MemoryError",
                         "'%s' has %llu bytes, and the memory for uploaded code has %llu left",
                         name, (unsigned long long)size,
                         (unsigned long long)(device->code_end - at));
    return SLW_RPC_FAIL_MEMORY;
  }
  for (i = 0; i < SLW_DEVICE_IMAGES && device->images[i].begin != NULL; ++i) {
  }
  if (i == SLW_DEVICE_IMAGES) {
    (void)slw_error_setf("MemoryError", "this device holds at most %u images; remove one",
                         (unsigned)SLW_DEVICE_IMAGES);
    return SLW_RPC_FAIL_LIMIT;
  }
  image = &device->images[i];
  forget(image);
  memcpy(image->name, name, strlen(name) + 1u);
  image->begin = at;
  image->end = at + size;
  device->receiving = image;
  *memory = at;
  return SLW_RPC_OK;
}

static int file_commit(void *context) {
  slw_device *device = context;
  device->receiving->is_complete = true;
  device->receiving = NULL;
  return SLW_RPC_OK;
}

static void file_abort(void *context) {
  slw_device *device = context;
  forget(device->receiving);
  device->receiving = NULL;
}

static int file_remove(void *context, const char *name) {
  slw_device_image *image = find_image(context, name);
  if (image == NULL) {
    (void)slw_error_setf("FileNotFoundError", "there is no '%s' on this device", name);
    return SLW_RPC_FAIL_NOT_FOUND;
  }
  remove_image(image);
  return SLW_RPC_OK;
}

static int file_list(void *context, char *text, size_t capacity, size_t *size) {
  const slw_device *device = context;
  size_t used = 0;
  size_t i;
  if (capacity > 0u) {
    text[0] = '\0';
  }
  for (i = 0; i < SLW_DEVICE_IMAGES; ++i) {
    const slw_device_image *image = &device->images[i];
    if (image->begin != NULL && image->name[0] != '\0') {
      used += slw_format(text + used, capacity - used, "%llu %s\n",
                         (unsigned long long)(image->end - image->begin), image->name);
    }
  }
  *size = used;
  return SLW_RPC_OK;
}

static bool is_image(const slw_image *head, const slw_device_image *image) {
  return (size_t)(image->end - image->begin) >= sizeof *head && head->magic == SLW_IMAGE_MAGIC &&
         head->version == SLW_IMAGE_VERSION && head->machine == SLW_IMAGE_MACHINE &&
         head->pointer_bytes == sizeof(void *);
}

/* Called once for each upload: what runs changes the image's data. */
static int start(slw_device *device, slw_device_image *image) {
  const slw_image *head = (const slw_image *)(const void *)image->begin;
  if (!image->is_complete || !is_image(head, image)) {
    (void)slw_error_setf("ArtifactError",
                         "'%s' is no image for this device; micro.Session links one from what it "
                         "uploads", image->name);
    return SLW_RPC_FAIL_ARGUMENT;
  }
  if (head->begin != image->begin || head->end > image->end || head->end < image->begin) {
    (void)slw_error_setf("ArtifactError", "'%s' was linked for another address; upload it again",
                         image->name);
    return SLW_RPC_FAIL_ARGUMENT;
  }
  if (head->memory_end < head->end || head->memory_end > device->code_end) {
    (void)slw_error_setf("MemoryError", "'%s' needs more memory than the %llu bytes for code",
                         image->name,
                         (unsigned long long)(device->code_end - device->code_begin));
    return SLW_RPC_FAIL_MEMORY;
  }
  memset(head->end, 0, (size_t)(head->memory_end - head->end));
  if (head->error_slot != NULL) {
    *head->error_slot = slw_error_set;
  }
  if (device->code_written != NULL) {
    device->code_written(image->begin, (size_t)(head->memory_end - image->begin));
  }
  image->end = head->memory_end;
  image->is_started = true;
  return SLW_RPC_OK;
}

static void module_gone(void *context) {
  slw_device_image *image = context;
  --image->num_modules;
  if (image->num_modules == 0u && image->name[0] == '\0') {
    forget(image);
  }
}

static int load_module(void *context, const char *name, TVMFFIAny *out) {
  slw_device *device = context;
  slw_device_image *image = find_image(device, name);
  slw_module *made = NULL;
  int failure = SLW_RPC_OK;
  if (image == NULL) {
    (void)slw_error_setf("FileNotFoundError", "there is no '%s' on this device; upload it first",
                         name);
    return SLW_RPC_FAIL_NOT_FOUND;
  }
  if (!image->is_started) {
    failure = start(device, image);
  }
  if (failure != SLW_RPC_OK) {
    return failure;
  }
  if (slw_image_module_create((const slw_image *)(const void *)image->begin, module_gone, image,
                              &made) != SLW_OK) {
    (void)slw_error_setf("MemoryError", "the device has no memory left for a module");
    return SLW_RPC_FAIL_MEMORY;
  }
  ++image->num_modules;
  slw_any_set_module(out, made);
  return SLW_RPC_OK;
}

void slw_device_code_hooks(slw_rpc_hooks *hooks) {
  hooks->load_module = load_module;
  hooks->file_create = file_create;
  hooks->file_commit = file_commit;
  hooks->file_abort = file_abort;
  hooks->file_remove = file_remove;
  hooks->file_list = file_list;
}

void slw_device_reset(slw_device *device) {
  memset(device->images, 0, sizeof device->images);
  device->receiving = NULL;
}
