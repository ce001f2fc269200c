/* SPDX-License-Identifier: Apache-2.0 */
/* An exported .so or .tar as a module.
 *
 * A .tar holds lib.so, for a model graph.bin and params.bin, and SHA256SUMS ("<hex>  <name>"
 * lines, one for every other member).  A .so of a model carries the same two as data symbols. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "devices/devices.h"
#include "file.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/graph_module.h"
#include "slipway/library.h"
#include "slipway/metadata.h"
#include "slipway/model_call.h"
#include "slipway/module.h"
#include "slipway/sha256.h"
#include "slipway/tar.h"
#include "slipway/tensor.h"

#define SYMBOL_BYTES 256
#define HEX_BYTES (2 * SLW_SHA256_BYTES)

#define MOST_DEVICES 16 /* that a model is made on */

typedef struct {
  const uint8_t *bytes;
  size_t size_bytes;
} blob;

typedef struct {
  slw_module head;
  slw_file file;
  slw_library *library;
  blob graph;
  blob params;
  slw_tensor *values; /* of the parameters, which all instances read; made for the first one */
  pthread_mutex_t taking; /* `values` out of `params`, which then has names and shapes only */
  blob metadata; /* JSON, NUL not counted */
} library_module;

static slw_status find_symbol_of(const library_module *self, const char *name, slw_function *out) {
  char symbol[SYMBOL_BYTES];
  void *address;
  size_t used = slw_format(symbol, sizeof symbol, "__tvm_ffi_%s", name);
  if (used + 1 >= sizeof symbol) {
    return SLW_ERROR_NOT_FOUND;
  }
  address = slw_library_symbol(self->library, symbol);
  if (address == NULL) {
    return SLW_ERROR_NOT_FOUND;
  }
  memcpy(&out->call, &address, sizeof address);
  out->self = NULL;
  return SLW_OK;
}

static slw_status lookup_kernel(void *context, const char *name, slw_function *out) {
  return find_symbol_of(context, name, out);
}

static blob find_data(const slw_library *library, const char *name) {
  blob found = {NULL, 0};
  const uint8_t *data = NULL;
  size_t size = 0;
  if (slw_elf_symbol_data(slw_library_elf(library), name, &data, &size) == SLW_OK) {
    found.bytes = data;
    found.size_bytes = size;
  }
  return found;
}

static void forget(void *context, const void *bytes, size_t size_bytes) {
  (void)context;
  slw_file_forget(bytes, size_bytes);
}

/* The values leave the file's memory, so that they are there once: one thread takes them out. */
static slw_status take_values(library_module *self) {
  slw_status status = SLW_OK;
  (void)pthread_mutex_lock(&self->taking);
  if (self->values == NULL) {
    slw_tensor *values = NULL;
    status = slw_params_move(self->params.bytes, self->params.size_bytes, forget, NULL, &values);
    self->values = (status == SLW_OK) ? values : NULL;
  }
  (void)pthread_mutex_unlock(&self->taking);
  return status;
}

static slw_status share_values(library_module *self, slw_module *made) {
  slw_status status = take_values(self);
  if (status != SLW_OK) {
    return status;
  }
  return slw_graph_module_share_params(made, self->params.bytes, self->params.size_bytes,
                                       self->values);
}

/* On the processor all instances read one copy; on a device each has its own. */
static slw_status give_values(library_module *self, slw_module *made, int is_shared) {
  int64_t count = 0;
  return is_shared
             ? share_values(self, made)
             : slw_graph_module_load_params(made, self->params.bytes, self->params.size_bytes,
                                            &count);
}

/* The kind of device that the library's kernels run on. */
static int32_t kernels_kind(const library_module *self) {
  blob code = find_data(self->library, "__slipway_device_code");
  int32_t kind = kDLCPU;
  if (code.size_bytes >= 8U) {
    memcpy(&kind, code.bytes + 4, sizeof kind);
  }
  return kind;
}

/* Whether parts of the model run on different kinds of device. */
static int is_over_devices(const library_module *self) {
  uint32_t arenas = 0;
  if (self->graph.size_bytes >= 60U) {
    memcpy(&arenas, self->graph.bytes + 56, sizeof arenas); /* graph_tables.h */
  }
  return arenas != 0U;
}

/* The devices that the caller gives, or the one of a model for one kind.
 * @return 0 or -1 */
static int take_devices(const library_module *self, const TVMFFIAny *args, int32_t num_args,
                        DLDevice *devices, size_t *count) {
  const int32_t kind = kernels_kind(self);
  const char *name = slw_device_kind(kind);
  const DLDevice processor = {kDLCPU, 0};
  *count = 0;
  for (int32_t i = 0; i < num_args; ++i) {
    if (i == MOST_DEVICES || args[i].type_index != kTVMFFIDevice) {
      return slw_error_setf("ExecutionError",
                            "'default' takes a device of each kind, or the model's input tensors");
    }
    devices[(*count)++] = args[i].v_device;
  }
  if (num_args == 0) {
    devices[(*count)++] = processor;
  }
  for (size_t i = 0; i < *count && !is_over_devices(self); ++i) {
    if ((int32_t)devices[i].device_type == kind) {
      devices[0] = devices[i];
      *count = 1;
      return 0;
    }
  }
  return is_over_devices(self)
             ? 0
             : slw_error_setf("ExecutionError",
                              "this model was compiled for %s: give 'default' %s(0)", name, name);
}

/* The first device of every kind. */
static size_t first_devices(const library_module *self, DLDevice *devices) {
  size_t count = 0;
  if (!is_over_devices(self)) {
    devices[0].device_type = (DLDeviceType)kernels_kind(self);
    devices[0].device_id = 0;
    return 1;
  }
  for (int32_t kind = kDLCPU; count < MOST_DEVICES; ++kind) {
    devices[count].device_type = (DLDeviceType)kind;
    devices[count++].device_id = 0;
  }
  return count;
}

static int make_executor(library_module *self, const DLDevice *devices, size_t num_devices,
                         slw_module **out) {
  if (slw_graph_module_create_over(devices, num_devices, self->graph.bytes, self->graph.size_bytes,
                                   lookup_kernel, self, &self->head, out) != SLW_OK) {
    return -1;
  }
  if (self->params.size_bytes > 0 &&
      give_values(self, *out, is_over_devices(self) || devices[0].device_type == kDLCPU) !=
          SLW_OK) {
    slw_module_release(*out);
    return -1;
  }
  return 0;
}

/* The factory function "default": device -> graph module; or tensors -> the model's output. */
static int call_default(void *handle, const TVMFFIAny *args, int32_t num_args,
                        TVMFFIAny *result) {
  slw_module *made = NULL;
  library_module *self = handle;
  DLDevice devices[MOST_DEVICES];
  size_t count = 0;
  if (slw_model_is_called(args, num_args)) {
    int failed;
    count = first_devices(self, devices);
    failed = make_executor(self, devices, count, &made);
    if (failed == 0) {
      failed = slw_model_call(made, args, num_args, result);
      slw_module_release(made); /* an output keeps it */
    }
    return failed;
  }
  if (take_devices(self, args, num_args, devices, &count) != 0 ||
      make_executor(self, devices, count, &made) != 0) {
    return -1;
  }
  slw_any_set_module(result, made);
  return 0;
}

/* "__slipway_graph_create": graph.bin (bytes or uint8 tensor) [devices] -> graph module with our
 * kernels. */
static int create_graph(void *handle, const TVMFFIAny *args, int32_t num_args,
                        TVMFFIAny *result) {
  library_module *self = handle;
  const char *data = NULL;
  size_t size = 0;
  slw_module *made = NULL;
  DLDevice devices[MOST_DEVICES];
  size_t count = 0;
  if (num_args < 1 || slw_any_get_blob(&args[0], &data, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "__slipway_graph_create takes the bytes of graph.bin");
  }
  for (int32_t i = 1; i < num_args && count < MOST_DEVICES; ++i) {
    if (args[i].type_index == kTVMFFIDevice) {
      devices[count++] = args[i].v_device;
    }
  }
  if (slw_graph_module_create_over(devices, count, data, size, lookup_kernel, self, &self->head,
                                   &made) != SLW_OK) {
    return -1;
  }
  slw_any_set_module(result, made);
  return 0;
}

static int give_metadata(void *handle, const TVMFFIAny *args, int32_t num_args,
                         TVMFFIAny *result) {
  const library_module *self = handle;
  (void)args;
  (void)num_args;
  return (slw_any_set_string(result, (const char *)self->metadata.bytes,
                             self->metadata.size_bytes) == SLW_OK)
             ? 0
             : slw_error_setf("MemoryError", "no memory for the metadata");
}

static void list_functions(const library_module *self, char *text, size_t size_bytes) {
  static const char PREFIX[] = "__tvm_ffi_";
  const slw_elf *elf = slw_library_elf(self->library);
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 1; i < elf->num_symbols; ++i) {
    const char *name = slw_elf_exported_name(elf, i);
    if (name != NULL && strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 &&
        name[sizeof PREFIX - 1] != '_') {
      used += slw_format(text + used, size_bytes - used, "%s%s", (used > 0) ? ", " : "",
                         name + sizeof PREFIX - 1);
    }
  }
}

static slw_status find_entry(const library_module *self, slw_function *out) {
  slw_text entry;
  char name[SYMBOL_BYTES];
  if (slw_metadata_find((const char *)self->metadata.bytes, self->metadata.size_bytes, "entry",
                        &entry) != SLW_OK ||
      entry.size_bytes >= sizeof name) {
    return SLW_ERROR_NOT_FOUND;
  }
  memcpy(name, entry.text, entry.size_bytes);
  name[entry.size_bytes] = '\0';
  return find_symbol_of(self, name, out);
}

static slw_status get_function(slw_module *module, const char *name, slw_function *out) {
  library_module *self = (library_module *)(void *)module;
  slw_status status = SLW_ERROR_NOT_FOUND;
  out->self = self;
  if (strcmp(name, "default") == 0 && self->graph.size_bytes > 0) {
    out->call = call_default;
    return SLW_OK;
  }
  if (strcmp(name, "__slipway_graph_create") == 0) {
    out->call = create_graph;
    return SLW_OK;
  }
  if (strcmp(name, "__slipway_metadata") == 0) {
    out->call = give_metadata;
    return SLW_OK;
  }
  if (strcmp(name, "__tvm_main__") == 0) {
    status = find_entry(self, out);
  }
  if (status != SLW_OK) {
    status = find_symbol_of(self, name, out);
  }
  if (status != SLW_OK) {
    char known[1024];
    list_functions(self, known, sizeof known);
    (void)slw_error_setf("AttributeError", "the library has no function '%s'; it has: %s%s", name,
                         (self->graph.size_bytes > 0) ? "default, " : "", known);
  }
  return status;
}

static void destroy(slw_module *module) {
  library_module *self = (library_module *)(void *)module;
  if (self->values != NULL) {
    slw_object_release(&self->values->object);
  }
  slw_library_close(self->library);
  slw_file_free(&self->file);
  (void)pthread_mutex_destroy(&self->taking);
  free(self);
}

static const slw_module_class LIBRARY_CLASS = {"library", get_function, destroy};

static int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return (c >= 'a' && c <= 'f') ? c - 'a' + 10 : -1;
}

static int digest_equals(const slw_tar_member *member, const char *hex) {
  slw_sha256 hash;
  uint8_t digest[SLW_SHA256_BYTES];
  slw_sha256_init(&hash);
  slw_sha256_update(&hash, member->data, member->size_bytes);
  slw_sha256_final(&hash, digest);
  for (size_t i = 0; i < SLW_SHA256_BYTES; ++i) {
    if (hex_value(hex[2 * i]) * 16 + hex_value(hex[2 * i + 1]) != (int)digest[i]) {
      return 0;
    }
  }
  return 1;
}

/* Find the line of `name`; its first 64 characters are the sum. NULL if there is none. */
static const char *find_sum(const slw_tar_member *sums, const char *name) {
  size_t length = strlen(name);
  const char *text = (const char *)sums->data;
  size_t at = 0;
  while (at < sums->size_bytes) {
    size_t end = at;
    while (end < sums->size_bytes && text[end] != '\n') {
      ++end;
    }
    if (end - at == HEX_BYTES + 2 + length && memcmp(text + at + HEX_BYTES + 2, name, length) == 0) {
      return text + at;
    }
    at = end + 1;
  }
  return NULL;
}

static slw_status check_sums(const slw_file *file, const char *path) {
  slw_tar_member sums;
  slw_tar_member member;
  size_t offset = 0;
  slw_status status = slw_tar_find(file->bytes, file->size_bytes, "SHA256SUMS", &sums);
  if (status != SLW_OK) {
    (void)slw_error_setf("ArtifactError", "%s is not a usable artifact: %s%s. Export it again, or "
                                          "copy it again in binary mode.",
                         path, (status == SLW_ERROR_NOT_FOUND) ? "its member SHA256SUMS was " : "",
                         slw_status_text(status));
    return status;
  }
  for (;;) {
    const char *line;
    status = slw_tar_next(file->bytes, file->size_bytes, &offset, &member);
    if (status == SLW_ERROR_NOT_FOUND) {
      return SLW_OK;
    }
    if (status != SLW_OK || strcmp(member.name, "SHA256SUMS") == 0) {
      if (status != SLW_OK) {
        (void)slw_error_setf("ArtifactError", "%s is damaged: %s. Copy it again.", path,
                             slw_status_text(status));
        return status;
      }
      continue;
    }
    line = find_sum(&sums, member.name);
    if (line == NULL || !digest_equals(&member, line)) {
      (void)slw_error_setf("ArtifactError", "%s is damaged: the SHA-256 sum of its member %s does "
                                            "not match. Export it again, or copy it again in "
                                            "binary mode.", path, member.name);
      return SLW_ERROR_HASH;
    }
  }
}

static blob find_member(const slw_file *file, const char *name) {
  slw_tar_member member;
  blob found = {NULL, 0};
  if (slw_tar_find(file->bytes, file->size_bytes, name, &member) == SLW_OK) {
    found.bytes = member.data;
    found.size_bytes = member.size_bytes;
  }
  return found;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return (slash != NULL) ? slash + 1 : path;
}

static slw_status open_archive(library_module *self, const char *path) {
  blob code;
  char name[SYMBOL_BYTES];
  slw_status status = check_sums(&self->file, path);
  if (status != SLW_OK) {
    return status;
  }
  code = find_member(&self->file, "lib.so");
  if (code.bytes == NULL) {
    (void)slw_error_setf("ArtifactError", "%s holds no lib.so. Export it again with "
                                          "export_library.", path);
    return SLW_ERROR_NOT_FOUND;
  }
  (void)slw_format(name, sizeof name, "%s", base_name(path));
  self->graph = find_member(&self->file, "graph.bin");
  self->params = find_member(&self->file, "params.bin");
  return slw_library_open(code.bytes, code.size_bytes, name, &self->library);
}

static slw_status open_file(library_module *self, const char *path) {
  slw_status status = slw_file_read(&self->file, path);
  if (status != SLW_OK) {
    return status;
  }
  if (slw_tar_is_archive(self->file.bytes, self->file.size_bytes)) {
    status = open_archive(self, path);
  } else {
    status = slw_library_open(self->file.bytes, self->file.size_bytes, base_name(path),
                              &self->library);
    if (status == SLW_OK) {
      self->graph = find_data(self->library, "__slipway_graph");
      self->params = find_data(self->library, "__slipway_params");
    }
  }
  if (status == SLW_OK) {
    self->metadata = find_data(self->library, "__slipway_metadata");
    while (self->metadata.size_bytes > 0 &&
           self->metadata.bytes[self->metadata.size_bytes - 1] == 0) {
      --self->metadata.size_bytes;
    }
  }
  return status;
}

slw_status slw_module_open(const char *path, slw_module **out) {
  library_module *self;
  slw_status status;
  slw_error_clear();
  if (path == NULL || out == NULL) {
    slw_error_set("TypeError", "slw_module_open takes a path and a place for the module, not null");
    return SLW_ERROR_ARGUMENT;
  }
  *out = NULL;
  if (slw_device_is_code(path)) {
    return slw_device_module_open(path, out);
  }
  self = calloc(1, sizeof *self);
  if (self == NULL) {
    slw_error_set("MemoryError", "no memory for a module");
    return SLW_ERROR_MEMORY;
  }
  slw_module_init(&self->head, &LIBRARY_CLASS);
  (void)pthread_mutex_init(&self->taking, NULL);
  status = open_file(self, path);
  if (status != SLW_OK) {
    slw_module_release(&self->head);
    return status;
  }
  *out = &self->head;
  return SLW_OK;
}
