/* SPDX-License-Identifier: Apache-2.0
 * The session's loop: bytes in, frames to verbs, replies and errors out.
 */
#include <stdarg.h>
#include <string.h>

#include "rpc_internal.h"

/* --- memory ---------------------------------------------------------------------------------- */

static size_t align64(size_t size) { return (size + 63u) & ~(size_t)63u; }

static size_t rx_bytes(const slw_rpc_config *config) {
  return SLW_RPC_HEADER_BYTES + (size_t)config->frame_bytes + config->read_ahead_bytes;
}

size_t slw_rpc_session_memory(const slw_rpc_config *config) {
  size_t buffers = rx_bytes(config);
  if (config->frame_bytes % 8u != 0u || config->read_ahead_bytes % 8u != 0u ||
      config->frame_bytes < SLW_RPC_HELLO_MAX_BYTES || config->frame_bytes > (1u << 30) ||
      config->read_ahead_bytes > (1u << 30) || config->max_args > 65536u ||
      config->max_handles > (1u << 24) || config->name_bytes > 256u) {
    return 0;
  }
  return 2u * align64(buffers) + align64(config->max_handles * sizeof(slw_rpc_entry)) +
         align64((size_t)config->max_handles * config->name_bytes) +
         align64(config->max_args * sizeof(TVMFFIAny)) +
         align64(config->max_args * sizeof(TVMFFIByteArray));
}

void slw_rpc_session_init(slw_rpc_session *session, const slw_rpc_config *config, void *memory) {
  uint8_t *at = (uint8_t *)memory;
  memset(session, 0, sizeof(*session));
  session->config = *config;
  session->rx_capacity = rx_bytes(config);
  session->tx_capacity = rx_bytes(config);
  session->rx = at;
  at += align64(session->rx_capacity);
  session->tx = at;
  at += align64(session->tx_capacity);
  session->entries = (slw_rpc_entry *)(void *)at;
  at += align64(config->max_handles * sizeof(slw_rpc_entry));
  session->names = (char *)at;
  at += align64((size_t)config->max_handles * config->name_bytes);
  session->args = (TVMFFIAny *)(void *)at;
  at += align64(config->max_args * sizeof(TVMFFIAny));
  session->bytes = (TVMFFIByteArray *)(void *)at;
  session->free_entry = UINT32_MAX;
  session->peer_frame_bytes = SLW_RPC_HELLO_MAX_BYTES; /* until WELCOME says more */
}

/* --- errors ---------------------------------------------------------------------------------- */

int slw_rpc_fail(slw_rpc_session *session, int code, const char *kind, ...) {
  slw_rpc_failure_text *failure = &session->failure;
  size_t at = 0;
  const char *part;
  va_list parts;
  failure->code = (uint32_t)code;
  for (at = 0; kind[at] != '\0' && at + 1u < sizeof(failure->kind); ++at) {
    failure->kind[at] = kind[at];
  }
  failure->kind[at] = '\0';
  at = 0;
  va_start(parts, kind);
  for (part = va_arg(parts, const char *); part != NULL; part = va_arg(parts, const char *)) {
    for (; *part != '\0' && at + 1u < sizeof(failure->message); ++part) {
      failure->message[at++] = *part;
    }
  }
  va_end(parts);
  failure->message[at] = '\0';
  return code;
}

int slw_rpc_fail_hook(slw_rpc_session *session, int code) {
  slw_rpc_failure_text *failure = &session->failure;
  failure->code = (uint32_t)code;
  failure->kind[0] = '\0';
  failure->message[0] = '\0';
  if (session->config.hooks->take_error != NULL) {
    session->config.hooks->take_error(session->config.hooks->context, failure->kind,
                                      sizeof(failure->kind), failure->message,
                                      sizeof(failure->message));
  }
  if (failure->message[0] == '\0') {
    return slw_rpc_fail(session, code, "RuntimeError",
                        "the operation failed on the device, which gave no reason", NULL);
  }
  return code;
}

int slw_rpc_fail_handle(slw_rpc_session *session, const char *wanted) {
  return slw_rpc_fail(session, SLW_RPC_FAIL_HANDLE, "RPCError", "the handle names no ", wanted,
                      " of this session: it was freed, or belongs to another session", NULL);
}

int slw_rpc_fail_malformed(slw_rpc_session *session, const char *what) {
  return slw_rpc_fail(session, SLW_RPC_FAIL_PROTOCOL, "RPCError", "malformed frame: ", what,
                      "; the session ends", NULL);
}

int slw_rpc_fail_unsupported(slw_rpc_session *session, const char *verb) {
  return slw_rpc_fail(session, SLW_RPC_FAIL_UNSUPPORTED, "NotImplementedError",
                      "this device does not offer ", verb, NULL);
}

/* --- stream ---------------------------------------------------------------------------------- */

bool slw_rpc_flush(slw_rpc_session *session) {
  slw_rpc_span span;
  if (session->ended) {
    return false;
  }
  if (session->tx_at == 0) {
    return true;
  }
  span.data = session->tx;
  span.size = session->tx_at;
  session->tx_at = 0;
  if (session->config.transport.write(session->config.transport.context, &span, 1) != 0) {
    session->ended = true;
  }
  return !session->ended;
}

static bool read_some(slw_rpc_session *session, void *out, size_t min, size_t max, size_t *got) {
  ptrdiff_t count = session->config.transport.read(session->config.transport.context, out, min,
                                                   max);
  if (count < 0 || (size_t)count < min || (size_t)count > max) {
    session->ended = true;
    return false;
  }
  *got = (size_t)count;
  return true;
}

bool slw_rpc_fill(slw_rpc_session *session, size_t size) {
  size_t have = session->rx_end - session->rx_at;
  size_t need;
  size_t room;
  size_t got = 0;
  if (have >= size) {
    return true;
  }
  /* Replies wait only as long as there are requests to handle. */
  if (size > session->rx_capacity - session->level.rx_base || !slw_rpc_flush(session)) {
    return false;
  }
  if (have == 0 || session->rx_at + size > session->rx_capacity) {
    memmove(session->rx + session->level.rx_base, session->rx + session->rx_at, have);
    session->rx_at = session->level.rx_base;
    session->rx_end = session->rx_at + have;
  }
  need = size - have;
  room = session->rx_capacity - session->rx_end;
  if (room > need && room > session->config.read_ahead_bytes) {
    room = need > session->config.read_ahead_bytes ? need : session->config.read_ahead_bytes;
  }
  if (!read_some(session, session->rx + session->rx_end, need, room, &got)) {
    return false;
  }
  session->rx_end += got;
  return true;
}

bool slw_rpc_take(slw_rpc_session *session, void *out, size_t size) {
  uint8_t *to = (uint8_t *)out;
  size_t have = session->rx_end - session->rx_at;
  size_t count = have < size ? have : size;
  size_t got = 0;
  if (to != NULL && count > 0) {
    memcpy(to, session->rx + session->rx_at, count);
    to += count;
  }
  session->rx_at += count;
  size -= count;
  if (size > 0 && !slw_rpc_flush(session)) {
    return false;
  }
  while (size > 0) {
    /* rx is empty here, so that its start may serve as the bin for skipped bytes. */
    size_t bin = session->rx_capacity - session->level.rx_base;
    count = to != NULL || size < bin ? size : bin;
    if (!read_some(session, to != NULL ? to : session->rx + session->level.rx_base, count, count,
                   &got)) {
      return false;
    }
    size -= got;
    to = to != NULL ? to + got : NULL;
  }
  return true;
}

/* --- replies --------------------------------------------------------------------------------- */

slw_rpc_writer slw_rpc_reply(slw_rpc_session *session) {
  size_t limit = session->config.frame_bytes < session->peer_frame_bytes
                     ? session->config.frame_bytes
                     : session->peer_frame_bytes;
  if (session->tx_capacity - session->tx_at < SLW_RPC_HEADER_BYTES + limit) {
    (void)slw_rpc_flush(session);
  }
  return slw_rpc_writer_on(session->tx + session->tx_at + SLW_RPC_HEADER_BYTES, limit);
}

void slw_rpc_reply_end(slw_rpc_session *session, uint16_t code, uint32_t id, size_t size) {
  slw_rpc_header header;
  header.size = (uint32_t)size;
  header.code = code;
  header.flags = 0;
  header.id = id;
  header.channel = 0;
  slw_rpc_header_put(session->tx + session->tx_at, &header);
  session->tx_at += SLW_RPC_HEADER_BYTES + size;
}

bool slw_rpc_send_failure(slw_rpc_session *session, uint32_t id) {
  const slw_rpc_failure_text *failure = &session->failure;
  size_t kind_size = slw_rpc_text_size(failure->kind);
  size_t message_size = slw_rpc_text_size(failure->message);
  slw_rpc_writer writer = slw_rpc_reply(session);
  size_t room = writer.capacity - 16u - 2u - kind_size - 8u;
  if (message_size > room) {
    message_size = room;
  }
  slw_rpc_put_u32(&writer, failure->code);
  slw_rpc_put_u32(&writer, (uint32_t)kind_size);
  slw_rpc_put_u32(&writer, (uint32_t)message_size);
  slw_rpc_put_u32(&writer, 0);
  slw_rpc_put_bytes(&writer, failure->kind, kind_size + 1u);
  slw_rpc_put_bytes(&writer, failure->message, message_size);
  slw_rpc_put_bytes(&writer, "", 1);
  slw_rpc_put_padding(&writer);
  slw_rpc_reply_end(session, SLW_RPC_ERROR, id, writer.at);
  return !session->ended;
}

bool slw_rpc_send_with(slw_rpc_session *session, uint16_t flags, uint32_t id, size_t size,
                       const void *data, size_t data_size) {
  static const uint8_t zeros[8] = {0};
  slw_rpc_span spans[3];
  slw_rpc_header header;
  header.size = (uint32_t)(size + slw_rpc_padded(data_size));
  header.code = SLW_RPC_RETURN;
  header.flags = flags;
  header.id = id;
  header.channel = 0;
  slw_rpc_header_put(session->tx + session->tx_at, &header);
  spans[0].data = session->tx;
  spans[0].size = session->tx_at + SLW_RPC_HEADER_BYTES + size;
  spans[1].data = data;
  spans[1].size = data_size;
  spans[2].data = zeros;
  spans[2].size = slw_rpc_padded(data_size) - data_size;
  session->tx_at = 0;
  if (!session->ended && session->config.transport.write(session->config.transport.context, spans,
                                                         spans[2].size > 0 ? 3 : 2) != 0) {
    session->ended = true;
  }
  return !session->ended;
}

/* --- frames ---------------------------------------------------------------------------------- */

static int verb_ping(slw_rpc_session *session, const slw_rpc_header *header,
                     slw_rpc_reader *reader, slw_rpc_writer *writer) {
  (void)session;
  slw_rpc_put_bytes(writer, slw_rpc_get_bytes(reader, header->size), header->size);
  return SLW_RPC_OK;
}

static slw_rpc_verb find_verb(uint16_t code) {
  switch (code) {
    case SLW_RPC_PING:
      return verb_ping;
    case SLW_RPC_CALL:
      return slw_rpc_verb_call;
    case SLW_RPC_GET_FUNCTION:
      return slw_rpc_verb_get_function;
    case SLW_RPC_LOAD_MODULE:
      return slw_rpc_verb_load_module;
    case SLW_RPC_FREE:
      return slw_rpc_verb_free;
    case SLW_RPC_TENSOR_ALLOC:
      return slw_rpc_verb_tensor_alloc;
    case SLW_RPC_TENSOR_COPY:
      return slw_rpc_verb_tensor_copy;
    case SLW_RPC_FILE_REMOVE:
      return slw_rpc_verb_file_remove;
    case SLW_RPC_FILE_LIST:
      return slw_rpc_verb_file_list;
    case SLW_RPC_DEVICE_QUERY:
      return slw_rpc_verb_device_query;
    case SLW_RPC_TIME:
      return slw_rpc_verb_time;
    default:
      return NULL;
  }
}

static void handle_verb(slw_rpc_session *session, const slw_rpc_header *header) {
  slw_rpc_reader reader =
      slw_rpc_reader_on(session->rx + session->rx_at - header->size, header->size);
  slw_rpc_writer writer = slw_rpc_reply(session);
  slw_rpc_verb verb = find_verb(header->code);
  int failure;
  if (verb == NULL) {
    failure = slw_rpc_fail(session, SLW_RPC_FAIL_UNSUPPORTED, "NotImplementedError",
                           "the device does not know this request; its version of Slipway is "
                           "probably older than the client's", NULL);
  } else {
    failure = verb(session, header, &reader, &writer);
    if (!reader.ok) {
      failure = slw_rpc_fail_malformed(session, "the payload is shorter than its fields");
    }
    if (failure == SLW_RPC_OK && !writer.ok) {
      failure = slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RPCError",
                             "the result is larger than the largest frame that both ends take; "
                             "return it as a tensor or a file", NULL);
    }
  }
  if ((header->flags & SLW_RPC_FLAG_NO_REPLY) == 0) {
    if (failure == SLW_RPC_OK) {
      uint8_t *payload = session->tx + session->tx_at + SLW_RPC_HEADER_BYTES;
      slw_rpc_put_padding(&writer);
      if (payload != writer.base) {
        memmove(payload, writer.base, writer.at); /* a callback has sent what stood before it */
      }
      slw_rpc_reply_end(session, SLW_RPC_RETURN, header->id, writer.at);
    } else {
      (void)slw_rpc_send_failure(session, header->id);
    }
  }
  if (failure == SLW_RPC_FAIL_PROTOCOL) {
    (void)slw_rpc_flush(session);
    session->ended = true;
  }
}

static const char *header_fault(const slw_rpc_session *session, const slw_rpc_header *header) {
  if (header->size > session->config.frame_bytes) {
    return "its size is over the limit told in WELCOME";
  }
  if (header->size % 8u != 0u) {
    return "its size is not a multiple of 8";
  }
  if (header->channel != 0u) {
    return "its channel is not that of this session";
  }
  if ((header->flags & ~SLW_RPC_FLAGS) != 0u) {
    return "it has flags that there are not";
  }
  if (header->id == 0u) {
    return "its id is 0";
  }
  if ((header->flags & SLW_RPC_FLAG_MORE) != 0u && header->code != SLW_RPC_TENSOR_WRITE &&
      header->code != SLW_RPC_FILE_WRITE) {
    return "only a transfer has more than one frame";
  }
  return NULL;
}

int slw_rpc_session_step(slw_rpc_session *session) {
  slw_rpc_header header;
  const char *fault;
  slw_rpc_reader reader;
  if (session->ended || !slw_rpc_fill(session, SLW_RPC_HEADER_BYTES)) {
    session->ended = true;
    return -1;
  }
  slw_rpc_header_get(session->rx + session->rx_at, &header);
  session->rx_at += SLW_RPC_HEADER_BYTES;
  fault = header_fault(session, &header);
  if (fault != NULL) {
    (void)slw_rpc_fail_malformed(session, fault);
    (void)slw_rpc_send_failure(session, header.id);
    (void)slw_rpc_flush(session);
    session->ended = true;
    return -1;
  }
  if (header.code == SLW_RPC_TENSOR_WRITE || header.code == SLW_RPC_FILE_WRITE) {
    bool goes_on = header.code == SLW_RPC_TENSOR_WRITE
                       ? slw_rpc_bulk_tensor_write(session, &header)
                       : slw_rpc_bulk_file_write(session, &header);
    session->ended = session->ended || !goes_on;
  } else if (!slw_rpc_fill(session, header.size)) {
    session->ended = true;
  } else {
    bool is_answered = (header.flags & SLW_RPC_FLAG_NO_REPLY) == 0u;
    reader = slw_rpc_reader_on(session->rx + session->rx_at, header.size);
    if (!is_answered &&
        (header.code == SLW_RPC_TENSOR_READ || header.code == SLW_RPC_FILE_READ)) {
      /* A read whose data nobody wants. */
    } else if (header.code == SLW_RPC_TENSOR_READ) {
      (void)slw_rpc_bulk_tensor_read(session, &header, &reader);
    } else if (header.code == SLW_RPC_FILE_READ) {
      (void)slw_rpc_bulk_file_read(session, &header, &reader);
    } else if (header.code == SLW_RPC_GOODBYE) {
      if (is_answered) {
        slw_rpc_reply_end(session, SLW_RPC_RETURN, header.id, slw_rpc_reply(session).at);
      }
      (void)slw_rpc_flush(session);
      session->ended = true;
    } else {
      session->rx_at += header.size;
      session->level.frame_end = session->rx_at;
      handle_verb(session, &header);
      header.size = 0;
    }
    session->rx_at += header.size;
  }
  return session->ended ? -1 : 0;
}

void slw_rpc_session_close(slw_rpc_session *session) {
  uint32_t i;
  const slw_rpc_hooks *hooks = session->config.hooks;
  session->ended = true;
  if (session->file_open_for_write && hooks->file_abort != NULL) {
    hooks->file_abort(hooks->context);
    session->file_open_for_write = false;
  }
  /* Newest first: what was made last may use what was made before. */
  for (i = session->entries_used; i > 0; --i) {
    if (session->entries[i - 1u].object != NULL) {
      hooks->release(hooks->context, session->entries[i - 1u].object);
      session->entries[i - 1u].object = NULL;
    }
  }
}

void slw_rpc_session_serve(slw_rpc_session *session) {
  int status = slw_rpc_session_greet(session);
  while (status == 0) {
    status = slw_rpc_session_step(session);
  }
  slw_rpc_session_close(session);
}
