/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/serial_link.h"

#include <string.h>

#define MARK 0x7Eu
#define HEAD_BYTES 6u /* kind, sequence, ack, size, check */
#define CRC_BYTES 4u
#define START_PAYLOAD_BYTES 3u
#define WINDOW_PACKETS 32u /* sent before an ACK is waited for */

typedef struct {
  uint8_t kind;
  uint8_t sequence;
  uint8_t ack;
  uint8_t first; /* byte of the payload */
  size_t size;
} packet_head;

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

/* Bytes [offset, offset + size) of a list of spans, whole in `count` of them. */
static uint32_t put_range(slw_serial_link *link, const slw_rpc_span *spans, size_t count,
                          size_t offset, size_t size, uint32_t crc) {
  size_t i;
  for (i = 0; i < count && size > 0u; ++i) {
    size_t some;
    if (offset >= spans[i].size) {
      offset -= spans[i].size;
      continue;
    }
    some = spans[i].size - offset < size ? spans[i].size - offset : size;
    crc = slw_serial_crc32(crc, (const uint8_t *)spans[i].data + offset, some);
    put_bytes(link, (const uint8_t *)spans[i].data + offset, some);
    size -= some;
    offset = 0;
  }
  return crc;
}

static void send_packet(slw_serial_link *link, uint8_t kind, uint8_t sequence,
                        const slw_rpc_span *spans, size_t count, size_t offset, size_t size) {
  uint8_t head[1u + HEAD_BYTES] = {MARK, kind, sequence, link->receive_sequence, (uint8_t)size,
                                   (uint8_t)(size >> 8), 0};
  uint8_t tail[CRC_BYTES];
  uint32_t crc;
  head[HEAD_BYTES] = (uint8_t)slw_serial_crc32(0, head + 1, HEAD_BYTES - 1u);
  put_bytes(link, head, sizeof head);
  crc = put_range(link, spans, count, offset, size, slw_serial_crc32(0, head + 1, HEAD_BYTES));
  tail[0] = (uint8_t)crc;
  tail[1] = (uint8_t)(crc >> 8);
  tail[2] = (uint8_t)(crc >> 16);
  tail[3] = (uint8_t)(crc >> 24);
  put_bytes(link, tail, sizeof tail);
}

static void send_control(slw_serial_link *link, uint8_t kind, const void *payload, size_t size) {
  slw_rpc_span span;
  span.data = payload;
  span.size = size;
  send_packet(link, kind, link->send_sequence, &span, 1, 0, size);
}

static void send_fault(slw_serial_link *link, uint8_t fault) {
  send_control(link, SLW_SERIAL_FAULT, &fault, 1);
  link->is_open = false;
}

/* Read one packet, beginning at its mark; its payload goes into link->packet if `keep`. */
static enum outcome receive_packet(slw_serial_link *link, bool keep, packet_head *out) {
  uint8_t head[HEAD_BYTES];
  uint8_t tail[CRC_BYTES];
  uint32_t crc;
  size_t i;
  if (wait_byte(link) != MARK) {
    return GOT_NOISE;
  }
  for (i = 0; i < HEAD_BYTES; ++i) {
    head[i] = wait_byte(link);
  }
  out->kind = head[0];
  out->sequence = head[1];
  out->ack = head[2];
  out->first = 0;
  out->size = (size_t)head[3] | ((size_t)head[4] << 8);
  if (head[5] != (uint8_t)slw_serial_crc32(0, head, HEAD_BYTES - 1u) ||
      out->size > sizeof link->packet) {
    return GOT_DAMAGE;
  }
  crc = slw_serial_crc32(0, head, HEAD_BYTES);
  for (i = 0; i < out->size; ++i) {
    uint8_t byte = wait_byte(link);
    crc = slw_serial_crc32(crc, &byte, 1);
    if (i == 0u) {
      out->first = byte;
    }
    if (keep) {
      link->packet[i] = byte;
    }
  }
  for (i = 0; i < CRC_BYTES; ++i) {
    tail[i] = wait_byte(link);
  }
  if (crc != ((uint32_t)tail[0] | ((uint32_t)tail[1] << 8) | ((uint32_t)tail[2] << 16) |
              ((uint32_t)tail[3] << 24))) {
    return GOT_DAMAGE;
  }
  return GOT_PACKET;
}

static bool is_start(const packet_head *head) {
  return head->kind == SLW_SERIAL_START && head->size >= 1u && head->first == SLW_SERIAL_VERSION;
}

void slw_serial_link_accept(slw_serial_link *link) {
  const uint8_t answer[START_PAYLOAD_BYTES] = {SLW_SERIAL_VERSION,
                                               (uint8_t)SLW_SERIAL_PAYLOAD_BYTES,
                                               (uint8_t)(SLW_SERIAL_PAYLOAD_BYTES >> 8)};
  packet_head head;
  while (!link->was_restarted &&
         (receive_packet(link, true, &head) != GOT_PACKET || !is_start(&head))) {
  }
  link->was_restarted = false;
  link->must_ask = false;
  link->packet_at = 0;
  link->packet_size = 0;
  link->receive_sequence = 1;
  link->send_sequence = 1;
  link->is_open = true;
  send_control(link, SLW_SERIAL_START, answer, sizeof answer);
}

/* What a packet means at any time. Returns true when it brought the next bytes of the stream,
 * which is possible only if there is room (`keep`). */
static bool take_packet(slw_serial_link *link, bool keep, const packet_head *head) {
  bool is_data = head->kind == SLW_SERIAL_DATA || head->kind == SLW_SERIAL_LAST;
  if (is_start(head)) {
    link->was_restarted = true;
    link->is_open = false;
  } else if (head->kind == SLW_SERIAL_FAULT) {
    link->is_open = false;
  } else if (is_data && head->sequence == link->receive_sequence && keep) {
    link->receive_sequence = (uint8_t)(link->receive_sequence + 1u);
    link->packet_at = 0;
    link->packet_size = head->size;
    if (head->kind == SLW_SERIAL_LAST) {
      send_control(link, SLW_SERIAL_ACK, NULL, 0);
    }
    return true;
  } else if (is_data && !keep) {
    link->must_ask = true;
  } else if (is_data && (uint8_t)(head->sequence - link->receive_sequence) < 128u) {
    send_control(link, SLW_SERIAL_RESEND, NULL, 0); /* one before it is missing */
  } else if (head->kind == SLW_SERIAL_SYNC && keep) {
    bool is_even = head->sequence == link->receive_sequence;
    send_control(link, is_even ? SLW_SERIAL_ACK : SLW_SERIAL_RESEND, NULL, 0);
  } else if (is_data && head->kind == SLW_SERIAL_LAST) {
    send_control(link, SLW_SERIAL_ACK, NULL, 0); /* once more: the first was lost */
  }
  return false;
}

/* What was dropped for want of room is asked for when there is room again. */
static void ask_for_dropped(slw_serial_link *link) {
  if (link->must_ask) {
    link->must_ask = false;
    send_control(link, SLW_SERIAL_RESEND, NULL, 0);
  }
}

/* Receive one packet; true when it brought the stream's next bytes. */
static bool receive_data(slw_serial_link *link) {
  packet_head head;
  enum outcome outcome = receive_packet(link, true, &head);
  if (outcome == GOT_DAMAGE) {
    send_control(link, SLW_SERIAL_RESEND, NULL, 0);
  }
  return outcome == GOT_PACKET && take_packet(link, true, &head);
}

/* Wait for the stream's next bytes; false when it has ended. */
static bool next_data(slw_serial_link *link) {
  ask_for_dropped(link);
  while (link->is_open) {
    if (receive_data(link)) {
      return true;
    }
  }
  return false;
}

void slw_serial_link_step(slw_serial_link *link) { (void)receive_data(link); }

size_t slw_serial_link_ready(const slw_serial_link *link) {
  return link->packet_size - link->packet_at;
}

const uint8_t *slw_serial_link_peek(const slw_serial_link *link, size_t *size_bytes) {
  *size_bytes = slw_serial_link_ready(link);
  return link->packet + link->packet_at;
}

void slw_serial_link_skip(slw_serial_link *link, size_t size_bytes) {
  link->packet_at += size_bytes;
  if (slw_serial_link_ready(link) == 0u) {
    ask_for_dropped(link);
  }
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

/* Wait until the host has every packet up to send_sequence.
 * @return how many of the last packets must be sent again */
static uint8_t wait_acknowledged(slw_serial_link *link) {
  packet_head head;
  while (link->is_open) {
    bool keep = link->packet_at == link->packet_size;
    if (receive_packet(link, keep, &head) != GOT_PACKET) {
      continue; /* the host asks again */
    }
    if (take_packet(link, keep, &head) || link->is_open) {
      uint8_t missing = (uint8_t)(link->send_sequence - head.ack);
      if (missing == 0u) {
        break;
      }
      if (head.kind == SLW_SERIAL_RESEND || head.kind == SLW_SERIAL_SYNC) {
        return missing;
      }
    }
  }
  return 0;
}

static int write_stream(void *context, const slw_rpc_span *spans, size_t count) {
  slw_serial_link *link = context;
  const size_t packet = SLW_SERIAL_PAYLOAD_BYTES;
  size_t total = 0;
  size_t done = 0;
  size_t i;
  for (i = 0; i < count; ++i) {
    total += spans[i].size;
  }
  while (done < total && link->is_open) {
    size_t end = total - done < WINDOW_PACKETS * packet ? total : done + WINDOW_PACKETS * packet;
    size_t packets = (end - done + packet - 1u) / packet;
    size_t missing = packets;
    uint8_t first = link->send_sequence;
    link->send_sequence = (uint8_t)(first + packets);
    while (missing > 0u && link->is_open) {
      for (i = packets - missing; i < packets; ++i) {
        size_t at = done + i * packet;
        send_packet(link, i + 1u == packets ? SLW_SERIAL_LAST : SLW_SERIAL_DATA,
                    (uint8_t)(first + i), spans, count, at, end - at < packet ? end - at : packet);
      }
      missing = wait_acknowledged(link);
      if (missing > packets) {
        send_fault(link, SLW_SERIAL_FAULT_SEQUENCE);
      }
    }
    done = end;
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
