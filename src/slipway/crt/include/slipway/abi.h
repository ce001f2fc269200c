/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The binary interface of every compiled function: TVM-FFI's calling convention and DLPack's
 * tensor, restated here so that a device needs no other header.  All layouts below are fixed by
 * those two standards (tvm-ffi 0.1, DLPack 1.x) and are checked at compile time.
 *
 * A function takes `num_args` tagged values and fills one result:
 *     int f(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result);
 * It returns 0, or -1 after it has set the calling thread's error (see error.h).
 */
#ifndef SLIPWAY_ABI_H_
#define SLIPWAY_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && !defined(SLW_STATIC)
#define SLW_API __attribute__((visibility("default")))
#else
#define SLW_API
#endif

/* A process that includes the standards' own headers keeps those. */
#ifndef DLPACK_DLPACK_H_

/** DLPack's device types that have a name here; others may pass through unnamed. */
typedef enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLROCM = 10,
  kDLWebGPU = 15,
  kDLHexagon = 16
} DLDeviceType;

typedef struct {
  int32_t device_type; /* a DLDeviceType; int32_t because remote masks may be added */
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
} DLDataTypeCode;

/** Type of one element: `lanes` values of `bits` bits each. */
typedef struct {
  uint8_t code; /* a DLDataTypeCode */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/** A tensor that owns nothing. Strides are in elements; NULL means row-major and compact. */
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset; /* bytes from `data` to the first element */
} DLTensor;

/** A tensor with its owner: whoever has it calls `deleter` when done. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#endif /* DLPACK_DLPACK_H_ */

#ifndef TVM_FFI_C_API_H_

/** Tags of a TVMFFIAny. From 64 upwards the payload is a pointer to a counted object. */
enum {
  kTVMFFINone = 0,
  kTVMFFIInt = 1,
  kTVMFFIBool = 2,
  kTVMFFIFloat = 3,
  kTVMFFIOpaquePtr = 4,
  kTVMFFIDataType = 5,
  kTVMFFIDevice = 6,
  kTVMFFIDLTensorPtr = 7,
  kTVMFFIRawStr = 8,
  kTVMFFIByteArrayPtr = 9,
  kTVMFFIObjectRValueRef = 10,
  kTVMFFISmallStr = 11,
  kTVMFFISmallBytes = 12,
  kTVMFFIStaticObjectBegin = 64,
  kTVMFFIObject = 64,
  kTVMFFIStr = 65,
  kTVMFFIBytes = 66,
  kTVMFFIError = 67,
  kTVMFFIFunction = 68,
  kTVMFFIShape = 69,
  kTVMFFITensor = 70,
  kTVMFFIArray = 71,
  kTVMFFIMap = 72,
  kTVMFFIModule = 73
};

/** Head of every counted object: strong count in the low 32 bits, weak count in the high ones. */
typedef struct {
  uint64_t combined_ref_count;
  int32_t type_index;
  uint32_t __padding;
  union {
    void (*deleter)(void *self, int flags); /* flags: 1 = destroy, 2 = free, 3 = both */
    int64_t __ensure_align;
  };
} TVMFFIObject;

typedef struct {
  const char *data;
  size_t size; /* bytes */
} TVMFFIByteArray;

/** One tagged value, 16 bytes on every machine. */
typedef struct {
  int32_t type_index;
  union {
    uint32_t zero_padding;
    uint32_t small_str_len;
  };
  union {
    int64_t v_int64;
    double v_float64;
    void *v_ptr;
    const char *v_c_str;
    TVMFFIObject *v_obj;
    DLDataType v_dtype;
    DLDevice v_device;
    char v_bytes[8];
    uint64_t v_uint64;
  };
} TVMFFIAny;

typedef int (*TVMFFISafeCallType)(void *handle, const TVMFFIAny *args, int32_t num_args,
                                  TVMFFIAny *result);

/** Follows the head of a function object (kTVMFFIFunction). */
typedef struct {
  TVMFFISafeCallType safe_call;
  void *cpp_call;
} TVMFFIFunctionCell;

#endif /* TVM_FFI_C_API_H_ */

#ifndef __cplusplus
_Static_assert(sizeof(TVMFFIAny) == 16, "TVMFFIAny is 16 bytes");
_Static_assert(sizeof(TVMFFIObject) == 24, "TVMFFIObject is 24 bytes");
_Static_assert(sizeof(DLDevice) == 8, "DLDevice is 8 bytes");
#endif

/** A callable: what a module hands out. `self` is the first argument of `call`. */
typedef struct {
  TVMFFISafeCallType call;
  void *self;
} slw_function;

/** Types of the pointer slots that a loader fills in an exported library. */
typedef void (*slw_error_set_fn)(const char *kind, const char *message);
typedef int (*slw_parallel_body)(void *closure, int32_t task_id, int32_t num_tasks);
typedef int (*slw_parallel_launch_fn)(slw_parallel_body body, void *closure, int32_t num_tasks);
typedef void *(*slw_workspace_alloc_fn)(uint64_t nbytes, int32_t device_type, int32_t device_id);
typedef void (*slw_workspace_free_fn)(void *ptr, int32_t device_type, int32_t device_id);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_ABI_H_ */
