"""Arguments to the wire, results from it."""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import RPCError
from slipway.rpc import checks
from slipway.rpc.protocol import (
    DEVICE_VALUE,
    FLOAT_VALUE,
    HANDLE_VALUE,
    TENSOR_HEAD,
    VALUE,
    Tag,
    padded,
)

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession

_NONE, _INT, _BOOL, _FLOAT, _STR, _BYTES, _DEVICE = (
    int(tag) for tag in (Tag.NONE, Tag.INT, Tag.BOOL, Tag.FLOAT, Tag.STR, Tag.BYTES, Tag.DEVICE)
)
_FLOAT64 = struct.Struct("<d")
_MALFORMED = (struct.error, ValueError, KeyError, OverflowError)
MAX_NDIM = 16
# What makes the object of a value that lives on the device, by its tag.  The modules of these
# objects, which send and receive values themselves, enter it when they are loaded.
MAKERS: dict[int, Callable[..., Any]] = {}
_CALLBACK = struct.Struct("<QII")


class Remote:
    """Something that lives on the device, by handle; the device forgets it with this object.

    A mixin: classes of it have the attributes `session`, `handle` and `_tag`, the value's tag.
    """

    __slots__ = ()
    _tag: int
    session: RPCSession
    handle: int

    def __del__(self) -> None:
        # Nothing to forget where the constructor did not get that far.
        with contextlib.suppress(AttributeError):
            self.session.link.discard(self.handle)


def put_args(session: RPCSession, at: int, args: tuple[Any, ...]) -> int:
    """Encode `args` at byte `at` of the link's request buffer; return where they end.

    Takes None, bool, int, float, str, bytes, devices, remote tensors, functions and modules of
    this session, NumPy arrays, which travel by value, functions of this process, which the device
    can call back, and flat lists and tuples of all those.
    """
    _room(session.link.request, at, 16 * len(args))
    return _put_values(session, at, at + 16 * len(args), args)


def _put_values(session: RPCSession, at: int, tail: int, args: Sequence[Any]) -> int:
    buffer = session.link.request
    for index, arg in enumerate(args):
        kind = type(arg)
        if isinstance(arg, Remote):
            if arg.session is not session:
                raise RPCError(
                    f"argument {index} lives in another session ({arg.session}); copy it to the "
                    "host and from there into this session first."
                )
            HANDLE_VALUE.pack_into(buffer, at, arg._tag, 0, arg.handle)
        elif kind is int:
            _put_int(buffer, at, index, arg)
        elif kind is float:
            FLOAT_VALUE.pack_into(buffer, at, _FLOAT, 0, arg)
        elif kind is str:
            tail = _put_bytes(buffer, at, tail, _STR, _text(index, arg))
        elif arg is None:
            VALUE.pack_into(buffer, at, _NONE, 0, 0)
        elif kind is bool:
            VALUE.pack_into(buffer, at, _BOOL, 0, arg)
        else:
            tail = _put_other(session, at, tail, index, arg)
        at += 16
    return tail


def _put_int(buffer: memoryview, at: int, index: int, arg: int) -> None:
    try:
        VALUE.pack_into(buffer, at, _INT, 0, arg)
    except struct.error:
        raise RPCError(f"argument {index} is {arg}, which does not fit into 64 bits.") from None


def _text(index: int, arg: str) -> bytes:
    return checks.text(arg, f"argument {index}").encode()


def _room(buffer: memoryview, tail: int, size: int) -> None:
    if tail + size > len(buffer):
        raise RPCError(
            f"the arguments of this call need more than the {len(buffer)} bytes that the device "
            "takes in one request. Make remote tensors of the large ones: nd.array(x, "
            "remote.cpu(0))."
        )


def _put_bytes(buffer: memoryview, at: int, tail: int, tag: int, content: bytes) -> int:
    end = tail + padded(len(content) + 1)
    _room(buffer, tail, end - tail)
    VALUE.pack_into(buffer, at, tag, len(content), tail)
    buffer[tail : tail + len(content)] = content
    buffer[tail + len(content) : end] = bytes(end - tail - len(content))
    return end


def _put_list(session: RPCSession, at: int, tail: int, index: int, items: Sequence[Any]) -> int:
    if any(isinstance(item, list | tuple) for item in items):
        raise RPCError(f"argument {index} is a list with a list in it; those cannot travel.")
    buffer = session.link.request
    _room(buffer, tail, 16 * len(items))
    VALUE.pack_into(buffer, at, Tag.LIST, len(items), tail)
    return _put_values(session, tail, tail + 16 * len(items), items)


def _put_other(session: RPCSession, at: int, tail: int, index: int, arg: Any) -> int:
    buffer = session.link.request
    if isinstance(arg, bool | np.bool_):
        VALUE.pack_into(buffer, at, _BOOL, 0, bool(arg))
    elif isinstance(arg, int | np.integer):
        _put_int(buffer, at, index, int(arg))
    elif isinstance(arg, float | np.floating):
        FLOAT_VALUE.pack_into(buffer, at, _FLOAT, 0, float(arg))
    elif isinstance(arg, str):
        return _put_bytes(buffer, at, tail, _STR, _text(index, arg))
    elif isinstance(arg, bytes | bytearray | memoryview):
        return _put_bytes(buffer, at, tail, _BYTES, bytes(arg))
    elif hasattr(arg, "device_type") and hasattr(arg, "device_id"):
        DEVICE_VALUE.pack_into(buffer, at, _DEVICE, 0, int(arg.device_type), int(arg.device_id))
    elif isinstance(arg, np.ndarray):
        return _put_array(buffer, at, tail, arg)
    elif isinstance(arg, list | tuple):
        return _put_list(session, at, tail, index, arg)
    elif hasattr(arg, "numpy"):
        return _put_array(buffer, at, tail, arg.numpy())
    elif callable(arg):
        VALUE.pack_into(buffer, at, Tag.CALLBACK, 0, session.callbacks.number_of(arg))
    else:
        raise RPCError(
            f"argument {index} is a {type(arg).__name__}, which cannot travel to a device. Pass "
            "numbers, text, bytes, NumPy arrays, functions, lists of those, or tensors, functions "
            "and modules of this session."
        )
    return tail


def _put_array(buffer: memoryview, at: int, tail: int, array: np.ndarray[Any, Any]) -> int:
    array = np.asarray(array, order="C")
    code, bits, lanes = dtype_parts(array.dtype.name)
    head = TENSOR_HEAD.pack(0, 1, 0, code, bits, lanes, array.ndim, array.nbytes)
    head += struct.pack(f"<{array.ndim}q", *array.shape)
    end = tail + len(head) + padded(array.nbytes)
    _room(buffer, tail, end - tail)
    VALUE.pack_into(buffer, at, Tag.TENSOR_DATA, 0, tail)
    buffer[tail : tail + len(head)] = head
    start = tail + len(head)
    if array.nbytes:
        buffer[start : start + array.nbytes] = array.reshape(-1).view(np.uint8).data
    buffer[start + array.nbytes : end] = bytes(end - start - array.nbytes)
    return end


def dtype_parts(dtype: str) -> tuple[int, int, int]:
    """Return DLPack's code, bits and lanes of a dtype string."""
    parts = dtypes.parse(dtype)
    return dtypes.DLPACK_CODE[parts.code], parts.bits, parts.lanes


def get_result(session: RPCSession, at: int) -> Any:
    """Decode the value of the reply that starts at `at` of the link's replies."""
    replies = session.link.replies
    tag, _, payload = VALUE.unpack_from(replies, at)
    if tag == _INT and session.link.reply_size() >= VALUE.size:
        return payload
    return get_value(session, session.link.reply())


def get_value(session: RPCSession, reply: memoryview) -> Any:
    """Decode the single value at the start of a reply's payload.

    RPCError when that is not what the device sent; the session is over then.
    """
    try:
        return _get(session, reply, 0)
    except _MALFORMED as error:
        raise session.link.broken("a value that does not lie in its frame") from error


def get_args(session: RPCSession) -> tuple[int, list[Any]]:
    """Decode a CALL of the device's: the number of the function, and its arguments."""
    reply = session.link.reply()
    try:
        number, _, count = _CALLBACK.unpack_from(reply)
        start = _CALLBACK.size
        return number, [_get(session, reply, start + 16 * i) for i in range(count)]
    except _MALFORMED as error:
        raise session.link.broken("a call whose arguments do not lie in their frame") from error


def _get(session: RPCSession, reply: memoryview, at: int) -> Any:
    tag, size, payload = VALUE.unpack_from(reply, at)
    if tag == Tag.LIST:
        start = _checked(reply, payload, 16 * size)
        return [_get_item(session, reply, start + 16 * i) for i in range(size)]
    return _get_item(session, reply, at)


def _get_item(session: RPCSession, reply: memoryview, at: int) -> Any:
    tag, size, payload = VALUE.unpack_from(reply, at)
    if tag == _NONE:
        return None
    if tag == _INT:
        return payload
    if tag == _FLOAT:
        return _FLOAT64.unpack_from(reply, at + 8)[0]
    if tag == _BOOL:
        return bool(payload)
    if tag in (_STR, _BYTES):
        start = _checked(reply, payload, size)
        content = reply[start : start + size]
        return str(content, "utf-8", "replace") if tag == _STR else bytes(content)
    if tag == Tag.TENSOR_DESC:
        return _tensor(session, reply, _checked(reply, payload, TENSOR_HEAD.size))
    handle = payload & 0xFFFFFFFFFFFFFFFF
    if tag in MAKERS:
        return MAKERS[tag](session, handle)
    raise RPCError(f"{session.link.peer} returned a value of a type (tag {tag}) not known here.")


def _checked(reply: memoryview, start: int, size: int) -> int:
    """Return `start` if `size` bytes from there lie in the reply."""
    if not 0 <= start <= len(reply) - size:
        raise ValueError("it reaches beyond its frame")
    return start


def get_tensor(session: RPCSession, at: int) -> Any:
    """Make a remote array of the tensor descriptor at byte `at` of the last reply's payload."""
    try:
        return _tensor(session, session.link.reply(), at)
    except _MALFORMED as error:
        raise session.link.broken("an impossible tensor") from error


def _tensor(session: RPCSession, reply: memoryview, at: int) -> Any:
    handle, device_type, device_id, code, bits, lanes, ndim, nbytes = TENSOR_HEAD.unpack_from(
        reply, at
    )
    if ndim > MAX_NDIM:
        raise ValueError("it has too many dimensions")
    shape = struct.unpack_from(f"<{ndim}q", reply, at + TENSOR_HEAD.size)
    dtype = dtypes.from_dlpack(code, bits, lanes)
    # What is read later goes into memory of this size: the runtime's, a byte for four bits.
    if min(shape, default=0) < 0 or nbytes != math.prod(shape) * dtypes.bytes_of(dtype):
        raise ValueError("its size is not that of its shape")
    make = MAKERS[Tag.TENSOR_DESC]
    return make(session, handle, shape, dtype, nbytes, device_type, device_id)
