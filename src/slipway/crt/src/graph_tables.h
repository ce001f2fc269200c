/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Where things lie in graph.bin. Private to graph.c and graph_check.c; the writer is
 * slipway.runtime.graph.graph_format, which describes each field.
 *
 * A header of 64 bytes, then the tables without gaps: dims (i64), storages (u64 offset, u64
 * bytes), nodes, entries, args, inputs, outputs, names of outputs (u32 each), strings.
 * Where the header counts arenas, there are several, each on a device: they lie one behind the
 * other in the offsets of storages, and a table before the args has u32 kind of device, u32 image, u64
 * first byte of each.  An arena is an image where `image` is not 0: so many texels of four floats in a row,
 * of float16 with the highest bit set.  Version 4 is of models with images: its header is that of
 * version 2.
 * Version 2 is of models with open dimensions: a header of 80 bytes, and after the entries symbols
 * (u32 name, u32 teller, i64 low, i64 high), open dims (u32 dim, u32 first word, u32 words, u32 0) and
 * the words of their formulas (i64). The dims are upper bounds then. The teller of a symbol is 0
 * where inputs tell it; in version 3 it may be one more than an entry, a single integer: its value
 * is the symbol's from then on.
 */
#ifndef SLW_GRAPH_TABLES_H_
#define SLW_GRAPH_TABLES_H_

#include "bytes.h"
#include "slipway/graph.h"

#define SLW_GRAPH_MAGIC 0x47574c53U /* "SLWG" */
#define SLW_GRAPH_HEADER_BYTES 64U
#define SLW_GRAPH_STORAGE_BYTES 16U
#define SLW_GRAPH_NODE_BYTES 24U
#define SLW_GRAPH_ENTRY_BYTES 16U
#define SLW_GRAPH_OPEN_HEADER_BYTES 80U /* of version 2 */
#define SLW_GRAPH_SYMBOL_BYTES 24U
#define SLW_GRAPH_OPEN_BYTES 16U
#define SLW_GRAPH_ARENA_BYTES 16U
#define SLW_GRAPH_HALF_TEXELS 0x80000000U

/** Counts of the header and the places of the tables, all in bytes from the start. */
typedef struct {
  const uint8_t *blob;
  uint32_t num_nodes, num_entries, num_inputs, num_outputs, num_args, num_dims, num_storages;
  uint32_t num_names, strings_bytes; /* num_names: num_outputs, or 0 */
  uint64_t arena_bytes;
  uint64_t dims_at, storages_at, nodes_at, entries_at, args_at, inputs_at, outputs_at;
  uint64_t names_at, strings_at;
  uint32_t num_symbols, num_open, num_code; /* of dimensions known only when the model runs */
  uint64_t symbols_at, open_at, code_at;
  uint32_t num_arenas; /* 0: one, on whatever device the model is put */
  uint64_t arenas_at;
} slw_graph_layout;

typedef struct {
  uint32_t name, function, first_arg, num_args, first_entry, num_outputs;
} slw_graph_node;

typedef struct {
  DLDataType dtype;
  uint32_t ndim, first_dim, storage;
} slw_graph_entry;

slw_status slw_graph_read_layout(const void *blob, size_t size_bytes, slw_graph_layout *layout);

/** Check the tables of open dimensions; what their formulas give is seen when they are evaluated. */
slw_status slw_graph_check_sizes(const slw_graph_layout *layout);

/** Give symbols that the results of a node tell their values.
 * @retval SLW_ERROR_TENSOR  one is out of its range, or an axis is then: `wrong_size` */
slw_status slw_graph_tell_sizes(slw_graph *graph, uint32_t node);

/** Give every open dimension its largest size. `dims` and `sizes` of the graph are there. */
slw_status slw_graph_init_sizes(slw_graph *graph, const slw_graph_layout *layout);

static inline slw_graph_node slw_graph_read_node(const uint8_t *table, uint32_t index) {
  const uint8_t *p = table + (size_t)index * SLW_GRAPH_NODE_BYTES;
  slw_graph_node node = {slw_load32(p),      slw_load32(p + 4),  slw_load32(p + 8),
                         slw_load32(p + 12), slw_load32(p + 16), slw_load32(p + 20)};
  return node;
}

static inline slw_graph_entry slw_graph_read_entry(const uint8_t *table, uint32_t index) {
  const uint8_t *p = table + (size_t)index * SLW_GRAPH_ENTRY_BYTES;
  slw_graph_entry entry = {{p[0], p[1], slw_load16(p + 2)},
                           slw_load32(p + 4),
                           slw_load32(p + 8),
                           slw_load32(p + 12)};
  return entry;
}

/** How many arenas a graph.bin that has been checked tells of. */
static inline uint32_t slw_graph_counts_arenas(const void *blob) {
  return slw_load32((const uint8_t *)blob + 56);
}

static inline uint64_t slw_graph_arena_begin(const uint8_t *table, uint32_t index) {
  return slw_load64(table + (size_t)index * SLW_GRAPH_ARENA_BYTES + 8U);
}

/** The texels of a row of an arena that is an image, with SLW_GRAPH_HALF_TEXELS for float16; else 0. */
static inline uint32_t slw_graph_arena_image(const uint8_t *table, uint32_t index) {
  return slw_load32(table + (size_t)index * SLW_GRAPH_ARENA_BYTES + 4U);
}

static inline uint32_t slw_graph_read_index(const uint8_t *table, uint32_t index) {
  return slw_load32(table + (size_t)index * 4U);
}

#endif /* SLW_GRAPH_TABLES_H_ */
