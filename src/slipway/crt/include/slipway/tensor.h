/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Tensors in host memory or a device's: sizes, checks, and counted tensors, whose data in host
 * memory is 64-byte aligned.
 */
#ifndef SLIPWAY_TENSOR_H_
#define SLIPWAY_TENSOR_H_

#include "slipway/abi.h"
#include "slipway/object.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_TENSOR_ALIGNMENT 64 /* bytes */
#define SLW_TENSOR_MAX_NDIM 16

/** A counted, compact tensor (kTVMFFITensor). Its data is `allocation`, or belongs to `owner`. */
typedef struct {
  TVMFFIObject object;
  DLTensor tensor;
  TVMFFIObject *owner;
  void *allocation;
  int64_t shape[SLW_TENSOR_MAX_NDIM];
  int64_t strides[SLW_TENSOR_MAX_NDIM];
} slw_tensor;

/** Bytes that a compact tensor of this shape and type takes.
 * @retval SLW_ERROR_ARGUMENT negative extent, odd type, ndim outside 0..SLW_TENSOR_MAX_NDIM, or
 *         a size that overflows */
SLW_API slw_status slw_tensor_size_bytes(const int64_t *shape, int32_t ndim, DLDataType dtype,
                                         size_t *size_bytes);

/** Return whether the elements lie row-major without gaps. */
SLW_API int slw_tensor_is_contiguous(const DLTensor *tensor);

/** Allocate a tensor, zeroed in host memory, with one reference; release with slw_object_release.
 * @retval SLW_ERROR_ARGUMENT as slw_tensor_size_bytes, or a kind of device that is not registered
 * @retval SLW_ERROR_MEMORY
 * On a device another status may come too, with the thread's error set. */
SLW_API slw_status slw_tensor_alloc(const int64_t *shape, int32_t ndim, DLDataType dtype,
                                    DLDevice device, slw_tensor **out);

/** Make a counted tensor over the memory of `source`, keeping `owner` (may be NULL) alive. */
SLW_API slw_status slw_tensor_view(const DLTensor *source, TVMFFIObject *owner, slw_tensor **out);

/** Copy the elements, which may lie on different devices; both tensors must be contiguous, and of
 * equal type and byte count.
 * @retval SLW_ERROR_TENSOR they are not
 * From or to a device another status may come too, with the thread's error set. */
SLW_API slw_status slw_tensor_copy(const DLTensor *from, DLTensor *to);

/** View a value that carries bytes: text or bytes (slw_any_get_bytes), or a contiguous uint8 tensor
 * on the CPU, which is how large ones travel. @retval SLW_ERROR_ARGUMENT it is none of these */
SLW_API slw_status slw_any_get_blob(const TVMFFIAny *value, const char **data, size_t *size_bytes);

/** Write a type's name ("float32x4") into `text` of at least 24 bytes. */
SLW_API void slw_dtype_text(DLDataType dtype, char *text, size_t size_bytes);

/** Write a shape ("(1, 3, 224, 224)") into `text`, cut to fit. */
SLW_API void slw_shape_text(const int64_t *shape, int32_t ndim, char *text, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_TENSOR_H_ */
