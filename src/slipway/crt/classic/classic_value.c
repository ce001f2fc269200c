/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "slipway/classic.h"
#include "slipway/error.h"

/* Every text of the calling convention ends with a NUL; one that has more of them would be cut off,
 * and is viewed as bytes. */
static int is_c_string(const TVMFFIAny *from, const char *data, size_t size) {
  const int is_text = from->type_index == kTVMFFISmallStr || from->type_index == kTVMFFIStr;
  return from->type_index == kTVMFFIRawStr || (is_text && memchr(data, 0, size) == NULL);
}

void slw_classic_view(const TVMFFIAny *from, TVMValue *value, int *type_code,
                      TVMByteArray *bytes) {
  const char *data = NULL;
  size_t size = 0;
  value->v_int64 = 0;
  switch (from->type_index) {
    case kTVMFFINone:
      *type_code = kTVMNullptr;
      return;
    case kTVMFFIInt:
    case kTVMFFIBool:
      *type_code = kTVMArgInt;
      value->v_int64 = from->v_int64;
      return;
    case kTVMFFIFloat:
      *type_code = kTVMArgFloat;
      value->v_float64 = from->v_float64;
      return;
    case kTVMFFIOpaquePtr:
      *type_code = kTVMOpaqueHandle;
      break;
    case kTVMFFIDataType:
      *type_code = kTVMDataType;
      value->v_type = from->v_dtype;
      return;
    case kTVMFFIDevice:
      *type_code = kDLDevice;
      value->v_device = from->v_device;
      return;
    case kTVMFFIDLTensorPtr:
      *type_code = kTVMDLTensorHandle;
      break;
    case kTVMFFITensor:
      *type_code = kTVMNDArrayHandle;
      value->v_handle = slw_any_get_tensor(from);
      return;
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr:
    case kTVMFFIByteArrayPtr:
    case kTVMFFISmallBytes:
    case kTVMFFIBytes:
      (void)slw_any_get_bytes(from, &data, &size);
      if (is_c_string(from, data, size)) {
        *type_code = kTVMStr;
        value->v_str = data;
        return;
      }
      *type_code = kTVMBytes;
      bytes->data = data;
      bytes->size = size;
      value->v_handle = bytes;
      return;
    case kTVMFFIFunction:
      *type_code = kTVMPackedFuncHandle;
      break;
    case kTVMFFIModule:
      *type_code = kTVMModuleHandle;
      break;
    default:
      *type_code = kTVMObjectHandle;
      break;
  }
  value->v_handle = from->v_ptr;
}

int slw_classic_argument(const TVMValue *value, int type_code, TVMFFIAny *out) {
  memset(out, 0, sizeof *out);
  switch (type_code) {
    case kTVMNullptr:
      return 0;
    case kTVMArgInt:
    case 1: /* kDLUInt */
      out->type_index = kTVMFFIInt;
      out->v_int64 = value->v_int64;
      return 0;
    case kTVMArgFloat:
      out->type_index = kTVMFFIFloat;
      out->v_float64 = value->v_float64;
      return 0;
    case kTVMDataType:
      out->type_index = kTVMFFIDataType;
      out->v_dtype = value->v_type;
      return 0;
    case kDLDevice:
      out->type_index = kTVMFFIDevice;
      out->v_device = value->v_device;
      return 0;
    default:
      break;
  }
  if (value->v_handle == NULL) {
    return 0;
  }
  switch (type_code) {
    case kTVMOpaqueHandle:
      out->type_index = kTVMFFIOpaquePtr;
      break;
    case kTVMDLTensorHandle:
      out->type_index = kTVMFFIDLTensorPtr;
      break;
    case kTVMStr:
      out->type_index = kTVMFFIRawStr;
      out->v_c_str = value->v_str;
      return 0;
    case kTVMBytes: /* the two structs are one */
      out->type_index = kTVMFFIByteArrayPtr;
      break;
    case kTVMNDArrayHandle:
      out->type_index = kTVMFFITensor;
      out->v_obj = slw_array_object(value->v_handle);
      return 0;
    case kTVMPackedFuncHandle:
    case kTVMModuleHandle:
    case kTVMObjectHandle:
      out->type_index = ((const TVMFFIObject *)value->v_handle)->type_index;
      break;
    default:
      return slw_error_setf("TypeError", "a value of type code %d cannot be passed to a function",
                            type_code);
  }
  out->v_ptr = value->v_handle;
  return 0;
}

int slw_classic_result(const TVMValue *value, int type_code, TVMFFIAny *out) {
  TVMFFIAny view;
  slw_status status = SLW_OK;
  const char *data = NULL;
  size_t size = 0;
  if (slw_classic_argument(value, type_code, &view) != 0) {
    return -1;
  }
  switch (view.type_index) {
    case kTVMFFIRawStr:
      status = slw_any_set_string(out, view.v_c_str, strlen(view.v_c_str));
      break;
    case kTVMFFIByteArrayPtr:
      (void)slw_any_get_bytes(&view, &data, &size);
      status = slw_any_set_bytes(out, data, size);
      break;
    case kTVMFFIDLTensorPtr:
      return slw_error_setf("TypeError", "a function cannot return a DLTensor *, whose memory "
                                         "nobody would own: return an array");
    default:
      if (view.type_index >= kTVMFFIStaticObjectBegin) {
        slw_object_retain(view.v_obj);
      }
      *out = view;
      break;
  }
  return (status == SLW_OK) ? 0 : slw_error_setf("MemoryError", "no memory for a result");
}
