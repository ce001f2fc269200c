/* SPDX-License-Identifier: Apache-2.0 */
/* The classic interface's functions that need a system: files, threads. */
#include <pthread.h>
#include <stdlib.h>

#include "../posix/devices/devices.h"
#include "slipway/classic.h"
#include "slipway/error.h"
#include "slipway/module.h"
#include "slipway/threadpool.h"
#include "slipway/workspace.h"
#include "tvm/runtime/c_backend_api.h"

void slw_classic_find_devices(void) { slw_devices_setup(); }

int TVMModLoadFromFile(const char *file_name, const char *format, TVMModuleHandle *out) {
  slw_module *module = NULL;
  (void)format;
  if (file_name == NULL) {
    return slw_error_setf("ValueError", "TVMModLoadFromFile takes the path of an exported file");
  }
  if (slw_module_open(file_name, &module) != SLW_OK) {
    return -1;
  }
  *out = module;
  return 0;
}

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes,
                               int dtype_code_hint, int dtype_bits_hint) {
  (void)dtype_code_hint;
  (void)dtype_bits_hint;
  return slw_workspace_alloc(nbytes, device_type, device_id);
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr) {
  slw_workspace_free(ptr, device_type, device_id);
  return 0;
}

typedef struct {
  FTVMParallelLambda run;
  void *data;
} launch;

static int run_task(void *closure, int32_t task_id, int32_t num_tasks) {
  const launch *self = closure;
  TVMParallelGroupEnv group = {NULL, num_tasks};
  return self->run(task_id, &group, self->data);
}

int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void *cdata, int num_task) {
  launch self = {flambda, cdata};
  return slw_parallel_launch(run_task, &self, num_task);
}

int TVMBackendRunOnce(void **handle, int (*f)(void *), void *cdata, int nbytes) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int failed = 0;
  (void)nbytes; /* the data is read before this returns */
  (void)pthread_mutex_lock(&lock);
  if (*handle == NULL) {
    failed = f(cdata);
    *handle = handle;
  }
  (void)pthread_mutex_unlock(&lock);
  return failed;
}
