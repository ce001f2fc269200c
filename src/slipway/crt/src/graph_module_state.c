/* SPDX-License-Identifier: Apache-2.0 */
/* States: inputs whose memory the model's own kernels write, so that they live between runs. */
#include <string.h>

#include "graph_module_parts.h"
#include "slipway/error.h"
#include "slipway/tensor.h"

static void hold_initial(slw_graph_module *self, uint32_t input, TVMFFIObject *keep, void *data) {
  slw_shared_param *own = &self->shared[input];
  slw_object_release(own->initial_keep);
  own->initial_keep = keep;
  own->initial_data = data;
}

/* Zeros, or what the model says that the state holds at first. */
static slw_status reset(slw_graph_module *self, uint32_t input) {
  DLTensor *state = slw_graph_input(&self->graph, input);
  slw_tensor *zeros = NULL;
  DLTensor first = *state;
  slw_status status = SLW_OK;
  if (self->shared[input].initial_keep == NULL) {
    const DLDevice here = {kDLCPU, 0};
    status = slw_tensor_alloc(state->shape, state->ndim, state->dtype, here, &zeros);
    if (status == SLW_OK) {
      first = zeros->tensor;
    }
  } else {
    first.data = self->shared[input].initial_data;
    first.byte_offset = 0;
    first.device.device_type = kDLCPU;
    first.device.device_id = 0;
  }
  if (status == SLW_OK) {
    status = slw_tensor_copy(&first, state);
  }
  if (zeros != NULL) {
    slw_object_release(&zeros->object);
  }
  self->stale[input] = 0;
  return status;
}

slw_status slw_graph_share_initial(slw_graph_module *self, uint32_t input, const DLTensor *values,
                                   TVMFFIObject *keep) {
  slw_object_retain(keep);
  hold_initial(self, input, keep, (uint8_t *)values->data + values->byte_offset);
  return reset(self, input);
}

slw_status slw_graph_copy_initial(slw_graph_module *self, uint32_t input, const DLTensor *values) {
  const DLDevice here = {kDLCPU, 0};
  slw_tensor *own = NULL;
  slw_status status = slw_tensor_alloc(values->shape, values->ndim, values->dtype, here, &own);
  if (status != SLW_OK) {
    return status;
  }
  status = slw_tensor_copy(values, &own->tensor);
  hold_initial(self, input, &own->object, own->tensor.data);
  return (status == SLW_OK) ? reset(self, input) : status;
}

static int reset_states(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  (void)args;
  (void)result;
  if (slw_graph_arg_count("reset_states", num_args, 0, 0) != 0) {
    return -1;
  }
  for (uint32_t i = 0; i < self->graph.num_inputs; ++i) {
    if (self->is_state[i] && reset(self, i) != SLW_OK) {
      return slw_error_setf("MemoryError", "reset_states: no memory for the zeros of '%s'",
                            slw_graph_input_name(&self->graph, i));
    }
  }
  return 0;
}

const slw_graph_method slw_graph_state_methods[] = {
    {"reset_states", reset_states},
    {NULL, NULL},
};
