/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/library.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code.h"
#include "devices/devices.h"
#include "slipway/error.h"
#include "slipway/metadata.h"
#include "slipway/registry.h"
#include "slipway/threadpool.h"
#include "slipway/workspace.h"

struct slw_library {
  slw_elf elf;
  slw_code code;
};

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
  slw_ffi_functions ffi = slw_get_ffi_functions();
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

/* Hand the library's code for devices, where it carries some, to them, and take it back. */
static slw_status add_device_code(const slw_library *library, const char *name) {
  const uint8_t *code = NULL;
  size_t code_bytes = 0;
  if (slw_elf_symbol_data(&library->elf, "__slipway_device_code", &code, &code_bytes) != SLW_OK) {
    return SLW_OK;
  }
  slw_devices_setup();
  return slw_device_code_add(code, code_bytes, name);
}

static void drop_device_code(const slw_library *library) {
  const uint8_t *code = NULL;
  size_t code_bytes = 0;
  if (slw_elf_symbol_data(&library->elf, "__slipway_device_code", &code, &code_bytes) == SLW_OK) {
    slw_device_code_drop(code, code_bytes);
  }
}

static int begins_with(const void *bytes, size_t size_bytes, const char *mark, size_t mark_bytes) {
  return size_bytes >= mark_bytes && memcmp(bytes, mark, mark_bytes) == 0;
}

/* What the file is instead, as far as its first bytes tell. */
static void refuse(const void *bytes, size_t size_bytes, const char *name, slw_status status) {
  if (begins_with(bytes, size_bytes, "\0asm", 4)) {
    (void)slw_error_setf("ArtifactError", "%s is WebAssembly, for browsers and node: a page loads it "
                                          "with slipway.mjs; compile the model for this machine to "
                                          "run it here.", name);
  } else if (!begins_with(bytes, size_bytes, "\177ELF", 4)) {
    (void)slw_error_setf("ArtifactError", "%s is no .so or .tar that export_library wrote: it does "
                                          "not begin like one. Compile a model file first; export it "
                                          "again, or copy it again in binary mode.", name);
  } else {
    (void)slw_error_setf("ArtifactError", "%s is not a library that can be loaded: %s. It may be "
                                          "truncated or damaged; export it again.",
                         name, slw_status_text(status));
  }
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
    refuse(bytes, size_bytes, name, status);
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
  status = add_device_code(library, name);
  if (status != SLW_OK) {
    slw_code_close(&library->code);
    free(library);
    return status;
  }
  fill_slots(library);
  *out = library;
  return SLW_OK;
}

void slw_library_close(slw_library *library) {
  if (library != NULL) {
    drop_device_code(library);
    slw_code_close(&library->code);
    free(library);
  }
}

void *slw_library_symbol(const slw_library *library, const char *name) {
  return slw_code_symbol(&library->code, &library->elf, name);
}

const slw_elf *slw_library_elf(const slw_library *library) { return &library->elf; }
