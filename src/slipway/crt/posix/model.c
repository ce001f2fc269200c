/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/model.h"

#include <stdlib.h>
#include <string.h>

#include "slipway/format.h"
#include "slipway/module.h"
#include "slipway/object.h"
#include "slipway/registry.h"
#include "slipway/tensor.h"

#define TEXT_BYTES 160

typedef struct {
  char *name;
  int64_t number; /* of the executor's inputs or outputs */
  TVMFFIAny tensor;
} model_tensor;

typedef struct {
  model_tensor *items;
  int32_t count;
  slw_function get; /* the executor's get_input or get_output */
} tensor_list;

struct slw_model {
  slw_module *executor;
  slw_function run;
  slw_function set_input;
  tensor_list inputs;
  tensor_list outputs;
  int is_open; /* whether shapes of inputs decide sizes */
};

static slw_status finished(int returned) {
  if (returned != 0) {
    slw_error_fetch();
  }
  return (returned == 0) ? SLW_OK : SLW_ERROR_CALL;
}

static slw_status call(slw_module *module, const char *name, const TVMFFIAny *args,
                       int32_t num_args, TVMFFIAny *result) {
  slw_function function = {NULL, NULL};
  slw_status status = slw_module_get_function(module, name, &function);
  memset(result, 0, sizeof *result);
  if (status != SLW_OK) {
    return status;
  }
  return finished(function.call(function.self, args, num_args, result));
}

static slw_status no_memory(void) {
  slw_error_set("MemoryError", "no memory for the model's description");
  return SLW_ERROR_MEMORY;
}

/* A caller's mistake that would end the process. */
static slw_status null_argument(const char *function, const char *what) {
  (void)slw_error_setf("TypeError", "%s: the %s is a null pointer.", function, what);
  return SLW_ERROR_ARGUMENT;
}

static slw_status make_executor(slw_model *model, const char *path) {
  slw_module *library = NULL;
  slw_function make = {NULL, NULL};
  TVMFFIAny made = {.type_index = kTVMFFINone};
  slw_status status = slw_module_open(path, &library);
  if (status != SLW_OK) {
    return status;
  }
  status = slw_module_get_function(library, "default", &make);
  if (status != SLW_OK) {
    (void)slw_error_setf("ArtifactError", "%s holds no model, only functions: call them through "
                                          "slw_module_get_function.", path);
  } else {
    status = finished(make.call(make.self, NULL, 0, &made));
  }
  if (status == SLW_OK) {
    model->executor = slw_any_get_module(&made);
    status = slw_module_get_function(model->executor, "run", &model->run);
  }
  slw_module_release(library); /* the executor keeps it */
  return status;
}

static char *copy_name(const char *from, size_t bytes) {
  char *name = malloc(bytes + 1u);
  if (name != NULL) {
    memcpy(name, from, bytes);
    name[bytes] = '\0';
  }
  return name;
}

static size_t count_lines(const char *text, size_t size) {
  size_t lines = 0;
  for (size_t i = 0; i < size; ++i) {
    lines += (text[i] == '\n') ? 1u : 0u;
  }
  return lines;
}

static int ends_with(const char *text, size_t size, const char *end) {
  const size_t length = strlen(end);
  return size >= length && memcmp(text + size - length, end, length) == 0;
}

static slw_status add_tensor(tensor_list *list, int64_t number, const char *line, size_t size) {
  const char *end = memchr(line, '\t', size);
  model_tensor *item = &list->items[list->count];
  TVMFFIAny index = {.type_index = kTVMFFIInt, .v_int64 = number};
  if (end == NULL || ends_with(line, size, "\tparam") || ends_with(line, size, "\tstate")) {
    return SLW_OK;
  }
  item->name = copy_name(line, (size_t)(end - line));
  item->number = number;
  ++list->count;
  return (item->name != NULL) ? finished(list->get.call(list->get.self, &index, 1, &item->tensor))
                              : no_memory();
}

/* Tensors are described a line each: "name\tdtype\tshape\trole" (graph_module.h). */
static slw_status find_tensors(slw_model *model, const char *get, const char *get_info,
                               tensor_list *list) {
  TVMFFIAny info;
  const char *text = NULL;
  size_t size = 0;
  size_t begin = 0;
  int64_t number = 0;
  slw_status status = slw_module_get_function(model->executor, get, &list->get);
  if (status == SLW_OK) {
    status = call(model->executor, get_info, NULL, 0, &info);
  }
  if (status != SLW_OK) {
    return status;
  }
  (void)slw_any_get_bytes(&info, &text, &size);
  list->items = calloc(count_lines(text, size) + 1u, sizeof *list->items);
  status = (list->items != NULL) ? SLW_OK : no_memory();
  for (size_t i = 0; status == SLW_OK && i < size; ++i) {
    if (text[i] == '\n') {
      status = add_tensor(list, number, text + begin, i - begin);
      begin = i + 1u;
      ++number;
    }
  }
  slw_any_clear(&info);
  return status;
}

static slw_status find_all(slw_model *model) {
  TVMFFIAny open;
  slw_status status = slw_module_get_function(model->executor, "set_input", &model->set_input);
  if (status == SLW_OK) {
    status = find_tensors(model, "get_input", "get_input_info", &model->inputs);
  }
  if (status == SLW_OK) {
    status = find_tensors(model, "get_output", "get_output_info", &model->outputs);
  }
  if (status == SLW_OK) { /* a program that was compiled ahead of time has no such function */
    const int is_told = call(model->executor, "get_num_open_sizes", NULL, 0, &open) == SLW_OK;
    model->is_open = is_told && open.v_int64 > 0;
    slw_error_clear();
  }
  return status;
}

/* The tensor as the executor has it now, in the object that the caller may hold: a rank never changes. */
static slw_status refresh(const tensor_list *list, int32_t at) {
  DLTensor *own = slw_any_get_tensor(&list->items[at].tensor);
  TVMFFIAny index = {.type_index = kTVMFFIInt, .v_int64 = list->items[at].number};
  TVMFFIAny now = {.type_index = kTVMFFINone};
  slw_status status = finished(list->get.call(list->get.self, &index, 1, &now));
  if (status == SLW_OK) {
    const DLTensor *found = slw_any_get_tensor(&now);
    own->data = found->data;
    own->byte_offset = found->byte_offset;
    for (int32_t i = 0; i < own->ndim; ++i) {
      own->shape[i] = found->shape[i];
      if (own->strides != NULL && found->strides != NULL) {
        own->strides[i] = found->strides[i];
      }
    }
  }
  slw_any_clear(&now);
  return status;
}

slw_status slw_model_open(const char *path, slw_model **out) {
  slw_model *model;
  slw_status status;
  slw_error_clear();
  if (out == NULL) {
    return null_argument("slw_model_open", "place for the model");
  }
  *out = NULL;
  if (path == NULL) {
    return null_argument("slw_model_open", "path");
  }
  model = calloc(1, sizeof *model);
  if (model == NULL) {
    return no_memory();
  }
  status = make_executor(model, path);
  if (status == SLW_OK) {
    status = find_all(model);
  }
  if (status != SLW_OK) {
    slw_model_close(model);
    return status;
  }
  *out = model;
  return SLW_OK;
}

static void free_tensors(tensor_list *list) {
  for (int32_t i = 0; i < list->count; ++i) {
    slw_any_clear(&list->items[i].tensor);
    free(list->items[i].name);
  }
  free(list->items);
}

void slw_model_close(slw_model *model) {
  if (model != NULL) {
    free_tensors(&model->inputs);
    free_tensors(&model->outputs);
    slw_module_release(model->executor);
    free(model);
  }
}

int32_t slw_model_num_inputs(const slw_model *model) {
  return (model != NULL) ? model->inputs.count : 0;
}

int32_t slw_model_num_outputs(const slw_model *model) {
  return (model != NULL) ? model->outputs.count : 0;
}

const char *slw_model_input_name(const slw_model *model, int32_t index) {
  return (index >= 0 && index < slw_model_num_inputs(model)) ? model->inputs.items[index].name
                                                             : NULL;
}

const char *slw_model_output_name(const slw_model *model, int32_t index) {
  return (index >= 0 && index < slw_model_num_outputs(model)) ? model->outputs.items[index].name
                                                              : NULL;
}

const DLTensor *slw_model_input(const slw_model *model, int32_t index) {
  if (index < 0 || index >= slw_model_num_inputs(model) ||
      (model->is_open && refresh(&model->inputs, index) != SLW_OK)) {
    return NULL;
  }
  return slw_any_get_tensor(&model->inputs.items[index].tensor);
}

const DLTensor *slw_model_output(const slw_model *model, int32_t index) {
  return (index >= 0 && index < slw_model_num_outputs(model))
             ? slw_any_get_tensor(&model->outputs.items[index].tensor)
             : NULL;
}

/* Whether `size_bytes` is what such a tensor takes; else an error. */
static int is_size_of(const DLTensor *tensor, const char *what, const char *name,
                      size_t size_bytes) {
  char shape[TEXT_BYTES];
  char dtype[TEXT_BYTES];
  size_t own = 0;
  if (slw_tensor_size_bytes(tensor->shape, tensor->ndim, tensor->dtype, &own) == SLW_OK &&
      own == size_bytes) {
    return 1;
  }
  slw_shape_text(tensor->shape, tensor->ndim, shape, sizeof shape);
  slw_dtype_text(tensor->dtype, dtype, sizeof dtype);
  (void)slw_error_setf("ExecutionError", "%s %s is %s of shape %s, which takes %zu bytes, and %zu "
                                         "were given.",
                       what, name, dtype, shape, own, size_bytes);
  return 0;
}

static void *elements(const DLTensor *tensor) { return (char *)tensor->data + tensor->byte_offset; }

static slw_status unknown_input(const slw_model *model, const char *name) {
  char known[512] = "";
  size_t used = 0;
  for (int32_t i = 0; i < model->inputs.count; ++i) {
    used += slw_format(known + used, sizeof known - used, "%s'%s'", (i > 0) ? ", " : "",
                       model->inputs.items[i].name);
  }
  (void)slw_error_setf("ExecutionError", "the model has no input '%s'. Its inputs are: %s.",
                       (name != NULL) ? name : "(no name)", known);
  return SLW_ERROR_NOT_FOUND;
}

static slw_status find_input(const slw_model *model, const char *function, const char *name,
                             int has_data, int32_t *at) {
  *at = 0;
  if (model == NULL || !has_data) {
    return null_argument(function, (model == NULL) ? "model" : "data");
  }
  if (name == NULL && model->inputs.count != 1) {
    return unknown_input(model, name);
  }
  while (name != NULL && *at < model->inputs.count &&
         strcmp(model->inputs.items[*at].name, name) != 0) {
    ++*at;
  }
  return (*at == model->inputs.count) ? unknown_input(model, name) : SLW_OK;
}

slw_status slw_model_set_input(slw_model *model, const char *name, const void *data,
                               size_t size_bytes) {
  int32_t at = 0;
  const DLTensor *input;
  slw_status status;
  slw_error_clear();
  status = find_input(model, "slw_model_set_input", name, data != NULL || size_bytes == 0, &at);
  if (status != SLW_OK) {
    return status;
  }
  input = slw_model_input(model, at);
  if (input == NULL) {
    return SLW_ERROR_MEMORY;
  }
  if (!is_size_of(input, "input", model->inputs.items[at].name, size_bytes)) {
    return SLW_ERROR_TENSOR;
  }
  if (size_bytes > 0) {
    memcpy(elements(input), data, size_bytes);
  }
  return SLW_OK;
}

slw_status slw_model_set_input_shaped(slw_model *model, const char *name, const void *data,
                                      size_t size_bytes, const int64_t *shape, int32_t ndim) {
  int32_t at = 0;
  TVMFFIAny args[2];
  TVMFFIAny nothing = {.type_index = kTVMFFINone};
  DLTensor given;
  slw_status status;
  slw_error_clear();
  status = find_input(model, "slw_model_set_input_shaped", name, data != NULL || size_bytes == 0,
                      &at);
  if (status != SLW_OK) {
    return status;
  }
  if (shape == NULL && ndim != 0) {
    return null_argument("slw_model_set_input_shaped", "shape");
  }
  given = *slw_any_get_tensor(&model->inputs.items[at].tensor);
  given.data = (void *)(uintptr_t)data;
  given.byte_offset = 0;
  given.device = (DLDevice){kDLCPU, 0};
  given.ndim = ndim;
  given.shape = (int64_t *)(uintptr_t)shape;
  given.strides = NULL;
  if (!is_size_of(&given, "what is given for input", model->inputs.items[at].name, size_bytes)) {
    return SLW_ERROR_TENSOR;
  }
  memset(args, 0, sizeof args);
  args[0].type_index = kTVMFFIInt;
  args[0].v_int64 = model->inputs.items[at].number;
  args[1].type_index = kTVMFFIDLTensorPtr;
  args[1].v_ptr = &given;
  return finished(model->set_input.call(model->set_input.self, args, 2, &nothing));
}

slw_status slw_model_run(slw_model *model) {
  TVMFFIAny nothing = {.type_index = kTVMFFINone};
  slw_status status;
  slw_error_clear();
  if (model == NULL) {
    return null_argument("slw_model_run", "model");
  }
  status = finished(model->run.call(model->run.self, NULL, 0, &nothing));
  for (int32_t i = 0; status == SLW_OK && i < model->outputs.count; ++i) {
    status = refresh(&model->outputs, i);
  }
  return status;
}

slw_status slw_model_reset_states(slw_model *model) {
  TVMFFIAny nothing;
  slw_error_clear();
  if (model == NULL) {
    return null_argument("slw_model_reset_states", "model");
  }
  return call(model->executor, "reset_states", NULL, 0, &nothing);
}

slw_status slw_model_get_output(const slw_model *model, int32_t index, void *data,
                                size_t size_bytes) {
  const DLTensor *output = slw_model_output(model, index);
  char number[16];
  slw_error_clear();
  if (model == NULL || (data == NULL && size_bytes > 0)) {
    return null_argument("slw_model_get_output", (model == NULL) ? "model" : "data");
  }
  if (output == NULL) {
    (void)slw_error_setf("IndexError", "there is no output %d, the model has %d", (int)index,
                         (int)model->outputs.count);
    return SLW_ERROR_NOT_FOUND;
  }
  (void)slw_format(number, sizeof number, "%d", (int)index);
  if (!is_size_of(output, "output", number, size_bytes)) {
    return SLW_ERROR_TENSOR;
  }
  if (size_bytes > 0) {
    memcpy(data, elements(output), size_bytes);
  }
  return SLW_OK;
}
