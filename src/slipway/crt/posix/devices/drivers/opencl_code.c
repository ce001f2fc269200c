/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL C to programs, and their kernels. */
#include "opencl.h"

#include <string.h>

#include "slipway/format.h"

#define LOG_BYTES 1200
#define OPTIONS_BYTES 120

static slw_status tell_build_log(const slw_opencl_device *device, int32_t device_id,
                                 cl_object program, const char *kernel, cl_int error) {
  char log[LOG_BYTES] = "";
  size_t length = 0;
  (void)slw_cl.GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                                   &length);
  log[sizeof log - 1] = '\0';
  return slw_driver_refused(&slw_opencl, device_id, kernel, error,
                            (length > sizeof log - 1) ? "its log is too long to be shown" : log, "");
}

/* PoCL before 4.0 divides kernels at their barriers after it has optimised them, and ends the process
 * (an assertion of its own) where jumps into a loop were threaded past one: not optimised so early,
 * the kernels are as legal, and those without barriers need nothing. */
static int is_old_pocl(const slw_opencl_device *device) {
  char version[128] = "";
  char driver[64] = "";
  (void)slw_cl.GetDeviceInfo(device->id, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
  (void)slw_cl.GetDeviceInfo(device->id, CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL);
  return (strstr(version, "PoCL") != NULL || strstr(version, "pocl") != NULL) &&
         driver[0] >= '0' && driver[0] < '4' && driver[1] == '.';
}

/* Division and square roots are rounded as on the host where the device can do so. */
static void write_options(const slw_opencl_device *device, const char *text,
                          char options[OPTIONS_BYTES]) {
  cl_bits config = 0;
  int rounds;
  int is_plain = strstr(text, "barrier(") != NULL && is_old_pocl(device);
  (void)slw_cl.GetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
  rounds = (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0U;
  (void)slw_format(options, OPTIONS_BYTES, "-cl-std=CL1.2%s%s",
                   rounds ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
                   is_plain ? " -cl-opt-disable" : "");
}

slw_status slw_opencl_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                              uint64_t *handle) {
  const slw_opencl_device *device = slw_opencl_device_of(device_id);
  const char *text = code->text;
  char options[OPTIONS_BYTES];
  cl_int error = CL_SUCCESS;
  slw_status status;
  cl_object program;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  program = slw_cl.CreateProgramWithSource(device->context, 1, &text, &code->size_bytes, &error);
  if (error != CL_SUCCESS) {
    return slw_opencl_failed(device_id, "taking a program", error);
  }
  write_options(device, text, options);
  error = slw_cl.BuildProgram(program, 1, &device->id, options, NULL, NULL);
  if (error != CL_SUCCESS) {
    status = tell_build_log(device, device_id, program, kernel, error);
    (void)slw_cl.ReleaseProgram(program);
    return status;
  }
  *handle = (uint64_t)(uintptr_t)program;
  return SLW_OK;
}

slw_status slw_opencl_kernel(int32_t device_id, uint64_t program, const slw_device_launch *launch,
                             slw_device_kernel *out) {
  const slw_opencl_device *device = slw_opencl_device_of(device_id);
  cl_int error = CL_SUCCESS;
  cl_object kernel =
      slw_cl.CreateKernel((cl_object)(uintptr_t)program, launch->kernel, &error);
  if (error != CL_SUCCESS) {
    return slw_opencl_failed(device_id, launch->kernel, error);
  }
  (void)slw_cl.GetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                      sizeof out->most_threads, &out->most_threads, NULL);
  out->handles[0] = (uint64_t)(uintptr_t)kernel;
  return SLW_OK;
}
