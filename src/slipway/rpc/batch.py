"""Many calls, and many tensors, in one round trip."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slipway.errors import RemoteError
from slipway.rpc.module import put_call
from slipway.rpc.protocol import HEADER, Code, Tag
from slipway.rpc.values import get_result, get_value

if TYPE_CHECKING:
    from slipway.rpc.array import RemoteNDArray
    from slipway.rpc.client import RPCSession

_CALLS_AT_ONCE = 4096
_SMALL_BYTES = 16384  # tensors up to this size travel in the queue with the requests
_MAX_POSTED = 256
_HEADER = np.dtype(
    [("size", "<u4"), ("code", "<u2"), ("flags", "<u2"), ("id", "<u4"), ("channel", "<u4")]
)
_VALUE = np.dtype([("tag", "<i4"), ("size", "<u4"), ("payload", "<i8")])
_REPLY = np.dtype([("header", _HEADER), ("value", _VALUE)])


def call_many(session: RPCSession, function: int, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Call function handle `function` with each tuple of arguments; results in order.

    The first call that failed raises, when all have run.
    """
    results: list[Any] = []
    failure: Exception | None = None
    remaining = iter(calls)
    while block := list(itertools.islice(remaining, _CALLS_AT_ONCE)):
        session.begin_call()
        frames = _uniform_frames(session, function, block)
        first = session.link.take_ids(len(block))
        if frames is None:
            content: Any = _frames(session, function, block, first)
            if session.callbacks:  # a device that calls back finds nothing but the answer
                for args in block:
                    size = put_call(session, function, args)
                    results.append(get_result(session, session.link.call(Code.CALL, size)))
                continue
        else:
            frames["header"]["id"] = np.arange(first, first + len(block))
            content = frames.view(np.uint8)
        replies = session.link.exchange(content, first, len(block))
        error = _take_replies(session, replies, len(block), results)
        failure = failure or error
        if session.link.is_closed:
            break
    if failure is not None:
        raise failure
    return results


def _uniform_frames(
    session: RPCSession, function: int, calls: Sequence[tuple[Any, ...]]
) -> npt.NDArray[Any] | None:
    """Return the frames of calls whose arguments are all ints, or floats, at the same places."""
    kinds = tuple(map(type, calls[0]))
    if not kinds or any(kind is not int and kind is not float for kind in kinds):
        return None
    if any(tuple(map(type, call)) != kinds for call in calls):
        return None
    call = np.dtype(
        [("header", _HEADER), ("function", "<u8"), ("timeout", "<u4"), ("count", "<u4"),
         ("args", _VALUE, (len(kinds),))]
    )  # fmt: skip
    frames = np.zeros(len(calls), call)
    frames["header"]["size"] = call.itemsize - _HEADER.itemsize
    frames["header"]["code"] = Code.CALL
    frames["function"] = function
    frames["timeout"] = session.call_timeout_ms
    frames["count"] = len(kinds)
    for index, (kind, column) in enumerate(zip(kinds, zip(*calls, strict=True), strict=True)):
        args = frames["args"][:, index]
        args["tag"] = Tag.INT if kind is int else Tag.FLOAT
        try:
            numbers = np.array(column, np.int64 if kind is int else np.float64)
        except OverflowError:
            return None  # the other path says which one it is
        args["payload"] = numbers.view(np.int64)
    return frames


def _frames(
    session: RPCSession, function: int, calls: Sequence[tuple[Any, ...]], first: int
) -> bytearray:
    content = bytearray()
    request = session.link.request
    for number, args in enumerate(calls, first):
        size = put_call(session, function, args)
        content += HEADER.pack(size, Code.CALL, 0, number, 0)
        content += request[:size]
    return content


def _take_replies(
    session: RPCSession, replies: memoryview, count: int, results: list[Any]
) -> Exception | None:
    """Decode the replies of an exchange; return the first error among them."""
    if len(replies) == count * _REPLY.itemsize:
        table = np.frombuffer(replies, _REPLY)
        tags = table["value"]["tag"]
        is_plain = bool((table["header"]["code"] == Code.RETURN).all())
        is_plain = is_plain and bool((table["header"]["size"] == _VALUE.itemsize).all())
        if is_plain and bool((tags == Tag.INT).all()):
            results += table["value"]["payload"].tolist()
            return None
        if is_plain and bool((tags == Tag.FLOAT).all()):
            results += table["value"]["payload"].copy().view(np.float64).tolist()
            return None
    failure: Exception | None = None
    at = 0
    while at < len(replies):
        size, code, _, _, _ = HEADER.unpack_from(replies, at)
        at += HEADER.size
        if code == Code.ERROR:
            error = session.link.fail(replies[at : at + size])
            if not isinstance(error, RemoteError):
                raise error
            failure = failure or error
        else:
            results.append(get_value(session, replies[at : at + size]))
        at += size
    return failure


def read_all(tensors: Sequence[RemoteNDArray]) -> list[npt.NDArray[Any]]:
    """Copy tensors of one session here, their requests travelling together."""
    outputs = [tensor.empty_here() for tensor in tensors]
    pending = list(zip(tensors, outputs, strict=True))
    while pending:
        link = pending[0][0].session.link
        pending[0][0].session.begin_step()
        posted: list[tuple[int, npt.NDArray[Any]]] = []
        for tensor, output in pending[:_MAX_POSTED]:
            number = link.post(Code.TENSOR_READ, tensor.put_range(tensor.nbytes))
            if not number:
                break
            posted.append((number, output))
        for number, output in posted:
            link.collect_data(number, output.ctypes.data, output.nbytes)
        pending = pending[len(posted) :]
    return [tensor.values_of(out) for tensor, out in zip(tensors, outputs, strict=True)]


def write_all(pairs: Sequence[tuple[RemoteNDArray, Any]]) -> None:
    """Copy arrays into tensors of one session; the small ones travel together."""
    posted: list[int] = []
    for tensor, source in pairs:
        array = tensor.like_here(source)
        if array.nbytes > _SMALL_BYTES:
            _collect(pairs, posted)
            tensor.copyfrom(source)
            continue
        if not posted:
            tensor.session.begin_step()
        number = _post_write(tensor, array)
        if not number or len(posted) == _MAX_POSTED:
            _collect(pairs, posted)
            number = number or _post_write(tensor, array)
        posted.append(number)
    _collect(pairs, posted)


def _post_write(tensor: RemoteNDArray, array: npt.NDArray[Any]) -> int:
    link = tensor.session.link
    at = tensor.put_range(array.nbytes)
    size = array.nbytes
    link.request[at : at + size] = array.reshape(-1).view(np.uint8).data
    end = (at + size + 7) & ~7
    link.request[at + size : end] = bytes(end - at - size)
    return link.post(Code.TENSOR_WRITE, end)


def _collect(pairs: Sequence[tuple[RemoteNDArray, Any]], posted: list[int]) -> None:
    failure: RemoteError | None = None
    for number in posted:
        try:
            pairs[0][0].session.link.collect(number)
        except RemoteError as error:
            failure = failure or error
    posted.clear()
    if failure is not None:
        raise failure
