/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The client's side of a session on a POSIX socket: sends one request, receives its reply, and
 * moves bulk data straight from and to the caller's memory.
 *
 * The caller writes a payload at slw_rpc_client_request() and starts an operation; a signal can
 * interrupt any of them (SLW_RPC_CLIENT_INTERRUPTED), slw_rpc_client_continue() takes it up again.
 * A client belongs to one thread at a time.
 */
#ifndef SLIPWAY_RPC_CLIENT_H_
#define SLIPWAY_RPC_CLIENT_H_

#include "slipway/abi.h"
#include "slipway/rpc_frame.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct slw_rpc_client slw_rpc_client;

typedef enum {
  SLW_RPC_CLIENT_DONE = 0,         /**< a RETURN frame: its payload is the reply */
  SLW_RPC_CLIENT_FAILED = 1,       /**< an ERROR frame: its payload is the reply */
  SLW_RPC_CLIENT_NEEDS_MEMORY = 2, /**< data of slw_rpc_client_data_size() bytes is coming */
  SLW_RPC_CLIENT_CALLBACK = 3,     /**< a CALL of the device's: answer it */
  SLW_RPC_CLIENT_OUTPUT = 4,       /**< an OUTPUT frame: continue */
  SLW_RPC_CLIENT_UNFIT = 5,        /**< nothing was sent: not for this function */
  SLW_RPC_CLIENT_INTERRUPTED = -1, /**< a signal arrived; continue, or close */
  SLW_RPC_CLIENT_TIMEOUT = -2,     /**< no byte moved for the time given; close */
  SLW_RPC_CLIENT_LOST = -3,        /**< the connection ended; close */
  SLW_RPC_CLIENT_PROTOCOL = -4     /**< the peer sent what it may not; close */
} slw_rpc_client_status;

/** Take a connected socket whose greeting is over.
 * @param frame_bytes       largest payload this end takes
 * @param peer_frame_bytes  largest payload the peer takes
 * @return NULL when memory is exhausted */
SLW_API slw_rpc_client *slw_rpc_client_new(int fd, uint32_t frame_bytes,
                                           uint32_t peer_frame_bytes);

/** Free the client; the socket stays open. */
SLW_API void slw_rpc_client_free(slw_rpc_client *client);

/** Where the next request's payload goes, 8-byte aligned, and how much fits. */
SLW_API uint8_t *slw_rpc_client_request(slw_rpc_client *client, uint32_t *capacity_bytes);

/** Where the last reply lies in the receive buffer; fixed addresses, so that a host language can
 * look without a call. */
typedef struct slw_rpc_client_view {
  uint32_t reply_at; /* from the start of the receive buffer */
  uint32_t reply_size;
  uint32_t frame_id; /* of the frame that is looked at */
  uint32_t wait_id;  /* of the request whose reply is waited for */
} slw_rpc_client_view;

SLW_API const slw_rpc_client_view *slw_rpc_client_reply(const slw_rpc_client *client);
SLW_API const uint8_t *slw_rpc_client_buffer(const slw_rpc_client *client, uint64_t *size_bytes);

/** Longest time without a byte moving, in ms; 0: no limit. */
SLW_API void slw_rpc_client_set_timeout(slw_rpc_client *client, uint32_t timeout_ms);

/** Queue the request without sending it, to travel with the next one; it gets no reply unless
 * `flags` lacks SLW_RPC_FLAG_NO_REPLY, and then the caller collects it with _collect.
 * @return its id; 0: the queue is full, send something first */
SLW_API uint32_t slw_rpc_client_post(slw_rpc_client *client, uint16_t code, uint16_t flags,
                                     uint32_t size_bytes);

/** Send what is queued and wait for the reply to a posted request; in the order of posting. */
SLW_API int slw_rpc_client_collect(slw_rpc_client *client, uint32_t id);

/** Send the request and wait for its reply. */
SLW_API int slw_rpc_client_call(slw_rpc_client *client, uint16_t code, uint32_t size_bytes);

/** Call a function of the device with plain numbers, in the calling convention: `args` are the
 * client (an int), the function's handle, timeout_ms, then the arguments; none, int, bool and float
 * travel.  Its own result comes back when it is one of those; otherwise an opaque pointer of
 * SLW_RPC_CLIENT_STATUS_BASE + status: UNFIT, or what the other functions return (DONE: look at the
 * reply).
 * @return 0 */
SLW_API int slw_rpc_client_call_plain(void *self, const TVMFFIAny *args, int32_t num_args,
                                      TVMFFIAny *result);
#define SLW_RPC_CLIENT_STATUS_BASE 16

/** Send `data` with TENSOR_WRITE or FILE_WRITE. The request's payload is the first frame's
 * prefix (and name); offset and nbytes in it are filled in here, at `offset_at`. */
SLW_API int slw_rpc_client_send_data(slw_rpc_client *client, uint16_t code, uint32_t prefix_bytes,
                                     uint32_t offset_at, const void *data, uint64_t size_bytes);

/** Send a TENSOR_READ or FILE_READ and receive its data into `memory`.  With `memory` NULL it
 * stops with SLW_RPC_CLIENT_NEEDS_MEMORY; give it with slw_rpc_client_set_memory and continue. */
SLW_API int slw_rpc_client_receive_data(slw_rpc_client *client, uint16_t code,
                                        uint32_t size_bytes, void *memory,
                                        uint64_t memory_bytes);
SLW_API uint64_t slw_rpc_client_data_size(const slw_rpc_client *client);
SLW_API void slw_rpc_client_set_memory(slw_rpc_client *client, void *memory,
                                       uint64_t memory_bytes);

/** Answer callback `callback_id` with the payload that was written as a request's, and go on
 * waiting for the reply to `wait_id`; other requests may have been made in between. */
SLW_API int slw_rpc_client_answer(slw_rpc_client *client, uint16_t code, uint32_t callback_id,
                                  uint32_t size_bytes, uint32_t wait_id);

/** Send `size_bytes` of whole request frames at `frames`, with ids from `first_id` on, and take
 * their `count` replies as they come, so that neither end waits for the other's buffers.  The
 * replies lie one after the other, headers too, at slw_rpc_client_batch(); an error that ends the
 * session is the last of them. */
SLW_API int slw_rpc_client_exchange(slw_rpc_client *client, const uint8_t *frames,
                                    uint64_t size_bytes, uint32_t first_id, uint32_t count);
SLW_API const uint8_t *slw_rpc_client_batch(const slw_rpc_client *client, uint64_t *size_bytes);

/** `count` ids for the frames of an exchange; the first of them. */
SLW_API uint32_t slw_rpc_client_take_ids(slw_rpc_client *client, uint32_t count);

/** Collect the data of a TENSOR_READ that was posted; in the order of posting. */
SLW_API int slw_rpc_client_collect_data(slw_rpc_client *client, uint32_t id, void *memory,
                                        uint64_t memory_bytes);

/** Take an interrupted operation up again. */
SLW_API int slw_rpc_client_continue(slw_rpc_client *client);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_RPC_CLIENT_H_ */
