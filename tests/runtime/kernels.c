/* Small kernels in the exported-library ABI, as code generation would write them. No libc. */
#include <stdint.h>
#include "slipway/abi.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT slw_error_set_fn __TVMFFIErrorSetRaisedFromCStr;
EXPORT slw_parallel_launch_fn __slipway_parallel_launch;
EXPORT slw_workspace_alloc_fn __slipway_workspace_alloc;
EXPORT slw_workspace_free_fn __slipway_workspace_free;
EXPORT int (*__TVMFFIFunctionGetGlobal)(const TVMFFIByteArray *, void **);
EXPORT int (*__TVMFFIFunctionCall)(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);
EXPORT void *__tvm_ffi__library_ctx;

EXPORT extern const char __slipway_metadata[];
const char __slipway_metadata[] =
    "{\"format_version\":1,\"compiler\":\"test\",\"target\":\"llvm\",\"triple\":\"" TRIPLE
    "\",\"isa\":[" ISA "],\"functions\":[\"add_one\",\"add\",\"fail\",\"silent\",\"count\",\"call\"],"
    "\"entry\":\"add_one\"}";

static int fail(const char *kind, const char *message) {
  if (__TVMFFIErrorSetRaisedFromCStr != 0) {
    __TVMFFIErrorSetRaisedFromCStr(kind, message);
  }
  return -1;
}

static DLTensor *tensor(const TVMFFIAny *arg) {
  if (arg->type_index == 7) return arg->v_ptr;
  if (arg->type_index == 70) return (DLTensor *)((char *)arg->v_obj + 24);
  return 0;
}

static int64_t count_of(const DLTensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; ++i) n *= t->shape[i];
  return n;
}

static float *floats(const DLTensor *t) { return (float *)((char *)t->data + t->byte_offset); }

typedef struct {
  const float *a;
  const float *b;
  float *c;
  int64_t n;
} job;

static int body(void *closure, int32_t task, int32_t tasks) {
  const job *j = closure;
  int64_t from = (int64_t)((uint32_t)j->n) * task / tasks;
  int64_t to = (int64_t)((uint32_t)j->n) * (task + 1) / tasks;
  for (int64_t i = from; i < to; ++i) j->c[i] = j->a[i] + (j->b != 0 ? j->b[i] : 1.0f);
  return 0;
}

static int launch(job *j) {
  return __slipway_parallel_launch != 0 ? __slipway_parallel_launch(body, j, 0) : body(j, 0, 1);
}

/* add_one(a, b): b = a + 1 */
EXPORT int __tvm_ffi_add_one(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  DLTensor *a;
  DLTensor *b;
  if (n != 2) return fail("TypeError", "add_one takes 2 arguments");
  a = tensor(&args[0]);
  b = tensor(&args[1]);
  if (!a || !b || a->dtype.code != 2 || a->dtype.bits != 32)
    return fail("TypeError", "add_one: argument 0 must be a float32 tensor");
  job j = {floats(a), 0, floats(b), count_of(a)};
  return launch(&j);
}

/* add(a, b, c): c = a + b */
EXPORT int __tvm_ffi_add(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  if (n != 3) return fail("TypeError", "add takes 3 arguments");
  DLTensor *a = tensor(&args[0]), *b = tensor(&args[1]), *c = tensor(&args[2]);
  if (!a || !b || !c) return fail("TypeError", "add takes tensors");
  job j = {floats(a), floats(b), floats(c), count_of(a)};
  return launch(&j);
}

/* fail(...): always an error */
EXPORT int __tvm_ffi_fail(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  return fail("ValueError", "this kernel always fails");
}

/* silent(...): an error without a reason, as no code of ours gives */
EXPORT int __tvm_ffi_silent(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  return -1;
}

/* count(): how often it was called */
EXPORT int __tvm_ffi_count(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  static int64_t calls;
  result->type_index = 1;
  result->v_int64 = ++calls;
  return 0;
}

/* call(name, x): the global function `name` applied to x */
EXPORT int __tvm_ffi_call(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
  void *function = 0;
  TVMFFIByteArray name = {0, 0};
  if (args[0].type_index == 8) {
    const char *s = args[0].v_c_str;
    name.data = s;
    while (s[name.size] != 0) ++name.size;
  } else if (args[0].type_index == 11) {
    name.data = args[0].v_bytes;
    name.size = args[0].small_str_len;
  } else {
    name = *(const TVMFFIByteArray *)((const char *)args[0].v_obj + 24);
  }
  if (__TVMFFIFunctionGetGlobal(&name, &function) != 0) return -1;
  if (function == 0) return fail("ValueError", "no such function");
  return __TVMFFIFunctionCall(function, &args[1], n - 1, result);
}
