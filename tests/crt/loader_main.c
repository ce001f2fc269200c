/* A static program that opens an exported library or model with the runtime's own loader.
 *
 *   loader lib FILE     call add_one, fail and a missing function; print what came of it
 *   loader model FILE   run the model once on ones; print its outputs' first elements
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "slipway/error.h"
#include "slipway/module.h"
#include "slipway/tensor.h"
#include "slipway/threadpool.h"
#include "slipway/timer.h"

#define COUNT 1000

static int report(const char *what) {
  printf("%s: %s: %s\n", what, slw_error_kind(), slw_error_message());
  return 1;
}

static TVMFFIAny tensor_arg(slw_tensor *tensor) {
  TVMFFIAny any = {0};
  any.type_index = kTVMFFITensor;
  any.v_obj = &tensor->object;
  return any;
}

static int run_library(slw_module *module) {
  int64_t shape[1] = {COUNT};
  DLDataType f32 = {kDLFloat, 32, 1};
  DLDevice cpu = {kDLCPU, 0};
  slw_tensor *a = NULL;
  slw_tensor *b = NULL;
  slw_function f;
  TVMFFIAny args[2];
  TVMFFIAny result = {0};
  slw_time_options options = SLW_TIME_OPTIONS_DEFAULT;
  slw_function none = {NULL, NULL};
  double seconds = 0;
  if (slw_tensor_alloc(shape, 1, f32, cpu, &a) != SLW_OK ||
      slw_tensor_alloc(shape, 1, f32, cpu, &b) != SLW_OK) {
    return 2;
  }
  for (int i = 0; i < COUNT; ++i) {
    ((float *)a->tensor.data)[i] = (float)i;
  }
  args[0] = tensor_arg(a);
  args[1] = tensor_arg(b);
  if (slw_module_get_function(module, "__tvm_main__", &f) != SLW_OK ||
      f.call(f.self, args, 2, &result) != 0) {
    return report("add_one");
  }
  for (int i = 0; i < COUNT; ++i) {
    if (((float *)b->tensor.data)[i] != (float)i + 1.0f) {
      printf("wrong at %d\n", i);
      return 1;
    }
  }
  printf("add_one ok, threads %d\n", (int)slw_num_threads());
  options.repeat = 1;
  if (slw_time_evaluate(f, args, 2, &options, none, &seconds) != SLW_OK || !(seconds > 0)) {
    return report("time");
  }
  if (slw_module_get_function(module, "fail", &f) != SLW_OK ||
      f.call(f.self, args, 2, &result) != -1) {
    return 3;
  }
  (void)report("fail");
  if (slw_module_get_function(module, "nothing", &f) != SLW_ERROR_NOT_FOUND) {
    return 4;
  }
  (void)report("nothing");
  slw_object_release(&a->object);
  slw_object_release(&b->object);
  return 0;
}

static int run_model(slw_module *library) {
  slw_function f;
  TVMFFIAny device = {0};
  TVMFFIAny made = {0};
  TVMFFIAny got = {0};
  TVMFFIAny arg = {0};
  TVMFFIAny none = {0};
  slw_module *model;
  device.type_index = kTVMFFIDevice;
  device.v_device.device_type = kDLCPU;
  if (slw_module_get_function(library, "default", &f) != SLW_OK ||
      f.call(f.self, &device, 1, &made) != 0) {
    return report("default");
  }
  model = slw_any_get_module(&made);
  arg.type_index = kTVMFFIInt;
  if (slw_module_get_function(model, "get_input", &f) != SLW_OK ||
      f.call(f.self, &arg, 1, &got) != 0) {
    return report("get_input");
  }
  for (int i = 0; i < 6; ++i) {
    ((float *)slw_any_get_tensor(&got)->data)[i] = (float)i;
  }
  slw_any_clear(&got);
  if (slw_module_get_function(model, "run", &f) != SLW_OK || f.call(f.self, NULL, 0, &none) != 0 ||
      slw_module_get_function(model, "get_output", &f) != SLW_OK ||
      f.call(f.self, &arg, 1, &got) != 0) {
    return report("run");
  }
  slw_any_clear(&made); /* the output keeps the model alive */
  for (int i = 0; i < 6; ++i) {
    printf("%d ", (int)((float *)slw_any_get_tensor(&got)->data)[i]);
  }
  printf("\n");
  slw_any_clear(&got);
  return 0;
}

int main(int argc, char **argv) {
  slw_module *module = NULL;
  int result;
  if (argc != 3) {
    return 2;
  }
  if (slw_module_open(argv[2], &module) != SLW_OK) {
    return report("open");
  }
  if (strcmp(argv[1], "rewritten") == 0) { /* as cp does that puts another file in its place */
    result = (truncate(argv[2], 0) != 0) ? 2 : run_model(module);
    result = (result == 0) ? run_model(module) : result;
  } else {
    result = (strcmp(argv[1], "model") == 0) ? run_model(module) : run_library(module);
  }
  slw_module_release(module);
  return result;
}
