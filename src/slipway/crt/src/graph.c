/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/graph.h"

#include <string.h>

#include "graph_tables.h"
#include "slipway/tensor.h"

static const char NO_OPERATION[] = "__nop"; /* classic name of a reshape in place */

/* One DLTensor for each entry; operators' arguments point at them, so replacing a data pointer
 * here reaches every operator. */
static void make_tensors(slw_graph *graph, const slw_graph_layout *l, uint8_t *arena) {
  for (uint32_t i = 0; i < l->num_entries; ++i) {
    slw_graph_entry entry = slw_graph_read_entry(l->blob + l->entries_at, i);
    DLTensor *tensor = &graph->tensors[i];
    uint64_t offset = slw_load64(l->blob + l->storages_at +
                                 (size_t)entry.storage * SLW_GRAPH_STORAGE_BYTES);
    memset(tensor, 0, sizeof *tensor);
    tensor->data = (arena != NULL) ? arena + offset : NULL;
    tensor->device.device_type = kDLCPU;
    tensor->ndim = (int32_t)entry.ndim;
    tensor->dtype = entry.dtype;
    /* Extents are read where they lie; nobody writes through DLTensor.shape. */
    tensor->shape =
        (graph->dims != NULL)
            ? graph->dims + entry.first_dim
            : (int64_t *)((uintptr_t)l->blob + (uintptr_t)l->dims_at +
                          (uintptr_t)entry.first_dim * 8U);
  }
}

static slw_status bind_node(slw_graph *graph, const slw_graph_layout *l, uint32_t index,
                            slw_graph_lookup lookup, void *lookup_context, const char **missing) {
  slw_graph_node node = slw_graph_read_node(l->blob + l->nodes_at, index);
  slw_graph_op *op = &graph->ops[index];
  const char *name;
  slw_status status;
  memset(op, 0, sizeof *op);
  op->first_arg = node.first_arg;
  op->num_args = node.num_args;
  if (node.function == SLW_GRAPH_NONE) {
    return SLW_OK;
  }
  name = graph->strings + node.function;
  if (slw_text_equal(name, NO_OPERATION)) {
    return SLW_OK;
  }
  status = lookup(lookup_context, name, &op->function);
  if (status != SLW_OK && missing != NULL) {
    *missing = name;
  }
  return status;
}

slw_status slw_graph_init(slw_graph *graph, const void *blob, size_t size_bytes, void *tables,
                          size_t tables_size_bytes, void *arena, uint64_t arena_size_bytes,
                          slw_graph_lookup lookup, void *lookup_context, const char **missing) {
  slw_graph_layout l;
  size_t tables_needed = 0;
  uint64_t arena_needed = 0;
  slw_status status = slw_graph_check(blob, size_bytes, &tables_needed, &arena_needed);
  if (status == SLW_OK) {
    status = slw_graph_read_layout(blob, size_bytes, &l);
  }
  if (status != SLW_OK) {
    return status;
  }
  if (tables_size_bytes < tables_needed || arena_size_bytes < arena_needed) {
    return SLW_ERROR_MEMORY;
  }
  if ((uintptr_t)blob % 8U != 0 || (uintptr_t)tables % 8U != 0 ||
      (uintptr_t)arena % SLW_TENSOR_ALIGNMENT != 0) {
    return SLW_ERROR_ARGUMENT;
  }
  memset(graph, 0, sizeof *graph);
  graph->blob = blob;
  graph->num_nodes = l.num_nodes;
  graph->num_entries = l.num_entries;
  graph->num_inputs = l.num_inputs;
  graph->num_outputs = l.num_outputs;
  graph->args = tables;
  graph->tensors = (void *)(graph->args + l.num_args);
  if (l.num_open > 0) {
    graph->dims = (void *)graph->tensors;
    graph->sizes = graph->dims + l.num_dims;
    graph->tensors = (void *)(graph->sizes + 2U * (size_t)l.num_symbols);
    status = slw_graph_init_sizes(graph, &l);
    if (status != SLW_OK) {
      return status;
    }
  }
  graph->ops = (void *)(graph->tensors + l.num_entries);
  graph->nodes_table = l.blob + l.nodes_at;
  graph->entries_table = l.blob + l.entries_at;
  graph->inputs_table = l.blob + l.inputs_at;
  graph->outputs_table = l.blob + l.outputs_at;
  graph->num_arenas = l.num_arenas;
  graph->arenas_table = l.blob + l.arenas_at;
  graph->arena_bytes = l.arena_bytes;
  graph->storages_table = l.blob + l.storages_at;
  graph->names_table = l.num_names == 0 ? NULL : l.blob + l.names_at;
  graph->strings = (const char *)l.blob + l.strings_at;
  graph->strings_size = l.strings_bytes;
  make_tensors(graph, &l, arena);
  for (uint32_t i = 0; i < l.num_args; ++i) {
    memset(&graph->args[i], 0, sizeof graph->args[i]);
    graph->args[i].type_index = kTVMFFIDLTensorPtr;
    graph->args[i].v_ptr = &graph->tensors[slw_graph_read_index(l.blob + l.args_at, i)];
  }
  for (uint32_t i = 0; i < l.num_nodes; ++i) {
    status = bind_node(graph, &l, i, lookup, lookup_context, missing);
    if (status != SLW_OK) {
      return status;
    }
  }
  return SLW_OK;
}

int32_t slw_graph_arena(const slw_graph *graph, uint32_t index, uint64_t *size_bytes,
                        uint32_t *texels, int32_t *bits) {
  const uint32_t image = slw_graph_arena_image(graph->arenas_table, index);
  uint64_t end = (index + 1U < graph->num_arenas)
                     ? slw_graph_arena_begin(graph->arenas_table, index + 1U)
                     : graph->arena_bytes;
  *size_bytes = end - slw_graph_arena_begin(graph->arenas_table, index);
  *texels = image & ~SLW_GRAPH_HALF_TEXELS;
  *bits = ((image & SLW_GRAPH_HALF_TEXELS) != 0U) ? 16 : 32;
  return (int32_t)slw_load32(graph->arenas_table + (size_t)index * SLW_GRAPH_ARENA_BYTES);
}

void slw_graph_place_arena(slw_graph *graph, uint32_t index, void *base, DLDevice device) {
  uint64_t begin = slw_graph_arena_begin(graph->arenas_table, index);
  uint64_t end = (index + 1U < graph->num_arenas)
                     ? slw_graph_arena_begin(graph->arenas_table, index + 1U)
                     : UINT64_MAX;
  for (uint32_t i = 0; i < graph->num_entries; ++i) {
    slw_graph_entry entry = slw_graph_read_entry(graph->entries_table, i);
    uint64_t offset =
        slw_load64(graph->storages_table + (size_t)entry.storage * SLW_GRAPH_STORAGE_BYTES);
    if (offset >= begin && offset < end) {
      graph->tensors[i].data = (char *)base + (offset - begin);
      graph->tensors[i].device = device;
    }
  }
}

static slw_status run_op(slw_graph *graph, const slw_graph_op *op) {
  TVMFFIAny result;
  if (op->function.call == NULL) {
    return SLW_OK;
  }
  memset(&result, 0, sizeof result);
  return (op->function.call(op->function.self, graph->args + op->first_arg, (int32_t)op->num_args,
                            &result) == 0)
             ? SLW_OK
             : SLW_ERROR_CALL;
}

slw_status slw_graph_run(slw_graph *graph, uint32_t *failed_node) {
  for (uint32_t i = 0; i < graph->num_nodes; ++i) {
    slw_status status = slw_graph_run_node(graph, i);
    if (status != SLW_OK) {
      if (failed_node != NULL) {
        *failed_node = i;
      }
      return status;
    }
  }
  return SLW_OK;
}

slw_status slw_graph_run_node(slw_graph *graph, uint32_t node) {
  slw_status status = SLW_ERROR_ARGUMENT;
  graph->wrong_size = graph->num_symbols;
  if (node < graph->num_nodes) {
    status = run_op(graph, &graph->ops[node]);
  }
  return (status == SLW_OK && graph->num_told > 0) ? slw_graph_tell_sizes(graph, node) : status;
}

DLTensor *slw_graph_node_output(const slw_graph *graph, uint32_t node, uint32_t *num_outputs) {
  slw_graph_node found;
  if (node >= graph->num_nodes) {
    return NULL;
  }
  found = slw_graph_read_node(graph->nodes_table, node);
  if (num_outputs != NULL) {
    *num_outputs = found.num_outputs;
  }
  return &graph->tensors[found.first_entry];
}

DLTensor *slw_graph_input(const slw_graph *graph, uint32_t index) {
  if (index >= graph->num_inputs) {
    return NULL;
  }
  return slw_graph_node_output(graph, slw_graph_read_index(graph->inputs_table, index), NULL);
}

/* Give every reshape in place the memory of what it reads. */
static void move_reshapes(slw_graph *graph) {
  for (uint32_t i = 0; i < graph->num_nodes; ++i) {
    const slw_graph_op *op = &graph->ops[i];
    if (op->function.call == NULL && op->num_args > 0) {
      const DLTensor *from = graph->args[op->first_arg].v_ptr;
      DLTensor *to = slw_graph_node_output(graph, i, NULL);
      to->data = from->data;
      to->byte_offset = from->byte_offset;
    }
  }
}

static uint32_t storage_of(const slw_graph *graph, const DLTensor *tensor) {
  return slw_graph_read_entry(graph->entries_table, (uint32_t)(tensor - graph->tensors)).storage;
}

/* The next result after `from` that an operator writes into the memory of a tensor. */
static DLTensor *written_into(const slw_graph *graph, const DLTensor *memory, uint32_t *node,
                              uint32_t *output) {
  const uint32_t storage = storage_of(graph, memory);
  for (; *node < graph->num_nodes; ++*node, *output = 0) {
    uint32_t count = 0;
    DLTensor *first = slw_graph_node_output(graph, *node, &count);
    while (graph->ops[*node].function.call != NULL && *output < count) {
      DLTensor *found = first + (*output)++;
      if (storage_of(graph, found) == storage) {
        return found;
      }
    }
  }
  return NULL;
}

int slw_graph_is_state(const slw_graph *graph, uint32_t index) {
  uint32_t node = 0;
  uint32_t output = 0;
  return written_into(graph, slw_graph_input(graph, index), &node, &output) != NULL;
}

void slw_graph_place_input(slw_graph *graph, uint32_t index, void *data, uint64_t byte_offset) {
  DLTensor *input = slw_graph_input(graph, index);
  DLTensor *state;
  uint32_t node = 0;
  uint32_t output = 0;
  input->data = data;
  input->byte_offset = byte_offset;
  while ((state = written_into(graph, input, &node, &output)) != NULL) {
    state->data = data;
    state->byte_offset = byte_offset;
  }
  move_reshapes(graph);
}

/* The tensor that `tensor` is, under another shape: what a kernel writes, or an input. Nodes
 * stand behind what they read, so that one walk from the last to the first finds it. */
static DLTensor *memory_of(const slw_graph *graph, DLTensor *tensor) {
  for (uint32_t i = graph->num_nodes; i > 0; --i) {
    const slw_graph_op *op = &graph->ops[i - 1U];
    if (op->function.call == NULL && op->num_args > 0 &&
        slw_graph_node_output(graph, i - 1U, NULL) == tensor) {
      tensor = graph->args[op->first_arg].v_ptr;
    }
  }
  return tensor;
}

slw_graph_owner slw_graph_output_owner(const slw_graph *graph, uint32_t index, uint32_t *which) {
  const DLTensor *memory = memory_of(graph, slw_graph_output(graph, index));
  for (uint32_t i = 0; i < graph->num_inputs; ++i) {
    if (slw_graph_input(graph, i) == memory) {
      *which = i;
      return SLW_GRAPH_OWNER_INPUT;
    }
  }
  for (uint32_t i = 0; i < graph->num_outputs; ++i) {
    if (i != index && memory_of(graph, slw_graph_output(graph, i)) == memory) {
      *which = i;
      return SLW_GRAPH_OWNER_OUTPUT;
    }
  }
  return SLW_GRAPH_OWNER_SELF;
}

void slw_graph_place_output(slw_graph *graph, uint32_t index, void *data, uint64_t byte_offset) {
  DLTensor *memory = memory_of(graph, slw_graph_output(graph, index));
  memory->data = data;
  memory->byte_offset = byte_offset;
  move_reshapes(graph);
}

DLTensor *slw_graph_output(const slw_graph *graph, uint32_t index) {
  if (index >= graph->num_outputs) {
    return NULL;
  }
  return &graph->tensors[slw_graph_read_index(graph->outputs_table, index)];
}

const char *slw_graph_node_name(const slw_graph *graph, uint32_t node) {
  if (node >= graph->num_nodes) {
    return "";
  }
  return graph->strings + slw_graph_read_node(graph->nodes_table, node).name;
}

const char *slw_graph_node_function(const slw_graph *graph, uint32_t node) {
  uint32_t at;
  if (node >= graph->num_nodes) {
    return "";
  }
  at = slw_graph_read_node(graph->nodes_table, node).function;
  return (at == SLW_GRAPH_NONE) ? "" : graph->strings + at;
}

const char *slw_graph_input_name(const slw_graph *graph, uint32_t index) {
  if (index >= graph->num_inputs) {
    return "";
  }
  return slw_graph_node_name(graph, slw_graph_read_index(graph->inputs_table, index));
}

const char *slw_graph_output_name(const slw_graph *graph, uint32_t index) {
  if (index >= graph->num_outputs || graph->names_table == NULL) {
    return "";
  }
  return graph->strings + slw_graph_read_index(graph->names_table, index);
}

static int is_named(const char *own, const char *name, size_t name_bytes) {
  size_t at = 0;
  while (at < name_bytes && own[at] != '\0' && own[at] == name[at]) {
    ++at;
  }
  return at == name_bytes && own[at] == '\0';
}

uint32_t slw_graph_find_input_bytes(const slw_graph *graph, const char *name, size_t name_bytes) {
  for (uint32_t i = 0; i < graph->num_inputs; ++i) {
    if (is_named(slw_graph_input_name(graph, i), name, name_bytes)) {
      return i;
    }
  }
  return SLW_GRAPH_NONE;
}

uint32_t slw_graph_find_output_bytes(const slw_graph *graph, const char *name,
                                     size_t name_bytes) {
  for (uint32_t i = 0; graph->names_table != NULL && i < graph->num_outputs; ++i) {
    if (is_named(slw_graph_output_name(graph, i), name, name_bytes)) {
      return i;
    }
  }
  return SLW_GRAPH_NONE;
}

uint32_t slw_graph_find_input(const slw_graph *graph, const char *name) {
  for (uint32_t i = 0; i < graph->num_inputs; ++i) {
    if (slw_text_equal(slw_graph_input_name(graph, i), name)) {
      return i;
    }
  }
  return SLW_GRAPH_NONE;
}
