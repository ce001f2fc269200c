/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_module_parts.h"

#include <string.h>

#include "bytes.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/params.h"
#include "slipway/platform.h"
#include "slipway/tensor.h"

#define SHOWN_NAME_BYTES 100 /* of a name that the model lacks, in the message */
#define SHAPE_TEXT_BYTES 160
#define DTYPE_TEXT_BYTES 24

int slw_graph_arg_count(const char *function, int32_t num_args, int32_t minimum, int32_t maximum) {
  if (num_args >= minimum && num_args <= maximum) {
    return 0;
  }
  if (minimum == maximum) {
    return slw_error_setf("TypeError", "%s takes %d arguments, got %d", function, (int)minimum,
                          (int)num_args);
  }
  return slw_error_setf("TypeError", "%s takes %d to %d arguments, got %d", function,
                        (int)minimum, (int)maximum, (int)num_args);
}

int slw_graph_arg_index(const TVMFFIAny *args, int32_t index, uint32_t limit, const char *function,
                        const char *what, uint32_t *value) {
  const TVMFFIAny *arg = &args[index];
  if (arg->type_index != kTVMFFIInt) {
    return slw_error_setf("TypeError", "%s: argument %d must be the number of an %s", function,
                          (int)index, what);
  }
  if (arg->v_int64 < 0 || arg->v_int64 >= (int64_t)limit) {
    return slw_error_setf("IndexError", "%s: there is no %s %lld, the model has %u", function, what,
                          (long long)arg->v_int64, (unsigned)limit);
  }
  *value = (uint32_t)arg->v_int64;
  return 0;
}

/* "'data', 'weight', ..." for messages: what a user sets, not the parameters. */
static void list_names(const slw_graph_module *self, int of_inputs, char *text,
                       size_t size_bytes) {
  const uint32_t count = of_inputs ? self->graph.num_inputs : self->graph.num_outputs;
  size_t used = 0;
  uint32_t listed = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < count && listed < 8; ++i) {
    if (!of_inputs || !self->is_param[i]) {
      used += slw_format(text + used, size_bytes - used, "%s'%s'", (listed > 0) ? ", " : "",
                         of_inputs ? slw_graph_input_name(&self->graph, i)
                                   : slw_graph_output_name(&self->graph, i));
      ++listed;
    }
  }
}

static int no_such_name(const slw_graph_module *self, int of_inputs, const char *function,
                        const char *data, size_t size) {
  char name[SHOWN_NAME_BYTES];
  char known[512];
  const char *what = of_inputs ? "input" : "output";
  const size_t shown = (size < sizeof name) ? size : sizeof name - 1;
  memcpy(name, data, shown);
  name[shown] = '\0';
  if (shown < size) {
    slw_format_end(name, shown);
  }
  if (!of_inputs && self->graph.names_table == NULL) {
    return slw_error_setf("ExecutionError",
                          "%s: the model has no output '%s': its outputs have numbers only, 0 to %u",
                          function, name, (unsigned)self->graph.num_outputs - 1u);
  }
  list_names(self, of_inputs, known, sizeof known);
  return slw_error_setf("ExecutionError", "%s: the model has no %s '%s'. Its %ss are: %s.",
                        function, what, name, what, known);
}

int slw_graph_arg_input(const slw_graph_module *self, const TVMFFIAny *args, int32_t num_args,
                        const char *function, uint32_t *input) {
  const char *data = NULL;
  size_t size = 0;
  if (num_args > 0 && args[0].type_index == kTVMFFIInt) {
    return slw_graph_arg_index(args, 0, self->graph.num_inputs, function, "input", input);
  }
  if (num_args < 1 || slw_any_get_bytes(&args[0], &data, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "%s: the first argument must be an input's name or number",
                          function);
  }
  *input = slw_graph_find_input_bytes(&self->graph, data, size);
  return (*input == SLW_GRAPH_NONE) ? no_such_name(self, 1, function, data, size) : 0;
}

int slw_graph_arg_output(const slw_graph_module *self, const TVMFFIAny *args, const char *function,
                         uint32_t *output) {
  const char *data = NULL;
  size_t size = 0;
  if (args[0].type_index == kTVMFFIInt || slw_any_get_bytes(&args[0], &data, &size) != SLW_OK) {
    return slw_graph_arg_index(args, 0, self->graph.num_outputs, function, "output", output);
  }
  *output = slw_graph_find_output_bytes(&self->graph, data, size);
  return (*output == SLW_GRAPH_NONE) ? no_such_name(self, 0, function, data, size) : 0;
}

static int same_type(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

static int same_shape(const DLTensor *a, const DLTensor *b) {
  if (a->ndim != b->ndim) {
    return 0;
  }
  for (int32_t i = 0; i < a->ndim; ++i) {
    if (a->shape[i] != b->shape[i]) {
      return 0;
    }
  }
  return 1;
}

int slw_graph_check_tensor(const char *function, const char *name, const DLTensor *model,
                           const DLTensor *given) {
  char wanted[SHAPE_TEXT_BYTES];
  char got[SHAPE_TEXT_BYTES];
  if (!same_type(model->dtype, given->dtype)) {
    slw_dtype_text(model->dtype, wanted, sizeof wanted);
    slw_dtype_text(given->dtype, got, sizeof got);
    return slw_error_setf("ExecutionError",
                          "%s: '%s' has dtype %s in this model, got %s. Convert it first: "
                          "x.astype(\"%s\").",
                          function, name, wanted, got, wanted);
  }
  if (!same_shape(model, given)) {
    slw_shape_text(model->shape, model->ndim, wanted, sizeof wanted);
    slw_shape_text(given->shape, given->ndim, got, sizeof got);
    return slw_error_setf("ExecutionError",
                          "%s: '%s' has shape %s in this model, got %s. Reshape it, or compile "
                          "the model for that shape.",
                          function, name, wanted, got);
  }
  if (given->device.device_type != kDLCPU &&
      given->device.device_type != model->device.device_type) {
    return slw_error_setf("ExecutionError",
                          "%s: the tensor for '%s' is on a device of kind %s, and the model's is on "
                          "one of kind %s. Copy it there, or to the CPU, first.",
                          function, name, slw_device_kind(given->device.device_type),
                          slw_device_kind(model->device.device_type));
  }
  if (!slw_tensor_is_contiguous(given)) {
    return slw_error_setf("ExecutionError",
                          "%s: the tensor for '%s' must be contiguous. Copy it first.", function,
                          name);
  }
  return 0;
}

static int copy_checked(const char *function, const char *name, const DLTensor *model,
                        const DLTensor *given, const DLTensor *from, DLTensor *to) {
  if (given == NULL) {
    return slw_error_setf("TypeError", "%s: the value for '%s' must be a tensor", function, name);
  }
  if (slw_graph_check_tensor(function, name, model, given) != 0) {
    return -1;
  }
  slw_error_clear();
  if (slw_tensor_copy(from, to) != SLW_OK) {
    return (slw_error_message()[0] != '\0')
               ? -1
               : slw_error_setf("ExecutionError", "%s: the tensor for '%s' cannot be copied",
                                function, name);
  }
  return 0;
}

void slw_graph_own_input(slw_graph_module *self, uint32_t input, int keep_values) {
  slw_shared_param *shared = &self->shared[input];
  DLTensor *model = slw_graph_input(&self->graph, input);
  DLTensor common = *model;
  if (shared->keep == NULL) {
    return;
  }
  slw_graph_place_input(&self->graph, input, shared->own_data, 0);
  if (keep_values) {
    (void)slw_tensor_copy(&common, model);
  }
  slw_object_release(shared->keep);
  shared->keep = NULL;
}

static int set_input(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t input = 0;
  DLTensor *given;
  DLTensor *model;
  (void)result;
  if (slw_graph_arg_count("set_input", num_args, 2, 2) != 0 ||
      slw_graph_arg_input(self, args, num_args, "set_input", &input) != 0) {
    return -1;
  }
  model = slw_graph_input(&self->graph, input);
  given = slw_any_get_tensor(&args[1]);
  if (given != NULL) {
    const char *name = slw_graph_input_name(&self->graph, input);
    if (slw_graph_fit_input(self, "set_input", input, given) != 0 ||
        slw_graph_check_tensor("set_input", name, model, given) != 0) {
      return -1;
    }
    self->stale[input] = 0;
    if (self->shared[input].keep != NULL && given->data == model->data &&
        given->byte_offset == model->byte_offset) {
      return 0; /* the very parameters that are shared */
    }
    slw_graph_own_input(self, input, 0);
  }
  return copy_checked("set_input", slw_graph_input_name(&self->graph, input), model, given, given,
                      model);
}

slw_status slw_graph_module_load_params(slw_module *module, const void *data, size_t size_bytes,
                                        int64_t *num_set) {
  slw_graph_module *self = (slw_graph_module *)(void *)module;
  slw_params params;
  slw_param param;
  slw_status status = slw_params_open(&params, data, size_bytes);
  *num_set = 0;
  while (status == SLW_OK && (status = slw_params_next(&params, &param)) == SLW_OK) {
    const char *name;
    uint32_t input;
    DLTensor given;
    DLTensor *model;
    input = slw_graph_find_input_bytes(&self->graph, param.name, param.name_bytes);
    if (input == SLW_GRAPH_NONE) {
      continue; /* classic behaviour: a parameter that optimisation removed */
    }
    name = slw_graph_input_name(&self->graph, input);
    model = slw_graph_input(&self->graph, input);
    memset(&given, 0, sizeof given);
    given.data = (void *)(uintptr_t)param.data;
    given.device.device_type = kDLCPU;
    given.ndim = param.ndim;
    given.dtype = param.dtype;
    given.shape = param.shape;
    if (slw_graph_check_tensor("load_params", name, model, &given) != 0) {
      return SLW_ERROR_TENSOR;
    }
    if (self->is_state[input]) {
      status = slw_graph_copy_initial(self, input, &given);
      ++*num_set;
      continue;
    }
    slw_graph_own_input(self, input, 0);
    if (copy_checked("load_params", name, model, &given, &given, model) != 0) {
      return SLW_ERROR_TENSOR;
    }
    self->is_param[input] = 1;
    ++*num_set;
  }
  if (status != SLW_ERROR_NOT_FOUND) {
    (void)slw_error_setf("ArtifactError",
                         "the parameters are damaged: %s. Write them again with save_param_dict, "
                         "and copy them in binary mode.",
                         slw_status_text(status));
    return status;
  }
  return SLW_OK;
}

static int load_params(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  const char *data = NULL;
  size_t size = 0;
  int64_t num_set = 0;
  if (slw_graph_arg_count("load_params", num_args, 1, 1) != 0) {
    return -1;
  }
  if (slw_any_get_blob(&args[0], &data, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "load_params: the argument must be bytes, or a uint8 tensor");
  }
  if (slw_graph_module_load_params(handle, data, size, &num_set) != SLW_OK) {
    return -1;
  }
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = num_set;
  return 0;
}

int slw_graph_node_failed(const slw_graph_module *self, uint32_t node) {
  const slw_graph *graph = &self->graph;
  const char *kind = slw_error_kind();
  const char *reason = slw_error_message();
  if (graph->num_told > 0 && graph->wrong_size < graph->num_symbols) {
    int64_t low = 0;
    int64_t high = 0;
    const char *size = slw_graph_symbol(graph, graph->wrong_size, &low, &high);
    return slw_error_setf("ExecutionError",
                          "run: layer '%s' gives the size %s the value %lld, and the model was "
                          "compiled for %lld to %lld",
                          slw_graph_node_name(graph, node), size,
                          (long long)graph->sizes[graph->num_symbols], (long long)low,
                          (long long)high);
  }
  if (graph->wrong_size == SLW_GRAPH_NONE) {
    return slw_error_setf("ExecutionError",
                          "run: layer '%s' gives a size that the model was not compiled for: "
                          "its tables are damaged",
                          slw_graph_node_name(graph, node));
  }
  if (reason[0] == '\0' && slw_error_is_elsewhere != NULL && slw_error_is_elsewhere() != 0) {
    return -1; /* as it is, with its class: a Python callback's exception */
  }
  return slw_error_setf((kind[0] != '\0') ? kind : "ExecutionError",
                        "layer '%s' (function %s) failed%s%s", slw_graph_node_name(graph, node),
                        slw_graph_node_function(graph, node),
                        (reason[0] != '\0') ? ": " : " without a reason", reason);
}

static int run(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t node = 0;
  if (num_args % 2 != 0) {
    return slw_error_setf("TypeError", "run: takes inputs as a name and a tensor each");
  }
  for (int32_t i = 0; i < num_args; i += 2) {
    if (set_input(handle, &args[i], 2, result) != 0) {
      return -1;
    }
  }
  slw_error_clear();
  if (slw_graph_check_zero_copy(self) != 0 || slw_graph_check_stale(self) != 0) {
    return -1;
  }
  if (slw_graph_run(&self->graph, &node) != SLW_OK) {
    return slw_graph_node_failed(self, node);
  }
  return 0;
}

int slw_graph_give_tensor(slw_graph_module *self, const DLTensor *source, const char *name,
                          const TVMFFIAny *args, int32_t num_args, int32_t index,
                          TVMFFIAny *result) {
  slw_tensor *view = NULL;
  if (num_args > index) {
    DLTensor *given = slw_any_get_tensor(&args[index]);
    return copy_checked("get", name, source, given, source, given);
  }
  if (slw_tensor_view(source, &self->head.object, &view) != SLW_OK) {
    return slw_error_setf("MemoryError", "no memory for a tensor");
  }
  memset(result, 0, sizeof *result);
  result->type_index = kTVMFFITensor;
  result->v_obj = &view->object;
  return 0;
}

static int get_input(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t input = 0;
  if (slw_graph_arg_count("get_input", num_args, 1, 2) != 0 ||
      slw_graph_arg_input(self, args, num_args, "get_input", &input) != 0) {
    return -1;
  }
  if (num_args == 1) {
    slw_graph_own_input(self, input, 1); /* the caller may write into what it gets */
    self->stale[input] = 0;
  }
  return slw_graph_give_tensor(self, slw_graph_input(&self->graph, input),
                               slw_graph_input_name(&self->graph, input), args, num_args, 1,
                               result);
}

static int get_output(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t output = 0;
  if (slw_graph_arg_count("get_output", num_args, 1, 2) != 0 ||
      slw_graph_arg_output(self, args, "get_output", &output) != 0) {
    return -1;
  }
  return slw_graph_give_tensor(self, slw_graph_output(&self->graph, output), "output", args,
                               num_args, 1, result);
}

static const slw_graph_method METHODS[] = {
    {"set_input", set_input},
    {"load_params", load_params},
    {"run", run},
    {"get_input", get_input},
    {"get_output", get_output},
    {NULL, NULL},
};

static slw_status find_method(const slw_graph_method *methods, const char *name, void *self,
                              slw_function *out) {
  for (; methods->name != NULL; ++methods) {
    if (slw_text_equal(methods->name, name)) {
      out->call = methods->call;
      out->self = self;
      return SLW_OK;
    }
  }
  return SLW_ERROR_NOT_FOUND;
}

static slw_status get_function(slw_module *module, const char *name, slw_function *out) {
  slw_status status = find_method(METHODS, name, module, out);
  if (status != SLW_OK) {
    status = find_method(slw_graph_zero_copy_methods, name, module, out);
  }
  if (status != SLW_OK) {
    status = find_method(slw_graph_params_methods, name, module, out);
  }
  if (status != SLW_OK) {
    status = find_method(slw_graph_state_methods, name, module, out);
  }
  return (status == SLW_OK) ? status : find_method(slw_graph_info_methods, name, module, out);
}

static void destroy(slw_module *module) {
  slw_graph_module *self = (slw_graph_module *)(void *)module;
  for (uint32_t i = 0; self->shared != NULL && i < self->graph.num_inputs; ++i) {
    slw_object_release(self->shared[i].keep);
    slw_object_release(self->shared[i].initial_keep);
  }
  slw_platform_free(self->shared);
  slw_platform_free(self->blob);
  slw_platform_free(self->tables);
  for (uint32_t i = 0; self->arenas != NULL && i < self->num_arenas; ++i) {
    const slw_graph_memory *arena = &self->arenas[i];
    if (arena->device.device_type == kDLCPU) {
      slw_platform_free(arena->memory);
    } else if (arena->memory != NULL) {
      slw_device_find(arena->device.device_type)->release(arena->memory);
    }
  }
  slw_platform_free(self->arenas);
  slw_platform_free(self->is_param);
  slw_platform_free(self->is_state);
  slw_platform_free(self->stale);
  slw_module_release(self->owner);
  slw_platform_free(self);
}

const slw_module_class slw_graph_module_class = {"graph", get_function, destroy};
