/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Compiled code brought into this process from the bytes of an exported shared library.
 *
 * Two ways, one interface: a static program places the library itself (elf.h); a dynamically
 * linked one leaves that to dlopen, so that debuggers and profilers see it.
 */
#ifndef SLIPWAY_LIBRARY_H_
#define SLIPWAY_LIBRARY_H_

#include "slipway/abi.h"
#include "slipway/elf.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct slw_library slw_library;

/** Check and load. The processor, the metadata's version and the processor features are checked
 * first. `bytes` must stay while the library is open.
 * @param name  for messages
 * On failure the thread's error says what is wrong. */
SLW_API slw_status slw_library_open(const void *bytes, size_t size_bytes, const char *name,
                                    slw_library **out);

SLW_API void slw_library_close(slw_library *library);

/** Address of an exported symbol, or NULL. */
SLW_API void *slw_library_symbol(const slw_library *library, const char *name);

/** The library's headers and symbol table. */
SLW_API const slw_elf *slw_library_elf(const slw_library *library);

/** What fills the slots of libraries that are opened later. NULL: this runtime's own. */
typedef struct {
  int (*function_get_global)(const TVMFFIByteArray *name, void **out);
  int (*function_call)(void *function, TVMFFIAny *args, int32_t num_args, TVMFFIAny *result);
} slw_ffi_functions;

SLW_API void slw_set_ffi_functions(const slw_ffi_functions *functions);

/** Register a function for slw_registry_find and for compiled code's tir.call_packed; replaces
 * one of the same name. `owner` (may be NULL) is retained.
 * @retval SLW_ERROR_MEMORY */
SLW_API slw_status slw_registry_add(const char *name, slw_function function, TVMFFIObject *owner);

/** @retval SLW_ERROR_NOT_FOUND */
SLW_API slw_status slw_registry_find(const char *name, slw_function *out);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_LIBRARY_H_ */
