/* Runs the tasks of a launch one after the other, and keeps how long each took. */
#include <stdint.h>
#include <time.h>

#define MOST_LAUNCHES 16384
#define MOST_TASKS 16

int32_t threads = 1; /* of the machine that is modelled */
int32_t launches;    /* since the last run began; those beyond MOST_LAUNCHES are not kept */
int64_t task_ns[MOST_LAUNCHES][MOST_TASKS];

static int inside;

static int64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* What it costs to look at the clock; a task is timed by two looks, one of them in its time. */
int64_t clock_ns(void) {
  const int64_t start = now();
  for (int i = 0; i < 999; ++i) {
    (void)now();
  }
  return (now() - start) / 1000;
}

int launch(int (*body)(void *, int32_t, int32_t), void *closure, int32_t num_tasks) {
  const int32_t count = (num_tasks > 0) ? num_tasks : inside ? 1 : threads;
  const int counted = !inside && count > 1 && count <= MOST_TASKS && launches < MOST_LAUNCHES;
  int result = 0;
  if (!counted) {
    for (int32_t task = 0; task < count && result == 0; ++task) {
      result = body(closure, task, count);
    }
    return result;
  }
  inside = 1;
  for (int32_t task = 0; task < count && result == 0; ++task) {
    const int64_t start = now();
    result = body(closure, task, count);
    task_ns[launches][task] = now() - start;
  }
  inside = 0;
  ++launches;
  return result;
}
