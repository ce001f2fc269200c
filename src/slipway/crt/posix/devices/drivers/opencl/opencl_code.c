/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL C to programs, and their kernels. */
#include "opencl.h"

#include <stdlib.h>
#include <string.h>

#include "../device_store.h"
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

/* Whether what failed is no matter of the code. */
static int is_for_lack(cl_int error) {
  return error == CL_OUT_OF_RESOURCES || error == CL_OUT_OF_HOST_MEMORY ||
         error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_DEVICE_NOT_AVAILABLE;
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

/* All that a compiled program depends on. */
typedef struct {
  char digest[SLW_DIGEST_CHARS + 1];
  char version[128];
  char driver[128];
  const char *words[7];
} program_key;

static void make_key(const slw_opencl_device *device, const slw_device_text *code,
                     const char *options, program_key *key) {
  memset(key, 0, sizeof *key);
  memcpy(key->digest, code->digest, SLW_DIGEST_CHARS);
  (void)slw_cl.GetDeviceInfo(device->id, CL_DEVICE_VERSION, sizeof key->version - 1, key->version,
                             NULL);
  (void)slw_cl.GetDeviceInfo(device->id, CL_DRIVER_VERSION, sizeof key->driver - 1, key->driver,
                             NULL);
  key->words[0] = "opencl";
  key->words[1] = key->digest;
  key->words[2] = device->name;
  key->words[3] = key->version;
  key->words[4] = key->driver;
  key->words[5] = options;
}

/* The program of an earlier process, or NULL: none, or one that the driver does not take. */
static cl_object kept_program(const slw_opencl_device *device, const program_key *key,
                              const char *options) {
  size_t size_bytes = 0;
  cl_int status = CL_SUCCESS;
  cl_int error = CL_SUCCESS;
  cl_object program = NULL;
  uint8_t *bytes = slw_device_store_read(key->words, &size_bytes);
  const uint8_t *given = bytes;
  if (bytes == NULL) {
    return NULL;
  }
  program = slw_cl.CreateProgramWithBinary(device->context, 1, &device->id, &size_bytes, &given,
                                           &status, &error);
  free(bytes);
  if (error != CL_SUCCESS || status != CL_SUCCESS) {
    if (program != NULL) {
      (void)slw_cl.ReleaseProgram(program);
    }
    return NULL;
  }
  if (slw_cl.BuildProgram(program, 1, &device->id, options, NULL, NULL) != CL_SUCCESS) {
    (void)slw_cl.ReleaseProgram(program);
    return NULL;
  }
  return program;
}

static void keep_program(cl_object program, const program_key *key) {
  size_t size_bytes = 0;
  uint8_t *bytes;
  if (!slw_device_store_keeps() ||
      slw_cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size_bytes, &size_bytes,
                            NULL) != CL_SUCCESS ||
      size_bytes == 0U) {
    return;
  }
  bytes = malloc(size_bytes);
  if (bytes != NULL && slw_cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes,
                                             NULL) == CL_SUCCESS) {
    slw_device_store_write(key->words, bytes, size_bytes);
  }
  free(bytes);
}

slw_status slw_opencl_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                              uint64_t *handle) {
  const slw_opencl_device *device = slw_opencl_device_of(device_id);
  const char *text = code->text;
  char options[OPTIONS_BYTES];
  char what[160];
  cl_int error = CL_SUCCESS;
  program_key key;
  slw_status status;
  cl_object program;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  write_options(device, text, options);
  make_key(device, code, options, &key);
  program = kept_program(device, &key, options);
  if (program != NULL) {
    *handle = (uint64_t)(uintptr_t)program;
    return SLW_OK;
  }
  program = slw_cl.CreateProgramWithSource(device->context, 1, &text, &code->size_bytes, &error);
  if (error != CL_SUCCESS) {
    (void)slw_format(what, sizeof what, "taking the code of kernel %s", kernel);
    return slw_opencl_failed(device_id, what, error);
  }
  error = slw_cl.BuildProgram(program, 1, &device->id, options, NULL, NULL);
  if (error != CL_SUCCESS) {
    (void)slw_format(what, sizeof what, "compiling kernel %s", kernel);
    status = is_for_lack(error) ? slw_opencl_failed(device_id, what, error)
                                : tell_build_log(device, device_id, program, kernel, error);
    (void)slw_cl.ReleaseProgram(program);
    return status;
  }
  keep_program(program, &key);
  *handle = (uint64_t)(uintptr_t)program;
  return SLW_OK;
}

slw_status slw_opencl_kernel(int32_t device_id, uint64_t program, const slw_device_text *code,
                             const slw_device_launch *launch, slw_device_kernel *out) {
  const slw_opencl_device *device = slw_opencl_device_of(device_id);
  cl_int error = CL_SUCCESS;
  cl_object kernel =
      slw_cl.CreateKernel((cl_object)(uintptr_t)program, launch->kernel, &error);
  (void)code;
  if (error != CL_SUCCESS) {
    char what[160];
    (void)slw_format(what, sizeof what, "making kernel %s", launch->kernel);
    return slw_opencl_failed(device_id, what, error);
  }
  (void)slw_cl.GetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                      sizeof out->most_threads, &out->most_threads, NULL);
  out->handles[0] = (uint64_t)(uintptr_t)kernel;
  return SLW_OK;
}

/* The driver keeps what queued work still uses. */
void slw_opencl_drop(int32_t device_id, const slw_device_program *program) {
  (void)device_id;
  for (const slw_device_kernel *kernel = program->kernels; kernel != NULL; kernel = kernel->next) {
    (void)slw_cl.ReleaseKernel((cl_object)(uintptr_t)kernel->handles[0]);
  }
  (void)slw_cl.ReleaseProgram((cl_object)(uintptr_t)program->handle);
}
