/* SPDX-License-Identifier: Apache-2.0
 * Sessions over a serial line: a process of its own turns packets into connections for the
 * supervisor, one after the other, so that a crash is told and a deadline kept as on a network.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "rpc_server_internal.h"
#include "slipway/serial_link.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#define PIECE_BYTES 16384u
#define REOPEN_S 1u

typedef struct {
  int fd;
  uint8_t in[4096];
  size_t in_at, in_end;
  uint8_t out[4096];
  size_t out_size;
} serial_line;

static serial_line line;
static slw_serial_link the_link;

static speed_t speed_of(uint32_t baud) {
  static const struct {
    uint32_t baud;
    speed_t speed;
  } known[] = {
      {9600, B9600},     {19200, B19200},   {38400, B38400}, {57600, B57600},
      {115200, B115200}, {230400, B230400},
#if defined(B460800) && defined(B921600)
      {460800, B460800}, {921600, B921600},
#endif
  };
  size_t i;
  for (i = 0; i < sizeof known / sizeof known[0]; ++i) {
    if (known[i].baud == baud) {
      return known[i].speed;
    }
  }
  return B0;
}

/* A line without echo, control characters or flow control; -1 and errno on failure. */
static int open_line(const char *path, uint32_t baud) {
  struct termios settings;
  int fd;
  if (speed_of(baud) == B0) {
    errno = EINVAL;
    return -1;
  }
  fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return -1;
  }
  if (tcgetattr(fd, &settings) == 0) {
    settings.c_iflag = 0;
    settings.c_oflag = 0;
    settings.c_lflag = 0;
    settings.c_cflag = CS8 | CREAD | CLOCAL;
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    if (cfsetispeed(&settings, speed_of(baud)) == 0 &&
        cfsetospeed(&settings, speed_of(baud)) == 0 && tcsetattr(fd, TCSANOW, &settings) == 0) {
      return fd;
    }
  }
  (void)close(fd);
  return -1;
}

/* The line is gone: nothing that waits for it can go on. Whoever started this process, does. */
static _Noreturn void hang_up(void) { _exit(1); }

static void wait_line(short events) {
  struct pollfd poller = {line.fd, events, 0};
  if (poll(&poller, 1, -1) < 0 && errno != EINTR) {
    hang_up();
  }
}

static void flush_line(void) {
  size_t done = 0;
  while (done < line.out_size) {
    ssize_t count = write(line.fd, line.out + done, line.out_size - done);
    if (count > 0) {
      done += (size_t)count;
    } else if (count < 0 && errno == EAGAIN) {
      wait_line(POLLOUT);
    } else if (count == 0 || errno != EINTR) {
      hang_up();
    }
  }
  line.out_size = 0;
}

static void put_byte(void *context, uint8_t byte) {
  (void)context;
  line.out[line.out_size++] = byte;
  if (line.out_size == sizeof line.out) {
    flush_line();
  }
}

static int get_byte(void *context) {
  (void)context;
  while (line.in_at == line.in_end) {
    ssize_t count;
    flush_line(); /* what asks for what is waited for */
    count = read(line.fd, line.in, sizeof line.in);
    line.in_at = 0;
    line.in_end = count > 0 ? (size_t)count : 0u;
    if (count < 0 && errno == EAGAIN) {
      wait_line(POLLIN);
    } else if (count == 0 || (count < 0 && errno != EINTR)) {
      hang_up();
    }
  }
  return line.in[line.in_at++];
}

/* The received packet's rest to the session; false when that has ended. */
static bool pass_in(int session, bool *is_full) {
  *is_full = false;
  while (slw_serial_link_ready(&the_link) > 0u) {
    size_t size = 0;
    const uint8_t *data = slw_serial_link_peek(&the_link, &size);
    ssize_t count = send(session, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      *is_full = true;
      return true;
    }
    if (count <= 0 && errno != EINTR) {
      return false;
    }
    slw_serial_link_skip(&the_link, count > 0 ? (size_t)count : 0u);
  }
  return true;
}

/* What the session sent, to the line; false when it has ended. */
static bool pass_out(int session) {
  static uint8_t piece[PIECE_BYTES];
  slw_rpc_transport transport = slw_serial_link_transport(&the_link);
  slw_rpc_span span;
  ssize_t count = recv(session, piece, sizeof piece, MSG_DONTWAIT);
  if (count < 0) {
    return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
  }
  span.data = piece;
  span.size = (size_t)count;
  return count > 0 && transport.write(transport.context, &span, 1) == 0;
}

/* Carry one session's bytes until either side ends. */
static void carry(int session) {
  bool is_full = false;
  while (the_link.is_open) {
    struct pollfd pollers[2];
    bool has_bytes = line.in_at < line.in_end;
    flush_line();
    pollers[0].fd = is_full ? -1 : line.fd;
    pollers[0].events = POLLIN;
    pollers[0].revents = 0;
    pollers[1].fd = session;
    pollers[1].events = is_full ? POLLIN | POLLOUT : POLLIN;
    pollers[1].revents = 0;
    if (poll(pollers, 2, has_bytes && !is_full ? 0 : -1) < 0 && errno != EINTR) {
      return;
    }
    if ((pollers[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !pass_out(session)) {
      return;
    }
    /* While an ACK was waited for, a packet may have come: there is room for one. */
    if ((has_bytes || pollers[0].revents != 0) && the_link.is_open &&
        slw_serial_link_ready(&the_link) == 0u) {
      slw_serial_link_step(&the_link);
    }
    if (!pass_in(session, &is_full)) {
      return;
    }
  }
}

static void serve_one(int channel, uint32_t needs_token) {
  slw_rpc_order order;
  int ends[2];
  slw_serial_link_accept(&the_link);
  flush_line();
  memset(&order, 0, sizeof order);
  order.kind = SLW_RPC_ORDER_ADOPT;
  order.needs_token = needs_token;
  (void)snprintf(order.text, sizeof order.text, "the serial line");
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    hang_up();
  }
  if (slw_rpc_channel_send(channel, &order, ends[1])) {
    (void)close(ends[1]);
    carry(ends[0]);
  } else {
    (void)close(ends[1]);
  }
  (void)close(ends[0]);
  slw_serial_link_close(&the_link);
  flush_line();
}

static _Noreturn void serve_line(int channel, uint32_t needs_token) {
  const slw_serial_port port = {NULL, get_byte, put_byte};
  slw_serial_link_init(&the_link, &port);
  for (;;) {
    serve_one(channel, needs_token);
  }
}

/* A line that hangs up (a plug is pulled) is opened again, until it is there. */
static _Noreturn void keep_line(int channel, const slw_rpc_server_config *config, pid_t supervisor,
                                const char *path, uint32_t baud) {
  for (;;) {
    pid_t self = getpid();
    pid_t child;
    int status;
    line.fd = open_line(path, baud);
    if (line.fd >= 0) {
      child = fork();
      if (child == 0) {
        slw_rpc_die_with(self);
        serve_line(channel, config->always_needs_token);
      }
      (void)close(line.fd);
      while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
    }
    if (getppid() != supervisor) {
      _exit(1);
    }
    (void)sleep(REOPEN_S);
  }
}

bool slw_rpc_server_serial(slw_rpc_server_config *config, const char *path, uint32_t baud) {
  pid_t supervisor = getpid();
  int ends[2];
  int probe = open_line(path, baud);
  pid_t keeper;
  if (probe < 0) {
    return false;
  }
  (void)close(probe);
  if (!slw_rpc_channel_open(ends)) {
    return false;
  }
  keeper = fork();
  if (keeper == 0) {
    slw_rpc_die_with(supervisor);
    (void)close(ends[0]);
    keep_line(ends[1], config, supervisor, path, baud);
  }
  (void)close(ends[1]);
  config->listen_fd = -1;
  config->adopt_fd = ends[0];
  return keeper > 0;
}
