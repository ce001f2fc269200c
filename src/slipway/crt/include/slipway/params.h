/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Reading the classic parameter format (save_param_dict). Freestanding; data stays in place.
 *
 * Little-endian: u64 0xF7E58D4F05049CB7, u64 0, u64 n, n names (u64 length, characters), u64 n,
 * n tensors (u64 0xDD5E40F096B4A13F, u64 0, device i32 i32, i32 ndim, dtype u8 u8 u16,
 * i64 shape[ndim], i64 bytes, data).
 */
#ifndef SLIPWAY_PARAMS_H_
#define SLIPWAY_PARAMS_H_

#include "slipway/abi.h"
#include "slipway/status.h"
#include "slipway/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One parameter. Name and data point into the file's bytes; the data may be unaligned. */
typedef struct {
  const char *name; /* not NUL-terminated */
  size_t name_bytes;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[SLW_TENSOR_MAX_NDIM];
  const uint8_t *data;
  size_t data_bytes;
} slw_param;

typedef struct {
  const uint8_t *bytes;
  size_t size_bytes;
  uint64_t count;
  uint64_t next; /* index */
  size_t name_at;
  size_t tensor_at;
} slw_params;

/** Check the head and find the tensors.
 * @retval SLW_ERROR_FORMAT, SLW_ERROR_TRUNCATED */
SLW_API slw_status slw_params_open(slw_params *params, const void *bytes, size_t size_bytes);

/** Read the next parameter.
 * @retval SLW_ERROR_NOT_FOUND after the last one; SLW_ERROR_FORMAT, SLW_ERROR_TRUNCATED */
SLW_API slw_status slw_params_next(slw_params *params, slw_param *param);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_PARAMS_H_ */
