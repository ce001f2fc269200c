/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/packed.h"

#include <stdlib.h>
#include <string.h>

#include "slipway/error.h"
#include "slipway/graph_module.h"
#include "slipway/module.h"
#include "slipway/timer.h"

#define PATH_TEXT_BYTES 4096
#define TIME_OPTION_ARGS 8
#define MAX_REPEAT 1000000

/* Copy a string argument into a NUL-terminated buffer. */
static int take_text(const TVMFFIAny *arg, char *text, size_t size_bytes) {
  const char *data = NULL;
  size_t length = 0;
  if (slw_any_get_bytes(arg, &data, &length) != SLW_OK || length >= size_bytes ||
      memchr(data, 0, length) != NULL) {
    return slw_error_setf("TypeError", "expected a text of at most %zu bytes", size_bytes - 1);
  }
  memcpy(text, data, length);
  text[length] = '\0';
  return 0;
}

static int take_int32(const TVMFFIAny *arg, const char *name, int32_t minimum, int32_t *value) {
  if ((arg->type_index != kTVMFFIInt && arg->type_index != kTVMFFIBool) ||
      arg->v_int64 < (int64_t)minimum || arg->v_int64 > INT32_MAX) {
    return slw_error_setf("ValueError", "time_evaluator: %s must be an integer of at least %d",
                          name, minimum);
  }
  *value = (int32_t)arg->v_int64;
  return 0;
}

int slw_packed_time_evaluate(void *handle, const TVMFFIAny *args, int32_t num_args,
                             TVMFFIAny *result) {
  slw_function function = {NULL, NULL};
  slw_function preproc = {NULL, NULL};
  slw_time_options options;
  double *results_s;
  int returned = 0;
  slw_status status;
  (void)handle;
  if (num_args < TIME_OPTION_ARGS || slw_any_get_function(&args[0], &function) != SLW_OK) {
    return slw_error_setf("TypeError", "time_evaluator: the first argument must be a function");
  }
  if (take_int32(&args[1], "number", 1, &options.number) != 0 ||
      take_int32(&args[2], "repeat", 1, &options.repeat) != 0 ||
      take_int32(&args[3], "min_repeat_ms", 0, &options.min_repeat_ms) != 0 ||
      take_int32(&args[4], "limit_zero_time_iterations", 0,
                 &options.limit_zero_time_iterations) != 0 ||
      take_int32(&args[5], "cooldown_interval_ms", 0, &options.cooldown_interval_ms) != 0 ||
      take_int32(&args[6], "repeats_to_cooldown", 1, &options.repeats_to_cooldown) != 0) {
    return -1;
  }
  if (options.repeat > MAX_REPEAT) {
    return slw_error_setf("ValueError", "time_evaluator: repeat is limited to %d", MAX_REPEAT);
  }
  if (args[7].type_index != kTVMFFINone && slw_any_get_function(&args[7], &preproc) != SLW_OK) {
    return slw_error_setf("TypeError", "time_evaluator: f_preproc must be a function");
  }
  results_s = calloc((size_t)options.repeat, sizeof *results_s);
  if (results_s == NULL) {
    return slw_error_setf("MemoryError", "time_evaluator: no memory for the results");
  }
  status = slw_time_evaluate(function, args + TIME_OPTION_ARGS, num_args - TIME_OPTION_ARGS,
                             &options, preproc, results_s);
  if (status == SLW_ERROR_CALL) {
    returned = -1; /* the function has set the error */
  } else if (status != SLW_OK ||
             slw_any_set_bytes(result, results_s,
                               (size_t)options.repeat * sizeof *results_s) != SLW_OK) {
    returned = slw_error_setf("RuntimeError", "time_evaluator: %s", slw_status_text(status));
  }
  free(results_s);
  return returned;
}

int slw_packed_module_open(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  char path[PATH_TEXT_BYTES];
  slw_module *module = NULL;
  (void)handle;
  if (num_args != 1 || take_text(&args[0], path, sizeof path) != 0) {
    return slw_error_setf("TypeError", "module_open takes a path");
  }
  if (slw_module_open(path, &module) != SLW_OK) {
    return -1;
  }
  slw_any_set_module(result, module);
  return 0;
}

int slw_packed_function(void *handle, const TVMFFIAny *args, int32_t num_args,
                        TVMFFIAny *result) {
  slw_function function = {NULL, NULL};
  uintptr_t address;
  (void)handle;
  if (num_args != 2 || args[0].type_index != kTVMFFIInt || args[0].v_int64 == 0 ||
      args[1].type_index < kTVMFFIStaticObjectBegin || args[1].v_obj == NULL) {
    return slw_error_setf("TypeError", "function takes an address and what keeps its code");
  }
  address = (uintptr_t)args[0].v_int64;
  memcpy(&function.call, &address, sizeof address);
  if (slw_any_set_function(result, function, args[1].v_obj) != SLW_OK) {
    return slw_error_setf("MemoryError", "no memory for a function");
  }
  return 0;
}

int slw_packed_module_get_function(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result) {
  char name[PATH_TEXT_BYTES];
  slw_module *module = (num_args == 2) ? slw_any_get_module(&args[0]) : NULL;
  slw_function function;
  (void)handle;
  if (module == NULL || take_text(&args[1], name, sizeof name) != 0) {
    return slw_error_setf("TypeError", "get_function takes a module and a name");
  }
  if (slw_module_get_function(module, name, &function) != SLW_OK) {
    return -1;
  }
  if (slw_any_set_function(result, function, &module->object) != SLW_OK) {
    return slw_error_setf("MemoryError", "no memory for a function");
  }
  return 0;
}

static int take_function(const TVMFFIAny *arg, slw_function *out) {
  if (arg->type_index == kTVMFFIInt) {
    uintptr_t address = (uintptr_t)arg->v_int64;
    memcpy(&out->call, &address, sizeof address);
    out->self = NULL;
    return 0;
  }
  return (slw_any_get_function(arg, out) == SLW_OK)
             ? 0
             : slw_error_setf("TypeError", "graph_create: expected a function or its address");
}

int slw_packed_graph_create(void *handle, const TVMFFIAny *args, int32_t num_args,
                            TVMFFIAny *result) {
  const char *blob = NULL;
  size_t size = 0;
  const TVMFFIAny *given;
  DLDevice devices[16];
  size_t num_devices = 0;
  size_t count;
  const char **names;
  slw_function *functions;
  slw_module *module = NULL;
  int returned = 0;
  (void)handle;
  if (num_args < 1 || slw_any_get_bytes(&args[0], &blob, &size) != SLW_OK) {
    return slw_error_setf("TypeError", "graph_create takes bytes, types and numbers of devices, then "
                                       "names and functions");
  }
  given = args + 1;
  num_args -= 1;
  while (num_args >= 2 && num_devices < 16U && given[0].type_index == kTVMFFIInt) {
    devices[num_devices].device_type = (int32_t)given[0].v_int64;
    devices[num_devices++].device_id = (int32_t)given[1].v_int64;
    given += 2;
    num_args -= 2;
  }
  count = (size_t)num_args / 2U;
  names = calloc(count + 1, sizeof *names);
  functions = calloc(count + 1, sizeof *functions);
  if (names == NULL || functions == NULL) {
    returned = slw_error_setf("MemoryError", "graph_create: no memory");
  }
  for (size_t i = 0; i < count && returned == 0; ++i) {
    size_t length = 0;
    /* Strings of the calling convention end with a NUL, whichever way they are held. */
    if (slw_any_get_bytes(&given[2 * i], &names[i], &length) != SLW_OK) {
      returned = slw_error_setf("TypeError", "graph_create: expected a function's name");
    } else {
      returned = take_function(&given[2 * i + 1], &functions[i]);
    }
  }
  if (returned == 0 && slw_graph_module_create_from_table(devices, num_devices, blob, size, names,
                                                          functions, count, &module) != SLW_OK) {
    returned = -1;
  }
  free(names);
  free(functions);
  if (returned == 0) {
    slw_any_set_module(result, module);
  }
  return returned;
}
