/* SPDX-License-Identifier: Apache-2.0 */
/* The code that kernels come from: PTX under its SHA-256, compiled by the driver when the first of
 * its kernels is launched on a device, and kept for the life of the process. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "device_text.h"
#include "slipway/error.h"

#define LOG_BYTES 1200

typedef struct kernel {
  struct kernel *next;
  cu_object handle;
  size_t most_threads;
  char name[];
} kernel;

typedef struct program {
  struct program *next;
  int32_t device_id;
  cu_object handle;
  kernel *kernels;
} program;

static slw_device_text *known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

slw_status slw_cuda_add_code(const char *digest, const void *text, size_t size_bytes) {
  slw_status status;
  (void)pthread_mutex_lock(&lock);
  status = slw_device_text_add(&known, digest, text, size_bytes);
  (void)pthread_mutex_unlock(&lock);
  return status;
}

static program *compiled(slw_device_text *entry, int32_t device_id, const char *name) {
  char log[LOG_BYTES] = "";
  cu_int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1U)};
  program *found = entry->programs;
  cu_int code;
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
  code = slw_cuda_driver()->ModuleLoadDataEx(&found->handle, entry->text, 2U, options, values);
  if (code != CU_SUCCESS) {
    log[sizeof log - 1U] = '\0';
    (void)slw_error_setf("DeviceError",
                         "the driver of cuda(%d) (%s) refused the code of kernel %s (error %d): %s. "
                         "Compile for this device's architecture: Target(\"cuda -arch=sm_..\"); "
                         "cuda(%d).compute_version tells it.",
                         (int)device_id, slw_cuda_name(device_id), name, (int)code,
                         (log[0] != '\0') ? log : "it says no more", (int)device_id);
    free(found);
    return NULL;
  }
  found->next = entry->programs;
  entry->programs = found;
  return found;
}

static kernel *make_kernel(program *from, const char *name) {
  size_t length = strlen(name);
  cu_int most = 0;
  cu_int code;
  kernel *made = calloc(1, sizeof *made + length + 1U);
  if (made == NULL) {
    slw_error_set("MemoryError", "no memory for a kernel");
    return NULL;
  }
  memcpy(made->name, name, length);
  code = slw_cuda_driver()->ModuleGetFunction(&made->handle, from->handle, name);
  if (code != CU_SUCCESS) {
    (void)slw_cuda_failed(from->device_id, name, code);
    free(made);
    return NULL;
  }
  (void)slw_cuda_driver()->FuncGetAttribute(&most, CU_FUNC_MAX_THREADS_PER_BLOCK, made->handle);
  made->most_threads = (most > 0) ? (size_t)most : 0U;
  made->next = from->kernels;
  from->kernels = made;
  return made;
}

static kernel *find_kernel(int32_t device_id, const char *digest, const char *name) {
  slw_device_text *entry = slw_device_text_find(known, digest);
  program *from;
  kernel *found;
  if (entry == NULL) {
    (void)slw_error_setf("DeviceError",
                         "the CUDA code of kernel %s is not loaded here. Load the .ptx file that "
                         "belongs to this library (and import_module it), or export the library as "
                         ".tar or .so, which carry it.",
                         name);
    return NULL;
  }
  from = compiled(entry, device_id, name);
  if (from == NULL) {
    return NULL;
  }
  found = from->kernels;
  while (found != NULL && strcmp(found->name, name) != 0) {
    found = found->next;
  }
  return (found != NULL) ? found : make_kernel(from, name);
}

cu_object slw_cuda_kernel(int32_t device_id, const char *digest, const char *name,
                          size_t *most_threads) {
  kernel *found;
  (void)pthread_mutex_lock(&lock);
  found = find_kernel(device_id, digest, name);
  (void)pthread_mutex_unlock(&lock);
  if (found == NULL) {
    return NULL;
  }
  *most_threads = found->most_threads;
  return found->handle;
}
