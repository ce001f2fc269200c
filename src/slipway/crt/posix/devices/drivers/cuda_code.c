/* SPDX-License-Identifier: Apache-2.0 */
/* PTX, or AMD's code objects (hip.c), to programs, by the driver, and their kernels. */
#include "cuda.h"
#include "slipway/format.h"

#include <string.h>

#define LOG_BYTES 1200

#ifdef SLW_HIP
#define SLW_GPU_OPTION "rocm -mcpu=gfx.."
#define SLW_GPU_TELLS "device_name"
#else
#define SLW_GPU_OPTION "cuda -arch=sm_.."
#define SLW_GPU_TELLS "compute_version"
#endif

slw_status slw_cuda_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                            uint64_t *handle) {
  char log[LOG_BYTES] = "";
  char advice[160];
  cu_int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1U)};
  cu_object module = NULL;
  cu_int error = slw_cu.ModuleLoadDataEx(&module, code->text, 2U, options, values);
  if (error != CU_SUCCESS) {
    log[sizeof log - 1U] = '\0';
    (void)slw_format(advice, sizeof advice,
                     ". Compile for this device's architecture: Target(\"%s\"); "
                     "%s(%d).%s tells it.",
                     SLW_GPU_OPTION, SLW_GPU_NAME, (int)device_id, SLW_GPU_TELLS);
    return slw_driver_refused(&slw_cuda, device_id, kernel, error, log, advice);
  }
  *handle = (uint64_t)(uintptr_t)module;
  return SLW_OK;
}

slw_status slw_cuda_kernel(int32_t device_id, uint64_t program, const slw_device_text *code,
                             const slw_device_launch *launch, slw_device_kernel *out) {
  cu_object kernel = NULL;
  cu_int most = 0;
  cu_int error =
      slw_cu.ModuleGetFunction(&kernel, (cu_object)(uintptr_t)program, launch->kernel);
  (void)code;
  if (error != CU_SUCCESS) {
    char what[160];
    (void)slw_format(what, sizeof what, "finding kernel %s", launch->kernel);
    return slw_cuda_failed(device_id, what, error);
  }
  (void)slw_cu.FuncGetAttribute(&most, CU_FUNC_MAX_THREADS_PER_BLOCK, kernel);
  out->most_threads = (most > 0) ? (size_t)most : 0U;
#ifndef SLW_HIP
  if (strchr(launch->signature, 's') != NULL) { /* over 48 KB a kernel is given if it says so */
    cu_int own = 0;
    cu_int all = 0;
    (void)slw_cu.FuncGetAttribute(&own, CU_FUNC_SHARED_SIZE_BYTES, kernel);
    (void)slw_cu.DeviceGetAttribute(&all, CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                    slw_cuda_handle(device_id));
    (void)slw_cu.FuncSetAttribute(kernel, CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, all - own);
  }
#endif
  out->handles[0] = (uint64_t)(uintptr_t)kernel;
  return SLW_OK;
}

/* The kernels are parts of the module; queued work may still use them. */
void slw_cuda_drop(int32_t device_id, const slw_device_program *program) {
  if (slw_cuda_use(device_id)) {
    (void)slw_cu.CtxSynchronize();
    (void)slw_cu.ModuleUnload((cu_object)(uintptr_t)program->handle);
  }
}
