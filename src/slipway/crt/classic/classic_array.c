/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and device memory of the classic interface. */
#include <string.h>

#include "slipway/classic.h"
#include "slipway/device_api.h"
#include "slipway/error.h"
#include "slipway/platform.h"
#include "slipway/tensor.h"

#define SHAPE_TEXT_BYTES 160

/* Whether there is such a kind of device; the thread's error is set if there is not. */
static int is_known(const char *function, int32_t device_type) {
  if (device_type == kDLCPU || slw_device_find(device_type) != NULL) {
    return 1;
  }
#if !defined(SLW_NO_THREADS)
  slw_classic_find_devices();
#endif
  if (slw_device_find(device_type) != NULL) {
    return 1;
  }
  (void)slw_error_setf("ValueError", "%s: this runtime has no device of type %d; cpu(0) is "
                                     "{kDLCPU, 0}",
                       function, (int)device_type);
  return 0;
}

int TVMArrayAlloc(const tvm_index_t *shape, int ndim, int dtype_code, int dtype_bits,
                  int dtype_lanes, int device_type, int device_id, TVMArrayHandle *out) {
  DLDataType dtype;
  DLDevice device;
  slw_tensor *made = NULL;
  slw_status status;
  memset(&dtype, 0, sizeof dtype);
  memset(&device, 0, sizeof device);
  dtype.code = (uint8_t)dtype_code;
  dtype.bits = (uint8_t)dtype_bits;
  dtype.lanes = (uint16_t)dtype_lanes;
  device.device_id = device_id;
  memcpy(&device.device_type, &device_type, sizeof device.device_type);
  slw_error_clear();
  if (!is_known("TVMArrayAlloc", (int32_t)device.device_type)) {
    return -1;
  }
  status = slw_tensor_alloc(shape, ndim, dtype, device, &made);
  if (status != SLW_OK && slw_error_kind()[0] != '\0') {
    return -1; /* the device has said why */
  }
  if (status != SLW_OK) {
    char shape_text[SHAPE_TEXT_BYTES] = "";
    char dtype_text[32];
    if (shape != NULL && ndim >= 0 && ndim <= SLW_TENSOR_MAX_NDIM) {
      slw_shape_text(shape, ndim, shape_text, sizeof shape_text);
    }
    slw_dtype_text(dtype, dtype_text, sizeof dtype_text);
    return slw_error_setf((status == SLW_ERROR_MEMORY) ? "MemoryError" : "ValueError",
                          "an array of shape %s (%d dimensions) and dtype %s cannot be made: %s",
                          shape_text, ndim, dtype_text, slw_status_text(status));
  }
  *out = &made->tensor;
  return 0;
}

int TVMArrayFree(TVMArrayHandle handle) {
  if (handle != NULL) {
    slw_object_release(slw_array_object(handle));
  }
  return 0;
}

/* Whether `nbytes` are what the array holds; the thread's error is set if they are not. */
static int holds(const char *function, const DLTensor *array, const void *data, size_t nbytes) {
  size_t held = 0;
  if (data == NULL && nbytes > 0) {
    (void)slw_error_setf("ValueError", "%s: the pointer to the bytes is null", function);
    return 0;
  }
  if (array == NULL || slw_tensor_size_bytes(array->shape, array->ndim, array->dtype, &held) !=
                           SLW_OK) {
    (void)slw_error_setf("ValueError", "%s: this is not an array", function);
    return 0;
  }
  if (held != nbytes || !slw_tensor_is_contiguous(array)) {
    (void)slw_error_setf("ValueError", "%s: the array holds %zu bytes%s, and %zu were given",
                         function, held,
                         slw_tensor_is_contiguous(array) ? "" : " that are not in one piece",
                         nbytes);
    return 0;
  }
  return 1;
}

static int moved(const char *function, slw_status status) {
  if (status != SLW_OK && slw_error_kind()[0] == '\0') {
    (void)slw_error_setf("ValueError", "%s: %s", function, slw_status_text(status));
  }
  return (status == SLW_OK) ? 0 : -1;
}

int TVMArrayCopyFromBytes(TVMArrayHandle handle, void *data, size_t nbytes) {
  static const char NAME[] = "TVMArrayCopyFromBytes";
  slw_error_clear();
  return !holds(NAME, handle, data, nbytes)
             ? -1
             : moved(NAME, slw_device_move(data, kDLCPU,
                                           (char *)handle->data + handle->byte_offset,
                                           (int32_t)handle->device.device_type, nbytes));
}

int TVMArrayCopyToBytes(TVMArrayHandle handle, void *data, size_t nbytes) {
  static const char NAME[] = "TVMArrayCopyToBytes";
  slw_error_clear();
  return !holds(NAME, handle, data, nbytes)
             ? -1
             : moved(NAME, slw_device_move((const char *)handle->data + handle->byte_offset,
                                           (int32_t)handle->device.device_type, data, kDLCPU,
                                           nbytes));
}

int TVMArrayCopyFromTo(TVMArrayHandle from, TVMArrayHandle to, TVMStreamHandle stream) {
  return TVMDeviceCopyDataFromTo(from, to, stream);
}

int TVMDeviceCopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream) {
  char texts[2][32];
  (void)stream;
  slw_error_clear();
  if (from != NULL && to != NULL && slw_tensor_copy(from, to) == SLW_OK) {
    return 0;
  }
  if (from == NULL || to == NULL) {
    return slw_error_setf("ValueError", "an array to copy is missing");
  }
  if (slw_error_kind()[0] != '\0') {
    return -1; /* the device has said why */
  }
  slw_dtype_text(from->dtype, texts[0], sizeof texts[0]);
  slw_dtype_text(to->dtype, texts[1], sizeof texts[1]);
  return slw_error_setf("ValueError", "an array of %s cannot be copied to one of %s: both must be "
                                      "contiguous, and of one dtype and size",
                        texts[0], texts[1]);
}

typedef struct {
  TVMFFIObject object;
  DLManagedTensor *managed;
} managed_owner;

static void delete_owner(void *self, int flags) {
  managed_owner *owner = self;
  if ((flags & 1) != 0 && owner->managed != NULL && owner->managed->deleter != NULL) {
    owner->managed->deleter(owner->managed);
  }
  if ((flags & 2) != 0) {
    slw_platform_free(owner);
  }
}

int TVMArrayFromDLPack(DLManagedTensor *from, TVMArrayHandle *out) {
  slw_tensor *made = NULL;
  managed_owner *owner;
  slw_status status = SLW_ERROR_MEMORY;
  if (from == NULL) {
    return slw_error_setf("ValueError", "TVMArrayFromDLPack: there is no DLPack tensor");
  }
  owner = slw_platform_alloc(sizeof *owner, sizeof(uint64_t));
  if (owner != NULL) {
    slw_object_init(&owner->object, kTVMFFIObject, delete_owner);
    status = slw_tensor_view(&from->dl_tensor, &owner->object, &made);
    if (status == SLW_OK) {
      owner->managed = from; /* from here on; a caller whose tensor was refused still owns it */
    }
    slw_object_release(&owner->object);
  }
  if (status != SLW_OK) {
    return slw_error_setf((status == SLW_ERROR_MEMORY) ? "MemoryError" : "ValueError",
                          "this DLPack tensor cannot become an array: %s. It must be contiguous; "
                          "copy it first.",
                          slw_status_text(status));
  }
  *out = &made->tensor;
  return 0;
}

static void release_array(DLManagedTensor *self) {
  slw_object_release(self->manager_ctx);
  slw_platform_free(self);
}

int TVMArrayToDLPack(TVMArrayHandle from, DLManagedTensor **out) {
  DLManagedTensor *made;
  if (from == NULL) {
    return slw_error_setf("ValueError", "TVMArrayToDLPack: there is no array");
  }
  made = slw_platform_alloc(sizeof *made, sizeof(uint64_t));
  if (made == NULL) {
    return slw_error_setf("MemoryError", "no memory for a DLPack tensor");
  }
  made->dl_tensor = *from;
  made->manager_ctx = slw_array_object(from);
  made->deleter = release_array;
  slw_object_retain(slw_array_object(from));
  *out = made;
  return 0;
}

void TVMDLManagedTensorCallDeleter(DLManagedTensor *dltensor) {
  if (dltensor != NULL && dltensor->deleter != NULL) {
    dltensor->deleter(dltensor);
  }
}

int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment, DLDataType type_hint,
                            void **out_data) {
  const size_t size = (nbytes > 0) ? nbytes : 1u;
  (void)type_hint;
  slw_error_clear();
  if (!is_known("TVMDeviceAllocDataSpace", (int32_t)dev.device_type)) {
    return -1;
  }
  if (alignment == 0 || (alignment & (alignment - 1u)) != 0) {
    return slw_error_setf("ValueError", "an alignment is a power of two, not %zu", alignment);
  }
  if (dev.device_type != kDLCPU) {
    const slw_device_api *api = slw_device_find((int32_t)dev.device_type);
    return moved("TVMDeviceAllocDataSpace", api->alloc(dev.device_id, size, out_data));
  }
  *out_data = slw_platform_alloc(size, (alignment > sizeof(void *)) ? alignment : sizeof(void *));
  return (*out_data != NULL) ? 0 : slw_error_setf("MemoryError", "no memory for %zu bytes", nbytes);
}

int TVMDeviceFreeDataSpace(DLDevice dev, void *ptr) {
  const slw_device_api *api = slw_device_find((int32_t)dev.device_type);
  if (dev.device_type == kDLCPU) {
    slw_platform_free(ptr);
  } else if (api != NULL && ptr != NULL) {
    api->release(ptr);
  }
  return 0;
}

int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream) {
  const slw_device_api *api;
  (void)stream; /* a device has one queue */
  slw_error_clear();
  if (!is_known("TVMSynchronize", device_type)) {
    return -1;
  }
  api = slw_device_find(device_type);
  return (api != NULL) ? moved("TVMSynchronize", api->synchronize(device_id)) : 0;
}
