/* A library in the exported ABI, by hand: good kernels and bad ones. Compiled without libc. */
#include "slipway/abi.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);
EXPORT void *(*__slipway_workspace_alloc)(uint64_t nbytes, int32_t type, int32_t id);

static DLTensor *tensor_of(const TVMFFIAny *arg) {
  return arg->type_index == kTVMFFITensor ? (DLTensor *)(void *)((char *)arg->v_ptr + 24)
                                          : (DLTensor *)arg->v_ptr;
}

/* b = a + 1, float32 */
EXPORT int __tvm_ffi_myadd(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  const DLTensor *a;
  DLTensor *b;
  int64_t i, size = 1;
  (void)self;
  (void)result;
  if (n != 2) {
    __TVMFFIErrorSetRaisedFromCStr("ValueError", "myadd: expects 2 arguments");
    return -1;
  }
  a = tensor_of(&args[0]);
  b = tensor_of(&args[1]);
  for (i = 0; i < a->ndim; ++i) {
    size *= a->shape[i];
  }
  for (i = 0; i < size; ++i) {
    ((float *)b->data)[i] = ((const float *)a->data)[i] + 1.0f;
  }
  return 0;
}

EXPORT int __tvm_ffi_add_ints(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  (void)self;
  (void)n;
  result->type_index = kTVMFFIInt;
  result->v_int64 = args[0].v_int64 + args[1].v_int64;
  return 0;
}

EXPORT int __tvm_ffi_segfault(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  (void)self, (void)args, (void)n, (void)result;
  *(volatile int *)64 = 1;
  return 0;
}

EXPORT int __tvm_ffi_trap(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  (void)self, (void)args, (void)n, (void)result;
  __builtin_trap();
}

EXPORT int __tvm_ffi_divide_by_zero(void *self, const TVMFFIAny *args, int32_t n,
                                    TVMFFIAny *result) {
  volatile int64_t zero = 0;
  (void)self, (void)args;
  result->type_index = kTVMFFIInt;
  result->v_int64 = (n + 7) / zero;
  return 0;
}

/* Walks off its workspace, a block at a time, until there is nothing to write to. */
EXPORT int __tvm_ffi_write_out_of_bounds(void *self, const TVMFFIAny *args, int32_t n,
                                         TVMFFIAny *result) {
  volatile char *memory = __slipway_workspace_alloc(64, kDLCPU, 0);
  (void)self, (void)args, (void)n, (void)result;
  for (;; memory += 4096) {
    *memory = 1;
  }
}

EXPORT int __tvm_ffi_spin(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  volatile int forever = 1;
  (void)self, (void)args, (void)n, (void)result;
  while (forever) {
  }
  return 0;
}

/* Takes memory until there is none, then fails as a kernel does. */
EXPORT int __tvm_ffi_eat_memory(void *self, const TVMFFIAny *args, int32_t n,
                                TVMFFIAny *result) {
  const uint64_t block = (uint64_t)64 << 20;
  (void)self, (void)args, (void)n, (void)result;
  for (;;) {
    char *memory = __slipway_workspace_alloc(block, kDLCPU, 0);
    uint64_t at;
    if (memory == 0) {
      __TVMFFIErrorSetRaisedFromCStr("MemoryError", "eat_memory: no memory is left");
      return -1;
    }
    for (at = 0; at < block; at += 4096) {
      memory[at] = 1;
    }
  }
}
