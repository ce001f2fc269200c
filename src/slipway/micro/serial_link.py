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
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError, SlipwayError
from slipway.micro.project_api.server import IoTimeoutError, JSONRPCError, TransportClosedError

MARK = 0x7E
VERSION = 2
_HEAD_BYTES = 7
_CRC_BYTES = 4
_OUR_PAYLOAD_BYTES = 65535
_WINDOW = 32  # packets on their way; sequences are eight bits
_TROUBLE = 60  # damages and repetitions without a packet that gets through
_RETRY_S = 0.5
_REQUEST_S = 0.5  # without an answer that is due
_IDLE_REQUEST_S = 2.0
_LONGEST_REQUEST_S = 8.0
_POLL_S = 0.02
_WRITE_TIMEOUT_S = 20.0


class Kind(enum.IntEnum):
    """What a packet is for."""

    START = 1
    DATA = 2
    FAULT = 3
    LAST = 4
    ACK = 5
    RESEND = 6
    SYNC = 7


FAULTS = {
    2: "a packet is missing that the device cannot send again",
    4: "the device ended the session",
}


@dataclass(frozen=True)
class Packet:
    """One packet; see ``crt/include/slipway/serial_link.h`` for its fields."""

    kind: int
    sequence: int
    ack: int
    payload: bytes


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


def packet(kind: int, sequence: int, ack: int, payload: bytes = b"") -> bytes:
    """Return one packet's bytes."""
    head = bytes([kind, sequence % 256, ack % 256]) + len(payload).to_bytes(2, "little")
    head += bytes([zlib.crc32(head) & 255])
    return bytes([MARK]) + head + payload + zlib.crc32(head + payload).to_bytes(4, "little")


class PacketReader:
    """Takes packets out of received bytes; what is no packet is skipped and counted."""

    def __init__(self, longest: int = _OUR_PAYLOAD_BYTES) -> None:
        self._bytes = bytearray()
        self.longest = longest
        self.damages = 0

    @property
    def waits(self) -> bool:
        """Whether the beginning of a packet is here, and not its end."""
        return bool(self._bytes)

    def feed(self, data: bytes) -> None:
        """Take received bytes."""
        self._bytes += data

    def skip(self) -> None:
        """Give up the packet that has begun: its end was lost."""
        del self._bytes[:1]
        self.damages += 1

    def take(self) -> Packet | None:
        """Return the next whole packet, or None."""
        data = self._bytes
        while True:
            start = data.find(MARK)
            if start:
                self.damages += bool(data)
                del data[: start if start > 0 else len(data)]
            if len(data) < _HEAD_BYTES:
                return None
            size = int.from_bytes(data[4:6], "little")
            if zlib.crc32(data[1:6]) & 255 != data[6] or size > self.longest:
                self.skip()
                continue
            end = _HEAD_BYTES + size + _CRC_BYTES
            if len(data) < end:
                return None
            if zlib.crc32(data[1 : end - _CRC_BYTES]) != int.from_bytes(
                data[end - 4 : end], "little"
            ):
                self.skip()
                continue
            found = Packet(data[1], data[2], data[3], bytes(data[_HEAD_BYTES : end - _CRC_BYTES]))
            del data[:end]
            return found


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
        self._next = self._expected = 1
        self._unacknowledged: deque[tuple[Kind, int, bytes]] = deque()
        self._more_is_due = False  # the device announced more than has come
        self._began = False
        self._trouble = 0
        self._thread = threading.Thread(target=self._pump, name=f"serial {peer}", daemon=True)
        self._thread.start()

    def _start(self, timeout_s: float) -> int:
        """Open the stream and return the largest payload that the device takes."""
        hello = bytes([VERSION]) + _OUR_PAYLOAD_BYTES.to_bytes(2, "little")
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self._transport.write(packet(Kind.START, 1, 1, hello), _WRITE_TIMEOUT_S)
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
                if found is not None and found.kind == Kind.START:
                    return self._opened(found.payload)
        raise RPCTimeoutError(
            f"{self.peer} did not answer on its serial line within {timeout_s:g} s. Is the "
            "firmware a host_driven project of this version of Slipway, is it flashed, and is the "
            "line the right one?"
        )

    def _opened(self, payload: bytes) -> int:
        if len(payload) < 3 or payload[0] != VERSION:
            raise RPCError(
                f"{self.peer} speaks version {payload[:1].hex()} of the serial protocol, this host "
                f"version {VERSION}; build the firmware with this version of Slipway"
            )
        self._reader.longest = int.from_bytes(payload[1:3], "little")
        self._reader.damages = 0
        return self._reader.longest

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
                fault = packet(Kind.FAULT, self._next, self._expected, bytes([4]))
                self._transport.write(fault, 1.0)

    # -- what the thread does ------------------------------------------------------------------

    def _move(self) -> None:
        """Carry bytes both ways, sending again what was damaged or lost, until the end."""
        wait_s, heard = _REQUEST_S, time.monotonic()
        while True:
            is_busy = bool(self._unacknowledged) or self._more_is_due or self._began
            if len(self._unacknowledged) < _WINDOW:
                patience = 0.0 if is_busy else 0.5
                if select.select([self._inner], [], [], patience)[0] and not self._send_new():
                    return
            if not self._began:
                continue
            damages = self._reader.damages
            if self._receive():
                wait_s, heard = _REQUEST_S, time.monotonic()
            if self._reader.damages > damages:
                self._request(Kind.RESEND)
            due = bool(self._unacknowledged) or self._more_is_due
            if time.monotonic() - heard > (wait_s if due else max(wait_s, _IDLE_REQUEST_S)):
                if self._reader.waits:
                    self._reader.skip()
                self._write(Kind.SYNC)  # patiently: the device may be at work
                wait_s, heard = min(2 * wait_s, _LONGEST_REQUEST_S), time.monotonic()

    def _send_new(self) -> bool:
        """Send what the session wrote; False at its end."""
        room = (_WINDOW - len(self._unacknowledged)) * self._payload_bytes
        data = self._inner.recv(room)
        self._began = True
        for at in range(0, len(data), self._payload_bytes):
            part = data[at : at + self._payload_bytes]
            kind = Kind.LAST if at + len(part) == len(data) else Kind.DATA
            self._unacknowledged.append((kind, self._next, part))
            self._next = (self._next + 1) % 256
            self._write(*self._unacknowledged[-1])
        return bool(data)

    def _write(self, kind: Kind, sequence: int | None = None, payload: bytes = b"") -> None:
        number = self._next if sequence is None else sequence
        self._transport.write(packet(kind, number, self._expected, payload), _WRITE_TIMEOUT_S)

    def _request(self, kind: Kind) -> None:
        """Ask for a packet again, or send one again; raise LineFault when that leads nowhere."""
        self._trouble += 1
        if self._trouble > _TROUBLE:
            raise LineFault(
                "the line changes or drops bytes so often that nothing gets through; check the "
                "wires, the ground and the baud rate"
            )
        if kind == Kind.RESEND:
            self._write(kind)

    def _receive(self) -> bool:
        """Read what has come and act on it; whether a packet was among it."""
        try:
            self._reader.feed(self._transport.read(1 << 16, _POLL_S))
        except IoTimeoutError:
            return False
        any_packet = False
        while (found := self._reader.take()) is not None:
            any_packet = True
            self._act(found)
        return any_packet

    def _act(self, found: Packet) -> None:
        if found.kind == Kind.START:  # a late answer to a repeated START
            return
        if found.kind == Kind.FAULT:
            code = found.payload[0] if found.payload else 0
            raise LineFault(FAULTS.get(code, f"fault {code}"))
        while self._unacknowledged and self._is_before(self._unacknowledged[0][1], found.ack):
            self._unacknowledged.popleft()
            self._trouble = 0
        if found.kind == Kind.RESEND and self._unacknowledged:
            self._request(Kind.DATA)
            for each in self._unacknowledged:
                self._write(*each)
        if found.kind not in (Kind.DATA, Kind.LAST):
            return
        if found.sequence == self._expected:
            self._trouble = 0
            self._expected = (self._expected + 1) % 256
            self._more_is_due = found.kind == Kind.DATA
            self._inner.sendall(found.payload)
            if found.kind == Kind.LAST:
                self._write(Kind.ACK)
        elif self._is_before(found.sequence, self._expected):
            if found.kind == Kind.LAST:  # it did not hear that this one has come
                self._write(Kind.ACK)
        else:
            self._request(Kind.RESEND)

    @staticmethod
    def _is_before(sequence: int, other: int) -> bool:
        return 0 < (other - sequence) % 256 < 128
