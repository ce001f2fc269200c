/* The graph module with memory that runs out at every point, and kernels that fail.
 * usage: graph GRAPH_BIN PARAMS_BIN */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slipway/error.h"
#include "slipway/graph_module.h"
#include "slipway/platform.h"
#include "slipway/tensor.h"

static long allocations_left = -1; /* -1: no limit */
static long live;

void *slw_platform_alloc(size_t size_bytes, size_t alignment_bytes) {
  void *memory;
  if (allocations_left == 0) {
    return NULL;
  }
  if (allocations_left > 0) {
    --allocations_left;
  }
  if (alignment_bytes < sizeof(void *)) {
    alignment_bytes = sizeof(void *);
  }
  size_bytes = (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  memory = aligned_alloc(alignment_bytes, size_bytes > 0 ? size_bytes : alignment_bytes);
  if (memory != NULL) {
    memset(memory, 0, size_bytes);
    ++live;
  }
  return memory;
}

void slw_platform_free(void *memory) {
  live -= (memory != NULL);
  free(memory);
}

uint64_t slw_platform_time_ns(void) {
  static uint64_t now;
  return now += 1000;
}

void slw_platform_sleep_ms(uint32_t duration_ms) { (void)duration_ms; }

static int add(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  float *a = slw_any_get_tensor(&args[0])->data;
  float *b = slw_any_get_tensor(&args[num_args - 2])->data;
  float *c = slw_any_get_tensor(&args[num_args - 1])->data;
  (void)self;
  (void)result;
  for (int i = 0; i < 6; ++i) {
    c[i] = (num_args == 3) ? a[i] + b[i] : a[i] + 1.0f;
  }
  return 0;
}

static slw_status lookup(void *context, const char *name, slw_function *out) {
  (void)context;
  (void)name;
  out->call = add;
  out->self = NULL;
  return SLW_OK;
}

static size_t load(const char *path, uint8_t *bytes, size_t room) {
  FILE *file = fopen(path, "rb");
  size_t size;
  if (file == NULL) {
    exit(2);
  }
  size = fread(bytes, 1, room, file);
  (void)fclose(file);
  return size;
}

static int call(slw_module *module, const char *name, const TVMFFIAny *args, int32_t num_args,
                TVMFFIAny *result) {
  slw_function function;
  memset(result, 0, sizeof *result);
  if (slw_module_get_function(module, name, &function) != SLW_OK) {
    return -1;
  }
  return function.call(function.self, args, num_args, result);
}

/* One life of a model: 0 if everything worked. */
static int live_once(const uint8_t *graph, size_t graph_size, const uint8_t *params,
                     size_t params_size) {
  slw_module *module = NULL;
  int64_t num_set = 0;
  TVMFFIAny index = {0};
  TVMFFIAny profile_args[2] = {{0}, {0}};
  TVMFFIAny result;
  int failed = 0;
  static const char *const TEXTS[] = {"get_input_info", "get_output_info", "get_node_info"};
  if (slw_graph_module_create(graph, graph_size, lookup, NULL, NULL, &module) != SLW_OK) {
    return 1;
  }
  index.type_index = kTVMFFIInt;
  profile_args[0].type_index = kTVMFFIInt;
  profile_args[0].v_int64 = 2;
  profile_args[1] = profile_args[0];
  failed |= slw_graph_module_load_params(module, params, params_size, &num_set) != SLW_OK;
  failed |= call(module, "run", NULL, 0, &result) != 0;
  failed |= call(module, "get_output", &index, 1, &result) != 0;
  slw_any_clear(&result);
  failed |= call(module, "get_input_name", &index, 1, &result) != 0;
  slw_any_clear(&result);
  failed |= call(module, "profile", profile_args, 2, &result) != 0;
  slw_any_clear(&result);
  for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; ++i) {
    failed |= call(module, TEXTS[i], NULL, 0, &result) != 0;
    slw_any_clear(&result);
  }
  slw_module_release(module);
  return failed;
}

/* Two instances read one block of parameters; one of them writes: 0 if everything worked. */
static int share_once(const uint8_t *graph, size_t graph_size, const uint8_t *params,
                      size_t params_size) {
  slw_module *modules[2] = {NULL, NULL};
  slw_tensor *block = NULL;
  TVMFFIAny args[2] = {{0}, {0}};
  TVMFFIAny result;
  int failed = slw_params_unpack(params, params_size, &block) != SLW_OK;
  for (size_t i = 0; i < 2 && !failed; ++i) {
    failed = slw_graph_module_create(graph, graph_size, lookup, NULL, NULL, &modules[i]) != SLW_OK ||
             slw_graph_module_share_params(modules[i], params, params_size, block) != SLW_OK;
  }
  if (block != NULL) {
    slw_object_release(&block->object); /* the instances hold it now */
  }
  for (size_t i = 0; i < 2 && !failed; ++i) {
    args[0].type_index = kTVMFFIInt;
    args[0].v_int64 = 1;
    failed = call(modules[i], "get_input", args, 1, &args[1]) != 0; /* a copy of its own */
    if (!failed) {
      failed = call(modules[1 - i], "set_input", args, 2, &result) != 0;
      slw_any_clear(&args[1]);
    }
    slw_any_set_module(&args[0], modules[1 - i]);
    failed = failed || call(modules[i], "share_params", args, 1, &result) != 0 ||
             call(modules[i], "run", NULL, 0, &result) != 0;
  }
  slw_module_release(modules[0]);
  slw_module_release(modules[1]);
  return failed;
}

int main(int argc, char **argv) {
  static _Alignas(64) uint8_t graph[1 << 16];
  static uint8_t params[1 << 16];
  long limit;
  size_t graph_size;
  size_t params_size;
  if (argc != 3) {
    return 2;
  }
  graph_size = load(argv[1], graph, sizeof graph);
  params_size = load(argv[2], params, sizeof params);
  for (limit = 0;; ++limit) {
    int failed;
    allocations_left = limit;
    failed = live_once(graph, graph_size, params, params_size) ||
             share_once(graph, graph_size, params, params_size);
    if (live != 0) {
      printf("%ld blocks leak when allocation %ld fails\n", live, limit);
      return 1;
    }
    if (!failed) {
      break;
    }
    if (slw_error_message()[0] == '\0') {
      printf("no error is set when allocation %ld fails\n", limit);
      return 1;
    }
  }
  printf("works with %ld allocations\n", limit);
  return (limit > 5) ? 0 : 1;
}
