/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions that are known only when the model runs: formulas of named sizes, evaluated when an
 * input of another shape is given. The dims of graph.bin are upper bounds then: no value is taken
 * that is larger, whatever a formula says, so that every tensor stays inside of its storage. */
#include <string.h>

#include "graph_tables.h"

#define DEPTH 16 /* of a formula's stack */

enum { CONSTANT, SYMBOL, ADD, SUBTRACT, MULTIPLY, FLOOR_DIVIDE, FLOOR_MODULO, MINIMUM, MAXIMUM };

typedef struct {
  uint32_t dim, first, count;
} open_dim;

typedef struct {
  uint32_t name, teller; /* 0, or one more than the entry that tells it */
  int64_t low, high;
} symbol;

static open_dim read_open(const uint8_t *table, uint32_t index) {
  const uint8_t *p = table + (size_t)index * SLW_GRAPH_OPEN_BYTES;
  open_dim found = {slw_load32(p), slw_load32(p + 4), slw_load32(p + 8)};
  return found;
}

static symbol read_symbol(const uint8_t *table, uint32_t index) {
  const uint8_t *p = table + (size_t)index * SLW_GRAPH_SYMBOL_BYTES;
  symbol found = {slw_load32(p), slw_load32(p + 4), (int64_t)slw_load64(p + 8),
                  (int64_t)slw_load64(p + 16)};
  return found;
}

static unsigned operation_of(uint64_t word) { return (unsigned)(word & 15U); }

/* The upper 60 bits, with their sign. */
static int64_t value_of(uint64_t word) {
  uint64_t value = word >> 4;
  if ((value >> 59) != 0) {
    value |= (uint64_t)15 << 60;
  }
  return (int64_t)value;
}

static int64_t floor_divide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return (a % b < 0) ? quotient - 1 : quotient;
}

/* Sums and products wrap; what becomes of them is compared with the bounds. */
static int compute(unsigned operation, int64_t a, int64_t b, int64_t *result) {
  switch (operation) {
    case ADD:
      *result = (int64_t)((uint64_t)a + (uint64_t)b);
      return 1;
    case SUBTRACT:
      *result = (int64_t)((uint64_t)a - (uint64_t)b);
      return 1;
    case MULTIPLY:
      *result = (int64_t)((uint64_t)a * (uint64_t)b);
      return 1;
    case FLOOR_DIVIDE:
      *result = (b > 0) ? floor_divide(a, b) : 0;
      return b > 0;
    case FLOOR_MODULO:
      *result = (b > 0) ? a - floor_divide(a, b) * b : 0;
      return b > 0;
    case MINIMUM:
      *result = (a < b) ? a : b;
      return 1;
    case MAXIMUM:
      *result = (a > b) ? a : b;
      return 1;
    default:
      return 0;
  }
}

/* The value of a formula in reverse Polish order; 0 for one that is none. */
static int evaluate(const uint8_t *code, open_dim formula, const int64_t *sizes,
                    uint32_t num_sizes, int64_t *result) {
  int64_t stack[DEPTH];
  unsigned used = 0;
  for (uint32_t i = 0; i < formula.count; ++i) {
    uint64_t word = slw_load64(code + ((size_t)formula.first + i) * 8U);
    unsigned operation = operation_of(word);
    int64_t value = value_of(word);
    if (operation <= SYMBOL) {
      if (used == DEPTH || (operation == SYMBOL && (value < 0 || value >= (int64_t)num_sizes))) {
        return 0;
      }
      stack[used++] = (operation == SYMBOL) ? sizes[value] : value;
      continue;
    }
    if (used < 2 || !compute(operation, stack[used - 2U], stack[used - 1U], &value)) {
      return 0;
    }
    stack[used - 2U] = value;
    --used;
  }
  if (used != 1) {
    return 0;
  }
  *result = stack[0];
  return 1;
}

/* Whether an entry is one integer of 32 or 64 bits. */
static int is_number(const slw_graph_layout *l, uint32_t index) {
  slw_graph_entry entry = slw_graph_read_entry(l->blob + l->entries_at, index);
  for (uint32_t i = 0; i < entry.ndim; ++i) {
    if (!slw_in_range(entry.first_dim, entry.ndim, l->num_dims) ||
        slw_load64(l->blob + l->dims_at + ((size_t)entry.first_dim + i) * 8U) != 1U) {
      return 0;
    }
  }
  return entry.dtype.code == kDLInt && entry.dtype.lanes == 1U &&
         (entry.dtype.bits == 32U || entry.dtype.bits == 64U);
}

slw_status slw_graph_check_sizes(const slw_graph_layout *l) {
  for (uint32_t i = 0; i < l->num_symbols; ++i) {
    symbol found = read_symbol(l->blob + l->symbols_at, i);
    if (found.name >= l->strings_bytes || found.low < 0 || found.high < found.low ||
        found.teller > l->num_entries || (found.teller != 0 && !is_number(l, found.teller - 1U))) {
      return SLW_ERROR_FORMAT;
    }
  }
  for (uint32_t i = 0; i < l->num_open; ++i) {
    open_dim found = read_open(l->blob + l->open_at, i);
    if (found.dim >= l->num_dims || !slw_in_range(found.first, found.count, l->num_code)) {
      return SLW_ERROR_FORMAT;
    }
  }
  return SLW_OK;
}

/* Whether every formula has a value within its bounds. */
static int fits(const slw_graph *graph, const int64_t *sizes) {
  for (uint32_t i = 0; i < graph->num_open; ++i) {
    open_dim found = read_open(graph->open_table, i);
    int64_t value = 0;
    int64_t bound = (int64_t)slw_load64(graph->dims_table + (size_t)found.dim * 8U);
    if (!evaluate(graph->code_table, found, sizes, graph->num_symbols, &value) || value < 0 ||
        value > bound) {
      return 0;
    }
  }
  return 1;
}

static void apply(slw_graph *graph, const int64_t *sizes) {
  memmove(graph->sizes, sizes, graph->num_symbols * sizeof sizes[0]);
  for (uint32_t i = 0; i < graph->num_open; ++i) {
    open_dim found = read_open(graph->open_table, i);
    (void)evaluate(graph->code_table, found, sizes, graph->num_symbols,
                   &graph->dims[found.dim]);
  }
}

/* Make each dim negative that `sizes` change, until they are applied. */
static void mark_changes(slw_graph *graph, const int64_t *sizes) {
  for (uint32_t i = 0; i < graph->num_open; ++i) {
    open_dim found = read_open(graph->open_table, i);
    int64_t value = 0;
    if (evaluate(graph->code_table, found, sizes, graph->num_symbols, &value) &&
        value != graph->dims[found.dim]) {
      graph->dims[found.dim] = -1;
    }
  }
}

slw_status slw_graph_init_sizes(slw_graph *graph, const slw_graph_layout *l) {
  graph->num_symbols = l->num_symbols;
  graph->num_open = l->num_open;
  graph->symbols_table = l->blob + l->symbols_at;
  graph->open_table = l->blob + l->open_at;
  graph->code_table = l->blob + l->code_at;
  graph->dims_table = l->blob + l->dims_at;
  for (uint32_t i = 0; i < l->num_dims; ++i) {
    graph->dims[i] = (int64_t)slw_load64(graph->dims_table + (size_t)i * 8U);
  }
  graph->wrong_size = graph->num_symbols;
  for (uint32_t i = 0; i < graph->num_symbols; ++i) {
    symbol found = read_symbol(graph->symbols_table, i);
    graph->sizes[i] = found.high;
    graph->num_told += (found.teller != 0) ? 1U : 0U;
  }
  if (!fits(graph, graph->sizes)) {
    return SLW_ERROR_FORMAT;
  }
  apply(graph, graph->sizes);
  return SLW_OK;
}

/* The number in a tensor, which waits for a device that it is on. */
static slw_status number_in(const slw_graph *graph, const DLTensor *told, int64_t *out) {
  uint64_t room = 0;
  DLTensor here = *told;
  if (told->device.device_type != kDLCPU) {
    here.data = &room;
    here.byte_offset = 0;
    here.device.device_type = kDLCPU;
    here.device.device_id = 0;
    if (graph->fetch == NULL || graph->fetch(told, &here) != SLW_OK) {
      return SLW_ERROR_CALL;
    }
  }
  {
    const uint8_t *value = (const uint8_t *)here.data + here.byte_offset;
    *out = (told->dtype.bits == 64U) ? (int64_t)slw_load64(value)
                                     : (int64_t)(int32_t)slw_load32(value);
  }
  return SLW_OK;
}

slw_status slw_graph_tell_sizes(slw_graph *graph, uint32_t node) {
  int64_t *wanted = graph->sizes + graph->num_symbols;
  uint32_t num_results = 0;
  const DLTensor *results = slw_graph_node_output(graph, node, &num_results);
  uint32_t first = (uint32_t)(results - graph->tensors) + 1U;
  int is_new = 0;
  memcpy(wanted, graph->sizes, graph->num_symbols * sizeof wanted[0]);
  for (uint32_t i = 0; i < graph->num_symbols; ++i) {
    symbol found = read_symbol(graph->symbols_table, i);
    if (found.teller >= first && found.teller - first < num_results) {
      int64_t size = 0;
      if (number_in(graph, &results[found.teller - first], &size) != SLW_OK) {
        return SLW_ERROR_CALL;
      }
      if (size < found.low || size > found.high) {
        graph->wrong_size = i;
        graph->sizes[graph->num_symbols] = size;
        return SLW_ERROR_TENSOR;
      }
      is_new |= size != wanted[i];
      wanted[i] = size;
    }
  }
  if (is_new) {
    if (!fits(graph, wanted)) {
      graph->wrong_size = SLW_GRAPH_NONE;
      return SLW_ERROR_TENSOR;
    }
    apply(graph, wanted);
  }
  return SLW_OK;
}

/* Which of the graph's dims the axes of an input are. */
static uint32_t first_dim_of(const slw_graph *graph, uint32_t input) {
  const DLTensor *tensor = slw_graph_input(graph, input);
  return (uint32_t)(tensor->shape - graph->dims);
}

static int covers(const slw_graph *graph, uint32_t input, uint32_t dim) {
  uint32_t first = first_dim_of(graph, input);
  return dim >= first && dim - first < (uint32_t)slw_graph_input(graph, input)->ndim;
}

int slw_graph_is_open(const slw_graph *graph, uint32_t input) {
  for (uint32_t i = 0; i < graph->num_open; ++i) {
    if (covers(graph, input, read_open(graph->open_table, i).dim)) {
      return 1;
    }
  }
  return 0;
}

/* The symbol of which a formula is some times and a number more; num_symbols for another one. */
static uint32_t linear_in(const slw_graph *graph, open_dim formula, int64_t *factor,
                          int64_t *offset) {
  int64_t times[DEPTH];
  int64_t plus[DEPTH];
  uint32_t found = graph->num_symbols;
  unsigned used = 0;
  for (uint32_t i = 0; i < formula.count; ++i) {
    uint64_t word = slw_load64(graph->code_table + ((size_t)formula.first + i) * 8U);
    unsigned operation = operation_of(word);
    int64_t value = value_of(word);
    if (operation <= SYMBOL) {
      int is_symbol = operation == SYMBOL;
      if (used == DEPTH || (is_symbol && (found != graph->num_symbols || value < 0 ||
                                          value >= (int64_t)graph->num_symbols))) {
        return graph->num_symbols;
      }
      found = is_symbol ? (uint32_t)value : found;
      times[used] = is_symbol;
      plus[used++] = is_symbol ? 0 : value;
      continue;
    }
    if (used < 2 || operation > MULTIPLY) {
      return graph->num_symbols;
    }
    int64_t *a = &times[used - 2U]; /* only one of the two has the symbol */
    if (operation == MULTIPLY) {
      int64_t other = (*a != 0) ? plus[used - 1U] : plus[used - 2U];
      (void)compute(MULTIPLY, *a + times[used - 1U], other, a);
    } else {
      (void)compute(operation, *a, times[used - 1U], a);
    }
    (void)compute(operation, plus[used - 2U], plus[used - 1U], &plus[used - 2U]);
    --used;
  }
  if (used != 1 || times[0] < 1) {
    return graph->num_symbols;
  }
  *factor = times[0];
  *offset = plus[0];
  return found;
}

uint32_t slw_graph_axis_symbol(const slw_graph *graph, uint32_t input, uint32_t axis,
                               int64_t *factor, int64_t *offset) {
  *factor = 1;
  *offset = 0;
  for (uint32_t i = 0; i < graph->num_open; ++i) {
    open_dim found = read_open(graph->open_table, i);
    if (found.dim == first_dim_of(graph, input) + axis) {
      return linear_in(graph, found, factor, offset);
    }
  }
  return SLW_GRAPH_NONE;
}

const char *slw_graph_symbol(const slw_graph *graph, uint32_t index, int64_t *low, int64_t *high) {
  symbol found = read_symbol(graph->symbols_table, index);
  *low = found.low;
  *high = found.high;
  return graph->strings + found.name;
}

slw_status slw_graph_resize(slw_graph *graph, uint32_t input, const int64_t *shape,
                            uint8_t *changed, uint32_t *outside) {
  const DLTensor *tensor = slw_graph_input(graph, input);
  int64_t *wanted = graph->sizes + graph->num_symbols;
  uint32_t first = first_dim_of(graph, input);
  *outside = SLW_GRAPH_NONE;
  for (uint32_t i = 0; i < graph->num_symbols; ++i) {
    symbol found = read_symbol(graph->symbols_table, i);
    wanted[i] = (found.teller != 0) ? found.low : graph->sizes[i]; /* till the next run tells it */
  }
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) {
    int64_t factor = 1;
    int64_t offset = 0;
    uint32_t found = slw_graph_axis_symbol(graph, input, (uint32_t)axis, &factor, &offset);
    if (found < graph->num_symbols) {
      symbol range = read_symbol(graph->symbols_table, found);
      int64_t size = shape[axis];
      (void)compute(SUBTRACT, size, offset, &size);
      size /= factor; /* a tail makes the axis another size below */
      if (size < range.low || size > range.high) {
        *outside = (uint32_t)axis;
        return SLW_ERROR_TENSOR;
      }
      wanted[found] = size;
    } else if (found == SLW_GRAPH_NONE && shape[axis] != tensor->shape[axis]) {
      return SLW_ERROR_TENSOR;
    }
  }
  for (uint32_t i = 0; i < graph->num_open; ++i) {
    open_dim found = read_open(graph->open_table, i);
    int64_t value = 0;
    if (covers(graph, input, found.dim) &&
        (!evaluate(graph->code_table, found, wanted, graph->num_symbols, &value) ||
         value != shape[found.dim - first])) {
      return SLW_ERROR_TENSOR;
    }
  }
  if (!fits(graph, wanted)) {
    return SLW_ERROR_TENSOR;
  }
  mark_changes(graph, wanted);
  for (uint32_t i = 0; i < graph->num_inputs; ++i) {
    tensor = slw_graph_input(graph, i);
    for (int32_t axis = 0; axis < tensor->ndim; ++axis) {
      if (tensor->shape[axis] < 0) {
        changed[i] = 1;
      }
    }
  }
  apply(graph, wanted);
  return SLW_OK;
}
