/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of the classic interface, and the module of what is linked into the program. */
#include <string.h>

#include "slipway/classic.h"
#include "slipway/error.h"
#include "slipway/module.h"
#include "slipway/platform.h"
#include "slipway/registry.h"
#include "tvm/runtime/c_backend_api.h"

int TVMModGetFunction(TVMModuleHandle mod, const char *func_name, int query_imports,
                      TVMFunctionHandle *out) {
  slw_module *module = mod;
  slw_function found = {NULL, NULL};
  TVMFFIAny made;
  slw_status status;
  (void)query_imports; /* what a module imports is linked into it */
  *out = NULL;
  if (module == NULL || !slw_object_is_module(&module->object)) {
    return slw_error_setf("TypeError", "TVMModGetFunction takes a module of this runtime%s",
                          (module == NULL) ? ", not a null handle"
                                           : "; this one is another library's");
  }
  if (func_name == NULL) {
    return slw_error_setf("ValueError", "TVMModGetFunction: the function's name is null");
  }
  status = slw_module_get_function(module, func_name, &found);
  if (status == SLW_ERROR_NOT_FOUND) {
    return 0; /* the thread's error lists the functions that there are */
  }
  if (status == SLW_ERROR_CALL) {
    slw_error_fetch();
    return -1;
  }
  if (status != SLW_OK || slw_any_set_function(&made, found, &module->object) != SLW_OK) {
    return slw_error_setf("MemoryError", "no memory for the function '%s'", func_name);
  }
  *out = made.v_obj;
  return 0;
}

int TVMModFree(TVMModuleHandle mod) { return TVMObjectFree(mod); }

int TVMBackendGetFuncFromEnv(void *mod_node, const char *func_name, TVMFunctionHandle *out) {
  TVMFFIObject *found = NULL;
  (void)mod_node;
  if (slw_registry_get(func_name, &found) != SLW_OK) {
    return slw_error_setf("ValueError", "there is no global function '%s'. Register it first.",
                          func_name);
  }
  slw_object_release(found); /* the table holds it */
  *out = found;
  return 0;
}

typedef struct symbol {
  struct symbol *next;
  TVMFFISafeCallType call;
  char name[];
} symbol;

typedef struct {
  slw_module head;
  symbol *symbols;
} system_library;

static slw_status find_symbol(slw_module *module, const char *name, slw_function *out) {
  static const char PREFIX[] = "__tvm_ffi_";
  for (const symbol *s = ((const system_library *)(void *)module)->symbols; s != NULL;
       s = s->next) {
    const char *shown = s->name;
    if (strncmp(shown, PREFIX, sizeof PREFIX - 1u) == 0) {
      shown += sizeof PREFIX - 1u;
    }
    if (strcmp(shown, name) == 0 || strcmp(s->name, name) == 0) {
      out->call = s->call;
      out->self = NULL;
      return SLW_OK;
    }
  }
  return SLW_ERROR_NOT_FOUND;
}

static void keep_library(slw_module *module) { (void)module; /* it is static */ }

static const slw_module_class SYSTEM_CLASS = {"library", find_symbol, keep_library};
static system_library linked; /* one reference is the program's, for good */

slw_module *slw_classic_system_library(void) {
#if !defined(SLW_NO_THREADS)
  static char is_locked;
  while (__atomic_test_and_set(&is_locked, __ATOMIC_ACQUIRE)) {
  }
#endif
  if (linked.head.type == NULL) {
    slw_module_init(&linked.head, &SYSTEM_CLASS);
  }
#if !defined(SLW_NO_THREADS)
  __atomic_clear(&is_locked, __ATOMIC_RELEASE);
#endif
  return &linked.head;
}

static int give_system_library(TVMValue *args, int *codes, int num_args, TVMRetValueHandle ret,
                               void *resource) {
  TVMValue value;
  int code = kTVMModuleHandle;
  (void)args;
  (void)codes;
  (void)num_args;
  (void)resource;
  value.v_handle = &slw_classic_system_library()->object;
  return TVMCFuncSetReturn(ret, &value, &code, 1);
}

int TVMBackendRegisterSystemLibSymbol(const char *name, void *ptr) {
  size_t length = strlen(name);
  symbol *made = slw_platform_alloc(sizeof *made + length + 1u, sizeof(uint64_t));
  if (made == NULL) {
    return slw_error_setf("MemoryError", "no memory to list '%s'", name);
  }
  memcpy(made->name, name, length + 1u);
  memcpy(&made->call, &ptr, sizeof made->call);
  if (linked.symbols == NULL) {
    TVMFunctionHandle function = NULL;
    if (TVMFuncCreateFromCFunc(give_system_library, NULL, NULL, &function) != 0 ||
        TVMFuncRegisterGlobal("runtime.SystemLib", function, 1) != 0) {
      slw_platform_free(made);
      (void)TVMFuncFree(function);
      return -1;
    }
    (void)TVMFuncFree(function);
  }
  made->next = linked.symbols;
  linked.symbols = made;
  return 0;
}
