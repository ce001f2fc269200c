/* SPDX-License-Identifier: Apache-2.0 */
/* Metal on this machine, and its devices in its order. */
#include "metal.h"

#include <string.h>

#include "slipway/format.h"

slw_metal_functions slw_metal_calls;
static slw_metal_device devices[SLW_MAX_DEVICES];

static const char *list_devices(int32_t *num_devices);
static const char *name_of(int32_t device_id) { return devices[device_id].name; }

#define SLW_METAL_SYMBOL(result, name, parameters) #name "\0"
slw_device_driver slw_metal = {
    .kind = "metal",
    .title = "Metal",
    .ending = ".metal",
    .libraries = "/System/Library/Frameworks/Metal.framework/Metal\0libMetal.dylib\0",
    .advice = "there is no Metal.framework, which macOS brings. Compile for opencl or vulkan elsewhere",
    .symbols = SLW_METAL_FUNCTIONS(SLW_METAL_SYMBOL),
    .functions = &slw_metal_calls,
    .list = list_devices,
    .name = name_of,
    .program = slw_metal_program,
    .kernel = slw_metal_kernel,
    .drop = slw_metal_drop,
    SLW_DRIVER_LOCKS,
};

static int answers(mtl_object object, const char *name) {
  return SLW_SEND(signed char, object, "respondsToSelector:", (mtl_selector),
                  slw_metal_calls.sel_registerName(name)) != 0;
}

/* The array that Metal copies is kept: its devices live as long as the process. */
static const char *list_devices(int32_t *num_devices) {
  void *pool = slw_metal_calls.objc_autoreleasePoolPush();
  mtl_object all = slw_metal_calls.MTLCopyAllDevices();
  mtl_count count = (all != NULL) ? SLW_ASK(mtl_count, all, "count") : 0U;
  for (mtl_count i = 0; i < count && *num_devices < SLW_MAX_DEVICES; ++i) {
    slw_metal_device *device = &devices[*num_devices];
    mtl_object name;
    device->id = SLW_SEND(mtl_object, all, "objectAtIndex:", (mtl_count), i);
    name = SLW_ASK(mtl_object, device->id, "name");
    (void)slw_format(device->name, sizeof device->name, "%s",
                     SLW_ASK(const char *, name, "UTF8String"));
    device->is_unified = answers(device->id, "hasUnifiedMemory") &&
                         SLW_ASK(signed char, device->id, "hasUnifiedMemory") != 0;
    (void)pthread_mutex_init(&device->lock, NULL);
    ++*num_devices;
  }
  slw_metal_calls.objc_autoreleasePoolPop(pool);
  return (*num_devices > 0) ? NULL : "it has no device here (a session without a GPU, or a virtual machine)";
}

static slw_status open_device(int32_t device_id) {
  slw_metal_device *device = &devices[device_id];
  device->queue = SLW_ASK(mtl_object, device->id, "newCommandQueue");
  return (device->queue != NULL) ? SLW_OK
                                 : slw_metal_failed(device, "opening its queue", 0, "it gives none");
}

slw_metal_device *slw_metal_device_of(int32_t device_id) {
  return slw_driver_opens(&slw_metal, device_id, open_device) ? &devices[device_id] : NULL;
}

int32_t slw_metal_number_of(const slw_metal_device *device) { return (int32_t)(device - devices); }

slw_status slw_metal_failed(const slw_metal_device *device, const char *what, int code,
                            const char *words) {
  /* MTLCommandBufferError */
  static const slw_driver_error KNOWN[] = {
      {2, SLW_LOST "the kernel ran for too long: "},
      {3, "the kernel read or wrote outside of its tensors: "},
      {4, SLW_LOST "the process may not use the device any more: "},
      {8, SLW_FULL},
      {11, SLW_LOST "the device was removed: "},
      {0, NULL},
  };
  char both[320];
  const char *known = slw_driver_words(KNOWN, code, "");
  (void)slw_format(both, sizeof both, "%s%s", known, words);
  if (known[0] == SLW_LOST[0] || known[0] == SLW_FULL[0]) {
    (void)slw_format(both, sizeof both, "%s%s; ", known, words);
  }
  return slw_driver_failed(&slw_metal, slw_metal_number_of(device), what, code, both);
}

mtl_object slw_metal_text(const char *text) {
  return SLW_SEND(mtl_object, slw_metal_calls.objc_getClass("NSString"), "stringWithUTF8String:",
                  (const char *), text);
}

const char *slw_metal_words(mtl_object error) {
  mtl_object text = (error != NULL) ? SLW_ASK(mtl_object, error, "localizedDescription") : NULL;
  const char *words = (text != NULL) ? SLW_ASK(const char *, text, "UTF8String") : NULL;
  return (words != NULL) ? words : "";
}
