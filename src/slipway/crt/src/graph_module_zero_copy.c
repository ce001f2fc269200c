/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs that lie in the caller's memory, and inputs of other sizes than before. */
#include "graph_module_parts.h"
#include "slipway/format.h"
#include "slipway/error.h"
#include "slipway/tensor.h"

/* The caller's tensor, for a tensor of the model to lie in; NULL with the thread's error. */
static const DLTensor *tensor_given(const char *function, const char *name, const DLTensor *model,
                                   const TVMFFIAny *arg) {
  const DLTensor *given = slw_any_get_tensor(arg);
  if (given == NULL) {
    (void)slw_error_setf("TypeError", "%s: the value for '%s' must be a tensor", function, name);
    return NULL;
  }
  if (slw_graph_check_tensor(function, name, model, given) != 0) {
    return NULL;
  }
  if (given->device.device_type != model->device.device_type ||
      given->device.device_id != model->device.device_id) {
    (void)slw_error_setf("ExecutionError", "%s: the tensor for '%s' must be on the model's device",
                         function, name);
    return NULL;
  }
  if (((uintptr_t)given->data + (uintptr_t)given->byte_offset) % SLW_TENSOR_ALIGNMENT != 0) {
    (void)slw_error_setf("ExecutionError", "%s: the tensor for '%s' must be aligned to %d bytes",
                         function, name, SLW_TENSOR_ALIGNMENT);
    return NULL;
  }
  return given;
}

/* Memory of the caller's has one size, and would be left behind or overrun at the next one. */
static int refuse_open(const char *function, int is_open) {
  return !is_open ? 0
                  : slw_error_setf("ExecutionError",
                                   "%s: a tensor of open dimensions lies in the model's own "
                                   "memory. Use set_input and get_output.",
                                   function);
}

static int set_input_zero_copy(void *handle, const TVMFFIAny *args, int32_t num_args,
                               TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t input = 0;
  const DLTensor *given;
  (void)result;
  if (slw_graph_arg_count("set_input_zero_copy", num_args, 2, 2) != 0 ||
      slw_graph_arg_input(self, args, num_args, "set_input_zero_copy", &input) != 0) {
    return -1;
  }
  if (refuse_open("set_input_zero_copy", slw_graph_is_open(&self->graph, input)) != 0) {
    return -1;
  }
  given = tensor_given("set_input_zero_copy", slw_graph_input_name(&self->graph, input),
                      slw_graph_input(&self->graph, input), &args[1]);
  if (given == NULL) {
    return -1;
  }
  slw_graph_place_input(&self->graph, input, given->data, given->byte_offset);
  slw_object_release(self->shared[input].keep);
  self->shared[input].keep = NULL;
  self->placed = 1;
  return 0;
}

static int set_output_zero_copy(void *handle, const TVMFFIAny *args, int32_t num_args,
                                TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t output = 0;
  uint32_t which = 0;
  size_t size = 0;
  const DLTensor *given;
  slw_graph_owner owner;
  (void)result;
  if (slw_graph_arg_count("set_output_zero_copy", num_args, 2, 2) != 0 ||
      slw_graph_arg_output(self, args, "set_output_zero_copy", &output) != 0) {
    return -1;
  }
  if (refuse_open("set_output_zero_copy", self->graph.num_open > 0) != 0) {
    return -1;
  }
  given = tensor_given("set_output_zero_copy", "output", slw_graph_output(&self->graph, output),
                      &args[1]);
  if (given == NULL) {
    return -1;
  }
  if (slw_tensor_size_bytes(given->shape, given->ndim, given->dtype, &size) == SLW_OK &&
      size == 0) {
    return 0; /* nothing will be written */
  }
  owner = slw_graph_output_owner(&self->graph, output, &which);
  if (owner == SLW_GRAPH_OWNER_INPUT) {
    return slw_error_setf("ExecutionError",
                          "set_output_zero_copy: output %u of this graph is its input '%s', which "
                          "no layer writes. Read it with get_output, or compile the model again: "
                          "relay.build copies such an output.",
                          (unsigned)output, slw_graph_input_name(&self->graph, which));
  }
  if (owner == SLW_GRAPH_OWNER_OUTPUT) {
    return slw_error_setf("ExecutionError",
                          "set_output_zero_copy: outputs %u and %u of this graph are one tensor, "
                          "which cannot lie in two places. Read them with get_output, or compile "
                          "the model again: relay.build copies such an output.",
                          (unsigned)output, (unsigned)which);
  }
  slw_graph_place_output(&self->graph, output, given->data, given->byte_offset);
  self->placed = 1;
  return 0;
}

static int overlap(const DLTensor *a, const DLTensor *b) {
  uintptr_t at_a = (uintptr_t)a->data + (uintptr_t)a->byte_offset;
  uintptr_t at_b = (uintptr_t)b->data + (uintptr_t)b->byte_offset;
  size_t size_a = 0;
  size_t size_b = 0;
  return slw_tensor_size_bytes(a->shape, a->ndim, a->dtype, &size_a) == SLW_OK &&
         slw_tensor_size_bytes(b->shape, b->ndim, b->dtype, &size_b) == SLW_OK && size_a > 0 &&
         size_b > 0 && at_a < at_b + size_b && at_b < at_a + size_a;
}

int slw_graph_check_zero_copy(slw_graph_module *self) {
  const slw_graph *graph = &self->graph;
  if (!self->placed) {
    return 0;
  }
  for (uint32_t o = 0; o < graph->num_outputs; ++o) {
    const DLTensor *output = slw_graph_output(graph, o);
    uint32_t which = 0;
    if (slw_graph_output_owner(graph, o, &which) != SLW_GRAPH_OWNER_SELF) {
      continue; /* one tensor under two names */
    }
    for (uint32_t i = 0; i < graph->num_inputs; ++i) {
      if (overlap(output, slw_graph_input(graph, i))) {
        return slw_error_setf("ExecutionError",
                              "run: output %u and input '%s' were given the same memory. A layer "
                              "may read an input after the output is written: give the output "
                              "memory of its own.",
                              (unsigned)o, slw_graph_input_name(graph, i));
      }
    }
    for (uint32_t i = 0; i < o; ++i) {
      if (overlap(output, slw_graph_output(graph, i))) {
        return slw_error_setf("ExecutionError",
                              "run: outputs %u and %u were given the same memory: give each "
                              "memory of its own.",
                              (unsigned)i, (unsigned)o);
      }
    }
  }
  self->placed = 0;
  return 0;
}

const slw_graph_method slw_graph_zero_copy_methods[] = {
    {"set_input_zero_copy", set_input_zero_copy},
    {"set_output_zero_copy", set_output_zero_copy},
    {NULL, NULL},
};

/* Inputs of other sizes than before, where a model has open dimensions. */

#define SHAPE_TEXT_BYTES 160

/* "(n, 3, 32 * h, ?)": sizes by their names, other formulas as a question mark. */
static void open_shape_text(const slw_graph *graph, uint32_t input, char *text, size_t size) {
  const DLTensor *tensor = slw_graph_input(graph, input);
  size_t used = slw_format(text, size, "(");
  for (uint32_t axis = 0; axis < (uint32_t)tensor->ndim && used + 1 < size; ++axis) {
    const char *end = (axis + 1 < (uint32_t)tensor->ndim) ? ", " : (axis == 0) ? ",)" : ")";
    int64_t factor = 1;
    int64_t offset = 0;
    uint32_t symbol = slw_graph_axis_symbol(graph, input, axis, &factor, &offset);
    int64_t low;
    int64_t high;
    if (symbol == SLW_GRAPH_NONE) {
      used += slw_format(text + used, size - used, "%lld%s", (long long)tensor->shape[axis], end);
    } else {
      if (factor != 1) {
        used += slw_format(text + used, size - used, "%lld * ", (long long)factor);
      }
      used += slw_format(text + used, size - used, "%s",
                         symbol < graph->num_symbols ? slw_graph_symbol(graph, symbol, &low, &high)
                                                     : "?");
      if (offset != 0) {
        used += slw_format(text + used, size - used, offset > 0 ? " + %lld" : " - %lld",
                           (long long)(offset > 0 ? offset : -offset));
      }
      used += slw_format(text + used, size - used, "%s", end);
    }
  }
}

static int has_shape_of(const DLTensor *given, const DLTensor *tensor) {
  for (int32_t axis = 0; axis < tensor->ndim && given->ndim == tensor->ndim; ++axis) {
    if (given->shape[axis] != tensor->shape[axis]) {
      return 0;
    }
  }
  return given->ndim == tensor->ndim;
}

int slw_graph_fit_input(slw_graph_module *self, const char *function, uint32_t input,
                        const DLTensor *given) {
  slw_graph *graph = &self->graph;
  const DLTensor *tensor = slw_graph_input(graph, input);
  const char *name = slw_graph_input_name(graph, input);
  char wanted[SHAPE_TEXT_BYTES];
  char got[SHAPE_TEXT_BYTES];
  uint32_t outside = SLW_GRAPH_NONE;
  int fits = 0;
  if (has_shape_of(given, tensor) || !slw_graph_is_open(graph, input)) {
    return 0; /* the sizes are those of the model already, or no concern of this input */
  }
  if (given->ndim == tensor->ndim) {
    fits = slw_graph_resize(graph, input, given->shape, self->stale, &outside) == SLW_OK;
  }
  if (fits) {
    return 0;
  }
  slw_shape_text(given->shape, given->ndim, got, sizeof got);
  open_shape_text(graph, input, wanted, sizeof wanted);
  if (outside != SLW_GRAPH_NONE) {
    int64_t low = 0;
    int64_t high = 0;
    int64_t factor = 1;
    int64_t offset = 0;
    uint32_t axis_symbol = slw_graph_axis_symbol(graph, input, outside, &factor, &offset);
    const char *symbol = slw_graph_symbol(graph, axis_symbol, &low, &high);
    return slw_error_setf("ExecutionError",
                          "%s: '%s' has shape %s in this model, got %s: %s is %lld to %lld. "
                          "Compile the model with a wider range for more.",
                          function, name, wanted, got, symbol, (long long)low, (long long)high);
  }
  return slw_error_setf("ExecutionError",
                        "%s: '%s' has shape %s in this model, got %s. Reshape it, or compile the "
                        "model for that shape.",
                        function, name, wanted, got);
}

int slw_graph_check_stale(const slw_graph_module *self) {
  for (uint32_t i = 0; self->graph.num_open > 0 && i < self->graph.num_inputs; ++i) {
    if (self->stale[i]) {
      char wanted[SHAPE_TEXT_BYTES];
      char now[SHAPE_TEXT_BYTES];
      const DLTensor *tensor = slw_graph_input(&self->graph, i);
      slw_shape_text(tensor->shape, tensor->ndim, now, sizeof now);
      open_shape_text(&self->graph, i, wanted, sizeof wanted);
      return slw_error_setf("ExecutionError",
                            "run: the input '%s' of shape %s does not have the sizes of what was "
                            "set last: with them it is %s. Set it so; inputs agree about a size.",
                            slw_graph_input_name(&self->graph, i), wanted, now);
    }
  }
  return 0;
}
