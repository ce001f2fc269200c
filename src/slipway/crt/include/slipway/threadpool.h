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
 * @return 0, or -1 if any task returned non-zero (the first failing task's error is then the
 *         calling thread's error) */
SLW_API int slw_parallel_launch(slw_parallel_body body, void *closure, int32_t num_tasks);

/** Set how many threads work on a launch, 1..SLW_MAX_THREADS; 0: the default (environment
 * variable SLIPWAY_NUM_THREADS, else the processors this process may run on). */
SLW_API slw_status slw_set_num_threads(int32_t num_threads);

SLW_API int32_t slw_num_threads(void);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_THREADPOOL_H_ */
