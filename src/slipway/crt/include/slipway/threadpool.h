/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * One pool of worker threads for the process. The thread that launches works too.
 */
#ifndef SLIPWAY_THREADPOOL_H_
#define SLIPWAY_THREADPOOL_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_MAX_THREADS 256

/** Run body(closure, task, num_tasks) for every task in 0..num_tasks-1 and wait for all.
 * Fits the library slot `__slipway_parallel_launch`. num_tasks 0: as many as there are threads.
 * Called from inside a task, or while another thread's launch holds the pool, the tasks run
 * one after the other in the caller.
 * @return 0, or what the first task to fail returned; the error that it set, if any, is then the
 *         calling thread's error */
SLW_API int slw_parallel_launch(slw_parallel_body body, void *closure, int32_t num_tasks);

/** Set how many threads work on a launch, 1..SLW_MAX_THREADS; 0: the default (environment
 * variable SLIPWAY_NUM_THREADS, else the processors this process may run on). */
SLW_API slw_status slw_set_num_threads(int32_t num_threads);

SLW_API int32_t slw_num_threads(void);

/** Bind the workers that are started from now on: worker i to cpus[i % num_cpus], or, with
 * `shared`, each of them to all of these; num_cpus 0: to none. The launching thread is not bound.
 * Does nothing where the system cannot bind threads.
 * @retval SLW_ERROR_ARGUMENT more than SLW_MAX_THREADS, or no processor's number
 * @retval SLW_ERROR_UNSUPPORTED called from inside a task */
SLW_API slw_status slw_bind_threads(const int32_t *cpus, int32_t num_cpus, int shared);

/** How slw_configure_threads chooses processors, of those this process may run on; the numbers
 * are those of the classic runtime.config_threadpool. */
typedef enum {
  SLW_AFFINITY_NONE = 0,
  SLW_AFFINITY_BIG = 1,     /* those with the highest clock, a thread on each */
  SLW_AFFINITY_LITTLE = -1, /* those with the lowest clock, a thread on each */
  SLW_AFFINITY_EACH = -2,   /* those that are listed, a thread on each */
  SLW_AFFINITY_SHARED = -3  /* those that are listed, all threads on all of them */
} slw_affinity;

/** Choose processors and bind workers to them, and the calling thread to all of them together;
 * num_threads 0: as many as there are such processors.
 * @retval SLW_ERROR_ARGUMENT an unknown mode, too many threads, or a list that is empty or names a
 *         processor that this process may not run on */
SLW_API slw_status slw_configure_threads(int32_t mode, int32_t num_threads, const int32_t *cpus,
                                         int32_t num_cpus);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_THREADPOOL_H_ */
