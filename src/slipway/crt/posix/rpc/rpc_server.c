/* SPDX-License-Identifier: Apache-2.0
 * The supervisor: accepts, forks, waits, explains deaths, cleans up. One thread, one poll loop.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc_supervisor.h"

#define GRACE_NS 500000000u  /* between the client's leaving and the end of its process */
#define LATE_NS 500000000u   /* for a deadline's signal to do its work */
#define LOOK_MS 500          /* between two looks at the deadlines; a sign of life, too */
#ifndef POLLRDHUP
#define POLLRDHUP POLLHUP
#endif

/* Places in the poll: what is always there, then the sessions. */
enum { LISTEN, WATCH, ADOPT, REGISTRAR, FIXED };

static volatile sig_atomic_t stopping;

static void on_stop(int number) {
  (void)number;
  stopping = 1;
}

static void on_child(int number) { (void)number; /* it only has to interrupt ppoll */ }

/* --- endings --------------------------------------------------------------------------------- */

static const char SLOW_TEXT[] = "the client did not complete its greeting in time";

/* The session's process is gone: tell the client why, clean up. */
static void bury(server *self, child *one, int status) {
  char text[512] = "";
  uint32_t code = 0;
  bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  (void)kill(-one->pid, SIGKILL); /* what it left running */
  slw_rpc_slot_give_back(self->slots, (int32_t)one->pid);
  slw_rpc_remove_folder(one->folder);
  if (clean) {
    (void)snprintf(text, sizeof text, "ended");
  } else if (one->kill_at_ns != 0u && one->revoked[0] == '\0') {
    (void)snprintf(text, sizeof text, "the client left; its process was ended");
  } else {
    if (one->revoked[0] != '\0') {
      code = SLW_RPC_FAIL_CANCELLED;
      (void)snprintf(text, sizeof text, "%s", one->revoked);
    } else if (one->displaced) {
      code = SLW_RPC_FAIL_BUSY;
      (void)snprintf(text, sizeof text, "%s", slw_rpc_displaced_text);
    } else if (one->slow_greeting) {
      code = SLW_RPC_FAIL_TIMEOUT;
      (void)snprintf(text, sizeof text, "%s", SLOW_TEXT);
    } else {
      code = slw_rpc_explain(one->watch, status, text, sizeof text);
    }
    if (one->watch->has_lease != 0u) {
      (void)snprintf(self->lease->reason, sizeof self->lease->reason, "%.199s", text);
    }
    /* A frame that was half sent cannot be followed by another one. */
    if (one->watch->writing == 0u) {
      slw_rpc_write_error(one->fd, one->watch->calling != 0u ? one->watch->call_id : 0u, code,
                          text);
    }
  }
  slw_rpc_log(self->config, code == 0u ? "ended" : "failed", one->watch->session, one->peer, text);
  if (one->watch->has_lease != 0u) {
    (void)slw_rpc_lease_change(self->lease, SLW_RPC_LEASE_USED, SLW_RPC_LEASE_OVER);
    (void)slw_rpc_channel_send(self->channel[0], &(slw_rpc_order){0}, -1);
  }
  slw_rpc_linger(one);
}

static void reap(server *self) {
  int status = 0;
  uint32_t i;
  if (self->registrar > 0 && waitpid(self->registrar, &status, WNOHANG) == self->registrar) {
    self->registrar = 0;
  }
  for (i = 0; i < MAX_CHILDREN; ++i) {
    child *one = &self->children[i];
    if (one->state == RUNNING && waitpid(one->pid, &status, WNOHANG) == one->pid) {
      bury(self, one, status);
    }
  }
}

/* --- beginnings ------------------------------------------------------------------------------ */

/* In a process that was forked: what belongs to others is not its business. */
static void close_inherited(const child *one) {
  if (one->state != FREE) {
    (void)close(one->fd);
    if (one->folder_fd >= 0) {
      (void)close(one->folder_fd);
    }
  }
}

static _Noreturn void become_session(server *self, child *one, pid_t supervisor) {
  uint32_t i;
  for (i = 0; i < MAX_CHILDREN; ++i) {
    if (&self->children[i] != one) {
      close_inherited(&self->children[i]);
    }
  }
  (void)close(self->config->listen_fd);
  /* Uploaded code has no business with these. */
  (void)close(self->config->adopt_fd);
  (void)close(self->channel[0]);
  (void)close(self->channel[1]);
  if (chdir(one->folder) != 0) {
    slw_rpc_write_error(one->fd, 0, SLW_RPC_FAIL_IO, "the device cannot enter its session folder");
    _exit(1);
  }
  slw_rpc_child_run(self->config, one->fd, one->needs_token, one->watch, self->lease,
                    self->slots, supervisor);
}

static void give_up(server *self, child *one, uint32_t code, const char *text) {
  slw_rpc_write_error(one->fd, 0, code, text);
  slw_rpc_log(self->config, "refused", "", one->peer, text);
  slw_rpc_linger(one);
}

static void begin_session(server *self, child *one) {
  pid_t supervisor = getpid();
  void *watch = mmap(NULL, sizeof *one->watch, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0);
  if (watch == MAP_FAILED) {
    give_up(self, one, SLW_RPC_FAIL_MEMORY, "the device has no memory for another session");
    return;
  }
  one->watch = watch; /* `finish` takes it down with the rest */
  one->folder_fd = slw_rpc_make_folder(one->folder, sizeof one->folder);
  if (one->folder_fd < 0) {
    char text[200];
    (void)snprintf(text, sizeof text, "the device cannot make a folder for the session: %s",
                   strerror(errno));
    give_up(self, one, SLW_RPC_FAIL_IO, text);
    return;
  }
  (void)snprintf(one->watch->peer, sizeof one->watch->peer, "%s", one->peer);
  one->state = RUNNING;
  one->pid = self->config->fork_session != NULL
                 ? (pid_t)self->config->fork_session(self->config->context)
                 : fork();
  if (one->pid == 0) {
    become_session(self, one, supervisor);
  }
  if (one->pid < 0) {
    slw_rpc_remove_folder(one->folder);
    give_up(self, one, SLW_RPC_FAIL_MEMORY, "the device cannot start another process");
  }
}

static void accept_one(server *self) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  char peer[64];
  char origin[64];
  int fd;
  memset(&address, 0, sizeof address);
  fd = accept(self->config->listen_fd, (struct sockaddr *)(void *)&address, &size);
  if (fd >= 0) {
    slw_rpc_peer_text(&address, peer, sizeof peer);
    slw_rpc_origin_text(&address, origin, sizeof origin);
    slw_rpc_take_connection(self, fd, peer, origin,
                    self->config->always_needs_token != 0u || !slw_rpc_is_local(&address));
  }
}

/* Take what the server's own processes bring. */
static void hear(server *self, int channel) {
  slw_rpc_order order;
  int fd;
  uint32_t i;
  while (slw_rpc_channel_receive(channel, &order, &fd)) {
    if (order.kind == SLW_RPC_ORDER_ADOPT && fd >= 0) {
      slw_rpc_take_connection(self, fd, order.text, order.text,
                      self->config->always_needs_token != 0u || order.needs_token != 0u);
      continue;
    }
    if (fd >= 0) {
      (void)close(fd);
    }
    for (i = 0; i < MAX_CHILDREN && order.kind == SLW_RPC_ORDER_REVOKE; ++i) {
      child *one = &self->children[i];
      if (one->state == RUNNING && one->watch->has_lease != 0u) {
        (void)snprintf(one->revoked, sizeof one->revoked, "%s", order.text);
        (void)kill(-one->pid, SIGKILL);
        (void)kill(one->pid, SIGKILL);
      }
    }
  }
}

/* --- the tracker ----------------------------------------------------------------------------- */

static void prepare_registrar(server *self) {
  void *lease = mmap(NULL, sizeof *self->lease, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0);
  if (lease == MAP_FAILED || !slw_rpc_channel_open(self->channel)) {
    slw_rpc_log(self->config, "message", "", "", "cannot register with the tracker: no memory or descriptors");
    return;
  }
  self->lease = lease;
}

/* It runs nothing but our own C, so that a plain fork does in Python's process, too. */
static void start_registrar(server *self, const sigset_t *signals) {
  pid_t supervisor = getpid();
  uint32_t i;
  if (self->lease == NULL || self->registrar != 0 || slw_time_ns() < self->registrar_at_ns) {
    return;
  }
  self->registrar_at_ns = slw_time_ns() + 1000000000u;
  self->registrar = fork();
  if (self->registrar == 0) {
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, signals, NULL);
    for (i = 0; i < MAX_CHILDREN; ++i) {
      close_inherited(&self->children[i]);
    }
    (void)close(self->config->listen_fd);
    (void)close(self->config->adopt_fd);
    (void)close(self->channel[0]);
    slw_rpc_die_with(supervisor);
    slw_rpc_registrar_run(self->config, self->lease, self->channel[1]);
  }
}

/* --- the loop -------------------------------------------------------------------------------- */

static void attend(server *self, child *one, short events, uint64_t now) {
  char drain[4096];
  bool is_late = self->config->greeting_timeout_ms != 0u &&
                 now - one->accepted_ns > (uint64_t)self->config->greeting_timeout_ms * 1000000u;
  if (one->state == SILENT) {
    if ((events & POLLIN) != 0) {
      begin_session(self, one);
    } else if (is_late || (events & (POLLHUP | POLLERR | POLLRDHUP)) != 0) {
      give_up(self, one, SLW_RPC_FAIL_TIMEOUT, SLOW_TEXT);
    }
    return;
  }
  if (one->state == LINGERING) {
    bool over = now >= one->close_at_ns;
    if ((events & (POLLIN | POLLHUP | POLLERR | POLLRDHUP)) != 0) {
      over = over || recv(one->fd, drain, sizeof drain, MSG_DONTWAIT) <= 0;
    }
    if (over) {
      slw_rpc_finish(one);
    }
    return;
  }
  if ((events & (POLLRDHUP | POLLHUP | POLLERR)) != 0 && one->kill_at_ns == 0u) {
    one->kill_at_ns = now + GRACE_NS;
  }
  if (one->watch->greeted == 0u && is_late && !one->slow_greeting && !one->displaced) {
    one->slow_greeting = true;
    (void)kill(one->pid, SIGKILL);
  }
  /* Its alarm should have ended it by now: it is stopped, or blocks the signal. */
  if (slw_rpc_deadline(one->watch) != 0u && now > slw_rpc_deadline(one->watch) + LATE_NS) {
    (void)kill(-one->pid, SIGKILL);
    (void)kill(one->pid, SIGKILL);
  }
  if (one->kill_at_ns != 0u && now >= one->kill_at_ns) {
    (void)kill(-one->pid, SIGKILL);
    (void)kill(one->pid, SIGKILL);
  }
}

static int poll_timeout_ms(const server *self) {
  bool has_sessions = false;
  uint32_t i;
  for (i = 0; i < MAX_CHILDREN; ++i) {
    const child *one = &self->children[i];
    if (one->state == LINGERING || one->state == SILENT ||
        (one->state == RUNNING && (one->kill_at_ns != 0u || one->watch->greeted == 0u))) {
      return 50;
    }
    has_sessions = has_sessions || one->state == RUNNING;
  }
  return has_sessions || self->lease != NULL ? LOOK_MS : -1;
}

static void stop_all(server *self) {
  uint32_t i;
  int status;
  if (self->registrar > 0) {
    (void)kill(self->registrar, SIGKILL);
    (void)waitpid(self->registrar, &status, 0);
  }
  for (i = 0; i < MAX_CHILDREN; ++i) {
    child *one = &self->children[i];
    if (one->state == SILENT) {
      slw_rpc_write_error(one->fd, 0, SLW_RPC_FAIL_CANCELLED, "the device's server was stopped");
    }
    if (one->state == RUNNING) {
      (void)kill(-one->pid, SIGKILL);
      (void)kill(one->pid, SIGKILL);
      (void)waitpid(one->pid, &status, 0);
      slw_rpc_write_error(one->fd, 0, SLW_RPC_FAIL_CANCELLED, "the device's server was stopped");
      slw_rpc_remove_folder(one->folder);
    }
    if (one->state != FREE) {
      slw_rpc_finish(one);
    }
  }
}

static void catch_signals(sigset_t *while_polling) {
  struct sigaction action;
  sigset_t blocked;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_stop;
  (void)sigaction(SIGTERM, &action, NULL);
  (void)sigaction(SIGINT, &action, NULL);
  action.sa_handler = on_child;
  (void)sigaction(SIGCHLD, &action, NULL);
  (void)signal(SIGPIPE, SIG_IGN);
  /* Blocked except inside ppoll: a signal between two looks is not lost. */
  (void)sigemptyset(&blocked);
  (void)sigaddset(&blocked, SIGTERM);
  (void)sigaddset(&blocked, SIGINT);
  (void)sigaddset(&blocked, SIGCHLD);
  (void)sigprocmask(SIG_BLOCK, &blocked, while_polling);
  (void)sigdelset(while_polling, SIGTERM);
  (void)sigdelset(while_polling, SIGINT);
  (void)sigdelset(while_polling, SIGCHLD);
}

/* Wait for events; a signal that arrives at any moment before or during it ends the wait. */
static int wait_events(struct pollfd *fds, nfds_t count, int timeout_ms, const sigset_t *mask) {
#if defined(__APPLE__)
  /* No ppoll: a signal between the two calls costs one wait of at most 200 ms. */
  sigset_t before;
  int ready;
  (void)sigprocmask(SIG_SETMASK, mask, &before);
  ready = poll(fds, count, timeout_ms < 0 || timeout_ms > 200 ? 200 : timeout_ms);
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
  return ready;
#else
  struct timespec limit;
  limit.tv_sec = timeout_ms / 1000;
  limit.tv_nsec = (long)(timeout_ms % 1000) * 1000000L;
  return ppoll(fds, count, timeout_ms < 0 ? NULL : &limit, mask);
#endif
}

static bool is_idle(const server *self) {
  uint32_t i;
  for (i = 0; i < MAX_CHILDREN; ++i) {
    if (self->children[i].state != FREE) {
      return false;
    }
  }
  return true;
}

int slw_rpc_server_run(const slw_rpc_server_config *config) {
  static server self; /* one supervisor in a process */
  struct pollfd fds[MAX_CHILDREN + FIXED];
  sigset_t while_polling;
  uint32_t i;
  memset(&self, 0, sizeof self);
  self.config = config;
  self.channel[0] = -1;
  self.channel[1] = -1;
  self.slots = mmap(NULL, sizeof *self.slots, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0);
  if (self.slots == MAP_FAILED) {
    return ENOMEM;
  }
  stopping = 0;
  catch_signals(&while_polling);
  slw_rpc_sweep_folders();
  if (config->tracker_host != NULL) {
    prepare_registrar(&self);
  }
  while (stopping == 0) {
    int timeout_ms;
    uint64_t now;
    int ready;
    start_registrar(&self, &while_polling);
    if (self.lease != NULL) {
      __atomic_add_fetch(&self.lease->iterations, 1u, __ATOMIC_SEQ_CST);
    }
    timeout_ms = poll_timeout_ms(&self);
    fds[LISTEN].fd = config->listen_fd;
    fds[WATCH].fd = config->watch_fd;
    fds[ADOPT].fd = config->adopt_fd;
    fds[REGISTRAR].fd = self.channel[0];
    for (i = 0; i < FIXED; ++i) {
      fds[i].events = i == WATCH ? POLLHUP : POLLIN;
      fds[i].revents = 0;
    }
    for (i = 0; i < MAX_CHILDREN; ++i) {
      const child *one = &self.children[i];
      /* A client that has left is reported again and again: stop asking. */
      bool polled = one->state == LINGERING || one->state == SILENT ||
                    (one->state == RUNNING && one->kill_at_ns == 0u);
      fds[i + FIXED].fd = polled ? one->fd : -1;
      fds[i + FIXED].events = one->state == RUNNING ? POLLRDHUP : POLLIN;
      fds[i + FIXED].revents = 0;
    }
    ready = wait_events(fds, MAX_CHILDREN + FIXED, timeout_ms, &while_polling);
    if (ready < 0 && errno != EINTR) {
      break;
    }
    reap(&self);
    now = slw_time_ns();
    for (i = 0; i < MAX_CHILDREN; ++i) {
      if (self.children[i].state != FREE) {
        attend(&self, &self.children[i], ready > 0 ? fds[i + FIXED].revents : 0, now);
      }
    }
    if (config->is_single != 0u && self.had_session && is_idle(&self)) {
      stopping = 1;
    }
    if (ready > 0 && (fds[WATCH].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
      stopping = 1;
    }
    for (i = ADOPT; i <= REGISTRAR; ++i) {
      if (ready > 0 && (fds[i].revents & POLLIN) != 0) {
        hear(&self, fds[i].fd);
      }
    }
    if (ready > 0 && (fds[LISTEN].revents & POLLIN) != 0) {
      accept_one(&self);
    } else if (ready > 0 && (fds[LISTEN].revents & (POLLERR | POLLNVAL)) != 0) {
      stop_all(&self);
      return EBADF;
    }
  }
  stop_all(&self);
  return 0;
}
