/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that several instances of a model read from one place. */
#include <string.h>

#include "bytes.h"
#include "graph_module_parts.h"
#include "slipway/error.h"
#include "slipway/params.h"
#include "slipway/tensor.h"

slw_status slw_graph_module_share_param(slw_module *module, uint32_t input,
                                        const DLTensor *values, TVMFFIObject *keep) {
  slw_graph_module *self = (slw_graph_module *)(void *)module;
  DLTensor *model = slw_graph_input(&self->graph, input);
  slw_shared_param *shared = &self->shared[input];
  if (slw_graph_check_tensor("share_param", slw_graph_input_name(&self->graph, input), model,
                             values) != 0) {
    return SLW_ERROR_TENSOR;
  }
  if (values->device.device_type != model->device.device_type) { /* no memory in common */
    slw_graph_own_input(self, input, 0);
    self->is_param[input] = 1;
    return slw_tensor_copy(values, model);
  }
  if (((uintptr_t)values->data + (uintptr_t)values->byte_offset) % SLW_TENSOR_ALIGNMENT != 0) {
    (void)slw_error_setf("ExecutionError", "share_param: the tensor for '%s' must be aligned to %d "
                                           "bytes",
                         slw_graph_input_name(&self->graph, input), SLW_TENSOR_ALIGNMENT);
    return SLW_ERROR_ARGUMENT;
  }
  if (self->is_state[input]) {
    return slw_graph_share_initial(self, input, values, keep);
  }
  slw_object_retain(keep);
  if (shared->keep == NULL) {
    shared->own_data = model->data;
  }
  slw_object_release(shared->keep);
  shared->keep = keep;
  slw_graph_place_input(&self->graph, input, values->data, values->byte_offset);
  self->is_param[input] = 1;
  return SLW_OK;
}

static int share_param(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t input = 0;
  (void)result;
  if (slw_graph_arg_count("share_param", num_args, 2, 2) != 0 ||
      slw_graph_arg_input(self, args, num_args, "share_param", &input) != 0) {
    return -1;
  }
  if (args[1].type_index != kTVMFFITensor) {
    return slw_error_setf("TypeError", "share_param: the value for '%s' must be a tensor that can "
                                       "be kept",
                          slw_graph_input_name(&self->graph, input));
  }
  return (slw_graph_module_share_param(&self->head, input, slw_any_get_tensor(&args[1]),
                                       args[1].v_obj) == SLW_OK)
             ? 0
             : -1;
}

static int share_params(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  const slw_module *module;
  const slw_graph_module *other;
  (void)result;
  if (slw_graph_arg_count("share_params", num_args, 1, 1) != 0) {
    return -1;
  }
  module = slw_any_get_module(&args[0]);
  if (module == NULL || module->type != self->head.type) {
    return slw_error_setf("TypeError", "share_params: the argument must be a graph module");
  }
  other = (const slw_graph_module *)(const void *)module;
  for (uint32_t i = 0; i < self->graph.num_inputs; ++i) {
    const char *name = slw_graph_input_name(&self->graph, i);
    uint32_t theirs = slw_graph_find_input(&other->graph, name);
    if (theirs != SLW_GRAPH_NONE && self->is_state[i] &&
        other->shared[theirs].initial_keep != NULL) {
      DLTensor first = *slw_graph_input(&other->graph, theirs);
      first.data = other->shared[theirs].initial_data;
      first.byte_offset = 0;
      if (slw_graph_module_share_param(&self->head, i, &first,
                                       other->shared[theirs].initial_keep) != SLW_OK) {
        return -1;
      }
    }
    if (theirs != SLW_GRAPH_NONE && other->is_param[theirs]) {
      const DLTensor *from = slw_graph_input(&other->graph, theirs);
      TVMFFIObject *keep = other->shared[theirs].keep;
      if (keep != NULL) {
        if (slw_graph_module_share_param(&self->head, i, from, keep) != SLW_OK) {
          return -1;
        }
        continue;
      }
      slw_graph_own_input(self, i, 0);
      if (slw_tensor_copy(from, slw_graph_input(&self->graph, i)) != SLW_OK) {
        return slw_error_setf("ExecutionError", "share_params: '%s' differs between the models",
                              name);
      }
      self->is_param[i] = 1;
    }
  }
  return 0;
}

const slw_graph_method slw_graph_params_methods[] = {
    {"share_param", share_param},
    {"share_params", share_params},
    {NULL, NULL},
};

/* Where the next parameter's values begin in the block. */
static int next_offset(uint64_t *at, size_t size_bytes) {
  uint64_t aligned = (uint64_t)size_bytes + (SLW_TENSOR_ALIGNMENT - 1U);
  aligned -= aligned % SLW_TENSOR_ALIGNMENT;
  *at += aligned;
  return *at <= (uint64_t)INT64_MAX / 2U;
}

static slw_status damaged(slw_status status) {
  (void)slw_error_setf("ArtifactError",
                       "the parameters are damaged: %s. Write them again with save_param_dict, "
                       "and copy them in binary mode.",
                       slw_status_text(status));
  return status;
}

static void leave(void *context, const void *values, size_t size_bytes) {
  (void)context;
  (void)values;
  (void)size_bytes;
}

slw_status slw_params_unpack(const void *data, size_t size_bytes, slw_tensor **out) {
  return slw_params_move(data, size_bytes, leave, NULL, out);
}

slw_status slw_params_move(const void *data, size_t size_bytes,
                           void (*taken)(void *context, const void *values, size_t size_bytes),
                           void *context, slw_tensor **out) {
  static const DLDataType BYTE = {kDLUInt, 8, 1};
  static const DLDevice HERE = {kDLCPU, 0};
  slw_params params;
  slw_param param;
  uint64_t at = 0;
  int64_t total;
  slw_status status = slw_params_open(&params, data, size_bytes);
  while (status == SLW_OK && (status = slw_params_next(&params, &param)) == SLW_OK) {
    status = next_offset(&at, param.data_bytes) ? SLW_OK : SLW_ERROR_FORMAT;
  }
  if (status != SLW_ERROR_NOT_FOUND) {
    return damaged(status);
  }
  total = (int64_t)at;
  status = slw_tensor_alloc(&total, 1, BYTE, HERE, out);
  if (status != SLW_OK) {
    (void)slw_error_setf("MemoryError", "no memory for the model's parameters: %llu bytes",
                         (unsigned long long)at);
    return status;
  }
  at = 0;
  status = slw_params_open(&params, data, size_bytes);
  while (status == SLW_OK && slw_params_next(&params, &param) == SLW_OK) {
    if (param.data_bytes > 0) {
      memcpy((uint8_t *)(*out)->tensor.data + at, param.data, param.data_bytes);
      taken(context, param.data, param.data_bytes);
    }
    (void)next_offset(&at, param.data_bytes);
  }
  return status;
}

slw_status slw_graph_module_share_params(slw_module *module, const void *data, size_t size_bytes,
                                         slw_tensor *block) {
  slw_graph_module *self = (slw_graph_module *)(void *)module;
  slw_params params;
  slw_param param;
  uint64_t at = 0;
  slw_status status = slw_params_open(&params, data, size_bytes);
  while (status == SLW_OK && (status = slw_params_next(&params, &param)) == SLW_OK) {
    uint32_t input = slw_graph_find_input_bytes(&self->graph, param.name, param.name_bytes);
    if (input != SLW_GRAPH_NONE) { /* else optimisation removed it: classic behaviour */
      DLTensor values;
      memset(&values, 0, sizeof values);
      values.data = (uint8_t *)block->tensor.data + at;
      values.device.device_type = kDLCPU;
      values.ndim = param.ndim;
      values.dtype = param.dtype;
      values.shape = param.shape;
      status = slw_graph_module_share_param(module, input, &values, &block->object);
      if (status != SLW_OK) {
        return status;
      }
    }
    (void)next_offset(&at, param.data_bytes);
  }
  return (status == SLW_ERROR_NOT_FOUND) ? SLW_OK : damaged(status);
}
