/* SPDX-License-Identifier: Apache-2.0 */
/* The code that kernels come from: text under its SHA-256, compiled by a device's driver when the
 * first of its kernels is launched there, and kept for the life of the process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device_text.h"
#include "opencl.h"
#include "slipway/error.h"

#define LOG_BYTES 1200

typedef struct kernel {
  struct kernel *next;
  cl_object handle;
  size_t most_threads;
  char name[];
} kernel;

typedef struct program {
  struct program *next;
  int32_t device_id;
  cl_object handle;
  kernel *kernels;
} program;

static slw_device_text *known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void slw_opencl_lock(void) { (void)pthread_mutex_lock(&lock); }
void slw_opencl_unlock(void) { (void)pthread_mutex_unlock(&lock); }

slw_status slw_opencl_add_code(const char *digest, const void *text, size_t size_bytes) {
  slw_status status;
  slw_opencl_lock();
  status = slw_device_text_add(&known, digest, text, size_bytes);
  slw_opencl_unlock();
  return status;
}

static void tell_build_log(const slw_opencl_device *device, cl_object handle, const char *name,
                           cl_int error) {
  char log[LOG_BYTES] = "";
  size_t length = 0;
  (void)slw_opencl_driver()->GetProgramBuildInfo(handle, device->id, CL_PROGRAM_BUILD_LOG,
                                                 sizeof log - 1, log, &length);
  log[sizeof log - 1] = '\0';
  (void)slw_error_setf("DeviceError",
                       "the driver of %s refused the code of kernel %s (error %d): %s", device->name,
                       name, (int)error,
                       (length > sizeof log - 1) ? "its log is too long to be shown"
                       : (log[0] != '\0')        ? log
                                                 : "it says no more");
}

/* Division and square roots are rounded as on the host where the device can do so. */
static const char *options_for(const slw_opencl_device *device) {
  cl_bits config = 0;
  (void)slw_opencl_driver()->GetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config,
                                           &config, NULL);
  return ((config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0U)
             ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
             : "-cl-std=CL1.2";
}

static program *compiled(slw_device_text *entry, slw_opencl_device *device, int32_t device_id,
                         const char *name) {
  const slw_opencl_functions *cl = slw_opencl_driver();
  program *found = entry->programs;
  const char *text = entry->text;
  cl_int error = CL_SUCCESS;
  while (found != NULL && found->device_id != device_id) {
    found = found->next;
  }
  if (found != NULL) {
    return found;
  }
  found = calloc(1, sizeof *found);
  if (found == NULL) {
    slw_error_set("MemoryError", "no memory for a device's program");
    return NULL;
  }
  found->device_id = device_id;
  found->handle = cl->CreateProgramWithSource(device->context, 1, &text, &entry->size_bytes,
                                              &error);
  if (error != CL_SUCCESS) {
    (void)slw_opencl_failed(device, "taking a program", error);
    free(found);
    return NULL;
  }
  error = cl->BuildProgram(found->handle, 1, &device->id, options_for(device), NULL, NULL);
  if (error != CL_SUCCESS) {
    tell_build_log(device, found->handle, name, error);
    (void)cl->ReleaseProgram(found->handle);
    free(found);
    return NULL;
  }
  found->next = entry->programs;
  entry->programs = found;
  return found;
}

static kernel *make_kernel(program *from, slw_opencl_device *device, const char *name) {
  const slw_opencl_functions *cl = slw_opencl_driver();
  size_t length = strlen(name);
  cl_int error = CL_SUCCESS;
  kernel *made = calloc(1, sizeof *made + length + 1U);
  if (made == NULL) {
    slw_error_set("MemoryError", "no memory for a kernel");
    return NULL;
  }
  memcpy(made->name, name, length);
  made->handle = cl->CreateKernel(from->handle, name, &error);
  if (error != CL_SUCCESS) {
    (void)slw_opencl_failed(device, name, error);
    free(made);
    return NULL;
  }
  (void)cl->GetKernelWorkGroupInfo(made->handle, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                   sizeof made->most_threads, &made->most_threads, NULL);
  made->next = from->kernels;
  from->kernels = made;
  return made;
}

cl_object slw_opencl_kernel(slw_opencl_device *device, int32_t device_id, const char *digest,
                            const char *name, size_t *most_threads) {
  slw_device_text *entry = slw_device_text_find(known, digest);
  program *from;
  kernel *found;
  if (entry == NULL) {
    (void)slw_error_setf("DeviceError",
                         "the OpenCL code of kernel %s is not loaded here. Load the .cl file that "
                         "belongs to this library (and import_module it), or export the library as "
                         ".tar or .so, which carry it.",
                         name);
    return NULL;
  }
  from = compiled(entry, device, device_id, name);
  if (from == NULL) {
    return NULL;
  }
  found = from->kernels;
  while (found != NULL && strcmp(found->name, name) != 0) {
    found = found->next;
  }
  if (found == NULL) {
    found = make_kernel(from, device, name);
  }
  if (found == NULL) {
    return NULL;
  }
  *most_threads = found->most_threads;
  return found->handle;
}
