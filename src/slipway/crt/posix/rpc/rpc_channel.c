/* SPDX-License-Identifier: Apache-2.0
 * Connections and orders for the supervisor from its own processes, over a pair of datagram
 * sockets: a message is whole or not there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc_server_internal.h"

bool slw_rpc_channel_open(int ends[2]) {
  int i;
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) {
    return false;
  }
  for (i = 0; i < 2; ++i) {
    (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  }
  return true;
}

bool slw_rpc_channel_send(int channel, const slw_rpc_order *order, int fd) {
  struct iovec part = {(void *)(uintptr_t)order, sizeof *order};
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct msghdr message;
  memset(&message, 0, sizeof message);
  memset(&control, 0, sizeof control);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    struct cmsghdr *head;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  return sendmsg(channel, &message, 0) == (ssize_t)sizeof *order;
}

bool slw_rpc_channel_receive(int channel, slw_rpc_order *order, int *fd) {
  struct iovec part = {order, sizeof *order};
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct msghdr message;
  const struct cmsghdr *head;
  ssize_t size;
  memset(&message, 0, sizeof message);
  memset(&control, 0, sizeof control);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  *fd = -1;
  size = recvmsg(channel, &message, 0);
  if (size < 0) {
    return false;
  }
  head = CMSG_FIRSTHDR(&message);
  if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof(int))) {
    memcpy(fd, CMSG_DATA(head), sizeof *fd);
  }
  if (size != (ssize_t)sizeof *order) {
    memset(order, 0, sizeof *order); /* not one of ours: no order at all */
  }
  order->text[sizeof order->text - 1u] = '\0';
  return true;
}
