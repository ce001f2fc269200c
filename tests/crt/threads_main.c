/* The pool under ThreadSanitizer: plain, nested and concurrent launches, and a changing size. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "slipway/threadpool.h"

#define ROUNDS 300
#define TASKS 16

static int add_task(void *closure, int32_t task, int32_t num_tasks) {
  int *slots = closure;
  slots[task] += num_tasks;
  return 0;
}

static int nest(void *closure, int32_t task, int32_t num_tasks) {
  int slots[TASKS] = {0};
  atomic_int *sum = closure;
  (void)task;
  (void)num_tasks;
  if (slw_parallel_launch(add_task, slots, TASKS) != 0) {
    return -1;
  }
  for (int i = 0; i < TASKS; ++i) {
    (void)atomic_fetch_add(sum, slots[i]);
  }
  return 0;
}

static void *many_launches(void *failed) {
  for (int round = 0; round < ROUNDS; ++round) {
    int slots[TASKS] = {0};
    if (slw_parallel_launch(add_task, slots, TASKS) != 0) {
      *(int *)failed = 1;
    }
    for (int i = 0; i < TASKS; ++i) {
      *(int *)failed |= slots[i] != TASKS;
    }
  }
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  int failed[3] = {0};
  int any = 0;
  for (int32_t size = 1; size <= 4; ++size) {
    atomic_int sum = 0;
    (void)slw_set_num_threads(size);
    for (int i = 0; i < 3; ++i) {
      (void)pthread_create(&threads[i], NULL, many_launches, &failed[i]);
    }
    for (int i = 0; i < 3; ++i) {
      (void)pthread_join(threads[i], NULL);
      any |= failed[i];
    }
    any |= slw_parallel_launch(nest, &sum, 8) != 0 || atomic_load(&sum) != 8 * TASKS * TASKS;
  }
  printf("%s\n", any ? "failed" : "ok");
  return any;
}
