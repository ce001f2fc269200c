/* SPDX-License-Identifier: Apache-2.0 */
/* Checks every number of a graph.bin once, so that the executor can trust all of them. */
#include "graph_tables.h"
#include "slipway/tensor.h"

slw_status slw_graph_read_layout(const void *blob, size_t size_bytes, slw_graph_layout *layout) {
  const uint8_t *p = blob;
  uint64_t at = SLW_GRAPH_HEADER_BYTES;
  slw_graph_layout l;
  uint32_t version;
  if (size_bytes < SLW_GRAPH_HEADER_BYTES) {
    return SLW_ERROR_TRUNCATED;
  }
  if (slw_load32(p) != SLW_GRAPH_MAGIC) {
    return SLW_ERROR_FORMAT;
  }
  version = slw_load32(p + 4);
  if (version < SLW_GRAPH_VERSION || version > SLW_GRAPH_IMAGE_VERSION) {
    return SLW_ERROR_VERSION;
  }
  l.blob = p;
  l.num_nodes = slw_load32(p + 12);
  l.num_entries = slw_load32(p + 16);
  l.num_inputs = slw_load32(p + 20);
  l.num_outputs = slw_load32(p + 24);
  l.num_args = slw_load32(p + 28);
  l.num_dims = slw_load32(p + 32);
  l.strings_bytes = slw_load32(p + 36);
  l.num_storages = slw_load32(p + 40);
  l.num_names = slw_load32(p + 44);
  l.arena_bytes = slw_load64(p + 48);
  l.num_arenas = slw_load32(p + 56);
  if (l.num_names != 0 && l.num_names != l.num_outputs) {
    return SLW_ERROR_FORMAT;
  }
  l.num_symbols = l.num_open = l.num_code = 0;
  if (version >= SLW_GRAPH_OPEN_VERSION) {
    if (size_bytes < SLW_GRAPH_OPEN_HEADER_BYTES) {
      return SLW_ERROR_TRUNCATED;
    }
    l.num_symbols = slw_load32(p + 64);
    l.num_open = slw_load32(p + 68);
    l.num_code = slw_load32(p + 72);
    at = SLW_GRAPH_OPEN_HEADER_BYTES;
  }
  /* Thirteen sums of at most 2^32 * 24: far below 2^64. */
  l.dims_at = at;
  l.storages_at = at += (uint64_t)l.num_dims * 8U;
  l.nodes_at = at += (uint64_t)l.num_storages * SLW_GRAPH_STORAGE_BYTES;
  l.entries_at = at += (uint64_t)l.num_nodes * SLW_GRAPH_NODE_BYTES;
  l.symbols_at = at += (uint64_t)l.num_entries * SLW_GRAPH_ENTRY_BYTES;
  l.open_at = at += (uint64_t)l.num_symbols * SLW_GRAPH_SYMBOL_BYTES;
  l.code_at = at += (uint64_t)l.num_open * SLW_GRAPH_OPEN_BYTES;
  l.arenas_at = at += (uint64_t)l.num_code * 8U;
  l.args_at = at += (uint64_t)l.num_arenas * SLW_GRAPH_ARENA_BYTES;
  l.inputs_at = at += (uint64_t)l.num_args * 4U;
  l.outputs_at = at += (uint64_t)l.num_inputs * 4U;
  l.names_at = at += (uint64_t)l.num_outputs * 4U;
  l.strings_at = at += (uint64_t)l.num_names * 4U;
  at += l.strings_bytes;
  if (at > size_bytes) {
    return SLW_ERROR_TRUNCATED;
  }
  if (at != slw_load32(p + 8)) {
    return SLW_ERROR_FORMAT;
  }
  *layout = l;
  return SLW_OK;
}

/* The arenas follow one another; the first begins at 0. */
static slw_status check_arenas(const slw_graph_layout *l) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < l->num_arenas; ++i) {
    uint64_t begin = slw_graph_arena_begin(l->blob + l->arenas_at, i);
    if (begin % SLW_TENSOR_ALIGNMENT != 0 || begin < last || begin > l->arena_bytes ||
        (i == 0U && begin != 0U)) {
      return SLW_ERROR_FORMAT;
    }
    last = begin;
  }
  return SLW_OK;
}

/* Whether a storage reaches from one arena into the next. */
static int crosses(const slw_graph_layout *l, uint64_t offset, uint64_t size_bytes) {
  for (uint32_t i = 0; i < l->num_arenas; ++i) {
    uint64_t begin = slw_graph_arena_begin(l->blob + l->arenas_at, i);
    if (offset < begin && size_bytes > begin - offset) {
      return 1;
    }
  }
  return 0;
}

static slw_status check_storages(const slw_graph_layout *l) {
  for (uint32_t i = 0; i < l->num_storages; ++i) {
    const uint8_t *p = l->blob + l->storages_at + (size_t)i * SLW_GRAPH_STORAGE_BYTES;
    uint64_t offset = slw_load64(p);
    if (offset % SLW_TENSOR_ALIGNMENT != 0 ||
        !slw_in_range(offset, slw_load64(p + 8), l->arena_bytes) ||
        crosses(l, offset, slw_load64(p + 8))) {
      return SLW_ERROR_FORMAT;
    }
  }
  return SLW_OK;
}

static slw_status check_entries(const slw_graph_layout *l) {
  for (uint32_t i = 0; i < l->num_entries; ++i) {
    slw_graph_entry entry = slw_graph_read_entry(l->blob + l->entries_at, i);
    int64_t shape[SLW_TENSOR_MAX_NDIM];
    size_t bytes = 0;
    const uint8_t *storage;
    if (entry.ndim > SLW_TENSOR_MAX_NDIM ||
        !slw_in_range(entry.first_dim, entry.ndim, l->num_dims) ||
        entry.storage >= l->num_storages) {
      return SLW_ERROR_FORMAT;
    }
    for (uint32_t d = 0; d < entry.ndim; ++d) {
      shape[d] = (int64_t)slw_load64(l->blob + l->dims_at + ((size_t)entry.first_dim + d) * 8U);
    }
    storage = l->blob + l->storages_at + (size_t)entry.storage * SLW_GRAPH_STORAGE_BYTES;
    if (slw_tensor_size_bytes(shape, (int32_t)entry.ndim, entry.dtype, &bytes) != SLW_OK ||
        bytes > slw_load64(storage + 8)) {
      return SLW_ERROR_FORMAT;
    }
  }
  return SLW_OK;
}

static slw_status check_nodes(const slw_graph_layout *l) {
  for (uint32_t i = 0; i < l->num_nodes; ++i) {
    slw_graph_node node = slw_graph_read_node(l->blob + l->nodes_at, i);
    if (node.name >= l->strings_bytes ||
        (node.function >= l->strings_bytes && node.function != SLW_GRAPH_NONE) ||
        !slw_in_range(node.first_arg, node.num_args, l->num_args) || node.num_outputs == 0 ||
        !slw_in_range(node.first_entry, node.num_outputs, l->num_entries)) {
      return SLW_ERROR_FORMAT;
    }
  }
  return SLW_OK;
}

static slw_status check_indices(const slw_graph_layout *l, uint64_t at, uint32_t count,
                                uint32_t limit) {
  for (uint32_t i = 0; i < count; ++i) {
    if (slw_graph_read_index(l->blob + at, i) >= limit) {
      return SLW_ERROR_FORMAT;
    }
  }
  return SLW_OK;
}

slw_status slw_graph_check(const void *blob, size_t size_bytes, size_t *tables_size_bytes,
                           uint64_t *arena_size_bytes) {
  slw_graph_layout l;
  uint64_t tables;
  slw_status status = slw_graph_read_layout(blob, size_bytes, &l);
  if (status != SLW_OK) {
    return status;
  }
  if (l.strings_bytes == 0 || l.blob[l.strings_at + l.strings_bytes - 1U] != 0) {
    return SLW_ERROR_FORMAT;
  }
  status = check_arenas(&l);
  if (status == SLW_OK) {
    status = check_storages(&l);
  }
  if (status == SLW_OK) {
    status = check_entries(&l);
  }
  if (status == SLW_OK) {
    status = check_nodes(&l);
  }
  if (status == SLW_OK) {
    status = check_indices(&l, l.args_at, l.num_args, l.num_entries);
  }
  if (status == SLW_OK) {
    status = check_indices(&l, l.inputs_at, l.num_inputs, l.num_nodes);
  }
  if (status == SLW_OK) {
    status = check_indices(&l, l.outputs_at, l.num_outputs, l.num_entries);
  }
  if (status == SLW_OK) {
    status = check_indices(&l, l.names_at, l.num_names, l.strings_bytes);
  }
  if (status == SLW_OK) {
    status = slw_graph_check_sizes(&l);
  }
  if (status != SLW_OK) {
    return status;
  }
  tables = (uint64_t)l.num_args * sizeof(TVMFFIAny) + (uint64_t)l.num_entries * sizeof(DLTensor) +
           (uint64_t)l.num_nodes * sizeof(slw_graph_op);
  if (l.num_open > 0) { /* the dims as they are now, and the sizes twice */
    tables += ((uint64_t)l.num_dims + 2U * (uint64_t)l.num_symbols) * sizeof(int64_t);
  }
  if (tables > SIZE_MAX / 2 || l.arena_bytes > SIZE_MAX / 2) {
    return SLW_ERROR_MEMORY;
  }
  *tables_size_bytes = (size_t)tables;
  *arena_size_bytes = l.arena_bytes;
  return SLW_OK;
}
