/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's driver on this machine, or AMD's (hip.c), and its devices in its order. */
#include "cuda.h"

#include <string.h>

#include "slipway/format.h"

typedef struct {
  cu_int handle;
  cu_context context; /* the device's primary one, taken when something is first done there */
  char name[128];
} cuda_device;

slw_cuda_functions slw_cu;
static cuda_device devices[SLW_MAX_DEVICES];

static const char *list_devices(int32_t *num_devices);
static const char *name_of(int32_t device_id) { return devices[device_id].name; }

#define SLW_CUDA_SYMBOL(name, symbol, parameters) symbol "\0"
slw_device_driver slw_cuda = {
    .kind = SLW_GPU_NAME,
    .title = SLW_GPU_TITLE,
#ifdef SLW_HIP
    .ending = ".hsaco",
    .libraries = "libamdhip64.so.7\0libamdhip64.so.6\0libamdhip64.so.5\0libamdhip64.so\0",
    .advice = "there is no libamdhip64.so, which ROCm brings. Install it "
              "(rocminfo tells whether it works)",
#else
    .ending = ".ptx",
    .libraries = "libcuda.so.1\0",
    .advice = "there is no libcuda.so.1, which NVIDIA's driver brings. Install the driver "
              "(nvidia-smi tells whether it works)",
#endif
    .symbols = SLW_CUDA_FUNCTIONS(SLW_CUDA_SYMBOL),
    .functions = &slw_cu,
    .list = list_devices,
    .name = name_of,
    .program = slw_cuda_program,
    .kernel = slw_cuda_kernel,
    .drop = slw_cuda_drop,
    SLW_DRIVER_LOCKS,
};

static const char *list_devices(int32_t *num_devices) {
  cu_int count = 0;
  if (slw_cu.Init(0U) != CU_SUCCESS || slw_cu.DeviceGetCount(&count) != CU_SUCCESS) {
    return 
#ifdef SLW_HIP
        "its driver does not start (rocminfo may say why)"
#else
        "its driver does not start (nvidia-smi may say why)"
#endif
        ;
  }
  for (cu_int i = 0; i < count && *num_devices < SLW_MAX_DEVICES; ++i) {
    cuda_device *device = &devices[*num_devices];
    if (slw_cu.DeviceGet(&device->handle, i) == CU_SUCCESS) {
      (void)slw_cu.DeviceGetName(device->name, (cu_int)sizeof device->name - 1, device->handle);
      ++*num_devices;
    }
  }
  return (*num_devices > 0) ? NULL
#ifdef SLW_HIP
                            : "its driver has no device (rocminfo lists them; HIP_VISIBLE_DEVICES may "
                              "hide some)";
#else
                            : "its driver has no device (nvidia-smi lists them; CUDA_VISIBLE_DEVICES "
                              "may hide some)";
#endif
}

cu_int slw_cuda_handle(int32_t device_id) { return devices[device_id].handle; }

static slw_status open_device(int32_t device_id) {
  cuda_device *device = &devices[device_id];
  cu_int code = slw_cu.DevicePrimaryCtxRetain(&device->context, device->handle);
  return (code == CU_SUCCESS) ? SLW_OK : slw_cuda_failed(device_id, "opening it", code);
}

int slw_cuda_use(int32_t device_id) {
  cu_int code;
  if (!slw_driver_opens(&slw_cuda, device_id, open_device)) {
    return 0;
  }
  code = slw_cu.CtxSetCurrent(devices[device_id].context);
  return code == CU_SUCCESS || slw_cuda_failed(device_id, "opening it", code) == SLW_OK;
}

/* What to do; the numbers are those of both drivers.  After a fault in a kernel all later calls fail. */
static const char *advice_of(cu_int code) {
  static const slw_driver_error KNOWN[] = {
      {2, SLW_FULL ": "},
      {700, SLW_LOST ": the kernel read or wrote outside of its tensors; "},
      {701, ": the kernel takes more registers or shared memory than the device has: compile for a "
            "target with a smaller -max_threads_per_block"},
      {702, SLW_LOST ": the kernel ran for too long; "},
      {716, SLW_LOST ": the kernel read or wrote at an address of no element; "},
      {719, SLW_LOST ": "},
      {0, NULL},
  };
  return slw_driver_words(KNOWN, code, "");
}

slw_status slw_cuda_failed(int32_t device_id, const char *what, cu_int code) {
  const char *name = NULL;
  const char *words = NULL;
  const char *advice = advice_of(code);
  const char *mark;
  char both[320];
  if (slw_cu.GetErrorName(code, &name) != CU_SUCCESS || name == NULL) {
    name = "an error that this driver does not name";
  }
  if (slw_cu.GetErrorString(code, &words) != CU_SUCCESS || words == NULL) {
    words = "no more is known";
  }
  mark = (advice[0] == SLW_LOST[0]) ? SLW_LOST : (advice[0] == SLW_FULL[0]) ? SLW_FULL : "";
  (void)slw_format(both, sizeof both, "%s%s: %s%s", mark, name, words, advice + strlen(mark));
  return slw_driver_failed(&slw_cuda, device_id, what, code, both);
}
