/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Lists of values as one counted object (kTVMFFIArray), in TVM-FFI's layout: what Python makes of a
 * list that is an argument.
 */
#ifndef SLIPWAY_ARRAY_H_
#define SLIPWAY_ARRAY_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  TVMFFIObject object;
  TVMFFIAny *items; /* each owned by the array; behind this struct where the runtime made it */
  int64_t size;
  int64_t capacity;
  void (*delete_items)(void *items); /* NULL: they lie in the object's own memory */
} slw_array;

/** Make an array without items, with room for `capacity`, with one reference.
 * @retval SLW_ERROR_ARGUMENT a negative capacity
 * @retval SLW_ERROR_MEMORY */
SLW_API slw_status slw_array_make(int64_t capacity, slw_array **out);

/** View the array in an object, or NULL if it is something else. */
SLW_API slw_array *slw_object_array(TVMFFIObject *object);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_ARRAY_H_ */
