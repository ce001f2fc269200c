/* SPDX-License-Identifier: Apache-2.0 */
/* The code that kernels come from: SPIR-V under its SHA-256.  A kernel is an entry point, compiled
 * by a device's driver when it is first launched there, and kept for the life of the process. */
#include <stdlib.h>
#include <string.h>

#include "device_text.h"
#include "slipway/error.h"
#include "vulkan.h"

#define HEAD_WORDS 5
#define MAGIC 0x07230203U
#define OP_EXTENSION 10U
#define OP_CAPABILITY 17U
#define MAX_BINDINGS 128

typedef struct kernel {
  struct kernel *next;
  slw_vulkan_kernel made;
  char name[];
} kernel;

typedef struct program {
  struct program *next;
  int32_t device_id;
  vk_object module;
  kernel *kernels;
} program;

static slw_device_text *known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

slw_status slw_vulkan_add_code(const char *digest, const void *code, size_t size_bytes) {
  slw_status status;
  (void)pthread_mutex_lock(&lock);
  status = slw_device_text_add(&known, digest, code, size_bytes);
  (void)pthread_mutex_unlock(&lock);
  return status;
}

/* What code says that it needs, and this device lacks: its name, or NULL. */
static const char *lacking(const slw_vulkan_device *device, const uint32_t *words, size_t count) {
  static const struct {
    uint32_t number;
    uint32_t bit;
    const char *name;
  } KNOWN[] = {
      {10, SLW_VULKAN_FLOAT64, "float64"},
      {11, SLW_VULKAN_INT64, "int64"},
      {22, SLW_VULKAN_INT16, "int16"},
      {39, SLW_VULKAN_INT8, "int8"},
      {4433, SLW_VULKAN_BUFFERS_OF_16_BITS, "tensors of 16-bit elements"},
      {4448, SLW_VULKAN_BUFFERS_OF_8_BITS, "tensors of 8-bit elements"},
  };
  for (size_t at = HEAD_WORDS; at + 1U < count; at += words[at] >> 16) {
    uint32_t op = words[at] & 0xFFFFU;
    if ((words[at] >> 16) == 0U || (op != OP_CAPABILITY && op != OP_EXTENSION)) {
      break;
    }
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0] && op == OP_CAPABILITY; ++i) {
      if (KNOWN[i].number == words[at + 1U] && (device->capabilities & KNOWN[i].bit) == 0U) {
        return KNOWN[i].name;
      }
    }
  }
  return NULL;
}

static slw_status make_module(slw_vulkan_device *device, int32_t device_id,
                              const slw_device_text *entry, const char *name, vk_object *out) {
  const uint32_t *words = (const uint32_t *)(const void *)entry->text;
  size_t count = entry->size_bytes / sizeof *words;
  vk_shader_info info = {VK_TYPE_SHADER, NULL, 0, count * sizeof *words, words};
  const char *lacks = NULL;
  vk_result code;
  if (count <= HEAD_WORDS || words[0] != MAGIC) {
    (void)slw_error_setf("DeviceError", "the code of kernel %s is no SPIR-V. Export it again.", name);
    return SLW_ERROR_FORMAT;
  }
  lacks = lacking(device, words, count);
  if (lacks != NULL) {
    (void)slw_error_setf("DeviceError",
                         "vulkan(%d) (%s) has no %s, which the code of kernel %s needs. Use other "
                         "types, or another device.",
                         (int)device_id, device->properties.name, lacks, name);
    return SLW_ERROR_UNSUPPORTED;
  }
  code = slw_vulkan_driver()->CreateShaderModule(device->device, &info, NULL, out);
  if (code != VK_SUCCESS) {
    (void)slw_error_setf("DeviceError",
                         "the driver of vulkan(%d) (%s) refused the code of kernel %s (error %d).",
                         (int)device_id, device->properties.name, name, (int)code);
    return SLW_ERROR_CALL;
  }
  return SLW_OK;
}

static program *loaded(slw_vulkan_device *device, int32_t device_id, slw_device_text *entry,
                       const char *name) {
  program *found = entry->programs;
  while (found != NULL && found->device_id != device_id) {
    found = found->next;
  }
  if (found != NULL) {
    return found;
  }
  found = calloc(1, sizeof *found);
  if (found == NULL) {
    slw_error_set("MemoryError", "no memory for a device's program");
    return NULL;
  }
  found->device_id = device_id;
  if (make_module(device, device_id, entry, name, &found->module) != SLW_OK) {
    free(found);
    return NULL;
  }
  found->next = entry->programs;
  entry->programs = found;
  return found;
}

uint32_t slw_vulkan_push_place(char kind, uint32_t *at) {
  uint32_t size = (kind == '8' || kind == 'd') ? 8U : 4U;
  uint32_t place = (*at + size - 1U) / size * size;
  *at = place + size;
  return place;
}

static vk_result make_layouts(const slw_vulkan_device *device, const char *signature,
                              slw_vulkan_kernel *made) {
  const slw_vulkan_functions *vk = slw_vulkan_driver();
  vk_binding bindings[MAX_BINDINGS];
  uint32_t count = 0;
  uint32_t pushed = 0;
  vk_set_layout_info set_info = {VK_TYPE_SET_LAYOUT, NULL, 0, 0, bindings};
  vk_push_range range = {VK_STAGE_COMPUTE, 0, 0};
  vk_layout_info info = {VK_TYPE_LAYOUT, NULL, 0, 1, &made->set_layout, 0, &range};
  vk_result code;
  for (; *signature != '\0'; ++signature) {
    if (*signature == 'p' && count < MAX_BINDINGS) {
      vk_binding binding = {count, VK_DESCRIPTOR_STORAGE_BUFFER, 1, VK_STAGE_COMPUTE, NULL};
      bindings[count++] = binding;
    } else if (*signature != 'p') {
      (void)slw_vulkan_push_place(*signature, &pushed);
    }
  }
  set_info.count = count;
  range.size = (pushed + 3U) & ~3U;
  info.num_ranges = (pushed > 0U) ? 1U : 0U;
  code = vk->CreateDescriptorSetLayout(device->device, &set_info, NULL, &made->set_layout);
  return (code == VK_SUCCESS)
             ? vk->CreatePipelineLayout(device->device, &info, NULL, &made->layout)
             : code;
}

static kernel *make_kernel(slw_vulkan_device *device, int32_t device_id, program *from,
                           const char *name, const char *signature) {
  size_t length = strlen(name);
  vk_pipeline_info info;
  vk_result code;
  kernel *made = calloc(1, sizeof *made + length + 1U);
  if (made == NULL) {
    slw_error_set("MemoryError", "no memory for a kernel");
    return NULL;
  }
  memcpy(made->name, name, length);
  memset(&info, 0, sizeof info);
  info.type = VK_TYPE_PIPELINE;
  info.stage.type = VK_TYPE_STAGE;
  info.stage.stage = VK_STAGE_COMPUTE;
  info.stage.module = from->module;
  info.stage.name = made->name;
  info.base_index = -1;
  code = make_layouts(device, signature, &made->made);
  info.layout = made->made.layout;
  if (code == VK_SUCCESS) {
    code = slw_vulkan_driver()->CreateComputePipelines(device->device, 0, 1, &info, NULL,
                                                       &made->made.pipeline);
  }
  if (code != VK_SUCCESS) {
    (void)slw_error_setf("DeviceError",
                         "the driver of vulkan(%d) (%s) refused the code of kernel %s (error %d).",
                         (int)device_id, device->properties.name, name, (int)code);
    free(made);
    return NULL;
  }
  made->next = from->kernels;
  from->kernels = made;
  return made;
}

static kernel *find_kernel(slw_vulkan_device *device, int32_t device_id, const char *digest,
                           const char *name, const char *signature) {
  slw_device_text *entry = slw_device_text_find(known, digest);
  program *from;
  kernel *found;
  if (entry == NULL) {
    (void)slw_error_setf("DeviceError",
                         "the Vulkan code of kernel %s is not loaded here. Load the .spv file that "
                         "belongs to this library (and import_module it), or export the library as "
                         ".tar or .so, which carry it.",
                         name);
    return NULL;
  }
  from = loaded(device, device_id, entry, name);
  if (from == NULL) {
    return NULL;
  }
  found = from->kernels;
  while (found != NULL && strcmp(found->name, name) != 0) {
    found = found->next;
  }
  return (found != NULL) ? found : make_kernel(device, device_id, from, name, signature);
}

const slw_vulkan_kernel *slw_vulkan_kernel_of(slw_vulkan_device *device, int32_t device_id,
                                              const char *digest, const char *name,
                                              const char *signature) {
  kernel *found;
  (void)pthread_mutex_lock(&lock);
  found = find_kernel(device, device_id, digest, name, signature);
  (void)pthread_mutex_unlock(&lock);
  return (found != NULL) ? &found->made : NULL;
}
