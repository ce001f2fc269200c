"""The host's end of a serial line: packets with checksums on one side, a socket on the other.

The packets are described in ``crt/include/slipway/serial_link.h``.  A thread moves bytes between
the transport (a Project API's, or anything with `read(n, timeout_s)` and `write(data, timeout_s)`)
and a socket pair, so that the RPC client works on a serial line as it does on a network.
"""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import threading
import time
import zlib
from typing import Protocol

from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError, SlipwayError
from slipway.micro.project_api.server import IoTimeoutError, JSONRPCError, TransportClosedError

MARK = 0x7E
VERSION = 1
_HEAD_BYTES = 5
_CRC_BYTES = 4
_OUR_PAYLOAD_BYTES = 65535
_RETRY_S = 0.5
_POLL_S = 0.02
_WRITE_TIMEOUT_S = 20.0


class Kind(enum.IntEnum):
    """What a packet is for."""

    START = 1
    DATA = 2
    FAULT = 3


FAULTS = {
    1: "a packet arrived damaged: the line changed bytes",
    2: "a packet did not arrive: the line dropped bytes",
    3: "what arrived is no packet: the line dropped or changed bytes",
    4: "the device ended the session",
}


class Transport(Protocol):
    """A byte stream to a device."""

    def read(self, n: int, timeout_sec: float | None) -> bytes:
        """Return 1 to n bytes; raise IoTimeoutError when none came."""
        ...

    def write(self, data: bytes, timeout_sec: float | None) -> None:
        """Send all of data."""
        ...


class LineFault(SlipwayError):
    """The line damaged or lost a packet, or the device said so."""


def packet(kind: int, sequence: int, payload: bytes) -> bytes:
    """Return one packet."""
    body = bytes([kind, sequence]) + len(payload).to_bytes(2, "little") + payload
    return bytes([MARK]) + body + zlib.crc32(body).to_bytes(4, "little")


class PacketReader:
    """Takes packets out of received bytes.  Noise before the first one is skipped."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.in_step = False  # whether the next byte must be a packet's first

    def feed(self, data: bytes) -> None:
        """Take received bytes."""
        self._bytes += data

    def take(self) -> tuple[int, int, bytes] | None:
        """Return (kind, sequence, payload) of the next whole packet, or None.

        Raises LineFault for damage once packets have begun.
        """
        while True:
            if not self.in_step:
                start = self._bytes.find(MARK)
                del self._bytes[: start if start >= 0 else len(self._bytes)]
            if not self._bytes:
                return None
            if self._bytes[0] != MARK:
                raise LineFault(FAULTS[3])
            if len(self._bytes) < _HEAD_BYTES:
                return None
            size = int.from_bytes(self._bytes[3:5], "little")
            end = _HEAD_BYTES + size + _CRC_BYTES
            if len(self._bytes) < end:
                return None
            body = bytes(self._bytes[1 : end - _CRC_BYTES])
            crc = int.from_bytes(self._bytes[end - _CRC_BYTES : end], "little")
            if zlib.crc32(body) != crc:
                if self.in_step:
                    raise LineFault(FAULTS[1])
                del self._bytes[0]
                continue
            del self._bytes[:end]
            return body[0], body[1], body[4:]


class SerialLink:
    """An open stream to a device; `socket` carries its bytes."""

    def __init__(self, transport: Transport, peer: str, start_timeout_s: float = 10.0) -> None:
        self.peer = peer
        self.fault = ""
        self._transport = transport
        self._reader = PacketReader()
        self._payload_bytes = self._start(start_timeout_s)
        self.socket, self._inner = socket.socketpair()
        self._closing = False
        self._thread = threading.Thread(target=self._pump, name=f"serial {peer}", daemon=True)
        self._thread.start()

    def _start(self, timeout_s: float) -> int:
        """Open the stream and return the largest payload that the device takes."""
        hello = bytes([VERSION]) + _OUR_PAYLOAD_BYTES.to_bytes(2, "little")
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self._transport.write(packet(Kind.START, 0, hello), _WRITE_TIMEOUT_S)
            retry = time.monotonic() + _RETRY_S
            while time.monotonic() < min(retry, end):
                try:
                    self._reader.feed(self._transport.read(4096, _POLL_S))
                except IoTimeoutError:
                    continue
                except TransportClosedError as error:
                    raise RPCConnectionError(
                        f"{self.peer} ended before it answered: {error}"
                    ) from error
                found = self._reader.take()
                if found is not None and found[0] == Kind.START:
                    return self._opened(found[2])
        raise RPCTimeoutError(
            f"{self.peer} did not answer on its serial line within {timeout_s:g} s. Is the "
            "firmware a host_driven project, is it flashed, and is the line the right one?"
        )

    def _opened(self, payload: bytes) -> int:
        if len(payload) < 3 or payload[0] != VERSION:
            raise RPCError(
                f"{self.peer} speaks version {payload[:1].hex()} of the serial protocol, this host "
                f"version {VERSION}; build the firmware with this version of Slipway"
            )
        self._reader.in_step = True
        return int.from_bytes(payload[1:3], "little")

    def close(self) -> None:
        """End the stream and the thread."""
        self._closing = True
        with contextlib.suppress(OSError):
            self.socket.close()
        if self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def _pump(self) -> None:
        try:
            self._move()
        except LineFault as error:
            self.fault = str(error)
        except (OSError, JSONRPCError, SlipwayError) as error:
            if not self._closing:
                self.fault = f"the line broke: {error}"
        finally:
            with contextlib.suppress(OSError):
                self._inner.close()
            with contextlib.suppress(OSError, JSONRPCError, SlipwayError):
                fault = packet(Kind.FAULT, 0, bytes([4]))
                self._transport.write(fault, 1.0)

    def _move(self) -> None:
        """Carry requests out and replies in: the device speaks only when it was spoken to."""
        send_sequence = 1
        receive_sequence = 1
        waits_for_reply = False
        while True:
            patience = 0.0 if waits_for_reply else 0.5
            if select.select([self._inner], [], [], patience)[0]:
                data = self._inner.recv(1 << 16)
                if not data:
                    return
                for at in range(0, len(data), self._payload_bytes):
                    part = data[at : at + self._payload_bytes]
                    self._transport.write(packet(Kind.DATA, send_sequence, part), _WRITE_TIMEOUT_S)
                    send_sequence = (send_sequence + 1) % 256
                waits_for_reply = True
            if not waits_for_reply:
                continue
            try:
                self._reader.feed(self._transport.read(1 << 16, _POLL_S))
            except IoTimeoutError:
                continue
            while (found := self._reader.take()) is not None:
                kind, sequence, payload = found
                if kind == Kind.FAULT:
                    code = payload[0] if payload else 0
                    raise LineFault(FAULTS.get(code, f"fault {code}"))
                if kind == Kind.DATA and sequence == receive_sequence:
                    receive_sequence = (receive_sequence + 1) % 256
                    self._inner.sendall(payload)
                elif kind != Kind.START:  # a late answer to a repeated START is harmless
                    raise LineFault(FAULTS[2])
