"""Devices of a session, as the arguments and tensors of remote calls name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.runtime.device import Device

if TYPE_CHECKING:
    from slipway.rpc.array import RemoteNDArray
    from slipway.rpc.client import RPCSession


class RemoteDevice(Device):
    """A device of a remote session: ``remote.cpu(0)``."""

    __slots__ = ()

    def __init__(self, session: RPCSession, device_type: int | str, device_id: int = 0) -> None:
        super().__init__(device_type, device_id, session)

    @property
    def session(self) -> RPCSession:
        """Where the device is."""
        session: Any = self.remote
        return session  # type: ignore[no-any-return]

    @property
    def exist(self) -> bool:
        """Whether the remote machine has this device."""
        return bool(self.session.query_device(self.device_type, self.device_id, 0))

    def check(self) -> None:
        """Do nothing: the device itself refuses what it cannot do, with its own reason."""

    def empty(self, shape: Sequence[int] | int, dtype: str = "float32") -> RemoteNDArray:
        """Allocate a tensor on this device; the same as ``nd.empty(shape, dtype, self)``."""
        from slipway.runtime import ndarray

        made: Any = ndarray.empty(shape, dtype, self)
        return made  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"{self.type_name}({self.device_id}) of {self.session}"
