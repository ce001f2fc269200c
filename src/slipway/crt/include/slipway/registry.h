/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Functions by name, for every language in the process.
 *
 * There is one table. Where tvm-ffi is in the process, as in Python, it is tvm-ffi's: what any side
 * registers, all sides find. Elsewhere (a C++ program, a device) it is this runtime's own.
 */
#ifndef SLIPWAY_REGISTRY_H_
#define SLIPWAY_REGISTRY_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** tvm-ffi's functions, by the names they have there without `TVMFFI`. */
typedef struct {
  int (*function_get_global)(const TVMFFIByteArray *name, void **out);
  int (*function_call)(void *function, TVMFFIAny *args, int32_t num_args, TVMFFIAny *result);
  int (*function_set_global)(const TVMFFIByteArray *name, void *function, int can_override);
  void (*error_move_from_raised)(void **out);
  void (*error_set_raised)(void *error);
} slw_ffi_functions;

/** Use tvm-ffi's table from now on, and enter there what was registered so far; a name that is
 * taken there stays as it is. */
SLW_API void slw_set_ffi_functions(const slw_ffi_functions *functions);

/** Return tvm-ffi's functions, or this runtime's own with the same meaning; never NULL inside,
 * but for the two of errors. */
SLW_API slw_ffi_functions slw_get_ffi_functions(void);

/** Register a function object (kTVMFFIFunction), which is retained.
 * @retval SLW_ERROR_ARGUMENT the name is taken, and can_override is 0
 * @retval SLW_ERROR_MEMORY   both with the thread's error set */
SLW_API slw_status slw_registry_set(const char *name, TVMFFIObject *function, int can_override);

/** Get a function object; release it with slw_object_release.
 * @retval SLW_ERROR_NOT_FOUND without an error text */
SLW_API slw_status slw_registry_get(const char *name, TVMFFIObject **out);

/** Take a name out of the table. @retval SLW_ERROR_NOT_FOUND */
SLW_API slw_status slw_registry_remove(const char *name);

/** Call `visit` with every name. It must not register or remove. */
SLW_API slw_status slw_registry_list(void (*visit)(void *context, const char *name, size_t bytes),
                                     void *context);

/** After a function has returned -1: make its error this thread's (error.h), wherever it was set. */
SLW_API void slw_error_fetch(void);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_REGISTRY_H_ */
