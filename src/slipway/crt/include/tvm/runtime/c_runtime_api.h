/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The classic C interface of a TVM runtime, over this runtime's calling convention (slipway/abi.h).
 *
 * Functions return 0, or -1 after they have set the calling thread's error, which TVMGetLastError
 * returns as "ValueError: what was wrong". Handles are counted objects: what a function gives out
 * belongs to the caller, who frees it with the function of its kind. Arguments are borrowed.
 */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>

#include <dlpack/dlpack.h>

#include "slipway/abi.h"

#ifndef TVM_DLL
#define TVM_DLL SLW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t tvm_index_t;
typedef DLDevice TVMContext;
typedef DLDataType TVMType;
typedef DLTensor TVMArray;
typedef DLTensor *TVMArrayHandle;
typedef void *TVMModuleHandle;
typedef void *TVMFunctionHandle;
typedef void *TVMObjectHandle;
typedef void *TVMRetValueHandle;
typedef void *TVMStreamHandle;

/** What a TVMValue holds. */
typedef enum {
  kTVMArgInt = 0,   /* kDLInt */
  kTVMArgFloat = 2, /* kDLFloat */
  kTVMOpaqueHandle = 3,
  kTVMNullptr = 4,
  kTVMDataType = 5,
  kDLDevice = 6,
  kTVMDLTensorHandle = 7, /* a DLTensor * that is borrowed */
  kTVMObjectHandle = 8,
  kTVMModuleHandle = 9,
  kTVMPackedFuncHandle = 10,
  kTVMStr = 11, /* v_str, ends with NUL */
  kTVMBytes = 12, /* v_handle is a TVMByteArray * */
  kTVMNDArrayHandle = 13, /* v_handle is the DLTensor * of a counted array */
  kTVMObjectRValueRefArg = 14,
  kTVMExtBegin = 15
} TVMArgTypeCode;

typedef union {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
  const char *v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

typedef struct {
  const char *data;
  size_t size;
} TVMByteArray;

/** A function of C: sets its result with TVMCFuncSetReturn; returns 0, or -1 after
 * TVMAPISetLastError. */
typedef int (*TVMPackedCFunc)(TVMValue *args, int *type_codes, int num_args, TVMRetValueHandle ret,
                              void *resource_handle);
typedef void (*TVMPackedCFuncFinalizer)(void *resource_handle);

/* Errors. */

/** Set the thread's error. "ValueError: text" names the class it has in other languages; a message
 * without one is a RuntimeError. */
TVM_DLL void TVMAPISetLastError(const char *msg);

/** Return the thread's error, "" when there is none; valid until the thread's next call. */
TVM_DLL const char *TVMGetLastError(void);

/* Functions. */

/** Get a global function; *out is NULL, which is no error, if there is none of that name. */
TVM_DLL int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out);
TVM_DLL int TVMFuncListGlobalNames(int *out_size, const char ***out_array);
TVM_DLL int TVMFuncRegisterGlobal(const char *name, TVMFunctionHandle f, int override);
TVM_DLL int TVMFuncRemoveGlobal(const char *name);
TVM_DLL int TVMFuncCreateFromCFunc(TVMPackedCFunc func, void *resource_handle,
                                   TVMPackedCFuncFinalizer fin, TVMFunctionHandle *out);
TVM_DLL int TVMFuncFree(TVMFunctionHandle func);

/** Call a function. A result that is a handle belongs to the caller; text and bytes are valid until
 * the thread's next TVMFuncCall. */
TVM_DLL int TVMFuncCall(TVMFunctionHandle func, TVMValue *arg_values, int *type_codes, int num_args,
                        TVMValue *ret_val, int *ret_type_code);

/** In a TVMPackedCFunc: set the result; text, bytes and handles are copied or retained. */
TVM_DLL int TVMCFuncSetReturn(TVMRetValueHandle ret, TVMValue *value, int *type_code, int num_ret);

/** In a TVMPackedCFunc: make a handle among the arguments one that the callee keeps and frees. */
TVM_DLL int TVMCbArgToReturn(TVMValue *value, int *code);

/* Modules. */

/** Load an exported .so or .tar. `format` is not needed: the file says what it is. */
TVM_DLL int TVMModLoadFromFile(const char *file_name, const char *format, TVMModuleHandle *out);

/** Get a function, which keeps the module alive; *out is NULL, which is no error, if there is
 * none of that name. */
TVM_DLL int TVMModGetFunction(TVMModuleHandle mod, const char *func_name, int query_imports,
                              TVMFunctionHandle *out);
TVM_DLL int TVMModFree(TVMModuleHandle mod);

/* Any counted object. */
TVM_DLL int TVMObjectRetain(TVMObjectHandle obj);
TVM_DLL int TVMObjectFree(TVMObjectHandle obj);

/* Arrays. */

/** Make an array of zeros, aligned to 64 bytes. */
TVM_DLL int TVMArrayAlloc(const tvm_index_t *shape, int ndim, int dtype_code, int dtype_bits,
                          int dtype_lanes, int device_type, int device_id, TVMArrayHandle *out);
TVM_DLL int TVMArrayFree(TVMArrayHandle handle);
TVM_DLL int TVMArrayCopyFromBytes(TVMArrayHandle handle, void *data, size_t nbytes);
TVM_DLL int TVMArrayCopyToBytes(TVMArrayHandle handle, void *data, size_t nbytes);
TVM_DLL int TVMArrayCopyFromTo(TVMArrayHandle from, TVMArrayHandle to, TVMStreamHandle stream);

/** Make an array over a tensor of DLPack, which belongs to the array from then on. */
TVM_DLL int TVMArrayFromDLPack(DLManagedTensor *from, TVMArrayHandle *out);
TVM_DLL int TVMArrayToDLPack(TVMArrayHandle from, DLManagedTensor **out);
TVM_DLL void TVMDLManagedTensorCallDeleter(DLManagedTensor *dltensor);

/* Memory of a device; TVMSynchronize waits for the work that was given to it. */
TVM_DLL int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment,
                                    DLDataType type_hint, void **out_data);
TVM_DLL int TVMDeviceFreeDataSpace(DLDevice dev, void *ptr);
TVM_DLL int TVMDeviceCopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream);
TVM_DLL int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
