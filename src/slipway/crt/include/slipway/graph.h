/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The graph executor: runs a model's functions in order, over flat tables (graph.bin).
 *
 * Freestanding: no heap, no strings printed. The caller gives one block for the tables in memory
 * and one arena for all tensors; `slw_graph_init` says nothing until both are large enough.
 * The format of graph.bin is described in slipway.runtime.graph.graph_format.
 */
#ifndef SLIPWAY_GRAPH_H_
#define SLIPWAY_GRAPH_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_GRAPH_VERSION 1u
#define SLW_GRAPH_OPEN_VERSION 2u /* of models with open dimensions */
#define SLW_GRAPH_TOLD_VERSION 3u /* of models that tell some of them as they run */
#define SLW_GRAPH_IMAGE_VERSION 4u /* of models with images of a GPU */
#define SLW_GRAPH_NONE 0xffffffffu

/** Finds a compiled function; SLW_ERROR_NOT_FOUND if there is none. */
typedef slw_status (*slw_graph_lookup)(void *context, const char *name, slw_function *out);

typedef struct {
  slw_function function; /* call NULL: nothing to do (an input, or a reshape in place) */
  uint32_t first_arg;    /* into slw_graph.args */
  uint32_t num_args;
} slw_graph_op;

/** A model ready to run. Fields are for reading only. */
typedef struct {
  const uint8_t *blob;
  uint32_t num_nodes;
  uint32_t num_entries;
  uint32_t num_inputs;
  uint32_t num_outputs;
  slw_graph_op *ops;   /* num_nodes */
  DLTensor *tensors;   /* num_entries */
  TVMFFIAny *args;     /* of all operators, one after the other */
  const uint8_t *nodes_table;
  const uint8_t *entries_table;
  const uint8_t *inputs_table;
  const uint8_t *outputs_table;
  const uint8_t *names_table; /* of outputs; NULL: the model does not name them */
  const char *strings;
  uint32_t strings_size;
  int64_t *dims;    /* of all tensors as they are now; NULL: all sizes are fixed */
  int64_t *sizes;   /* num_symbols, and room for as many */
  uint32_t num_symbols;
  uint32_t num_open;
  const uint8_t *dims_table;
  const uint8_t *symbols_table;
  const uint8_t *open_table;
  const uint8_t *code_table;
  uint32_t num_told;   /* symbols that results of operators tell, in the middle of a run */
  uint32_t wrong_size; /* the symbol that the last operator told a size out of its range; NONE: one
                          that gives an axis a size out of its bounds; num_symbols: none */
  slw_status (*fetch)(const DLTensor *from, DLTensor *to); /* read what tells a size on another device;
                                                              NULL: none does */
  uint32_t num_arenas; /* of a model on several devices, or with images; else 0 */
  const uint8_t *arenas_table;
  uint64_t arena_bytes;
  const uint8_t *storages_table;
} slw_graph;

/** Check a graph.bin completely and say what it needs.
 * @param tables_size_bytes block for the tables, 8-byte aligned
 * @param arena_size_bytes  arena for the tensors, 64-byte aligned
 * @retval SLW_ERROR_TRUNCATED, SLW_ERROR_FORMAT, SLW_ERROR_VERSION */
SLW_API slw_status slw_graph_check(const void *blob, size_t size_bytes, size_t *tables_size_bytes,
                                   uint64_t *arena_size_bytes);

/** Build the tables and bind every operator's function. `blob` must stay in place, as must
 * `tables` and `arena`. On SLW_ERROR_NOT_FOUND `*missing` is the function's name. */
SLW_API slw_status slw_graph_init(slw_graph *graph, const void *blob, size_t size_bytes,
                                  void *tables, size_t tables_size_bytes, void *arena,
                                  uint64_t arena_size_bytes, slw_graph_lookup lookup,
                                  void *lookup_context, const char **missing);

/** The kind of device that arena `index` of a model on several devices is for, and the bytes that it
 * has. Of an image, `*texels` are those of a row, of four floats of `*bits` each; else 0. */
SLW_API int32_t slw_graph_arena(const slw_graph *graph, uint32_t index, uint64_t *size_bytes,
                                uint32_t *texels, int32_t *bits);

/** Let all tensors of arena `index` lie from `base` on, on `device`. `slw_graph_init` of such a model
 * takes no arena: it may be NULL. */
SLW_API void slw_graph_place_arena(slw_graph *graph, uint32_t index, void *base, DLDevice device);

/** Run all operators. On SLW_ERROR_CALL `*failed_node` (may be NULL) is the node's index. */
SLW_API slw_status slw_graph_run(slw_graph *graph, uint32_t *failed_node);

/** Run one operator; inputs and reshapes do nothing. */
SLW_API slw_status slw_graph_run_node(slw_graph *graph, uint32_t node);

/** The tensor of input or output `index`; NULL if there is none. */
SLW_API DLTensor *slw_graph_input(const slw_graph *graph, uint32_t index);
SLW_API DLTensor *slw_graph_output(const slw_graph *graph, uint32_t index);

/** Whether input `index` has dimensions whose size is known only when the model runs. */
SLW_API int slw_graph_is_open(const slw_graph *graph, uint32_t index);

/** The symbol that an axis of input `index` is `factor` times and `offset` more: SLW_GRAPH_NONE for
 * a fixed one, num_symbols for one that is computed from symbols in another way. */
SLW_API uint32_t slw_graph_axis_symbol(const slw_graph *graph, uint32_t index, uint32_t axis,
                                       int64_t *factor, int64_t *offset);

/** Name and range of a symbol. */
SLW_API const char *slw_graph_symbol(const slw_graph *graph, uint32_t symbol, int64_t *low,
                                     int64_t *high);

/** Give the model the sizes that make input `index` have `shape`, which has as many axes.
 * changed[i] becomes 1 for each input i whose shape is another one now.
 * @retval SLW_ERROR_TENSOR  the shape does not fit, and nothing has changed; `*outside` is the axis
 *                           whose size is out of its range, or SLW_GRAPH_NONE */
SLW_API slw_status slw_graph_resize(slw_graph *graph, uint32_t index, const int64_t *shape,
                                    uint8_t *changed, uint32_t *outside);

/** Whether input `index` is a state: an operator writes its memory. */
SLW_API int slw_graph_is_state(const slw_graph *graph, uint32_t index);

/** Let input `index`, the reshapes of it, and what operators write into it, lie at `data`. */
SLW_API void slw_graph_place_input(slw_graph *graph, uint32_t index, void *data,
                                   uint64_t byte_offset);

/** Let output `index` lie at `data`. Where it is a reshape in place, what a kernel writes goes
 * there, with all reshapes of it. */
SLW_API void slw_graph_place_output(slw_graph *graph, uint32_t index, void *data,
                                    uint64_t byte_offset);

/** Whose memory an output has. */
typedef enum {
  SLW_GRAPH_OWNER_SELF,  /* no input's and no other output's: it may be placed */
  SLW_GRAPH_OWNER_INPUT, /* that of an input or parameter */
  SLW_GRAPH_OWNER_OUTPUT /* that of another output too */
} slw_graph_owner;

/** Tell whose memory output `index` has; `*which` is the number of that input or output. */
SLW_API slw_graph_owner slw_graph_output_owner(const slw_graph *graph, uint32_t index,
                                               uint32_t *which);

/** Name of input `index`, of node `node` and of the function it calls ("" if none). */
SLW_API const char *slw_graph_input_name(const slw_graph *graph, uint32_t index);
SLW_API const char *slw_graph_node_name(const slw_graph *graph, uint32_t node);
SLW_API const char *slw_graph_node_function(const slw_graph *graph, uint32_t node);

/** What the model calls output `index`; "" where it does not say. */
SLW_API const char *slw_graph_output_name(const slw_graph *graph, uint32_t index);

/** Index of the input of that name; SLW_GRAPH_NONE if there is none. */
SLW_API uint32_t slw_graph_find_input(const slw_graph *graph, const char *name);

/** The same for a name of any length that does not end with a NUL. */
SLW_API uint32_t slw_graph_find_input_bytes(const slw_graph *graph, const char *name,
                                            size_t name_bytes);

/** Index of the output of that name, which need not end with a NUL; SLW_GRAPH_NONE if none. */
SLW_API uint32_t slw_graph_find_output_bytes(const slw_graph *graph, const char *name,
                                             size_t name_bytes);

/** The first output tensor of a node, and how many it has; NULL if `node` is out of range. */
SLW_API DLTensor *slw_graph_node_output(const slw_graph *graph, uint32_t node,
                                        uint32_t *num_outputs);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_GRAPH_H_ */
