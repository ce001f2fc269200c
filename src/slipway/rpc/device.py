"""Devices of a session, as the arguments and tensors of remote calls name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import RPCError
from slipway.rpc import array
from slipway.rpc.protocol import Tag
from slipway.rpc.values import MAKERS
from slipway.runtime.devices import Device, DeviceProperties, RawStream
from slipway.runtime.ndarray import extents_of

if TYPE_CHECKING:
    from slipway.dtypes import DTypeLike
    from slipway.rpc.client import RPCSession


class RemoteDevice(DeviceProperties):
    """A device of a remote session: ``remote.cpu(0)``.

    `device_type` and `device_id` are DLPack's; `session` is where it is.
    """

    __slots__ = ("device_id", "device_type", "session")

    def __init__(self, session: RPCSession, device_type: int | str, device_id: int = 0) -> None:
        named = Device(device_type, device_id)
        self.session = session
        self.device_type = named.device_type
        self.device_id = named.device_id

    @property
    def type_name(self) -> str:
        """The kind's name: "cpu", "cuda", ..."""
        return Device(self.device_type).type_name

    @property
    def index(self) -> int:
        """Number of the device among those of its kind."""
        return self.device_id

    @property
    def host(self) -> RemoteDevice:
        """The processor that the device is beside."""
        return RemoteDevice(self.session, 1)

    @property
    def exist(self) -> bool:
        """Whether the machine has this device."""
        return bool(self.session.query_device(self.device_type, self.device_id, 0))

    def check(self) -> None:
        """Raise RPCError, which says why, if the machine has no such device."""
        if self.exist:
            return
        if self.device_type == 1:
            raise RPCError(f"{self} is not there: the machine's processors are cpu(0), all of them")
        self.session.get_function("runtime.device_sync")(self.device_type, self.device_id)

    def _attribute(self, number: int) -> Any:
        """Ask the machine that has the device; None for its CPU."""
        if self.device_type == 1:
            return None
        return self.session.query_device(self.device_type, self.device_id, number)

    def sync(self, stream: RawStream | None = None) -> None:
        """Wait until the device has done what it was given."""
        self._check_stream(stream)
        if self.device_type != 1:
            self.session.get_function("runtime.device_sync")(self.device_type, self.device_id)

    def trim(self) -> None:
        """Give memory that is kept for later allocations there back to the driver."""
        if self.device_type != 1:
            self.session.get_function("runtime.device_trim")(self.device_type, self.device_id)

    def empty(
        self, shape: tuple[int, ...] | int, dtype: DTypeLike = "float32"
    ) -> array.RemoteNDArray:
        """Allocate a tensor on this device."""
        return array.allocate(
            self.session,
            extents_of(shape),
            dtypes.canonical(dtype),
            self.device_type,
            self.device_id,
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RemoteDevice)
            and other.session is self.session
            and (other.device_type, other.device_id) == (self.device_type, self.device_id)
        )

    def __hash__(self) -> int:
        return hash((id(self.session), self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"remote {self.type_name}({self.device_id}) of {self.session}"


def _remote_array(
    session: RPCSession,
    handle: int,
    shape: tuple[int, ...],
    dtype: str,
    nbytes: int,
    device_type: int,
    device_id: int,
) -> array.RemoteNDArray:
    device = RemoteDevice(session, device_type, device_id)
    return array.RemoteNDArray(session, handle, shape, dtype, nbytes, device)


MAKERS[Tag.TENSOR_DESC] = _remote_array
