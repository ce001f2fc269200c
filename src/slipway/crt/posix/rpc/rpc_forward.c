/* SPDX-License-Identifier: Apache-2.0
 * A session that goes on elsewhere: `rpc.Connect` on the device connects it to another server, and
 * from the reply on its connection carries bytes between the client and that server, which greet
 * each other. `rpc.PopenSession` does the same with a program that was uploaded.
 *
 * The client could run code of its own that does so: nothing is opened that was closed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "rpc_server_internal.h"
#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/packed.h"

#define CONNECT_TIMEOUT_S 10
#define PIECE_BYTES 65536u
#define HOST_BYTES 256u

static int the_other = -1; /* one session in a process */

/* The text of an argument, NUL-terminated; false for what is none, or does not fit. */
static bool text_of(const TVMFFIAny *value, char *text, size_t capacity) {
  size_t size = 0;
  const char *data = NULL;
  if (slw_any_get_bytes(value, &data, &size) != SLW_OK || size == 0u || size >= capacity || memchr(data, '\0', size) != NULL) {
    return false;
  }
  memcpy(text, data, size);
  text[size] = '\0';
  return true;
}

static int connected(const struct addrinfo *address) {
  struct timeval limit = {CONNECT_TIMEOUT_S, 0};
  struct timeval none = {0, 0};
  int no_delay = 1;
  int code;
  int fd = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
  if (fd < 0) {
    return -1;
  }
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
    code = errno;
    (void)close(fd);
    errno = code == EINPROGRESS ? ETIMEDOUT : code;
    return -1;
  }
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
  return fd;
}

int slw_packed_rpc_connect(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  char host[HOST_BYTES];
  char port[16];
  struct addrinfo hints;
  struct addrinfo *found = NULL;
  const struct addrinfo *one;
  int status;
  (void)handle;
  (void)result;
  if (num_args < 2 || !text_of(&args[0], host, sizeof host) || args[1].type_index != kTVMFFIInt ||
      args[1].v_int64 < 1 || args[1].v_int64 > 65535) {
    return slw_error_setf("TypeError", "rpc.Connect takes a host's name and a port");
  }
  memset(&hints, 0, sizeof hints);
  hints.ai_socktype = SOCK_STREAM;
  (void)snprintf(port, sizeof port, "%d", (int)args[1].v_int64);
  status = getaddrinfo(host, port, &hints, &found);
  if (status != 0) {
    return slw_error_setf("RPCError", "this device cannot find '%s': %s", host,
                          gai_strerror(status));
  }
  errno = 0;
  for (one = found; one != NULL && the_other < 0; one = one->ai_next) {
    the_other = connected(one);
  }
  status = errno;
  freeaddrinfo(found);
  if (the_other < 0) {
    return slw_error_setf("RPCError", "this device cannot connect to %s:%s: %s", host, port,
                          strerror(status));
  }
  return 0;
}

int slw_packed_rpc_popen(void *handle, const TVMFFIAny *args, int32_t num_args,
                         TVMFFIAny *result) {
  char name[SLW_RPC_NAME_MAX_BYTES + 1];
  char path[SLW_RPC_NAME_MAX_BYTES + 3];
  struct stat status;
  int ends[2];
  pid_t pid;
  (void)handle;
  (void)result;
  if (num_args != 1 || !text_of(&args[0], name, sizeof name) || !slw_rpc_is_file_name(name) ||
      lstat(name, &status) != 0 || !S_ISREG(status.st_mode)) {
    return slw_error_setf("ValueError", "rpc.PopenSession takes the name of an uploaded program");
  }
  (void)snprintf(path, sizeof path, "./%s", name);
  if (chmod(path, 0700) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    return slw_error_setf("RPCError", "cannot start '%s': %s", name, strerror(errno));
  }
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC); /* its end is the end of the session */
  pid = fork();
  if (pid == 0) {
    if (dup2(ends[1], 0) == 0 && dup2(ends[1], 1) == 1) {
      (void)execl(path, name, "--stdio", (char *)NULL);
    }
    _exit(127);
  }
  (void)close(ends[1]);
  if (pid < 0) {
    (void)close(ends[0]);
    return slw_error_setf("RPCError", "cannot start '%s': %s", name, strerror(errno));
  }
  the_other = ends[0];
  return 0;
}

bool slw_rpc_forward_is_on(void) { return the_other >= 0; }

static bool send_all(int fd, const uint8_t *data, size_t size) {
  while (size > 0u) {
    ssize_t sent = write(fd, data, size);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      struct pollfd poller = {fd, POLLOUT, 0};
      (void)poll(&poller, 1, -1);
      continue;
    }
    if (sent <= 0) {
      return false;
    }
    data += sent;
    size -= (size_t)sent;
  }
  return true;
}

/* Copies until `from` ends or `to` is gone. */
static void copy(int from, int to) {
  static uint8_t pieces[2][PIECE_BYTES];
  uint8_t *piece = pieces[from == the_other ? 1 : 0];
  for (;;) {
    ssize_t got = read(from, piece, PIECE_BYTES);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      struct pollfd poller = {from, POLLIN, 0};
      (void)poll(&poller, 1, -1);
      continue;
    }
    if (got <= 0 || !send_all(to, piece, (size_t)got)) {
      (void)shutdown(to, SHUT_WR);
      return;
    }
  }
}

void slw_rpc_forward(int client, const uint8_t *received, size_t size) {
  /* A process for each direction: neither waits for the other, and a full one blocks its sender. */
  pid_t self = getpid();
  pid_t back = fork();
  if (back == 0) {
    slw_rpc_die_with(self);
    copy(the_other, client);
    _exit(0);
  }
  if (back > 0 && send_all(the_other, received, size)) {
    copy(client, the_other);
  }
}
