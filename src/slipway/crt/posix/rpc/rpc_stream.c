/* SPDX-License-Identifier: Apache-2.0
 * A session's transport over a file descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "slipway/rpc_server.h"

static int fd_of(void *context) { return (int)(intptr_t)context; }

static bool wait_for(int fd, short events) {
  struct pollfd poller = {fd, events, 0};
  return errno == EINTR || ((errno == EAGAIN || errno == EWOULDBLOCK) &&
                            (poll(&poller, 1, -1) >= 0 || errno == EINTR));
}

static ptrdiff_t read_fd(void *context, void *buffer, size_t min, size_t max) {
  size_t done = 0;
  do {
    ssize_t got = read(fd_of(context), (char *)buffer + done, max - done);
    if (got == 0) {
      return 0;
    }
    if (got > 0) {
      done += (size_t)got;
    } else if (!wait_for(fd_of(context), POLLIN)) {
      return -1;
    }
  } while (done < min);
  return (ptrdiff_t)done;
}

static int write_fd(void *context, const slw_rpc_span *spans, size_t count) {
  struct iovec parts[4];
  size_t first = 0;
  size_t i;
  if (count > sizeof parts / sizeof parts[0]) {
    return -1;
  }
  for (i = 0; i < count; ++i) {
    parts[i].iov_base = (void *)(uintptr_t)spans[i].data;
    parts[i].iov_len = spans[i].size;
  }
  while (first < count) {
    ssize_t sent = writev(fd_of(context), parts + first, (int)(count - first));
    if (sent < 0) {
      if (!wait_for(fd_of(context), POLLOUT)) {
        return -1;
      }
      continue;
    }
    while (first < count && (size_t)sent >= parts[first].iov_len) {
      sent -= (ssize_t)parts[first].iov_len;
      ++first;
    }
    if (first < count) {
      parts[first].iov_base = (char *)parts[first].iov_base + sent;
      parts[first].iov_len -= (size_t)sent;
    }
  }
  return 0;
}

slw_rpc_transport slw_rpc_fd_transport(int fd) {
  slw_rpc_transport transport;
  transport.context = (void *)(intptr_t)fd;
  transport.read = read_fd;
  transport.write = write_fd;
  return transport;
}
