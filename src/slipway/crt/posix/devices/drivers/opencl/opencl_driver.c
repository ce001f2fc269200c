/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL driver of this machine and its devices: GPUs first, then accelerators, then
 * processors, in the driver's order. */
#include "opencl.h"

#include <string.h>

#include "slipway/error.h"

#define MAX_PLATFORMS 8

slw_opencl_functions slw_cl;
static slw_opencl_device devices[SLW_MAX_DEVICES];

static const char *list_devices(int32_t *num_devices);
static const char *name_of(int32_t device_id) { return devices[device_id].name; }

#define SLW_OPENCL_SYMBOL(name, result, parameters) "cl" #name "\0"
slw_device_driver slw_opencl = {
    .kind = "opencl",
    .title = "OpenCL",
    .ending = ".cl",
    .libraries = "libOpenCL.so.1\0libOpenCL.so\0libOpenCL.dylib\0"
                 "/System/Library/Frameworks/OpenCL.framework/OpenCL\0"
                 "/vendor/lib64/libOpenCL.so\0/vendor/lib/libOpenCL.so\0",
    .advice = "there is no libOpenCL.so.1. Install the device's driver and its loader (Debian: "
              "sudo apt-get install ocl-icd-libopencl1, and pocl-opencl-icd for the processor)",
    .symbols = SLW_OPENCL_FUNCTIONS(SLW_OPENCL_SYMBOL),
    .functions = &slw_cl,
    .list = list_devices,
    .name = name_of,
    .program = slw_opencl_program,
    .kernel = slw_opencl_kernel,
    .drop = slw_opencl_drop,
    SLW_DRIVER_LOCKS,
};

static void list_kind(cl_object platform, cl_bits kind, int32_t *num_devices) {
  cl_object found[SLW_MAX_DEVICES];
  cl_uint count = 0;
  if (slw_cl.GetDeviceIDs(platform, kind, SLW_MAX_DEVICES, found, &count) != CL_SUCCESS) {
    return;
  }
  for (cl_uint i = 0; i < count && i < SLW_MAX_DEVICES && *num_devices < SLW_MAX_DEVICES; ++i) {
    slw_opencl_device *device = &devices[*num_devices];
    cl_uint bits = 0;
    device->id = found[i];
    (void)slw_cl.GetDeviceInfo(found[i], CL_DEVICE_NAME, sizeof device->name - 1, device->name,
                               NULL);
    (void)slw_cl.GetDeviceInfo(found[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    device->base_alignment = (bits >= 8U) ? bits / 8U : 1U;
    /* PoCL takes memory of its own at the first use, and ends the process where there is none. */
    device->memory = CL_MEM_READ_WRITE | ((kind == CL_DEVICE_TYPE_CPU) ? CL_MEM_ALLOC_HOST_PTR : 0U);
    ++*num_devices;
  }
}

static const char *list_devices(int32_t *num_devices) {
  static const cl_bits KINDS[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                                  CL_DEVICE_TYPE_CPU};
  cl_object platforms[MAX_PLATFORMS];
  cl_uint count = 0;
  if (slw_cl.GetPlatformIDs(MAX_PLATFORMS, platforms, &count) != CL_SUCCESS || count == 0U) {
    return "libOpenCL is there, but knows no driver: install one, or see whether the libraries exist that "
           "the files of /etc/OpenCL/vendors (or of the folder OCL_ICD_VENDORS) name";
  }
  for (size_t kind = 0; kind < sizeof KINDS / sizeof KINDS[0]; ++kind) {
    for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; ++i) {
      list_kind(platforms[i], KINDS[kind], num_devices);
    }
  }
  return (*num_devices > 0) ? NULL
                            : "its driver has no device (clinfo may say why; PoCL has none without "
                              "a folder that it may write, POCL_CACHE_DIR)";
}

static slw_status open_device(int32_t device_id) {
  slw_opencl_device *device = &devices[device_id];
  cl_int code = CL_SUCCESS;
  device->context = slw_cl.CreateContext(NULL, 1, &device->id, NULL, NULL, &code);
  if (code == CL_SUCCESS) {
    device->queue = slw_cl.CreateCommandQueue(device->context, device->id, 0, &code);
    if (code != CL_SUCCESS) {
      (void)slw_cl.ReleaseContext(device->context);
    }
  }
  return (code == CL_SUCCESS) ? SLW_OK : slw_opencl_failed(device_id, "opening it", code);
}

slw_opencl_device *slw_opencl_device_of(int32_t device_id) {
  return slw_driver_opens(&slw_opencl, device_id, open_device) ? &devices[device_id] : NULL;
}

slw_status slw_opencl_failed(int32_t device_id, const char *what, cl_int code) {
  static const slw_driver_error KNOWN[] = {
      {-2, SLW_LOST "CL_DEVICE_NOT_AVAILABLE: "},
      {-4, SLW_FULL "CL_MEM_OBJECT_ALLOCATION_FAILURE: "},
      {-5, SLW_LOST "CL_OUT_OF_RESOURCES: a kernel takes more registers, shared memory or time than the "
           "device has: compile for a target with a smaller -max_threads_per_block; or, where other kernels "
           "fail too, "},
      {-6, "CL_OUT_OF_HOST_MEMORY: the host's memory is full: " SLW_SPARE},
      {-9999, "an access outside of a buffer, says the driver"},
      {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: work before this one failed"},
      {-30, "CL_INVALID_VALUE"},
      {-34, SLW_LOST "CL_INVALID_CONTEXT: "},
      {-36, SLW_LOST "CL_INVALID_COMMAND_QUEUE: "},
      {-38, "CL_INVALID_MEM_OBJECT"},
      {-46, "CL_INVALID_KERNEL_NAME: its code has no such kernel"},
      {-48, "CL_INVALID_KERNEL"},
      {-49, "CL_INVALID_ARG_INDEX: the kernel has fewer parameters"},
      {-51, "CL_INVALID_ARG_SIZE: a parameter of the kernel has another size"},
      {-52, "CL_INVALID_KERNEL_ARGS: the kernel has more parameters"},
      {-54, "CL_INVALID_WORK_GROUP_SIZE: a block has more threads than the device takes of this kernel: "
            "compile for a target with a smaller -max_threads_per_block"},
      {-55, "CL_INVALID_WORK_ITEM_SIZE: a block has more threads along an axis than the device takes: "
            "split its axes by less"},
      {-61, "CL_INVALID_BUFFER_SIZE: more than one allocation may have"},
      {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {0, NULL},
  };
  return slw_driver_failed(&slw_opencl, device_id, what, code,
                           slw_driver_words(KNOWN, code, "see CL/cl.h"));
}
