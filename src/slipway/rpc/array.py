"""Tensors that live on the device."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slipway import dtypes
from slipway.errors import ArgumentTypeError, ArgumentValueError, RPCError
from slipway.rpc.protocol import Code, Tag
from slipway.rpc.values import Remote, dtype_parts, get_tensor
from slipway.runtime import ndarray
from slipway.runtime.ndarray import PACKED, numpy_dtype, pack_halves, unpack_halves

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession
    from slipway.rpc.device import RemoteDevice

_HANDLE_RANGE = struct.Struct("<QQQ")
_COPY = struct.Struct("<QQQQQ")
_ALLOC = struct.Struct("<iiBBHI")


class RemoteNDArray(Remote):
    """A tensor in the memory of a remote device, with the methods of a local NDArray.

    Made by ``nd.array(x, remote.cpu(0))``, ``nd.empty(shape, dtype, remote.cpu(0))``, or returned
    by a remote function.
    """

    __slots__ = ("__weakref__", "device", "dtype", "handle", "nbytes", "session", "shape")
    _tag = int(Tag.TENSOR)

    def __init__(
        self,
        session: RPCSession,
        handle: int,
        shape: tuple[int, ...],
        dtype: str,
        nbytes: int,
        device: RemoteDevice,
    ) -> None:
        self.session = session
        self.handle = handle
        self.shape = shape
        self.dtype = dtype
        self.nbytes = nbytes
        self.device = device

    @property
    def ctx(self) -> RemoteDevice:
        """The device, under its classic name."""
        return self.device

    context = ctx

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def numpy(self) -> npt.NDArray[Any]:
        """Copy the tensor to the host."""
        out = self.empty_here()
        self._read(out)
        return self.values_of(out)

    asnumpy = numpy

    def copyfrom(self, source: Any) -> RemoteNDArray:
        """Copy `source` (NumPy, a local or remote NDArray, a number) into this tensor.

        Raises ValueError if the shape is not this tensor's.  Values are converted to its dtype.
        """
        if isinstance(source, RemoteNDArray):
            source.copyto(self)
            return self
        self._write(self.like_here(source))
        return self

    def empty_here(self) -> npt.NDArray[Any]:
        """Return memory on the host for what travels: the values, or half bytes in pairs."""
        if self.dtype in PACKED:
            return np.empty(self.nbytes, np.uint8)
        return np.empty(self.shape, numpy_dtype(self.dtype))

    def values_of(self, received: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values in memory of `empty_here` that has been filled."""
        if self.dtype in PACKED:
            packed = received[: dtypes.array_bytes(self.size, self.dtype)]
            return unpack_halves(packed, self.shape, self.dtype)
        return received

    def like_here(self, source: Any) -> npt.NDArray[Any]:
        """Return `source` as what travels for this shape and dtype, or raise ValueError."""
        if hasattr(source, "numpy") and not isinstance(source, np.ndarray):
            source = source.numpy()
        wanted = numpy_dtype(self.dtype)
        array = np.asarray(source)
        if array.ndim == 0 and self.shape != ():
            array = np.broadcast_to(array, self.shape)
        if array.shape != self.shape:
            raise ArgumentValueError(
                f"cannot copy an array of shape {array.shape} into a remote tensor of shape "
                f"{self.shape}; they must be equal."
            )
        values = np.asarray(array, dtype=wanted, order="C").reshape(self.shape)
        return pack_halves(values) if self.dtype in PACKED else values

    def put_range(self, nbytes: int) -> int:
        """Write this handle, offset 0 and a size into the request buffer; return their end."""
        _HANDLE_RANGE.pack_into(self.session.link.request, 0, self.handle, 0, nbytes)
        return _HANDLE_RANGE.size

    def copyto(self, target: Any, mem_copy: bool = True) -> Any:
        """Copy to `target`: a NumPy array, an NDArray here or there, or a device (a new tensor)."""
        del mem_copy
        if isinstance(target, RemoteNDArray):
            self._check_like(target.shape, target.dtype)
            if target.session is self.session:
                self._copy_there(target)
            else:
                target.copyfrom(self.numpy())
        elif isinstance(target, np.ndarray):
            self._check_like(target.shape, dtypes.canonical(target.dtype))
            direct = target.flags.c_contiguous and target.flags.writeable
            if direct and self.dtype not in PACKED:
                self._read(target)
            else:
                target[...] = self.numpy()
        elif hasattr(target, "copyfrom"):
            target.copyfrom(self.numpy())
        elif hasattr(target, "empty"):  # a remote device
            return self.copyto(target.empty(self.shape, self.dtype))
        elif hasattr(target, "device_type"):
            return ndarray.array(self.numpy(), target)
        else:
            raise ArgumentTypeError(f"cannot copy a remote tensor to a {type(target).__name__}.")
        return target

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is not Ellipsis and index != slice(None):
            raise RPCError("a remote tensor can only be set as a whole: x[:] = values.")
        self.copyfrom(value)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ArgumentValueError("NumPy has no view of this tensor: leave copy=False away.")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def __tvm_ffi_object__(self) -> Any:
        raise RPCError(
            f"{self!r} cannot be an argument of a function in this process; pass x.numpy(), or "
            "call a function of its session."
        )

    def __repr__(self) -> str:
        return f"<RemoteNDArray shape={self.shape}, dtype={self.dtype}, {self.device}>"

    def _check_like(self, shape: tuple[int, ...], dtype: str) -> None:
        if tuple(shape) != self.shape or dtype != self.dtype:
            raise ArgumentValueError(
                f"cannot copy a remote tensor of shape {self.shape}, {self.dtype} to one of shape "
                f"{tuple(shape)}, {dtype}; they must be equal."
            )

    def _write(self, array: npt.NDArray[Any]) -> None:
        session = self.session
        with session.link.lock:
            session.begin_step()
            _HANDLE_RANGE.pack_into(session.link.request, 0, self.handle, 0, 0)
            session.link.send_data(Code.TENSOR_WRITE, 24, 8, array.ctypes.data, array.nbytes)

    def _read(self, array: npt.NDArray[Any]) -> None:
        session = self.session
        with session.link.lock:
            session.begin_step()
            _HANDLE_RANGE.pack_into(session.link.request, 0, self.handle, 0, array.nbytes)
            session.link.receive_data(Code.TENSOR_READ, 24, array.ctypes.data, array.nbytes)

    def _copy_there(self, target: RemoteNDArray) -> None:
        session = self.session
        with session.link.lock:
            session.begin_step()
            _COPY.pack_into(session.link.request, 0, self.handle, 0, target.handle, 0, self.nbytes)
            session.link.call(Code.TENSOR_COPY, _COPY.size)


def allocate(
    session: RPCSession, shape: tuple[int, ...], dtype: str, device_type: int, device_id: int
) -> RemoteNDArray:
    """Allocate a tensor, zeroed, on a device of the session."""
    with session.link.lock:
        session.begin_step()
        request = session.link.request
        _ALLOC.pack_into(request, 0, device_type, device_id, *dtype_parts(dtype), len(shape))
        struct.pack_into(f"<{len(shape)}q", request, _ALLOC.size, *shape)
        session.link.call(Code.TENSOR_ALLOC, _ALLOC.size + 8 * len(shape))
        tensor: RemoteNDArray = get_tensor(session, 16)
        return tensor
