/* SPDX-License-Identifier: Apache-2.0 */
#include "device_wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifndef MSG_NOSIGNAL /* macOS, whose programs are not static */
#define MSG_NOSIGNAL 0
#endif

int slw_device_send(int socket, const void *data, size_t size_bytes) {
  const char *at = data;
  while (size_bytes > 0U) {
    ssize_t sent = send(socket, at, size_bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent <= 0) {
      return -1;
    }
    at += sent;
    size_bytes -= (size_t)sent;
  }
  return 0;
}

int slw_device_take(int socket, void *data, size_t size_bytes) {
  char *at = data;
  while (size_bytes > 0U) {
    ssize_t taken = recv(socket, at, size_bytes, 0);
    if (taken < 0 && errno == EINTR) {
      continue;
    }
    if (taken <= 0) {
      return -1;
    }
    at += taken;
    size_bytes -= (size_t)taken;
  }
  return 0;
}
