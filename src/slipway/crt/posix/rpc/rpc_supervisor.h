/* SPDX-License-Identifier: Apache-2.0
 * The supervisor's state, for the loop (rpc_server.c) and for who may come in (rpc_admission.c).
 */
#ifndef SLIPWAY_RPC_SUPERVISOR_H
#define SLIPWAY_RPC_SUPERVISOR_H

#include "rpc_server_internal.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* SIGPIPE is ignored */
#endif

#define MAX_SESSIONS 64u
/* Connections that have not proved anything: they have places of their own, so that they hold no
 * session. Whoever comes when there are none left takes that of the oldest one of the address
 * with the most. */
#define MAX_GREETINGS 64u
#define MAX_GREETINGS_OF_ONE 16u /* address */
#define MAX_CHILDREN (MAX_SESSIONS + 2u * MAX_GREETINGS) /* and those that are just ending */

/* SILENT: a connection that has not sent a byte, and has no process yet. */
enum state { FREE, SILENT, RUNNING, LINGERING };

typedef struct child {
  enum state state;
  pid_t pid;
  int fd;
  int folder_fd; /* holds the lock of the folder */
  slw_rpc_watch *watch;
  uint64_t accepted_ns;
  uint64_t kill_at_ns;  /* 0: not yet */
  uint64_t close_at_ns; /* of a lingering connection */
  bool slow_greeting;
  bool displaced; /* another greeting took its place */
  bool needs_token;
  char revoked[128]; /* why the tracker ended it */
  char origin[64];   /* one address has one of these */
  char peer[64];
  char folder[256];
} child;

typedef struct server {
  const slw_rpc_server_config *config;
  child children[MAX_CHILDREN];
  slw_rpc_slots *slots;
  slw_rpc_lease *lease;
  int channel[2]; /* the supervisor's end, the registrar's end */
  bool had_session;
  pid_t registrar;
  uint64_t registrar_at_ns; /* not before that */
} server;

/* Take a connection in, which is silent until it sends something. `origin`: those with the same
 * one come from one address. */
void slw_rpc_take_connection(server *self, int fd, const char *peer, const char *origin,
                             bool needs_token);
/* Close the connection, but only when the client has read what was sent last: an early close
 * could destroy it. */
void slw_rpc_linger(child *one);
/* The slot is free again. */
void slw_rpc_finish(child *one);

extern const char slw_rpc_displaced_text[];

#endif
