/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/serial_link.h"

#include <string.h>

#define MARK 0x7Eu
#define HEAD_BYTES 4u /* kind, sequence, size */
#define CRC_BYTES 4u
#define START_PAYLOAD_BYTES 3u

enum outcome { GOT_PACKET, GOT_NOISE, GOT_DAMAGE };

uint32_t slw_serial_crc32(uint32_t crc, const void *data, size_t size_bytes) {
  static const uint32_t by_nibble[16] = {
      0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u,
      0x4DB26158u, 0x5005713Cu, 0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu,
      0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu};
  const uint8_t *at = data;
  size_t i;
  crc = ~crc;
  for (i = 0; i < size_bytes; ++i) {
    crc ^= at[i];
    crc = (crc >> 4) ^ by_nibble[crc & 15u];
    crc = (crc >> 4) ^ by_nibble[crc & 15u];
  }
  return ~crc;
}

void slw_serial_link_init(slw_serial_link *link, const slw_serial_port *port) {
  memset(link, 0, sizeof *link);
  link->port = *port;
}

static uint8_t wait_byte(slw_serial_link *link) {
  int byte;
  do {
    byte = link->port.get(link->port.context);
  } while (byte < 0);
  return (uint8_t)byte;
}

static void put_bytes(slw_serial_link *link, const void *data, size_t size_bytes) {
  const uint8_t *at = data;
  size_t i;
  for (i = 0; i < size_bytes; ++i) {
    link->port.put(link->port.context, at[i]);
  }
}

static void send_packet(slw_serial_link *link, uint8_t kind, const void *payload,
                        size_t size_bytes) {
  uint8_t head[1u + HEAD_BYTES] = {MARK, kind, link->send_sequence, (uint8_t)size_bytes,
                                   (uint8_t)(size_bytes >> 8)};
  uint32_t crc = slw_serial_crc32(0, head + 1, HEAD_BYTES);
  uint8_t tail[CRC_BYTES];
  crc = slw_serial_crc32(crc, payload, size_bytes);
  tail[0] = (uint8_t)crc;
  tail[1] = (uint8_t)(crc >> 8);
  tail[2] = (uint8_t)(crc >> 16);
  tail[3] = (uint8_t)(crc >> 24);
  put_bytes(link, head, sizeof head);
  put_bytes(link, payload, size_bytes);
  put_bytes(link, tail, sizeof tail);
  link->send_sequence = (uint8_t)(link->send_sequence + 1u);
}

static void send_fault(slw_serial_link *link, uint8_t fault) {
  send_packet(link, SLW_SERIAL_FAULT, &fault, 1);
  link->is_open = false;
}

/* Read one packet into link->packet, beginning at its mark. */
static enum outcome receive_packet(slw_serial_link *link, uint8_t *kind, uint8_t *sequence) {
  uint8_t head[HEAD_BYTES];
  uint8_t tail[CRC_BYTES];
  uint32_t crc;
  size_t size;
  size_t i;
  if (wait_byte(link) != MARK) {
    return GOT_NOISE;
  }
  for (i = 0; i < HEAD_BYTES; ++i) {
    head[i] = wait_byte(link);
  }
  size = (size_t)head[2] | ((size_t)head[3] << 8);
  if (size > sizeof link->packet) {
    return GOT_NOISE;
  }
  for (i = 0; i < size; ++i) {
    link->packet[i] = wait_byte(link);
  }
  for (i = 0; i < CRC_BYTES; ++i) {
    tail[i] = wait_byte(link);
  }
  crc = slw_serial_crc32(slw_serial_crc32(0, head, HEAD_BYTES), link->packet, size);
  if (crc != ((uint32_t)tail[0] | ((uint32_t)tail[1] << 8) | ((uint32_t)tail[2] << 16) |
              ((uint32_t)tail[3] << 24))) {
    return GOT_DAMAGE;
  }
  *kind = head[0];
  *sequence = head[1];
  link->packet_at = 0;
  link->packet_size = size;
  return GOT_PACKET;
}

static bool is_start(const slw_serial_link *link, uint8_t kind) {
  return kind == SLW_SERIAL_START && link->packet_size >= 1u &&
         link->packet[0] == SLW_SERIAL_VERSION;
}

void slw_serial_link_accept(slw_serial_link *link) {
  const uint8_t answer[START_PAYLOAD_BYTES] = {SLW_SERIAL_VERSION,
                                               (uint8_t)SLW_SERIAL_PAYLOAD_BYTES,
                                               (uint8_t)(SLW_SERIAL_PAYLOAD_BYTES >> 8)};
  uint8_t kind = 0;
  uint8_t sequence = 0;
  while (!link->was_restarted &&
         (receive_packet(link, &kind, &sequence) != GOT_PACKET || !is_start(link, kind))) {
  }
  link->was_restarted = false;
  link->packet_at = 0;
  link->packet_size = 0;
  link->receive_sequence = 1;
  link->send_sequence = 0;
  link->is_open = true;
  send_packet(link, SLW_SERIAL_START, answer, sizeof answer);
}

/* Wait for the stream's next bytes; false when it has ended. */
static bool next_data(slw_serial_link *link) {
  uint8_t kind = 0;
  uint8_t sequence = 0;
  switch (receive_packet(link, &kind, &sequence)) {
    case GOT_NOISE:
      send_fault(link, SLW_SERIAL_FAULT_FRAMING);
      break;
    case GOT_DAMAGE:
      send_fault(link, SLW_SERIAL_FAULT_CHECKSUM);
      break;
    case GOT_PACKET:
    default:
      if (is_start(link, kind)) {
        link->was_restarted = true;
        link->is_open = false;
      } else if (kind == SLW_SERIAL_FAULT) {
        link->is_open = false;
      } else if (kind != SLW_SERIAL_DATA || sequence != link->receive_sequence) {
        send_fault(link, SLW_SERIAL_FAULT_SEQUENCE);
      } else {
        link->receive_sequence = (uint8_t)(link->receive_sequence + 1u);
      }
      break;
  }
  return link->is_open;
}

static ptrdiff_t read_stream(void *context, void *buffer, size_t min, size_t max) {
  slw_serial_link *link = context;
  uint8_t *to = buffer;
  size_t have = 0;
  while (have < max) {
    size_t count = link->packet_size - link->packet_at;
    if (count == 0u) {
      if (have >= min) {
        break;
      }
      if (!link->is_open || !next_data(link)) {
        return -1;
      }
      continue;
    }
    count = count < max - have ? count : max - have;
    memcpy(to + have, link->packet + link->packet_at, count);
    link->packet_at += count;
    have += count;
  }
  return (ptrdiff_t)have;
}

static int write_stream(void *context, const slw_rpc_span *spans, size_t count) {
  slw_serial_link *link = context;
  size_t i;
  for (i = 0; i < count; ++i) {
    const uint8_t *at = spans[i].data;
    size_t left = spans[i].size;
    while (left > 0u && link->is_open) {
      size_t some = left < SLW_SERIAL_PAYLOAD_BYTES ? left : SLW_SERIAL_PAYLOAD_BYTES;
      send_packet(link, SLW_SERIAL_DATA, at, some);
      at += some;
      left -= some;
    }
  }
  return link->is_open ? 0 : -1;
}

slw_rpc_transport slw_serial_link_transport(slw_serial_link *link) {
  slw_rpc_transport transport;
  transport.context = link;
  transport.read = read_stream;
  transport.write = write_stream;
  return transport;
}

void slw_serial_link_close(slw_serial_link *link) {
  if (link->is_open) {
    send_fault(link, SLW_SERIAL_FAULT_CLOSED);
  }
}
