/* SPDX-License-Identifier: Apache-2.0
 * An operation is a state machine, so that a signal can interrupt it anywhere: phase says what
 * comes next, `out` what is still to be sent, `data_*` what is still to be received.
 */
#define _GNU_SOURCE
#include "slipway/rpc_client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#define QUEUE_BYTES 65536u
#define READ_AHEAD_BYTES 65536u
#define DATA_PREFIX_BYTES 24u
#define MAX_SPANS 5
#define MAX_BATCH_BYTES ((size_t)1 << 30)
#define FIRST_CALLBACK_ID 0x80000000u

enum phase { IDLE, SENDING, HEADER, BODY, PREFIX, MEMORY, DATA, BATCH };

/* Many requests at once: what is still to be sent, and the replies so far. */
typedef struct slw_rpc_batch {
  const uint8_t *frames;
  size_t left;
  uint8_t *replies;
  size_t checked, used, capacity; /* of the replies: whole ones, bytes, room */
  uint32_t next_id, count;
} slw_rpc_batch;

struct slw_rpc_client {
  int fd;
  uint32_t frame_bytes, peer_frame_bytes;
  uint32_t timeout_ms;
  uint32_t next_id, wait_id;
  enum phase phase;
  /* Sending: a frame is the queue, its head (header and payload), data, padding. */
  struct iovec out[MAX_SPANS];
  int out_at, out_count;
  uint8_t *queue;
  size_t queue_size;
  uint8_t *head; /* header, then peer_frame_bytes of payload */
  const uint8_t *source;
  uint64_t source_size, source_done;
  uint32_t prefix_bytes, offset_at;
  uint16_t code;
  /* Receiving. */
  uint8_t *rx;
  size_t rx_at, rx_end, rx_capacity;
  slw_rpc_header header;
  bool wants_data;
  uint8_t *memory;
  uint64_t memory_bytes, data_size, data_at;
  size_t data_left, padding_left;
  slw_rpc_client_view view;
  slw_rpc_batch batch;
};

static const uint8_t ZEROS[8] = {0};

slw_rpc_client *slw_rpc_client_new(int fd, uint32_t frame_bytes, uint32_t peer_frame_bytes) {
  slw_rpc_client *client = calloc(1, sizeof *client);
  if (client == NULL) {
    return NULL;
  }
  client->fd = fd;
  client->frame_bytes = frame_bytes;
  client->peer_frame_bytes = peer_frame_bytes & ~7u;
  client->next_id = 1;
  client->rx_capacity = (size_t)frame_bytes + SLW_RPC_HEADER_BYTES + READ_AHEAD_BYTES;
  /* The large ones are touched, and so take memory, only where large frames are in use. */
  client->queue = malloc(QUEUE_BYTES);
  client->head = malloc((size_t)peer_frame_bytes + SLW_RPC_HEADER_BYTES);
  client->rx = malloc(client->rx_capacity);
  if (client->queue == NULL || client->head == NULL || client->rx == NULL) {
    slw_rpc_client_free(client);
    return NULL;
  }
  return client;
}

void slw_rpc_client_free(slw_rpc_client *client) {
  if (client != NULL) {
    free(client->queue);
    free(client->head);
    free(client->rx);
    free(client->batch.replies);
    free(client);
  }
}

uint8_t *slw_rpc_client_request(slw_rpc_client *client, uint32_t *capacity_bytes) {
  *capacity_bytes = client->peer_frame_bytes;
  return client->head + SLW_RPC_HEADER_BYTES;
}

const slw_rpc_client_view *slw_rpc_client_reply(const slw_rpc_client *client) {
  return &client->view;
}

const uint8_t *slw_rpc_client_buffer(const slw_rpc_client *client, uint64_t *size_bytes) {
  *size_bytes = client->rx_capacity;
  return client->rx;
}

uint64_t slw_rpc_client_data_size(const slw_rpc_client *client) { return client->data_size; }

void slw_rpc_client_set_memory(slw_rpc_client *client, void *memory, uint64_t memory_bytes) {
  client->memory = memory;
  client->memory_bytes = memory_bytes;
}

void slw_rpc_client_set_timeout(slw_rpc_client *client, uint32_t timeout_ms) {
  struct timeval limit;
  if (timeout_ms == client->timeout_ms) {
    return;
  }
  client->timeout_ms = timeout_ms;
  limit.tv_sec = (time_t)(timeout_ms / 1000u);
  limit.tv_usec = (suseconds_t)(timeout_ms % 1000u) * 1000;
  (void)setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  (void)setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* --- sending --------------------------------------------------------------------------------- */

static uint32_t take_id(slw_rpc_client *client) {
  uint32_t id = client->next_id++;
  if (client->next_id == FIRST_CALLBACK_ID) {
    client->next_id = 1; /* 0 and what follows mark what the server sends on its own account */
  }
  return id;
}

static void put_header(uint8_t *at, uint32_t size, uint16_t code, uint16_t flags, uint32_t id) {
  slw_rpc_header header;
  header.size = size;
  header.code = code;
  header.flags = flags;
  header.id = id;
  header.channel = 0;
  slw_rpc_header_put(at, &header);
}

static void add_span(slw_rpc_client *client, const void *data, size_t size) {
  if (size > 0) {
    client->out[client->out_count].iov_base = (void *)(uintptr_t)data;
    client->out[client->out_count].iov_len = size;
    client->out_count += 1;
  }
}

static void begin_send(slw_rpc_client *client, uint32_t id) {
  client->wait_id = id;
  client->out_at = 0;
  client->out_count = 0;
  add_span(client, client->queue, client->queue_size);
  client->queue_size = 0;
  client->source = NULL;
  client->source_size = 0;
  client->source_done = 0;
  client->wants_data = false;
  client->memory = NULL;
  client->phase = SENDING;
}

/* Prepare the next frame of a transfer. */
static void add_chunk(slw_rpc_client *client) {
  size_t room = client->peer_frame_bytes - client->prefix_bytes;
  uint64_t left = client->source_size - client->source_done;
  uint64_t count = left < room ? left : room & ~(size_t)7u;
  size_t padded = slw_rpc_padded((size_t)count);
  uint8_t *payload = client->head + SLW_RPC_HEADER_BYTES;
  put_header(client->head, (uint32_t)(client->prefix_bytes + padded), client->code,
             count < left ? SLW_RPC_FLAG_MORE : 0, client->wait_id);
  memcpy(payload + client->offset_at, &client->source_done, 8);
  memcpy(payload + client->offset_at + 8, &count, 8);
  add_span(client, client->head, SLW_RPC_HEADER_BYTES + client->prefix_bytes);
  add_span(client, client->source + client->source_done, (size_t)count);
  add_span(client, ZEROS, padded - (size_t)count);
  client->source_done += count;
}

static int fail_link(void) {
  if (errno == EINTR) {
    return SLW_RPC_CLIENT_INTERRUPTED;
  }
  return errno == EAGAIN || errno == EWOULDBLOCK ? SLW_RPC_CLIENT_TIMEOUT : SLW_RPC_CLIENT_LOST;
}

static int send_spans(slw_rpc_client *client) {
  while (client->out_at < client->out_count) {
    struct msghdr message;
    ssize_t sent;
    memset(&message, 0, sizeof message);
    message.msg_iov = client->out + client->out_at;
    message.msg_iovlen = (size_t)(client->out_count - client->out_at);
    sent = sendmsg(client->fd, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      int status = fail_link();
      /* A server that ended the session said why before it closed: read that. */
      return status == SLW_RPC_CLIENT_LOST ? 0 : status;
    }
    while (client->out_at < client->out_count &&
           (size_t)sent >= client->out[client->out_at].iov_len) {
      sent -= (ssize_t)client->out[client->out_at].iov_len;
      client->out_at += 1;
    }
    if (client->out_at < client->out_count) {
      client->out[client->out_at].iov_base = (char *)client->out[client->out_at].iov_base + sent;
      client->out[client->out_at].iov_len -= (size_t)sent;
    }
  }
  return 0;
}

static int step_sending(slw_rpc_client *client) {
  int status = send_spans(client);
  if (status != 0) {
    return status;
  }
  if (client->out_at < client->out_count || client->source_done >= client->source_size) {
    client->phase = HEADER;
    return 0;
  }
  client->out_at = 0;
  client->out_count = 0;
  add_chunk(client);
  return 0;
}

/* --- receiving ------------------------------------------------------------------------------- */

/* At least `size` unread bytes in rx; reads ahead only as far as `ahead` says. */
static int fill(slw_rpc_client *client, size_t size, size_t ahead) {
  if (client->rx_at == client->rx_end) {
    client->rx_at = 0;
    client->rx_end = 0;
  } else if (client->rx_at + size > client->rx_capacity) {
    memmove(client->rx, client->rx + client->rx_at, client->rx_end - client->rx_at);
    client->rx_end -= client->rx_at;
    client->rx_at = 0;
  }
  while (client->rx_end - client->rx_at < size) {
    size_t need = size - (client->rx_end - client->rx_at);
    size_t room = client->rx_capacity - client->rx_end;
    size_t want = need > ahead ? need : ahead;
    ssize_t got = recv(client->fd, client->rx + client->rx_end, want < room ? want : room, 0);
    if (got < 0) {
      return fail_link();
    }
    if (got == 0) {
      return SLW_RPC_CLIENT_LOST;
    }
    client->rx_end += (size_t)got;
  }
  return 0;
}

static bool is_of_device(const slw_rpc_header *header) {
  return (header->code == SLW_RPC_CALL && header->id >= FIRST_CALLBACK_ID) ||
         (header->code == SLW_RPC_OUTPUT && header->id == 0u);
}

static bool is_expected(const slw_rpc_client *client, const slw_rpc_header *header) {
  return header->code == SLW_RPC_ERROR || is_of_device(header) ||
         (header->code == SLW_RPC_RETURN && header->id == client->wait_id);
}

static int step_header(slw_rpc_client *client) {
  slw_rpc_header *header = &client->header;
  /* Large data goes to its own memory: read only what stands in front of it. */
  bool large = client->wants_data && (client->memory == NULL || client->memory_bytes > 16384u);
  int status = fill(client, SLW_RPC_HEADER_BYTES,
                    large ? SLW_RPC_HEADER_BYTES + DATA_PREFIX_BYTES : READ_AHEAD_BYTES);
  if (status != 0) {
    return status;
  }
  slw_rpc_header_get(client->rx + client->rx_at, header);
  if (header->size > client->frame_bytes || header->size % 8u != 0u ||
      (header->flags & ~SLW_RPC_FLAG_MORE) != 0u || header->channel != 0u ||
      !is_expected(client, header)) {
    return SLW_RPC_CLIENT_PROTOCOL;
  }
  client->rx_at += SLW_RPC_HEADER_BYTES;
  client->phase = client->wants_data && header->code == SLW_RPC_RETURN ? PREFIX : BODY;
  return 0;
}

static int step_body(slw_rpc_client *client) {
  int status = fill(client, client->header.size, 0);
  if (status != 0) {
    return status;
  }
  client->view.reply_at = (uint32_t)client->rx_at;
  client->view.reply_size = client->header.size;
  client->view.frame_id = client->header.id;
  client->view.wait_id = client->wait_id;
  client->rx_at += client->header.size;
  if (is_of_device(&client->header)) {
    client->phase = HEADER; /* the reply is still to come */
    return client->header.code == SLW_RPC_CALL ? SLW_RPC_CLIENT_CALLBACK : SLW_RPC_CLIENT_OUTPUT;
  }
  client->phase = IDLE;
  return 0;
}

static int step_prefix(slw_rpc_client *client) {
  slw_rpc_reader reader;
  uint64_t offset, count;
  int status = fill(client, DATA_PREFIX_BYTES, 0);
  if (status != 0) {
    return status;
  }
  reader = slw_rpc_reader_on(client->rx + client->rx_at, DATA_PREFIX_BYTES);
  client->data_size = slw_rpc_get_u64(&reader);
  offset = slw_rpc_get_u64(&reader);
  count = slw_rpc_get_u64(&reader);
  if (client->memory == NULL && client->data_size > 0u) {
    client->phase = MEMORY;
    return SLW_RPC_CLIENT_NEEDS_MEMORY;
  }
  if (client->data_size != client->memory_bytes || offset != client->data_at ||
      count > client->data_size - client->data_at ||
      client->header.size != DATA_PREFIX_BYTES + slw_rpc_padded((size_t)count)) {
    return SLW_RPC_CLIENT_PROTOCOL;
  }
  client->rx_at += DATA_PREFIX_BYTES;
  client->data_left = (size_t)count;
  client->padding_left = slw_rpc_padded((size_t)count) - (size_t)count;
  client->phase = DATA;
  return 0;
}

static int step_data(slw_rpc_client *client) {
  size_t have = client->rx_end - client->rx_at;
  size_t count = have < client->data_left ? have : client->data_left;
  int status;
  if (count > 0) {
    memcpy(client->memory + client->data_at, client->rx + client->rx_at, count);
    client->rx_at += count;
    client->data_at += count;
    client->data_left -= count;
  }
  while (client->data_left > 0) {
    ssize_t got = recv(client->fd, client->memory + client->data_at, client->data_left,
                       MSG_WAITALL);
    if (got <= 0) {
      return got == 0 ? SLW_RPC_CLIENT_LOST : fail_link();
    }
    client->data_at += (uint64_t)got;
    client->data_left -= (size_t)got;
  }
  status = fill(client, client->padding_left, 0);
  if (status != 0) {
    return status;
  }
  client->rx_at += client->padding_left;
  if ((client->header.flags & SLW_RPC_FLAG_MORE) != 0) {
    client->phase = HEADER;
    return 0;
  }
  client->phase = IDLE;
  return client->data_at == client->data_size ? 0 : SLW_RPC_CLIENT_PROTOCOL;
}

/* An error of the session as a whole, or one after which nothing is answered. */
static bool ends_session(const slw_rpc_batch *batch, const slw_rpc_header *header) {
  uint32_t failure = 0;
  if (header->code == SLW_RPC_ERROR && header->size >= 16u) {
    memcpy(&failure, batch->replies + batch->checked - header->size, 4);
  }
  return header->id == 0u || (failure >= SLW_RPC_FAIL_PROTOCOL && failure <= SLW_RPC_FAIL_BUSY) ||
         failure >= SLW_RPC_FAIL_TIMEOUT;
}

/* Whole frames among the replies that have come. */
static int check_replies(slw_rpc_client *client) {
  slw_rpc_batch *batch = &client->batch;
  while (batch->count > 0u && batch->used - batch->checked >= SLW_RPC_HEADER_BYTES) {
    slw_rpc_header *header = &client->header;
    slw_rpc_header_get(batch->replies + batch->checked, header);
    if (header->size > client->frame_bytes || header->size % 8u != 0u || header->flags != 0u ||
        header->channel != 0u ||
        !((header->code == SLW_RPC_RETURN && header->id == batch->next_id) ||
          (header->code == SLW_RPC_ERROR && (header->id == batch->next_id || header->id == 0u)))) {
      return SLW_RPC_CLIENT_PROTOCOL;
    }
    if (batch->used - batch->checked < SLW_RPC_HEADER_BYTES + (size_t)header->size) {
      break;
    }
    batch->checked += SLW_RPC_HEADER_BYTES + (size_t)header->size;
    batch->next_id += 1u;
    batch->count = ends_session(batch, header) ? 0u : batch->count - 1u;
  }
  return 0;
}

static int receive_replies(slw_rpc_client *client) {
  slw_rpc_batch *batch = &client->batch;
  ssize_t got;
  if (batch->capacity - batch->used < READ_AHEAD_BYTES) {
    size_t capacity = batch->capacity * 2u + 4u * READ_AHEAD_BYTES;
    uint8_t *replies = capacity <= MAX_BATCH_BYTES ? realloc(batch->replies, capacity) : NULL;
    if (replies == NULL) {
      return SLW_RPC_CLIENT_PROTOCOL; /* more than anybody asked for */
    }
    batch->replies = replies;
    batch->capacity = capacity;
  }
  got = recv(client->fd, batch->replies + batch->used, batch->capacity - batch->used,
             MSG_DONTWAIT);
  if (got == 0) {
    return SLW_RPC_CLIENT_LOST;
  }
  if (got < 0) {
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : fail_link();
  }
  batch->used += (size_t)got;
  return check_replies(client);
}

static int step_batch(slw_rpc_client *client) {
  slw_rpc_batch *batch = &client->batch;
  int timeout_ms = client->timeout_ms == 0u || client->timeout_ms > INT_MAX
                       ? -1
                       : (int)client->timeout_ms;
  while (batch->count > 0u) {
    struct pollfd poller = {client->fd, POLLIN, 0};
    int ready;
    int status;
    if (batch->left > 0u) {
      ssize_t sent = send(client->fd, batch->frames, batch->left, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        batch->frames += sent;
        batch->left -= (size_t)sent;
      } else if (errno == EINTR) {
        return SLW_RPC_CLIENT_INTERRUPTED;
      } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        batch->left = 0; /* a server that ended the session said why: read that */
      }
      poller.events = batch->left > 0u ? POLLIN | POLLOUT : POLLIN;
    }
    ready = poll(&poller, 1, timeout_ms);
    if (ready <= 0) {
      return ready == 0 ? SLW_RPC_CLIENT_TIMEOUT : fail_link();
    }
    if ((poller.revents & ~POLLOUT) != 0) {
      status = receive_replies(client);
      if (status != 0) {
        return status;
      }
    }
  }
  client->phase = IDLE;
  client->header.code = SLW_RPC_RETURN;
  return 0;
}

int slw_rpc_client_continue(slw_rpc_client *client) {
  int status = 0;
  while (status == 0 && client->phase != IDLE) {
    switch (client->phase) {
      case SENDING:
        status = step_sending(client);
        break;
      case HEADER:
        status = step_header(client);
        break;
      case BODY:
        status = step_body(client);
        break;
      case PREFIX:
      case MEMORY:
        status = step_prefix(client);
        break;
      case DATA:
        status = step_data(client);
        break;
      case BATCH:
        status = step_batch(client);
        break;
      case IDLE:
        break;
    }
  }
  if (status != 0) {
    return status;
  }
  return client->header.code == SLW_RPC_ERROR ? SLW_RPC_CLIENT_FAILED : SLW_RPC_CLIENT_DONE;
}

/* --- operations ------------------------------------------------------------------------------ */

uint32_t slw_rpc_client_post(slw_rpc_client *client, uint16_t code, uint16_t flags,
                             uint32_t size_bytes) {
  size_t size = SLW_RPC_HEADER_BYTES + (size_t)size_bytes;
  uint32_t id;
  if (size > QUEUE_BYTES - client->queue_size) {
    return 0;
  }
  id = take_id(client);
  put_header(client->head, size_bytes, code, flags, id);
  memcpy(client->queue + client->queue_size, client->head, size);
  client->queue_size += size;
  return id;
}

int slw_rpc_client_collect(slw_rpc_client *client, uint32_t id) {
  begin_send(client, id);
  return slw_rpc_client_continue(client);
}

uint32_t slw_rpc_client_take_ids(slw_rpc_client *client, uint32_t count) {
  uint32_t first;
  if (count > FIRST_CALLBACK_ID - client->next_id) {
    client->next_id = 1;
  }
  first = client->next_id;
  client->next_id += count;
  if (client->next_id == FIRST_CALLBACK_ID) {
    client->next_id = 1;
  }
  return first;
}

int slw_rpc_client_exchange(slw_rpc_client *client, const uint8_t *frames, uint64_t size_bytes,
                            uint32_t first_id, uint32_t count) {
  slw_rpc_batch *batch = &client->batch;
  batch->frames = frames;
  batch->left = (size_t)size_bytes;
  batch->next_id = first_id;
  batch->count = count;
  batch->checked = 0;
  batch->used = 0;
  client->phase = BATCH;
  return slw_rpc_client_continue(client);
}

const uint8_t *slw_rpc_client_batch(const slw_rpc_client *client, uint64_t *size_bytes) {
  *size_bytes = client->batch.checked;
  return client->batch.replies;
}

int slw_rpc_client_collect_data(slw_rpc_client *client, uint32_t id, void *memory,
                                uint64_t memory_bytes) {
  begin_send(client, id);
  client->wants_data = true;
  client->memory = memory;
  client->memory_bytes = memory_bytes;
  client->data_at = 0;
  return slw_rpc_client_continue(client);
}

int slw_rpc_client_answer(slw_rpc_client *client, uint16_t code, uint32_t callback_id,
                          uint32_t size_bytes, uint32_t wait_id) {
  begin_send(client, wait_id);
  put_header(client->head, size_bytes, code, 0, callback_id);
  add_span(client, client->head, SLW_RPC_HEADER_BYTES + (size_t)size_bytes);
  return slw_rpc_client_continue(client);
}

int slw_rpc_client_call(slw_rpc_client *client, uint16_t code, uint32_t size_bytes) {
  begin_send(client, take_id(client));
  put_header(client->head, size_bytes, code, 0, client->wait_id);
  add_span(client, client->head, SLW_RPC_HEADER_BYTES + (size_t)size_bytes);
  return slw_rpc_client_continue(client);
}

int slw_rpc_client_send_data(slw_rpc_client *client, uint16_t code, uint32_t prefix_bytes,
                             uint32_t offset_at, const void *data, uint64_t size_bytes) {
  begin_send(client, take_id(client));
  client->code = code;
  client->prefix_bytes = prefix_bytes;
  client->offset_at = offset_at;
  client->source = data;
  client->source_size = size_bytes;
  add_chunk(client);
  return slw_rpc_client_continue(client);
}

int slw_rpc_client_receive_data(slw_rpc_client *client, uint16_t code, uint32_t size_bytes,
                                void *memory, uint64_t memory_bytes) {
  begin_send(client, take_id(client));
  put_header(client->head, size_bytes, code, 0, client->wait_id);
  add_span(client, client->head, SLW_RPC_HEADER_BYTES + (size_t)size_bytes);
  client->wants_data = true;
  client->memory = memory;
  client->memory_bytes = memory_bytes;
  client->data_at = 0;
  return slw_rpc_client_continue(client);
}
