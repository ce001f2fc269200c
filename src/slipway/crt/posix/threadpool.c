/* SPDX-License-Identifier: Apache-2.0 */
/* A launch publishes a job and gives each thread a row of its tasks to begin with: a 32-bit word of
 * the first claim that is left and the end of the row. The owner takes claims from the front; who
 * has none left takes from the back of another row. So the same thread works on the same part of
 * layer after layer, whose data it has in its own cache, and yet none waits while another has work.
 *
 * Whoever moves a row's end or front by compare-and-swap owns that claim, and only then reads the
 * job; the launcher returns when every claim is done. So a worker that wakes late finds nothing to
 * claim and never sees a job that is over.
 *
 * Idle workers spin for a while, then sleep on a condition variable. Between two parallel layers of
 * a model lie at most some hundred microseconds; to wake a sleeper costs the launcher ten. */
#include "slipway/threadpool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "slipway/error.h"
#include "slipway/format.h"

#define WORKER_SPINS_NS 1000000
#define LAUNCHER_SPINS_NS 100000
#define MAX_CLAIMS 0xffff
#define CACHE_LINE 64

struct row {
  _Alignas(CACHE_LINE) atomic_uint claims; /* first << 16 | end */
};

static struct {
  pthread_mutex_t launch_lock; /* held for the length of a launch */
  pthread_mutex_t sleep_lock;  /* guards the two condition variables */
  pthread_cond_t work_came;
  pthread_cond_t work_done;
  _Alignas(CACHE_LINE) atomic_uint launches; /* so far; workers wait for it to change */
  _Alignas(CACHE_LINE) atomic_uint unfinished;
  struct row rows[SLW_MAX_THREADS]; /* the launcher's, then the workers' */
  atomic_int sleepers;
  atomic_int launcher_sleeps;
  atomic_int failures;
  int status; /* of the first task that failed: compiled code knows the reason by it */
  atomic_int stop;
  /* The job; written by the launcher before it publishes the rows. */
  slw_parallel_body body;
  void *closure;
  int32_t num_tasks;
  int32_t num_claims;
  /* Guarded by launch_lock. */
  int32_t num_threads; /* wanted; 0: not decided yet */
  int32_t num_workers; /* running */
  pthread_t workers[SLW_MAX_THREADS];
  int32_t cpus[SLW_MAX_THREADS]; /* that workers are bound to */
  int32_t num_cpus;              /* 0: they are not */
  int cpus_are_shared;
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

/* Spin until `done` is true or so many nanoseconds are over; return whether it is true. */
static int spin_until(int (*done)(void), int64_t nanoseconds) {
  struct timespec start;
  (void)clock_gettime(CLOCK_MONOTONIC, &start);
  for (;;) {
    struct timespec now;
    for (int spins = 0; spins < 64; ++spins) {
      if (done()) {
        return 1;
      }
      relax();
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if ((int64_t)(now.tv_sec - start.tv_sec) * 1000000000 + (now.tv_nsec - start.tv_nsec) >
        nanoseconds) {
      return done();
    }
  }
}

/* Take a claim of a row, at its front or its end; return its number, or -1 if none is left. */
static int32_t claim(int32_t row, int at_front) {
  unsigned seen = atomic_load(&pool.rows[row].claims);
  for (;;) {
    unsigned first = seen >> 16;
    unsigned end = seen & 0xffffU;
    unsigned left = at_front ? ((first + 1U) << 16 | end) : (first << 16 | (end - 1U));
    if (first >= end) {
      return -1;
    }
    if (atomic_compare_exchange_weak(&pool.rows[row].claims, &seen, left)) {
      return (int32_t)(at_front ? first : end - 1U);
    }
  }
}

static void note_failure(int status) {
  if (atomic_fetch_add(&pool.failures, 1) == 0) {
    pool.status = status;
    (void)slw_format(pool.failure_kind, sizeof pool.failure_kind, "%s", slw_error_kind());
    (void)slw_format(pool.failure_message, sizeof pool.failure_message, "%s",
                     slw_error_message());
  }
}

static void run_claim(int32_t number) {
  slw_parallel_body body = pool.body;
  void *closure = pool.closure;
  int32_t num_tasks = pool.num_tasks;
  int32_t first = (int32_t)((int64_t)num_tasks * number / pool.num_claims);
  int32_t end = (int32_t)((int64_t)num_tasks * (number + 1) / pool.num_claims);
  for (int32_t task = first; task < end; ++task) {
    int status = body(closure, task, num_tasks);
    if (status != 0) {
      note_failure(status);
    }
  }
  if (atomic_fetch_sub(&pool.unfinished, 1U) == 1U && atomic_load(&pool.launcher_sleeps)) {
    (void)pthread_mutex_lock(&pool.sleep_lock);
    (void)pthread_cond_signal(&pool.work_done);
    (void)pthread_mutex_unlock(&pool.sleep_lock);
  }
}

/* Run what is left of the own row, then of the others. */
static void run_claims(int32_t own, int32_t num_rows) {
  for (int32_t i = 0; i < num_rows; ++i) {
    int32_t row = (own + i) % num_rows;
    for (int32_t number = claim(row, i == 0); number >= 0; number = claim(row, i == 0)) {
      run_claim(number);
    }
  }
}

static int is_finished(void) { return atomic_load(&pool.unfinished) == 0U; }

static _Thread_local unsigned launches_seen;

static int is_launched(void) {
  return atomic_load(&pool.launches) != launches_seen || atomic_load(&pool.stop);
}

static void bind_worker(int32_t number) {
#if defined(__linux__)
  cpu_set_t set;
  if (pool.num_cpus > 0) {
    CPU_ZERO(&set);
    for (int32_t i = 0; i < pool.num_cpus; ++i) {
      if (pool.cpus_are_shared || i == number % pool.num_cpus) {
        CPU_SET((size_t)pool.cpus[i], &set);
      }
    }
    (void)sched_setaffinity(0, sizeof set, &set);
  }
#else
  (void)number;
#endif
}

static void *worker_main(void *row) {
  int32_t num_rows = pool.num_threads; /* the pool changes its size without workers only */
  bind_worker((int32_t)(intptr_t)row);
  inside_task = 1;
  while (!atomic_load(&pool.stop)) {
    if (!spin_until(is_launched, WORKER_SPINS_NS)) {
      (void)pthread_mutex_lock(&pool.sleep_lock);
      (void)atomic_fetch_add(&pool.sleepers, 1);
      while (!is_launched()) {
        (void)pthread_cond_wait(&pool.work_came, &pool.sleep_lock);
      }
      (void)atomic_fetch_sub(&pool.sleepers, 1);
      (void)pthread_mutex_unlock(&pool.sleep_lock);
    }
    launches_seen = atomic_load(&pool.launches);
    run_claims((int32_t)(intptr_t)row, num_rows);
  }
  return NULL;
}

static void wake_workers(void) {
  (void)pthread_mutex_lock(&pool.sleep_lock);
  (void)pthread_cond_broadcast(&pool.work_came);
  (void)pthread_mutex_unlock(&pool.sleep_lock);
}

static void wait_until_done(void) {
  if (spin_until(is_finished, LAUNCHER_SPINS_NS)) {
    return;
  }
  (void)pthread_mutex_lock(&pool.sleep_lock);
  atomic_store(&pool.launcher_sleeps, 1);
  while (!is_finished()) {
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
  for (int32_t i = 0; i < SLW_MAX_THREADS; ++i) {
    atomic_store(&pool.rows[i].claims, 0U);
  }
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
    void *row = (void *)(intptr_t)(pool.num_workers + 1);
    if (pthread_create(&pool.workers[pool.num_workers], NULL, worker_main, row) != 0) {
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
    (void)slw_error_setf("ValueError", "%d threads: there may be 1 to %d, or 0 for the machine's",
                         (int)num_threads, SLW_MAX_THREADS);
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

slw_status slw_bind_threads(const int32_t *cpus, int32_t num_cpus, int shared) {
  if (num_cpus < 0 || num_cpus > SLW_MAX_THREADS) {
    return SLW_ERROR_ARGUMENT;
  }
#if defined(__linux__)
  for (int32_t i = 0; i < num_cpus; ++i) {
    if (cpus[i] < 0 || cpus[i] >= CPU_SETSIZE) {
      return SLW_ERROR_ARGUMENT;
    }
  }
#endif
  if (inside_task) {
    return SLW_ERROR_UNSUPPORTED;
  }
  (void)pthread_mutex_lock(&pool.launch_lock);
  stop_workers();
  for (int32_t i = 0; i < num_cpus; ++i) {
    pool.cpus[i] = cpus[i];
  }
  pool.num_cpus = num_cpus;
  pool.cpus_are_shared = shared;
  (void)pthread_mutex_unlock(&pool.launch_lock);
  return SLW_OK;
}

static int run_serially(slw_parallel_body body, void *closure, int32_t num_tasks) {
  int result = 0;
  for (int32_t task = 0; task < num_tasks && result == 0; ++task) {
    result = body(closure, task, num_tasks);
  }
  return result;
}

static int launch(slw_parallel_body body, void *closure, int32_t num_tasks) {
  unsigned total = (num_tasks < MAX_CLAIMS) ? (unsigned)num_tasks : MAX_CLAIMS;
  unsigned num_rows = (unsigned)pool.num_threads;
  int failed;
  pool.body = body;
  pool.closure = closure;
  pool.num_tasks = num_tasks;
  pool.num_claims = (int32_t)total;
  atomic_store(&pool.failures, 0);
  atomic_store(&pool.unfinished, total);
  for (unsigned row = 0; row < num_rows; ++row) {
    atomic_store(&pool.rows[row].claims,
                 total * row / num_rows << 16 | total * (row + 1U) / num_rows);
  }
  (void)atomic_fetch_add(&pool.launches, 1U);
  if (atomic_load(&pool.sleepers) > 0) {
    wake_workers();
  }
  inside_task = 1;
  run_claims(0, pool.num_threads);
  inside_task = 0;
  wait_until_done();
  failed = atomic_load(&pool.failures) != 0;
  if (failed && pool.failure_message[0] != '\0') {
    slw_error_set(pool.failure_kind, pool.failure_message);
  } else if (failed && pool.status == -1) {
    slw_error_set("RuntimeError", "a parallel task failed without a reason");
  }
  return failed ? pool.status : 0;
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
