/* SPDX-License-Identifier: Apache-2.0
 * The process of one session: limits first, then the session, then nothing.
 *
 * Deadlines are kept by the kernel: a SIGALRM that nobody handles ends the process, whatever
 * code it runs, and the supervisor reads from the watch which deadline it was.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "../../src/rpc_internal.h"
#include "rpc_server_internal.h"
#include "slipway/error.h"
#include "slipway/platform.h"

#define WHOLE_BYTES 16384u
#define WRONG_TOKEN_DELAY_MS 1000u

static slw_rpc_watch *the_watch;
static slw_rpc_lease *the_lease;
static slw_rpc_slots *the_slots;
static slw_rpc_transport inner;
static slw_rpc_transport marked; /* for a thread beside the session's */
static slw_rpc_session the_session;

static void arm(uint64_t deadline_ns) {
  struct itimerval timer;
  uint64_t now = slw_time_ns();
  uint64_t left_us = deadline_ns > now ? (deadline_ns - now) / 1000u + 1u : 1u;
  memset(&timer, 0, sizeof timer);
  if (deadline_ns != 0u) {
    timer.it_value.tv_sec = (time_t)(left_us / 1000000u);
    timer.it_value.tv_usec = (suseconds_t)(left_us % 1000000u);
  }
  (void)setitimer(ITIMER_REAL, &timer, NULL);
}

static void call_begins(void *context, uint32_t id, uint32_t timeout_ms, const char *name) {
  slw_rpc_watch *watch = the_watch;
  size_t i;
  (void)context;
  for (i = 0; i + 1 < sizeof watch->function && name[i] != '\0'; ++i) {
    watch->function[i] = name[i];
  }
  watch->function[i] = '\0';
  watch->call_id = id;
  watch->call_timeout_ms = timeout_ms;
  watch->calling = 1;
  if (timeout_ms != 0u) {
    watch->call_deadline_ns = slw_time_ns() + (uint64_t)timeout_ms * 1000000u;
    if (watch->session_deadline_ns == 0u || watch->call_deadline_ns < watch->session_deadline_ns) {
      arm(watch->call_deadline_ns);
    }
  }
}

static void call_ends(void *context) {
  slw_rpc_watch *watch = the_watch;
  (void)context;
  if (slw_rpc_output_is_on()) {
    slw_rpc_output_flush();
  }
  watch->calling = 0;
  if (watch->call_timeout_ms != 0u) {
    watch->call_deadline_ns = 0;
    arm(watch->session_deadline_ns);
  }
}

/* A device that a tracker hands out serves only those who come with its lease: "key:lease". */
static int admit(void *context, const char *key) {
  const slw_rpc_server_config *config = context;
  size_t size = strlen(config->key);
  if (strncmp(key, config->key, size) == 0 && key[size] == ':' &&
      strcmp(key + size + 1, the_lease->text) == 0 &&
      slw_rpc_lease_change(the_lease, SLW_RPC_LEASE_ASSIGNED, SLW_RPC_LEASE_USED)) {
    slw_rpc_name_session(the_watch->session, the_lease->text, SLW_RPC_LEASE_BYTES);
    the_watch->has_lease = 1;
    return SLW_RPC_OK;
  }
  (void)slw_error_setf("RPCError",
                       "this device is handed out by the tracker %s:%u; ask there for a '%s'",
                       config->tracker_host, config->tracker_port, config->key);
  return SLW_RPC_FAIL_AUTH;
}

bool slw_rpc_slot_take(slw_rpc_slots *slots, uint32_t max_sessions, int32_t process) {
  uint32_t i;
  for (i = 0; i < max_sessions && i < sizeof slots->owners / sizeof slots->owners[0]; ++i) {
    int32_t nobody = 0;
    if (__atomic_compare_exchange_n(&slots->owners[i], &nobody, process, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return true;
    }
  }
  return false;
}

void slw_rpc_slot_give_back(slw_rpc_slots *slots, int32_t process) {
  uint32_t i;
  for (i = 0; i < sizeof slots->owners / sizeof slots->owners[0]; ++i) {
    int32_t owner = process;
    (void)__atomic_compare_exchange_n(&slots->owners[i], &owner, 0, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST);
  }
}

static int enter(void *context) {
  const slw_rpc_server_config *config = context;
  if (slw_rpc_slot_take(the_slots, config->max_sessions, (int32_t)getpid())) {
    return SLW_RPC_OK;
  }
  (void)slw_error_setf("RPCError",
                       "the device runs as many sessions as it may (%u); try again later",
                       config->max_sessions);
  return SLW_RPC_FAIL_BUSY;
}

/* Whoever guesses, and however the guess is wrong, hears of it after the same time. */
static void delay_refusal(void *context) {
  (void)context;
  slw_platform_sleep_ms(WRONG_TOKEN_DELAY_MS);
}

static ptrdiff_t watched_read(void *context, void *buffer, size_t min, size_t max) {
  return inner.read(context, buffer, min, max);
}

static int marked_write(void *context, const slw_rpc_span *spans, size_t count) {
  size_t size = 0;
  size_t i;
  int status;
  for (i = 0; i < count; ++i) {
    size += spans[i].size;
  }
  /* What fits into the system's buffer goes there whole, or not at all. */
  the_watch->writing = size > WHOLE_BYTES ? 1u : 0u;
  status = inner.write(context, spans, count);
  the_watch->writing = 0;
  return status;
}

static int watched_write(void *context, const slw_rpc_span *spans, size_t count) {
  bool shared = slw_rpc_output_is_on();
  int status;
  if (shared) {
    slw_rpc_output_lock();
  }
  status = marked_write(context, spans, count);
  if (shared) {
    slw_rpc_output_unlock();
  }
  return status;
}

/* `value`, or less where the process may have less. */
static struct rlimit limits_to(rlim_t hard, rlim_t value) {
  struct rlimit limits;
  limits.rlim_cur = hard == RLIM_INFINITY || value < hard ? value : hard;
  limits.rlim_max = hard;
  return limits;
}

#define LIMIT(resource, value)                          \
  do {                                                  \
    struct rlimit now;                                  \
    if (getrlimit((resource), &now) == 0) {             \
      now = limits_to(now.rlim_max, (rlim_t)(value));   \
      (void)setrlimit((resource), &now);                \
    }                                                   \
  } while (0)

static uint64_t address_space_in_use(void) {
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file != NULL) {
    if (fscanf(file, "%llu", &pages) != 1) {
      pages = 0;
    }
    (void)fclose(file);
  }
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void slw_rpc_die_with(pid_t supervisor) {
#if defined(__linux__)
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
#endif
  if (getppid() != supervisor) {
    _exit(1); /* it died before that was set */
  }
}

static void confine(const slw_rpc_server_config *config, pid_t supervisor) {
  static const int defaults[] = {SIGALRM, SIGTERM, SIGINT, SIGCHLD, SIGSEGV, SIGBUS,
                                 SIGFPE,  SIGILL,  SIGABRT};
  sigset_t none;
  FILE *file;
  size_t i;
  for (i = 0; i < sizeof defaults / sizeof defaults[0]; ++i) {
    (void)signal(defaults[i], SIG_DFL);
  }
  (void)signal(SIGPIPE, SIG_IGN);
  (void)signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error, not a death */
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL);
  (void)setpgid(0, 0);
#if defined(__linux__)
  (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
  slw_rpc_die_with(supervisor);
  LIMIT(RLIMIT_CORE, 0);
  if (config->max_cpu_s != 0u) {
    LIMIT(RLIMIT_CPU, config->max_cpu_s);
  }
  if (config->max_files != 0u) {
    LIMIT(RLIMIT_NOFILE, config->max_files);
  }
  if (config->max_memory_bytes != 0u) {
    LIMIT(RLIMIT_AS, address_space_in_use() + config->max_memory_bytes);
  }
  /* When memory runs out, this process goes, and not one of the system. */
  file = fopen("/proc/self/oom_score_adj", "we");
  if (file != NULL) {
    (void)fputs("1000", file);
    (void)fclose(file);
  }
}

_Noreturn void slw_rpc_child_run(const slw_rpc_server_config *config, int fd, bool needs_token,
                                 slw_rpc_watch *watch, slw_rpc_lease *lease,
                                 slw_rpc_slots *slots, pid_t supervisor) {
  slw_rpc_config session;
  slw_rpc_hooks hooks;
  size_t size;
  void *memory;
  int status;
  confine(config, supervisor);
  the_watch = watch;
  slw_rpc_host_hooks(&hooks, config);
  hooks.call_begins = call_begins;
  hooks.call_ends = call_ends;
  slw_rpc_peer_hooks(&hooks, &the_session, config);
  hooks.context = (void *)(uintptr_t)config;
  the_slots = slots;
  hooks.enter = enter;
  hooks.delay_refusal = delay_refusal;
  if (config->tracker_host != NULL) {
    the_lease = lease;
    hooks.admit = admit;
  }
  memset(&session, 0, sizeof session);
  inner = slw_rpc_fd_transport(fd);
  marked = inner;
  marked.write = marked_write;
  session.transport = inner;
  session.transport.read = watched_read;
  session.transport.write = watched_write;
  session.hooks = &hooks;
  session.key = config->key;
  session.description = config->description;
  session.token = config->token;
  session.token_size = (size_t)config->token_size;
  session.needs_token = needs_token;
  session.session_timeout_ms = config->session_timeout_ms;
  session.max_args = 1024;
  session.max_handles = config->max_handles;
  session.name_bytes = 96;
  session.frame_bytes = SLW_RPC_HOST_FRAME_BYTES;
  session.offers_output = true;
  session.read_ahead_bytes = 65536;
  size = slw_rpc_session_memory(&session);
  memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    slw_rpc_write_error(fd, 0, SLW_RPC_FAIL_MEMORY, "the device has no memory for a session");
    _exit(1);
  }
  slw_rpc_session_init(&the_session, &session, memory);
  status = slw_rpc_session_greet(&the_session);
  (void)munmap(slots, sizeof *slots); /* uploaded code has no business with it */
  if (config->token_size > 0u) {
    /* This process's copy: uploaded code has no business with it. */
    memset((void *)(uintptr_t)config->token, 0, (size_t)config->token_size);
  }
  if (status == 0) {
    if (watch->session[0] == '\0') {
      uint64_t seed[2];
      seed[0] = (uint64_t)getpid();
      seed[1] = slw_time_ns();
      slw_rpc_name_session(watch->session, seed, sizeof seed);
    }
    slw_rpc_log(config, "started", watch->session, watch->peer, "started");
    watch->greeted = 1;
    if (the_session.peer_timeout_ms != 0u) {
      watch->session_timeout_ms = the_session.peer_timeout_ms;
      watch->session_deadline_ns =
          slw_time_ns() + (uint64_t)the_session.peer_timeout_ms * 1000000u;
      arm(watch->session_deadline_ns);
    }
  }
  if (status == 0 && (the_session.peer_features & SLW_RPC_FEATURE_OUTPUT) != 0u &&
      !slw_rpc_output_start(&marked, config->flush_output)) {
    slw_rpc_write_error(fd, 0, SLW_RPC_FAIL_MEMORY, "the device cannot send what is printed");
    _exit(1);
  }
  while (status == 0) {
    status = slw_rpc_session_step(&the_session);
    if (slw_rpc_forward_is_on() && slw_rpc_flush(&the_session)) {
      watch->writing = 1; /* of another server's frames: nothing may be put between them */
      slw_rpc_forward(fd, the_session.rx + the_session.rx_at,
                      the_session.rx_end - the_session.rx_at);
      status = -1;
    }
  }
  /* Destructors of uploaded code may hang or crash; nobody waits for their result. */
  _exit(0);
}
