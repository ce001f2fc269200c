/* Feeds a parser every truncation of a file, and every byte of it changed in four ways.
 * Each try gets its own allocation of the exact size, so that AddressSanitizer sees one byte too
 * many.  usage: parsers KIND FILE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slipway/elf.h"
#include "slipway/error.h"
#include "slipway/graph.h"
#include "slipway/graph_module.h"
#include "slipway/metadata.h"
#include "slipway/params.h"
#include "slipway/tar.h"

#define LARGEST_SPAN ((uint64_t)1 << 20)

static unsigned long accepted;
static unsigned long tried;

static int kernel(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  (void)self;
  (void)args;
  (void)num_args;
  (void)result;
  return 0;
}

static slw_status lookup(void *context, const char *name, slw_function *out) {
  (void)context;
  (void)strlen(name);
  out->call = kernel;
  out->self = NULL;
  return SLW_OK;
}

static int try_tar(const uint8_t *bytes, size_t size) {
  slw_tar_member member;
  size_t offset = 0;
  unsigned sum = 0;
  slw_status status;
  while ((status = slw_tar_next(bytes, size, &offset, &member)) == SLW_OK) {
    for (size_t i = 0; i < member.size_bytes; ++i) {
      sum += member.data[i];
    }
    sum += (unsigned)strlen(member.name);
  }
  return status == SLW_ERROR_NOT_FOUND;
}

static int try_elf(const uint8_t *bytes, size_t size) {
  slw_elf elf;
  const char *missing = NULL;
  const uint8_t *data = NULL;
  size_t data_bytes = 0;
  uint8_t *memory;
  slw_status status = slw_elf_parse(&elf, bytes, size, 4096);
  if (status != SLW_OK) {
    return 0;
  }
  for (uint32_t i = 0; i < elf.num_symbols; ++i) {
    const char *name = slw_elf_exported_name(&elf, i);
    if (name != NULL) {
      (void)strlen(name);
    }
  }
  for (uint32_t i = 0; i < elf.num_segments; ++i) {
    uint64_t offset = 0;
    uint64_t length = 0;
    unsigned flags = 0;
    slw_elf_pages(&elf, i, &offset, &length, &flags);
    if (length > 0 && (offset > elf.span_bytes || length > elf.span_bytes - offset)) {
      abort();
    }
  }
  if (slw_elf_symbol_data(&elf, "__slipway_metadata", &data, &data_bytes) == SLW_OK) {
    slw_text value;
    (void)slw_metadata_find((const char *)data, data_bytes, "isa", &value);
  }
  if (elf.span_bytes > LARGEST_SPAN) {
    return 0;
  }
  memory = calloc(1, (size_t)elf.span_bytes);
  status = slw_elf_load(&elf, memory, &missing);
  free(memory);
  return status == SLW_OK;
}

static int try_graph(const uint8_t *bytes, size_t size) {
  slw_module *module = NULL;
  size_t tables = 0;
  uint64_t arena = 0;
  if (slw_graph_check(bytes, size, &tables, &arena) != SLW_OK || arena > LARGEST_SPAN) {
    return 0;
  }
  if (slw_graph_module_create(bytes, size, lookup, NULL, NULL, &module) == SLW_OK) {
    slw_function function;
    TVMFFIAny result;
    static const char *const METHODS[] = {"get_input_info", "get_output_info", "get_node_info",
                                          "run"};
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; ++i) {
      memset(&result, 0, sizeof result);
      if (slw_module_get_function(module, METHODS[i], &function) != SLW_OK) {
        abort();
      }
      slw_error_clear();
      if (function.call(function.self, NULL, 0, &result) != 0 &&
          (bytes[4] < SLW_GRAPH_TOLD_VERSION || slw_error_message()[0] == '\0')) {
        abort(); /* values may tell a size that does not fit, but it is said */
      }
      slw_any_clear(&result);
    }
    slw_module_release(module);
    return 1;
  }
  return 0;
}

static int try_params(const uint8_t *bytes, size_t size) {
  slw_params params;
  slw_param param;
  unsigned sum = 0;
  slw_status status = slw_params_open(&params, bytes, size);
  while (status == SLW_OK && (status = slw_params_next(&params, &param)) == SLW_OK) {
    for (size_t i = 0; i < param.data_bytes; ++i) {
      sum += param.data[i];
    }
    for (size_t i = 0; i < param.name_bytes; ++i) {
      sum += (unsigned char)param.name[i];
    }
  }
  return status == SLW_ERROR_NOT_FOUND && sum != 1;
}

static int try_metadata(const uint8_t *bytes, size_t size) {
  slw_text value;
  slw_text item;
  size_t offset = 0;
  if (slw_metadata_find((const char *)bytes, size, "isa", &value) == SLW_OK) {
    while (slw_metadata_next(value, &offset, &item) == SLW_OK) {
    }
  }
  return slw_metadata_check((const char *)bytes, size, "a file") == SLW_OK;
}

static void try_one(int (*parse)(const uint8_t *, size_t), const uint8_t *bytes, size_t size) {
  uint8_t *copy = malloc(size > 0 ? size : 1);
  if (size > 0) {
    memcpy(copy, bytes, size);
  }
  accepted += (unsigned long)(parse(copy, size) != 0);
  ++tried;
  free(copy);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*parse)(const uint8_t *, size_t);
  } KINDS[] = {{"tar", try_tar},       {"elf", try_elf},           {"graph", try_graph},
               {"params", try_params}, {"metadata", try_metadata}};
  static const uint8_t CHANGES[] = {0x01, 0x80, 0xff, 0x10};
  static uint8_t bytes[1 << 20];
  int (*parse)(const uint8_t *, size_t) = NULL;
  size_t size;
  FILE *file = (argc == 3) ? fopen(argv[2], "rb") : NULL;
  for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; ++i) {
    if (argc == 3 && strcmp(argv[1], KINDS[i].name) == 0) {
      parse = KINDS[i].parse;
    }
  }
  if (file == NULL || parse == NULL) {
    return 2;
  }
  size = fread(bytes, 1, sizeof bytes, file);
  (void)fclose(file);
  try_one(parse, bytes, size);
  if (accepted != 1) {
    printf("the unchanged file is refused\n");
    return 1;
  }
  for (size_t cut = 0; cut < size; ++cut) {
    try_one(parse, bytes, cut);
  }
  printf("truncated %lu accepted %lu\n", tried - 1, accepted - 1);
  for (size_t at = 0; at < size; ++at) {
    for (size_t i = 0; i < sizeof CHANGES; ++i) {
      bytes[at] ^= CHANGES[i];
      try_one(parse, bytes, size);
      bytes[at] ^= CHANGES[i];
    }
  }
  printf("changed accepted %lu of %lu\n", accepted, tried);
  return 0;
}
