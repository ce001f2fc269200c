/* SPDX-License-Identifier: Apache-2.0 */
/* Making a graph module: its memory on one device, or on several. */
#include <string.h>

#include "graph_module_parts.h"
#include "graph_tables.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/platform.h"
#include "slipway/tensor.h"

/* Memory for the model's tensors, on the processor or a device. */
static void *allocate_arena(DLDevice device, uint64_t size_bytes) {
  const slw_device_api *api = slw_device_find(device.device_type);
  void *arena = NULL;
  if (device.device_type == kDLCPU) {
    return slw_platform_alloc((size_t)size_bytes, SLW_TENSOR_ALIGNMENT);
  }
  if (api == NULL) {
    (void)slw_error_setf("DeviceError", "this runtime has no %s devices: run the model where its driver is",
                         slw_device_kind(device.device_type));
  } else {
    (void)api->alloc(device.device_id, (size_t)size_bytes, &arena);
  }
  return arena;
}

/* An image of a device: rows of so many texels, as far as its bytes reach. */
static void *allocate_image(DLDevice device, uint64_t size_bytes, uint32_t texels, int32_t bits) {
  const slw_device_api *api = slw_device_find(device.device_type);
  const uint64_t row_bytes = (uint64_t)texels * 4U * (uint64_t)(bits / 8);
  void *image = NULL;
  if (api == NULL || api->alloc_image == NULL) {
    (void)slw_error_setf("DeviceError", "the model was compiled with images, and %s devices have none "
                                        "here: compile it for a target without "
                                        "-texture_spatial_limit and -device=adreno.",
                         slw_device_kind(device.device_type));
  } else {
    (void)api->alloc_image(device.device_id, texels, (size_t)(size_bytes / row_bytes), bits, &image);
  }
  return image;
}

static slw_graph_module *allocate(size_t blob_bytes, size_t tables_bytes, uint32_t num_arenas) {
  slw_graph_module *self = slw_platform_alloc(sizeof *self, SLW_TENSOR_ALIGNMENT);
  if (self == NULL) {
    return NULL;
  }
  slw_module_init(&self->head, &slw_graph_module_class);
  self->blob = slw_platform_alloc(blob_bytes, SLW_TENSOR_ALIGNMENT);
  self->tables = slw_platform_alloc(tables_bytes, SLW_TENSOR_ALIGNMENT);
  self->num_arenas = (num_arenas > 0U) ? num_arenas : 1U;
  self->arenas = slw_platform_alloc(self->num_arenas * sizeof self->arenas[0], sizeof(void *));
  if (self->blob == NULL || self->tables == NULL || self->arenas == NULL) {
    slw_module_release(&self->head);
    return NULL;
  }
  return self;
}

static slw_status no_arena(uint64_t size_bytes) {
  if (slw_error_message()[0] == '\0') {
    (void)slw_error_setf("MemoryError", "no memory for the model: its tensors take %llu bytes",
                         (unsigned long long)size_bytes);
  }
  return SLW_ERROR_MEMORY;
}

/* The whole arena on one device. */
static slw_status take_arena(slw_graph_module *self, DLDevice device, uint64_t size_bytes) {
  self->arenas[0].device = device;
  self->arenas[0].memory = allocate_arena(device, size_bytes);
  return (self->arenas[0].memory != NULL) ? SLW_OK : no_arena(size_bytes);
}

/* The device of a kind among those given; the processor's first needs no mention. */
static slw_status device_of_kind(const DLDevice *devices, size_t num_devices, int32_t kind,
                                 DLDevice *out) {
  const DLDevice processor = {kDLCPU, 0};
  for (size_t i = 0; i < num_devices; ++i) {
    if ((int32_t)devices[i].device_type == kind) {
      *out = devices[i];
      return SLW_OK;
    }
  }
  if (kind == (int32_t)kDLCPU) {
    *out = processor;
    return SLW_OK;
  }
  (void)slw_error_setf("ExecutionError",
                       "parts of this model run on %s: give a device of each kind, for "
                       "example lib['default'](cpu(0), %s(0)).",
                       slw_device_kind(kind), slw_device_kind(kind));
  return SLW_ERROR_ARGUMENT;
}

/* The arenas of a model on several devices, with the tensors in them. */
static slw_status take_arenas(slw_graph_module *self, const DLDevice *devices,
                              size_t num_devices) {
  slw_status status = SLW_OK;
  for (uint32_t i = 0; i < self->graph.num_arenas && status == SLW_OK; ++i) {
    slw_graph_memory *arena = &self->arenas[i];
    uint64_t size_bytes = 0;
    uint32_t texels = 0;
    int32_t bits = 0;
    int32_t kind = slw_graph_arena(&self->graph, i, &size_bytes, &texels, &bits);
    DLDevice device = {kDLCPU, 0};
    status = device_of_kind(devices, num_devices, kind, &device);
    if (status == SLW_OK) {
      arena->device = device;
      arena->memory = (texels > 0U)
                          ? allocate_image(device, size_bytes, texels, bits)
                          : allocate_arena(device, (size_bytes > 0U) ? size_bytes : 1U);
      status = (arena->memory != NULL) ? SLW_OK : no_arena(size_bytes);
    }
    if (status == SLW_OK) {
      slw_graph_place_arena(&self->graph, i, arena->memory, device);
    }
  }
  return status;
}

static slw_status make_lists(slw_graph_module *self) {
  size_t count = (size_t)self->graph.num_inputs + 1U;
  self->is_param = slw_platform_alloc(count, 1);
  self->is_state = slw_platform_alloc(count, 1);
  self->stale = slw_platform_alloc(count, 1);
  self->shared = slw_platform_alloc(count * sizeof self->shared[0], sizeof(void *));
  if (self->is_param != NULL && self->is_state != NULL && self->stale != NULL &&
      self->shared != NULL) {
    for (uint32_t i = 0; i < self->graph.num_inputs; ++i) {
      self->is_state[i] = (uint8_t)slw_graph_is_state(&self->graph, i);
    }
    return SLW_OK;
  }
  (void)slw_error_setf("MemoryError", "no memory for the model");
  return SLW_ERROR_MEMORY;
}

/* What moves a tensor between devices: (from, to), the classic name of which is "__copy". */
static int copy_between(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  const DLTensor *from = (num_args == 2) ? slw_any_get_tensor(&args[0]) : NULL;
  DLTensor *to = (num_args == 2) ? slw_any_get_tensor(&args[1]) : NULL;
  (void)handle;
  (void)result;
  if (from == NULL || to == NULL || slw_tensor_copy(from, to) != SLW_OK) {
    return (slw_error_message()[0] != '\0')
               ? -1
               : slw_error_setf("DeviceError", "a tensor cannot be copied between its devices");
  }
  return 0;
}

typedef struct {
  slw_graph_lookup lookup;
  void *context;
} with_copies;

static slw_status find_or_copy(void *context, const char *name, slw_function *out) {
  const with_copies *own = context;
  if (slw_text_equal(name, "__copy")) {
    out->call = copy_between;
    out->self = NULL;
    return SLW_OK;
  }
  return own->lookup(own->context, name, out);
}

static slw_status init_graph(slw_graph_module *self, const void *blob, size_t size_bytes,
                             size_t tables_bytes, uint64_t arena_bytes, with_copies *functions) {
  const char *missing = "";
  slw_status status;
  memcpy(self->blob, blob, size_bytes);
  status = slw_graph_init(&self->graph, self->blob, size_bytes, self->tables, tables_bytes,
                          self->arenas[0].memory, arena_bytes, find_or_copy, functions, &missing);
  self->graph.fetch = slw_tensor_copy;
  if (status != SLW_OK) {
    (void)slw_error_setf("ArtifactError", "the model's graph needs the function '%s', which its "
                                          "library lacks (%s). Graph and library must come from "
                                          "one compilation.", missing, slw_status_text(status));
  }
  return status;
}

slw_status slw_graph_module_create(const void *blob, size_t size_bytes, slw_graph_lookup lookup,
                                   void *lookup_context, slw_module *owner, slw_module **out) {
  return slw_graph_module_create_over(NULL, 0, blob, size_bytes, lookup, lookup_context, owner, out);
}

slw_status slw_graph_module_create_on(DLDevice device, const void *blob, size_t size_bytes,
                                      slw_graph_lookup lookup, void *lookup_context,
                                      slw_module *owner, slw_module **out) {
  return slw_graph_module_create_over(&device, 1, blob, size_bytes, lookup, lookup_context, owner,
                                      out);
}

slw_status slw_graph_module_create_over(const DLDevice *devices, size_t num_devices,
                                        const void *blob, size_t size_bytes,
                                        slw_graph_lookup lookup, void *lookup_context,
                                        slw_module *owner, slw_module **out) {
  with_copies functions = {lookup, lookup_context};
  DLDevice device = {kDLCPU, 0};
  size_t tables_bytes = 0;
  uint64_t arena_bytes = 0;
  slw_graph_module *self;
  slw_status status = slw_graph_check(blob, size_bytes, &tables_bytes, &arena_bytes);
  int has_arenas = status == SLW_OK && slw_graph_counts_arenas(blob) > 0U;
  if (status == SLW_ERROR_MEMORY) {
    (void)slw_error_setf("MemoryError", "the model's workspace is larger than what this processor "
                                        "can address: take a smaller model.");
    return status;
  }
  if (status != SLW_OK) {
    (void)slw_error_setf("ArtifactError", "the model's graph tables cannot be used: %s. Export "
                                          "the model again.", slw_status_text(status));
    return status;
  }
  slw_error_clear();
  self = allocate(size_bytes, tables_bytes, slw_graph_counts_arenas(blob));
  if (self == NULL) {
    return no_arena(arena_bytes);
  }
  if (num_devices > 0U) {
    device = devices[0];
  }
  if (!has_arenas) {
    status = take_arena(self, device, arena_bytes);
  }
  if (status == SLW_OK) {
    status = init_graph(self, blob, size_bytes, tables_bytes, arena_bytes, &functions);
  }
  if (status == SLW_OK && has_arenas) {
    status = take_arenas(self, devices, num_devices);
  }
  if (status == SLW_OK) {
    status = make_lists(self);
  }
  if (status != SLW_OK) {
    slw_module_release(&self->head);
    return status;
  }
  for (uint32_t i = 0; i < self->graph.num_entries && !has_arenas; ++i) {
    self->graph.tensors[i].device = device;
  }
  self->owner = owner;
  if (owner != NULL) {
    slw_module_retain(owner);
  }
  *out = &self->head;
  return SLW_OK;
}

typedef struct {
  const char *const *names;
  const slw_function *functions;
  size_t count;
} function_table;

static slw_status lookup_in_table(void *context, const char *name, slw_function *out) {
  const function_table *table = context;
  for (size_t i = 0; i < table->count; ++i) {
    if (slw_text_equal(table->names[i], name)) {
      *out = table->functions[i];
      return SLW_OK;
    }
  }
  return SLW_ERROR_NOT_FOUND;
}

slw_status slw_graph_module_create_from_table(const DLDevice *devices, size_t num_devices,
                                              const void *blob, size_t size_bytes,
                                              const char *const *names,
                                              const slw_function *functions, size_t num_functions,
                                              slw_module **out) {
  function_table table = {names, functions, num_functions};
  return slw_graph_module_create_over(devices, num_devices, blob, size_bytes, lookup_in_table,
                                      &table, NULL, out);
}
