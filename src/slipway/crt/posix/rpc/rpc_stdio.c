/* SPDX-License-Identifier: Apache-2.0
 * A session over standard input and output, and servers of one connection that is there already.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc_server_internal.h"

#define PIECE_BYTES 65536u

/* Copy until the end of `from`, in a process of its own. */
static bool start_copy(int from, int to, int other) {
  static char piece[PIECE_BYTES];
  pid_t pid = fork();
  ssize_t count;
  if (pid != 0) {
    return pid > 0;
  }
  (void)close(other);
  while ((count = read(from, piece, sizeof piece)) > 0 || (count < 0 && errno == EINTR)) {
    ssize_t done = 0;
    while (done < count) {
      ssize_t written = write(to, piece + done, (size_t)(count - done));
      if (written < 0 && errno != EINTR) {
        _exit(1);
      }
      done += written > 0 ? written : 0;
    }
  }
  (void)shutdown(to, SHUT_WR);
  _exit(0);
}

int slw_rpc_stdio_connection(void) {
  struct stat in;
  struct stat out;
  int ends[2];
  int fd;
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || fstat(0, &in) != 0 || fstat(1, &out) != 0) {
    return -1;
  }
  if (S_ISSOCK(in.st_mode) && in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
    fd = dup(0);
  } else {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || !start_copy(0, ends[1], ends[0]) ||
        !start_copy(ends[1], 1, ends[0])) {
      return -1;
    }
    (void)close(ends[1]);
    fd = ends[0];
  }
  /* What programs print must not get between the frames. */
  (void)dup2(nothing, 0);
  (void)dup2(2, 1);
  (void)close(nothing);
  return fd;
}

bool slw_rpc_server_adopt(slw_rpc_server_config *config, int fd) {
  slw_rpc_order order;
  int ends[2];
  memset(&order, 0, sizeof order);
  order.kind = SLW_RPC_ORDER_ADOPT;
  (void)snprintf(order.text, sizeof order.text, "who started this server");
  if (fd < 0 || !slw_rpc_channel_open(ends) || !slw_rpc_channel_send(ends[1], &order, fd)) {
    return false;
  }
  (void)close(fd);
  config->listen_fd = -1;
  config->adopt_fd = ends[0];
  config->is_single = 1;
  return true;
}
