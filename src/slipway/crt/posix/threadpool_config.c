/* SPDX-License-Identifier: Apache-2.0 */
/* The classic runtime.config_threadpool, for Python, RPC sessions and C++. */
#include "slipway/error.h"
#include "slipway/packed.h"
#include "slipway/threadpool.h"

int slw_packed_config_threadpool(void *handle, const TVMFFIAny *args, int32_t num_args,
                                 TVMFFIAny *result) {
  int32_t numbers[2 + SLW_MAX_THREADS];
  slw_status status;
  (void)handle;
  (void)result;
  if (num_args < 1 || num_args > 2 + SLW_MAX_THREADS) {
    return slw_error_setf("TypeError", "config_threadpool takes an affinity mode, how many "
                                       "threads, and the numbers of processors");
  }
  numbers[1] = 0;
  for (int32_t i = 0; i < num_args; ++i) {
    if (args[i].type_index != kTVMFFIInt || args[i].v_int64 < -3 || args[i].v_int64 > INT32_MAX) {
      return slw_error_setf("TypeError", "config_threadpool takes integers");
    }
    numbers[i] = (int32_t)args[i].v_int64;
  }
  status = slw_configure_threads(numbers[0], numbers[1], numbers + 2,
                                 (num_args > 2) ? num_args - 2 : 0);
  return (status == SLW_OK)
             ? 0
             : slw_error_setf("ValueError",
                              "config_threadpool: %s. Modes are 0 (not bound), 1 (the fastest "
                              "processors), -1 (the slowest), -2 (one thread on each that is "
                              "listed), -3 (all on those listed); threads are 0 to %d; a listed "
                              "processor must be one that this process may run on.",
                              slw_status_text(status), SLW_MAX_THREADS);
}
