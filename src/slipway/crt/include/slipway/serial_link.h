/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A byte stream over a serial line that may drop or corrupt bytes: packets with a checksum, for a
 * device that has one session at a time.
 *
 * Freestanding. A packet is, little-endian:
 *
 *     0x7E | kind u8 | sequence u8 | ack u8 | size u16 | check u8 | payload[size] | crc32 u32
 *
 * `check` is the low byte of the CRC-32 (zlib's) of the five bytes before it, so that noise is not
 * taken for a head; `crc32` covers everything between 0x7E and itself.  START opens a stream in
 * both directions (payload: version u8, largest payload u16).  DATA and LAST carry it: their
 * sequence counts from 1 and wraps, and LAST asks for an ACK.  In all other kinds `sequence` is the
 * number of the sender's next DATA; `ack`, in every kind, is the number the sender expects next.
 *
 * What is damaged or lost is sent again, from the number that RESEND's `ack` names.  Only the host
 * has a clock: when nothing comes it asks with SYNC, which is answered with ACK or RESEND.  The
 * device keeps nothing for that: it writes again from the caller's memory, and so waits for the ACK
 * before a write ends.  FAULT ends the stream with a slw_serial_fault.
 */
#ifndef SLIPWAY_SERIAL_LINK_H_
#define SLIPWAY_SERIAL_LINK_H_

#include <stdbool.h>

#include "slipway/abi.h"
#include "slipway/rpc_session.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_SERIAL_VERSION 2u
#ifndef SLW_SERIAL_PAYLOAD_BYTES
#define SLW_SERIAL_PAYLOAD_BYTES 512u /**< largest payload; the link holds one packet */
#endif

enum slw_serial_kind {
  SLW_SERIAL_START = 1,
  SLW_SERIAL_DATA = 2,
  SLW_SERIAL_FAULT = 3,
  SLW_SERIAL_LAST = 4,
  SLW_SERIAL_ACK = 5,
  SLW_SERIAL_RESEND = 6,
  SLW_SERIAL_SYNC = 7
};

enum slw_serial_fault {
  SLW_SERIAL_FAULT_SEQUENCE = 2, /**< a packet is missing that cannot be sent again */
  SLW_SERIAL_FAULT_CLOSED = 4    /**< the device ended the session */
};

/** The line itself: the board's UART driver. */
typedef struct slw_serial_port {
  void *context;
  /** Return a received byte, or -1 when none is there; must not wait. */
  int (*get)(void *context);
  /** Send one byte; may wait. */
  void (*put)(void *context, uint8_t byte);
} slw_serial_port;

/** State of the link. Fields are private to serial_link.c. */
typedef struct slw_serial_link {
  slw_serial_port port;
  uint8_t packet[SLW_SERIAL_PAYLOAD_BYTES];
  size_t packet_at;
  size_t packet_size;
  uint8_t receive_sequence; /* that must come next */
  uint8_t send_sequence;
  bool is_open;
  bool must_ask;      /* a packet was dropped for want of room */
  bool was_restarted; /* a START arrived in the middle of a stream */
} slw_serial_link;

/** Prepare a link over a port. */
void slw_serial_link_init(slw_serial_link *link, const slw_serial_port *port);

/** Wait for a host to open a stream, and answer it. */
void slw_serial_link_accept(slw_serial_link *link);

/** The open stream as a session's transport; it fails once the stream has ended. */
slw_rpc_transport slw_serial_link_transport(slw_serial_link *link);

/** For who waits for other things, too: receive one packet and act on it; bytes of it that are
 * the stream's next are then ready. Call it when a byte is there and none is ready. */
void slw_serial_link_step(slw_serial_link *link);

/** Received bytes of the stream that nobody has taken yet: how many, where, and to take some. */
size_t slw_serial_link_ready(const slw_serial_link *link);
const uint8_t *slw_serial_link_peek(const slw_serial_link *link, size_t *size_bytes);
void slw_serial_link_skip(slw_serial_link *link, size_t size_bytes);

/** End the stream: the host learns it by a FAULT packet. */
void slw_serial_link_close(slw_serial_link *link);

/** The checksum of packets: CRC-32 with polynomial 0xEDB88320.  Begin with `crc` 0. */
uint32_t slw_serial_crc32(uint32_t crc, const void *data, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_SERIAL_LINK_H_ */
