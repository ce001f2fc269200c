/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_json.h"

#include <stdlib.h>
#include <string.h>

#include "../src/graph_tables.h"
#include "json.h"
#include "slipway/error.h"
#include "slipway/tensor.h"

#define ARENA_ALIGNMENT 64U
#define HEADER_WORDS 16U

typedef struct {
  uint8_t *bytes;
  size_t used, capacity;
  int has_failed; /* no memory; everything after it does nothing */
} byte_table;

typedef enum { GRAPH_DIMS, GRAPH_STORAGES, GRAPH_NODES, GRAPH_ENTRIES, GRAPH_ARGS, GRAPH_INPUTS, GRAPH_OUTPUTS, GRAPH_NAMES, GRAPH_STRINGS, GRAPH_PARTS } graph_part;

typedef struct {
  slw_json json;
  byte_table parts[GRAPH_PARTS];
  uint32_t *first_entries; /* of each node, and one after the last */
  uint64_t *storage_bytes;
  uint32_t types[3]; /* the lists of shapes, data types and storages */
  uint32_t num_nodes, num_entries, num_inputs, num_outputs, num_storages;
  uint64_t arena_bytes;
  const char *wrong; /* what is, when it is not JSON's grammar */
} graph_maker;

static void put(byte_table *to, const void *bytes, size_t size) {
  if (!to->has_failed && size > to->capacity - to->used) {
    const size_t capacity = 2U * (to->used + size);
    uint8_t *grown = realloc(to->bytes, capacity);
    to->has_failed = (grown == NULL) ? 1 : 0;
    to->bytes = (grown != NULL) ? grown : to->bytes;
    to->capacity = (grown != NULL) ? capacity : to->capacity;
  }
  if (!to->has_failed && size > 0) {
    memcpy(to->bytes + to->used, bytes, size);
    to->used += size;
  }
}

static void put64(byte_table *to, uint64_t value) {
  uint8_t bytes[8];
  for (size_t i = 0; i < sizeof bytes; ++i) {
    bytes[i] = (uint8_t)(value >> (8U * i));
  }
  put(to, bytes, sizeof bytes);
}

static void put32(byte_table *to, uint32_t value) {
  uint8_t bytes[4];
  for (size_t i = 0; i < sizeof bytes; ++i) {
    bytes[i] = (uint8_t)(value >> (8U * i));
  }
  put(to, bytes, sizeof bytes);
}

static slw_status wrong(graph_maker *m, const char *what) {
  m->wrong = what;
  return SLW_ERROR_FORMAT;
}

/* A string of the document into the table of strings; its offset there. */
static slw_status put_text(graph_maker *m, uint32_t token, uint32_t *offset) {
  byte_table *strings = &m->parts[GRAPH_STRINGS];
  char *text;
  size_t size = 0;
  slw_status status = SLW_OK;
  if (!slw_json_text(&m->json, token, NULL, &size)) {
    return wrong(m, "a name is not a text");
  }
  *offset = (uint32_t)strings->used;
  text = malloc(size + 1U);
  if (text == NULL) {
    return SLW_ERROR_MEMORY;
  }
  (void)slw_json_text(&m->json, token, text, &size);
  text[size] = '\0';
  if (strlen(text) != size) {
    status = wrong(m, "a name holds a NUL");
  }
  put(strings, text, size + 1U);
  free(text);
  return status;
}

static slw_status read_index(graph_maker *m, uint32_t token, uint32_t bound, uint32_t *value,
                             const char *what) {
  int64_t number = 0;
  if (!slw_json_int(&m->json, token, &number) || number < 0 || number >= (int64_t)bound) {
    return wrong(m, what);
  }
  *value = (uint32_t)number;
  return SLW_OK;
}

static const slw_json_token *array_at(const graph_maker *m, uint32_t token) {
  const slw_json_token *found = (token < m->json.count) ? &m->json.tokens[token] : NULL;
  return (found != NULL && found->type == SLW_JSON_ARRAY) ? found : NULL;
}

/* The number of the entry that [node, output, ...] names; only nodes before `bound` have one. */
static slw_status read_entry(graph_maker *m, uint32_t token, uint32_t bound, uint32_t *entry) {
  static const char WHAT[] = "an input of a node, or of \"heads\", is not [node, output, 0] of a "
                             "node before it";
  const slw_json_token *pair = array_at(m, token);
  uint32_t node = 0;
  uint32_t output = 0;
  slw_status status;
  if (pair == NULL || pair->count < 2) {
    return wrong(m, WHAT);
  }
  status = read_index(m, token + 1U, bound, &node, WHAT);
  if (status == SLW_OK) {
    const uint32_t first = m->first_entries[node];
    status = read_index(m, token + 2U, m->first_entries[node + 1U] - first, &output, WHAT);
    *entry = first + output;
  }
  return status;
}

static slw_status put_args(graph_maker *m, uint32_t inputs, uint32_t node, uint32_t *count) {
  const slw_json_token *list = array_at(m, inputs);
  uint32_t at = inputs + 1U;
  slw_status status = (list == NULL) ? wrong(m, "a node has no list \"inputs\"") : SLW_OK;
  for (uint32_t i = 0; status == SLW_OK && i < list->count; ++i) {
    uint32_t entry = 0;
    status = read_entry(m, at, node, &entry);
    put32(&m->parts[GRAPH_ARGS], entry);
    at = m->json.tokens[at].next;
  }
  for (uint32_t entry = m->first_entries[node]; entry < m->first_entries[node + 1U]; ++entry) {
    put32(&m->parts[GRAPH_ARGS], entry);
  }
  *count = (status == SLW_OK)
               ? list->count + m->first_entries[node + 1U] - m->first_entries[node]
               : 0U;
  return status;
}

static int is_text(const graph_maker *m, uint32_t token, const char *text) {
  const slw_json_token *found = (token < m->json.count) ? &m->json.tokens[token] : NULL;
  return found != NULL && found->size_bytes == strlen(text) &&
         memcmp(found->text, text, found->size_bytes) == 0;
}

/* How many tensors a node makes: an attribute of what is called, 1 where it is not said. */
static slw_status count_outputs(graph_maker *m, uint32_t node, uint32_t *count) {
  const uint32_t attrs = slw_json_find(&m->json, node, "attrs");
  const uint32_t said = slw_json_find(&m->json, attrs, "num_outputs");
  *count = 1;
  return (said == SLW_JSON_NONE)
             ? SLW_OK
             : read_index(m, said, 0xffffU, count, "a node's \"num_outputs\" is no number of them");
}

static slw_status put_node(graph_maker *m, uint32_t token, uint32_t node) {
  const slw_json *json = &m->json;
  const uint32_t attrs = slw_json_find(json, token, "attrs");
  const uint32_t flatten = slw_json_find(json, attrs, "flatten_data");
  uint32_t name = 0;
  uint32_t function = SLW_GRAPH_NONE;
  uint32_t num_args = 0;
  const uint32_t first_arg = (uint32_t)(m->parts[GRAPH_ARGS].used / 4U);
  slw_status status = put_text(m, slw_json_find(json, token, "name"), &name);
  if (flatten != SLW_JSON_NONE && !is_text(m, flatten, "0")) {
    return wrong(m, "\"flatten_data\" is not supported");
  }
  if (status == SLW_OK && !is_text(m, slw_json_find(json, token, "op"), "null")) {
    status = put_text(m, slw_json_find(json, attrs, "func_name"), &function);
    if (status == SLW_OK) {
      status = put_args(m, slw_json_find(json, token, "inputs"), node, &num_args);
    }
  }
  put32(&m->parts[GRAPH_NODES], name);
  put32(&m->parts[GRAPH_NODES], function);
  put32(&m->parts[GRAPH_NODES], first_arg);
  put32(&m->parts[GRAPH_NODES], num_args);
  put32(&m->parts[GRAPH_NODES], m->first_entries[node]);
  put32(&m->parts[GRAPH_NODES], m->first_entries[node + 1U] - m->first_entries[node]);
  return status;
}

/* The list in ["list_shape", [...]] that the graph's attributes have under a name. */
static uint32_t attribute(const graph_maker *m, const char *name) {
  const uint32_t pair = slw_json_find(&m->json, slw_json_find(&m->json, 0, "attrs"), name);
  const slw_json_token *list = array_at(m, pair);
  return (list != NULL && list->count == 2 && array_at(m, m->json.tokens[pair + 1U].next) != NULL)
             ? m->json.tokens[pair + 1U].next
             : SLW_JSON_NONE;
}

static slw_status find_types(graph_maker *m) {
  static const char *const LISTS[] = {"shape", "dltype", "storage_id"};
  if (attribute(m, "images") != SLW_JSON_NONE) {
    return wrong(m, "it has images of a GPU, which a .tar or .so of the model tells of: load that");
  }
  for (size_t i = 0; i < 3; ++i) {
    m->types[i] = attribute(m, LISTS[i]);
    if (m->types[i] == SLW_JSON_NONE || m->json.tokens[m->types[i]].count != m->num_entries) {
      return wrong(m, "\"attrs\" has not one shape, dltype and storage_id for each tensor");
    }
  }
  return SLW_OK;
}

static slw_status put_nodes(graph_maker *m) {
  const uint32_t nodes = slw_json_find(&m->json, 0, "nodes");
  const slw_json_token *list = array_at(m, nodes);
  uint32_t at = nodes + 1U;
  slw_status status = SLW_OK;
  if (list == NULL) {
    return wrong(m, "there is no list \"nodes\"");
  }
  m->num_nodes = list->count;
  m->first_entries = calloc((size_t)m->num_nodes + 1U, sizeof m->first_entries[0]);
  if (m->first_entries == NULL) {
    return SLW_ERROR_MEMORY;
  }
  for (uint32_t i = 0; status == SLW_OK && i < m->num_nodes; ++i) {
    uint32_t outputs = 0;
    status = count_outputs(m, at, &outputs);
    m->first_entries[i + 1U] = m->first_entries[i] + outputs; /* a token each, so it cannot wrap */
    if (m->first_entries[i + 1U] < m->first_entries[i]) {
      status = wrong(m, "the nodes have too many outputs");
    }
    at = m->json.tokens[at].next;
  }
  m->num_entries = m->first_entries[m->num_nodes];
  at = nodes + 1U;
  if (status == SLW_OK) {
    status = find_types(m); /* as many as entries, before memory is taken for these */
  }
  for (uint32_t i = 0; status == SLW_OK && i < m->num_nodes; ++i) {
    status = put_node(m, at, i);
    at = m->json.tokens[at].next;
  }
  return status;
}

/* "float32", "int8x4", "bool", ... */
static int read_dtype(const graph_maker *m, uint32_t token, DLDataType *out) {
  static const struct {
    const char *name;
    uint8_t code, bits;
  } KINDS[] = {{"bool", kDLBool, 8},          {"float8_e4m3fn", 10, 8}, {"float8_e4m3fnuz", 11, 8},
               {"float8_e5m2", 12, 8},        {"float8_e5m2fnuz", 13, 8},
               {"float8_e8m0fnu", 14, 8},     {"float4_e2m1fn", 17, 4}, {"int", kDLInt, 0},
               {"uint", kDLUInt, 0},          {"float", kDLFloat, 0},   {"bfloat", kDLBfloat, 0},
               {"handle", kDLOpaqueHandle, 64}};
  const slw_json_token *text = (token < m->json.count) ? &m->json.tokens[token] : NULL;
  for (size_t i = 0; text != NULL && i < sizeof KINDS / sizeof KINDS[0]; ++i) {
    const size_t length = strlen(KINDS[i].name);
    unsigned numbers[2] = {0, 1};
    size_t at = length;
    if (text->size_bytes < length || memcmp(text->text, KINDS[i].name, length) != 0) {
      continue;
    }
    for (size_t n = (KINDS[i].bits != 0U) ? 1U : 0U; n < 2U; ++n) {
      if (n == 1U && (at == text->size_bytes || text->text[at++] != 'x')) {
        break;
      }
      numbers[n] = 0;
      while (at < text->size_bytes && text->text[at] >= '0' && text->text[at] <= '9' &&
             numbers[n] < 6553U) {
        numbers[n] = 10U * numbers[n] + (unsigned)(text->text[at++] - '0');
      }
    }
    out->code = KINDS[i].code;
    out->bits = (uint8_t)((KINDS[i].bits != 0U) ? KINDS[i].bits : numbers[0]);
    out->lanes = (uint16_t)numbers[1];
    if (at == text->size_bytes && out->bits > 0 && numbers[0] < 256U && out->lanes > 0) {
      return 1;
    }
  }
  return 0;
}

static slw_status put_entry(graph_maker *m, uint32_t shape, uint32_t dtype, uint32_t storage) {
  const slw_json_token *dims = array_at(m, shape);
  int64_t extents[SLW_TENSOR_MAX_NDIM];
  DLDataType type;
  uint32_t at = shape + 1U;
  uint32_t position = 0;
  size_t size = 0;
  byte_table *entries = &m->parts[GRAPH_ENTRIES];
  const uint32_t first_dim = (uint32_t)(m->parts[GRAPH_DIMS].used / 8U);
  slw_status status = read_index(m, storage, m->num_entries, &position, "a \"storage_id\" is out of "
                                                                     "range");
  if (status != SLW_OK) {
    return status;
  }
  if (dims == NULL || dims->count > SLW_TENSOR_MAX_NDIM) {
    return wrong(m, "a shape is not a list of at most 16 extents");
  }
  if (!read_dtype(m, dtype, &type)) {
    return wrong(m, "a \"dltype\" is no data type");
  }
  for (uint32_t i = 0; i < dims->count; ++i) {
    if (!slw_json_int(&m->json, at, &extents[i])) {
      return wrong(m, "an extent of a shape is not a number");
    }
    put64(&m->parts[GRAPH_DIMS], (uint64_t)extents[i]);
    at = m->json.tokens[at].next;
  }
  if (slw_tensor_size_bytes(extents, (int32_t)dims->count, type, &size) != SLW_OK) {
    return wrong(m, "a shape is of no tensor");
  }
  if (size > m->storage_bytes[position]) {
    m->storage_bytes[position] = size;
  }
  if (position >= m->num_storages) {
    m->num_storages = position + 1U;
  }
  put32(entries, (uint32_t)type.code | (uint32_t)type.bits << 8 | (uint32_t)type.lanes << 16);
  put32(entries, dims->count);
  put32(entries, first_dim);
  put32(entries, position);
  return SLW_OK;
}

static slw_status put_entries(graph_maker *m) {
  uint32_t at[3];
  slw_status status = SLW_OK;
  m->storage_bytes = calloc((size_t)m->num_entries + 1U, sizeof m->storage_bytes[0]);
  if (m->storage_bytes == NULL) {
    return SLW_ERROR_MEMORY;
  }
  for (size_t i = 0; i < 3; ++i) {
    at[i] = m->types[i] + 1U;
  }
  for (uint32_t i = 0; status == SLW_OK && i < m->num_entries; ++i) {
    status = put_entry(m, at[0], at[1], at[2]);
    for (size_t list = 0; list < 3; ++list) {
      at[list] = m->json.tokens[at[list]].next;
    }
  }
  for (uint32_t i = 0; status == SLW_OK && i < m->num_storages; ++i) {
    put64(&m->parts[GRAPH_STORAGES], m->arena_bytes);
    put64(&m->parts[GRAPH_STORAGES], m->storage_bytes[i]);
    if (m->storage_bytes[i] > UINT64_MAX / 4U - m->arena_bytes) {
      return wrong(m, "the tensors are larger than any memory");
    }
    m->arena_bytes += (m->storage_bytes[i] + ARENA_ALIGNMENT - 1U) & ~(uint64_t)(ARENA_ALIGNMENT - 1U);
  }
  return status;
}

static slw_status put_ends(graph_maker *m) {
  const uint32_t inputs = slw_json_find(&m->json, 0, "arg_nodes");
  const uint32_t outputs = slw_json_find(&m->json, 0, "heads");
  const uint32_t names = attribute(m, "output_names");
  const slw_json_token *list = array_at(m, inputs);
  uint32_t value = 0;
  uint32_t at = inputs + 1U;
  slw_status status = SLW_OK;
  if (list == NULL || array_at(m, outputs) == NULL) {
    return wrong(m, "there is no list \"arg_nodes\" or \"heads\"");
  }
  m->num_inputs = list->count;
  for (uint32_t i = 0; status == SLW_OK && i < m->num_inputs; ++i, at = m->json.tokens[at].next) {
    status = read_index(m, at, m->num_nodes, &value, "one of \"arg_nodes\" is not a node");
    put32(&m->parts[GRAPH_INPUTS], value);
  }
  m->num_outputs = m->json.tokens[outputs].count;
  at = outputs + 1U;
  for (uint32_t i = 0; status == SLW_OK && i < m->num_outputs; ++i, at = m->json.tokens[at].next) {
    status = read_entry(m, at, m->num_nodes, &value);
    put32(&m->parts[GRAPH_OUTPUTS], value);
  }
  if (status == SLW_OK && names != SLW_JSON_NONE &&
      m->json.tokens[names].count == m->num_outputs) {
    at = names + 1U;
    for (uint32_t i = 0; status == SLW_OK && i < m->num_outputs; ++i) {
      status = put_text(m, at, &value);
      put32(&m->parts[GRAPH_NAMES], value);
      at = m->json.tokens[at].next;
    }
  }
  return status;
}

static slw_status join(const graph_maker *m, uint8_t **blob, size_t *blob_bytes) {
  byte_table all = {NULL, 0, 0, 0};
  size_t total = SLW_GRAPH_HEADER_BYTES;
  for (size_t i = 0; i < GRAPH_PARTS; ++i) {
    total += m->parts[i].used;
    all.has_failed |= m->parts[i].has_failed;
  }
  if (total > UINT32_MAX) {
    return SLW_ERROR_MEMORY;
  }
  {
    const uint32_t header[HEADER_WORDS] = {
        SLW_GRAPH_MAGIC, SLW_GRAPH_VERSION, (uint32_t)total, m->num_nodes, m->num_entries,
        m->num_inputs, m->num_outputs, (uint32_t)(m->parts[GRAPH_ARGS].used / 4U),
        (uint32_t)(m->parts[GRAPH_DIMS].used / 8U), (uint32_t)m->parts[GRAPH_STRINGS].used, m->num_storages,
        (uint32_t)(m->parts[GRAPH_NAMES].used / 4U), (uint32_t)m->arena_bytes,
        (uint32_t)(m->arena_bytes >> 32), 0, 0};
    for (size_t i = 0; i < HEADER_WORDS; ++i) {
      put32(&all, header[i]);
    }
  }
  for (size_t i = 0; i < GRAPH_PARTS; ++i) {
    put(&all, m->parts[i].bytes, m->parts[i].used);
  }
  if (all.has_failed) {
    free(all.bytes);
    return SLW_ERROR_MEMORY;
  }
  *blob = all.bytes;
  *blob_bytes = all.used;
  return SLW_OK;
}

slw_status slw_graph_from_json(const char *json, size_t size_bytes, uint8_t **blob,
                               size_t *blob_bytes) {
  graph_maker m;
  slw_status status;
  memset(&m, 0, sizeof m);
  m.wrong = "it is not JSON";
  status = slw_json_parse(json, size_bytes, &m.json);
  if (status == SLW_OK) {
    put(&m.parts[GRAPH_STRINGS], "", 1);
    status = put_nodes(&m);
  }
  if (status == SLW_OK) {
    status = put_entries(&m);
  }
  if (status == SLW_OK) {
    status = put_ends(&m);
  }
  if (status == SLW_OK) {
    status = join(&m, blob, blob_bytes);
  }
  for (size_t i = 0; i < GRAPH_PARTS; ++i) {
    free(m.parts[i].bytes);
  }
  free(m.first_entries);
  free(m.storage_bytes);
  free(m.json.tokens);
  if (status == SLW_ERROR_MEMORY) {
    (void)slw_error_setf("MemoryError", "no memory for the tables of a graph");
  } else if (status != SLW_OK) {
    (void)slw_error_setf("ArtifactError", "the graph cannot be read: %s. It must be the JSON that "
                                          "get_graph_json() of a compiled model returns.",
                         m.wrong);
  }
  return status;
}
