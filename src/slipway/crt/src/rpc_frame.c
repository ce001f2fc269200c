/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/rpc_frame.h"

#include <string.h> /* memcpy, memset: compilers emit them in freestanding code anyway */

size_t slw_rpc_padded(size_t size) { return (size + 7u) & ~(size_t)7u; }

size_t slw_rpc_text_size(const char *text) {
  size_t size = 0;
  while (text[size] != '\0') {
    ++size;
  }
  return size;
}

void slw_rpc_header_put(uint8_t out[SLW_RPC_HEADER_BYTES], const slw_rpc_header *header) {
  memcpy(out, &header->size, 4);
  memcpy(out + 4, &header->code, 2);
  memcpy(out + 6, &header->flags, 2);
  memcpy(out + 8, &header->id, 4);
  memcpy(out + 12, &header->channel, 4);
}

void slw_rpc_header_get(const uint8_t in[SLW_RPC_HEADER_BYTES], slw_rpc_header *header) {
  memcpy(&header->size, in, 4);
  memcpy(&header->code, in + 4, 2);
  memcpy(&header->flags, in + 6, 2);
  memcpy(&header->id, in + 8, 4);
  memcpy(&header->channel, in + 12, 4);
}

slw_rpc_reader slw_rpc_reader_on(const void *payload, size_t size) {
  slw_rpc_reader reader;
  reader.base = (const uint8_t *)payload;
  reader.size = size;
  reader.at = 0;
  reader.ok = true;
  return reader;
}

const uint8_t *slw_rpc_get_bytes(slw_rpc_reader *reader, size_t size) {
  const uint8_t *bytes;
  if (!reader->ok || size > reader->size - reader->at) {
    reader->ok = false;
    return NULL;
  }
  bytes = reader->base + reader->at;
  reader->at += size;
  return bytes;
}

uint8_t slw_rpc_get_u8(slw_rpc_reader *reader) {
  const uint8_t *bytes = slw_rpc_get_bytes(reader, 1);
  return bytes == NULL ? 0 : *bytes;
}

uint16_t slw_rpc_get_u16(slw_rpc_reader *reader) {
  uint16_t value = 0;
  const uint8_t *bytes = slw_rpc_get_bytes(reader, 2);
  if (bytes != NULL) {
    memcpy(&value, bytes, 2);
  }
  return value;
}

uint32_t slw_rpc_get_u32(slw_rpc_reader *reader) {
  uint32_t value = 0;
  const uint8_t *bytes = slw_rpc_get_bytes(reader, 4);
  if (bytes != NULL) {
    memcpy(&value, bytes, 4);
  }
  return value;
}

uint64_t slw_rpc_get_u64(slw_rpc_reader *reader) {
  uint64_t value = 0;
  const uint8_t *bytes = slw_rpc_get_bytes(reader, 8);
  if (bytes != NULL) {
    memcpy(&value, bytes, 8);
  }
  return value;
}

const char *slw_rpc_get_name(slw_rpc_reader *reader, size_t size) {
  const uint8_t *bytes;
  size_t i;
  if (size > SLW_RPC_NAME_MAX_BYTES) {
    reader->ok = false;
    return NULL;
  }
  bytes = slw_rpc_get_bytes(reader, size + 1u);
  if (bytes == NULL) {
    return NULL;
  }
  for (i = 0; i < size; ++i) {
    if (bytes[i] == 0) {
      reader->ok = false;
      return NULL;
    }
  }
  if (bytes[size] != 0) {
    reader->ok = false;
    return NULL;
  }
  return (const char *)bytes;
}

const uint8_t *slw_rpc_at(const slw_rpc_reader *reader, uint64_t offset, uint64_t size) {
  if (offset > reader->size || size > reader->size - offset) {
    return NULL;
  }
  return reader->base + (size_t)offset;
}

slw_rpc_writer slw_rpc_writer_on(void *payload, size_t capacity) {
  slw_rpc_writer writer;
  writer.base = (uint8_t *)payload;
  writer.capacity = capacity;
  writer.at = 0;
  writer.ok = true;
  return writer;
}

void slw_rpc_put_bytes(slw_rpc_writer *writer, const void *bytes, size_t size) {
  if (!writer->ok || size > writer->capacity - writer->at) {
    writer->ok = false;
    return;
  }
  if (size > 0) {
    memcpy(writer->base + writer->at, bytes, size);
  }
  writer->at += size;
}

void slw_rpc_put_u16(slw_rpc_writer *writer, uint16_t value) { slw_rpc_put_bytes(writer, &value, 2); }
void slw_rpc_put_u32(slw_rpc_writer *writer, uint32_t value) { slw_rpc_put_bytes(writer, &value, 4); }
void slw_rpc_put_u64(slw_rpc_writer *writer, uint64_t value) { slw_rpc_put_bytes(writer, &value, 8); }

void slw_rpc_put_padding(slw_rpc_writer *writer) {
  static const uint8_t zeros[8] = {0};
  slw_rpc_put_bytes(writer, zeros, slw_rpc_padded(writer->at) - writer->at);
}

void slw_rpc_put_value(slw_rpc_writer *writer, int32_t tag, uint32_t size, uint64_t payload) {
  slw_rpc_put_bytes(writer, &tag, 4);
  slw_rpc_put_u32(writer, size);
  slw_rpc_put_u64(writer, payload);
}

/* One character; its bytes, or 0 where there is no valid one. The shortest form only. */
static size_t get_character(const uint8_t *at, uint32_t *out) {
  static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
  size_t size = at[0] < 0x80u ? 1u
                              : (at[0] >= 0xc2u && at[0] < 0xe0u
                                     ? 2u
                                     : (at[0] >= 0xe0u && at[0] < 0xf0u
                                            ? 3u
                                            : (at[0] >= 0xf0u && at[0] < 0xf5u ? 4u : 0u)));
  uint32_t value = size == 1u ? at[0] : (uint32_t)at[0] & (0x7fu >> size);
  size_t i;
  for (i = 1; i < size; ++i) {
    if ((at[i] & 0xc0u) != 0x80u) { /* a NUL ends it here, too */
      return 0;
    }
    value = value << 6 | (at[i] & 0x3fu);
  }
  if (size == 0u || value < smallest[size] || value > 0x10ffffu ||
      (value >= 0xd800u && value < 0xe000u)) {
    return 0;
  }
  *out = value;
  return size;
}

bool slw_rpc_is_printable(const char *text) {
  const uint8_t *at = (const uint8_t *)text;
  while (*at != 0u) {
    uint32_t value = 0;
    size_t size = get_character(at, &value);
    if (size == 0u || value < 0x20u || (value >= 0x7fu && value < 0xa0u) || value == 0xadu ||
        value == 0x61cu || (value >= 0x200bu && value < 0x2010u) ||
        (value >= 0x2028u && value < 0x202fu) || (value >= 0x2060u && value < 0x2070u) ||
        value == 0xfeffu || (value >= 0xfff9u && value < 0xfffcu) || value >= 0xe0000u) {
      return false;
    }
    at += size;
  }
  return true;
}

bool slw_rpc_is_file_name(const char *name) {
  size_t i;
  if (name[0] == '\0' || (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))) {
    return false;
  }
  for (i = 0; name[i] != '\0'; ++i) {
    /* '/' and '\\' separate folders, ':' names drives and streams, the rest is not printable. */
    unsigned char letter = (unsigned char)name[i];
    if (letter < 0x20 || letter == 0x7f || letter == '/' || letter == '\\' || letter == ':') {
      return false;
    }
  }
  return i <= SLW_RPC_NAME_MAX_BYTES;
}
