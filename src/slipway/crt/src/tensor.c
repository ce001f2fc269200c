/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/tensor.h"

#include <string.h>

#include "bytes.h"
#include "slipway/device_api.h"
#include "slipway/format.h"
#include "slipway/platform.h"

slw_status slw_tensor_size_bytes(const int64_t *shape, int32_t ndim, DLDataType dtype,
                                 size_t *size_bytes) {
  uint64_t total = ((uint64_t)dtype.bits * dtype.lanes + 7U) / 8U;
  int is_empty = 0;
  if (ndim < 0 || ndim > SLW_TENSOR_MAX_NDIM || total == 0 || (ndim > 0 && shape == NULL)) {
    return SLW_ERROR_ARGUMENT;
  }
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) {
      return SLW_ERROR_ARGUMENT;
    }
    if (shape[i] == 0) {
      is_empty = 1;
    } else if (!slw_multiply(total, (uint64_t)shape[i], &total)) {
      return SLW_ERROR_ARGUMENT;
    }
  }
  /* Half the address space, so that later sums with small constants cannot wrap. */
  if (total > SIZE_MAX / 2) {
    return SLW_ERROR_ARGUMENT;
  }
  *size_bytes = is_empty ? 0 : (size_t)total;
  return SLW_OK;
}

int slw_tensor_is_contiguous(const DLTensor *tensor) {
  int64_t expected = 1;
  if (tensor->strides == NULL) {
    return 1;
  }
  for (int32_t i = tensor->ndim - 1; i >= 0; --i) {
    if (tensor->shape[i] == 0) {
      return 1;
    }
    if (tensor->shape[i] != 1 && tensor->strides[i] != expected) {
      return 0;
    }
    expected *= tensor->shape[i];
  }
  return 1;
}

static void delete_tensor(void *self, int flags) {
  slw_tensor *tensor = self;
  if ((flags & 1) != 0) {
    if (tensor->tensor.device.device_type == kDLCPU) {
      slw_platform_free(tensor->allocation);
    } else if (tensor->allocation != NULL) {
      slw_device_find(tensor->tensor.device.device_type)->release(tensor->allocation);
    }
    tensor->allocation = NULL;
    slw_object_release(tensor->owner);
    tensor->owner = NULL;
  }
  if ((flags & 2) != 0) {
    slw_platform_free(tensor);
  }
}

static slw_tensor *new_tensor(const int64_t *shape, int32_t ndim, DLDataType dtype,
                              DLDevice device) {
  slw_tensor *tensor = slw_platform_alloc(sizeof *tensor, SLW_TENSOR_ALIGNMENT);
  if (tensor == NULL) {
    return NULL;
  }
  slw_object_init(&tensor->object, kTVMFFITensor, delete_tensor);
  tensor->tensor.device = device;
  tensor->tensor.ndim = ndim;
  tensor->tensor.dtype = dtype;
  tensor->tensor.shape = tensor->shape;
  tensor->tensor.strides = tensor->strides;
  if (ndim > 0) {
    memcpy(tensor->shape, shape, (size_t)ndim * sizeof shape[0]);
  }
  for (int32_t i = ndim - 1; i >= 0; --i) {
    /* The size is known not to overflow; an empty tensor's strides count its gaps as one. */
    int64_t inner = (i == ndim - 1) ? 1 : tensor->strides[i + 1] * (shape[i + 1] ? shape[i + 1] : 1);
    tensor->strides[i] = inner;
  }
  return tensor;
}

slw_status slw_tensor_alloc(const int64_t *shape, int32_t ndim, DLDataType dtype, DLDevice device,
                            slw_tensor **out) {
  size_t size_bytes = 0;
  slw_tensor *tensor;
  const slw_device_api *api = NULL;
  slw_status status = slw_tensor_size_bytes(shape, ndim, dtype, &size_bytes);
  if (status != SLW_OK) {
    return status;
  }
  if (device.device_type != kDLCPU) {
    api = slw_device_find(device.device_type);
    if (api == NULL) {
      return SLW_ERROR_ARGUMENT;
    }
  }
  tensor = new_tensor(shape, ndim, dtype, device);
  if (tensor == NULL) {
    return SLW_ERROR_MEMORY;
  }
  if (size_bytes > 0) {
    if (api != NULL) {
      status = api->alloc(device.device_id, size_bytes, &tensor->allocation);
    } else {
      tensor->allocation = slw_platform_alloc(size_bytes, SLW_TENSOR_ALIGNMENT);
      status = (tensor->allocation != NULL) ? SLW_OK : SLW_ERROR_MEMORY;
    }
    if (status != SLW_OK) {
      slw_object_release(&tensor->object);
      return status;
    }
    tensor->tensor.data = tensor->allocation;
  }
  *out = tensor;
  return SLW_OK;
}

slw_status slw_tensor_view(const DLTensor *source, TVMFFIObject *owner, slw_tensor **out) {
  slw_tensor *tensor;
  if (source->ndim < 0 || source->ndim > SLW_TENSOR_MAX_NDIM ||
      !slw_tensor_is_contiguous(source)) {
    return SLW_ERROR_ARGUMENT;
  }
  tensor = new_tensor(source->shape, source->ndim, source->dtype, source->device);
  if (tensor == NULL) {
    return SLW_ERROR_MEMORY;
  }
  tensor->tensor.data = source->data;
  tensor->tensor.byte_offset = source->byte_offset;
  tensor->owner = owner;
  if (owner != NULL) {
    slw_object_retain(owner);
  }
  *out = tensor;
  return SLW_OK;
}

slw_status slw_tensor_copy(const DLTensor *from, DLTensor *to) {
  size_t from_bytes = 0;
  size_t to_bytes = 0;
  if (slw_tensor_size_bytes(from->shape, from->ndim, from->dtype, &from_bytes) != SLW_OK ||
      slw_tensor_size_bytes(to->shape, to->ndim, to->dtype, &to_bytes) != SLW_OK ||
      from_bytes != to_bytes || from->dtype.code != to->dtype.code ||
      from->dtype.bits != to->dtype.bits || from->dtype.lanes != to->dtype.lanes ||
      !slw_tensor_is_contiguous(from) || !slw_tensor_is_contiguous(to)) {
    return SLW_ERROR_TENSOR;
  }
  if (from_bytes == 0) {
    return SLW_OK;
  }
  return slw_device_move((const char *)from->data + from->byte_offset, from->device.device_type,
                         (char *)to->data + to->byte_offset, to->device.device_type, from_bytes);
}

slw_status slw_any_get_blob(const TVMFFIAny *value, const char **data, size_t *size_bytes) {
  const DLTensor *tensor = slw_any_get_tensor(value);
  if (tensor == NULL) {
    return slw_any_get_bytes(value, data, size_bytes);
  }
  if (tensor->dtype.code != kDLUInt || tensor->dtype.bits != 8 ||
      tensor->device.device_type != kDLCPU || !slw_tensor_is_contiguous(tensor) ||
      slw_tensor_size_bytes(tensor->shape, tensor->ndim, tensor->dtype, size_bytes) != SLW_OK) {
    return SLW_ERROR_ARGUMENT;
  }
  *data = (const char *)tensor->data + tensor->byte_offset;
  return SLW_OK;
}

void slw_dtype_text(DLDataType dtype, char *text, size_t size_bytes) {
  static const char *const NAMES[] = {"int", "uint", "float", "handle", "bfloat", "complex",
                                      "bool"};
  size_t used;
  const char *name = (dtype.code < sizeof NAMES / sizeof NAMES[0]) ? NAMES[dtype.code] : "type";
  if (dtype.code == kDLBool || dtype.code == kDLOpaqueHandle) {
    used = slw_format(text, size_bytes, "%s", name);
  } else {
    used = slw_format(text, size_bytes, "%s%u", name, (unsigned)dtype.bits);
  }
  if (dtype.lanes != 1 && used < size_bytes) {
    (void)slw_format(text + used, size_bytes - used, "x%u", (unsigned)dtype.lanes);
  }
}

void slw_shape_text(const int64_t *shape, int32_t ndim, char *text, size_t size_bytes) {
  size_t used = slw_format(text, size_bytes, "(");
  for (int32_t i = 0; i < ndim; ++i) {
    used += slw_format(text + used, size_bytes - used, (i == 0) ? "%lld" : ", %lld",
                       (long long)shape[i]);
  }
  (void)slw_format(text + used, size_bytes - used, (ndim == 1) ? ",)" : ")");
}
