/* Call add_one.so from C: dlopen, dlsym, two tensors. See build_add_one.py. */
#include <dlfcn.h>
#include <stdio.h>

#include "slipway/abi.h"

int main(int argc, char **argv) {
  static _Alignas(64) float a[1024], b[1024];
  int64_t shape[1] = {1024};
  DLTensor in = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  DLTensor out = {b, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  TVMFFIAny result = {0}, args[2] = {{.type_index = kTVMFFIDLTensorPtr, .v_ptr = &in},
                                     {.type_index = kTVMFFIDLTensorPtr, .v_ptr = &out}};
  void *library = dlopen(argc > 1 ? argv[1] : "./add_one.so", RTLD_NOW);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  int (*add_one)(void *, const TVMFFIAny *, int32_t, TVMFFIAny *) = NULL;
  *(void **)&add_one = dlsym(library, "__tvm_ffi_add_one");
  for (int i = 0; i < 1024; i++) a[i] = (float)i;
  if (add_one == NULL || add_one(NULL, args, 2, &result) != 0) return 1;
  printf("b[0] = %g, b[1023] = %g\n", (double)b[0], (double)b[1023]);
  return b[0] == 1.0F && b[1023] == 1024.0F ? 0 : 1;
}
