/* SPDX-License-Identifier: Apache-2.0
 * Calls from the device to its client: while a function runs, it may call functions that the
 * client passed to it, and the client may make requests before it answers.
 *
 * The frame of the call that runs stays where it is, because its arguments point into it: what
 * arrives meanwhile goes behind it (rx_base).  The replies that were waiting go out first, so the
 * place where the running call will write its own is free to write the callback in.
 */
#include <string.h>

#include "rpc_internal.h"

#define MAX_DEPTH 8u
#define CALLBACK_ID 0x80000000u

static int send_call(slw_rpc_session *session, uint64_t number, uint32_t id, const TVMFFIAny *args,
                     int32_t count) {
  slw_rpc_writer writer = slw_rpc_reply(session);
  int failure;
  slw_rpc_put_u64(&writer, number);
  slw_rpc_put_u32(&writer, 0);
  slw_rpc_put_u32(&writer, (uint32_t)count);
  failure = slw_rpc_encode_values(session, &writer, args, (uint32_t)count);
  if (failure != SLW_RPC_OK) {
    return failure;
  }
  slw_rpc_put_padding(&writer);
  if (!writer.ok) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RPCError",
                        "the arguments of a callback are larger than the largest frame", NULL);
  }
  slw_rpc_reply_end(session, SLW_RPC_CALL, id, writer.at);
  return slw_rpc_flush(session) ? SLW_RPC_OK
                                : slw_rpc_fail(session, SLW_RPC_FAIL_CANCELLED, "RPCError",
                                               "the client has left", NULL);
}

/* The client's ERROR becomes this session's failure, for whoever called the callback. */
static int take_error(slw_rpc_session *session, slw_rpc_reader *reader) {
  uint32_t code = slw_rpc_get_u32(reader);
  uint32_t kind_size = slw_rpc_get_u32(reader);
  uint32_t message_size = slw_rpc_get_u32(reader);
  uint32_t reserved = slw_rpc_get_u32(reader);
  const char *kind = (const char *)slw_rpc_get_bytes(reader, (size_t)kind_size + 1u);
  const char *message = (const char *)slw_rpc_get_bytes(reader, (size_t)message_size + 1u);
  (void)code;
  (void)reserved;
  if (message == NULL || kind[kind_size] != '\0' || message[message_size] != '\0') {
    session->ended = true;
    return slw_rpc_fail_malformed(session, "an error without its text");
  }
  return slw_rpc_fail(session, SLW_RPC_FAIL_REMOTE, kind, message, NULL);
}

/* Handle the client's requests until its answer to `id` is there. */
static int wait_for_answer(slw_rpc_session *session, uint32_t id, TVMFFIAny *result) {
  slw_rpc_header header;
  slw_rpc_reader reader;
  for (;;) {
    if (session->ended || !slw_rpc_fill(session, SLW_RPC_HEADER_BYTES)) {
      break;
    }
    slw_rpc_header_get(session->rx + session->rx_at, &header);
    if (header.code != SLW_RPC_RETURN && header.code != SLW_RPC_ERROR) {
      if (slw_rpc_session_step(session) != 0) {
        break;
      }
      continue;
    }
    if (header.id != id || header.size > session->config.frame_bytes || header.size % 8u != 0u ||
        header.flags != 0u || header.channel != 0u || !slw_rpc_fill(session, SLW_RPC_HEADER_BYTES + header.size)) {
      break;
    }
    reader = slw_rpc_reader_on(session->rx + session->rx_at + SLW_RPC_HEADER_BYTES, header.size);
    session->rx_at += SLW_RPC_HEADER_BYTES + header.size;
    return header.code == SLW_RPC_ERROR ? take_error(session, &reader)
                                        : slw_rpc_decode_owned(session, &reader, result);
  }
  session->ended = true;
  return slw_rpc_fail(session, SLW_RPC_FAIL_CANCELLED, "RPCError",
                      "the client left, or broke the protocol, in the middle of a callback", NULL);
}

int slw_rpc_session_call_back(slw_rpc_session *session, uint64_t number, const TVMFFIAny *args,
                              int32_t count, TVMFFIAny *result) {
  slw_rpc_level outer = session->level;
  size_t have = session->rx_end - session->rx_at;
  uint32_t id = CALLBACK_ID | (session->next_callback++ & (CALLBACK_ID - 1u));
  int failure;
  memset(result, 0, sizeof *result);
  if (!outer.may_call_back || session->ended) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_UNSUPPORTED, "RPCError",
                        "a client's function can be called only while the client waits for a call "
                        "of its own; not while it times one, nor between its calls", NULL);
  }
  if (outer.depth == MAX_DEPTH) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RecursionError",
                        "too many calls back and forth within each other", NULL);
  }
  failure = send_call(session, number, id, args, count);
  if (failure != SLW_RPC_OK) {
    return failure;
  }
  memmove(session->rx + outer.frame_end, session->rx + session->rx_at, have);
  session->rx_at = outer.frame_end;
  session->rx_end = session->rx_at + have;
  session->level.rx_base = outer.frame_end;
  session->level.args_base = outer.args_base + outer.num_args;
  session->level.temporaries_base = session->num_temporaries;
  session->level.num_args = 0;
  session->level.may_call_back = false;
  session->level.depth = outer.depth + 1u;
  failure = wait_for_answer(session, id, result);
  session->level = outer;
  return failure;
}
