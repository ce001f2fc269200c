/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Timing a function where it runs.
 */
#ifndef SLIPWAY_TIMER_H_
#define SLIPWAY_TIMER_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t number;        /**< runs per measurement, at least 1 */
  int32_t repeat;        /**< measurements, at least 1 */
  int32_t min_repeat_ms; /**< raise `number` until one measurement lasts this long; 0: never */
  int32_t cooldown_interval_ms;         /**< pause between measurements; 0: none */
  int32_t repeats_to_cooldown;          /**< measurements between pauses, at least 1 */
  int32_t limit_zero_time_iterations;   /**< give up raising after this many zero readings */
} slw_time_options;

/** The classic defaults: number 10, repeat 1, everything else off. */
#define SLW_TIME_OPTIONS_DEFAULT \
  { 10, 1, 0, 0, 1, 100 }

/** Monotonic clock. Units: nanoseconds. */
SLW_API uint64_t slw_time_ns(void);

/** Call `function` once to warm up, then measure: by the clock of the device that it launched
 * kernels on, where that was one and has a clock, else by the processor's.
 * @param preproc  called with the same arguments before each measurement; call NULL: none
 * @param results_s  room for options->repeat mean times of one run, in seconds
 * @retval SLW_ERROR_CALL the function failed; the thread's error says why */
SLW_API slw_status slw_time_evaluate(slw_function function, const TVMFFIAny *args,
                                     int32_t num_args, const slw_time_options *options,
                                     slw_function preproc, double *results_s);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_TIMER_H_ */
