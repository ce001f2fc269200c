/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/image.h"

#include <string.h>

#include "slipway/error.h"
#include "slipway/graph_module.h"
#include "slipway/platform.h"

typedef struct {
  slw_module head;
  const slw_image *image;
  void (*released)(void *context);
  void *context;
} image_module;

static slw_status find_function(void *context, const char *name, slw_function *out) {
  const slw_image *image = context;
  size_t i;
  for (i = 0; i < image->num_functions; ++i) {
    if (strcmp(image->functions[i].name, name) == 0) {
      out->call = image->functions[i].call;
      out->self = NULL;
      return SLW_OK;
    }
  }
  return SLW_ERROR_NOT_FOUND;
}

slw_status slw_image_make_graph(const slw_image *image, slw_module *library, slw_module **out) {
  int64_t num_set = 0;
  slw_status status = slw_graph_module_create(image->graph, image->graph_bytes, find_function,
                                              (void *)(uintptr_t)image, /* only read */
                                              library, out);
  if (status == SLW_OK && image->params_bytes > 0u) {
    status = slw_graph_module_load_params(*out, image->params, image->params_bytes, &num_set);
    if (status != SLW_OK) {
      slw_module_release(*out);
    }
  }
  return status;
}

static int make_model(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  image_module *self = handle;
  slw_module *made = NULL;
  if (num_args > 1 || (num_args == 1 && (args[0].type_index != kTVMFFIDevice ||
                                         args[0].v_device.device_type != kDLCPU))) {
    return slw_error_setf("ExecutionError",
                          "'default' takes one device, and this model runs on cpu(0)");
  }
  if (self->image->model == NULL) {
    if (SLW_IMAGE_GRAPH(self->image, &self->head, &made) != SLW_OK) {
      return -1;
    }
  } else if (slw_aot_module_create(self->image->model, &self->head, &made) != SLW_OK) {
    return slw_error_setf("MemoryError", "the device has no memory for the model's executor");
  }
  slw_any_set_module(result, made);
  return 0;
}

static slw_status get_function(slw_module *module, const char *name, slw_function *out) {
  const image_module *self = (const image_module *)(void *)module;
  int has_model = (self->image->model != NULL || self->image->graph_bytes > 0u) ? 1 : 0;
  if (has_model != 0 && strcmp(name, "default") == 0) {
    out->call = make_model;
    out->self = module;
    return SLW_OK;
  }
  if (self->image->num_functions > 0u && strcmp(name, "__tvm_main__") == 0) {
    name = self->image->functions[0].name;
  }
  return find_function((void *)(uintptr_t)self->image, name, out);
}

static void destroy(slw_module *module) {
  image_module *self = (image_module *)(void *)module;
  if (self->released != NULL) {
    self->released(self->context);
  }
  slw_platform_free(self);
}

static const slw_module_class IMAGE_CLASS = {"library", get_function, destroy};

slw_status slw_image_module_create(const slw_image *image, void (*released)(void *context),
                                   void *context, slw_module **out) {
  image_module *made = slw_platform_alloc(sizeof *made, 16);
  if (made == NULL) {
    return SLW_ERROR_MEMORY;
  }
  slw_module_init(&made->head, &IMAGE_CLASS);
  made->image = image;
  made->released = released;
  made->context = context;
  *out = &made->head;
  return SLW_OK;
}
