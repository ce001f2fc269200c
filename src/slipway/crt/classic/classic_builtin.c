/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that classic programs get by name, though no library registers them. */
#include <stdlib.h>
#include <string.h>

#include "../posix/graph_json.h"
#include "slipway/classic.h"
#include "slipway/error.h"
#include "slipway/graph_module.h"
#include "slipway/module.h"
#include "slipway/packed.h"
#include "slipway/registry.h"
#include "slipway/tensor.h"
#include "slipway/threadpool.h"

static slw_status find_in_module(void *context, const char *name, slw_function *out) {
  return slw_module_get_function(context, name, out);
}

static int is_int(const TVMFFIAny *value) {
  return value->type_index == kTVMFFIInt && value->v_int64 >= INT32_MIN &&
         value->v_int64 <= INT32_MAX;
}

/* (graph JSON, library, device type, device number) -> graph module, without parameters. */
static int create_executor(void *self, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const char *json = NULL;
  size_t json_bytes = 0;
  uint8_t *blob = NULL;
  size_t blob_bytes = 0;
  slw_module *library = (num_args == 4) ? slw_any_get_module(&args[1]) : NULL;
  slw_module *made = NULL;
  DLDevice device = {kDLCPU, 0};
  slw_status status;
  (void)self;
  if (library == NULL || !slw_object_is_module(&library->object) || !is_int(&args[2]) ||
      !is_int(&args[3]) || slw_any_get_blob(&args[0], &json, &json_bytes) != SLW_OK) {
    return slw_error_setf("TypeError", "tvm.graph_executor.create takes the graph's JSON, a module "
                                       "that was loaded, and the type and number of one device");
  }
  device.device_type = (int32_t)args[2].v_int64;
  device.device_id = (int32_t)args[3].v_int64;
  slw_classic_find_devices();
  if (slw_graph_from_json(json, json_bytes, &blob, &blob_bytes) != SLW_OK) {
    return -1;
  }
  status = slw_graph_module_create_on(device, blob, blob_bytes, find_in_module, library, library,
                                      &made);
  free(blob);
  if (status != SLW_OK) {
    return -1;
  }
  slw_any_set_module(result, made);
  return 0;
}

static int give_system_library(void *self, const TVMFFIAny *args, int32_t num_args,
                               TVMFFIAny *result) {
  slw_module *library = slw_classic_system_library();
  (void)self;
  (void)args;
  (void)num_args;
  slw_module_retain(library);
  slw_any_set_module(result, library);
  return 0;
}

/* (path, format) -> module; the file says what it is. */
static int load_module(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  const char *path = NULL;
  size_t size = 0;
  slw_module *made = NULL;
  (void)self;
  /* Text of the calling convention ends with a NUL, however it is held. */
  if (num_args < 1 || num_args > 2 || slw_any_get_bytes(&args[0], &path, &size) != SLW_OK ||
      args[0].type_index == kTVMFFIByteArrayPtr) {
    return slw_error_setf("TypeError", "runtime.ModuleLoadFromFile takes a path");
  }
  if (slw_module_open(path, &made) != SLW_OK) {
    return -1;
  }
  slw_any_set_module(result, made);
  return 0;
}

static int give_num_threads(void *self, const TVMFFIAny *args, int32_t num_args,
                            TVMFFIAny *result) {
  (void)self;
  (void)args;
  (void)num_args;
  result->type_index = kTVMFFIInt;
  result->v_int64 = slw_num_threads();
  return 0;
}

typedef struct {
  TVMFFIObject object;
  TVMFFIFunctionCell cell;
  const char *name;
} builtin;

/* One strong and one weak reference are the program's; without a deleter nothing is ever freed. */
#define BUILTIN(name, call) \
  { {((uint64_t)1 << 32) | 1U, kTVMFFIFunction, 0, {NULL}}, {call, NULL}, name }

static builtin builtins[] = {
    BUILTIN("module._GetSystemLib", give_system_library),
    BUILTIN("module._LoadFromFile", load_module),
    BUILTIN("runtime.ModuleLoadFromFile", load_module),
    BUILTIN("runtime.NumThreads", give_num_threads),
    BUILTIN("runtime.SystemLib", give_system_library),
    BUILTIN("runtime.config_threadpool", slw_packed_config_threadpool),
    BUILTIN("tvm.graph_executor.create", create_executor),
    BUILTIN("tvm.graph_runtime.create", create_executor),
};
#define NUM_BUILTINS (sizeof builtins / sizeof builtins[0])

TVMFFIObject *slw_classic_builtin(const char *name) {
  for (size_t i = 0; i < NUM_BUILTINS; ++i) {
    if (strcmp(builtins[i].name, name) == 0) {
      slw_object_retain(&builtins[i].object);
      return &builtins[i].object;
    }
  }
  return NULL;
}

void slw_classic_list_builtins(void (*visit)(void *context, const char *name, size_t bytes),
                               void *context) {
  for (size_t i = 0; i < NUM_BUILTINS; ++i) {
    TVMFFIObject *known = NULL;
    if (slw_registry_get(builtins[i].name, &known) == SLW_OK) {
      slw_object_release(known);
    } else {
      visit(context, builtins[i].name, strlen(builtins[i].name));
    }
  }
}
