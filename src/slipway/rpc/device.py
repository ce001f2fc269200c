"""Devices of a session, as the arguments and tensors of remote calls name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.rpc import array

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession

DEVICE_TYPES = {
    "cpu": 1, "cuda": 2, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10, "webgpu": 15,
    "hexagon": 16,
}  # fmt: skip
_SYNONYMS = {"llvm": "cpu", "c": "cpu", "gpu": "cuda", "nvptx": "cuda", "cl": "opencl"}


class RemoteDevice:
    """A device of a remote session: ``remote.cpu(0)``.

    `device_type` and `device_id` are DLPack's; `session` is where it is.
    """

    __slots__ = ("device_id", "device_type", "session")

    def __init__(self, session: RPCSession, device_type: int, device_id: int) -> None:
        self.session = session
        self.device_type = device_type
        self.device_id = device_id

    @property
    def type(self) -> str:
        """Name of the kind of device."""
        for name, number in DEVICE_TYPES.items():
            if number == self.device_type:
                return name
        return str(self.device_type)

    @property
    def index(self) -> int:
        """Number of the device among those of its kind."""
        return self.device_id

    @property
    def exist(self) -> bool:
        """Whether the machine has this device."""
        return bool(self.session.query_device(self.device_type, self.device_id, 0))

    def sync(self, stream: Any = None) -> None:
        """Wait until the device has done what it was given; requests are synchronous so far."""
        del stream

    def empty(self, shape: tuple[int, ...] | int, dtype: Any = "float32") -> array.RemoteNDArray:
        """Allocate a tensor on this device."""
        extents = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        return array.allocate(
            self.session,
            tuple(int(extent) for extent in extents),
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
        return f"{self.session}.{self.type}({self.device_id})"


def device_type_of(name: str) -> int:
    """Return DLPack's number for a kind of device; ValueError names those there are."""
    number = DEVICE_TYPES.get(_SYNONYMS.get(name, name))
    if number is None:
        raise ValueError(f"there is no kind of device {name!r}; known: {', '.join(DEVICE_TYPES)}.")
    return number
