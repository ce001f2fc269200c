"""One session's connection, over the C client: requests out, replies in, errors raised.

A link is used by one thread at a time (`lock`).  Every operation has a deadline; when one passes,
or the connection breaks, or Ctrl-C arrives in the middle, the link is closed: the device sees
that and ends the session, so that it is free again.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from slipway import errors
from slipway.errors import RemoteError, RPCConnectionError, RPCError, RPCTimeoutError
from slipway.rpc import native
from slipway.rpc.protocol import (
    FLAG_NO_REPLY,
    FRAME_BYTES,
    Code,
    Failure,
    Feature,
    Welcome,
    read_error,
)

_GOES_ON = (native.INTERRUPTED, native.CALLBACK, native.OUTPUT)
_INTERRUPTED = "it was interrupted in the middle of a request"
REPLY, UNSENT = object(), object()  # what `call_plain` returns besides results
_REPLY = struct.Struct("<IIII")  # where the reply lies, its size; ids: its own, the awaited one
_OUTPUT = struct.Struct("<II")
_KNOWN_KINDS: dict[str, type[BaseException]] = {
    kind.__name__: kind
    for kind in (
        AttributeError,
        AssertionError,
        IndexError,
        KeyError,
        MemoryError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
        ZeroDivisionError,
        ArithmeticError,
        errors.ArtifactError,
        errors.ExecutionError,
    )
}
_remote_classes: dict[str, type[RemoteError]] = {}


def remote_error(kind: str, message: str) -> RemoteError:
    """Return the error to raise for a device's error: a RemoteError that is also a `kind`."""
    made = _remote_classes.get(kind)
    if made is None:
        made = RemoteError
        base = _KNOWN_KINDS.get(kind)
        if base is not None and not issubclass(RemoteError, base):
            made = type(f"Remote{kind}", (RemoteError, base), {"__module__": __name__})
            _remote_classes[kind] = made
    return made(message, kind)


class Link:
    """A greeted connection.  `request` is where payloads are written before they are sent."""

    def __init__(self, link: socket.socket, welcome: Welcome, peer: str) -> None:
        self._library = native.library()
        self._fd = -1
        self.peer = peer
        self.frame_bytes = welcome.frame_bytes
        self.features = welcome.features
        self.lock = threading.RLock()
        self.timeout_s = 0.0
        self._garbage: list[int] = []
        # Set by the session: answers the callback in the last reply, by writing a payload into
        # `request`; returns its code and size.
        self.answer: Callable[[], tuple[Code, int]] | None = None
        self.raised: BaseException | None = None  # by a callback, for the call it fails
        self.on_output: Callable[[int, str], None] | None = None
        self._closed = ""
        link.settimeout(None)
        self._client: int = self._library.slw_rpc_client_new(
            link.fileno(), FRAME_BYTES, welcome.frame_bytes
        )
        if not self._client:
            raise MemoryError("there is no memory for the buffers of an RPC session")
        capacity = ctypes.c_uint32()
        address = self._library.slw_rpc_client_request(self._client, ctypes.byref(capacity))
        self.request = native.memory_at(address, capacity.value)
        size = ctypes.c_uint64()
        address = self._library.slw_rpc_client_buffer(self._client, ctypes.byref(size))
        self.replies = native.memory_at(address, size.value)
        view = self._library.slw_rpc_client_reply(self._client)
        self._view = native.memory_at(view, _REPLY.size)
        self._call = self._library.slw_rpc_client_call
        self._call_plain: Any = None
        # A socket object in a cycle of garbage would complain before `__del__` can close it.
        self._fd = link.detach()

    @property
    def is_closed(self) -> bool:
        """Whether the session is over."""
        return bool(self._closed)

    def close(self, reason: str = "the session was closed") -> None:
        """End the session; the device ends what it still runs for it."""
        if self._closed:
            return
        self._closed = reason
        if self._fd >= 0:
            with contextlib.suppress(OSError), socket.socket(fileno=self._fd) as link:
                self._fd = -1
                link.shutdown(socket.SHUT_RDWR)

    def take_socket(self, reason: str) -> socket.socket:
        """End the session, but not its connection, which is returned."""
        self._closed = reason
        fd, self._fd = self._fd, -1
        return socket.socket(fileno=fd)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()
            self._library.slw_rpc_client_free(self._client)

    def discard(self, handle: int) -> None:
        """Let the device forget `handle`, together with the next request.  Any thread may call."""
        self._garbage.append(handle)

    def set_timeout(self, timeout_s: float) -> None:
        """Bound the time without a byte moving, in seconds; 0 is no bound."""
        if timeout_s != self.timeout_s:
            self.timeout_s = timeout_s
            self._library.slw_rpc_client_set_timeout(self._client, round(timeout_s * 1000))

    def call(self, code: int, size: int) -> int:
        """Send the request and return where its reply starts in `replies`."""
        try:
            status = self._call(self._client, code, size)
        except BaseException:  # Ctrl-C, between the call and here
            self.close(_INTERRUPTED)
            raise
        if status != native.DONE:
            self._settle(status, code)
        return self.reply_at()

    def call_plain(self, function: int, timeout_ms: int, args: tuple[Any, ...]) -> Any:
        """Call a function with numbers, bools and None.

        Returns its result where that is one of those; else `REPLY`, and the reply is there; or
        `UNSENT` when there is something that only `call` can carry.
        """
        if self._call_plain is None:
            self._call_plain = native.call_plain()
            if self._call_plain is None:
                return UNSENT
        try:
            result = self._call_plain(self._client, function, timeout_ms, *args)
        except BaseException:  # Ctrl-C, between the call and here
            self.close(_INTERRUPTED)
            raise
        if type(result) is not ctypes.c_void_p:
            return result
        status = (result.value or 0) - native.STATUS_BASE
        if status == native.UNFIT:
            return UNSENT
        self._settle(status, Code.CALL)
        return REPLY

    def reply_at(self) -> int:
        """Return where the last reply starts in `replies`."""
        at: int
        at, _, _, _ = _REPLY.unpack_from(self._view, 0)
        return at

    def reply_size(self) -> int:
        """Return the bytes of the last reply's payload."""
        size: int
        _, size, _, _ = _REPLY.unpack_from(self._view, 0)
        return size

    def broken(self, what: str) -> RPCError:
        """End the session with a device that sent `what`; return the error that says so."""
        self.close("the device broke the protocol")
        return RPCError(f"{self.peer} breaks the RPC protocol: it sent {what}.")

    def reply(self) -> memoryview:
        """Return the payload of the last reply; it is valid until the next request."""
        at, size, _, _ = _REPLY.unpack_from(self._view, 0)
        return self.replies[at : at + size]

    def prepare(self) -> None:
        """Check that the link is open and tell the device of discarded handles; before a request.

        It uses `request`, so write there afterwards.
        """
        if self._closed:
            raise RPCConnectionError(
                f"the session with {self.peer} is over: {self._closed}. Connect again."
            )
        if self._garbage:
            self._post_garbage()

    def _post_garbage(self) -> None:
        handles, self._garbage = self._garbage, []
        while handles:
            some, handles = handles[:1024], handles[1024:]
            struct.pack_into(f"<II{len(some)}Q", self.request, 0, len(some), 0, *some)
            size = 8 + 8 * len(some)
            if not self._library.slw_rpc_client_post(self._client, Code.FREE, FLAG_NO_REPLY, size):
                self._garbage += some + handles
                return

    def post(self, code: int, size: int) -> int:
        """Queue the request; returns its id for `collect`, 0 when the queue is full."""
        number: int = self._library.slw_rpc_client_post(self._client, code, 0, size)
        return number

    def collect(self, request_id: int) -> int:
        """Send what is queued, return where the reply to a posted request starts."""
        status = self._run(self._library.slw_rpc_client_collect, request_id)
        if status != native.DONE:
            self._settle(status, Code.CALL)
        return self.reply_at()

    def take_ids(self, count: int) -> int:
        """Return the first of `count` ids for the frames of an `exchange`."""
        first: int = self._library.slw_rpc_client_take_ids(self._client, count)
        return first

    def exchange(self, frames: Any, first_id: int, count: int) -> memoryview:
        """Send whole frames (a contiguous buffer), return their replies one after the other.

        The replies have their headers, and are valid until the next exchange.  What was discarded
        stays queued.  Not for a device that calls back or sends output.
        """
        view = np.frombuffer(frames, np.uint8)
        exchange = self._library.slw_rpc_client_exchange
        self._settle(self._run(exchange, view.ctypes.data, len(view), first_id, count), Code.CALL)
        size = ctypes.c_uint64()
        address = self._library.slw_rpc_client_batch(self._client, ctypes.byref(size))
        return native.memory_at(address, size.value)

    def fail(self, payload: memoryview) -> RPCError:
        """Return what an ERROR's payload means; the session is over if it says so."""
        return self._failure(payload)

    def collect_data(self, request_id: int, address: int, size: int) -> None:
        """Send what is queued, receive exactly `size` bytes for a posted TENSOR_READ."""
        status = self._run(self._library.slw_rpc_client_collect_data, request_id, address, size)
        self._settle(status, Code.TENSOR_READ)

    def send_data(self, code: int, prefix: int, offset_at: int, address: int, size: int) -> None:
        """Send `size` bytes at `address`; `request` holds the `prefix` bytes of each frame."""
        send = self._library.slw_rpc_client_send_data
        status = self._run(send, code, prefix, offset_at, address, size)
        self._settle(status, code)

    def receive_data(self, code: int, request: int, address: int, size: int) -> None:
        """Send a request of `request` bytes, receive exactly `size` bytes to `address`."""
        receive = self._library.slw_rpc_client_receive_data
        status = self._run(receive, code, request, address, size)
        self._settle(status, code)

    def receive_unsized(self, code: int, request: int) -> bytearray:
        """Send a request, receive data whose size the device tells."""
        lib = self._library
        status = self._run(lib.slw_rpc_client_receive_data, code, request, None, 0)
        status = self._settle(status, code)
        if status != native.NEEDS_MEMORY:
            return bytearray()
        size = lib.slw_rpc_client_data_size(self._client)
        try:
            content = native.unfilled(size)
        except MemoryError as error:
            self.close("there was no memory for what the device sends")
            raise RPCError(
                f"{self.peer} sends {size} bytes; there is no memory for them."
            ) from error
        address = np.frombuffer(content, np.uint8).ctypes.data
        lib.slw_rpc_client_set_memory(self._client, address, size)
        self._settle(self._run(lib.slw_rpc_client_continue), code)
        return content

    def _answer(self) -> int:
        """Serve a call of the device's; other requests may be made meanwhile."""
        _, _, number, awaited = _REPLY.unpack_from(self._view, 0)
        if self.answer is None:
            raise RPCError(f"{self.peer} calls back a client that passed it no function.")
        timeout_s = self.timeout_s
        code, size = self.answer()
        self.set_timeout(timeout_s)
        status: int = self._library.slw_rpc_client_answer(self._client, code, number, size, awaited)
        return status

    def _take_output(self) -> None:
        content = self.reply()
        if len(content) < _OUTPUT.size:
            raise self.broken("output without its fields")
        stream, size = _OUTPUT.unpack_from(content)
        text = str(content[_OUTPUT.size : _OUTPUT.size + size], "utf-8", "replace")
        if self.on_output is not None:
            self.on_output(stream, text)

    def _run(self, operation: Callable[..., int], *args: Any) -> int:
        try:
            return operation(self._client, *args)
        except BaseException:
            self.close(_INTERRUPTED)
            raise

    def _settle(self, status: int, code: int) -> int:
        """Take an operation to its end and raise what went wrong."""
        try:
            while status in _GOES_ON:
                # Python runs its signal handlers between the calls; Ctrl-C raises right here.
                if status == native.CALLBACK:
                    status = self._answer()
                else:
                    if status == native.OUTPUT:
                        self._take_output()
                    status = self._library.slw_rpc_client_continue(self._client)
        except BaseException:
            self.close(_INTERRUPTED)
            raise
        if status in (native.DONE, native.NEEDS_MEMORY):
            return status
        if status == native.FAILED:
            raise self._failure(self.reply())
        name = Code(code).name
        if status == native.TIMEOUT:
            self.close(f"{name} got no answer within {self.timeout_s:g} s")
            raise RPCTimeoutError(
                f"{self.peer} did not answer {name} within {self.timeout_s:g} s, so the session "
                "was closed. If the work takes that long, give more time: session.timeout = "
                "seconds, or rpc.connect(..., session_timeout=seconds)."
            )
        if status == native.LOST:
            self.close("the connection broke")
            raise RPCConnectionError(
                f"{self.peer} closed the connection during {name}. The device or its server may "
                "have stopped; its log says more."
            )
        self.close("the device broke the protocol")
        raise RPCError(f"{self.peer} answered {name} with a frame that breaks the RPC protocol.")

    def _failure(self, payload: memoryview) -> RPCError:
        try:
            code, kind, message = read_error(payload)
        except struct.error:
            return self.broken("an error without its fields")
        failure: Any = code
        with contextlib.suppress(ValueError):
            failure = Failure(code)
            if failure.is_fatal:
                self.close(message)
                if failure is Failure.TIMEOUT:
                    return RPCTimeoutError(
                        f"{self.peer}: {message}. Whoever opens the session sets the limits: its "
                        "`timeout` for a call, session_timeout= for all of it; or the server, by "
                        "its --session-timeout."
                    )
                if failure is not Failure.CRASHED:
                    return RPCError(f"{self.peer}: {message}.")
        message, _, trace = message.partition("\nOn the device, innermost call first:\n")
        if kind == "MemoryError" and not self.features & Feature.LINKED:
            message += (
                "; a session has the device's memory, or what its server's --max-memory leaves it"
            )
        error = remote_error(kind, message)
        frames = [line for line in trace.splitlines() if '.py", line' in line]
        error.add_note("\n".join([f"On the device {self.peer}:", *reversed(frames)]))
        error.__cause__, self.raised = self.raised, None  # of a callback, if it was one
        return error
