/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * An RPC server on a POSIX system: accepts connections and runs each session in a process of its
 * own, so that a kernel that crashes, hangs or exhausts memory ends its session only.
 *
 * The supervisor keeps a copy of every connection. When a session's process dies, it tells the
 * client how; when the client goes away, it ends the process.  The Python server and the static
 * server both run this; Python replaces `fork_session` (so that its interpreter survives the
 * fork) and adds its own functions in `prepare_session`.
 */
#ifndef SLIPWAY_RPC_SERVER_H_
#define SLIPWAY_RPC_SERVER_H_

#include "slipway/rpc_session.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_RPC_HOST_FRAME_BYTES (4u << 20)

typedef struct slw_rpc_server_config {
  int listen_fd; /* bound and listening */
  int watch_fd;  /* the server stops when this descriptor reports its end; -1: none */
  const char *key;
  const char *description;
  const uint8_t *token;
  uint64_t token_size;
  uint32_t max_sessions;       /* at one time */
  uint32_t session_timeout_ms; /* longest session; 0: as long as the client wants */
  uint32_t greeting_timeout_ms;
  uint32_t always_needs_token; /* also from this machine */
  uint64_t max_upload_bytes;   /* of one file; 0: what the disk takes */
  uint64_t max_memory_bytes;   /* address space a session may add; 0: what the system has */
  uint32_t max_cpu_s;          /* processor time of one session; 0: no limit */
  uint32_t reserved;
  void *context;
  /* fork(2) for this process; NULL: fork(2) itself. */
  int (*fork_session)(void *context);
  /* In the session's process: change the hooks. NULL: leave them. */
  void (*prepare_session)(void *context, slw_rpc_hooks *hooks);
  /* A line for the log. NULL: standard error. */
  void (*log)(void *context, const char *line);
} slw_rpc_server_config;

/** Serve until SIGTERM, SIGINT or the end of watch_fd. Ends all sessions, removes their folders.
 * Call it on the main thread of a process that has nothing else to do.
 * @return 0, or an errno value when the listening socket failed */
SLW_API int slw_rpc_server_run(const slw_rpc_server_config *config);

/** The hooks of a POSIX host over the runtime's modules, for the current folder; private state
 * belongs to the process. Set `*memory_limit` semantics through the server's config. */
SLW_API void slw_rpc_host_hooks(slw_rpc_hooks *hooks, uint64_t max_upload_bytes);

/** A transport over a socket or a pipe pair; `fd` is the context's pointer value. */
SLW_API slw_rpc_transport slw_rpc_fd_transport(int fd);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_RPC_SERVER_H_ */
