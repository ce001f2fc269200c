/* SPDX-License-Identifier: Apache-2.0
 * What the files of the session (rpc_session.c, rpc_handles.c, rpc_verbs.c, rpc_transfer.c,
 * rpc_greeting.c) share.
 */
#ifndef SLIPWAY_RPC_INTERNAL_H
#define SLIPWAY_RPC_INTERNAL_H

#include "slipway/rpc_session.h"

/* Set the session's failure and return its code. `parts` are joined; the last is NULL. */
int slw_rpc_fail(slw_rpc_session *session, int code, const char *kind, ...);
/* Same, with the text that the hooks' `take_error` gives. */
int slw_rpc_fail_hook(slw_rpc_session *session, int code);
int slw_rpc_fail_handle(slw_rpc_session *session, const char *wanted);
int slw_rpc_fail_malformed(slw_rpc_session *session, const char *what);
int slw_rpc_fail_unsupported(slw_rpc_session *session, const char *verb);

/* Stream. Each returns false when the session is over. */
bool slw_rpc_fill(slw_rpc_session *session, size_t size); /* at least `size` unread bytes in rx */
bool slw_rpc_flush(slw_rpc_session *session);
/* Move `size` bytes of the stream to `out`; NULL skips them. */
bool slw_rpc_take(slw_rpc_session *session, void *out, size_t size);

/* Replies. A writer over the payload of the next reply; then send it. */
slw_rpc_writer slw_rpc_reply(slw_rpc_session *session);
void slw_rpc_reply_end(slw_rpc_session *session, uint16_t code, uint32_t id, size_t size);
bool slw_rpc_send_failure(slw_rpc_session *session, uint32_t id);
/* A reply whose data lies elsewhere: header, payload so far, then `data` and padding. */
bool slw_rpc_send_with(slw_rpc_session *session, uint16_t flags, uint32_t id, size_t size,
                       const void *data, size_t data_size);

/* Handles. */
uint64_t slw_rpc_handle_new(slw_rpc_session *session, TVMFFIObject *object, const char *name);
TVMFFIObject *slw_rpc_handle_get(const slw_rpc_session *session, uint64_t handle);
const char *slw_rpc_handle_name(const slw_rpc_session *session, uint64_t handle);
void slw_rpc_handle_free(slw_rpc_session *session, uint64_t handle);
DLTensor *slw_rpc_tensor_get(const slw_rpc_session *session, uint64_t handle);
/* Check `nbytes` at `offset` of a tensor. *at is NULL where the host cannot address it. */
int slw_rpc_tensor_range(slw_rpc_session *session, uint64_t handle, uint64_t offset,
                         uint64_t nbytes, uint8_t **at);

/* Values. Decode `count` of them at the reader into session->args; release what that made when
 * the call is over, or has failed. */
int slw_rpc_decode_args(slw_rpc_session *session, slw_rpc_reader *reader, uint32_t count);
void slw_rpc_release_args(slw_rpc_session *session);
/* Encode a result; takes over the reference it owns. */
int slw_rpc_encode_result(slw_rpc_session *session, slw_rpc_writer *writer, TVMFFIAny *result,
                          const char *name);

/* Encode `count` borrowed values as a table at the writer, their bytes behind it. */
int slw_rpc_encode_values(slw_rpc_session *session, slw_rpc_writer *writer, const TVMFFIAny *values,
                          uint32_t count);
/* Decode the one value at the reader into an owned one. */
int slw_rpc_decode_owned(slw_rpc_session *session, slw_rpc_reader *reader, TVMFFIAny *out);
/* The present request's arguments. */
TVMFFIAny *slw_rpc_args(const slw_rpc_session *session);

/* Verbs: read the request from `reader`, write the result to `writer`, return a failure. */
typedef int (*slw_rpc_verb)(slw_rpc_session *session, const slw_rpc_header *header,
                            slw_rpc_reader *reader, slw_rpc_writer *writer);
int slw_rpc_verb_call(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                      slw_rpc_writer *);
int slw_rpc_verb_time(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                      slw_rpc_writer *);
int slw_rpc_verb_get_function(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                              slw_rpc_writer *);
int slw_rpc_verb_load_module(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                             slw_rpc_writer *);
int slw_rpc_verb_free(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                      slw_rpc_writer *);
int slw_rpc_verb_tensor_alloc(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                              slw_rpc_writer *);
int slw_rpc_verb_tensor_copy(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                             slw_rpc_writer *);
int slw_rpc_verb_device_query(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                              slw_rpc_writer *);
int slw_rpc_verb_file_remove(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                             slw_rpc_writer *);
int slw_rpc_verb_file_list(slw_rpc_session *, const slw_rpc_header *, slw_rpc_reader *,
                           slw_rpc_writer *);

/* Verbs that move bulk data themselves; false when the session is over. */
bool slw_rpc_bulk_tensor_write(slw_rpc_session *session, const slw_rpc_header *header);
bool slw_rpc_bulk_file_write(slw_rpc_session *session, const slw_rpc_header *header);
bool slw_rpc_bulk_tensor_read(slw_rpc_session *session, const slw_rpc_header *header,
                              slw_rpc_reader *reader);
bool slw_rpc_bulk_file_read(slw_rpc_session *session, const slw_rpc_header *header,
                            slw_rpc_reader *reader);

#endif
