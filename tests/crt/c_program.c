/* A model run by a program of C that dropped slipway.h and slipway.c beside itself. */
#include <stdio.h>
#include <stdlib.h>

#include "slipway.h"

static void tell(slw_status status) {
  printf("%d %s: %s\n", (int)status, slw_error_kind(), slw_error_message());
}

static void said(int returned) { printf("%d %s\n", returned, TVMGetLastError()); }

static int my_add(TVMValue *args, int *codes, int num_args, TVMRetValueHandle ret, void *resource) {
  TVMValue sum;
  int code = kTVMArgInt;
  if (num_args != 2 || codes[0] != kTVMArgInt || codes[1] != kTVMArgInt) {
    TVMAPISetLastError("TypeError: my_add takes two integers");
    return -1;
  }
  ++*(int *)resource;
  sum.v_int64 = args[0].v_int64 + args[1].v_int64;
  return TVMCFuncSetReturn(ret, &sum, &code, 1);
}

static int echo(TVMValue *args, int *codes, int num_args, TVMRetValueHandle ret, void *resource) {
  (void)resource;
  return num_args == 1 ? TVMCFuncSetReturn(ret, args, codes, 1) : -1;
}

static void finished(void *resource) { *(int *)resource += 100; }

static void classic(void) {
  int calls = 0;
  int count = 0;
  const char **names = NULL;
  TVMFunctionHandle add = NULL, found = NULL, same = NULL;
  TVMValue args[40], result;
  int codes[40], code = -1;
  TVMByteArray bytes = {"0123456789ab\0d", 14};
  float values[6] = {0, 1, 2, 3, 4, 5}, copied[6] = {0};
  int64_t shape[2] = {2, 3};
  TVMArrayHandle array = NULL, other = NULL;
  DLManagedTensor *managed = NULL;
  for (int i = 0; i < 40; ++i) args[i].v_int64 = i, codes[i] = kTVMArgInt;
  if (TVMFuncCreateFromCFunc(my_add, &calls, finished, &add) != 0 ||
      TVMFuncRegisterGlobal("my_add", add, 0) != 0) exit(1);
  said(TVMFuncRegisterGlobal("my_add", add, 0));
  TVMFuncFree(add);
  if (TVMFuncGetGlobal("my_add", &found) != 0 || found == NULL) exit(2);
  if (TVMFuncCall(found, args + 3, codes, 2, &result, &code) != 0) exit(3);
  printf("%d %d %d\n", (int)result.v_int64, code, calls);
  codes[1] = kTVMStr, args[1].v_str = "x";
  said(TVMFuncCall(found, args, codes, 2, &result, &code));
  said(TVMFuncCall(found, args, codes, 40, &result, &code));
  if (TVMFuncCreateFromCFunc(echo, NULL, NULL, &same) != 0) exit(4);
  args[0].v_str = "a text that is longer than eight bytes", codes[0] = kTVMStr;
  if (TVMFuncCall(same, args, codes, 1, &result, &code) != 0) exit(5);
  printf("%s %d\n", result.v_str, code);
  args[0].v_handle = &bytes, codes[0] = kTVMBytes;
  if (TVMFuncCall(same, args, codes, 1, &result, &code) != 0) exit(6);
  printf("%d %d\n", (int)((TVMByteArray *)result.v_handle)->size, code);
  said(TVMFuncCall(NULL, args, codes, 1, &result, &code));
  if (TVMFuncListGlobalNames(&count, &names) != 0) exit(7);
  for (int i = 0; i < count; ++i) printf("name %s\n", names[i]);
  TVMFuncFree(found);
  printf("%d\n", calls);
  said(TVMFuncRemoveGlobal("my_add"));
  printf("%d\n", calls);
  said(TVMFuncRemoveGlobal("my_add"));

  if (TVMArrayAlloc(shape, 2, kDLFloat, 32, 1, kDLCPU, 0, &array) != 0 ||
      TVMArrayCopyFromBytes(array, values, sizeof values) != 0 ||
      TVMArrayToDLPack(array, &managed) != 0) exit(8);
  TVMArrayFree(array);
  if (TVMArrayFromDLPack(managed, &other) != 0 ||
      TVMArrayCopyToBytes(other, copied, sizeof copied) != 0) exit(9);
  args[0].v_handle = other, codes[0] = kTVMNDArrayHandle;
  if (TVMFuncCall(same, args, codes, 1, &result, &code) != 0) exit(10);
  printf("%g %d %d\n", (double)copied[5], code, result.v_handle == (void *)other);
  TVMArrayFree(result.v_handle);
  TVMArrayFree(other);
  TVMFuncFree(same);
}

static int sum_tasks(int task, TVMParallelGroupEnv *group, void *data) {
  __atomic_fetch_add((int *)data, task + 100 * (group->num_task == 4), __ATOMIC_RELAXED);
  return 0;
}

static int leave_mark(void *data) {
  ++*(int *)data;
  return 0;
}

static void backend(void) {
  int sum = 0, runs = 0;
  void *once = NULL;
  TVMFunctionHandle missing = NULL;
  void *memory = TVMBackendAllocWorkspace(kDLCPU, 0, 1000, kDLFloat, 32);
  if (memory == NULL || TVMBackendFreeWorkspace(kDLCPU, 0, memory) != 0) exit(11);
  if (TVMBackendParallelLaunch(sum_tasks, &sum, 4) != 0) exit(12);
  for (int i = 0; i < 3; ++i) TVMBackendRunOnce(&once, leave_mark, &runs, sizeof runs);
  printf("%d %d %d\n", sum, runs, TVMBackendGetFuncFromEnv(NULL, "none", &missing));
}

/* What would end the process: null pointers where none may be. */
static void null_pointers(slw_model *model, float *out) {
  slw_module *module = NULL;
  slw_function function = {NULL, NULL};
  tell(slw_model_open(NULL, &model));
  if (model != NULL) exit(13);
  tell(slw_model_open("no/such/file.so", NULL));
  tell(slw_model_set_input(NULL, "input", out, 4));
  tell(slw_model_run(NULL));
  tell(slw_model_get_output(NULL, 0, out, 4));
  tell(slw_module_open(NULL, &module));
  tell(slw_module_get_function(NULL, "f", &function));
  tell(slw_set_num_threads(-1));
  printf("%d %d %d\n", (int)slw_model_num_inputs(NULL), (int)slw_model_num_outputs(NULL),
         slw_model_input_name(NULL, 0) == NULL && slw_model_input(NULL, 0) == NULL &&
             slw_model_output(NULL, 0) == NULL);
  slw_model_close(NULL);
  slw_module_release(NULL);
}

static void print_outputs(const slw_model *model) {
  for (int32_t i = 0; i < slw_model_num_outputs(model); ++i) {
    const DLTensor *output = slw_model_output(model, i);
    float values[12];
    int64_t count = 1;
    printf(" [");
    for (int32_t d = 0; d < output->ndim; ++d) {
      printf("%s%d", (d > 0) ? " " : "", (int)output->shape[d]);
      count *= output->shape[d];
    }
    printf("]");
    if (slw_model_get_output(model, i, values, (size_t)count * sizeof values[0]) != SLW_OK) exit(14);
    for (int64_t k = 0; k < count; ++k) printf(" %g", (double)values[k]);
  }
  printf("\n");
}

/* Sizes that inputs tell and that a run finds, and a state. */
static void sizes(const char *path) {
  static const float gain[15] = {1, -1, 2, 1, -1, 2, 1, -1, 2, 1, -1, 2, 1, -1, 2};
  static const float x[15] = {1, 2, 3, -4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  slw_model *model = NULL;
  const DLTensor *found;
  if (slw_model_open(path, &model) != SLW_OK) tell(SLW_OK), exit(15);
  found = slw_model_output(model, 1);
  printf("%d %s %s %d\n", (int)slw_model_num_inputs(model), slw_model_input_name(model, 1),
         slw_model_output_name(model, 0) != NULL ? "named" : "none", (int)found->shape[0]);
  for (int64_t rows = 1; rows < 6; rows += 2) {
    const int64_t shape[2] = {rows, 3};
    const size_t bytes = 3U * (size_t)rows * sizeof x[0];
    const slw_status status = slw_model_set_input_shaped(model, "x", x, bytes, shape, 2);
    if (status != SLW_OK) {
      tell(status);
      break;
    }
    if (rows == 3) tell(slw_model_run(model)); /* gain has another number of rows yet */
    if (slw_model_set_input(model, "gain", gain, bytes) != SLW_OK ||
        slw_model_run(model) != SLW_OK) exit(16);
    print_outputs(model);
    if (found != slw_model_output(model, 1)) exit(17);
  }
  tell(slw_model_set_input(model, "x", x, 12));
  tell(slw_model_set_input_shaped(model, "x", x, 12, (const int64_t[2]){2, 3}, 2));
  tell(slw_model_set_input_shaped(model, "x", x, 12, (const int64_t[1]){3}, 1));
  tell(slw_model_set_input_shaped(model, "x", x, 12, NULL, 2));
  tell(slw_model_set_input_shaped(model, "total", x, 12, (const int64_t[1]){3}, 1));
  if (slw_model_reset_states(model) != SLW_OK || slw_model_run(model) != SLW_OK) exit(18);
  print_outputs(model);
  tell(slw_model_reset_states(NULL));
  slw_model_close(model);
}

int main(int argc, char **argv) {
  slw_model *model = NULL, *nothing = NULL;
  float in[3 * 8 * 8], out[4];
  if (argc != 4) return 2;
  for (size_t i = 0; i < sizeof in / sizeof in[0]; ++i) in[i] = 1.0F;
  if (slw_model_open(argv[1], &model) != SLW_OK) return tell(SLW_OK), 1;
  printf("%d %s %d\n", (int)slw_model_num_inputs(model), slw_model_input_name(model, 0),
         (int)slw_model_output(model, 0)->shape[1]);
  if (slw_model_set_input(model, "input", in, sizeof in) != SLW_OK ||
      slw_model_run(model) != SLW_OK ||
      slw_model_get_output(model, 0, out, sizeof out) != SLW_OK) return tell(SLW_OK), 1;
  for (int i = 0; i < 4; ++i) printf("%.6f ", (double)out[i]);
  printf("\n");
  tell(slw_model_set_input(model, "inputs", in, sizeof in));
  tell(slw_model_set_input(model, NULL, in, 3));
  tell(slw_model_get_output(model, 1, out, sizeof out));
  tell(slw_model_get_output(model, 0, out, 4));
  tell(slw_model_set_input(model, "input", NULL, sizeof in));
  tell(slw_model_get_output(model, 0, NULL, sizeof out));
  null_pointers(model, out);
  tell(slw_model_open("no/such/file.so", &nothing));
  tell(slw_model_open(argv[2], &nothing));
  slw_model_close(nothing);
  slw_model_close(model);
  sizes(argv[3]);
  classic();
  backend();
  return 0;
}
