/* SPDX-License-Identifier: Apache-2.0 */
/* The code that kernels come from: SPIR-V under its SHA-256.  A kernel is an entry point, compiled
 * by a device's driver when it is first launched there, and kept until the code is dropped. */
#include <stdlib.h>
#include <string.h>

#include "device_store.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "vulkan.h"

#define HEAD_WORDS 5
#define MAGIC 0x07230203U
#define OP_EXTENSION 10U
#define OP_CAPABILITY 17U
#define OP_FUNCTION 54U
#define OP_MODULE_PROCESSED 330U
#define MAX_BINDINGS 128

/* What code says that it needs, and this device lacks: its name, or NULL. */
static const char *lacking(const slw_vulkan_device *device, const uint32_t *words, size_t count) {
  static const struct {
    uint32_t number;
    uint32_t bit;
    const char *name;
  } KNOWN[] = {
      {9, SLW_VULKAN_FLOAT16, "arithmetic in float16"},
      {10, SLW_VULKAN_FLOAT64, "float64"},
      {11, SLW_VULKAN_INT64, "int64"},
      {22, SLW_VULKAN_INT16, "int16"},
      {39, SLW_VULKAN_INT8, "int8"},
      {65, SLW_VULKAN_SHUFFLES, "subgroups of a size that is asked for, with shuffles"},
      {4433, SLW_VULKAN_BUFFERS_OF_16_BITS, "tensors of 16-bit elements"},
      {4448, SLW_VULKAN_BUFFERS_OF_8_BITS, "tensors of 8-bit elements"},
      {6022, SLW_VULKAN_MATRICES, "cooperative matrices (VK_KHR_cooperative_matrix)"},
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

/* What the code notes of a kernel behind `note`: the next from word `*at` on, or NULL. */
static const char *next_note(const slw_device_text *code, const char *kernel, const char *note,
                             size_t *next) {
  const uint32_t *words = (const uint32_t *)(const void *)code->text;
  size_t count = code->size_bytes / sizeof *words;
  size_t length = strlen(kernel);
  size_t note_length = strlen(note);
  for (size_t at = *next; at + 1U < count; at += words[at] >> 16) {
    const char *text = (const char *)&words[at + 1U];
    size_t room = ((words[at] >> 16) - 1U) * sizeof *words;
    if ((words[at] >> 16) == 0U || (words[at] >> 16) > count - at ||
        (words[at] & 0xFFFFU) == OP_FUNCTION) {
      break;
    }
    if ((words[at] & 0xFFFFU) == OP_MODULE_PROCESSED && room > length + note_length + 1U &&
        memcmp(text, kernel, length) == 0 && memcmp(text + length, note, note_length) == 0) {
      *next = at + (words[at] >> 16);
      return text + length + note_length;
    }
  }
  return NULL;
}

/* Of how many threads the subgroups of a kernel are, which its code notes; 0: of any number. */
static uint32_t subgroups_of(const slw_device_text *code, const char *kernel) {
  size_t at = HEAD_WORDS;
  const char *found = next_note(code, kernel, ": subgroups of ", &at);
  return (found != NULL) ? (uint32_t)strtoul(found, NULL, 10) : 0U;
}

/* A size of matrices as targets spell it, f16:16x16x16; "" for one that no code is written for. */
static void spell(const vk_matrix_size *size, char *text, size_t room) {
  static const struct {
    uint32_t operand;
    uint32_t sum;
    const char *name;
  } KNOWN[] = {{0, 1, "f16"}, {3, 5, "s8"}, {7, 9, "u8"}};
  const uint32_t *of = size->dtypes;
  text[0] = '\0';
  for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; ++i) {
    if (of[0] == KNOWN[i].operand && of[1] == KNOWN[i].operand && of[2] == KNOWN[i].sum &&
        of[3] == KNOWN[i].sum && size->scope == VK_SCOPE_SUBGROUP && size->saturates == 0U) {
      (void)slw_format(text, room, "%s:%ux%ux%u", KNOWN[i].name, (unsigned)size->rows,
                       (unsigned)size->columns, (unsigned)size->depth);
    }
  }
}

/* Whether the device multiplies the matrices that the code of a kernel notes; else the error says
 * which it does multiply. */
static int has_matrices(const slw_vulkan_device *device, int32_t device_id,
                        const slw_device_text *code, const char *kernel) {
  char text[48];
  char all[256] = "";
  size_t at = HEAD_WORDS;
  const char *wanted = NULL;
  while ((wanted = next_note(code, kernel, ": matrices of ", &at)) != NULL) {
    int found = 0;
    for (uint32_t i = 0; i < device->num_matrices; ++i) {
      size_t used = strlen(all);
      spell(&device->matrices[i], text, sizeof text);
      found |= strcmp(text, wanted) == 0;
      (void)slw_format(all + used, sizeof all - used, "%s%s",
                       (used != 0U && text[0] != '\0') ? "," : "", text);
    }
    if (!found) {
      (void)slw_error_setf("DeviceError",
                           "vulkan(%d) (%s) multiplies no matrices of %s, which kernel %s needs. "
                           "Compile it with -cooperative_matrix=%s.",
                           (int)device_id, device->properties.name, wanted, kernel, all);
      return 0;
    }
  }
  return 1;
}

/* What failed is no matter of the code where memory is full or the device is lost. */
static slw_status not_compiled(const slw_vulkan_device *device, int32_t device_id,
                               const char *kernel, vk_result error) {
  char what[160];
  if (error < VK_SUCCESS && error >= VK_ERROR_DEVICE_LOST) {
    (void)slw_format(what, sizeof what, "compiling kernel %s", kernel);
    return slw_vulkan_failed(device, what, error);
  }
  return slw_driver_refused(&slw_vulkan, device_id, kernel, error, "", "");
}

slw_status slw_vulkan_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                              uint64_t *handle) {
  const slw_vulkan_device *device = slw_vulkan_device_of(device_id);
  const uint32_t *words = (const uint32_t *)(const void *)code->text;
  size_t count = code->size_bytes / sizeof *words;
  vk_shader_info info = {VK_TYPE_SHADER, NULL, 0, count * sizeof *words, words};
  const char *lacks = NULL;
  vk_result error;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  if (count <= HEAD_WORDS || words[0] != MAGIC) {
    (void)slw_error_setf("DeviceError", "the code of kernel %s is no SPIR-V. Export it again.",
                         kernel);
    return SLW_ERROR_FORMAT;
  }
  lacks = lacking(device, words, count);
  if (lacks != NULL) {
    (void)slw_error_setf("DeviceError",
                         "vulkan(%d) (%s) has no %s, which the code of kernel %s needs. Use other "
                         "types, or another device.",
                         (int)device_id, device->properties.name, lacks, kernel);
    return SLW_ERROR_UNSUPPORTED;
  }
  error = slw_vk.CreateShaderModule(device->device, &info, NULL, handle);
  return (error == VK_SUCCESS) ? SLW_OK : not_compiled(device, device_id, kernel, error);
}

uint32_t slw_vulkan_push_offset(char kind, uint32_t *at) {
  uint32_t size = (kind == '8' || kind == 'd') ? 8U : 4U;
  uint32_t offset = (*at + size - 1U) / size * size;
  *at = offset + size;
  return offset;
}

static vk_result make_layouts(const slw_vulkan_device *device, const char *signature,
                              uint64_t *handles) {
  vk_binding bindings[MAX_BINDINGS];
  uint32_t count = 0;
  uint32_t pushed = 0;
  vk_set_layout_info set_info = {VK_TYPE_SET_LAYOUT, NULL, 0, 0, bindings};
  vk_push_range range = {VK_STAGE_COMPUTE, 0, 0};
  vk_layout_info info = {VK_TYPE_LAYOUT, NULL, 0, 1, &handles[SLW_VULKAN_SET_LAYOUT], 0, &range};
  vk_result code;
  for (; *signature != '\0'; ++signature) {
    if (*signature == 'p' && count < MAX_BINDINGS) {
      vk_binding binding = {count, VK_DESCRIPTOR_STORAGE_BUFFER, 1, VK_STAGE_COMPUTE, NULL};
      bindings[count++] = binding;
    } else if (*signature != 'p') {
      (void)slw_vulkan_push_offset(*signature, &pushed);
    }
  }
  set_info.count = count;
  range.size = (pushed + 3U) & ~3U;
  info.num_ranges = (pushed > 0U) ? 1U : 0U;
  code = slw_vk.CreateDescriptorSetLayout(device->device, &set_info, NULL, &handles[SLW_VULKAN_SET_LAYOUT]);
  return (code == VK_SUCCESS)
             ? slw_vk.CreatePipelineLayout(device->device, &info, NULL, &handles[SLW_VULKAN_LAYOUT])
             : code;
}

/* What was made of it: handles are 0 where nothing was. */
static void destroy_kernel(const slw_vulkan_device *device, const uint64_t *handles) {
  slw_vk.DestroyPipeline(device->device, handles[SLW_VULKAN_PIPELINE], NULL);
  slw_vk.DestroyPipelineLayout(device->device, handles[SLW_VULKAN_LAYOUT], NULL);
  slw_vk.DestroyDescriptorSetLayout(device->device, handles[SLW_VULKAN_SET_LAYOUT], NULL);
}

/* All that a compiled kernel depends on. */
typedef struct {
  char digest[SLW_DIGEST_CHARS + 1];
  char driver[96];
  const char *words[6];
} kernel_key;

static void make_key(const slw_vulkan_device *device, const slw_device_launch *launch,
                     kernel_key *key) {
  const vk_properties *about = &device->properties;
  size_t used;
  memset(key, 0, sizeof *key);
  memcpy(key->digest, launch->digest, SLW_DIGEST_CHARS);
  used = slw_format(key->driver, sizeof key->driver, "%u.%u.%u.%u.", about->api, about->driver,
                    about->vendor, about->device);
  for (size_t i = 0; i < sizeof about->uuid; ++i) {
    used += slw_format(key->driver + used, sizeof key->driver - used, "%x.", about->uuid[i]);
  }
  key->words[0] = "vulkan";
  key->words[1] = key->digest;
  key->words[2] = launch->kernel;
  key->words[3] = about->name;
  key->words[4] = key->driver;
}

/* The driver's cache with what an earlier process kept in it; `is_new`: nothing was. */
static vk_object open_cache(const slw_vulkan_device *device, const kernel_key *key, int *is_new) {
  vk_pipeline_cache_info info = {VK_TYPE_PIPELINE_CACHE, NULL, 0, 0, NULL};
  vk_object made = 0;
  size_t size_bytes = 0;
  void *kept = slw_device_store_read(key->words, &size_bytes);
  info.kept = kept;
  info.size_bytes = (kept != NULL) ? size_bytes : 0U;
  *is_new = kept == NULL && slw_device_store_keeps();
  if (slw_vk.CreatePipelineCache(device->device, &info, NULL, &made) != VK_SUCCESS) {
    made = 0; /* kernels are compiled without one */
  }
  free(kept);
  return made;
}

static void close_cache(const slw_vulkan_device *device, const kernel_key *key, vk_object cache,
                        int is_new) {
  size_t size_bytes = 0;
  void *bytes = NULL;
  if (cache == 0U) {
    return;
  }
  if (is_new && slw_vk.GetPipelineCacheData(device->device, cache, &size_bytes, NULL) ==
                    VK_SUCCESS &&
      size_bytes > 0U) {
    bytes = malloc(size_bytes);
  }
  if (bytes != NULL && slw_vk.GetPipelineCacheData(device->device, cache, &size_bytes, bytes) ==
                           VK_SUCCESS) {
    slw_device_store_write(key->words, bytes, size_bytes);
  }
  free(bytes);
  slw_vk.DestroyPipelineCache(device->device, cache, NULL);
}

slw_status slw_vulkan_kernel(int32_t device_id, uint64_t program, const slw_device_text *code,
                             const slw_device_launch *launch, slw_device_kernel *out) {
  const slw_vulkan_device *device = slw_vulkan_device_of(device_id);
  vk_pipeline_info info;
  kernel_key key;
  vk_object cache;
  vk_result error;
  int is_new = 0;
  vk_stage_subgroups subgroups = {VK_TYPE_STAGE_SUBGROUPS, NULL, subgroups_of(code, launch->kernel)};
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  memset(&info, 0, sizeof info);
  info.type = VK_TYPE_PIPELINE;
  info.stage.type = VK_TYPE_STAGE;
  info.stage.stage = VK_STAGE_COMPUTE;
  info.stage.module = program;
  info.stage.name = out->name;
  info.base_index = -1;
  if (subgroups.size != 0U) {
    if (subgroups.size < device->subgroup_sizes.minimum ||
        subgroups.size > device->subgroup_sizes.maximum) {
      (void)slw_error_setf("DeviceError",
                           "vulkan(%d) (%s) has subgroups of %u to %u threads, and kernel %s is "
                           "compiled for subgroups of %u. Compile it with -thread_warp_size=%u.",
                           (int)device_id, device->properties.name, device->subgroup_sizes.minimum,
                           device->subgroup_sizes.maximum, launch->kernel, subgroups.size,
                           device->subgroup_sizes.maximum);
      return SLW_ERROR_UNSUPPORTED;
    }
    if (!has_matrices(device, device_id, code, launch->kernel)) {
      return SLW_ERROR_UNSUPPORTED;
    }
    info.stage.next = &subgroups;
    info.stage.flags = VK_FULL_SUBGROUPS;
  }
  error = make_layouts(device, launch->signature, out->handles);
  info.layout = out->handles[SLW_VULKAN_LAYOUT];
  if (error == VK_SUCCESS) {
    make_key(device, launch, &key);
    cache = open_cache(device, &key, &is_new);
    error = slw_vk.CreateComputePipelines(device->device, cache, 1, &info, NULL,
                                          &out->handles[SLW_VULKAN_PIPELINE]);
    close_cache(device, &key, cache, is_new && error == VK_SUCCESS);
  }
  if (error != VK_SUCCESS) {
    destroy_kernel(device, out->handles);
    return not_compiled(device, device_id, launch->kernel, error);
  }
  return SLW_OK;
}

/* Recorded and running work may use them; where the device is lost nothing runs. */
void slw_vulkan_drop(int32_t device_id, const slw_device_program *program) {
  slw_vulkan_device *device = slw_vulkan_device_of(device_id);
  if (device == NULL) {
    return;
  }
  (void)pthread_mutex_lock(&device->lock);
  slw_vulkan_settle(device);
  for (const slw_device_kernel *kernel = program->kernels; kernel != NULL; kernel = kernel->next) {
    destroy_kernel(device, kernel->handles);
  }
  slw_vk.DestroyShaderModule(device->device, program->handle, NULL);
  (void)pthread_mutex_unlock(&device->lock);
}
