/* SPDX-License-Identifier: Apache-2.0 */
/* The driver interface of NVIDIA's GPUs (CUDA), or of AMD's (HIP) where hip.c includes this, as far
 * as the runtime uses it, restated so that no header of theirs is needed, and the driver's functions,
 * which are looked up when the first of them is wanted. */
#ifndef SLIPWAY_CUDA_H_
#define SLIPWAY_CUDA_H_

#include "device_driver.h"
#include "device_streams.h"

#ifdef SLW_HIP /* the functions below are one text for both */
#define slw_cuda slw_hip
#define slw_cu slw_hip_calls
#define slw_cuda_functions slw_hip_functions
#define slw_cuda_use slw_hip_use
#define slw_cuda_handle slw_hip_handle
#define slw_cuda_failed slw_hip_failed
#define slw_cuda_program slw_hip_program
#define slw_cuda_kernel slw_hip_kernel
#define slw_cuda_drop slw_hip_drop
#define slw_cuda_setup slw_hip_setup
#define slw_cuda_streams slw_hip_streams
#define slw_cuda_stream_of slw_hip_stream_of
#define slw_cuda_has_streams slw_hip_has_streams
#define slw_cuda_alloc slw_hip_alloc
#define slw_cuda_release slw_hip_release
#define slw_cuda_trim slw_hip_trim
#define SLW_GPU_KIND kDLROCM
#define SLW_GPU_NAME "rocm"
#define SLW_GPU_TITLE "HIP"
#define SLW_GPU_CALL(cuda, hip) "hip" hip
#else
#define SLW_GPU_KIND kDLCUDA
#define SLW_GPU_NAME "cuda"
#define SLW_GPU_TITLE "CUDA"
#define SLW_GPU_CALL(cuda, hip) "cu" cuda
#endif

typedef int32_t cu_int;
typedef uint64_t cu_pointer;
typedef void *cu_object;
#ifdef SLW_HIP
typedef cu_int cu_context; /* what calls are for: HIP knows a device by its number */
#else
typedef cu_object cu_context;
#endif

enum {
  CU_SUCCESS = 0,
#ifdef SLW_HIP /* hipDeviceAttribute_t */
  CU_MAX_THREADS_PER_BLOCK = 56,
  CU_MAX_BLOCK_DIM_X = 26,
  CU_MAX_BLOCK_DIM_Y = 27,
  CU_MAX_BLOCK_DIM_Z = 28,
  CU_MAX_SHARED_MEMORY_PER_BLOCK = 74,
  CU_WARP_SIZE = 87,
  CU_CLOCK_RATE = 5, /* kHz */
  CU_MULTIPROCESSOR_COUNT = 63,
  CU_COMPUTE_CAPABILITY_MAJOR = 23,
  CU_COMPUTE_CAPABILITY_MINOR = 61,
#else /* CUdevice_attribute */
  CU_MAX_THREADS_PER_BLOCK = 1,
  CU_MAX_BLOCK_DIM_X = 2,
  CU_MAX_BLOCK_DIM_Y = 3,
  CU_MAX_BLOCK_DIM_Z = 4,
  CU_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_WARP_SIZE = 10,
  CU_CLOCK_RATE = 13, /* kHz */
  CU_MULTIPROCESSOR_COUNT = 16,
  CU_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_COMPUTE_CAPABILITY_MINOR = 76,
  CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
#endif
  CU_EVENT_WITHOUT_TIME = 2,
  CU_POINTER_DEVICE_ORDINAL = 9,     /* of an address */
  CU_FUNC_MAX_THREADS_PER_BLOCK = 0, /* of a kernel */
  CU_FUNC_SHARED_SIZE_BYTES = 1,
  CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_JIT_ERROR_LOG_BUFFER = 5,       /* for the driver's compiler */
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

#ifdef SLW_HIP /* its launches give what they are told to */
#define SLW_CUDA_ALONE(X)
#else
#define SLW_CUDA_ALONE(X) X(FuncSetAttribute, "cuFuncSetAttribute", (cu_object, cu_int, cu_int))
#endif

/* Name in the table, the driver's names, parameters; all return 0 or the number of an error. */
#define SLW_CUDA_FUNCTIONS(X) \
  X(Init, SLW_GPU_CALL("Init", "Init"), (unsigned)) \
  X(DriverGetVersion, SLW_GPU_CALL("DriverGetVersion", "DriverGetVersion"), (cu_int *)) \
  X(DeviceGetCount, SLW_GPU_CALL("DeviceGetCount", "GetDeviceCount"), (cu_int *)) \
  X(DeviceGet, SLW_GPU_CALL("DeviceGet", "DeviceGet"), (cu_int *, cu_int)) \
  X(DeviceGetName, SLW_GPU_CALL("DeviceGetName", "DeviceGetName"), (char *, cu_int, cu_int)) \
  X(DeviceGetAttribute, SLW_GPU_CALL("DeviceGetAttribute", "DeviceGetAttribute"), \
    (cu_int *, cu_int, cu_int)) \
  X(DeviceTotalMem, SLW_GPU_CALL("DeviceTotalMem_v2", "DeviceTotalMem"), (size_t *, cu_int)) \
  X(DevicePrimaryCtxRetain, SLW_GPU_CALL("DevicePrimaryCtxRetain", "DeviceGet"), \
    (cu_context *, cu_int)) \
  X(CtxSetCurrent, SLW_GPU_CALL("CtxSetCurrent", "SetDevice"), (cu_context)) \
  X(CtxSynchronize, SLW_GPU_CALL("CtxSynchronize", "DeviceSynchronize"), (void)) \
  X(MemAlloc, SLW_GPU_CALL("MemAlloc_v2", "Malloc"), (cu_pointer *, size_t)) \
  X(MemFree, SLW_GPU_CALL("MemFree_v2", "Free"), (cu_pointer)) \
  X(MemcpyHtoD, SLW_GPU_CALL("MemcpyHtoD_v2", "MemcpyHtoD"), (cu_pointer, const void *, size_t)) \
  X(MemcpyDtoH, SLW_GPU_CALL("MemcpyDtoH_v2", "MemcpyDtoH"), (void *, cu_pointer, size_t)) \
  X(MemcpyDtoD, SLW_GPU_CALL("MemcpyDtoD_v2", "MemcpyDtoD"), (cu_pointer, cu_pointer, size_t)) \
  X(PointerGetAttribute, SLW_GPU_CALL("PointerGetAttribute", "PointerGetAttribute"), \
    (void *, cu_int, cu_pointer)) \
  X(ModuleLoadDataEx, SLW_GPU_CALL("ModuleLoadDataEx", "ModuleLoadDataEx"), \
    (cu_object *, const void *, unsigned, cu_int *, void **)) \
  X(ModuleUnload, SLW_GPU_CALL("ModuleUnload", "ModuleUnload"), (cu_object)) \
  X(ModuleGetFunction, SLW_GPU_CALL("ModuleGetFunction", "ModuleGetFunction"), \
    (cu_object *, cu_object, const char *)) \
  X(FuncGetAttribute, SLW_GPU_CALL("FuncGetAttribute", "FuncGetAttribute"), \
    (cu_int *, cu_int, cu_object)) \
  SLW_CUDA_ALONE(X) \
  X(LaunchKernel, SLW_GPU_CALL("LaunchKernel", "ModuleLaunchKernel"), \
    (cu_object, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_object, void **, void **)) \
  X(EventCreate, SLW_GPU_CALL("EventCreate", "EventCreateWithFlags"), (cu_object *, unsigned)) \
  X(EventRecord, SLW_GPU_CALL("EventRecord", "EventRecord"), (cu_object, cu_object)) \
  X(EventSynchronize, SLW_GPU_CALL("EventSynchronize", "EventSynchronize"), (cu_object)) \
  X(EventElapsedTime, SLW_GPU_CALL("EventElapsedTime", "EventElapsedTime"), \
    (float *, cu_object, cu_object)) \
  X(EventDestroy, SLW_GPU_CALL("EventDestroy_v2", "EventDestroy"), (cu_object)) \
  X(StreamCreate, SLW_GPU_CALL("StreamCreate", "StreamCreateWithFlags"), (cu_object *, unsigned)) \
  X(StreamDestroy, SLW_GPU_CALL("StreamDestroy_v2", "StreamDestroy"), (cu_object)) \
  X(StreamSynchronize, SLW_GPU_CALL("StreamSynchronize", "StreamSynchronize"), (cu_object)) \
  X(StreamWaitEvent, SLW_GPU_CALL("StreamWaitEvent", "StreamWaitEvent"), \
    (cu_object, cu_object, unsigned)) \
  X(MemHostAlloc, SLW_GPU_CALL("MemHostAlloc", "HostMalloc"), (void **, size_t, unsigned)) \
  X(MemFreeHost, SLW_GPU_CALL("MemFreeHost", "HostFree"), (void *)) \
  X(MemcpyHtoDAsync, SLW_GPU_CALL("MemcpyHtoDAsync_v2", "MemcpyHtoDAsync"), \
    (cu_pointer, const void *, size_t, cu_object)) \
  X(MemcpyDtoHAsync, SLW_GPU_CALL("MemcpyDtoHAsync_v2", "MemcpyDtoHAsync"), \
    (void *, cu_pointer, size_t, cu_object)) \
  X(MemcpyDtoDAsync, SLW_GPU_CALL("MemcpyDtoDAsync_v2", "MemcpyDtoDAsync"), \
    (cu_pointer, cu_pointer, size_t, cu_object)) \
  X(GetErrorName, SLW_GPU_CALL("GetErrorName", "DrvGetErrorName"), (cu_int, const char **)) \
  X(GetErrorString, SLW_GPU_CALL("GetErrorString", "DrvGetErrorString"), \
    (cu_int, const char **))

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

/* --- cuda_streams.c --- */

extern const slw_device_streams slw_cuda_streams;

/* The stream that this thread uses on a device, NULL for the device's own; fails where that was freed. */
slw_status slw_cuda_stream_of(int32_t device_id, cu_object *stream);
int slw_cuda_has_streams(int32_t device_id);

/* --- cuda_memory.c: as device_api.h says --- */

slw_status slw_cuda_alloc(int32_t device_id, size_t size_bytes, void **out);
void slw_cuda_release(void *memory);
slw_status slw_cuda_trim(int32_t device_id);

/* --- cuda_code.c; the device is in use, but to drop a program --- */

slw_status slw_cuda_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                            uint64_t *handle);
slw_status slw_cuda_kernel(int32_t device_id, uint64_t program, const slw_device_text *code,
                             const slw_device_launch *launch, slw_device_kernel *out);
void slw_cuda_drop(int32_t device_id, const slw_device_program *program);

#endif /* SLIPWAY_CUDA_H_ */
