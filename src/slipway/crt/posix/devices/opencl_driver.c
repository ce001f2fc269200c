/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL driver of this machine, opened with the system's loader, and its devices: GPUs first,
 * then accelerators, then processors, in the driver's order.  A static program cannot open one. */
#include "opencl.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "slipway/error.h"

#if !defined(SLW_STATIC)
#include <dlfcn.h>
#endif

#define MAX_DEVICES 16
#define MAX_PLATFORMS 8

static slw_opencl_functions driver;
static slw_opencl_device devices[MAX_DEVICES];
static int32_t num_devices;
static const char *missing; /* what keeps OpenCL from working here; NULL: nothing */
static pid_t opened_by;     /* drivers have threads, which a fork of the process does not have */
static pthread_once_t looked = PTHREAD_ONCE_INIT;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

#if !defined(SLW_STATIC)
static const char *const NAMES[] = {"libOpenCL.so.1", "libOpenCL.so", "libOpenCL.dylib",
                                    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
                                    "/vendor/lib64/libOpenCL.so", "/vendor/lib/libOpenCL.so"};

static int open_driver(void) {
  void *library = NULL;
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && library == NULL; ++i) {
    library = dlopen(NAMES[i], RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    missing = "there is no libOpenCL.so.1. Install the device's driver and its loader (Debian: "
              "sudo apt-get install ocl-icd-libopencl1, and pocl-opencl-icd for the processor)";
    return 0;
  }
#define SLW_OPENCL_FIND(name, result, parameters)  \
  {                                                \
    void *found = dlsym(library, "cl" #name);      \
    if (found == NULL) {                           \
      missing = "its libOpenCL has no cl" #name;   \
      return 0;                                    \
    }                                              \
    memcpy(&driver.name, &found, sizeof found);    \
  }
  SLW_OPENCL_FUNCTIONS(SLW_OPENCL_FIND)
#undef SLW_OPENCL_FIND
  return 1;
}
#else
static int open_driver(void) {
  missing = "this server is a static program, and the driver is a library for the system's loader. "
            "Run Python's server there: python -m slipway.exec.rpc_server";
  return 0;
}
#endif

static void list_devices(cl_object platform, cl_bits kind) {
  cl_object found[MAX_DEVICES];
  cl_uint count = 0;
  if (driver.GetDeviceIDs(platform, kind, MAX_DEVICES, found, &count) != CL_SUCCESS) {
    return;
  }
  for (cl_uint i = 0; i < count && i < MAX_DEVICES && num_devices < MAX_DEVICES; ++i) {
    slw_opencl_device *device = &devices[num_devices];
    cl_uint bits = 0;
    device->id = found[i];
    (void)driver.GetDeviceInfo(found[i], CL_DEVICE_NAME, sizeof device->name - 1, device->name,
                               NULL);
    (void)driver.GetDeviceInfo(found[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    device->base_alignment = (bits >= 8U) ? bits / 8U : 1U;
    ++num_devices;
  }
}

static int is_forked(void) { return opened_by != 0 && opened_by != getpid(); }

static void look(void) {
  static const cl_bits KINDS[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                                  CL_DEVICE_TYPE_CPU};
  cl_object platforms[MAX_PLATFORMS];
  cl_uint count = 0;
  if (!open_driver()) {
    return;
  }
  opened_by = getpid();
  if (driver.GetPlatformIDs(MAX_PLATFORMS, platforms, &count) != CL_SUCCESS || count == 0U) {
    missing = "libOpenCL is there, but knows no driver (ls /etc/OpenCL/vendors)";
    return;
  }
  for (size_t kind = 0; kind < sizeof KINDS / sizeof KINDS[0]; ++kind) {
    for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; ++i) {
      list_devices(platforms[i], KINDS[kind]);
    }
  }
  missing = (num_devices > 0) ? NULL : "its driver has no device";
}

int slw_opencl_exists(int32_t device_id) {
  (void)pthread_once(&looked, look);
  return !is_forked() && device_id >= 0 && device_id < num_devices;
}

int slw_opencl_is_open(int32_t device_id) {
  if (is_forked() || device_id < 0 || device_id >= num_devices) {
    return -1; /* the other process waits for its own work */
  }
  return devices[device_id].queue != NULL;
}

const slw_opencl_functions *slw_opencl_driver(void) {
  (void)pthread_once(&looked, look);
  if (is_forked()) {
    (void)slw_error_setf("DeviceError",
                         "OpenCL does not work in a fork of a process that has used it. Start a "
                         "process of its own instead: rpc.PopenSession(), or an RPC server before "
                         "OpenCL is used here.");
    return NULL;
  }
  if (missing != NULL) {
    (void)slw_error_setf("DeviceError", "OpenCL does not work on this machine: %s.", missing);
    return NULL;
  }
  return &driver;
}

slw_opencl_device *slw_opencl_device_of(int32_t device_id) {
  slw_opencl_device *device;
  cl_int code = CL_SUCCESS;
  if (slw_opencl_driver() == NULL) {
    return NULL;
  }
  if (!slw_opencl_exists(device_id)) {
    (void)slw_error_setf("DeviceError", "there is no opencl(%d): this machine has %d OpenCL device%s, "
                                        "opencl(0)%s.",
                         (int)device_id, (int)num_devices, (num_devices == 1) ? "" : "s",
                         (num_devices == 1) ? "" : " and so on");
    return NULL;
  }
  device = &devices[device_id];
  (void)pthread_mutex_lock(&opening);
  if (device->queue == NULL) {
    device->context = driver.CreateContext(NULL, 1, &device->id, NULL, NULL, &code);
    if (code == CL_SUCCESS) {
      device->queue = driver.CreateCommandQueue(device->context, device->id, 0, &code);
      if (code != CL_SUCCESS) {
        (void)driver.ReleaseContext(device->context);
        device->queue = NULL;
      }
    }
  }
  (void)pthread_mutex_unlock(&opening);
  if (code != CL_SUCCESS) {
    (void)slw_opencl_failed(device, "opening it", code);
    return NULL;
  }
  return device;
}

static const char *name_of(cl_int code) {
  static const struct {
    cl_int code;
    const char *name;
  } KNOWN[] = {
      {-2, "CL_DEVICE_NOT_AVAILABLE: it may be lost; start the program again, and look at the "
           "system's log"},
      {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE: its memory is full"},
      {-5, "CL_OUT_OF_RESOURCES: the kernel takes more than the device has, or the device is lost"},
      {-6, "CL_OUT_OF_HOST_MEMORY"},
      {-9999, "an access outside of a buffer, says the driver"},
      {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: work before this one failed"},
      {-30, "CL_INVALID_VALUE"},
      {-36, "CL_INVALID_COMMAND_QUEUE: the device is lost; start the program again"},
      {-38, "CL_INVALID_MEM_OBJECT"},
      {-46, "CL_INVALID_KERNEL_NAME: its code has no such kernel"},
      {-48, "CL_INVALID_KERNEL"},
      {-49, "CL_INVALID_ARG_INDEX: the kernel has fewer parameters"},
      {-51, "CL_INVALID_ARG_SIZE: a parameter of the kernel has another size"},
      {-52, "CL_INVALID_KERNEL_ARGS: the kernel has more parameters"},
      {-54, "CL_INVALID_WORK_GROUP_SIZE"},
      {-55, "CL_INVALID_WORK_ITEM_SIZE"},
      {-61, "CL_INVALID_BUFFER_SIZE: more than one allocation may have"},
      {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
  };
  for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; ++i) {
    if (KNOWN[i].code == code) {
      return KNOWN[i].name;
    }
  }
  return "see CL/cl.h";
}

slw_status slw_opencl_failed(const slw_opencl_device *device, const char *what, cl_int code) {
  (void)slw_error_setf("DeviceError", "opencl(%d) (%s): %s failed with error %d (%s).",
                       (device != NULL) ? (int)(device - devices) : 0,
                       (device != NULL) ? device->name : "no device", what, (int)code,
                       name_of(code));
  return SLW_ERROR_CALL;
}
