/* SPDX-License-Identifier: Apache-2.0
 * What the supervisor (rpc_server.c) and the session's process (rpc_child.c) share.
 */
#ifndef SLIPWAY_RPC_SERVER_INTERNAL_H
#define SLIPWAY_RPC_SERVER_INTERNAL_H

#include <sys/socket.h>
#include <sys/types.h>

#include "slipway/rpc_server.h"

#define SLW_RPC_SESSION_NAME_BYTES 12u

/* In memory that both processes see: the process writes what it does, the supervisor reads it
 * when the process has died. */
typedef struct slw_rpc_watch {
  volatile uint32_t greeted;
  volatile uint32_t has_lease;
  volatile uint32_t calling;
  volatile uint32_t writing; /* inside a write: a frame may be half sent */
  volatile uint32_t call_id;
  volatile uint32_t call_timeout_ms;
  volatile uint32_t session_timeout_ms;
  volatile uint64_t session_deadline_ns; /* 0: none */
  volatile uint64_t call_deadline_ns;    /* 0: none */
  char function[96];
  char peer[64];
  char session[SLW_RPC_SESSION_NAME_BYTES + 1u]; /* its name in the log */
} slw_rpc_watch;

/* The one hand-out of this device by a tracker, in memory that all its processes see. */
enum slw_rpc_lease_state {
  SLW_RPC_LEASE_NONE = 0,
  SLW_RPC_LEASE_ASSIGNED = 1, /* a client may come with it */
  SLW_RPC_LEASE_USED = 2,     /* its session runs */
  SLW_RPC_LEASE_OVER = 3      /* the session has ended; the tracker is to be told */
};

typedef struct slw_rpc_lease {
  uint32_t state;
  char text[SLW_RPC_LEASE_BYTES + 1u];
  uint32_t iterations; /* of the supervisor's loop: it lives */
  char reason[200];    /* of the session's end, where something went wrong */
} slw_rpc_lease;

/* What the supervisor hears from its own processes. */
enum slw_rpc_order_kind {
  SLW_RPC_ORDER_NONE = 0,
  SLW_RPC_ORDER_ADOPT = 1, /* the descriptor that comes along is a client's connection */
  SLW_RPC_ORDER_REVOKE = 2 /* end the session of the lease */
};

typedef struct slw_rpc_order {
  uint32_t kind;
  uint32_t needs_token; /* ADOPT: the client must prove it */
  char text[128];       /* ADOPT: who it is, for the log. REVOKE: why */
} slw_rpc_order;

/* Two ends, neither of which blocks. */
bool slw_rpc_channel_open(int ends[2]);
bool slw_rpc_channel_send(int channel, const slw_rpc_order *order, int fd);
/* False when nothing waits. *fd is -1, or the caller's to close. */
bool slw_rpc_channel_receive(int channel, slw_rpc_order *order, int *fd);

/* Whether the peer of a connection is on this machine. */
bool slw_rpc_is_local(const struct sockaddr_storage *address);
/* The peer for people: "10.0.0.2:41234"; and what counts as one address: the host, of IPv6 the
 * network. */
void slw_rpc_peer_text(const struct sockaddr_storage *address, char *text, size_t size);
void slw_rpc_origin_text(const struct sockaddr_storage *address, char *text, size_t size);

/* The sessions that there may be: each slot has the process that took it, or 0. In memory that
 * all processes see; a process takes one when its client has proved what it has to. */
typedef struct slw_rpc_slots {
  int32_t owners[64];
} slw_rpc_slots;

bool slw_rpc_slot_take(slw_rpc_slots *slots, uint32_t max_sessions, int32_t process);
void slw_rpc_slot_give_back(slw_rpc_slots *slots, int32_t process);

/* Change the state from `from` to `to`; false if it is another one. */
bool slw_rpc_lease_change(slw_rpc_lease *lease, uint32_t from, uint32_t to);

/* Keep this device registered with the config's tracker, for ever: connect, register, say when
 * the device is free, connect again. `channel` becomes readable when the lease has changed, and
 * takes the orders that come from there. */
_Noreturn void slw_rpc_registrar_run(const slw_rpc_server_config *config, slw_rpc_lease *lease,
                                     int channel);

/* Run one session on `fd` and end the process. The current folder is the session's own. */
_Noreturn void slw_rpc_child_run(const slw_rpc_server_config *config, int fd, bool needs_token,
                                 slw_rpc_watch *watch, slw_rpc_lease *lease,
                                 slw_rpc_slots *slots, pid_t supervisor);

/* The hooks for what a client passes: its functions, and lists. On the session's thread. */
void slw_rpc_peer_hooks(slw_rpc_hooks *hooks, slw_rpc_session *session,
                        const slw_rpc_server_config *config);

/* Send what this process prints from now on over `link`; `flush` empties further buffers. */
bool slw_rpc_output_start(const slw_rpc_transport *link, void (*flush)(int begins));
bool slw_rpc_output_is_on(void);
/* Send what was printed until now. */
void slw_rpc_output_flush(void);
/* Around every other frame. */
void slw_rpc_output_lock(void);
void slw_rpc_output_unlock(void);

/* End this process when its supervisor ends. */
void slw_rpc_die_with(pid_t supervisor);

/* Whether a call has connected this session to another server (rpc_forward.c). */
bool slw_rpc_forward_is_on(void);

/* Carry bytes between `client` and that server until one of them ends; `received` came already. */
void slw_rpc_forward(int client, const uint8_t *received, size_t size);

/* Write a line to the log on stderr: "session with PEER: TEXT", or JSON. `session` and `peer` may
 * be "". The first, the name of a lease's session, is the same in the tracker's log. */
void slw_rpc_log(const slw_rpc_server_config *config, const char *event, const char *session,
                 const char *peer, const char *text);

/* The name of a session: of its lease, else of `seed`. */
void slw_rpc_name_session(char name[SLW_RPC_SESSION_NAME_BYTES + 1u], const void *seed,
                          size_t size);

/* The nearer one of a session's deadlines, 0 without any. */
uint64_t slw_rpc_deadline(const slw_rpc_watch *watch);

/* Say in words how a session's process ended, from waitpid's status.
 * @return the failure code for the client */
uint32_t slw_rpc_explain(const slw_rpc_watch *watch, int status, char *text, size_t size);

/* Write an ERROR frame that no session stands behind; best effort. */
void slw_rpc_write_error(int fd, uint32_t id, uint32_t code, const char *message);

/* Make a session's folder and its name. The result is a descriptor whose lock says that the
 * folder is in use; -1 on failure. */
int slw_rpc_make_folder(char *path, size_t size);

/* Remove a folder and everything below it, without following links. */
void slw_rpc_remove_folder(const char *path);

/* Remove the folders that servers left which were killed. */
void slw_rpc_sweep_folders(void);

#endif
