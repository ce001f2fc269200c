/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a graph module that describe and measure it. */
#include <string.h>

#include "graph_module_parts.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/platform.h"
#include "slipway/tensor.h"
#include "slipway/timer.h"

#define MAX_PROFILE_RUNS 100000

static int give_int(TVMFFIAny *result, int64_t value) {
  memset(result, 0, sizeof *result);
  result->type_index = kTVMFFIInt;
  result->v_int64 = value;
  return 0;
}

static int get_num_inputs(void *handle, const TVMFFIAny *args, int32_t num_args,
                          TVMFFIAny *result) {
  (void)args;
  (void)num_args;
  return give_int(result, ((slw_graph_module *)handle)->graph.num_inputs);
}

static int get_num_outputs(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  (void)args;
  (void)num_args;
  return give_int(result, ((slw_graph_module *)handle)->graph.num_outputs);
}

static int get_num_nodes(void *handle, const TVMFFIAny *args, int32_t num_args,
                         TVMFFIAny *result) {
  (void)args;
  (void)num_args;
  return give_int(result, ((slw_graph_module *)handle)->graph.num_nodes);
}

static int get_input_index(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  slw_graph_module *self = handle;
  const char *data = NULL;
  size_t size = 0;
  if (slw_graph_arg_count("get_input_index", num_args, 1, 1) != 0) {
    return -1;
  }
  if (slw_any_get_bytes(&args[0], &data, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "get_input_index: the argument must be a name");
  }
  const uint32_t input = slw_graph_find_input_bytes(&self->graph, data, size);
  return give_int(result, (input == SLW_GRAPH_NONE) ? -1 : (int64_t)input);
}

static int get_input_name(void *handle, const TVMFFIAny *args, int32_t num_args,
                          TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t input = 0;
  const char *name;
  if (slw_graph_arg_count("get_input_name", num_args, 1, 1) != 0 ||
      slw_graph_arg_index(args, 0, self->graph.num_inputs, "get_input_name", "input", &input) !=
          0) {
    return -1;
  }
  name = slw_graph_input_name(&self->graph, input);
  return (slw_any_set_string(result, name, strlen(name)) == SLW_OK)
             ? 0
             : slw_error_setf("MemoryError", "no memory for a name");
}

/* Text that grows: first measured with text NULL, then written. */
typedef struct {
  char *text;
  size_t used;
} text_sink;

static void put(text_sink *sink, const char *data, size_t size) {
  if (sink->text != NULL) {
    memcpy(sink->text + sink->used, data, size);
  }
  sink->used += size;
}

static void put_tensor_line(text_sink *sink, const char *name, const DLTensor *tensor,
                            const char *role) {
  char text[32];
  put(sink, name, strlen(name));
  put(sink, "\t", 1);
  slw_dtype_text(tensor->dtype, text, sizeof text);
  put(sink, text, strlen(text));
  put(sink, "\t", 1);
  for (int32_t d = 0; d < tensor->ndim; ++d) {
    size_t length = slw_format(text, sizeof text, (d == 0) ? "%lld" : ",%lld",
                               (long long)tensor->shape[d]);
    put(sink, text, length);
  }
  put(sink, "\t", 1);
  put(sink, role, strlen(role));
  put(sink, "\n", 1);
}

static void put_inputs(text_sink *sink, const slw_graph_module *self) {
  for (uint32_t i = 0; i < self->graph.num_inputs; ++i) {
    put_tensor_line(sink, slw_graph_input_name(&self->graph, i), slw_graph_input(&self->graph, i),
                    self->is_param[i]   ? "param"
                    : self->is_state[i] ? "state"
                                        : "input");
  }
}

static void put_outputs(text_sink *sink, const slw_graph_module *self) {
  for (uint32_t i = 0; i < self->graph.num_outputs; ++i) {
    char name[24];
    const char *own = slw_graph_output_name(&self->graph, i);
    (void)slw_format(name, sizeof name, "output%u", (unsigned)i);
    put_tensor_line(sink, own[0] == '\0' ? name : own, slw_graph_output(&self->graph, i), "output");
  }
}

static void put_nodes(text_sink *sink, const slw_graph_module *self) {
  for (uint32_t i = 0; i < self->graph.num_nodes; ++i) {
    const char *name = slw_graph_node_name(&self->graph, i);
    const char *function = slw_graph_node_function(&self->graph, i);
    put(sink, name, strlen(name));
    put(sink, "\t", 1);
    put(sink, function, strlen(function));
    put(sink, "\n", 1);
  }
}

static int give_text(const slw_graph_module *self, TVMFFIAny *result,
                     void (*write)(text_sink *, const slw_graph_module *)) {
  text_sink sink = {NULL, 0};
  slw_status status;
  write(&sink, self);
  sink.text = slw_platform_alloc(sink.used + 1, 1);
  if (sink.text == NULL) {
    return slw_error_setf("MemoryError", "no memory for a description");
  }
  sink.used = 0;
  write(&sink, self);
  status = slw_any_set_string(result, sink.text, sink.used);
  slw_platform_free(sink.text);
  return (status == SLW_OK) ? 0 : slw_error_setf("MemoryError", "no memory for a description");
}

static int get_num_open_sizes(void *handle, const TVMFFIAny *args, int32_t num_args,
                              TVMFFIAny *result) {
  const slw_graph_module *self = handle;
  (void)args;
  if (slw_graph_arg_count("get_num_open_sizes", num_args, 0, 0) != 0) {
    return -1;
  }
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = self->graph.num_symbols;
  return 0;
}

static int get_input_info(void *handle, const TVMFFIAny *args, int32_t num_args,
                          TVMFFIAny *result) {
  (void)args;
  (void)num_args;
  return give_text(handle, result, put_inputs);
}

static int get_output_info(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  (void)args;
  (void)num_args;
  return give_text(handle, result, put_outputs);
}

static int get_node_info(void *handle, const TVMFFIAny *args, int32_t num_args,
                         TVMFFIAny *result) {
  (void)args;
  (void)num_args;
  return give_text(handle, result, put_nodes);
}

static int run_node(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t node = 0;
  (void)result;
  if (slw_graph_arg_count("run_node", num_args, 1, 1) != 0 ||
      slw_graph_arg_index(args, 0, self->graph.num_nodes, "run_node", "node", &node) != 0) {
    return -1;
  }
  slw_error_clear();
  if (slw_graph_check_zero_copy(self) != 0) {
    return -1;
  }
  return (slw_graph_run_node(&self->graph, node) == SLW_OK) ? 0
                                                            : slw_graph_node_failed(self, node);
}

static int find_node(const slw_graph_module *self, const TVMFFIAny *arg, uint32_t *node) {
  const char *data = NULL;
  size_t size = 0;
  if (arg->type_index == kTVMFFIInt) {
    return slw_graph_arg_index(arg, 0, self->graph.num_nodes, "debug_get_output", "node", node);
  }
  if (slw_any_get_bytes(arg, &data, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "debug_get_output: the first argument must be a node's "
                                       "name or number");
  }
  for (*node = 0; *node < self->graph.num_nodes; ++*node) {
    const char *name = slw_graph_node_name(&self->graph, *node);
    if (strlen(name) == size && memcmp(name, data, size) == 0) {
      return 0;
    }
  }
  return slw_error_setf("ExecutionError", "debug_get_output: the model has no node of that name");
}

static int debug_get_output(void *handle, const TVMFFIAny *args, int32_t num_args,
                            TVMFFIAny *result) {
  slw_graph_module *self = handle;
  uint32_t node = 0;
  if (slw_graph_arg_count("debug_get_output", num_args, 1, 2) != 0 ||
      find_node(self, &args[0], &node) != 0) {
    return -1;
  }
  for (uint32_t i = 0; num_args == 1 && i < self->graph.num_inputs; ++i) {
    if (slw_graph_input(&self->graph, i) == slw_graph_node_output(&self->graph, node, NULL)) {
      slw_graph_own_input(self, i, 1); /* the caller may write into what it gets */
    }
  }
  return slw_graph_give_tensor(self, slw_graph_node_output(&self->graph, node, NULL),
                               slw_graph_node_name(&self->graph, node), args, num_args, 1, result);
}

/* Nodes run in order within each round, so that every one finds the caches as in a real run. */
static int measure_nodes(slw_graph_module *self, const slw_device_clock *clocks, int64_t number,
                         double *seconds) {
  for (int64_t round = 0; round < number; ++round) {
    for (uint32_t node = 0; node < self->graph.num_nodes; ++node) {
      uint64_t duration_ns = 0;
      slw_device_span span;
      if (slw_device_span_begin(&span, clocks[node]) != SLW_OK ||
          slw_graph_run_node(&self->graph, node) != SLW_OK ||
          slw_device_span_end(&span, &duration_ns) != SLW_OK) {
        return slw_graph_node_failed(self, node);
      }
      seconds[node] += (double)duration_ns * 1e-9 / (double)number;
    }
  }
  return 0;
}

/* Run all nodes once, and note whose clock tells what each takes. */
static int find_clocks(slw_graph_module *self, slw_device_clock *clocks) {
  for (uint32_t node = 0; node < self->graph.num_nodes; ++node) {
    slw_device_work before;
    slw_device_note(&before);
    if (slw_graph_run_node(&self->graph, node) != SLW_OK) {
      return slw_graph_node_failed(self, node);
    }
    clocks[node] = slw_device_clock_since(&before);
  }
  return 0;
}

static int profile(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  slw_graph_module *self = handle;
  int64_t number;
  int64_t repeat;
  size_t bytes;
  double *seconds;
  slw_device_clock *clocks;
  int failed = 0;
  if (slw_graph_arg_count("profile", num_args, 2, 2) != 0) {
    return -1;
  }
  number = (args[0].type_index == kTVMFFIInt) ? args[0].v_int64 : 0;
  repeat = (args[1].type_index == kTVMFFIInt) ? args[1].v_int64 : 0;
  if (number < 1 || repeat < 1 || number > MAX_PROFILE_RUNS || repeat > MAX_PROFILE_RUNS) {
    return slw_error_setf("ValueError", "profile: number and repeat must be integers from 1 to %d",
                          MAX_PROFILE_RUNS);
  }
  if (slw_graph_check_zero_copy(self) != 0) {
    return -1;
  }
  bytes = (size_t)repeat * self->graph.num_nodes * sizeof(double);
  seconds = slw_platform_alloc(bytes + 1, sizeof(double));
  clocks = slw_platform_alloc(self->graph.num_nodes * sizeof *clocks + 1, sizeof(void *));
  if (seconds == NULL || clocks == NULL) {
    slw_platform_free(seconds);
    slw_platform_free(clocks);
    return slw_error_setf("MemoryError", "profile: no memory for the results");
  }
  slw_error_clear();
  failed = find_clocks(self, clocks); /* the warm-up too */
  for (int64_t i = 0; i < repeat && failed == 0; ++i) {
    failed = measure_nodes(self, clocks, number, seconds + (size_t)i * self->graph.num_nodes);
  }
  if (failed == 0 && slw_any_set_bytes(result, seconds, bytes) != SLW_OK) {
    failed = slw_error_setf("MemoryError", "profile: no memory for the results");
  }
  slw_platform_free(seconds);
  slw_platform_free(clocks);
  return (failed == 0) ? 0 : -1;
}

const slw_graph_method slw_graph_info_methods[] = {
    {"get_num_inputs", get_num_inputs},
    {"get_num_outputs", get_num_outputs},
    {"get_num_nodes", get_num_nodes},
    {"get_input_index", get_input_index},
    {"get_input_name", get_input_name},
    {"get_num_open_sizes", get_num_open_sizes},
    {"get_input_info", get_input_info},
    {"get_output_info", get_output_info},
    {"get_node_info", get_node_info},
    {"run_node", run_node},
    {"debug_get_output", debug_get_output},
    {"profile", profile},
    {NULL, NULL},
};
