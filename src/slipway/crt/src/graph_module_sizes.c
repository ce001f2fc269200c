/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of other sizes than before, where a model has open dimensions. */
#include "graph_module_parts.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/tensor.h"

#define SHAPE_TEXT_BYTES 160

/* "(n, 3, ?)": sizes by their names, computed ones as a question mark. */
static void open_shape_text(const slw_graph *graph, uint32_t input, char *text, size_t size) {
  const DLTensor *tensor = slw_graph_input(graph, input);
  size_t used = slw_format(text, size, "(");
  for (uint32_t axis = 0; axis < (uint32_t)tensor->ndim && used + 1 < size; ++axis) {
    const char *end = (axis + 1 < (uint32_t)tensor->ndim) ? ", " : (axis == 0) ? ",)" : ")";
    uint32_t symbol = slw_graph_axis_symbol(graph, input, axis);
    int64_t low;
    int64_t high;
    if (symbol == SLW_GRAPH_NONE) {
      used += slw_format(text + used, size - used, "%lld%s", (long long)tensor->shape[axis], end);
    } else {
      used += slw_format(text + used, size - used, "%s%s",
                         symbol < graph->num_symbols ? slw_graph_symbol(graph, symbol, &low, &high)
                                                     : "?",
                         end);
    }
  }
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
  if (!slw_graph_is_open(graph, input)) {
    return 0;
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
    const char *symbol =
        slw_graph_symbol(graph, slw_graph_axis_symbol(graph, input, outside), &low, &high);
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
      char now[SHAPE_TEXT_BYTES];
      const DLTensor *tensor = slw_graph_input(&self->graph, i);
      slw_shape_text(tensor->shape, tensor->ndim, now, sizeof now);
      return slw_error_setf("ExecutionError",
                            "run: the sizes of the model have changed since the input '%s' was "
                            "set: it has shape %s now. Set it again.",
                            slw_graph_input_name(&self->graph, i), now);
    }
  }
  return 0;
}
