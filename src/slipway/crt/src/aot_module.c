/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/aot_module.h"

#include <string.h>

#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/platform.h"
#include "slipway/tensor.h"

#define MAX_DTYPE_BYTES 24u
#define MAX_EXTENT_BYTES 21u
#define MAX_ROLE_BYTES 8u
#define TENSOR_TEXT_BYTES 96u

typedef struct {
  slw_module head;
  const slw_aot_model *model;
  slw_module *owner;
} slw_aot_module;

typedef struct {
  const char *name;
  TVMFFISafeCallType call;
} method;

static int give_int(TVMFFIAny *result, int64_t value) {
  memset(result, 0, sizeof *result);
  result->type_index = kTVMFFIInt;
  result->v_int64 = value;
  return 0;
}

static int give_text(TVMFFIAny *result, const char *text) {
  return slw_any_set_string(result, text, strlen(text)) == SLW_OK
             ? 0
             : slw_error_setf("MemoryError", "no memory for a text");
}

/* The input or output that an argument names or numbers; NULL with the error set. */
static slw_aot_tensor *find(const char *function, slw_aot_tensor *tensors, uint32_t count,
                            const TVMFFIAny *args, int32_t num_args) {
  const char *data = NULL;
  size_t size = 0;
  uint32_t i;
  if (num_args < 1) {
    (void)slw_error_setf("TypeError", "%s: the name or number is missing", function);
    return NULL;
  }
  if (args[0].type_index == kTVMFFIInt) {
    if (args[0].v_int64 >= 0 && args[0].v_int64 < (int64_t)count) {
      return &tensors[args[0].v_int64];
    }
    (void)slw_error_setf("IndexError", "%s: there is no number %lld, the model has %u", function,
                         (long long)args[0].v_int64, (unsigned)count);
    return NULL;
  }
  if (slw_any_get_bytes(&args[0], &data, &size) == SLW_OK) {
    for (i = 0; i < count; ++i) {
      if (strlen(tensors[i].name) == size && memcmp(tensors[i].name, data, size) == 0) {
        return &tensors[i];
      }
    }
  }
  (void)slw_error_setf("ExecutionError", "%s: the model has no such %s; its first is '%s'", function,
                       strcmp(function, "get_output") == 0 ? "output" : "input",
                       count > 0u ? tensors[0].name : "");
  return NULL;
}

static int same_shape(const DLTensor *a, const DLTensor *b) {
  int32_t i;
  if (a->ndim != b->ndim) {
    return 0;
  }
  for (i = 0; i < a->ndim; ++i) {
    if (a->shape[i] != b->shape[i]) {
      return 0;
    }
  }
  return 1;
}

/* "float32 of shape (1, 4)" */
static void describe(const DLTensor *tensor, char *text, size_t size) {
  size_t used;
  slw_dtype_text(tensor->dtype, text, size);
  used = strlen(text);
  used += slw_format(text + used, size - used, " of shape ");
  slw_shape_text(tensor->shape, tensor->ndim, text + used, size - used);
}

static int copy(const char *function, const slw_aot_tensor *model, const DLTensor *given,
                const DLTensor *from, DLTensor *to) {
  char own[TENSOR_TEXT_BYTES];
  char other[TENSOR_TEXT_BYTES];
  if (given == NULL) {
    return slw_error_setf("TypeError", "%s: the value for '%s' must be a tensor", function,
                          model->name);
  }
  if (!same_shape(&model->tensor, given) || slw_tensor_copy(from, to) != SLW_OK) {
    describe(&model->tensor, own, sizeof own);
    describe(given, other, sizeof other);
    return slw_error_setf("ExecutionError", "%s: '%s' is %s in this model, got %s", function,
                          model->name, own, other);
  }
  return 0;
}

static int give_tensor(const slw_aot_tensor *tensor, slw_module *owner, TVMFFIAny *result) {
  slw_tensor *view = NULL;
  if (slw_tensor_view(&tensor->tensor, &owner->object, &view) != SLW_OK) {
    return slw_error_setf("MemoryError", "no memory for a view of '%s'", tensor->name);
  }
  memset(result, 0, sizeof *result);
  result->type_index = kTVMFFITensor;
  result->v_obj = &view->object;
  return 0;
}

static int set_input(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  const slw_aot_model *model = ((slw_aot_module *)handle)->model;
  slw_aot_tensor *input = find("set_input", model->inputs, model->num_inputs, args, num_args);
  const DLTensor *given = num_args > 1 ? slw_any_get_tensor(&args[1]) : NULL;
  (void)result;
  return input == NULL ? -1 : copy("set_input", input, given, given, &input->tensor);
}

static int get_input(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_aot_module *self = handle;
  slw_aot_tensor *input =
      find("get_input", self->model->inputs, self->model->num_inputs, args, num_args);
  return input == NULL ? -1 : give_tensor(input, &self->head, result);
}

static int get_output(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_aot_module *self = handle;
  slw_aot_tensor *output =
      find("get_output", self->model->outputs, self->model->num_outputs, args, num_args);
  if (output == NULL) {
    return -1;
  }
  if (num_args > 1) {
    DLTensor *given = slw_any_get_tensor(&args[1]);
    return copy("get_output", output, given, &output->tensor, given);
  }
  return give_tensor(output, &self->head, result);
}

static int run(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  int32_t status = ((slw_aot_module *)handle)->model->run();
  (void)args;
  (void)num_args;
  (void)result;
  return status == 0 ? 0 : slw_error_setf("ExecutionError", "the model returned %d", (int)status);
}

static int reset_states(void *handle, const TVMFFIAny *args, int32_t num_args,
                        TVMFFIAny *result) {
  const slw_aot_model *model = ((slw_aot_module *)handle)->model;
  (void)args;
  (void)num_args;
  (void)result;
  if (model->reset != NULL) {
    model->reset();
  }
  return 0;
}

static int get_num_inputs(void *handle, const TVMFFIAny *args, int32_t num_args,
                          TVMFFIAny *result) {
  (void)args;
  (void)num_args;
  return give_int(result, ((slw_aot_module *)handle)->model->num_inputs);
}

static int get_num_outputs(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  (void)args;
  (void)num_args;
  return give_int(result, ((slw_aot_module *)handle)->model->num_outputs);
}

static int get_input_index(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const slw_aot_model *model = ((slw_aot_module *)handle)->model;
  const slw_aot_tensor *found =
      find("get_input_index", model->inputs, model->num_inputs, args, num_args);
  slw_error_clear();
  return give_int(result, found == NULL ? -1 : found - model->inputs);
}

static int get_input_name(void *handle, const TVMFFIAny *args, int32_t num_args,
                          TVMFFIAny *result) {
  const slw_aot_model *model = ((slw_aot_module *)handle)->model;
  const slw_aot_tensor *found =
      find("get_input_name", model->inputs, model->num_inputs, args, num_args);
  return found == NULL ? -1 : give_text(result, found->name);
}

/* One line per tensor: name, dtype, shape, role. */
static int give_info(TVMFFIAny *result, const slw_aot_tensor *tensors, uint32_t count,
                     const char *role) {
  const char *own;
  char dtype[MAX_DTYPE_BYTES];
  char *text;
  size_t size = 1;
  size_t used = 0;
  uint32_t i;
  int32_t d;
  int status;
  for (i = 0; i < count; ++i) {
    size += strlen(tensors[i].name) + MAX_DTYPE_BYTES + MAX_ROLE_BYTES + 4u +
            MAX_EXTENT_BYTES * (size_t)tensors[i].tensor.ndim;
  }
  text = slw_platform_alloc(size, 1);
  if (text == NULL) {
    return slw_error_setf("MemoryError", "no memory for a text");
  }
  text[0] = '\0';
  for (i = 0; i < count; ++i) {
    const DLTensor *tensor = &tensors[i].tensor;
    slw_dtype_text(tensor->dtype, dtype, sizeof dtype);
    used += slw_format(text + used, size - used, "%s\t%s\t", tensors[i].name, dtype);
    for (d = 0; d < tensor->ndim; ++d) {
      used += slw_format(text + used, size - used, d == 0 ? "%lld" : ",%lld",
                         (long long)tensor->shape[d]);
    }
    own = (tensors[i].is_state != 0) ? "state" : role;
    used += slw_format(text + used, size - used, "\t%s\n", own);
  }
  status = give_text(result, text);
  slw_platform_free(text);
  return status;
}

static int get_input_info(void *handle, const TVMFFIAny *args, int32_t num_args,
                          TVMFFIAny *result) {
  const slw_aot_model *model = ((slw_aot_module *)handle)->model;
  (void)args;
  (void)num_args;
  return give_info(result, model->inputs, model->num_inputs, "input");
}

static int get_output_info(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const slw_aot_model *model = ((slw_aot_module *)handle)->model;
  (void)args;
  (void)num_args;
  return give_info(result, model->outputs, model->num_outputs, "output");
}

static const method AOT_METHODS[] = {
    {"run", run},
    {"reset_states", reset_states},
    {"set_input", set_input},
    {"get_input", get_input},
    {"get_output", get_output},
    {"get_num_inputs", get_num_inputs},
    {"get_num_outputs", get_num_outputs},
    {"get_input_index", get_input_index},
    {"get_input_name", get_input_name},
    {"get_input_info", get_input_info},
    {"get_output_info", get_output_info},
};

static slw_status get_function(slw_module *module, const char *name, slw_function *out) {
  size_t i;
  for (i = 0; i < sizeof AOT_METHODS / sizeof AOT_METHODS[0]; ++i) {
    if (strcmp(AOT_METHODS[i].name, name) == 0) {
      out->call = AOT_METHODS[i].call;
      out->self = module;
      return SLW_OK;
    }
  }
  return SLW_ERROR_NOT_FOUND;
}

static void destroy(slw_module *module) {
  slw_aot_module *self = (slw_aot_module *)(void *)module;
  if (self->owner != NULL) {
    slw_module_release(self->owner);
  }
  slw_platform_free(self);
}

static const slw_module_class AOT_CLASS = {"aot", get_function, destroy};

slw_status slw_aot_module_create(const slw_aot_model *model, slw_module *owner, slw_module **out) {
  slw_aot_module *self = slw_platform_alloc(sizeof *self, 16);
  if (self == NULL) {
    return SLW_ERROR_MEMORY;
  }
  slw_module_init(&self->head, &AOT_CLASS);
  self->model = model;
  self->owner = owner;
  if (model->reset != NULL) {
    model->reset();
  }
  if (owner != NULL) {
    slw_module_retain(owner);
  }
  *out = &self->head;
  return SLW_OK;
}
