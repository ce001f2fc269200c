/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Between the classic interface's values (a TVMValue and its type code) and the calling
 * convention's (TVMFFIAny); what tvm/runtime/c_runtime_api.h and the C++ headers are made of.
 */
#ifndef SLIPWAY_CLASSIC_H_
#define SLIPWAY_CLASSIC_H_

#include "slipway/object.h"
#include "tvm/runtime/c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The object that an array's handle is a part of. */
static inline TVMFFIObject *slw_array_object(DLTensor *array) {
  return (TVMFFIObject *)(void *)((char *)array - sizeof(TVMFFIObject));
}

/** View a value in the classic form. `bytes` holds what a kTVMBytes of few bytes points to; it and
 * `from` must live as long as the view. */
SLW_API void slw_classic_view(const TVMFFIAny *from, TVMValue *value, int *type_code,
                              TVMByteArray *bytes);

/** View a classic argument in the calling convention, without a copy. */
SLW_API int slw_classic_argument(const TVMValue *value, int type_code, TVMFFIAny *out);

/** Make a result of a classic value: text and bytes are copied, objects retained. */
SLW_API int slw_classic_result(const TVMValue *value, int type_code, TVMFFIAny *out);

/** Call a function with classic arguments; the result is the caller's (slw_any_clear). */
SLW_API int slw_classic_call(TVMFunctionHandle function, const TVMValue *values,
                             const int *type_codes, int num_args, TVMFFIAny *result);

/** Return the class of an error text that begins with one ("ValueError: "), copied into `kind` of
 * SLW_ERROR_KIND_BYTES, and the text behind it; else "RuntimeError" and the whole text. */
SLW_API const char *slw_error_split(const char *text, char *kind);

/** The module of what is linked into the program (TVMBackendRegisterSystemLibSymbol); borrowed. */
SLW_API struct slw_module *slw_classic_system_library(void);

/** On a host: a function that classic programs find without anybody registering it, as
 * "tvm.graph_executor.create", or NULL. What is registered under such a name comes first. */
SLW_API TVMFFIObject *slw_classic_builtin(const char *name);

/** Call `visit` with the names of those that nobody has registered another function under. */
SLW_API void slw_classic_list_builtins(void (*visit)(void *context, const char *name, size_t bytes),
                                       void *context);

/** Enter the kinds of devices that a host has (device_api.h); firmware enters its own. */
SLW_API void slw_classic_find_devices(void);

/** What a thread keeps for its caller until it is asked for the next one. */
typedef enum { SLW_KEPT_RESULT = 0, SLW_KEPT_NAMES = 1, SLW_KEPT_COUNT = 2 } slw_kept;

/** Keep one object (taken over) for the calling thread, and release the one before. */
SLW_API void slw_classic_keep(slw_kept kind, TVMFFIObject *object);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_CLASSIC_H_ */
