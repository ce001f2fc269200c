/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/timer.h"

#include "slipway/device_api.h"
#include "slipway/object.h"
#include "slipway/platform.h"

uint64_t slw_time_ns(void) { return slw_platform_time_ns(); }

static slw_status call_once(slw_function function, const TVMFFIAny *args, int32_t num_args) {
  TVMFFIAny result = {0};
  if (function.call(function.self, args, num_args, &result) != 0) {
    return SLW_ERROR_CALL;
  }
  slw_any_clear(&result);
  return SLW_OK;
}

static slw_status measure(slw_function function, const TVMFFIAny *args, int32_t num_args,
                          slw_device_clock clock, uint64_t number, uint64_t *duration_ns) {
  slw_device_span span;
  slw_status begun = slw_device_span_begin(&span, clock);
  if (begun != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  for (uint64_t i = 0; i < number; ++i) {
    slw_status status = call_once(function, args, num_args);
    if (status != SLW_OK) {
      return status;
    }
  }
  return (slw_device_span_end(&span, duration_ns) == SLW_OK) ? SLW_OK : SLW_ERROR_CALL;
}

/* The next number of runs: what should last min_ns, but at least a golden ratio more. */
static uint64_t raised(uint64_t number, uint64_t duration_ns, uint64_t min_ns) {
  double by_ratio = (double)number * 1.618 + 1.0;
  double by_time =
      (duration_ns == 0) ? by_ratio : (double)number * (double)min_ns / (double)duration_ns + 1.0;
  double next = (by_time > by_ratio) ? by_time : by_ratio;
  return (next > 1e12) ? (uint64_t)1000000000000 : (uint64_t)next;
}

slw_status slw_time_evaluate(slw_function function, const TVMFFIAny *args, int32_t num_args,
                             const slw_time_options *options, slw_function preproc,
                             double *results_s) {
  uint64_t number;
  uint64_t min_ns;
  slw_device_work before;
  slw_device_clock clock = {NULL, 0};
  slw_status status;
  if (function.call == NULL || options == NULL || options->number < 1 || options->repeat < 1 ||
      options->min_repeat_ms < 0 || options->cooldown_interval_ms < 0 || results_s == NULL) {
    return SLW_ERROR_ARGUMENT;
  }
  number = (uint64_t)options->number;
  min_ns = (uint64_t)options->min_repeat_ms * 1000000U;
  slw_device_note(&before);
  status = call_once(function, args, num_args);
  if (status == SLW_OK) {
    clock = slw_device_clock_since(&before);
    status = slw_device_wait_all();
  }
  for (int32_t i = 0; i < options->repeat && status == SLW_OK; ++i) {
    uint64_t duration_ns = 0;
    int32_t zero_readings = 0;
    if (preproc.call != NULL) {
      status = call_once(preproc, args, num_args);
      if (status != SLW_OK) {
        return status;
      }
    }
    for (;;) {
      status = measure(function, args, num_args, clock, number, &duration_ns);
      if (status != SLW_OK || duration_ns >= min_ns) {
        break;
      }
      zero_readings += (duration_ns == 0);
      if (zero_readings > options->limit_zero_time_iterations) {
        break;
      }
      number = raised(number, duration_ns, min_ns);
    }
    results_s[i] = (double)duration_ns / (double)number * 1e-9;
    if (options->cooldown_interval_ms > 0 && options->repeats_to_cooldown > 0 &&
        (i + 1) % options->repeats_to_cooldown == 0) {
      slw_platform_sleep_ms((uint32_t)options->cooldown_interval_ms);
    }
  }
  return status;
}
