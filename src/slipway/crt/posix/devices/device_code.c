/* SPDX-License-Identifier: Apache-2.0 */
/* How compiled code reaches devices: four functions by name, and the code that libraries carry.
 *
 * "slipway.device.launch": (device type, digest, kernel, signature, grid x y z, block x y z,
 *                           arguments...), see device_api.h; behind the signature of a kernel whose
 *                         blocks share more than all devices of its kind have stands ":BYTES"
 * "slipway.device.alloc": (device type, address on the device or 0, bytes) -> address: workspace on
 *                         the device of that address
 * "slipway.device.alloc_image": (device type, the same, columns, rows, bits of a number) -> address
 * "slipway.device.free": (device type, address)
 *
 * A function that fails leaves its workspaces behind, so a thread's are freed when one of its
 * launches fails: that ends the function that they belong to. */
#include <stdlib.h>
#include <string.h>

#include "devices.h"
#include "../file.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/library.h"
#include "slipway/object.h"
#include "slipway/packed.h"
#include "slipway/registry.h"
#include "slipway/sha256.h"
#include "slipway/tensor.h"

#define HEAD_ARGS 10 /* of a launch, before the kernel's own */
#define MAX_SIGNATURE 1024
#define RECORD_HEAD_BYTES 16
#define MAX_WORKSPACES 64

typedef struct {
  const slw_device_api *api;
  void *memory;
} workspace;

static _Thread_local workspace workspaces[MAX_WORKSPACES];
static _Thread_local size_t num_workspaces;

static const slw_device_api *api_of(const TVMFFIAny *kind) {
  const slw_device_api *api =
      (kind->type_index == kTVMFFIInt) ? slw_device_find((int32_t)kind->v_int64) : NULL;
  if (api == NULL) {
    (void)slw_error_setf("DeviceError", "this runtime has no %s devices: run the library where their driver is",
                         slw_device_kind((kind->type_index == kTVMFFIInt) ? (int32_t)kind->v_int64 : 0));
  }
  return api;
}

static int take_text(const TVMFFIAny *arg, const char **text) {
  size_t size = 0;
  if (slw_any_get_bytes(arg, text, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "a launch takes the kernel's digest, name and signature");
  }
  return 0;
}

static void drop_workspaces(void) {
  while (num_workspaces > 0U) {
    --num_workspaces;
    workspaces[num_workspaces].api->release(workspaces[num_workspaces].memory);
  }
}

/* Check the bytes that a block shares against what the device has: drivers answer more with a wrong
 * result, or with the end of the process. */
static int check_shared(const slw_device_api *api, const slw_device_launch *launch,
                        unsigned long long wanted) {
  int32_t device_id = 0;
  size_t count = strlen(launch->signature);
  int is_given = count > 0U && launch->signature[count - 1U] == 's';
  TVMFFIAny most;
  memset(&most, 0, sizeof most);
  for (size_t i = 0; launch->signature[i] != '\0'; ++i) {
    if (launch->signature[i] == 'p' && launch->args[i].v_ptr != NULL) {
      if (api->device_of(launch->args[i].v_ptr, &device_id) != SLW_OK) {
        return -1;
      }
      break;
    }
  }
  if (is_given) {
    wanted += (unsigned long long)launch->args[count - 1U].v_int64;
    if (api->attribute(device_id, SLW_DEVICE_MAX_SHARED_MEMORY_OF_LAUNCH, &most) != SLW_OK) {
      return -1;
    }
  }
  if (most.type_index != kTVMFFIInt &&
      api->attribute(device_id, SLW_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK, &most) != SLW_OK) {
    return -1;
  }
  if (most.type_index == kTVMFFIInt && most.v_int64 >= 0 &&
      wanted > (unsigned long long)most.v_int64) {
    return slw_error_setf("DeviceError",
                          "kernel %s has %llu bytes of shared memory for a block, and %s(%d) has "
                          "%lld. Make its tiles in scope \"%s\" smaller, or %s for a target with "
                          "-max_shared_memory_per_block=%lld.",
                          launch->kernel, wanted, api->name, (int)device_id,
                          (long long)most.v_int64, is_given ? "shared.dyn" : "shared",
                          is_given ? "call it with smaller sizes; compile" : "compile",
                          (long long)most.v_int64);
  }
  return 0;
}

int slw_packed_device_launch(void *handle, const TVMFFIAny *args, int32_t num_args,
                             TVMFFIAny *result) {
  slw_device_launch launch;
  char signature[MAX_SIGNATURE];
  unsigned long long shared = 0;
  const char *mark;
  const slw_device_api *api = (num_args >= HEAD_ARGS) ? api_of(&args[0]) : NULL;
  (void)handle;
  (void)result;
  memset(&launch, 0, sizeof launch);
  if (api == NULL || take_text(&args[1], &launch.digest) != 0 ||
      take_text(&args[2], &launch.kernel) != 0 || take_text(&args[3], &launch.signature) != 0) {
    return -1;
  }
  for (int i = 0; i < 6; ++i) {
    int64_t extent = args[4 + i].v_int64;
    if (extent < 0) {
      return slw_error_setf("DeviceError", "kernel %s is launched with a negative extent",
                            launch.kernel);
    }
    if (extent == 0) {
      return 0; /* no thread has anything to do */
    }
    *((i < 3) ? &launch.grid[i] : &launch.block[i - 3]) = (size_t)extent;
  }
  mark = strchr(launch.signature, ':');
  if (mark != NULL && (size_t)(mark - launch.signature) < sizeof signature) {
    shared = strtoull(mark + 1, NULL, 10);
    memcpy(signature, launch.signature, (size_t)(mark - launch.signature));
    signature[mark - launch.signature] = '\0';
    launch.signature = signature;
  }
  if (strlen(launch.signature) != (size_t)(num_args - HEAD_ARGS) ||
      strlen(launch.digest) != 2U * SLW_SHA256_BYTES) {
    return slw_error_setf("TypeError", "kernel %s is launched with other arguments than it has",
                          launch.kernel);
  }
  launch.args = args + HEAD_ARGS;
  if ((mark != NULL && check_shared(api, &launch, shared) != 0) ||
      api->launch(&launch) != SLW_OK) {
    drop_workspaces();
    return -1;
  }
  return 0;
}

/* Workspace on the device of args[1]: args[2] bytes, or an image. */
static int workspace_of(const slw_device_api *api, const TVMFFIAny *args, int is_image,
                        TVMFFIAny *result) {
  void *memory = NULL;
  int32_t device_id = 0;
  slw_status status;
  if (api == NULL) {
    return -1;
  }
  if (is_image && api->alloc_image == NULL) {
    drop_workspaces();
    return slw_error_setf("DeviceError",
                          "%s has no images here, which memory in scope \"global.texture\" is. Keep it "
                          "in scope \"global\".",
                          api->name);
  }
  if (num_workspaces == MAX_WORKSPACES) {
    drop_workspaces();
    return slw_error_setf("DeviceError", "a function keeps more than %d tensors on a device",
                          MAX_WORKSPACES);
  }
  if (args[1].v_ptr != NULL && api->device_of(args[1].v_ptr, &device_id) != SLW_OK) {
    return -1;
  }
  status = is_image ? api->alloc_image(device_id, (size_t)args[2].v_int64, (size_t)args[3].v_int64,
                                       (int32_t)args[4].v_int64, &memory)
                    : api->alloc(device_id, (size_t)args[2].v_int64, &memory);
  if (status != SLW_OK) {
    drop_workspaces();
    return -1;
  }
  workspaces[num_workspaces].api = api;
  workspaces[num_workspaces].memory = memory;
  ++num_workspaces;
  memset(result, 0, sizeof *result);
  result->type_index = kTVMFFIInt;
  result->v_int64 = (int64_t)(uintptr_t)memory;
  return 0;
}

int slw_packed_device_alloc(void *handle, const TVMFFIAny *args, int32_t num_args,
                            TVMFFIAny *result) {
  (void)handle;
  return workspace_of((num_args == 3) ? api_of(&args[0]) : NULL, args, 0, result);
}

int slw_packed_device_alloc_image(void *handle, const TVMFFIAny *args, int32_t num_args,
                                  TVMFFIAny *result) {
  (void)handle;
  return workspace_of((num_args == 5) ? api_of(&args[0]) : NULL, args, 1, result);
}

int slw_packed_device_free(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  (void)handle;
  (void)result;
  for (size_t i = num_workspaces; num_args == 2 && i > 0U; --i) {
    if (workspaces[i - 1U].memory == args[1].v_ptr) {
      workspaces[i - 1U].api->release(args[1].v_ptr);
      memmove(&workspaces[i - 1U], &workspaces[i],
              (num_workspaces - i) * sizeof workspaces[0]);
      --num_workspaces;
      break;
    }
  }
  return 0;
}

static int digest_of(const TVMFFIAny *arg, const char **digest) {
  size_t size = 0;
  return (slw_any_get_bytes(arg, digest, &size) == SLW_OK && size == 2U * SLW_SHA256_BYTES)
             ? 0
             : slw_error_setf("TypeError", "the digest of code is its SHA-256 in hexadecimal");
}

/* (device type, code): make code known to a kind of device. -> its digest, to drop it by */
int slw_packed_device_add_code(void *handle, const TVMFFIAny *args, int32_t num_args,
                               TVMFFIAny *result) {
  const slw_device_api *api = (num_args == 2) ? api_of(&args[0]) : NULL;
  const char *code = NULL;
  char digest[SLW_DEVICE_DIGEST_BYTES];
  size_t size = 0;
  (void)handle;
  if (api == NULL) {
    return -1;
  }
  if (slw_any_get_bytes(&args[1], &code, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "the code of a device is bytes");
  }
  slw_device_digest(code, size, digest);
  return (api->add_code(digest, code, size) == SLW_OK &&
          slw_any_set_string(result, digest, sizeof digest - 1U) == SLW_OK)
             ? 0
             : -1;
}

/* (device type, digest): what was made known is not needed any more. */
int slw_packed_device_drop_code(void *handle, const TVMFFIAny *args, int32_t num_args,
                                TVMFFIAny *result) {
  const slw_device_api *api = (num_args == 2) ? api_of(&args[0]) : NULL;
  const char *digest = NULL;
  (void)handle;
  (void)result;
  if (api == NULL || digest_of(&args[1], &digest) != 0) {
    return -1;
  }
  api->drop_code(digest);
  return 0;
}

void slw_device_digest(const void *code, size_t size_bytes, char *digest) {
  static const char HEX[] = "0123456789abcdef";
  uint8_t sum[SLW_SHA256_BYTES];
  slw_sha256 hash;
  slw_sha256_init(&hash);
  slw_sha256_update(&hash, code, size_bytes);
  slw_sha256_final(&hash, sum);
  for (size_t i = 0; i < sizeof sum; ++i) {
    digest[2U * i] = HEX[sum[i] >> 4];
    digest[2U * i + 1U] = HEX[sum[i] & 15U];
  }
  digest[2U * SLW_SHA256_BYTES] = '\0';
}

/* The code of one kind of device among a library's. */
typedef struct {
  const slw_device_api *api; /* NULL: this runtime has none of the kind */
  const uint8_t *code;
  size_t size_bytes;
} record;

/* Take the record at the front off `data`. @return 0: there is none; -1: it is damaged */
static int next_record(const uint8_t **data, size_t *size_bytes, record *out) {
  int32_t kind = 0;
  uint64_t size = 0;
  if (*size_bytes < RECORD_HEAD_BYTES) {
    return 0;
  }
  memcpy(&kind, *data + 4, sizeof kind);
  memcpy(&size, *data + 8, sizeof size);
  if (memcmp(*data, "SLWD", 4) != 0 || size > *size_bytes - RECORD_HEAD_BYTES) {
    return -1;
  }
  out->api = slw_device_find(kind);
  out->code = *data + RECORD_HEAD_BYTES;
  out->size_bytes = (size_t)size;
  size = (size + RECORD_HEAD_BYTES + 7U) & ~(uint64_t)7U;
  size = (size < *size_bytes) ? size : *size_bytes;
  *data += size;
  *size_bytes -= (size_t)size;
  return 1;
}

/* Drop what lies in front of `end`. */
static void drop_until(const uint8_t *at, const uint8_t *end) {
  char digest[SLW_DEVICE_DIGEST_BYTES];
  size_t left = (size_t)(end - at);
  record found;
  while (next_record(&at, &left, &found) > 0) {
    if (found.api != NULL) {
      slw_device_digest(found.code, found.size_bytes, digest);
      found.api->drop_code(digest);
    }
  }
}

slw_status slw_device_code_add(const void *data, size_t size_bytes, const char *name) {
  const uint8_t *at = data;
  const uint8_t *begin = data;
  char digest[SLW_DEVICE_DIGEST_BYTES];
  record found;
  int more = next_record(&at, &size_bytes, &found);
  for (; more > 0; more = next_record(&at, &size_bytes, &found)) {
    if (found.api != NULL) {
      slw_device_digest(found.code, found.size_bytes, digest);
      if (found.api->add_code(digest, found.code, found.size_bytes) != SLW_OK) {
        drop_until(begin, found.code - RECORD_HEAD_BYTES);
        return SLW_ERROR_MEMORY;
      }
    }
  }
  if (more < 0) {
    drop_until(begin, at);
    (void)slw_error_setf("ArtifactError", "%s: its code for devices is damaged. Export it again.",
                         name);
    return SLW_ERROR_FORMAT;
  }
  return SLW_OK;
}

void slw_device_code_drop(const void *data, size_t size_bytes) {
  drop_until(data, (const uint8_t *)data + size_bytes);
}

/* --- a file of code as a module --------------------------------------------------------------- */

typedef struct {
  slw_module head;
  const slw_device_api *api;
  char digest[SLW_DEVICE_DIGEST_BYTES];
} code_module;

static slw_status no_function(slw_module *module, const char *name, slw_function *out) {
  (void)module;
  (void)name;
  (void)out;
  return SLW_ERROR_NOT_FOUND;
}

static void destroy_module(slw_module *module) {
  code_module *self = (code_module *)(void *)module;
  self->api->drop_code(self->digest);
  free(self);
}

static const slw_module_class CODE_CLASS = {"device_code", no_function, destroy_module};

/* How the names of files with code end, and the kind of device it is for. */
static int32_t kind_of_code(const char *path) {
  static const struct {
    const char *ending;
    int32_t kind;
  } ENDINGS[] = {{".cl", kDLOpenCL}, {".ptx", kDLCUDA}, {".metal", kDLMetal}, {".spv", kDLVulkan},
               {".wgsl", kDLWebGPU},   {".hsaco", kDLROCM}};
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof ENDINGS / sizeof ENDINGS[0]; ++i) {
    size_t size = strlen(ENDINGS[i].ending);
    if (length > size && strcmp(path + length - size, ENDINGS[i].ending) == 0) {
      return ENDINGS[i].kind;
    }
  }
  return 0;
}

int slw_device_is_code(const char *path) { return kind_of_code(path) != 0; }

slw_status slw_device_module_open(const char *path, slw_module **out) {
  slw_file file;
  code_module *made;
  slw_status status = slw_file_read(&file, path);
  if (status != SLW_OK) {
    return status;
  }
  slw_devices_setup();
  made = calloc(1, sizeof *made);
  if (made == NULL) {
    slw_file_free(&file);
    slw_error_set("MemoryError", "no memory for a module");
    return SLW_ERROR_MEMORY;
  }
  made->api = slw_device_find(kind_of_code(path));
  if (made->api == NULL) {
    (void)slw_error_setf("DeviceError", "%s: this runtime has no devices that take such code", path);
    status = SLW_ERROR_UNSUPPORTED;
  } else {
    slw_device_digest(file.bytes, file.size_bytes, made->digest);
    status = made->api->add_code(made->digest, file.bytes, file.size_bytes);
  }
  slw_file_free(&file);
  if (status != SLW_OK) {
    free(made);
    return status;
  }
  slw_module_init(&made->head, &CODE_CLASS);
  *out = &made->head;
  return SLW_OK;
}

static int library_code(const TVMFFIAny *args, int32_t num_args, const char **data,
                        size_t *size) {
  return (num_args == 1 && slw_any_get_bytes(&args[0], data, size) == SLW_OK)
             ? 0
             : slw_error_setf("TypeError", "the code of a library for its devices is bytes");
}

/* (code bytes of a library): see slw_device_code_add. */
int slw_packed_device_code(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const char *data = NULL;
  size_t size = 0;
  (void)handle;
  (void)result;
  if (library_code(args, num_args, &data, &size) != 0) {
    return -1;
  }
  return (slw_device_code_add(data, size, "the library") == SLW_OK) ? 0 : -1;
}

/* (code bytes of a library): see slw_device_code_drop. */
int slw_packed_device_drop(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const char *data = NULL;
  size_t size = 0;
  (void)handle;
  (void)result;
  if (library_code(args, num_args, &data, &size) != 0) {
    return -1;
  }
  slw_device_code_drop(data, size);
  return 0;
}

/* (device type, device, type code, bits, lanes, extents...) -> tensor */
int slw_packed_device_empty(void *handle, const TVMFFIAny *args, int32_t num_args,
                            TVMFFIAny *result) {
  int64_t shape[SLW_TENSOR_MAX_NDIM];
  DLDataType dtype;
  DLDevice device;
  slw_tensor *tensor = NULL;
  slw_status status;
  (void)handle;
  if (num_args < 5 || num_args > 5 + SLW_TENSOR_MAX_NDIM) {
    return slw_error_setf("ValueError", "a tensor on a device has at most %d axes",
                          SLW_TENSOR_MAX_NDIM);
  }
  device.device_type = (int32_t)args[0].v_int64;
  device.device_id = (int32_t)args[1].v_int64;
  dtype.code = (uint8_t)args[2].v_int64;
  dtype.bits = (uint8_t)args[3].v_int64;
  dtype.lanes = (uint16_t)args[4].v_int64;
  for (int32_t i = 5; i < num_args; ++i) {
    shape[i - 5] = args[i].v_int64;
  }
  slw_error_clear();
  status = slw_tensor_alloc(shape, num_args - 5, dtype, device, &tensor);
  if (status != SLW_OK) {
    if (slw_error_message()[0] == '\0') {
      slw_error_set("DeviceError",
                    "no tensor of that shape can be made on a device: a size is negative, there are more "
                    "bytes than an address counts or than memory is free, or its kind of device is none "
                    "of this runtime");
    }
    return -1;
  }
  memset(result, 0, sizeof *result);
  result->type_index = kTVMFFITensor;
  result->v_obj = &tensor->object;
  return 0;
}

int slw_packed_tensor_copy(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const DLTensor *from = (num_args == 2) ? slw_any_get_tensor(&args[0]) : NULL;
  DLTensor *to = (num_args == 2) ? slw_any_get_tensor(&args[1]) : NULL;
  slw_status status;
  (void)handle;
  (void)result;
  if (from == NULL || to == NULL) {
    return slw_error_setf("TypeError", "tensor_copy takes two tensors");
  }
  slw_error_clear();
  status = slw_tensor_copy(from, to);
  if (status != SLW_OK && slw_error_message()[0] == '\0') {
    return slw_error_setf("ValueError", "the tensors cannot be copied: %s",
                          slw_status_text(status));
  }
  return (status == SLW_OK) ? 0 : -1;
}

/* (device type, device, attribute) -> its value, or None */
int slw_packed_device_attribute(void *handle, const TVMFFIAny *args, int32_t num_args,
                                TVMFFIAny *result) {
  const slw_device_api *api = (num_args == 3) ? api_of(&args[0]) : NULL;
  (void)handle;
  if (api == NULL) {
    return -1;
  }
  return (api->attribute((int32_t)args[1].v_int64, (int32_t)args[2].v_int64, result) == SLW_OK)
             ? 0
             : -1;
}

/* (device type, device): wait until its work is done */
int slw_packed_device_sync(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const slw_device_api *api = (num_args == 2) ? api_of(&args[0]) : NULL;
  (void)handle;
  (void)result;
  if (api == NULL) {
    return -1;
  }
  return (api->synchronize((int32_t)args[1].v_int64) == SLW_OK) ? 0 : -1;
}

/* (device type, device): give memory that is only kept back to the driver */
int slw_packed_device_trim(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const slw_device_api *api = (num_args == 2) ? api_of(&args[0]) : NULL;
  (void)handle;
  (void)result;
  if (api == NULL) {
    return -1;
  }
  return (api->trim == NULL || api->trim((int32_t)args[1].v_int64) == SLW_OK) ? 0 : -1;
}

void slw_devices_setup(void) {
  static const struct {
    const char *name;
    TVMFFISafeCallType call;
  } FUNCTIONS[] = {{"slipway.device.launch", slw_packed_device_launch},
                   {"slipway.device.alloc", slw_packed_device_alloc},
                   {"slipway.device.alloc_image", slw_packed_device_alloc_image},
                   {"slipway.device.free", slw_packed_device_free}};
  slw_opencl_setup();
  slw_cuda_setup();
  slw_hip_setup();
  slw_vulkan_setup();
#if defined(SLW_HAS_METAL)
  slw_metal_setup();
#endif
  for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; ++i) {
    slw_function function = {FUNCTIONS[i].call, NULL};
    TVMFFIAny made;
    if (slw_any_set_function(&made, function, NULL) == SLW_OK) {
      (void)slw_registry_set(FUNCTIONS[i].name, made.v_obj, 1);
      slw_object_release(made.v_obj);
    }
  }
}
