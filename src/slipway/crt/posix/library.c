/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code.h"
#include "slipway/error.h"
#include "slipway/metadata.h"
#include "slipway/object.h"
#include "slipway/threadpool.h"
#include "slipway/workspace.h"

struct slw_library {
  slw_elf elf;
  slw_code code;
};

typedef struct registered {
  struct registered *next;
  slw_function function;
  TVMFFIObject *owner;
  char name[];
} registered;

static registered *registry; /* entries are never freed: compiled code may hold on to them */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static slw_ffi_functions ffi_functions;

static registered *find_registered(const char *name, size_t length) {
  for (registered *entry = registry; entry != NULL; entry = entry->next) {
    if (strlen(entry->name) == length && memcmp(entry->name, name, length) == 0) {
      return entry;
    }
  }
  return NULL;
}

slw_status slw_registry_add(const char *name, slw_function function, TVMFFIObject *owner) {
  size_t length = strlen(name);
  slw_status status = SLW_OK;
  registered *entry;
  (void)pthread_mutex_lock(&registry_lock);
  entry = find_registered(name, length);
  if (entry == NULL) {
    entry = calloc(1, sizeof *entry + length + 1);
    if (entry == NULL) {
      status = SLW_ERROR_MEMORY;
    } else {
      memcpy(entry->name, name, length + 1);
      entry->next = registry;
      registry = entry;
    }
  }
  if (entry != NULL) {
    if (owner != NULL) {
      slw_object_retain(owner);
    }
    slw_object_release(entry->owner);
    entry->function = function;
    entry->owner = owner;
  }
  (void)pthread_mutex_unlock(&registry_lock);
  return status;
}

static slw_status find_function(const char *name, size_t length, slw_function *out) {
  registered *entry;
  (void)pthread_mutex_lock(&registry_lock);
  entry = find_registered(name, length);
  if (entry != NULL) {
    *out = entry->function;
  }
  (void)pthread_mutex_unlock(&registry_lock);
  return (entry != NULL) ? SLW_OK : SLW_ERROR_NOT_FOUND;
}

slw_status slw_registry_find(const char *name, slw_function *out) {
  return find_function(name, strlen(name), out);
}

void slw_set_ffi_functions(const slw_ffi_functions *functions) { ffi_functions = *functions; }

/* tvm-ffi's TVMFFIFunctionGetGlobal: a null handle, not an error, for an unknown name. */
static int get_global(const TVMFFIByteArray *name, void **out) {
  slw_function function;
  TVMFFIAny made;
  *out = NULL;
  if (find_function(name->data, name->size, &function) != SLW_OK) {
    return 0;
  }
  if (slw_any_set_function(&made, function, NULL) != SLW_OK) {
    return slw_error_setf("MemoryError", "no memory for a function object");
  }
  *out = made.v_obj;
  return 0;
}

static int call_function(void *function, TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  const TVMFFIFunctionCell *cell = (const void *)((const char *)function + sizeof(TVMFFIObject));
  return cell->safe_call(function, args, num_args, result);
}

/* All function pointers have the size of a data pointer on every system this runs on. */
static void fill_slot(const slw_library *library, const char *name, const void *function_pointer) {
  void *slot = slw_library_symbol(library, name);
  if (slot != NULL) {
    memcpy(slot, function_pointer, sizeof(void *));
  }
}

static void fill_slots(const slw_library *library) {
  slw_error_set_fn set_error = slw_error_set;
  slw_parallel_launch_fn launch = slw_parallel_launch;
  slw_workspace_alloc_fn alloc = slw_workspace_alloc;
  slw_workspace_free_fn release = slw_workspace_free;
  slw_ffi_functions ffi = ffi_functions;
  if (ffi.function_get_global == NULL || ffi.function_call == NULL) {
    ffi.function_get_global = get_global;
    ffi.function_call = call_function;
  }
  fill_slot(library, "__TVMFFIErrorSetRaisedFromCStr", &set_error);
  fill_slot(library, "__slipway_parallel_launch", &launch);
  fill_slot(library, "__slipway_workspace_alloc", &alloc);
  fill_slot(library, "__slipway_workspace_free", &release);
  fill_slot(library, "__TVMFFIFunctionGetGlobal", &ffi.function_get_global);
  fill_slot(library, "__TVMFFIFunctionCall", &ffi.function_call);
}

static slw_status check(const slw_elf *elf, const char *name) {
  const uint8_t *metadata = NULL;
  size_t metadata_bytes = 0;
  uint16_t here = slw_elf_this_machine();
  if (elf->machine != here || elf->is_64 != (sizeof(void *) == 8)) {
    (void)slw_error_setf("ArtifactError",
                         "%s was compiled for %s (%d bit), and this machine is %s (%d bit). "
                         "Compile it for this machine: give its triple as -mtriple.",
                         name, slw_elf_machine_name(elf->machine), elf->is_64 ? 64 : 32,
                         slw_elf_machine_name(here), (int)sizeof(void *) * 8);
    return SLW_ERROR_MACHINE;
  }
  if (slw_elf_symbol_data(elf, "__slipway_metadata", &metadata, &metadata_bytes) != SLW_OK) {
    return SLW_OK; /* not one of ours: anything in the calling convention may be loaded */
  }
  while (metadata_bytes > 0 && metadata[metadata_bytes - 1] == 0) {
    --metadata_bytes;
  }
  return slw_metadata_check((const char *)metadata, metadata_bytes, name);
}

slw_status slw_library_open(const void *bytes, size_t size_bytes, const char *name,
                            slw_library **out) {
  slw_library *library = calloc(1, sizeof *library);
  slw_status status;
  if (library == NULL) {
    slw_error_set("MemoryError", "no memory for a library");
    return SLW_ERROR_MEMORY;
  }
  status = slw_elf_parse(&library->elf, bytes, size_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
  if (status != SLW_OK) {
    (void)slw_error_setf("ArtifactError", "%s is not a library that can be loaded: %s. It may be "
                                          "truncated or damaged; export it again.",
                         name, slw_status_text(status));
  } else {
    status = check(&library->elf, name);
  }
  if (status == SLW_OK) {
    status = slw_code_open(&library->code, &library->elf, name);
  }
  if (status != SLW_OK) {
    free(library);
    return status;
  }
  fill_slots(library);
  *out = library;
  return SLW_OK;
}

void slw_library_close(slw_library *library) {
  if (library != NULL) {
    slw_code_close(&library->code);
    free(library);
  }
}

void *slw_library_symbol(const slw_library *library, const char *name) {
  return slw_code_symbol(&library->code, &library->elf, name);
}

const slw_elf *slw_library_elf(const slw_library *library) { return &library->elf; }
