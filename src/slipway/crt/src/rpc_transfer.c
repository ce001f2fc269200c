/* SPDX-License-Identifier: Apache-2.0
 * Bulk data: tensors and files, in as many frames as their size needs, straight between the
 * stream and their memory.
 *
 * The frames of one transfer carry one id. All but the last are flagged MORE and get no reply;
 * an error in one of them is told in answer to the last, and the frames between are skipped.
 */
#include <string.h>

#include "rpc_internal.h"
#include "slipway/tensor.h"

#define WRITE_PREFIX_BYTES 24u /* of TENSOR_WRITE: handle, offset, nbytes */
#define FILE_PREFIX_BYTES 32u  /* of FILE_WRITE: total, offset, nbytes, name_size, 0 */
#define FILE_STEP_BYTES 262144u /* of one write to a file: large, but within a cache */
#define DATA_PREFIX_BYTES 24u  /* of the replies to the READs: total, offset, nbytes */

int slw_rpc_tensor_range(slw_rpc_session *session, uint64_t handle, uint64_t offset,
                         uint64_t nbytes, uint8_t **at) {
  DLTensor *tensor = slw_rpc_tensor_get(session, handle);
  size_t size = 0;
  *at = NULL;
  if (tensor == NULL) {
    return slw_rpc_fail_handle(session, "tensor");
  }
  if (slw_tensor_size_bytes(tensor->shape, tensor->ndim, tensor->dtype, &size) != SLW_OK ||
      !slw_tensor_is_contiguous(tensor)) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "ValueError",
                        "the tensor's elements do not lie one after the other; copy it on the "
                        "device first", NULL);
  }
  if (offset > size || nbytes > size - offset) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "ValueError",
                        "the copy reaches beyond the end of the tensor", NULL);
  }
  if (tensor->device.device_type == kDLCPU && !session->config.hooks->memory_is_apart) {
    *at = (uint8_t *)tensor->data + tensor->byte_offset + offset;
  } else if (session->config.hooks->tensor_copy == NULL) {
    return slw_rpc_fail_unsupported(session, "copies to that kind of memory");
  }
  return SLW_RPC_OK;
}

/* Whether this chunk belongs to a transfer that has failed already. */
static bool is_lost(const slw_rpc_session *session, const slw_rpc_header *header) {
  return session->transfer_failed && session->failed_transfer == header->id;
}

/* After one chunk: reply, or keep its failure for the last one. */
static void end_chunk(slw_rpc_session *session, const slw_rpc_header *header, int failure) {
  bool more = (header->flags & SLW_RPC_FLAG_MORE) != 0;
  if (is_lost(session, header)) {
    failure = (int)session->failure.code;
  }
  session->transfer_failed = more && failure != SLW_RPC_OK;
  session->failed_transfer = header->id;
  if (more || (header->flags & SLW_RPC_FLAG_NO_REPLY) != 0) {
    return;
  }
  if (failure != SLW_RPC_OK) {
    (void)slw_rpc_send_failure(session, header->id);
  } else {
    slw_rpc_writer writer = slw_rpc_reply(session);
    slw_rpc_put_value(&writer, SLW_RPC_NONE, 0, 0);
    slw_rpc_reply_end(session, SLW_RPC_RETURN, header->id, writer.at);
  }
}

static bool end_malformed(slw_rpc_session *session, const slw_rpc_header *header,
                          const char *what) {
  (void)slw_rpc_fail_malformed(session, what);
  (void)slw_rpc_send_failure(session, header->id);
  (void)slw_rpc_flush(session);
  session->ended = true;
  return false;
}

/* Receive into memory that the host cannot address, through rx. */
static bool receive_staged(slw_rpc_session *session, DLTensor *tensor, uint64_t offset,
                           uint64_t nbytes, int *failure) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  while (nbytes > 0u) {
    size_t count = session->config.frame_bytes < nbytes ? session->config.frame_bytes
                                                        : (size_t)nbytes;
    if (!slw_rpc_fill(session, count)) {
      return false;
    }
    if (*failure == SLW_RPC_OK &&
        hooks->tensor_copy(hooks->context, tensor, offset, session->rx + session->rx_at, count,
                           true) != 0) {
      *failure = slw_rpc_fail_hook(session, SLW_RPC_FAIL_IO);
    }
    session->rx_at += count;
    offset += count;
    nbytes -= count;
  }
  return true;
}

/* TENSOR_WRITE: u64 handle, u64 offset, u64 nbytes, data. */
bool slw_rpc_bulk_tensor_write(slw_rpc_session *session, const slw_rpc_header *header) {
  slw_rpc_reader reader;
  uint64_t handle, offset, nbytes;
  size_t remaining;
  uint8_t *at = NULL;
  int failure = SLW_RPC_OK;
  if (header->size < WRITE_PREFIX_BYTES || !slw_rpc_fill(session, WRITE_PREFIX_BYTES)) {
    return end_malformed(session, header, "a tensor write without its fields");
  }
  reader = slw_rpc_reader_on(session->rx + session->rx_at, WRITE_PREFIX_BYTES);
  handle = slw_rpc_get_u64(&reader);
  offset = slw_rpc_get_u64(&reader);
  nbytes = slw_rpc_get_u64(&reader);
  session->rx_at += WRITE_PREFIX_BYTES;
  remaining = header->size - WRITE_PREFIX_BYTES;
  if (nbytes > remaining || slw_rpc_padded((size_t)nbytes) != remaining) {
    return end_malformed(session, header, "the data of a tensor write is not of the told size");
  }
  if (is_lost(session, header)) {
    failure = (int)session->failure.code;
  } else {
    failure = slw_rpc_tensor_range(session, handle, offset, nbytes, &at);
  }
  if (failure == SLW_RPC_OK && at == NULL) {
    if (!receive_staged(session, slw_rpc_tensor_get(session, handle), offset, nbytes, &failure)) {
      return false;
    }
    remaining -= (size_t)nbytes;
  } else if (failure == SLW_RPC_OK) {
    if (!slw_rpc_take(session, at, (size_t)nbytes)) {
      return false;
    }
    remaining -= (size_t)nbytes;
  }
  if (!slw_rpc_take(session, NULL, remaining)) {
    return false;
  }
  end_chunk(session, header, failure);
  return true;
}

static int begin_file(slw_rpc_session *session, const slw_rpc_header *header, const char *name,
                      uint64_t total) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  void *memory = NULL;
  int failure;
  if (hooks->file_create == NULL) {
    return slw_rpc_fail_unsupported(session, "files");
  }
  if (!slw_rpc_is_file_name(name)) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "ValueError", "'", name,
                        "' is not a name for a file on the device: a session's files lie in one "
                        "folder of their own; use a plain name without '/', '\\' or ':'", NULL);
  }
  if (session->file_open_for_write) {
    hooks->file_abort(hooks->context);
    session->file_open_for_write = false;
  }
  failure = hooks->file_create(hooks->context, name, total, &memory);
  if (failure != SLW_RPC_OK) {
    return slw_rpc_fail_hook(session, failure);
  }
  session->file_open_for_write = true;
  session->file_id = header->id;
  session->file_size = total;
  session->file_done = 0;
  session->file_memory = (uint8_t *)memory;
  return SLW_RPC_OK;
}

static bool receive_file(slw_rpc_session *session, uint64_t offset, uint64_t nbytes,
                         int *failure) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  if (session->file_memory != NULL) {
    return slw_rpc_take(session, session->file_memory + offset, (size_t)nbytes);
  }
  while (nbytes > 0u) {
    size_t count = nbytes < FILE_STEP_BYTES ? (size_t)nbytes : FILE_STEP_BYTES;
    count = count < session->config.frame_bytes ? count : session->config.frame_bytes;
    if (!slw_rpc_fill(session, count)) {
      return false;
    }
    if (*failure == SLW_RPC_OK &&
        hooks->file_write(hooks->context, offset, session->rx + session->rx_at, count) != 0) {
      *failure = slw_rpc_fail_hook(session, SLW_RPC_FAIL_IO);
    }
    session->rx_at += count;
    offset += count;
    nbytes -= count;
  }
  return true;
}

/* FILE_WRITE: u64 total, u64 offset, u64 nbytes, u32 name_size, u32 0, name (NUL, padded), data.
 * The first chunk has offset 0; the one without MORE completes the file. */
bool slw_rpc_bulk_file_write(slw_rpc_session *session, const slw_rpc_header *header) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  slw_rpc_reader reader;
  uint64_t total, offset, nbytes;
  uint32_t name_size;
  size_t name_bytes, remaining;
  const char *name;
  int failure = SLW_RPC_OK;
  if (header->size < FILE_PREFIX_BYTES || !slw_rpc_fill(session, FILE_PREFIX_BYTES)) {
    return end_malformed(session, header, "a file write without its fields");
  }
  reader = slw_rpc_reader_on(session->rx + session->rx_at, FILE_PREFIX_BYTES);
  total = slw_rpc_get_u64(&reader);
  offset = slw_rpc_get_u64(&reader);
  nbytes = slw_rpc_get_u64(&reader);
  name_size = slw_rpc_get_u32(&reader);
  session->rx_at += FILE_PREFIX_BYTES;
  remaining = header->size - FILE_PREFIX_BYTES;
  name_bytes = slw_rpc_padded((size_t)name_size + 1u);
  if (name_size > SLW_RPC_NAME_MAX_BYTES || name_bytes > remaining ||
      nbytes > remaining - name_bytes || slw_rpc_padded((size_t)nbytes) != remaining - name_bytes ||
      offset > total || nbytes > total - offset || !slw_rpc_fill(session, name_bytes)) {
    return end_malformed(session, header, "the fields of a file write contradict each other");
  }
  reader = slw_rpc_reader_on(session->rx + session->rx_at, name_bytes);
  name = slw_rpc_get_name(&reader, name_size);
  if (name == NULL) {
    return end_malformed(session, header, "no usable file name");
  }
  if (is_lost(session, header)) {
    failure = (int)session->failure.code;
  } else if (offset == 0u && !(session->file_open_for_write && session->file_id == header->id)) {
    failure = begin_file(session, header, name, total);
  } else if (!session->file_open_for_write || session->file_id != header->id ||
             session->file_size != total) {
    failure = slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "RPCError",
                           "a piece of a file came without its beginning", NULL);
  } else if (offset != session->file_done) {
    failure = slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "RPCError",
                           "the pieces of a file do not follow one another", NULL);
  }
  session->rx_at += name_bytes;
  remaining -= name_bytes;
  if (failure == SLW_RPC_OK) {
    if (!receive_file(session, offset, nbytes, &failure)) {
      return false;
    }
    remaining -= (size_t)nbytes;
    session->file_done += nbytes;
  }
  if (!slw_rpc_take(session, NULL, remaining)) {
    return false;
  }
  if (failure == SLW_RPC_OK && (header->flags & SLW_RPC_FLAG_MORE) == 0 &&
      session->file_done != total) {
    failure = slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "RPCError",
                           "a file ended before its announced size", NULL);
  }
  if (session->file_open_for_write && session->file_id == header->id &&
      (failure != SLW_RPC_OK || (header->flags & SLW_RPC_FLAG_MORE) == 0)) {
    session->file_open_for_write = false;
    if (failure != SLW_RPC_OK) {
      hooks->file_abort(hooks->context);
    } else if (hooks->file_commit(hooks->context) != 0) {
      failure = slw_rpc_fail_hook(session, SLW_RPC_FAIL_IO);
    }
  }
  end_chunk(session, header, failure);
  return true;
}

/* Send `nbytes` as RETURN frames, from `memory` or, when that is NULL, through tx. */
static int send_bulk(slw_rpc_session *session, const slw_rpc_header *header, uint64_t start,
                     uint64_t nbytes, const uint8_t *memory, DLTensor *tensor) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  uint64_t done = 0;
  do {
    slw_rpc_writer writer = slw_rpc_reply(session);
    size_t room = (writer.capacity - DATA_PREFIX_BYTES) & ~(size_t)7u;
    size_t count = nbytes - done < room ? (size_t)(nbytes - done) : room;
    uint16_t flags = done + count < nbytes ? SLW_RPC_FLAG_MORE : 0;
    const uint8_t *data = memory != NULL ? memory + done : writer.base + DATA_PREFIX_BYTES;
    slw_rpc_put_u64(&writer, nbytes);
    slw_rpc_put_u64(&writer, done);
    slw_rpc_put_u64(&writer, count);
    if (memory == NULL && count > 0u) {
      uint8_t *to = writer.base + DATA_PREFIX_BYTES;
      int status = tensor != NULL
                       ? hooks->tensor_copy(hooks->context, tensor, start + done, to, count, false)
                       : hooks->file_read(hooks->context, start + done, to, count);
      if (status != 0) {
        return slw_rpc_fail_hook(session, SLW_RPC_FAIL_IO);
      }
    }
    if (!slw_rpc_send_with(session, flags, header->id, DATA_PREFIX_BYTES, data, count)) {
      return SLW_RPC_OK;
    }
    done += count;
  } while (done < nbytes);
  return SLW_RPC_OK;
}

/* TENSOR_READ: u64 handle, u64 offset, u64 nbytes. */
bool slw_rpc_bulk_tensor_read(slw_rpc_session *session, const slw_rpc_header *header,
                              slw_rpc_reader *reader) {
  uint64_t handle = slw_rpc_get_u64(reader);
  uint64_t offset = slw_rpc_get_u64(reader);
  uint64_t nbytes = slw_rpc_get_u64(reader);
  uint8_t *at = NULL;
  int failure;
  if (!reader->ok) {
    return end_malformed(session, header, "a tensor read without its fields");
  }
  failure = slw_rpc_tensor_range(session, handle, offset, nbytes, &at);
  if (failure == SLW_RPC_OK) {
    failure = send_bulk(session, header, offset, nbytes, at, slw_rpc_tensor_get(session, handle));
  }
  return failure == SLW_RPC_OK ? !session->ended : slw_rpc_send_failure(session, header->id);
}

static int check_file_name(slw_rpc_session *session, slw_rpc_reader *reader, const char **name) {
  uint32_t size = slw_rpc_get_u32(reader);
  uint32_t reserved = slw_rpc_get_u32(reader);
  (void)reserved;
  *name = slw_rpc_get_name(reader, size);
  if (*name == NULL) {
    return slw_rpc_fail_malformed(session, "no usable file name");
  }
  if (!slw_rpc_is_file_name(*name)) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "ValueError", "'", *name,
                        "' is not a name of a file of this session", NULL);
  }
  return SLW_RPC_OK;
}

/* FILE_READ: u32 size, u32 0, name. */
bool slw_rpc_bulk_file_read(slw_rpc_session *session, const slw_rpc_header *header,
                            slw_rpc_reader *reader) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  const char *name = NULL;
  const void *memory = NULL;
  uint64_t size = 0;
  int failure = check_file_name(session, reader, &name);
  if (failure == SLW_RPC_OK && hooks->file_open == NULL) {
    failure = slw_rpc_fail_unsupported(session, "files");
  }
  if (failure == SLW_RPC_OK && session->file_open_for_write) {
    failure = slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "RPCError",
                           "no file can be read in the middle of a write to one", NULL);
  }
  if (failure == SLW_RPC_OK) {
    failure = hooks->file_open(hooks->context, name, &size, &memory);
    if (failure != SLW_RPC_OK) {
      (void)slw_rpc_fail_hook(session, failure);
    } else {
      failure = send_bulk(session, header, 0, size, (const uint8_t *)memory, NULL);
      hooks->file_close(hooks->context);
    }
  }
  if (failure == SLW_RPC_FAIL_PROTOCOL) {
    (void)slw_rpc_send_failure(session, header->id);
    (void)slw_rpc_flush(session);
    session->ended = true;
    return false;
  }
  return failure == SLW_RPC_OK ? !session->ended : slw_rpc_send_failure(session, header->id);
}

/* FILE_REMOVE: u32 size, u32 0, name. */
int slw_rpc_verb_file_remove(slw_rpc_session *session, const slw_rpc_header *header,
                             slw_rpc_reader *reader, slw_rpc_writer *writer) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  const char *name = NULL;
  int failure = check_file_name(session, reader, &name);
  (void)header;
  if (failure != SLW_RPC_OK) {
    return failure;
  }
  if (hooks->file_remove == NULL) {
    return slw_rpc_fail_unsupported(session, "files");
  }
  failure = hooks->file_remove(hooks->context, name);
  slw_rpc_put_value(writer, SLW_RPC_NONE, 0, 0);
  return failure == SLW_RPC_OK ? SLW_RPC_OK : slw_rpc_fail_hook(session, failure);
}

/* FILE_LIST: nothing. Returns text, one line "size name" for each file. */
int slw_rpc_verb_file_list(slw_rpc_session *session, const slw_rpc_header *header,
                           slw_rpc_reader *reader, slw_rpc_writer *writer) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  size_t size = 0;
  size_t room = writer->capacity - SLW_RPC_VALUE_BYTES - 8u;
  char *text = (char *)writer->base + SLW_RPC_VALUE_BYTES;
  int failure;
  (void)header;
  (void)reader;
  if (hooks->file_list == NULL) {
    return slw_rpc_fail_unsupported(session, "files");
  }
  failure = hooks->file_list(hooks->context, text, room, &size);
  if (failure != SLW_RPC_OK) {
    return slw_rpc_fail_hook(session, failure);
  }
  slw_rpc_put_value(writer, SLW_RPC_STR, (uint32_t)size, SLW_RPC_VALUE_BYTES);
  writer->at += size;
  slw_rpc_put_bytes(writer, "", 1);
  return SLW_RPC_OK;
}
