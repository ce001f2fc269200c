"""Devices: a kind and a number. Those of a remote session are its own, see `RemoteDevice`."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from slipway.errors import ExecutionError, did_you_mean

# DLPack's device types; the second name of a pair is another spelling.
_TYPES = {
    "cpu": 1,
    "cuda": 2,
    "opencl": 4,
    "aocl": 5,
    "sdaccel": 6,
    "vulkan": 7,
    "metal": 8,
    "vpi": 9,
    "rocm": 10,
    "ext_dev": 12,
    "webgpu": 15,
    "hexagon": 16,
}
_SYNONYMS = {
    "llvm": "cpu",
    "c": "cpu",
    "stackvm": "cpu",
    "gpu": "cuda",
    "nvptx": "cuda",
    "cl": "opencl",
    "mtl": "metal",
}
_NAMES = {number: name for name, number in _TYPES.items()}


@runtime_checkable
class RemoteDevice(Protocol):
    """A device of another machine: a remote session's kind of device has this."""

    @property
    def device_type(self) -> int:
        """DLPack's number."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Allocate an array there."""


class Device:
    """One device of this process: ``cpu(0)``.

    Attributes: `device_type` (DLPack's number), `device_id`.
    """

    __slots__ = ("device_id", "device_type")

    def __init__(self, device_type: int | str, device_id: int = 0) -> None:
        if isinstance(device_type, str):
            device_type = _type_number(device_type)
        self.device_type = int(device_type)
        self.device_id = int(device_id)

    @property
    def type_name(self) -> str:
        """The kind's name: "cpu", "cuda", ..."""
        return _NAMES.get(self.device_type, f"device{self.device_type}")

    @property
    def exist(self) -> bool:
        """Whether code can run there from this process."""
        return self.device_type == 1 and self.device_id == 0

    @property
    def compute_version(self) -> None:
        """None: a CPU has no version of its own.  Raises ExecutionError for a GPU."""
        self.check()

    def sync(self) -> None:
        """Wait until the device has finished its work; the CPU always has."""
        self.check()

    def check(self) -> None:
        """Raise ExecutionError if this process cannot run code on the device."""
        if not self.exist:
            raise ExecutionError(
                f"{self} is not a device this process can use: only cpu(0) is. Compile for "
                f"Target('llvm') and use cpu(0), or reach the device over RPC "
                f"(remote.{self.type_name}({self.device_id}))."
            )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device_type, self.device_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.type_name}({self.device_id})"


def _type_number(name: str) -> int:
    word = name.split()[0] if name.split() else name
    word = _SYNONYMS.get(word, word)
    if word not in _TYPES:
        hint = did_you_mean(word, [*_TYPES, *_SYNONYMS])
        raise ValueError(f"{name!r} is not a kind of device.{hint} Known: {', '.join(_TYPES)}.")
    return _TYPES[word]


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """Return a device by the name of its kind: ``device("cpu", 0)``; "llvm" and "c" mean cpu.

    ``"cpu:0"`` is understood as well.
    """
    if isinstance(dev_type, str) and ":" in dev_type:
        dev_type, _, number = dev_type.partition(":")
        dev_id = int(number)
    return Device(dev_type, dev_id)


context = device  # the classic name


def cpu(dev_id: int = 0) -> Device:
    """Return the CPU."""
    return Device(1, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """Return an NVIDIA GPU."""
    return Device(2, dev_id)


def opencl(dev_id: int = 0) -> Device:
    """Return an OpenCL device."""
    return Device(4, dev_id)


def vulkan(dev_id: int = 0) -> Device:
    """Return a Vulkan device."""
    return Device(7, dev_id)


def metal(dev_id: int = 0) -> Device:
    """Return an Apple GPU."""
    return Device(8, dev_id)


def rocm(dev_id: int = 0) -> Device:
    """Return an AMD GPU."""
    return Device(10, dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """Return an extension device."""
    return Device(12, dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """Return a WebGPU device."""
    return Device(15, dev_id)


def hexagon(dev_id: int = 0) -> Device:
    """Return a Hexagon DSP."""
    return Device(16, dev_id)


def vpi(dev_id: int = 0) -> Device:
    """Return a simulated device on the host."""
    return Device(9, dev_id)


gpu = cuda
mtl = metal
cl = opencl
