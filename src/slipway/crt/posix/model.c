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
  char *name; /* of an input; outputs have none */
  TVMFFIAny tensor;
} model_tensor;

struct slw_model {
  slw_module *executor;
  slw_function run;
  model_tensor *inputs;
  int32_t num_inputs;
  model_tensor *outputs;
  int32_t num_outputs;
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

static slw_status add_input(slw_model *model, int64_t number, const char *line, size_t size) {
  static const char PARAM[] = "\tparam";
  const size_t mark = sizeof PARAM - 1u;
  const char *end = memchr(line, '\t', size);
  model_tensor *input = &model->inputs[model->num_inputs];
  TVMFFIAny index = {.type_index = kTVMFFIInt, .v_int64 = number};
  if (end == NULL || (size >= mark && memcmp(line + size - mark, PARAM, mark) == 0)) {
    return SLW_OK;
  }
  input->name = copy_name(line, (size_t)(end - line));
  ++model->num_inputs;
  return (input->name != NULL) ? call(model->executor, "get_input", &index, 1, &input->tensor)
                               : no_memory();
}

/* Inputs are described a line each: "name\tdtype\tshape\trole" (graph_module.h). */
static slw_status find_inputs(slw_model *model) {
  TVMFFIAny info;
  const char *text = NULL;
  size_t size = 0;
  size_t begin = 0;
  int64_t number = 0;
  slw_status status = call(model->executor, "get_input_info", NULL, 0, &info);
  if (status != SLW_OK) {
    return status;
  }
  (void)slw_any_get_bytes(&info, &text, &size);
  model->inputs = calloc(count_lines(text, size) + 1u, sizeof *model->inputs);
  status = (model->inputs != NULL) ? SLW_OK : no_memory();
  for (size_t i = 0; status == SLW_OK && i < size; ++i) {
    if (text[i] == '\n') {
      status = add_input(model, number, text + begin, i - begin);
      begin = i + 1u;
      ++number;
    }
  }
  slw_any_clear(&info);
  return status;
}

static slw_status find_outputs(slw_model *model) {
  TVMFFIAny count;
  slw_status status = call(model->executor, "get_num_outputs", NULL, 0, &count);
  if (status != SLW_OK) {
    return status;
  }
  model->outputs = calloc((size_t)count.v_int64 + 1u, sizeof *model->outputs);
  if (model->outputs == NULL) {
    return no_memory();
  }
  for (int64_t i = 0; status == SLW_OK && i < count.v_int64; ++i) {
    TVMFFIAny index = {.type_index = kTVMFFIInt, .v_int64 = i};
    status = call(model->executor, "get_output", &index, 1, &model->outputs[i].tensor);
    ++model->num_outputs;
  }
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
    status = find_inputs(model);
  }
  if (status == SLW_OK) {
    status = find_outputs(model);
  }
  if (status != SLW_OK) {
    slw_model_close(model);
    return status;
  }
  *out = model;
  return SLW_OK;
}

static void free_tensors(model_tensor *tensors, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    slw_any_clear(&tensors[i].tensor);
    free(tensors[i].name);
  }
  free(tensors);
}

void slw_model_close(slw_model *model) {
  if (model != NULL) {
    free_tensors(model->inputs, model->num_inputs);
    free_tensors(model->outputs, model->num_outputs);
    slw_module_release(model->executor);
    free(model);
  }
}

int32_t slw_model_num_inputs(const slw_model *model) {
  return (model != NULL) ? model->num_inputs : 0;
}

int32_t slw_model_num_outputs(const slw_model *model) {
  return (model != NULL) ? model->num_outputs : 0;
}

const char *slw_model_input_name(const slw_model *model, int32_t index) {
  return (index >= 0 && index < slw_model_num_inputs(model)) ? model->inputs[index].name : NULL;
}

const DLTensor *slw_model_input(const slw_model *model, int32_t index) {
  return (index >= 0 && index < slw_model_num_inputs(model))
             ? slw_any_get_tensor(&model->inputs[index].tensor)
             : NULL;
}

const DLTensor *slw_model_output(const slw_model *model, int32_t index) {
  return (index >= 0 && index < slw_model_num_outputs(model))
             ? slw_any_get_tensor(&model->outputs[index].tensor)
             : NULL;
}

/* Where the elements of a tensor lie, if `size_bytes` is what they take; else NULL and an error. */
static void *elements(const DLTensor *tensor, const char *what, const char *name,
                      size_t size_bytes) {
  char shape[TEXT_BYTES];
  char dtype[TEXT_BYTES];
  size_t own = 0;
  (void)slw_tensor_size_bytes(tensor->shape, tensor->ndim, tensor->dtype, &own);
  if (own == size_bytes) {
    return (char *)tensor->data + tensor->byte_offset;
  }
  slw_shape_text(tensor->shape, tensor->ndim, shape, sizeof shape);
  slw_dtype_text(tensor->dtype, dtype, sizeof dtype);
  (void)slw_error_setf("ExecutionError", "%s %s is %s of shape %s, which takes %zu bytes, and %zu "
                                         "were given.",
                       what, name, dtype, shape, own, size_bytes);
  return NULL;
}

static slw_status unknown_input(const slw_model *model, const char *name) {
  char known[512] = "";
  size_t used = 0;
  for (int32_t i = 0; i < model->num_inputs; ++i) {
    used += slw_format(known + used, sizeof known - used, "%s'%s'", (i > 0) ? ", " : "",
                       model->inputs[i].name);
  }
  (void)slw_error_setf("ExecutionError", "the model has no input '%s'. Its inputs are: %s.",
                       (name != NULL) ? name : "(no name)", known);
  return SLW_ERROR_NOT_FOUND;
}

slw_status slw_model_set_input(slw_model *model, const char *name, const void *data,
                               size_t size_bytes) {
  int32_t at = 0;
  void *to;
  slw_error_clear();
  if (model == NULL || (data == NULL && size_bytes > 0)) {
    return null_argument("slw_model_set_input", (model == NULL) ? "model" : "data");
  }
  if (name == NULL && model->num_inputs != 1) {
    return unknown_input(model, name);
  }
  while (name != NULL && at < model->num_inputs && strcmp(model->inputs[at].name, name) != 0) {
    ++at;
  }
  if (at == model->num_inputs) {
    return unknown_input(model, name);
  }
  to = elements(slw_model_input(model, at), "input", model->inputs[at].name, size_bytes);
  if (to == NULL) {
    return SLW_ERROR_TENSOR;
  }
  if (size_bytes > 0) {
    memcpy(to, data, size_bytes);
  }
  return SLW_OK;
}

slw_status slw_model_run(slw_model *model) {
  TVMFFIAny nothing = {.type_index = kTVMFFINone};
  slw_error_clear();
  if (model == NULL) {
    return null_argument("slw_model_run", "model");
  }
  return finished(model->run.call(model->run.self, NULL, 0, &nothing));
}

slw_status slw_model_get_output(const slw_model *model, int32_t index, void *data,
                                size_t size_bytes) {
  const DLTensor *output = slw_model_output(model, index);
  char number[16];
  const void *from;
  slw_error_clear();
  if (model == NULL || (data == NULL && size_bytes > 0)) {
    return null_argument("slw_model_get_output", (model == NULL) ? "model" : "data");
  }
  if (output == NULL) {
    (void)slw_error_setf("IndexError", "there is no output %d, the model has %d", (int)index,
                         (int)model->num_outputs);
    return SLW_ERROR_NOT_FOUND;
  }
  (void)slw_format(number, sizeof number, "%d", (int)index);
  from = elements(output, "output", number, size_bytes);
  if (from == NULL) {
    return SLW_ERROR_TENSOR;
  }
  if (size_bytes > 0) {
    memcpy(data, from, size_bytes);
  }
  return SLW_OK;
}
