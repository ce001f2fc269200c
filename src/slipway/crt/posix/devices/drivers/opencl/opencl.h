/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL 1.2 as far as the runtime uses it, restated so that no header of a vendor's is needed,
 * and the driver's functions, which are looked up when the first of them is wanted. */
#ifndef SLIPWAY_OPENCL_H_
#define SLIPWAY_OPENCL_H_

#include "../device_driver.h"
#include "../device_streams.h"

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_bits;
typedef void *cl_object;

enum {
  CL_SUCCESS = 0,
  CL_DEVICE_NOT_FOUND = -1,
  CL_DEVICE_NOT_AVAILABLE = -2,
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_RESOURCES = -5,
  CL_OUT_OF_HOST_MEMORY = -6,
  CL_BUILD_PROGRAM_FAILURE = -11,
  CL_DEVICE_TYPE_CPU = 2,
  CL_DEVICE_TYPE_GPU = 4,
  CL_DEVICE_TYPE_ACCELERATOR = 8,
  CL_DEVICE_TYPE_INFO = 0x1000,
  CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
  CL_DEVICE_MAX_CLOCK_FREQUENCY = 0x100C,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_IMAGE2D_MAX_WIDTH = 0x1011,
  CL_DEVICE_IMAGE2D_MAX_HEIGHT = 0x1012,
  CL_DEVICE_IMAGE_SUPPORT = 0x1016,
  CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,
  CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_NAME = 0x102B,
  CL_DRIVER_VERSION = 0x102D,
  CL_DEVICE_VERSION = 0x102F,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BINARIES = 0x1166,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_QUEUE_PROFILING_ENABLE = 2,
  CL_PROFILING_COMMAND_END = 0x1283,
  CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
  CL_MEM_READ_WRITE = 1,
  CL_RGBA = 0x10B5,
  CL_HALF_FLOAT = 0x10DD,
  CL_FLOAT = 0x10DE,
  CL_MEM_OBJECT_IMAGE2D = 0x10F1,
  CL_MEM_ALLOC_HOST_PTR = 16,
  CL_MAP_READ = 1,
  CL_MAP_WRITE = 2,
  CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
  CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 128
};

typedef struct {
  size_t origin;
  size_t size;
} cl_region;

typedef struct {
  cl_uint order;
  cl_uint type;
} cl_image_format;

typedef struct {
  cl_uint type;
  size_t width;
  size_t height;
  size_t depth;
  size_t array_size;
  size_t row_pitch;
  size_t slice_pitch;
  cl_uint num_mip_levels;
  cl_uint num_samples;
  cl_object buffer;
} cl_image_desc;

/* Name in the table, result, parameters: the names of the driver's have "cl" in front. */
#define SLW_OPENCL_FUNCTIONS(X)                                                                   \
  X(GetPlatformIDs, cl_int, (cl_uint, cl_object *, cl_uint *))                                    \
  X(GetDeviceIDs, cl_int, (cl_object, cl_bits, cl_uint, cl_object *, cl_uint *))                  \
  X(GetDeviceInfo, cl_int, (cl_object, cl_uint, size_t, void *, size_t *))                        \
  X(CreateContext, cl_object, (const intptr_t *, cl_uint, const cl_object *, void *, void *,      \
                               cl_int *))                                                         \
  X(CreateCommandQueue, cl_object, (cl_object, cl_object, cl_bits, cl_int *))                     \
  X(ReleaseCommandQueue, cl_int, (cl_object))                                                     \
  X(ReleaseContext, cl_int, (cl_object))                                                          \
  X(CreateBuffer, cl_object, (cl_object, cl_bits, size_t, void *, cl_int *))                      \
  X(CreateSubBuffer, cl_object, (cl_object, cl_bits, cl_uint, const void *, cl_int *))            \
  X(CreateImage, cl_object, (cl_object, cl_bits, const cl_image_format *, const cl_image_desc *,  \
                             void *, cl_int *))                                                   \
  X(ReleaseMemObject, cl_int, (cl_object))                                                        \
  X(EnqueueReadBuffer, cl_int, (cl_object, cl_object, cl_uint, size_t, size_t, void *, cl_uint,   \
                                const cl_object *, cl_object *))                                  \
  X(EnqueueWriteBuffer, cl_int, (cl_object, cl_object, cl_uint, size_t, size_t, const void *,     \
                                 cl_uint, const cl_object *, cl_object *))                        \
  X(EnqueueCopyBuffer, cl_int, (cl_object, cl_object, cl_object, size_t, size_t, size_t, cl_uint, \
                                const cl_object *, cl_object *))                                  \
  X(EnqueueReadImage, cl_int, (cl_object, cl_object, cl_uint, const size_t *, const size_t *,     \
                               size_t, size_t, void *, cl_uint, const cl_object *, cl_object *))  \
  X(EnqueueWriteImage, cl_int, (cl_object, cl_object, cl_uint, const size_t *, const size_t *,    \
                                size_t, size_t, const void *, cl_uint, const cl_object *,         \
                                cl_object *))                                                     \
  X(EnqueueCopyImage, cl_int, (cl_object, cl_object, cl_object, const size_t *, const size_t *,   \
                               const size_t *, cl_uint, const cl_object *, cl_object *))          \
  X(EnqueueCopyImageToBuffer, cl_int, (cl_object, cl_object, cl_object, const size_t *,           \
                                       const size_t *, size_t, cl_uint, const cl_object *,        \
                                       cl_object *))                                              \
  X(EnqueueCopyBufferToImage, cl_int, (cl_object, cl_object, cl_object, size_t, const size_t *,   \
                                       const size_t *, cl_uint, const cl_object *, cl_object *))  \
  X(CreateProgramWithSource, cl_object, (cl_object, cl_uint, const char **, const size_t *,       \
                                         cl_int *))                                               \
  X(CreateProgramWithBinary, cl_object, (cl_object, cl_uint, const cl_object *, const size_t *,   \
                                         const uint8_t *const *, cl_int *, cl_int *))             \
  X(GetProgramInfo, cl_int, (cl_object, cl_uint, size_t, void *, size_t *))                       \
  X(BuildProgram, cl_int, (cl_object, cl_uint, const cl_object *, const char *, void *, void *))  \
  X(GetProgramBuildInfo, cl_int, (cl_object, cl_object, cl_uint, size_t, void *, size_t *))       \
  X(ReleaseProgram, cl_int, (cl_object))                                                          \
  X(ReleaseKernel, cl_int, (cl_object))                                                           \
  X(CreateKernel, cl_object, (cl_object, const char *, cl_int *))                                 \
  X(GetKernelWorkGroupInfo, cl_int, (cl_object, cl_object, cl_uint, size_t, void *, size_t *))    \
  X(SetKernelArg, cl_int, (cl_object, cl_uint, size_t, const void *))                             \
  X(EnqueueNDRangeKernel, cl_int, (cl_object, cl_object, cl_uint, const size_t *, const size_t *, \
                                   const size_t *, cl_uint, const cl_object *, cl_object *))      \
  X(EnqueueMarkerWithWaitList, cl_int, (cl_object, cl_uint, const cl_object *, cl_object *))      \
  X(EnqueueBarrierWithWaitList, cl_int, (cl_object, cl_uint, const cl_object *, cl_object *))     \
  X(EnqueueMapBuffer, void *, (cl_object, cl_object, cl_uint, cl_bits, size_t, size_t, cl_uint,   \
                               const cl_object *, cl_object *, cl_int *))                         \
  X(EnqueueUnmapMemObject, cl_int, (cl_object, cl_object, void *, cl_uint, const cl_object *,     \
                                    cl_object *))                                                 \
  X(WaitForEvents, cl_int, (cl_uint, const cl_object *))                                          \
  X(GetEventProfilingInfo, cl_int, (cl_object, cl_uint, size_t, void *, size_t *))                \
  X(ReleaseEvent, cl_int, (cl_object))                                                            \
  X(Flush, cl_int, (cl_object))                                                                   \
  X(Finish, cl_int, (cl_object))

typedef struct {
#define SLW_OPENCL_FIELD(name, result, parameters) result(*name) parameters;
  SLW_OPENCL_FUNCTIONS(SLW_OPENCL_FIELD)
#undef SLW_OPENCL_FIELD
} slw_opencl_functions;

/* A device with its queue, made when something is first done there. */
typedef struct {
  cl_object id;
  cl_object context;
  cl_object queue;
  slw_stream_set streams;
  int has_times; /* of what its own queue is given */
  char name[128];
  size_t base_alignment; /* bytes: where a part of an allocation may begin */
  cl_bits memory;        /* flags of its allocations */
} slw_opencl_device;

extern slw_device_driver slw_opencl;

/* The driver's functions, once it works. */
extern slw_opencl_functions slw_cl;

/* A device ready for work, or NULL with the thread's error set. */
slw_opencl_device *slw_opencl_device_of(int32_t device_id);

/* Set the thread's error: `what` could not be done on a device. */
slw_status slw_opencl_failed(int32_t device_id, const char *what, cl_int code);

/* The buffer that an address lies in, with the byte where it lies, and how many are left from
 * there; the number of the device. NULL: no memory of a device. */
cl_object slw_opencl_locate(const void *address, size_t *offset, size_t *left, int32_t *device_id);

/* Bytes of an image, whose rows they fill: where they begin, and what they are, in texels. */
typedef struct {
  size_t origin[3];
  size_t region[3];
} slw_opencl_rows;

/* Whether memory that is there is an image: 0, 1 with the rows that so many bytes are from an address
 * on, or -1 with the thread's error set: they are no whole rows. */
int slw_opencl_rows_of(const void *address, size_t size_bytes, slw_opencl_rows *rows);

/* The buffer that begins at an address: whole, or a part that is remembered with it. NULL with the
 * thread's error set. */
cl_object slw_opencl_buffer_at(const void *address, int32_t *device_id);

slw_status slw_opencl_alloc(int32_t device_id, size_t size_bytes, void **out);
slw_status slw_opencl_alloc_image(int32_t device_id, size_t width, size_t height, int32_t bits,
                                  void **out);
void slw_opencl_release(void *memory);

/* --- opencl_streams.c --- */

extern const slw_device_streams slw_opencl_streams;

/* The queue for work of the device's own (`is_own`), or of the stream that this thread uses, behind all that
 * it has to wait for.  Unless it fails, no other thread orders work until slw_opencl_end. */
slw_status slw_opencl_begin(slw_opencl_device *device, int32_t device_id, int is_own,
                            cl_object *queue);
void slw_opencl_end(void);

/* End as slw_opencl_end, then wait for the work of an event, where `code` says that it is queued. */
slw_status slw_opencl_finish(int32_t device_id, cl_object *event, const char *what, cl_int code);

/* --- opencl_code.c --- */

slw_status slw_opencl_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                              uint64_t *handle);
slw_status slw_opencl_kernel(int32_t device_id, uint64_t program, const slw_device_text *code,
                             const slw_device_launch *launch, slw_device_kernel *out);
void slw_opencl_drop(int32_t device_id, const slw_device_program *program);

#endif /* SLIPWAY_OPENCL_H_ */
