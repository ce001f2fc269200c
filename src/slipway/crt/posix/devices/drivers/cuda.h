/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's driver interface as far as the runtime uses it, restated so that no header of NVIDIA's is
 * needed, and the driver's functions, which are looked up when the first of them is wanted. */
#ifndef SLIPWAY_CUDA_H_
#define SLIPWAY_CUDA_H_

#include "device_driver.h"

typedef int32_t cu_int;
typedef uint64_t cu_pointer;
typedef void *cu_object;

enum {
  CU_SUCCESS = 0,
  CU_MAX_THREADS_PER_BLOCK = 1, /* attributes of a device */
  CU_MAX_BLOCK_DIM_X = 2,
  CU_MAX_BLOCK_DIM_Y = 3,
  CU_MAX_BLOCK_DIM_Z = 4,
  CU_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_WARP_SIZE = 10,
  CU_CLOCK_RATE = 13, /* kHz */
  CU_MULTIPROCESSOR_COUNT = 16,
  CU_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_COMPUTE_CAPABILITY_MINOR = 76,
  CU_POINTER_DEVICE_ORDINAL = 9,     /* of an address */
  CU_FUNC_MAX_THREADS_PER_BLOCK = 0, /* of a kernel */
  CU_JIT_ERROR_LOG_BUFFER = 5,       /* for the driver's compiler */
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

/* Name in the table, the driver's name, parameters; all return 0 or the number of an error. */
#define SLW_CUDA_FUNCTIONS(X)                                                                     \
  X(Init, "cuInit", (unsigned))                                                                   \
  X(DriverGetVersion, "cuDriverGetVersion", (cu_int *))                                           \
  X(DeviceGetCount, "cuDeviceGetCount", (cu_int *))                                               \
  X(DeviceGet, "cuDeviceGet", (cu_int *, cu_int))                                                 \
  X(DeviceGetName, "cuDeviceGetName", (char *, cu_int, cu_int))                                   \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (cu_int *, cu_int, cu_int))                       \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, cu_int))                                    \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (cu_object *, cu_int))                    \
  X(CtxSetCurrent, "cuCtxSetCurrent", (cu_object))                                                \
  X(CtxSynchronize, "cuCtxSynchronize", (void))                                                   \
  X(MemAlloc, "cuMemAlloc_v2", (cu_pointer *, size_t))                                            \
  X(MemFree, "cuMemFree_v2", (cu_pointer))                                                        \
  X(MemcpyHtoD, "cuMemcpyHtoD_v2", (cu_pointer, const void *, size_t))                            \
  X(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *, cu_pointer, size_t))                                  \
  X(MemcpyDtoD, "cuMemcpyDtoD_v2", (cu_pointer, cu_pointer, size_t))                              \
  X(PointerGetAttribute, "cuPointerGetAttribute", (void *, cu_int, cu_pointer))                   \
  X(ModuleLoadDataEx, "cuModuleLoadDataEx",                                                       \
    (cu_object *, const void *, unsigned, cu_int *, void **))                                     \
  X(ModuleGetFunction, "cuModuleGetFunction", (cu_object *, cu_object, const char *))             \
  X(FuncGetAttribute, "cuFuncGetAttribute", (cu_int *, cu_int, cu_object))                        \
  X(LaunchKernel, "cuLaunchKernel",                                                               \
    (cu_object, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_object,  \
     void **, void **))                                                                           \
  X(EventCreate, "cuEventCreate", (cu_object *, unsigned))                                        \
  X(EventRecord, "cuEventRecord", (cu_object, cu_object))                                         \
  X(EventSynchronize, "cuEventSynchronize", (cu_object))                                          \
  X(EventElapsedTime, "cuEventElapsedTime", (float *, cu_object, cu_object))                      \
  X(EventDestroy, "cuEventDestroy_v2", (cu_object))                                               \
  X(GetErrorName, "cuGetErrorName", (cu_int, const char **))                                      \
  X(GetErrorString, "cuGetErrorString", (cu_int, const char **))

typedef struct {
#define SLW_CUDA_FIELD(name, symbol, parameters) cu_int(*name) parameters;
  SLW_CUDA_FUNCTIONS(SLW_CUDA_FIELD)
#undef SLW_CUDA_FIELD
} slw_cuda_functions;

extern slw_device_driver slw_cuda;

/* The driver's functions, once it works. */
extern slw_cuda_functions slw_cu;

/* Make a device the one that this thread's calls are for; 0 with the thread's error set. */
int slw_cuda_use(int32_t device_id);

/* The driver's handle of a device that exists. */
cu_int slw_cuda_handle(int32_t device_id);

/* Set the thread's error: `what` could not be done on a device. */
slw_status slw_cuda_failed(int32_t device_id, const char *what, cu_int code);

/* --- cuda_code.c; the device is in use --- */

slw_status slw_cuda_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                            uint64_t *handle);
slw_status slw_cuda_kernel(int32_t device_id, uint64_t program, const slw_device_launch *launch,
                           slw_device_kernel *out);

#endif /* SLIPWAY_CUDA_H_ */
