/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * An RPC server on a POSIX system: accepts connections and runs each session in a process of its
 * own, so that a kernel that crashes, hangs or exhausts memory ends its session only.
 *
 * The supervisor keeps a copy of every connection. When a session's process dies, it tells the
 * client how; when the client goes away, it ends the process.  The Python server and the static
 * server both run this; Python replaces `fork_session`, so that its interpreter survives the
 * fork, and gives access to the functions that are registered with tvm-ffi.
 */
#ifndef SLIPWAY_RPC_SERVER_H_
#define SLIPWAY_RPC_SERVER_H_

#include "slipway/rpc_session.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_RPC_HOST_FRAME_BYTES (4u << 20)

typedef struct slw_rpc_server_config {
  int listen_fd; /* bound and listening; -1: connections come otherwise */
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
  uint32_t is_quiet;           /* no log */
  uint32_t max_handles;        /* live objects of one session; at most 2^24 */
  uint32_t tracker_port;
  const char *tracker_host;    /* where to register; NULL: nowhere */
  const char *custom_address;  /* that the tracker gives out; "": what it sees */
  uint32_t own_port;           /* what clients connect to */
  uint32_t proxied_needs_token; /* who comes through a proxy must have the token in any case */
  int32_t adopt_fd;             /* an end of slw_rpc_channel_open() that brings connections; -1 */
  uint32_t log_json;           /* the log in JSON lines */
  uint32_t is_single;           /* the server ends with its first session */
  uint32_t max_files;           /* descriptors of one session's process; 0: what the system has */
  void *context;
  /* fork(2) for this process; NULL: fork(2) itself. */
  int (*fork_session)(void *context);
  /* tvm-ffi's TVMFFIFunctionGetGlobal and TVMFFIErrorMoveFromRaised, where that library is in
   * the process: its registered functions can then be called. NULL: it is not. */
  int (*ffi_get_global)(const TVMFFIByteArray *name, void **out);
  void (*ffi_take_error)(void **out);
  void (*ffi_set_error)(const char *kind, const char *message); /* ...ErrorSetRaisedFromCStr */
  /* Empty the buffers of what was printed; with `begins`, print to descriptors 1 and 2 from now
   * on. NULL: there are only those of stdio. */
  void (*flush_output)(int begins);
} slw_rpc_server_config;

/** Serve until SIGTERM, SIGINT or the end of watch_fd. Ends all sessions, removes their folders.
 * Call it on the main thread of a process that has nothing else to do.
 * @return 0, or an errno value when the listening socket failed */
SLW_API int slw_rpc_server_run(const slw_rpc_server_config *config);

/** Serve only the connection `fd`, which whoever started this process made, and end with it.
 * Takes the descriptor over. Call it before slw_rpc_server_run.
 * @return false when there are no descriptors left */
SLW_API bool slw_rpc_server_adopt(slw_rpc_server_config *config, int fd);

/** Serve the serial line at `path` (8N1, no flow control), one session after the other, in the
 * packets of serial_link.h; a line that hangs up is opened again. Call it before
 * slw_rpc_server_run, in place of listening.
 * @return false, with errno, when there is no such line; EINVAL: no such rate */
SLW_API bool slw_rpc_server_serial(slw_rpc_server_config *config, const char *path, uint32_t baud);

/** One descriptor for standard input and output: a socket that is both, else one that two small
 * processes copy from and to. From then on what is printed goes to standard error.
 * @return -1 on failure */
SLW_API int slw_rpc_stdio_connection(void);

/** The hooks of a POSIX host over the runtime's modules and the files of the current folder, for
 * the one session of this process. */
SLW_API void slw_rpc_host_hooks(slw_rpc_hooks *hooks, const slw_rpc_server_config *config);

/** A transport over a socket or a pipe pair; `fd` is the context's pointer value. */
SLW_API slw_rpc_transport slw_rpc_fd_transport(int fd);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_RPC_SERVER_H_ */
