"""Tensors that live on the device."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slipway.errors import RPCError
from slipway.rpc.device import RemoteDevice
from slipway.rpc.protocol import Code, Tag
from slipway.rpc.values import Remote, dtype_parts, get_tensor
from slipway.runtime.device import Device
from slipway.runtime.ndarray import NDArray, numpy_dtype

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession

_HANDLE_RANGE = struct.Struct("<QQQ")
_COPY = struct.Struct("<QQQQQ")
_ALLOC = struct.Struct("<iiBBHI")


class RemoteNDArray(Remote, NDArray):
    """A tensor in the memory of a remote device, with the faces of a local NDArray.

    Made by ``nd.array(x, remote.cpu(0))``, ``nd.empty(shape, dtype, remote.cpu(0))``, or returned
    by a remote function.  Copies go straight between the connection and NumPy's memory.
    """

    __slots__ = ("_nbytes", "handle", "session")
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
        self.device = device
        self._nbytes = nbytes

    def numpy(self) -> npt.NDArray[Any]:
        """Copy the tensor to the host."""
        return self._read()

    asnumpy = numpy

    def copyto(self, target: Any) -> Any:
        """Copy into a NumPy array or an NDArray, here or there, or into a new one on a device."""
        if isinstance(target, np.ndarray):
            if target.shape != self.shape or target.dtype != numpy_dtype(self.dtype):
                raise ValueError(
                    f"cannot copy {self.dtype}{list(self.shape)} into "
                    f"{target.dtype}{list(target.shape)}: shape and dtype must be equal."
                )
            if not (target.flags.c_contiguous and target.flags.writeable):
                raise ValueError("a remote tensor is copied into contiguous, writable arrays only.")
            self._receive(target)
            return target
        if isinstance(target, RemoteDevice) and target.session is self.session:
            target = allocate(self.session, self.shape, self.dtype, target)
        if (
            isinstance(target, RemoteNDArray)
            and target.session is self.session
            and (target.shape, target.dtype) == (self.shape, self.dtype)
        ):
            self._copy_there(target)
            return target
        return super().copyto(target)

    def same_as(self, other: object) -> bool:
        """Tell whether both are the same tensor on the device."""
        return isinstance(other, RemoteNDArray) and (
            (other.session, other.handle) == (self.session, self.handle)
        )

    def __repr__(self) -> str:
        return f"<RemoteNDArray shape={self.shape}, dtype={self.dtype}, {self.device}>"

    def __tvm_ffi_object__(self) -> Any:
        raise RPCError(
            f"{self!r} cannot be an argument of a function in this process; pass x.numpy(), or "
            "call a function of its session."
        )

    def __dlpack__(self, **_: Any) -> Any:
        raise RPCError(f"{self!r} has no memory in this process; use x.numpy().")

    def _read(self) -> npt.NDArray[Any]:
        out = np.empty(self.shape, numpy_dtype(self.dtype))
        self._receive(out)
        return out

    def _write(self, source: npt.NDArray[Any]) -> None:
        session = self.session
        with session.link.lock:
            session.begin_step()
            _HANDLE_RANGE.pack_into(session.link.request, 0, self.handle, 0, 0)
            session.link.send_data(Code.TENSOR_WRITE, 24, 8, source.ctypes.data, self._nbytes)

    def _receive(self, out: npt.NDArray[Any]) -> None:
        session = self.session
        with session.link.lock:
            session.begin_step()
            _HANDLE_RANGE.pack_into(session.link.request, 0, self.handle, 0, self._nbytes)
            session.link.receive_data(Code.TENSOR_READ, 24, out.ctypes.data, self._nbytes)

    def _copy_there(self, target: RemoteNDArray) -> None:
        session = self.session
        with session.link.lock:
            session.begin_step()
            _COPY.pack_into(session.link.request, 0, self.handle, 0, target.handle, 0, self._nbytes)
            session.link.call(Code.TENSOR_COPY, _COPY.size)


def allocate(
    session: RPCSession, shape: tuple[int, ...], dtype: str, device: Device
) -> RemoteNDArray:
    """Allocate a tensor, zeroed, on a device of the session."""
    with session.link.lock:
        session.begin_step()
        request = session.link.request
        parts = dtype_parts(dtype)
        _ALLOC.pack_into(request, 0, device.device_type, device.device_id, *parts, len(shape))
        struct.pack_into(f"<{len(shape)}q", request, _ALLOC.size, *shape)
        at = session.link.call(Code.TENSOR_ALLOC, _ALLOC.size + 8 * len(shape))
        tensor: RemoteNDArray = get_tensor(session, at + 16)
        return tensor
