/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The one implementation of an RPC session: the Python server, the static server and
 * microcontrollers run this code.  docs/rpc-protocol.md is its specification.
 *
 * Freestanding: the session reaches the outside through a transport and a table of hooks, and
 * lives in one block of memory that the caller gives.  A hook that is NULL is a verb that this
 * device does not offer; the client gets an error that says so.
 */
#ifndef SLIPWAY_RPC_SESSION_H_
#define SLIPWAY_RPC_SESSION_H_

#include "slipway/abi.h"
#include "slipway/rpc_frame.h"
#include "slipway/timer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest text of an error that travels; longer ones are cut. */
#ifndef SLW_RPC_MESSAGE_BYTES
#define SLW_RPC_MESSAGE_BYTES 4096
#endif
#define SLW_RPC_KIND_BYTES 64
/* Tensors sent by value in one call. */
#ifndef SLW_RPC_MAX_TEMPORARIES
#define SLW_RPC_MAX_TEMPORARIES 16
#endif

typedef struct slw_rpc_span {
  const void *data;
  size_t size;
} slw_rpc_span;

/** A byte stream in both directions. */
typedef struct slw_rpc_transport {
  void *context;
  /** Read at least `min` and at most `max` bytes; returns how many, 0 at the end of the stream,
   * -1 when the link broke or a deadline passed. */
  ptrdiff_t (*read)(void *context, void *buffer, size_t min, size_t max);
  /** Write all spans in order; returns 0, or -1. */
  int (*write)(void *context, const slw_rpc_span *spans, size_t count);
} slw_rpc_transport;

/** What a device offers.  Each hook that returns int returns 0 or an slw_rpc_failure; before
 * that it calls slw_error_set (or what `take_error` reads). */
typedef struct slw_rpc_hooks {
  void *context;

  /* Functions and modules: the result is an owned kTVMFFIFunction or kTVMFFIModule object. */
  int (*get_global)(void *context, const char *name, TVMFFIAny *out); /* None: no such function */
  int (*get_function)(void *context, const TVMFFIAny *module, const char *name, TVMFFIAny *out);
  int (*load_module)(void *context, const char *file_name, TVMFFIAny *out);
  void (*release)(void *context, TVMFFIObject *object);
  /* Text of the last error of a hook or call; both are NUL-terminated. */
  void (*take_error)(void *context, char *kind, size_t kind_size, char *message,
                     size_t message_size);
  /* A call starts (its deadline in ms from now, 0 = none) and ends: for a supervisor. */
  void (*call_begins)(void *context, uint32_t id, uint32_t timeout_ms, const char *name);
  void (*call_ends)(void *context);
  int (*time)(void *context, slw_function function, const TVMFFIAny *args, int32_t num_args,
              const slw_time_options *options, slw_function preproc, double *results_s);

  /* A function object that calls the client's function `number`, through
   * slw_rpc_session_call_back; and an array object that takes over `count` owned values. */
  int (*make_callback)(void *context, uint64_t number, TVMFFIAny *out);
  int (*make_list)(void *context, TVMFFIAny *items, uint32_t count, TVMFFIAny *out);

  /* Tensors: an owned kTVMFFITensor object. */
  int (*tensor_alloc)(void *context, const int64_t *shape, int32_t ndim, DLDataType dtype,
                      DLDevice device, TVMFFIAny *out);
  /* Copy to or from memory that the host cannot address: that of other devices than kDLCPU, and
   * with `memory_is_apart` kDLCPU's too (a page's modules have memories of their own). */
  int (*tensor_copy)(void *context, DLTensor *tensor, uint64_t offset, void *host, size_t size,
                     bool to_device);
  bool memory_is_apart;
  int (*device_query)(void *context, DLDevice device, uint32_t attribute, TVMFFIAny *out);

  /* Files of the session, one transfer at a time. `*memory`, when not NULL, is where the
   * contents lie (or go), all `size` bytes of them; else the read and write hooks move them. */
  int (*file_create)(void *context, const char *name, uint64_t size, void **memory);
  int (*file_write)(void *context, uint64_t offset, const void *data, size_t size);
  int (*file_commit)(void *context);
  void (*file_abort)(void *context);
  int (*file_open)(void *context, const char *name, uint64_t *size, const void **memory);
  int (*file_read)(void *context, uint64_t offset, void *data, size_t size);
  void (*file_close)(void *context);
  int (*file_remove)(void *context, const char *name);
  /* One line "size name\n" for each file; returns the failure, sets *size. */
  int (*file_list)(void *context, char *text, size_t capacity, size_t *size);

  /* Whether a client that asked for `key` may come in; returns a failure after slw_error_set.
   * NULL: it may, if the key is "" or the config's. */
  int (*admit)(void *context, const char *key);
  /* The peer may come in: take a place for its session, or say why there is none. NULL: there is
   * one. */
  int (*enter)(void *context);
  /* Wait, before a wrong token is answered, so that guessing takes its time. NULL: nobody
   * guesses here. */
  void (*delay_refusal)(void *context);
  /* Fill with unpredictable bytes; needed only with a token. */
  int (*random)(void *context, uint8_t *out, size_t size);
} slw_rpc_hooks;

/** How a session behaves; all pointers must outlive it. */
typedef struct slw_rpc_config {
  slw_rpc_transport transport;
  const slw_rpc_hooks *hooks;
  const char *key;         /* what kind of device this is, "" for none */
  const char *description; /* "slipway 0.1.0 on linux-aarch64" */
  const uint8_t *token;
  size_t token_size;
  bool needs_token;            /* this peer must prove that it has the token */
  uint32_t session_timeout_ms; /* told to the client; whoever runs the session enforces it */
  uint32_t max_args;           /* of one call */
  uint32_t max_handles;
  uint32_t name_bytes; /* kept of each function's name for crash reports; 0: none */
  uint32_t frame_bytes; /* largest payload taken and sent, a multiple of 8, at least 1024 */
  bool offers_output;  /* whoever runs the session sends what programs print */
  uint32_t read_ahead_bytes; /* how much one read may take beyond what it needs */
} slw_rpc_config;

typedef struct slw_rpc_entry {
  TVMFFIObject *object; /* NULL: free */
  uint32_t generation;
  uint32_t next_free;
} slw_rpc_entry;

typedef struct slw_rpc_failure_text {
  uint32_t code; /* an slw_rpc_failure */
  char kind[SLW_RPC_KIND_BYTES];
  char message[SLW_RPC_MESSAGE_BYTES];
} slw_rpc_failure_text;

/* Where the request that is handled has its things: a callback puts others on top. */
typedef struct slw_rpc_level {
  size_t rx_base;   /* received frames start here */
  size_t frame_end; /* of the request */
  uint32_t args_base, num_args, temporaries_base, depth;
  bool may_call_back;
} slw_rpc_level;

/* What the greeting keeps between the peer's HELLO and its proof. */
typedef struct slw_rpc_greeting {
  uint32_t id;
  uint16_t version_max;
  uint64_t features;
  uint32_t frame_bytes, timeout_ms;
  char key[SLW_RPC_NAME_MAX_BYTES + 1u];
  uint8_t nonce[SLW_RPC_NONCE_BYTES];
} slw_rpc_greeting;

/** A session. Fields are private to src/rpc_*.c. */
typedef struct slw_rpc_session {
  slw_rpc_config config;
  uint8_t *rx; /* received bytes [rx_at, rx_end) wait to be handled */
  size_t rx_at, rx_end, rx_capacity;
  uint8_t *tx; /* replies [0, tx_at) wait to be sent */
  size_t tx_at, tx_capacity;
  slw_rpc_entry *entries;
  char *names;
  uint32_t entries_used, free_entry, live_entries;
  TVMFFIAny *args;
  TVMFFIByteArray *bytes;
  TVMFFIObject *temporaries[SLW_RPC_MAX_TEMPORARIES]; /* arguments made for the present call */
  uint32_t num_temporaries;
  slw_rpc_level level;
  uint32_t next_callback;
  bool has_callbacks;
  uint64_t peer_features;
  slw_rpc_greeting greeting;
  slw_rpc_failure_text failure;
  uint32_t failed_transfer; /* id of a chunked transfer whose error is still to be told */
  bool transfer_failed;
  bool file_open_for_write;
  uint32_t file_id;
  uint64_t file_size, file_done;
  uint8_t *file_memory;
  uint32_t peer_frame_bytes;
  uint32_t peer_timeout_ms;
  bool ended;
} slw_rpc_session;

/** Bytes that a session of this configuration needs besides the struct; 0: sizes overflow. */
SLW_API size_t slw_rpc_session_memory(const slw_rpc_config *config);

/** Prepare a session. `memory` is 16-byte aligned, zeroed, of the size told above. */
SLW_API void slw_rpc_session_init(slw_rpc_session *session, const slw_rpc_config *config,
                                  void *memory);

/** Greet the peer: versions, features, token. Returns 0, or -1 when the session is over. */
SLW_API int slw_rpc_session_greet(slw_rpc_session *session);

/** The same in two steps, for who cannot wait for bytes: each handles one frame that is there.
 * The first returns 1 when the second must follow. */
SLW_API int slw_rpc_session_greet_hello(slw_rpc_session *session);
SLW_API int slw_rpc_session_greet_proof(slw_rpc_session *session);

/** Handle one frame. Returns 0, or -1 when the session is over (goodbye, end, or violation). */
SLW_API int slw_rpc_session_step(slw_rpc_session *session);

/** Call the client's function `number` while one of its calls runs, on the session's thread.
 * The result is owned. Returns 0, or a failure whose kind and message are in session->failure. */
SLW_API int slw_rpc_session_call_back(slw_rpc_session *session, uint64_t number,
                                      const TVMFFIAny *args, int32_t count, TVMFFIAny *result);

/** Release everything the session holds. */
SLW_API void slw_rpc_session_close(slw_rpc_session *session);

/** Greet, handle frames until the end, close. */
SLW_API void slw_rpc_session_serve(slw_rpc_session *session);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_RPC_SESSION_H_ */
