/* SPDX-License-Identifier: Apache-2.0 */
/* A module of another language (Python's), handed to C++ or Rust: it asks its finder by name. */
#include <stdlib.h>
#include <string.h>

#include "slipway/error.h"
#include "slipway/module.h"
#include "slipway/packed.h"

/* A function that was found is borrowed by whoever asked, so the module keeps it. */
typedef struct found_function {
  struct found_function *next;
  TVMFFIAny function;
} found_function;

typedef struct {
  slw_module head;
  slw_module_class type;
  TVMFFIAny finder;
  found_function *found;
  char type_key[];
} foreign_module;

static slw_status keep(foreign_module *self, const TVMFFIAny *function) {
  found_function *made = calloc(1, sizeof *made);
  if (made == NULL) {
    return SLW_ERROR_MEMORY;
  }
  made->function = *function;
  made->next = __atomic_load_n(&self->found, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(&self->found, &made->next, made, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
  }
  return SLW_OK;
}

static slw_status get_function(slw_module *module, const char *name, slw_function *out) {
  foreign_module *self = (foreign_module *)(void *)module;
  TVMFFIAny arg = {.type_index = kTVMFFIRawStr, .v_c_str = name};
  TVMFFIAny result = {.type_index = kTVMFFINone};
  slw_function finder = {NULL, NULL};
  (void)slw_any_get_function(&self->finder, &finder);
  if (finder.call(finder.self, &arg, 1, &result) != 0) {
    return SLW_ERROR_CALL;
  }
  if (slw_any_get_function(&result, out) != SLW_OK) {
    slw_any_clear(&result);
    return SLW_ERROR_NOT_FOUND;
  }
  if (keep(self, &result) != SLW_OK) {
    slw_any_clear(&result);
    return SLW_ERROR_MEMORY;
  }
  return SLW_OK;
}

static void destroy(slw_module *module) {
  foreign_module *self = (foreign_module *)(void *)module;
  while (self->found != NULL) {
    found_function *next = self->found->next;
    slw_any_clear(&self->found->function);
    free(self->found);
    self->found = next;
  }
  slw_any_clear(&self->finder);
  free(self);
}

int slw_packed_module_wrap(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const char *key = NULL;
  size_t key_bytes = 0;
  slw_function finder = {NULL, NULL};
  foreign_module *made;
  (void)handle;
  if (num_args != 2 || slw_any_get_bytes(&args[0], &key, &key_bytes) != SLW_OK ||
      slw_any_get_function(&args[1], &finder) != SLW_OK) {
    return slw_error_setf("TypeError", "module_wrap takes a type key and a function");
  }
  made = calloc(1, sizeof *made + key_bytes + 1);
  if (made == NULL) {
    return slw_error_setf("MemoryError", "no memory for a module");
  }
  memcpy(made->type_key, key, key_bytes);
  made->type.type_key = made->type_key;
  made->type.get_function = get_function;
  made->type.destroy = destroy;
  made->finder = args[1];
  slw_object_retain(made->finder.v_obj);
  slw_module_init(&made->head, &made->type);
  slw_any_set_module(result, &made->head);
  return 0;
}
