/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel loops in WebAssembly with shared memory: workers run this same module over the same
 * memory, each with a stack of its own (slipway.mjs starts them).
 *
 * The launcher opens a job, works on it too, closes it, and waits for those who are inside.  Who
 * comes in between finds it open, whole and with tasks left, or closed, and goes.  The launcher may
 * be a page's main thread, which must not sleep: it spins, at most for the length of a task. */
#ifdef SLW_WEB_THREADS
#include "threads.h"

#include "slipway/error.h"
#include "slipway/format.h"

#define WORKER_SPINS 20000 /* before a worker sleeps: about the time between two layers */
#define NEVER (-1LL)

static struct {
  int32_t launches; /* workers sleep until it changes */
  int32_t is_open;
  int32_t inside; /* workers that may be reading the job */
  int32_t next;   /* task */
  int32_t failures;
  int32_t status; /* of the first task that failed: compiled code knows the reason by it */
  int32_t num_threads; /* the launcher's counted; 0: as if 1 */
  int32_t is_launching;
  int32_t is_over; /* workers go */
  int32_t lock;
  slw_parallel_body body;
  void *closure;
  int32_t num_tasks;
  char failure_kind[SLW_ERROR_KIND_BYTES];
  char failure_message[SLW_ERROR_MESSAGE_BYTES];
} pool;

static int32_t get(const int32_t *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }

static void set(int32_t *at, int32_t value) { __atomic_store_n(at, value, __ATOMIC_SEQ_CST); }

static int32_t add(int32_t *at, int32_t value) {
  return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}

void slw_web_lock(void) {
  while (__atomic_exchange_n(&pool.lock, 1, __ATOMIC_SEQ_CST) != 0) {
  }
}

void slw_web_unlock(void) { set(&pool.lock, 0); }

static void note_failure(int32_t status, const char *kind, const char *message) {
  if (add(&pool.failures, 1) == 0) {
    pool.status = status;
    (void)slw_format(pool.failure_kind, sizeof pool.failure_kind, "%s", kind);
    (void)slw_format(pool.failure_message, sizeof pool.failure_message, "%s", message);
  }
}

static void run_tasks(void) {
  const int32_t num_tasks = pool.num_tasks;
  for (int32_t task = add(&pool.next, 1); task < num_tasks; task = add(&pool.next, 1)) {
    const int32_t status = pool.body(pool.closure, task, num_tasks);
    if (status != 0) {
      note_failure(status, slw_error_kind(), slw_error_message());
    }
  }
}

static int run_serially(slw_parallel_body body, void *closure, int32_t num_tasks) {
  for (int32_t task = 0; task < num_tasks; ++task) {
    const int32_t status = body(closure, task, num_tasks);
    if (status != 0) {
      return status;
    }
  }
  return 0;
}

int slw_parallel_launch(slw_parallel_body body, void *closure, int32_t num_tasks) {
  const int32_t threads = get(&pool.num_threads);
  if (num_tasks <= 0) {
    num_tasks = (threads > 1) ? threads : 1;
  }
  if (threads <= 1 || num_tasks == 1 ||
      __atomic_exchange_n(&pool.is_launching, 1, __ATOMIC_SEQ_CST) != 0) {
    return run_serially(body, closure, num_tasks); /* also inside of a task */
  }
  pool.body = body;
  pool.closure = closure;
  pool.num_tasks = num_tasks;
  set(&pool.next, 0);
  set(&pool.failures, 0);
  set(&pool.is_open, 1);
  (void)add(&pool.launches, 1);
  (void)__builtin_wasm_memory_atomic_notify(&pool.launches, (unsigned)threads);
  run_tasks();
  set(&pool.is_open, 0);
  while (get(&pool.inside) != 0) {
  }
  set(&pool.is_launching, 0);
  if (get(&pool.failures) == 0) {
    return 0;
  }
  if (pool.failure_message[0] != '\0') {
    slw_error_set(pool.failure_kind, pool.failure_message);
  } else if (pool.status == -1) {
    slw_error_set("RuntimeError", "a parallel task failed without a reason");
  }
  return pool.status;
}

/** Say how many threads there are, the calling one counted; the others are in slw_web_serve, from
 * which they return when it is 1. */
SLW_WEB_API
void slw_web_set_threads(int32_t count) {
  set(&pool.num_threads, count);
  set(&pool.is_over, count <= 1);
  (void)add(&pool.launches, 1);
  (void)__builtin_wasm_memory_atomic_notify(&pool.launches, UINT32_MAX);
}

/** Work on launches: what a worker calls. */
SLW_WEB_API
void slw_web_serve(void) {
  int32_t seen = get(&pool.launches) - 1; /* a job may be open already */
  while (!get(&pool.is_over)) {
    for (int32_t spins = 0; spins < WORKER_SPINS && get(&pool.launches) == seen; ++spins) {
    }
    if (get(&pool.launches) == seen) {
      (void)__builtin_wasm_memory_atomic_wait32(&pool.launches, seen, NEVER);
      continue;
    }
    seen = get(&pool.launches);
    (void)add(&pool.inside, 1);
    if (get(&pool.is_open)) {
      run_tasks();
    }
    (void)add(&pool.inside, -1);
  }
}

/** Say that a task of this worker ended in a trap, which left slw_web_serve. */
SLW_WEB_API
void slw_web_trapped(void) {
  note_failure(-1, "RuntimeError",
               "a task of a parallel loop was stopped by the engine: the stack of its worker is "
               "too small, or it called a function of JavaScript, which belongs to another thread");
  (void)add(&pool.inside, -1);
}
#else
/* One thread, and nothing to see to. */
typedef int slw_web_has_no_threads;
#endif
