/* SPDX-License-Identifier: Apache-2.0
 * The static device server: copy this one file to a Linux machine and run it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "slipway/rpc_server.h"

#ifndef SLIPWAY_VERSION
#define SLIPWAY_VERSION "0.1.0"
#endif

static const char USAGE[] =
    "usage: slipway-server [options]\n"
    "Runs compiled models that a Slipway client uploads.\n"
    "  --stdio                serve one session over standard input and output\n"
    "  --serial PATH          serve a serial line, one session after the other\n"
    "  --baud N               its rate (default 115200)\n"
    "  --host ADDRESS         listen on this address (default 127.0.0.1)\n"
    "  --port N               first port to try (default 9090)\n"
    "  --port-end N           try ports up to this one (default: port + 100)\n"
    "  --key NAME             the kind of device this is\n"
    "  --tracker HOST:PORT    register there, and serve only those whom it sends\n"
    "  --through-proxy        --host and --port are those of a proxy: dial out to it\n"
    "  --custom-addr ADDRESS  what the tracker tells clients to connect to\n"
    "  --token-file FILE      file with the token that clients from other machines must have\n"
    "                         (or the environment variable SLIPWAY_RPC_TOKEN)\n"
    "  --require-token        ask clients from this machine for the token, too\n"
    "  --max-sessions N       at one time (default 16)\n"
    "  --session-timeout S    longest session in seconds (default: no limit)\n"
    "  --max-upload MIB       largest file (default: what the disk takes)\n"
    "  --max-memory MIB       memory that one session may use (default: what the system has)\n"
    "  --max-files N          open files of one session, 32 or more (default: what the system has)\n"
    "  --max-handles N        live objects of one session (default 65536)\n"
    "  --max-cpu S            processor time of one session in seconds (default: no limit)\n"
    "  --log-json             write the log as JSON lines\n"
    "  --version\n";

typedef struct options {
  const char *host;
  unsigned long port, port_end;
  slw_rpc_server_config server;
  char token[4096];
  char tracker[256];
  bool through_proxy;
  bool stdio;
  const char *serial;
  uint32_t baud;
} options;

static _Noreturn void fail(const char *what, const char *detail) {
  (void)fprintf(stderr, "slipway-server: %s%s%s\n", what, detail[0] != '\0' ? ": " : "", detail);
  exit(2);
}

static unsigned long number(const char *option, const char *text, unsigned long max) {
  char *end = NULL;
  unsigned long value;
  errno = 0;
  value = strtoul(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value > max || text[0] == '-') {
    (void)fprintf(stderr, "slipway-server: %s needs a number up to %lu, not '%s'\n", option, max,
                  text);
    exit(2);
  }
  return value;
}

static void set_token(options *all, const char *text, size_t size) {
  while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r')) {
    --size;
  }
  if (size == 0 || size > sizeof all->token) {
    fail("the token is empty or longer than 4096 bytes", "");
  }
  memmove(all->token, text, size);
  all->server.token = (const uint8_t *)all->token;
  all->server.token_size = size;
}

static void read_token(options *all, const char *path) {
  char text[sizeof all->token];
  FILE *file = fopen(path, "re");
  size_t size;
  if (file == NULL) {
    fail(path, strerror(errno));
  }
  size = fread(text, 1, sizeof text, file);
  (void)fclose(file);
  set_token(all, text, size);
}

static void set_tracker(options *all, const char *text) {
  const char *colon = strrchr(text, ':');
  if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof all->tracker) {
    fail("--tracker needs HOST:PORT, not", text);
  }
  (void)snprintf(all->tracker, sizeof all->tracker, "%.*s", (int)(colon - text), text);
  all->server.tracker_host = all->tracker;
  all->server.tracker_port = (uint32_t)number("--tracker", colon + 1, 65535);
}

static int ends_like_lease(const char *key) {
  size_t size = strlen(key);
  return size > SLW_RPC_LEASE_BYTES && key[size - SLW_RPC_LEASE_BYTES - 1] == ':' &&
         strspn(key + size - SLW_RPC_LEASE_BYTES, "0123456789abcdef") == SLW_RPC_LEASE_BYTES;
}

static void parse(options *all, int argc, char **argv) {
  slw_rpc_server_config *server = &all->server;
  int i;
  for (i = 1; i < argc; ++i) {
    const char *equals = strchr(argv[i], '=');
    size_t size = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
    const char *value;
    char name[32];
    (void)snprintf(name, sizeof name, "%.*s", (int)size, argv[i]);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
      (void)fputs(USAGE, stdout);
      exit(0);
    }
    if (strcmp(name, "--version") == 0) {
      (void)puts("slipway-server " SLIPWAY_VERSION);
      exit(0);
    }
    if (strcmp(name, "--require-token") == 0) {
      server->always_needs_token = 1;
      continue;
    }
    if (strcmp(name, "--stdio") == 0) {
      all->stdio = true;
      continue;
    }
    if (strcmp(name, "--log-json") == 0) {
      server->log_json = 1;
      continue;
    }
    if (strcmp(name, "--through-proxy") == 0) {
      all->through_proxy = true;
      continue;
    }
    value = equals != NULL ? equals + 1 : (i + 1 < argc ? argv[++i] : NULL);
    if (value == NULL) {
      fail(name, "needs a value (see --help)");
    }
    if (strcmp(name, "--serial") == 0) {
      all->serial = value;
    } else if (strcmp(name, "--baud") == 0) {
      all->baud = (uint32_t)number(name, value, 4000000);
    } else if (strcmp(name, "--host") == 0) {
      all->host = value;
    } else if (strcmp(name, "--port") == 0) {
      all->port = number(name, value, 65535);
    } else if (strcmp(name, "--port-end") == 0) {
      all->port_end = number(name, value, 65535);
    } else if (strcmp(name, "--key") == 0) {
      server->key = value;
    } else if (strcmp(name, "--tracker") == 0) {
      set_tracker(all, value);
    } else if (strcmp(name, "--custom-addr") == 0) {
      server->custom_address = value;
    } else if (strcmp(name, "--token-file") == 0) {
      read_token(all, value);
    } else if (strcmp(name, "--max-sessions") == 0) {
      server->max_sessions = (uint32_t)number(name, value, 64);
    } else if (strcmp(name, "--session-timeout") == 0) {
      server->session_timeout_ms = (uint32_t)number(name, value, 4000000) * 1000u;
    } else if (strcmp(name, "--max-upload") == 0) {
      server->max_upload_bytes = (uint64_t)number(name, value, 1u << 30) << 20;
    } else if (strcmp(name, "--max-memory") == 0) {
      server->max_memory_bytes = (uint64_t)number(name, value, 1u << 30) << 20;
    } else if (strcmp(name, "--max-files") == 0) {
      server->max_files = (uint32_t)number(name, value, 1u << 20);
    } else if (strcmp(name, "--max-handles") == 0) {
      server->max_handles = (uint32_t)number(name, value, 1u << 24);
    } else if (strcmp(name, "--max-cpu") == 0) {
      server->max_cpu_s = (uint32_t)number(name, value, 1u << 30);
    } else {
      fail("unknown option", name);
    }
  }
  if (strlen(server->key) > SLW_RPC_KEY_MAX_BYTES) {
    fail("the key is too long; it may have 160 bytes", "");
  }
  if (!slw_rpc_is_printable(server->key)) {
    fail("the key is to be printable UTF-8", "");
  }
  if (ends_like_lease(server->key)) {
    fail("the key is not to end like the lease of a device: ':' and 32 hexadecimal digits", "");
  }
  if (all->serial != NULL && (server->tracker_host != NULL || all->through_proxy || all->stdio)) {
    fail("--serial excludes --tracker, --through-proxy and --stdio", "");
  }
  if (all->through_proxy && server->tracker_host != NULL) {
    fail("--through-proxy and --tracker exclude each other", "give --tracker to the proxy");
  }
  if (all->through_proxy) {
    server->tracker_host = all->host;
    server->tracker_port = (uint32_t)all->port;
  }
  if (server->tracker_host != NULL && server->key[0] == '\0') {
    fail("--tracker and --through-proxy need --key, the kind of device this is", "");
  }
  if (strlen(server->custom_address) > SLW_RPC_NAME_MAX_BYTES) {
    fail("the address is too long", server->custom_address);
  }
}

/* Bind the first free port from `port` to `port_end`; 0 asks the system for one. */
static int listen_on(const options *all, unsigned *bound) {
  struct addrinfo hints;
  struct addrinfo *found = NULL;
  unsigned long port;
  int last_error = EADDRINUSE;
  memset(&hints, 0, sizeof hints);
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  for (port = all->port; port <= all->port_end; ++port) {
    char service[16];
    int fd;
    int one = 1;
    (void)snprintf(service, sizeof service, "%lu", port);
    if (getaddrinfo(all->host, service, &hints, &found) != 0 || found == NULL) {
      fail("cannot resolve the address", all->host);
    }
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      fail("cannot make a socket", strerror(errno));
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 64) == 0) {
      struct sockaddr_storage address;
      socklen_t size = sizeof address;
      char name[16] = "";
      (void)getsockname(fd, (struct sockaddr *)(void *)&address, &size);
      (void)getnameinfo((struct sockaddr *)(void *)&address, size, NULL, 0, name, sizeof name,
                        NI_NUMERICSERV);
      *bound = (unsigned)strtoul(name, NULL, 10);
      freeaddrinfo(found);
      return fd;
    }
    last_error = errno;
    freeaddrinfo(found);
    (void)close(fd);
    if (last_error != EADDRINUSE) {
      break;
    }
  }
  fail("cannot listen", strerror(last_error));
}

static bool is_loopback(const char *host) {
  return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 ||
         strcmp(host, "::1") == 0;
}

int main(int argc, char **argv) {
  static options all;
  static char description[256];
  const char *token = getenv("SLIPWAY_RPC_TOKEN");
  struct utsname machine;
  unsigned port = 0;
  all.host = "127.0.0.1";
  all.port = 9090;
  all.baud = 115200;
  all.server.key = "";
  all.server.custom_address = "";
  all.server.watch_fd = -1;
  all.server.adopt_fd = -1;
  all.server.max_sessions = 16;
  all.server.max_handles = 65536;
  all.server.greeting_timeout_ms = 10000;
  if (token != NULL && token[0] != '\0') {
    set_token(&all, token, strlen(token));
    (void)unsetenv("SLIPWAY_RPC_TOKEN"); /* uploaded code has no business with it */
  }
  parse(&all, argc, argv);
  if (all.port_end < all.port) {
    all.port_end = all.port == 0 ? 0 : (all.port > 65435u ? 65535u : all.port + 100u);
  }
  memset(&machine, 0, sizeof machine);
  (void)uname(&machine);
  (void)snprintf(description, sizeof description, "slipway-server %s on %s %s", SLIPWAY_VERSION,
                 machine.sysname, machine.machine);
  all.server.description = description;
  (void)signal(SIGHUP, SIG_IGN);
  if (all.stdio) {
    if (!slw_rpc_server_adopt(&all.server, slw_rpc_stdio_connection())) {
      fail("cannot serve standard input and output", strerror(errno));
    }
    return slw_rpc_server_run(&all.server) == 0 ? 0 : 1;
  }
  if (all.serial != NULL) {
    if (!slw_rpc_server_serial(&all.server, all.serial, all.baud)) {
      (void)fprintf(stderr, "slipway-server: cannot open the serial line %s at %u baud: %s\n",
                    all.serial, all.baud, strerror(errno));
      return 2;
    }
    (void)fprintf(stderr, "INFO:root:RPCServer: serves the line %s\n", all.serial);
    return slw_rpc_server_run(&all.server) == 0 ? 0 : 1;
  }
  if (all.through_proxy) {
    all.server.listen_fd = -1;
    return slw_rpc_server_run(&all.server) == 0 ? 0 : 1;
  }
  all.server.listen_fd = listen_on(&all, &port);
  all.server.own_port = port;
  (void)fprintf(stderr, "INFO:root:RPCServer: bind to %s:%u\n", all.host, port);
  if (!is_loopback(all.host) && all.server.token_size == 0) {
    (void)fprintf(stderr,
                  "INFO:root:RPCServer: no token is set, so clients from other machines will be "
                  "refused; set SLIPWAY_RPC_TOKEN or --token-file on both sides\n");
  }
  (void)fflush(stderr);
  return slw_rpc_server_run(&all.server) == 0 ? 0 : 1;
}
