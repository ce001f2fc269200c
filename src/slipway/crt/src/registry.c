/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/registry.h"

#include <string.h>

#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/platform.h"

typedef struct entry {
  struct entry *next;
  TVMFFIObject *function;
  size_t name_bytes;
  char name[];
} entry;

static entry *entries;
static slw_ffi_functions ffi; /* all NULL: there is no tvm-ffi here */

/* Held for a walk over the names; nothing of a user's runs under it. */
#if defined(SLW_NO_THREADS)
static void lock(void) {}
static void unlock(void) {}
#else
static char is_locked;
static void lock(void) {
  while (__atomic_test_and_set(&is_locked, __ATOMIC_ACQUIRE)) {
  }
}
static void unlock(void) { __atomic_clear(&is_locked, __ATOMIC_RELEASE); }
#endif

static entry **slot_of(const char *name, size_t name_bytes) {
  entry **at = &entries;
  while (*at != NULL && ((*at)->name_bytes != name_bytes ||
                         memcmp((*at)->name, name, name_bytes) != 0)) {
    at = &(*at)->next;
  }
  return at;
}

static int name_is_taken(const TVMFFIByteArray *name) {
  char text[128];
  size_t shown = (name->size < sizeof text) ? name->size : sizeof text - 1u;
  memcpy(text, name->data, shown);
  text[shown] = '\0';
  return slw_error_setf("ValueError", "the global function '%s' is registered already; override "
                                      "it, or choose another name.", text);
}

static int own_set(const TVMFFIByteArray *name, void *function, int can_override) {
  TVMFFIObject *released = NULL;
  int is_taken = 0;
  entry *made = slw_platform_alloc(sizeof *made + name->size, sizeof(uint64_t));
  entry **at;
  if (made == NULL) {
    return slw_error_setf("MemoryError", "no memory to register a function");
  }
  made->name_bytes = name->size;
  memcpy(made->name, name->data, name->size);
  slw_object_retain(function);
  made->function = function;
  lock();
  at = slot_of(name->data, name->size);
  if (*at == NULL) {
    *at = made;
    made = NULL;
  } else if (can_override != 0) {
    released = (*at)->function;
    (*at)->function = function;
  } else {
    is_taken = 1;
    released = function;
  }
  unlock();
  slw_platform_free(made);
  slw_object_release(released);
  return (is_taken != 0) ? name_is_taken(name) : 0;
}

/* As tvm-ffi: a null handle, not an error, for an unknown name. */
static int own_get(const TVMFFIByteArray *name, void **out) {
  entry *found;
  *out = NULL;
  if (ffi.function_get_global != NULL) { /* a library that was opened before tvm-ffi came */
    return ffi.function_get_global(name, out);
  }
  lock();
  found = *slot_of(name->data, name->size);
  if (found != NULL) {
    slw_object_retain(found->function);
    *out = found->function;
  }
  unlock();
  return 0;
}

static int own_call(void *function, TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  const TVMFFIFunctionCell *cell = (const void *)((const char *)function + sizeof(TVMFFIObject));
  return cell->safe_call(function, args, num_args, result);
}

static entry *take_all(void) {
  entry *all;
  lock();
  all = entries;
  entries = NULL;
  unlock();
  return all;
}

/* tvm-ffi tells what was raised only by giving it away: it gets it back. */
static int is_raised_there(void) {
  void *raised = NULL;
  ffi.error_move_from_raised(&raised);
  if (raised == NULL) {
    return 0;
  }
  ffi.error_set_raised(raised);
  slw_object_release(raised);
  return 1;
}

void slw_set_ffi_functions(const slw_ffi_functions *functions) {
  entry *at;
  ffi = *functions;
  slw_error_is_elsewhere = (ffi.error_set_raised != NULL) ? is_raised_there : NULL;
  at = (ffi.function_set_global != NULL) ? take_all() : NULL;
  while (at != NULL) {
    entry *next = at->next;
    TVMFFIByteArray name = {at->name, at->name_bytes};
    void *known = NULL;
    if (ffi.function_get_global(&name, &known) == 0 && known == NULL) {
      (void)ffi.function_set_global(&name, at->function, 0);
    }
    slw_object_release(known);
    slw_object_release(at->function);
    slw_platform_free(at);
    at = next;
  }
}

slw_ffi_functions slw_get_ffi_functions(void) {
  static const slw_ffi_functions OWN = {own_get, own_call, own_set, NULL, NULL};
  return (ffi.function_set_global != NULL) ? ffi : OWN;
}

slw_status slw_registry_set(const char *name, TVMFFIObject *function, int can_override) {
  TVMFFIByteArray bytes = {name, strlen(name)};
  TVMFFIObject *known = NULL;
  slw_error_clear();
  if (can_override == 0 && slw_registry_get(name, &known) == SLW_OK) {
    slw_object_release(known);
    (void)name_is_taken(&bytes);
    return SLW_ERROR_ARGUMENT;
  }
  if (slw_get_ffi_functions().function_set_global(&bytes, function, can_override) != 0) {
    slw_error_fetch();
    return SLW_ERROR_ARGUMENT;
  }
  return SLW_OK;
}

slw_status slw_registry_get(const char *name, TVMFFIObject **out) {
  TVMFFIByteArray bytes = {name, strlen(name)};
  void *found = NULL;
  int failed = slw_get_ffi_functions().function_get_global(&bytes, &found);
  *out = found;
  return (failed == 0 && found != NULL) ? SLW_OK : SLW_ERROR_NOT_FOUND;
}

/* tvm-ffi removes and lists through functions of its own table. */
static int call_ffi(const char *name, TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  TVMFFIObject *function = NULL;
  int failed = -1;
  memset(result, 0, sizeof *result);
  if (slw_registry_get(name, &function) == SLW_OK) {
    failed = ffi.function_call(function, args, num_args, result);
  }
  slw_object_release(function);
  return failed;
}

slw_status slw_registry_remove(const char *name) {
  entry **at;
  entry *found;
  if (ffi.function_set_global != NULL) {
    TVMFFIAny arg = {.type_index = kTVMFFIRawStr, .v_c_str = name};
    TVMFFIAny result;
    TVMFFIObject *known = NULL;
    if (slw_registry_get(name, &known) != SLW_OK) {
      return SLW_ERROR_NOT_FOUND;
    }
    slw_object_release(known);
    if (call_ffi("ffi.FunctionRemoveGlobal", &arg, 1, &result) != 0) {
      return SLW_ERROR_CALL;
    }
    slw_any_clear(&result);
    return SLW_OK;
  }
  lock();
  at = slot_of(name, strlen(name));
  found = *at;
  if (found != NULL) {
    *at = found->next;
  }
  unlock();
  if (found == NULL) {
    return SLW_ERROR_NOT_FOUND;
  }
  slw_object_release(found->function);
  slw_platform_free(found);
  return SLW_OK;
}

/* A function of -1 gives how many there are, one of i the i-th name. */
static slw_status list_ffi(void (*visit)(void *context, const char *name, size_t bytes),
                           void *context) {
  TVMFFIAny functor;
  TVMFFIAny index = {.type_index = kTVMFFIInt, .v_int64 = -1};
  TVMFFIAny count = {.type_index = kTVMFFINone};
  int failed = call_ffi("ffi.FunctionListGlobalNamesFunctor", NULL, 0, &functor);
  if (failed != 0 || functor.type_index != kTVMFFIFunction) {
    return SLW_ERROR_CALL;
  }
  failed = ffi.function_call(functor.v_obj, &index, 1, &count);
  for (int64_t i = 0; failed == 0 && i < count.v_int64; ++i) {
    TVMFFIAny name = {.type_index = kTVMFFINone};
    const char *data = NULL;
    size_t bytes = 0;
    index.v_int64 = i;
    failed = ffi.function_call(functor.v_obj, &index, 1, &name);
    if (failed == 0 && slw_any_get_bytes(&name, &data, &bytes) == SLW_OK) {
      visit(context, data, bytes);
    }
    slw_any_clear(&name);
  }
  slw_any_clear(&functor);
  return (failed == 0) ? SLW_OK : SLW_ERROR_CALL;
}

slw_status slw_registry_list(void (*visit)(void *context, const char *name, size_t bytes),
                             void *context) {
  if (ffi.function_set_global != NULL) {
    return list_ffi(visit, context);
  }
  lock();
  for (const entry *at = entries; at != NULL; at = at->next) {
    visit(context, at->name, at->name_bytes);
  }
  unlock();
  return SLW_OK;
}

static void copy_text(char *text, size_t size_bytes, const TVMFFIByteArray *from) {
  size_t used = (from->size < size_bytes) ? from->size : size_bytes - 1u;
  memcpy(text, from->data, used);
  text[used] = '\0';
}

void slw_error_fetch(void) {
  void *raised = NULL;
  if (slw_error_message()[0] != '\0' || slw_error_kind()[0] != '\0') {
    return;
  }
  if (ffi.error_move_from_raised != NULL) {
    ffi.error_move_from_raised(&raised);
  }
  if (raised != NULL) {
    /* An error object is kind and message behind its head. */
    const TVMFFIByteArray *cell = (const void *)((const char *)raised + sizeof(TVMFFIObject));
    char kind[SLW_ERROR_KIND_BYTES];
    char message[SLW_ERROR_MESSAGE_BYTES];
    copy_text(kind, sizeof kind, &cell[0]);
    copy_text(message, sizeof message, &cell[1]);
    slw_object_release(raised);
    slw_error_set(kind, message);
  } else {
    slw_error_set("RuntimeError", "the function failed without a reason");
  }
}
