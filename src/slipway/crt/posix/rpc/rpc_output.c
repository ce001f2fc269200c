/* SPDX-License-Identifier: Apache-2.0
 * What a session's programs print, to the client that asked for it.
 *
 * Both streams become pipes. A thread sends what comes through them while a function runs; when it
 * has returned, the session's thread sends the rest before the reply. One lock keeps frames whole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rpc_server_internal.h"

#define PIECE_BYTES 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const slw_rpc_transport *the_link;
static void (*flush_more)(int begins);
static int pipes[2] = {-1, -1}; /* of stdout and stderr, to read from */

bool slw_rpc_output_is_on(void) { return the_link != NULL; }
void slw_rpc_output_lock(void) { (void)pthread_mutex_lock(&lock); }
void slw_rpc_output_unlock(void) { (void)pthread_mutex_unlock(&lock); }

/* OUTPUT: u32 stream, u32 size, text. False when there is nothing to send now. */
static bool send_piece(uint32_t stream) {
  uint8_t frame[SLW_RPC_HEADER_BYTES + 8u + PIECE_BYTES + 8u];
  uint8_t *text = frame + SLW_RPC_HEADER_BYTES + 8u;
  ssize_t count = read(pipes[stream - 1u], text, PIECE_BYTES);
  slw_rpc_header header;
  slw_rpc_span span;
  uint32_t size;
  if (count <= 0) {
    return false;
  }
  size = (uint32_t)count;
  memset(text + size, 0, 8);
  memcpy(frame + SLW_RPC_HEADER_BYTES, &stream, 4);
  memcpy(frame + SLW_RPC_HEADER_BYTES + 4, &size, 4);
  memset(&header, 0, sizeof header);
  header.size = (uint32_t)(8u + slw_rpc_padded(size));
  header.code = SLW_RPC_OUTPUT;
  slw_rpc_header_put(frame, &header);
  span.data = frame;
  span.size = SLW_RPC_HEADER_BYTES + header.size;
  (void)the_link->write(the_link->context, &span, 1);
  return true;
}

static void *forward(void *unused) {
  struct pollfd fds[2] = {{pipes[0], POLLIN, 0}, {pipes[1], POLLIN, 0}};
  (void)unused;
  for (;;) {
    uint32_t i;
    if (poll(fds, 2, -1) < 0 && errno != EINTR) {
      return NULL;
    }
    slw_rpc_output_lock();
    for (i = 0; i < 2u; ++i) {
      if ((fds[i].revents & POLLIN) != 0) {
        (void)send_piece(i + 1u);
      }
    }
    slw_rpc_output_unlock();
    if (((fds[0].revents | fds[1].revents) & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
      return NULL;
    }
  }
}

void slw_rpc_output_flush(void) {
  (void)fflush(NULL);
  if (flush_more != NULL) {
    flush_more(0);
  }
  slw_rpc_output_lock();
  while (send_piece(1) || send_piece(2)) {
  }
  slw_rpc_output_unlock();
}

bool slw_rpc_output_start(const slw_rpc_transport *link, void (*flush)(int begins)) {
  pthread_t thread;
  int i;
  for (i = 0; i < 2; ++i) {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], i + 1) < 0) {
      return false;
    }
    (void)close(ends[1]);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    pipes[i] = ends[0];
  }
  the_link = link;
  flush_more = flush;
  if (flush != NULL) {
    flush(1);
  }
  if (pthread_create(&thread, NULL, forward, NULL) != 0) {
    the_link = NULL;
    return false;
  }
  return pthread_detach(thread) == 0;
}
