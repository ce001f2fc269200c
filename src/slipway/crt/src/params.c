/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/params.h"

#include <string.h>

#include "bytes.h"

#define LIST_MAGIC 0xF7E58D4F05049CB7U
#define TENSOR_MAGIC 0xDD5E40F096B4A13FU

/* Read a u64 and move on; 0 when the data ends. */
static int take64(const slw_params *params, size_t *at, uint64_t *value) {
  if (!slw_in_range(*at, 8, params->size_bytes)) {
    return 0;
  }
  *value = slw_load64(params->bytes + *at);
  *at += 8;
  return 1;
}

slw_status slw_params_open(slw_params *params, const void *bytes, size_t size_bytes) {
  uint64_t magic = 0;
  uint64_t reserved = 0;
  uint64_t tensors = 0;
  size_t at = 0;
  memset(params, 0, sizeof *params);
  params->bytes = bytes;
  params->size_bytes = size_bytes;
  if (!take64(params, &at, &magic)) {
    return SLW_ERROR_TRUNCATED;
  }
  if (magic != LIST_MAGIC) {
    return SLW_ERROR_FORMAT;
  }
  if (!take64(params, &at, &reserved) || !take64(params, &at, &params->count)) {
    return SLW_ERROR_TRUNCATED;
  }
  params->name_at = at;
  for (uint64_t i = 0; i < params->count; ++i) {
    uint64_t length = 0;
    if (!take64(params, &at, &length) || !slw_in_range(at, length, size_bytes)) {
      return SLW_ERROR_TRUNCATED;
    }
    at += (size_t)length;
  }
  if (!take64(params, &at, &tensors)) {
    return SLW_ERROR_TRUNCATED;
  }
  params->tensor_at = at;
  return (tensors == params->count) ? SLW_OK : SLW_ERROR_FORMAT;
}

static slw_status next_tensor(slw_params *params, slw_param *param) {
  size_t at = params->tensor_at;
  uint64_t magic = 0;
  uint64_t reserved = 0;
  uint64_t data_bytes = 0;
  size_t expected_bytes = 0;
  const uint8_t *p;
  if (!take64(params, &at, &magic) || !take64(params, &at, &reserved) ||
      !slw_in_range(at, 16, params->size_bytes)) {
    return SLW_ERROR_TRUNCATED;
  }
  if (magic != TENSOR_MAGIC) {
    return SLW_ERROR_FORMAT;
  }
  p = params->bytes + at + 8; /* the device it was saved from does not matter */
  param->ndim = (int32_t)slw_load32(p);
  param->dtype.code = p[4];
  param->dtype.bits = p[5];
  param->dtype.lanes = slw_load16(p + 6);
  at += 16;
  if (param->ndim < 0 || param->ndim > SLW_TENSOR_MAX_NDIM) {
    return SLW_ERROR_FORMAT;
  }
  for (int32_t i = 0; i < param->ndim; ++i) {
    uint64_t extent = 0;
    if (!take64(params, &at, &extent)) {
      return SLW_ERROR_TRUNCATED;
    }
    param->shape[i] = (int64_t)extent;
  }
  if (!take64(params, &at, &data_bytes)) {
    return SLW_ERROR_TRUNCATED;
  }
  if (slw_tensor_size_bytes(param->shape, param->ndim, param->dtype, &expected_bytes) != SLW_OK ||
      expected_bytes != data_bytes) {
    return SLW_ERROR_FORMAT;
  }
  if (!slw_in_range(at, data_bytes, params->size_bytes)) {
    return SLW_ERROR_TRUNCATED;
  }
  param->data = params->bytes + at;
  param->data_bytes = (size_t)data_bytes;
  params->tensor_at = at + (size_t)data_bytes;
  return SLW_OK;
}

slw_status slw_params_next(slw_params *params, slw_param *param) {
  size_t at = params->name_at;
  uint64_t length = 0;
  slw_status status;
  if (params->next == params->count) {
    return SLW_ERROR_NOT_FOUND;
  }
  status = next_tensor(params, param);
  if (status != SLW_OK) {
    return status;
  }
  (void)take64(params, &at, &length); /* in range: slw_params_open has walked the names */
  param->name = (const char *)params->bytes + at;
  param->name_bytes = (size_t)length;
  params->name_at = at + (size_t)length;
  ++params->next;
  return SLW_OK;
}
