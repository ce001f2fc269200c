/* SPDX-License-Identifier: Apache-2.0
 * A device's connection to its tracker, in a process of its own that may block.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../src/rpc_auth.h"
#include "rpc_server_internal.h"
#include "slipway/platform.h"

#define STEP_TIMEOUT_S 10
#define HEARTBEAT_MS 3000
#define UNUSED_LEASE_NS ((uint64_t)15 * 1000000000u) /* the client never came */
#define HANG_NS ((uint64_t)8 * 1000000000u)
#define FIRST_WAIT_MS 200u
#define LONGEST_WAIT_MS 10000u
#define LOST_MS 20000u

typedef struct tracker {
  const slw_rpc_server_config *config;
  slw_rpc_lease *lease;
  slw_rpc_transport link;
  int fd;
  int channel; /* to the supervisor */
  uint64_t assigned_ns;
  uint32_t iterations;  /* of the supervisor's loop, when it was looked at last ... */
  uint64_t iterated_ns; /* ... and when that number changed */
  uint32_t next_id;
  slw_rpc_header header;
  uint8_t payload[SLW_RPC_HELLO_MAX_BYTES];
} tracker;

bool slw_rpc_lease_change(slw_rpc_lease *lease, uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&lease->state, &from, to, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

static uint32_t state_of(const slw_rpc_lease *lease) {
  return __atomic_load_n(&lease->state, __ATOMIC_SEQ_CST);
}

static void say(const tracker *self, const char *text) {
  char line[800];
  (void)snprintf(line, sizeof line, "tracker %s:%u: %s", self->config->tracker_host,
                 self->config->tracker_port, text);
  slw_rpc_log(self->config, "tracker", "", "", line);
}

/* Whether the supervisor has done anything within the last seconds: one that hangs takes no
 * session, so that the tracker must not hand the device out. */
static bool supervisor_lives(tracker *self) {
  uint32_t iterations = __atomic_load_n(&self->lease->iterations, __ATOMIC_SEQ_CST);
  uint64_t now = slw_time_ns();
  if (iterations != self->iterations || self->iterated_ns == 0u) {
    self->iterations = iterations;
    self->iterated_ns = now;
  }
  return now - self->iterated_ns < HANG_NS;
}

static bool send_frame(tracker *self, uint16_t code, uint32_t id, slw_rpc_writer *payload) {
  uint8_t head[SLW_RPC_HEADER_BYTES];
  slw_rpc_header header = {0};
  slw_rpc_span spans[2];
  slw_rpc_put_padding(payload);
  header.size = (uint32_t)payload->at;
  header.code = code;
  header.id = id;
  slw_rpc_header_put(head, &header);
  spans[0].data = head;
  spans[0].size = sizeof head;
  spans[1].data = payload->base;
  spans[1].size = payload->at;
  return payload->ok && self->link.write(self->link.context, spans, payload->at > 0u ? 2 : 1) == 0;
}

static bool receive_frame(tracker *self) {
  uint8_t head[SLW_RPC_HEADER_BYTES];
  if (self->link.read(self->link.context, head, sizeof head, sizeof head) <= 0) {
    return false;
  }
  slw_rpc_header_get(head, &self->header);
  return self->header.size <= sizeof self->payload && self->header.size % 8u == 0u &&
         self->header.flags == 0u && self->header.channel == 0u &&
         (self->header.size == 0u || self->link.read(self->link.context, self->payload,
                                                     self->header.size, self->header.size) > 0);
}

static int connect_unix(const char *path) {
  struct sockaddr_un address;
  int fd;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) {
    return -1;
  }
  memcpy(address.sun_path, path, strlen(path));
  fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd >= 0 && connect(fd, (const struct sockaddr *)(const void *)&address, sizeof address) != 0) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

static int connect_to(const slw_rpc_server_config *config) {
  struct addrinfo hints;
  struct addrinfo *found = NULL;
  const struct addrinfo *one;
  struct timeval limit = {STEP_TIMEOUT_S, 0};
  char port[16];
  int no_delay = 1;
#if defined(TCP_USER_TIMEOUT)
  unsigned lost_ms = LOST_MS;
#endif
  int fd = -1;
  if (strncmp(config->tracker_host, "unix:", 5) == 0) {
    return connect_unix(config->tracker_host + 5);
  }
  memset(&hints, 0, sizeof hints);
  hints.ai_socktype = SOCK_STREAM;
  (void)snprintf(port, sizeof port, "%u", config->tracker_port);
  if (getaddrinfo(config->tracker_host, port, &hints, &found) != 0) {
    return -1;
  }
  for (one = found; one != NULL && fd < 0; one = one->ai_next) {
    fd = socket(one->ai_family, one->ai_socktype, one->ai_protocol);
    if (fd >= 0) {
      (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
#if defined(TCP_USER_TIMEOUT)
      /* Heartbeats that nobody acknowledges end the connection: a network that went away. */
      (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost_ms, sizeof lost_ms);
#endif
      if (connect(fd, one->ai_addr, one->ai_addrlen) != 0) {
        (void)close(fd);
        fd = -1;
      }
    }
  }
  freeaddrinfo(found);
  return fd;
}

/* Whether something to read comes within the time; false also when the link is gone. */
static bool readable(const tracker *self, int timeout_ms) {
  struct pollfd poller = {self->fd, POLLIN, 0};
  return poll(&poller, 1, timeout_ms) > 0;
}

static bool expect(tracker *self, uint16_t code) {
  char text[600];
  if (!readable(self, STEP_TIMEOUT_S * 1000) || !receive_frame(self)) {
    say(self, "gave no answer");
    return false;
  }
  if (self->header.code == SLW_RPC_ERROR && self->header.size > 16u) {
    uint32_t kind_size;
    memcpy(&kind_size, self->payload + 4, 4);
    if (kind_size < 64u && 17u + kind_size < self->header.size) {
      self->payload[self->header.size - 1u] = 0;
      (void)snprintf(text, sizeof text, "refused: %s", self->payload + 17u + kind_size);
      say(self, text);
    }
    return false;
  }
  return self->header.code == code;
}

static bool greet(tracker *self, uint32_t role, const char *key) {
  const slw_rpc_server_config *config = self->config;
  char name[SLW_RPC_NAME_MAX_BYTES + 1u];
  char machine[65] = "";
  uint8_t buffer[SLW_RPC_HELLO_MAX_BYTES];
  uint8_t nonce[SLW_RPC_NONCE_BYTES];
  uint8_t mac[SLW_RPC_MAC_BYTES];
  slw_rpc_hooks hooks;
  slw_rpc_writer hello = slw_rpc_writer_on(buffer, sizeof buffer);
  (void)gethostname(machine, sizeof machine - 1u);
  (void)snprintf(name, sizeof name, "%s, %s", config->description, machine);
  slw_rpc_put_bytes(&hello, SLW_RPC_MAGIC, SLW_RPC_MAGIC_BYTES);
  slw_rpc_put_u16(&hello, SLW_RPC_VERSION_MIN);
  slw_rpc_put_u16(&hello, SLW_RPC_VERSION_MAX);
  slw_rpc_put_u32(&hello, role);
  slw_rpc_put_u64(&hello, config->token_size > 0u ? SLW_RPC_FEATURE_PROOF : 0u);
  slw_rpc_put_u32(&hello, SLW_RPC_HELLO_MAX_BYTES);
  slw_rpc_put_u32(&hello, 0);
  slw_rpc_put_u16(&hello, (uint16_t)strlen(key));
  slw_rpc_put_u16(&hello, (uint16_t)strlen(name));
  slw_rpc_put_u32(&hello, 0);
  slw_rpc_put_bytes(&hello, key, strlen(key) + 1u);
  slw_rpc_put_bytes(&hello, name, strlen(name) + 1u);
  if (!send_frame(self, SLW_RPC_HELLO, 1, &hello) || !readable(self, STEP_TIMEOUT_S * 1000) ||
      !receive_frame(self)) {
    return false;
  }
  if (self->header.code == SLW_RPC_WELCOME && config->token_size > 0u) {
    say(self, "does not prove that it has the token that is set here; start it with the same one");
    return false;
  }
  if (self->header.code == SLW_RPC_CHALLENGE && self->header.size >= SLW_RPC_NONCE_BYTES) {
    slw_rpc_host_hooks(&hooks, config);
    if (config->token_size == 0u || hooks.random(NULL, nonce, sizeof nonce) != 0) {
      say(self, "asks for its token, and none is set here (SLIPWAY_RPC_TOKEN, --token-file)");
      return false;
    }
    slw_rpc_mac(config->token, (size_t)config->token_size, "slipway rpc 1 client", self->payload,
                nonce, mac);
    hello = slw_rpc_writer_on(buffer, sizeof buffer);
    slw_rpc_put_bytes(&hello, nonce, sizeof nonce);
    slw_rpc_put_bytes(&hello, mac, sizeof mac);
    slw_rpc_mac(config->token, (size_t)config->token_size, "slipway rpc 1 server", nonce,
                self->payload, mac);
    if (!send_frame(self, SLW_RPC_AUTHENTICATE, 1, &hello) || !expect(self, SLW_RPC_WELCOME)) {
      return false;
    }
    if (self->header.size < 64u || !slw_rpc_mac_equal(mac, self->payload + 32)) {
      say(self, "could not prove that it has the token itself");
      return false;
    }
  }
  return self->header.code == SLW_RPC_WELCOME;
}

/* REGISTER: u32 port, u32 busy, u32 lease_size, u32 address_size, lease, NUL, address, NUL. */
static bool register_device(tracker *self) {
  const slw_rpc_server_config *config = self->config;
  uint8_t buffer[SLW_RPC_HELLO_MAX_BYTES];
  slw_rpc_writer payload = slw_rpc_writer_on(buffer, sizeof buffer);
  bool busy;
  if (slw_rpc_lease_change(self->lease, SLW_RPC_LEASE_OVER, SLW_RPC_LEASE_NONE) ||
      slw_rpc_lease_change(self->lease, SLW_RPC_LEASE_ASSIGNED, SLW_RPC_LEASE_NONE)) {
    self->lease->text[0] = '\0'; /* of a connection that is gone */
  }
  busy = state_of(self->lease) == SLW_RPC_LEASE_USED;
  slw_rpc_put_u32(&payload, config->own_port);
  slw_rpc_put_u32(&payload, busy ? 1u : 0u);
  slw_rpc_put_u32(&payload, (uint32_t)strlen(self->lease->text));
  slw_rpc_put_u32(&payload, (uint32_t)strlen(config->custom_address));
  slw_rpc_put_bytes(&payload, self->lease->text, strlen(self->lease->text) + 1u);
  slw_rpc_put_bytes(&payload, config->custom_address, strlen(config->custom_address) + 1u);
  return send_frame(self, SLW_RPC_REGISTER, 2, &payload) && expect(self, SLW_RPC_RETURN);
}

/* IDLE: u32 size, u32 reason_size, lease, NUL, reason, NUL: the device is free again. */
static bool send_idle(tracker *self) {
  uint8_t buffer[SLW_RPC_HELLO_MAX_BYTES];
  slw_rpc_writer payload = slw_rpc_writer_on(buffer, sizeof buffer);
  slw_rpc_put_u32(&payload, (uint32_t)strlen(self->lease->text));
  slw_rpc_put_u32(&payload, (uint32_t)strlen(self->lease->reason));
  slw_rpc_put_bytes(&payload, self->lease->text, strlen(self->lease->text) + 1u);
  slw_rpc_put_bytes(&payload, self->lease->reason, strlen(self->lease->reason) + 1u);
  self->lease->text[0] = '\0';
  self->lease->reason[0] = '\0';
  return send_frame(self, SLW_RPC_IDLE, 0, &payload);
}

/* ASSIGN: u32 size, u32 0, lease, NUL. Answered with RETURN; with ERROR while a session runs. */
static bool take_lease(tracker *self) {
  slw_rpc_reader reader = slw_rpc_reader_on(self->payload, self->header.size);
  uint8_t buffer[16];
  slw_rpc_writer nothing = slw_rpc_writer_on(buffer, sizeof buffer);
  uint32_t size = slw_rpc_get_u32(&reader);
  uint32_t reserved = slw_rpc_get_u32(&reader);
  const char *text = slw_rpc_get_name(&reader, size);
  (void)reserved;
  if (text == NULL || size != SLW_RPC_LEASE_BYTES || state_of(self->lease) != SLW_RPC_LEASE_NONE) {
    slw_rpc_write_error(self->fd, self->header.id, SLW_RPC_FAIL_BUSY, "the device is in use");
    return true;
  }
  memcpy(self->lease->text, text, (size_t)size + 1u);
  self->assigned_ns = slw_time_ns();
  (void)slw_rpc_lease_change(self->lease, SLW_RPC_LEASE_NONE, SLW_RPC_LEASE_ASSIGNED);
  return send_frame(self, SLW_RPC_RETURN, self->header.id, &nothing);
}

/* OPEN: u32 size, u32 0, ticket, NUL. A client waits at the proxy: connect to it once more, show
 * the ticket, and let the supervisor serve who is then at the other end. */
static void bring_connection(tracker *self) {
  static tracker carrier;
  slw_rpc_reader reader = slw_rpc_reader_on(self->payload, self->header.size);
  slw_rpc_order order;
  struct sockaddr_storage address;
  socklen_t address_size = sizeof address;
  uint32_t size = slw_rpc_get_u32(&reader);
  uint32_t reserved = slw_rpc_get_u32(&reader);
  const char *ticket = slw_rpc_get_name(&reader, size);
  (void)reserved;
  carrier = *self;
  carrier.fd = ticket != NULL ? connect_to(self->config) : -1;
  carrier.link = slw_rpc_fd_transport(carrier.fd);
  memset(&order, 0, sizeof order);
  memset(&address, 0, sizeof address);
  if (carrier.fd < 0) {
    say(self, "cannot be reached for a session");
    return;
  }
  if (greet(&carrier, SLW_RPC_ROLE_CARRIER, ticket)) {
    (void)getpeername(carrier.fd, (struct sockaddr *)(void *)&address, &address_size);
    order.kind = SLW_RPC_ORDER_ADOPT;
    order.needs_token =
        self->config->proxied_needs_token != 0u || !slw_rpc_is_local(&address) ? 1u : 0u;
    (void)snprintf(order.text, sizeof order.text, "a client through the proxy");
    (void)slw_rpc_channel_send(self->channel, &order, carrier.fd);
  }
  (void)close(carrier.fd);
}

/* REVOKE: u32 size, u32 reason_size, lease, NUL, reason, NUL: the session of the lease shall
 * end; IDLE says when it has. */
static void end_session(tracker *self) {
  slw_rpc_reader reader = slw_rpc_reader_on(self->payload, self->header.size);
  slw_rpc_order order;
  uint32_t size = slw_rpc_get_u32(&reader);
  uint32_t reason_size = slw_rpc_get_u32(&reader);
  const char *lease = slw_rpc_get_name(&reader, size);
  const char *reason = slw_rpc_get_name(&reader, reason_size);
  if (reason == NULL || strcmp(lease, self->lease->text) != 0) {
    return; /* that session is over */
  }
  memset(&order, 0, sizeof order);
  order.kind = SLW_RPC_ORDER_REVOKE;
  (void)snprintf(order.text, sizeof order.text, "%s",
                 reason[0] != '\0' ? reason : "the tracker ended the session");
  (void)slw_rpc_lease_change(self->lease, SLW_RPC_LEASE_ASSIGNED, SLW_RPC_LEASE_OVER);
  (void)slw_rpc_channel_send(self->channel, &order, -1);
}

static bool obey(tracker *self) {
  switch (self->header.code) {
    case SLW_RPC_ASSIGN:
      return take_lease(self);
    case SLW_RPC_OPEN:
      bring_connection(self);
      return true;
    case SLW_RPC_REVOKE:
      end_session(self);
      return true;
    default:
      return true;
  }
}

static bool serve(tracker *self) {
  struct pollfd fds[2];
  uint8_t buffer[64];
  slw_rpc_writer nothing = slw_rpc_writer_on(buffer, sizeof buffer);
  fds[0].fd = self->fd;
  fds[0].events = POLLIN;
  fds[1].fd = self->channel;
  fds[1].events = POLLIN;
  fds[0].revents = 0;
  fds[1].revents = 0;
  if (poll(fds, 2, HEARTBEAT_MS) == 0 && !send_frame(self, SLW_RPC_HEARTBEAT, 0, &nothing)) {
    return false;
  }
  if ((fds[1].revents & POLLIN) != 0) {
    slw_rpc_order order;
    int fd;
    while (slw_rpc_channel_receive(self->channel, &order, &fd)) {
      /* It only had to wake this process. */
    }
  }
  if (state_of(self->lease) == SLW_RPC_LEASE_ASSIGNED &&
      slw_time_ns() - self->assigned_ns > UNUSED_LEASE_NS) {
    (void)slw_rpc_lease_change(self->lease, SLW_RPC_LEASE_ASSIGNED, SLW_RPC_LEASE_OVER);
  }
  if (slw_rpc_lease_change(self->lease, SLW_RPC_LEASE_OVER, SLW_RPC_LEASE_NONE) &&
      !send_idle(self)) {
    return false;
  }
  if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    return receive_frame(self) && obey(self);
  }
  if (!supervisor_lives(self)) {
    say(self, "this device's server hangs; no session can be served until it goes on");
    return false;
  }
  return true;
}

_Noreturn void slw_rpc_registrar_run(const slw_rpc_server_config *config, slw_rpc_lease *lease,
                                     int channel) {
  static tracker self;
  uint32_t wait_ms = FIRST_WAIT_MS;
  bool told = false;
  self.config = config;
  self.lease = lease;
  self.channel = channel;
  for (;;) {
    while (!supervisor_lives(&self)) {
      slw_platform_sleep_ms(FIRST_WAIT_MS);
    }
    self.fd = connect_to(config);
    self.link = slw_rpc_fd_transport(self.fd);
    if (self.fd < 0 && !told) {
      say(&self, "cannot be reached; trying again until it can");
      told = true;
    }
    if (self.fd >= 0 && greet(&self, SLW_RPC_ROLE_DEVICE, config->key) && register_device(&self)) {
      say(&self, "registered");
      wait_ms = FIRST_WAIT_MS;
      told = false;
      while (serve(&self)) {
      }
      say(&self, "connection lost");
    }
    if (self.fd >= 0) {
      (void)close(self.fd);
    }
    slw_platform_sleep_ms(wait_ms);
    wait_ms = wait_ms * 2u < LONGEST_WAIT_MS ? wait_ms * 2u : LONGEST_WAIT_MS;
  }
}
