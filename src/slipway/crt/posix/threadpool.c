/* SPDX-License-Identifier: Apache-2.0 */
/* A launch publishes a job and a 32-bit word: claims made so far, and claims there are. Whoever
 * raises the first half by compare-and-swap owns that claim, and only then reads the job; the
 * launcher returns when every claim is done. So a worker that wakes late finds nothing to claim
 * and never sees a job that is over.
 *
 * Idle workers spin for a while (the next layer of a model comes within microseconds), then
 * sleep on a condition variable. */
#include "slipway/threadpool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "slipway/error.h"
#include "slipway/format.h"

#define SPINS_BEFORE_SLEEP 4000
#define MAX_CLAIMS 0xffff

static struct {
  pthread_mutex_t launch_lock; /* held for the length of a launch */
  pthread_mutex_t sleep_lock;  /* guards the two condition variables */
  pthread_cond_t work_came;
  pthread_cond_t work_done;
  atomic_uint claims; /* claimed << 16 | total */
  atomic_uint unfinished;
  atomic_int sleepers;
  atomic_int launcher_sleeps;
  atomic_int failures;
  atomic_int stop;
  /* The job; written by the launcher before it publishes `claims`. */
  slw_parallel_body body;
  void *closure;
  int32_t num_tasks;
  /* Guarded by launch_lock. */
  int32_t num_threads; /* wanted; 0: not decided yet */
  int32_t num_workers; /* running */
  pthread_t workers[SLW_MAX_THREADS];
  char failure_kind[SLW_ERROR_KIND_BYTES];
  char failure_message[SLW_ERROR_MESSAGE_BYTES];
} pool = {.launch_lock = PTHREAD_MUTEX_INITIALIZER,
          .sleep_lock = PTHREAD_MUTEX_INITIALIZER,
          .work_came = PTHREAD_COND_INITIALIZER,
          .work_done = PTHREAD_COND_INITIALIZER};

static atomic_int cached_num_threads;
static _Thread_local int inside_task;

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__arm__) && __ARM_ARCH >= 7)
  __asm__ volatile("yield");
#else
  __asm__ volatile("" ::: "memory");
#endif
}

static int has_unclaimed(unsigned claims) { return (claims >> 16) < (claims & 0xffffU); }

/* Return a claim's number, or -1 if none is left. */
static int32_t claim(void) {
  unsigned seen = atomic_load(&pool.claims);
  while (has_unclaimed(seen)) {
    if (atomic_compare_exchange_weak(&pool.claims, &seen, seen + 0x10000U)) {
      return (int32_t)(seen >> 16);
    }
  }
  return -1;
}

static void note_failure(void) {
  if (atomic_fetch_add(&pool.failures, 1) == 0) {
    (void)slw_format(pool.failure_kind, sizeof pool.failure_kind, "%s", slw_error_kind());
    (void)slw_format(pool.failure_message, sizeof pool.failure_message, "%s",
                     slw_error_message());
  }
}

static void run_claim(int32_t number, int32_t total) {
  slw_parallel_body body = pool.body;
  void *closure = pool.closure;
  int32_t num_tasks = pool.num_tasks;
  for (int64_t task = number; task < num_tasks; task += total) {
    if (body(closure, (int32_t)task, num_tasks) != 0) {
      note_failure();
    }
  }
  if (atomic_fetch_sub(&pool.unfinished, 1U) == 1U && atomic_load(&pool.launcher_sleeps)) {
    (void)pthread_mutex_lock(&pool.sleep_lock);
    (void)pthread_cond_signal(&pool.work_done);
    (void)pthread_mutex_unlock(&pool.sleep_lock);
  }
}

static void run_claims(void) {
  for (;;) {
    int32_t total;
    int32_t number = claim();
    if (number < 0) {
      return;
    }
    total = (int32_t)(atomic_load(&pool.claims) & 0xffffU);
    run_claim(number, total);
  }
}

static int nothing_to_do(void) {
  return !has_unclaimed(atomic_load(&pool.claims)) && !atomic_load(&pool.stop);
}

static void *worker_main(void *unused) {
  (void)unused;
  inside_task = 1;
  while (!atomic_load(&pool.stop)) {
    int spins = 0;
    while (nothing_to_do() && spins < SPINS_BEFORE_SLEEP) {
      relax();
      ++spins;
    }
    if (nothing_to_do()) {
      (void)pthread_mutex_lock(&pool.sleep_lock);
      (void)atomic_fetch_add(&pool.sleepers, 1);
      while (nothing_to_do()) {
        (void)pthread_cond_wait(&pool.work_came, &pool.sleep_lock);
      }
      (void)atomic_fetch_sub(&pool.sleepers, 1);
      (void)pthread_mutex_unlock(&pool.sleep_lock);
    }
    run_claims();
  }
  return NULL;
}

static void wake_workers(void) {
  (void)pthread_mutex_lock(&pool.sleep_lock);
  (void)pthread_cond_broadcast(&pool.work_came);
  (void)pthread_mutex_unlock(&pool.sleep_lock);
}

static void wait_until_done(void) {
  for (int spins = 0; spins < SPINS_BEFORE_SLEEP; ++spins) {
    if (atomic_load(&pool.unfinished) == 0U) {
      return;
    }
    relax();
  }
  (void)pthread_mutex_lock(&pool.sleep_lock);
  atomic_store(&pool.launcher_sleeps, 1);
  while (atomic_load(&pool.unfinished) != 0U) {
    (void)pthread_cond_wait(&pool.work_done, &pool.sleep_lock);
  }
  atomic_store(&pool.launcher_sleeps, 0);
  (void)pthread_mutex_unlock(&pool.sleep_lock);
}

/* A forked child has none of the parent's threads: start from nothing. */
static void forget_workers(void) {
  static const pthread_mutex_t fresh_mutex = PTHREAD_MUTEX_INITIALIZER;
  static const pthread_cond_t fresh_cond = PTHREAD_COND_INITIALIZER;
  pool.launch_lock = fresh_mutex;
  pool.sleep_lock = fresh_mutex;
  pool.work_came = fresh_cond;
  pool.work_done = fresh_cond;
  pool.num_workers = 0;
  atomic_store(&pool.claims, 0U);
  atomic_store(&pool.unfinished, 0U);
  atomic_store(&pool.sleepers, 0);
  atomic_store(&pool.launcher_sleeps, 0);
  atomic_store(&pool.stop, 0);
}

/* With launch_lock held. Fewer threads than wanted is not an error: tasks go round. */
static void start_workers(void) {
  static int fork_handled;
  sigset_t all;
  sigset_t old;
  if (!fork_handled) {
    fork_handled = (pthread_atfork(NULL, NULL, forget_workers) == 0);
  }
  /* Signals belong to the program's own threads. */
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &old);
  while (pool.num_workers < pool.num_threads - 1) {
    if (pthread_create(&pool.workers[pool.num_workers], NULL, worker_main, NULL) != 0) {
      break;
    }
    ++pool.num_workers;
  }
  (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* With launch_lock held. */
static void stop_workers(void) {
  atomic_store(&pool.stop, 1);
  wake_workers();
  for (int32_t i = 0; i < pool.num_workers; ++i) {
    (void)pthread_join(pool.workers[i], NULL);
  }
  pool.num_workers = 0;
  atomic_store(&pool.stop, 0);
}

static int32_t default_num_threads(void) {
  const char *text = getenv("SLIPWAY_NUM_THREADS");
  long count = (text != NULL) ? strtol(text, NULL, 10) : 0;
#if defined(__linux__)
  if (count < 1) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
      count = CPU_COUNT(&allowed);
    }
  }
#endif
  if (count < 1) {
    count = sysconf(_SC_NPROCESSORS_ONLN);
  }
  if (count < 1) {
    count = 1;
  }
  return (count > SLW_MAX_THREADS) ? SLW_MAX_THREADS : (int32_t)count;
}

int32_t slw_num_threads(void) {
  int32_t count = atomic_load(&cached_num_threads);
  if (count == 0) {
    count = default_num_threads();
    atomic_store(&cached_num_threads, count);
  }
  return count;
}

slw_status slw_set_num_threads(int32_t num_threads) {
  if (num_threads < 0 || num_threads > SLW_MAX_THREADS) {
    return SLW_ERROR_ARGUMENT;
  }
  if (inside_task) {
    return SLW_ERROR_UNSUPPORTED;
  }
  (void)pthread_mutex_lock(&pool.launch_lock);
  stop_workers();
  pool.num_threads = (num_threads == 0) ? default_num_threads() : num_threads;
  atomic_store(&cached_num_threads, pool.num_threads);
  (void)pthread_mutex_unlock(&pool.launch_lock);
  return SLW_OK;
}

static int run_serially(slw_parallel_body body, void *closure, int32_t num_tasks) {
  int result = 0;
  for (int32_t task = 0; task < num_tasks && result == 0; ++task) {
    result = body(closure, task, num_tasks);
  }
  return (result == 0) ? 0 : -1;
}

static int launch(slw_parallel_body body, void *closure, int32_t num_tasks) {
  unsigned total = (num_tasks < MAX_CLAIMS) ? (unsigned)num_tasks : MAX_CLAIMS;
  int failed;
  pool.body = body;
  pool.closure = closure;
  pool.num_tasks = num_tasks;
  atomic_store(&pool.failures, 0);
  atomic_store(&pool.unfinished, total);
  atomic_store(&pool.claims, total);
  if (atomic_load(&pool.sleepers) > 0) {
    wake_workers();
  }
  inside_task = 1;
  run_claims();
  inside_task = 0;
  wait_until_done();
  failed = atomic_load(&pool.failures) != 0;
  if (failed) {
    slw_error_set(pool.failure_kind[0] != '\0' ? pool.failure_kind : "RuntimeError",
                  pool.failure_message[0] != '\0' ? pool.failure_message
                                                  : "a parallel task failed without a reason");
  }
  return failed ? -1 : 0;
}

int slw_parallel_launch(slw_parallel_body body, void *closure, int32_t num_tasks) {
  int result;
  int32_t threads = slw_num_threads();
  if (inside_task || threads == 1 || num_tasks == 1) {
    return run_serially(body, closure, (num_tasks > 0) ? num_tasks : 1);
  }
  if (pthread_mutex_trylock(&pool.launch_lock) != 0) {
    return run_serially(body, closure, (num_tasks > 0) ? num_tasks : 1);
  }
  if (pool.num_threads == 0) {
    pool.num_threads = threads;
  }
  if (pool.num_workers < pool.num_threads - 1) {
    start_workers();
  }
  result = launch(body, closure, (num_tasks > 0) ? num_tasks : pool.num_threads);
  (void)pthread_mutex_unlock(&pool.launch_lock);
  return result;
}
