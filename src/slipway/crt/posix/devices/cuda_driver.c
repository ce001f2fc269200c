/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's driver on this machine, opened with the system's loader, and its devices in its order.
 * A static program cannot open it. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"
#include "slipway/error.h"

#if !defined(SLW_STATIC)
#include <dlfcn.h>
#endif

#define MAX_DEVICES 16

typedef struct {
  cu_int handle;
  cu_object context; /* the device's primary one, taken when something is first done there */
  char name[128];
} cuda_device;

static slw_cuda_functions driver;
static cuda_device devices[MAX_DEVICES];
static int32_t num_devices;
static const char *missing; /* what keeps CUDA from working here; NULL: nothing */
static pid_t opened_by;     /* a fork of the process has no context */
static pthread_once_t looked = PTHREAD_ONCE_INIT;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

#if !defined(SLW_STATIC)
static int open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    missing = "there is no libcuda.so.1, which NVIDIA's driver brings. Install the driver (nvidia-smi "
              "tells whether it works)";
    return 0;
  }
#define SLW_CUDA_FIND(name, symbol, parameters)    \
  {                                                \
    void *found = dlsym(library, symbol);          \
    if (found == NULL) {                           \
      missing = "its libcuda has no " symbol;      \
      return 0;                                    \
    }                                              \
    memcpy(&driver.name, &found, sizeof found);    \
  }
  SLW_CUDA_FUNCTIONS(SLW_CUDA_FIND)
#undef SLW_CUDA_FIND
  return 1;
}
#else
static int open_driver(void) {
  missing = "this server is a static program, and the driver is a library for the system's loader. "
            "Run Python's server there: python -m slipway.exec.rpc_server";
  return 0;
}
#endif

static int is_forked(void) { return opened_by != 0 && opened_by != getpid(); }

static void look(void) {
  cu_int count = 0;
  if (!open_driver()) {
    return;
  }
  opened_by = getpid();
  if (driver.Init(0U) != CU_SUCCESS || driver.DeviceGetCount(&count) != CU_SUCCESS) {
    missing = "its driver does not start (nvidia-smi may say why)";
    return;
  }
  for (cu_int i = 0; i < count && num_devices < MAX_DEVICES; ++i) {
    cuda_device *device = &devices[num_devices];
    if (driver.DeviceGet(&device->handle, i) == CU_SUCCESS) {
      (void)driver.DeviceGetName(device->name, (cu_int)sizeof device->name - 1, device->handle);
      ++num_devices;
    }
  }
  missing = (num_devices > 0) ? NULL : "its driver has no device";
}

int slw_cuda_exists(int32_t device_id) {
  (void)pthread_once(&looked, look);
  return !is_forked() && device_id >= 0 && device_id < num_devices;
}

int slw_cuda_is_open(int32_t device_id) {
  if (is_forked() || device_id < 0 || device_id >= num_devices) {
    return -1; /* the other process waits for its own work */
  }
  return devices[device_id].context != NULL;
}

cu_int slw_cuda_handle(int32_t device_id) { return devices[device_id].handle; }
const char *slw_cuda_name(int32_t device_id) { return devices[device_id].name; }

const slw_cuda_functions *slw_cuda_driver(void) {
  (void)pthread_once(&looked, look);
  if (is_forked()) {
    (void)slw_error_setf("DeviceError",
                         "CUDA does not work in a fork of a process that has used it. Start a "
                         "process of its own instead: rpc.PopenSession(), or an RPC server before "
                         "CUDA is used here.");
    return NULL;
  }
  if (missing != NULL) {
    (void)slw_error_setf("DeviceError", "CUDA does not work on this machine: %s.", missing);
    return NULL;
  }
  return &driver;
}

const slw_cuda_functions *slw_cuda_use(int32_t device_id) {
  cuda_device *device;
  cu_int code = CU_SUCCESS;
  if (slw_cuda_driver() == NULL) {
    return NULL;
  }
  if (!slw_cuda_exists(device_id)) {
    (void)slw_error_setf("DeviceError",
                         "there is no cuda(%d): this machine has %d CUDA device%s, cuda(0)%s.",
                         (int)device_id, (int)num_devices, (num_devices == 1) ? "" : "s",
                         (num_devices == 1) ? "" : " and so on");
    return NULL;
  }
  device = &devices[device_id];
  (void)pthread_mutex_lock(&opening);
  if (device->context == NULL) {
    code = driver.DevicePrimaryCtxRetain(&device->context, device->handle);
    if (code != CU_SUCCESS) {
      device->context = NULL;
    }
  }
  (void)pthread_mutex_unlock(&opening);
  if (code == CU_SUCCESS) {
    code = driver.CtxSetCurrent(device->context);
  }
  if (code != CU_SUCCESS) {
    (void)slw_cuda_failed(device_id, "opening it", code);
    return NULL;
  }
  return &driver;
}

slw_status slw_cuda_failed(int32_t device_id, const char *what, cu_int code) {
  const char *name = NULL;
  const char *words = NULL;
  if (driver.GetErrorName(code, &name) != CU_SUCCESS || name == NULL) {
    name = "an error that this driver does not name";
  }
  if (driver.GetErrorString(code, &words) != CU_SUCCESS || words == NULL) {
    words = "no more is known";
  }
  (void)slw_error_setf("DeviceError", "cuda(%d) (%s): %s failed with error %d (%s: %s).",
                       (int)device_id, slw_cuda_exists(device_id) ? devices[device_id].name : "none",
                       what, (int)code, name, words);
  return SLW_ERROR_CALL;
}
