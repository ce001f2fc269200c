/* SPDX-License-Identifier: Apache-2.0
 * Who may come in: connections that have not proved anything are bounded, apart from sessions.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc_supervisor.h"

#define LINGER_NS 1000000000u /* for the client to read the last error before the close */

const char slw_rpc_displaced_text[] =
    "too many others are connecting to this device; try again in a moment";

void slw_rpc_finish(child *one) {
  (void)close(one->fd);
  if (one->folder_fd >= 0) {
    (void)close(one->folder_fd);
  }
  if (one->watch != NULL) {
    (void)munmap(one->watch, sizeof *one->watch);
  }
  memset(one, 0, sizeof *one);
}

void slw_rpc_linger(child *one) {
  (void)shutdown(one->fd, SHUT_WR);
  one->state = LINGERING;
  one->close_at_ns = slw_time_ns() + LINGER_NS;
}

static void set_options(int fd) {
  int one = 1;
  int idle_s = 30; /* a peer that vanished is found within a minute */
  int interval_s = 10;
  int count = 3;
#if defined(TCP_USER_TIMEOUT)
  unsigned lost_ms = 60000;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost_ms, sizeof lost_ms);
#endif
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
#if defined(TCP_KEEPIDLE)
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
#endif
}

static void refuse(server *self, int fd, const char *peer, uint32_t code, const char *text) {
  slw_rpc_write_error(fd, 0, code, text);
  slw_rpc_log(self->config, "refused", "", peer, text);
  (void)close(fd);
}

static bool is_greeting(const child *one) {
  return one->state == SILENT ||
         (one->state == RUNNING && one->watch->greeted == 0u && !one->displaced);
}

static uint32_t greetings_of(const server *self, const char *origin) {
  uint32_t count = 0;
  uint32_t i;
  for (i = 0; i < MAX_CHILDREN; ++i) {
    const child *one = &self->children[i];
    count += is_greeting(one) && (origin == NULL || strcmp(one->origin, origin) == 0) ? 1u : 0u;
  }
  return count;
}

/* The oldest greeting of an address; NULL is that of the address which has the most. */
static child *oldest_greeting(server *self, const char *origin) {
  child *oldest = NULL;
  uint32_t most = 0;
  uint32_t i;
  for (i = 0; i < MAX_CHILDREN; ++i) {
    child *one = &self->children[i];
    if (is_greeting(one) && (origin == NULL || strcmp(one->origin, origin) == 0)) {
      uint32_t count = origin == NULL ? greetings_of(self, one->origin) : 1u;
      if (oldest == NULL || count > most ||
          (count == most && one->accepted_ns < oldest->accepted_ns)) {
        oldest = one;
        most = count;
      }
    }
  }
  return oldest;
}

static void displace(server *self, child *one) {
  if (one->state == SILENT) {
    slw_rpc_write_error(one->fd, 0, SLW_RPC_FAIL_BUSY, slw_rpc_displaced_text);
    slw_rpc_log(self->config, "refused", "", one->peer, slw_rpc_displaced_text);
    slw_rpc_finish(one);
  } else {
    one->displaced = true;
    (void)kill(one->pid, SIGKILL);
  }
}

static child *free_child(server *self) {
  child *lingering = NULL;
  uint32_t i;
  for (i = 0; i < MAX_CHILDREN; ++i) {
    child *one = &self->children[i];
    if (one->state == FREE) {
      return one;
    }
    if (one->state == LINGERING &&
        (lingering == NULL || one->close_at_ns < lingering->close_at_ns)) {
      lingering = one;
    }
  }
  if (lingering != NULL) {
    slw_rpc_finish(lingering);
  }
  return lingering;
}

/* A connection has been made; it gets a process when it has sent something. */
void slw_rpc_take_connection(server *self, int fd, const char *peer, const char *origin,
                            bool needs_token) {
  child *one;
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  set_options(fd);
  if (greetings_of(self, origin) >= MAX_GREETINGS_OF_ONE) {
    displace(self, oldest_greeting(self, origin));
  } else if (greetings_of(self, NULL) >= MAX_GREETINGS) {
    displace(self, oldest_greeting(self, NULL));
  }
  one = free_child(self);
  if (one == NULL) {
    refuse(self, fd, peer, SLW_RPC_FAIL_BUSY, slw_rpc_displaced_text);
    return;
  }
  self->had_session = true;
  one->state = SILENT;
  one->fd = fd;
  one->folder_fd = -1;
  one->needs_token = needs_token;
  one->accepted_ns = slw_time_ns();
  (void)snprintf(one->peer, sizeof one->peer, "%s", peer);
  (void)snprintf(one->origin, sizeof one->origin, "%s", origin);
}

