/* SPDX-License-Identifier: Apache-2.0 */
/* Which processors the threads of a launch run on. */
#include <stdio.h>
#include <stdlib.h>

#include "slipway/threadpool.h"

#if defined(__linux__)
#include <sched.h>

/* What this process could run on before it was bound for the first time. */
static const cpu_set_t *all_allowed(void) {
  static cpu_set_t allowed;
  static int known;
  if (!known) {
    known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  }
  return known ? &allowed : NULL;
}

/* The highest clock of a processor in kHz; 0 where the system does not say. */
static long clock_of(int32_t cpu) {
  char path[96];
  long clock = 0;
  FILE *file;
  (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq",
                 (int)cpu);
  file = fopen(path, "re");
  if (file != NULL) {
    if (fscanf(file, "%ld", &clock) != 1) {
      clock = 0;
    }
    (void)fclose(file);
  }
  return clock;
}

/* Processors with the highest (sign 1) or lowest (sign -1) clock of those allowed; their count. */
static int32_t fastest(const cpu_set_t *allowed, long sign, int32_t *cpus) {
  int32_t count = 0;
  long best = 0;
  for (int32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET((size_t)cpu, allowed)) {
      long clock = sign * clock_of(cpu);
      if (count > 0 && clock > best) {
        count = 0;
      }
      if ((count == 0 || clock == best) && count < SLW_MAX_THREADS) {
        best = clock;
        cpus[count++] = cpu;
      }
    }
  }
  return count;
}

static slw_status choose(int32_t mode, const int32_t *listed, int32_t num_listed, int32_t *cpus,
                         int32_t *count) {
  const cpu_set_t *allowed = all_allowed();
  *count = 0;
  if (allowed == NULL) {
    return SLW_ERROR_UNSUPPORTED;
  }
  if (mode == SLW_AFFINITY_BIG || mode == SLW_AFFINITY_LITTLE) {
    *count = fastest(allowed, mode, cpus);
  } else if (mode == SLW_AFFINITY_EACH || mode == SLW_AFFINITY_SHARED) {
    if (num_listed < 1 || num_listed > SLW_MAX_THREADS) {
      return SLW_ERROR_ARGUMENT;
    }
    for (int32_t i = 0; i < num_listed; ++i) {
      if (listed[i] < 0 || listed[i] >= CPU_SETSIZE || !CPU_ISSET((size_t)listed[i], allowed)) {
        return SLW_ERROR_ARGUMENT;
      }
      cpus[(*count)++] = listed[i];
    }
  } else if (mode != SLW_AFFINITY_NONE) {
    return SLW_ERROR_ARGUMENT;
  }
  return SLW_OK;
}

static void bind_caller(const int32_t *cpus, int32_t count) {
  cpu_set_t set;
  if (count == 0) {
    (void)sched_setaffinity(0, sizeof set, all_allowed());
    return;
  }
  CPU_ZERO(&set);
  for (int32_t i = 0; i < count; ++i) {
    CPU_SET((size_t)cpus[i], &set);
  }
  (void)sched_setaffinity(0, sizeof set, &set);
}
#else
static slw_status choose(int32_t mode, const int32_t *listed, int32_t num_listed, int32_t *cpus,
                         int32_t *count) {
  (void)listed;
  (void)num_listed;
  (void)cpus;
  *count = 0;
  return (mode >= SLW_AFFINITY_SHARED && mode <= SLW_AFFINITY_BIG) ? SLW_OK : SLW_ERROR_ARGUMENT;
}

static void bind_caller(const int32_t *cpus, int32_t count) {
  (void)cpus;
  (void)count;
}
#endif

slw_status slw_configure_threads(int32_t mode, int32_t num_threads, const int32_t *cpus,
                                 int32_t num_cpus) {
  int32_t chosen[SLW_MAX_THREADS] = {0};
  int32_t count = 0;
  slw_status status = SLW_ERROR_ARGUMENT;
  if (num_threads >= 0 && num_threads <= SLW_MAX_THREADS) {
    status = choose(mode, cpus, num_cpus, chosen, &count);
  }
  if (status == SLW_OK) {
    status = slw_bind_threads(chosen, count, mode == SLW_AFFINITY_SHARED);
  }
  if (status == SLW_OK) {
    bind_caller(chosen, count);
    status = slw_set_num_threads((num_threads == 0) ? count : num_threads);
  }
  return status;
}
