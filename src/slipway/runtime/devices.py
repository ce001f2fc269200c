"""Devices: a kind and a number. Those of a remote session are its own, see `RemoteDevice`."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from slipway.errors import ArgumentTypeError, ArgumentValueError, ExecutionError, did_you_mean
from slipway.runtime.libraries.native_library import native_runtime, native_runtime_or_none

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
# Devices that only text is written for -> the format of `get_source`.
_ONLY_TEXT = {"metal": "metal", "webgpu": "wgsl"}
_NAMES = {number: name for name, number in _TYPES.items()}
_KINDS_WITHOUT_DEVICE = {"test": 1, "hybrid": 1, "composite": 1, "aocl_sw_emu": 5}


@runtime_checkable
class RemoteDevice(Protocol):
    """A device of another machine: a remote session's kind of device has this."""

    @property
    def device_type(self) -> int:
        """DLPack's number."""

    @property
    def host(self) -> RemoteDevice:
        """The processor that the device is beside."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Allocate an array there."""


class RawStream:
    """A stream of a device, from `create_raw_stream`: a queue beside the device's own.

    What two streams are given is in no order, unless `stream_sync` says so; the device's own queue
    (None) is in order with all. Where `number` is 0, it is another name of the own queue.
    """

    __slots__ = ("device", "is_open", "number")

    def __init__(self, device: DeviceProperties, number: int = 0) -> None:
        self.device = device
        self.number = number
        self.is_open = True


class DeviceProperties:
    """What a device says of itself; None where its driver does not say, and for a CPU."""

    __slots__ = ()

    def create_raw_stream(self) -> RawStream:
        """Return a stream of the device; `free_raw_stream` ends it."""
        return RawStream(self, self._stream("make"))

    def free_raw_stream(self, stream: RawStream | None) -> None:
        """End a stream; work that it was given goes on."""
        self._check_stream(stream)
        if stream is not None:  # the device's own stays
            stream.is_open = False
            if stream.number:
                self._stream("drop", stream)

    def set_raw_stream(self, stream: RawStream | None) -> None:
        """Give the kernels that this thread launches from now on to a stream, or the own queue."""
        self._check_stream(stream)
        self._stream("use", stream)

    def stream_sync(self, before: RawStream | None, stream: RawStream | None) -> None:
        """Let what `stream` is given from now on run after what `before` was given."""
        self._check_stream(before)
        self._check_stream(stream)
        self._stream("wait", stream, before)

    def _stream(
        self, what: str, stream: RawStream | None = None, before: RawStream | None = None
    ) -> int:
        """Ask the driver, where the kind of device has streams; 0 where it has one queue."""
        return 0

    def _check_stream(self, stream: RawStream | None) -> None:
        """Raise ArgumentTypeError or ArgumentValueError for what is no open stream of here."""
        if stream is None:
            return
        if not isinstance(stream, RawStream):
            raise ArgumentTypeError(
                f"{stream!r} is no stream: pass one of {self}.create_raw_stream(), or None"
            )
        if stream.device != self:
            raise ArgumentValueError(f"a stream of {stream.device} is none of {self}")
        if not stream.is_open:
            raise ArgumentValueError(f"this stream of {self} was freed: create another")

    def _attribute(self, number: int) -> Any:
        """Ask the driver, by the number of crt's device_api.h."""
        raise NotImplementedError

    @property
    def max_threads_per_block(self) -> int | None:
        """Most threads in a block (work items in a work group)."""
        return self._attribute(1)  # type: ignore[no-any-return]

    @property
    def warp_size(self) -> int | None:
        """Threads that run in step, as far as code is built on it."""
        return self._attribute(2)  # type: ignore[no-any-return]

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """Bytes of memory that the threads of a block share."""
        return self._attribute(3)  # type: ignore[no-any-return]

    @property
    def compute_version(self) -> str | None:
        """The version of the device's interface: "OpenCL 3.0 ..."."""
        return self._attribute(4)  # type: ignore[no-any-return]

    @property
    def device_name(self) -> str | None:
        """What the driver calls the device."""
        return self._attribute(5)  # type: ignore[no-any-return]

    @property
    def max_clock_rate(self) -> int | None:
        """Clock in kHz."""
        return self._attribute(6)  # type: ignore[no-any-return]

    @property
    def multi_processor_count(self) -> int | None:
        """Processors (compute units) of the device."""
        return self._attribute(7)  # type: ignore[no-any-return]

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        """Most threads of a block along x, y and z."""
        found = self._attribute(8)
        return None if found is None else [int(n) for n in found.strip("[]").split(",")]

    @property
    def api_version(self) -> str | None:
        """The version of the driver's interface."""
        return self._attribute(11)  # type: ignore[no-any-return]

    @property
    def driver_version(self) -> str | None:
        """The version of the driver."""
        return self._attribute(12)  # type: ignore[no-any-return]

    @property
    def total_global_memory(self) -> int | None:
        """Bytes of the device's memory."""
        return self._attribute(14)  # type: ignore[no-any-return]


class Device(DeviceProperties):
    """One device of this process: ``cpu(0)``.

    Attributes: `device_type` (DLPack's number), `device_id`.
    """

    __slots__ = ("device_id", "device_type")

    # Kind of target -> DLPack's number, and that number -> the kind's name.
    STR2MASK: ClassVar[dict[str, int]] = {
        **_TYPES, **{other: _TYPES[name] for other, name in _SYNONYMS.items()},
        **_KINDS_WITHOUT_DEVICE,
    }  # fmt: skip
    MASK2STR: ClassVar[dict[int, str]] = _NAMES

    def __init__(self, device_type: int | str, device_id: int = 0) -> None:
        if isinstance(device_type, str):
            device_type = _type_number(device_type)
        try:
            numbers = int(device_type.__index__()), int(device_id.__index__())
        except (AttributeError, TypeError):
            raise ArgumentTypeError(
                f"a device is a kind and a number, device('cuda', 0), not {device_type!r} and "
                f"{device_id!r}"
            ) from None
        self.device_type, self.device_id = numbers

    @property
    def type_name(self) -> str:
        """The kind's name: "cpu", "cuda", ..."""
        return _NAMES.get(self.device_type, f"device{self.device_type}")

    @property
    def exist(self) -> bool:
        """Whether code can run there from this process."""
        if self._has_driver():
            return bool(self._attribute(0))
        return self.device_type == 1 and self.device_id == 0

    def _attribute(self, number: int) -> Any:
        """Ask the driver; None where it does not say, and for a CPU.

        Raises ExecutionError or DeviceError for a device that is not there.
        """
        if number:
            self.check()
        if not self._has_driver():
            return None
        query = native_runtime().packed("device_attribute")
        found = query(self.device_type, self.device_id, number)
        return str(found) if isinstance(found, str) else found

    def _has_driver(self) -> bool:
        """Return whether the runtime has a table of functions for this kind (device_api.h)."""
        if self.device_type == _TYPES["cpu"]:
            return False
        runtime = native_runtime_or_none()
        return runtime is not None and runtime.has_devices(self.device_type)

    def sync(self, stream: RawStream | None = None) -> None:
        """Wait until the device has finished its work; the CPU always has."""
        self._check_stream(stream)
        self.check()
        if stream is not None and stream.number:
            self._stream("sync", stream)
        elif self._has_driver():
            native_runtime().packed("device_sync")(self.device_type, self.device_id)

    def has_streams(self) -> bool:
        """Return whether streams of this kind of device are queues of their own."""
        return self._has_driver() and bool(_call_stream(self, "has", 0, 0))

    def _stream(
        self, what: str, stream: RawStream | None = None, before: RawStream | None = None
    ) -> int:
        if not self.has_streams():
            return 0
        self.check()
        numbers = (0 if it is None else it.number for it in (stream, before))
        return _call_stream(self, what, *numbers) or 0

    def trim(self) -> None:
        """Give memory that is kept for later allocations back to the driver."""
        self.check()
        if self._has_driver():
            native_runtime().packed("device_trim")(self.device_type, self.device_id)

    def check(self) -> None:
        """Raise an error if this process cannot run code on the device.

        ExecutionError for a kind that Slipway has no driver interface for, DeviceError where there
        is no driver or no device.
        """
        if self.exist:
            return
        if self._has_driver():
            native_runtime().packed("device_sync")(self.device_type, self.device_id)
        if self.type_name in _ONLY_TEXT:
            where = "outside of a Mac" if self.type_name == "metal" else "yet"
            raise ExecutionError(
                f"{self} is not a device that Slipway runs kernels on {where}: the text of kernels "
                f'for {self.type_name} (lib.imported_modules[0].get_source("'
                f'{_ONLY_TEXT[self.type_name]}")) is for a program of '
                "yours. Compile for opencl, vulkan, cuda or rocm to run them here."
            )
        raise ExecutionError(
            f"{self} is not a device this process can use: cpu(0), OpenCL, Vulkan, CUDA and ROCm "
            f"devices are. Compile for Target('llvm') and use cpu(0), or reach the device over RPC "
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


AnyDevice = Device | RemoteDevice


def _call_stream(device: Device, what: str, stream: int, before: int) -> int | None:
    call = native_runtime().packed("device_stream")
    made: int | None = call(device.device_type, device.device_id, what, stream, before)
    return made


def _type_number(name: str) -> int:
    word = name.split()[0] if name.split() else name
    word = _SYNONYMS.get(word, word)
    if word not in _TYPES:
        hint = did_you_mean(word, [*_TYPES, *_SYNONYMS])
        raise ArgumentValueError(
            f"{name!r} is not a kind of device.{hint} Known: {', '.join(_TYPES)}."
        )
    return _TYPES[word]


def is_accelerator(name: str) -> bool:
    """Return whether a name is that of a kind of device other than the CPU."""
    return _SYNONYMS.get(name, name) in _TYPES.keys() - {"cpu"}


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
