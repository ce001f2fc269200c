/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and errors of the classic interface. */
#include <string.h>

#include "slipway/classic.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/library.h"
#include "slipway/platform.h"
#include "slipway/registry.h"
#include "slipway/tensor.h"

#define FEW_ARGS 16

#if defined(SLW_NO_THREADS)
#define THREAD_LOCAL
#else
#define THREAD_LOCAL _Thread_local
#endif

static int is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

static int ends_with(const char *text, size_t size, const char *end) {
  size_t length = strlen(end);
  return size >= length && memcmp(text + size - length, end, length) == 0;
}

const char *slw_error_split(const char *text, char *kind) {
  size_t size = 0;
  while (is_word(text[size])) {
    ++size;
  }
  if (size < SLW_ERROR_KIND_BYTES && text[size] == ':' && text[size + 1] == ' ' &&
      (ends_with(text, size, "Error") || ends_with(text, size, "Exception"))) {
    memcpy(kind, text, size);
    kind[size] = '\0';
    return text + size + 2;
  }
  (void)slw_format(kind, SLW_ERROR_KIND_BYTES, "RuntimeError");
  return text;
}

void TVMAPISetLastError(const char *msg) {
  char kind[SLW_ERROR_KIND_BYTES];
  const char *text = slw_error_split((msg != NULL) ? msg : "", kind);
  slw_error_set(kind, text);
}

const char *TVMGetLastError(void) {
  static THREAD_LOCAL char text[SLW_ERROR_KIND_BYTES + SLW_ERROR_MESSAGE_BYTES + 2];
  const char *kind = slw_error_kind();
  (void)slw_format(text, sizeof text, "%s%s%s", kind, (kind[0] != '\0') ? ": " : "",
                   slw_error_message());
  return text;
}

int slw_classic_call(TVMFunctionHandle function, const TVMValue *values, const int *type_codes,
                     int num_args, TVMFFIAny *result) {
  const TVMFFIObject *object = function;
  TVMFFIAny few[FEW_ARGS];
  TVMFFIAny *args = few;
  int failed = 0;
  slw_error_clear();
  memset(result, 0, sizeof *result);
  if (object == NULL || object->type_index != kTVMFFIFunction || num_args < 0) {
    return slw_error_setf("TypeError", "the call of a function got %s instead of a function",
                          (object == NULL) ? "a null handle" : "a handle of something else");
  }
  if (num_args > FEW_ARGS) {
    args = slw_platform_alloc((size_t)num_args * sizeof *args, sizeof *args);
    if (args == NULL) {
      return slw_error_setf("MemoryError", "no memory for %d arguments", num_args);
    }
  }
  for (int i = 0; failed == 0 && i < num_args; ++i) {
    failed = slw_classic_argument(&values[i], type_codes[i], &args[i]);
  }
  if (failed == 0) {
    const TVMFFIFunctionCell *cell = (const void *)(object + 1);
    failed = cell->safe_call(function, args, num_args, result);
    if (failed != 0) {
      slw_error_fetch();
    }
  }
  if (args != few) {
    slw_platform_free(args);
  }
  return (failed == 0) ? 0 : -1;
}

int TVMFuncCall(TVMFunctionHandle func, TVMValue *arg_values, int *type_codes, int num_args,
                TVMValue *ret_val, int *ret_type_code) {
  static THREAD_LOCAL TVMByteArray bytes;
  static THREAD_LOCAL TVMFFIAny few; /* text of few bytes lies in the value itself */
  if (slw_classic_call(func, arg_values, type_codes, num_args, &few) != 0) {
    return -1;
  }
  slw_classic_view(&few, ret_val, ret_type_code, &bytes);
  if (few.type_index == kTVMFFIStr || few.type_index == kTVMFFIBytes) {
    slw_classic_keep(SLW_KEPT_RESULT, few.v_obj);
  }
  return 0;
}

typedef struct {
  TVMFFIObject object;
  TVMFFIFunctionCell cell;
  TVMPackedCFunc call;
  TVMPackedCFuncFinalizer finalizer;
  void *resource;
} c_function;

typedef struct {
  TVMValue value;
  TVMByteArray bytes;
} argument;

static int call_with(const c_function *self, const TVMFFIAny *args, int num_args,
                     TVMValue *values, TVMByteArray *bytes, int *codes, TVMFFIAny *result) {
  for (int i = 0; i < num_args; ++i) {
    slw_classic_view(&args[i], &values[i], &codes[i], &bytes[i]);
  }
  slw_error_clear();
  if (self->call(values, codes, num_args, result, self->resource) != 0) {
    slw_error_fetch();
    slw_any_clear(result);
    return -1;
  }
  return 0;
}

static int call_c_function(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const c_function *self = handle;
  TVMValue values[FEW_ARGS];
  TVMByteArray bytes[FEW_ARGS];
  int codes[FEW_ARGS];
  size_t count = (size_t)num_args;
  char *block;
  int failed;
  if (num_args <= FEW_ARGS) {
    return call_with(self, args, num_args, values, bytes, codes, result);
  }
  block = slw_platform_alloc(count * (sizeof values[0] + sizeof bytes[0] + sizeof codes[0]),
                             sizeof(TVMFFIAny));
  if (block == NULL) {
    return slw_error_setf("MemoryError", "no memory for %d arguments", (int)num_args);
  }
  failed = call_with(self, args, num_args, (void *)block,
                     (void *)(block + count * sizeof values[0]),
                     (void *)(block + count * (sizeof values[0] + sizeof bytes[0])), result);
  slw_platform_free(block);
  return failed;
}

static void delete_c_function(void *self, int flags) {
  c_function *function = self;
  if ((flags & 1) != 0 && function->finalizer != NULL) {
    function->finalizer(function->resource);
  }
  if ((flags & 2) != 0) {
    slw_platform_free(function);
  }
}

int TVMFuncCreateFromCFunc(TVMPackedCFunc func, void *resource_handle, TVMPackedCFuncFinalizer fin,
                           TVMFunctionHandle *out) {
  c_function *made = slw_platform_alloc(sizeof *made, sizeof(uint64_t));
  if (made == NULL) {
    return slw_error_setf("MemoryError", "no memory for a function");
  }
  slw_object_init(&made->object, kTVMFFIFunction, delete_c_function);
  made->cell.safe_call = call_c_function;
  made->call = func;
  made->finalizer = fin;
  made->resource = resource_handle;
  *out = made;
  return 0;
}

int TVMFuncFree(TVMFunctionHandle func) { return TVMObjectFree(func); }

int TVMObjectRetain(TVMObjectHandle obj) {
  if (obj != NULL) {
    slw_object_retain(obj);
  }
  return 0;
}

int TVMObjectFree(TVMObjectHandle obj) {
  slw_object_release(obj);
  return 0;
}

int TVMCFuncSetReturn(TVMRetValueHandle ret, TVMValue *value, int *type_code, int num_ret) {
  TVMFFIAny *result = ret;
  if (num_ret != 1) {
    return slw_error_setf("ValueError", "a function returns one value, not %d", num_ret);
  }
  slw_any_clear(result);
  return slw_classic_result(value, *type_code, result);
}

int TVMCbArgToReturn(TVMValue *value, int *code) {
  switch (*code) {
    case kTVMNDArrayHandle:
      slw_object_retain(slw_array_object(value->v_handle));
      return 0;
    case kTVMPackedFuncHandle:
    case kTVMModuleHandle:
    case kTVMObjectHandle:
      return TVMObjectRetain(value->v_handle);
    default:
      return 0;
  }
}

static int no_name(const char *function) {
  return slw_error_setf("ValueError", "%s: the pointer to the function's name is null", function);
}

int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out) {
  TVMFFIObject *found = NULL;
  if (name == NULL) {
    return no_name("TVMFuncGetGlobal");
  }
  (void)slw_registry_get(name, &found);
#if !defined(SLW_NO_THREADS)
  if (found == NULL) {
    found = slw_classic_builtin(name);
  }
#endif
  *out = found;
  return 0;
}

int TVMFuncRegisterGlobal(const char *name, TVMFunctionHandle f, int override) {
  if (name == NULL) {
    return no_name("TVMFuncRegisterGlobal");
  }
  if (f == NULL || ((const TVMFFIObject *)f)->type_index != kTVMFFIFunction) {
    return slw_error_setf("TypeError", "only a function can be registered, as '%s' too", name);
  }
  if (slw_registry_set(name, f, override) != SLW_OK) {
    return -1;
  }
#if !defined(SLW_NO_THREADS)
  if (((const TVMFFIObject *)f)->deleter == delete_c_function) {
    const void *code;
    memcpy(&code, &((const c_function *)f)->call, sizeof code);
    slw_library_pin(code);
  }
#endif
  return 0;
}

int TVMFuncRemoveGlobal(const char *name) {
  if (name == NULL) {
    return no_name("TVMFuncRemoveGlobal");
  }
  return (slw_registry_remove(name) == SLW_OK)
             ? 0
             : slw_error_setf("ValueError", "there is no global function '%s' to remove", name);
}

typedef struct {
  int count;
  size_t text_bytes;
  int most; /* of a walk that stores: names that were counted before, and their bytes */
  size_t most_bytes;
  const char **names;
  char *text;
} name_list;

static void add_name(void *context, const char *name, size_t bytes) {
  name_list *list = context;
  if (list->names != NULL) {
    if (list->count == list->most || list->most_bytes - list->text_bytes < bytes + 1u) {
      return; /* registered between the two walks */
    }
    list->names[list->count] = list->text + list->text_bytes;
    memcpy(list->text + list->text_bytes, name, bytes);
    list->text[list->text_bytes + bytes] = '\0';
  }
  ++list->count;
  list->text_bytes += bytes + 1u;
}

static slw_status list_names(name_list *list) {
  slw_status status = slw_registry_list(add_name, list);
#if !defined(SLW_NO_THREADS)
  if (status == SLW_OK) {
    slw_classic_list_builtins(add_name, list);
  }
#endif
  return status;
}

int TVMFuncListGlobalNames(int *out_size, const char ***out_array) {
  const DLDataType byte = {kDLUInt, 8, 1};
  const DLDevice cpu = {kDLCPU, 0};
  name_list list = {0, 0, 0, 0, NULL, NULL};
  slw_tensor *block = NULL;
  int64_t size;
  slw_error_clear();
  if (list_names(&list) != SLW_OK) {
    slw_error_fetch();
    return -1;
  }
  size = (int64_t)((size_t)list.count * sizeof(char *) + list.text_bytes + 1u);
  if (slw_tensor_alloc(&size, 1, byte, cpu, &block) != SLW_OK) {
    return slw_error_setf("MemoryError", "no memory for the names of %d functions", list.count);
  }
  list.names = block->tensor.data;
  list.text = (char *)(list.names + list.count);
  list.most = list.count;
  list.most_bytes = list.text_bytes;
  list.count = 0;
  list.text_bytes = 0;
  if (list_names(&list) != SLW_OK) {
    slw_error_fetch();
    slw_object_release(&block->object);
    return -1;
  }
  slw_classic_keep(SLW_KEPT_NAMES, &block->object);
  *out_size = list.count;
  *out_array = list.names;
  return 0;
}
