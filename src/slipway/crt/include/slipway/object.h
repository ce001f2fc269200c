/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Counted objects and the values that hold them, in TVM-FFI's layout.
 *
 * A value whose type_index is at least kTVMFFIStaticObjectBegin owns one reference to v_obj when
 * it is a *result*, and borrows it when it is an *argument*.
 */
#ifndef SLIPWAY_OBJECT_H_
#define SLIPWAY_OBJECT_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Add one reference. Thread-safe. */
SLW_API void slw_object_retain(TVMFFIObject *object);

/** Drop one reference; the last one runs the deleter. Thread-safe; NULL is ignored. */
SLW_API void slw_object_release(TVMFFIObject *object);

/** Initialise an object's head with one strong reference. */
SLW_API void slw_object_init(TVMFFIObject *object, int32_t type_index,
                             void (*deleter)(void *self, int flags));

/** Make `value` None, dropping the object it owns. Call on every result that is not passed on. */
SLW_API void slw_any_clear(TVMFFIAny *value);

/** Fill `out` with a string (kTVMFFIStr) or bytes (kTVMFFIBytes) object holding a copy. */
SLW_API slw_status slw_any_set_string(TVMFFIAny *out, const char *data, size_t size_bytes);
SLW_API slw_status slw_any_set_bytes(TVMFFIAny *out, const void *data, size_t size_bytes);

/** View the text or bytes of a value: raw C string, small or heap string or bytes, byte array.
 * @retval SLW_ERROR_ARGUMENT the value holds neither. The view lives as long as the value. */
SLW_API slw_status slw_any_get_bytes(const TVMFFIAny *value, const char **data, size_t *size_bytes);

/** View the tensor of a value (kTVMFFIDLTensorPtr or kTVMFFITensor); NULL if it holds none. */
SLW_API DLTensor *slw_any_get_tensor(const TVMFFIAny *value);

/** Wrap a function as an object (kTVMFFIFunction); `owner`, may be NULL, is retained with it. */
SLW_API slw_status slw_any_set_function(TVMFFIAny *out, slw_function function,
                                        TVMFFIObject *owner);

/** View the callable in a value (kTVMFFIFunction).
 * @retval SLW_ERROR_ARGUMENT the value holds none. */
SLW_API slw_status slw_any_get_function(const TVMFFIAny *value, slw_function *out);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_OBJECT_H_ */
