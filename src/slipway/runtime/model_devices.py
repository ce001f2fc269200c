"""The devices that a model runs on: the processor, a GPU, or both; here or of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from slipway.runtime.devices import Device, cpu
from slipway.runtime.ndarray import array

Array = np.ndarray[Any, Any]
# Calls one compiled function by name, on arrays, for results like others.
Caller = Callable[[str, Sequence[Array], Sequence[Array]], list[Array]]


class DevicesOf(Protocol):
    """What has devices: a session on a device server."""

    def cpu(self, index: int = 0) -> Any:
        """Return the processor."""

    def device(self, name: str) -> Any:
        """Return a device of another kind: "opencl", "vulkan", ..."""


class ModelDevices:
    """One device of each kind that a model was compiled for.

    Attributes: `each`, what ``lib["default"]`` takes; `main`, the one whose clock times a run:
    the GPU, where one has kernels of the model.
    """

    def __init__(self, metadata: Mapping[str, Any], session: DevicesOf | None = None) -> None:
        several = metadata.get("device_types")
        numbers = several or [int(metadata.get("device_type", 1))]
        processor: Any = cpu(0) if session is None else session.cpu(0)
        self._of_kind: dict[int, Any] = {1: processor}
        for number in numbers:
            if number != 1:
                kind = Device(number)
                self._of_kind[number] = kind if session is None else session.device(kind.type_name)
        every = tuple(self._of_kind.values())
        self.each = every if several else every[-1:]
        self.main = every[-1]

    @property
    def is_processor(self) -> bool:
        """Return whether nothing but the processor runs the model: its limits can be measured."""
        return list(self._of_kind) == [1]

    @property
    def missing(self) -> str:
        """The kind of a device that is not there; "" where all are."""
        for number, device in self._of_kind.items():
            if number != 1 and not device.exist:
                return Device(number).type_name
        return ""

    def caller(self, library: Any, kernel_devices: Mapping[str, int]) -> Caller:
        """Return what calls one compiled function of the loaded model on arrays.

        `kernel_devices` are those of its `ModelGraph`.
        """

        def call(name: str, arguments: Sequence[Array], like: Sequence[Array]) -> list[Array]:
            device = self._of_kind.get(kernel_devices.get(name, 0), self.main)
            given = [array(np.asarray(a, order="C"), device) for a in arguments]
            results = [array(np.zeros_like(a), device) for a in like]
            library[name](*given, *results)
            return [r.numpy() for r in results]

        return call
