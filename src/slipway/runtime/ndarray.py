"""Arrays: memory with a shape and a dtype on a device, exchanged through DLPack without copies."""

from __future__ import annotations

import ctypes
import math
import operator
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import ArgumentTypeError, ArgumentValueError, ExecutionError
from slipway.runtime.devices import AnyDevice, Device, RemoteDevice
from slipway.runtime.libraries.native_library import native_runtime, tvm_ffi

if TYPE_CHECKING:
    import numpy.typing as npt

ALIGNMENT_BYTES = 64
_NUMPY_OWN = frozenset(
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ]
)
PACKED = frozenset(["int4", "uint4"])


class NDArray:
    """An array in this process, over a tvm_ffi Tensor.  Remote ones are a remote session's.

    Attributes: `shape`, `dtype` (a plain string, for example "float32"), `device`.
    """

    __slots__ = ("__weakref__", "_device", "_dtype", "_shape", "_tensor")

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor  # what it says of itself is asked for when it is wanted
        self._shape: tuple[int, ...] | None = None
        self._dtype = ""
        self._device: Device | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        if self._shape is None:
            self._shape = tuple(self._tensor.shape)
        return self._shape

    @property
    def dtype(self) -> str:
        """The type of the elements, for example "float32"."""
        if not self._dtype:
            self._dtype = dtypes.canonical(str(self._tensor.dtype))
        return self._dtype

    @property
    def device(self) -> Device:
        """Where the elements are."""
        if self._device is None:
            self._device = Device(*self._tensor.__dlpack_device__())
        return self._device

    def _read(self) -> npt.NDArray[Any]:
        """Return a NumPy array of the elements; it may be a view."""
        if self.device.device_type != 1:
            return self._here()._read()
        if self.dtype in PACKED:
            raw = _numpy_view(self._tensor, (self.nbytes,), "uint8")
            return unpack_halves(raw, self.shape, self.dtype)
        return _numpy_view(self._tensor, self.shape, self.dtype)

    def _write(self, source: npt.NDArray[Any]) -> None:
        """Overwrite all elements from a C-contiguous array of the same shape and dtype."""
        if self.device.device_type != 1:
            staged = empty(self.shape, self.dtype)
            staged._write(source)
            _move(staged, self)
            return
        if self.dtype in PACKED:
            np.copyto(_numpy_view(self._tensor, (self.nbytes,), "uint8"), pack_halves(source))
            return
        np.copyto(_numpy_view(self._tensor, self.shape, self.dtype), source)

    def _here(self) -> NDArray:
        """Return a copy in this process's memory."""
        copied = empty(self.shape, self.dtype)
        _move(self, copied)
        return copied

    # What users call.

    @property
    def ctx(self) -> Device:
        """The device, under its classic name."""
        return self.device

    context = ctx

    @property
    def _tvm_handle(self) -> NDArray:
        """What a class of `register_extension` hands on: the array itself."""
        return self

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return dtypes.array_bytes(self.size, self.dtype)

    def numpy(self) -> npt.NDArray[Any]:
        """Return a copy of the elements as a NumPy array."""
        with suppress(BufferError, RuntimeError, TypeError, ValueError):
            # In C where NumPy has the type and this process the memory: a fifth of the time.
            return np.from_dlpack(self._tensor).copy()
        return np.array(self._read())

    asnumpy = numpy

    def copyfrom(self, source: Any) -> NDArray:
        """Overwrite the elements with those of `source` (array, NDArray, nested lists).

        Shapes must be equal; other dtypes are converted as NumPy's ``astype`` does.  Returns self.
        """
        values = _values_of(source)
        wanted = numpy_dtype(self.dtype)
        lanes = dtypes.lanes_of(self.dtype)
        shape = self.shape if lanes == 1 else (*self.shape, lanes)
        if values.shape != shape:
            raise ArgumentValueError(
                f"cannot copy an array of shape {values.shape} into one of shape {shape}. Reshape "
                "it first, or allocate the array with that shape."
            )
        self._write(np.asarray(values, dtype=wanted, order="C"))
        return self

    def copyto(self, target: Any) -> Any:
        """Copy the elements into `target`, or into a new array on the device `target`."""
        if isinstance(target, Device | RemoteDevice):
            target = empty(self.shape, self.dtype, target)
        if not hasattr(target, "copyfrom"):
            raise ArgumentTypeError(
                f"copyto takes an NDArray or a device, not {type(target).__name__}."
            )
        if target.shape != self.shape or target.dtype != self.dtype:
            raise ArgumentValueError(
                f"cannot copy {self.dtype}{list(self.shape)} into "
                f"{target.dtype}{list(target.shape)}: shape and dtype must be equal."
            )
        if isinstance(target, NDArray) and target.device == self.device:
            _move(self, target)
        else:
            target.copyfrom(self._read())
        return target

    def copyto_async(self, target: NDArray) -> NDArray:
        """Copy the elements into `target`, beside the host's work, in the stream that is set.

        One is on a device with streams, the other there or in `empty_pinned` memory of the host.
        Neither may be written, nor the target read, before the stream was waited for (`sync`).
        """
        if not isinstance(target, NDArray):
            raise ArgumentTypeError(f"copyto_async takes an NDArray, not {type(target).__name__}.")
        if target.shape != self.shape or target.dtype != self.dtype:
            raise ArgumentValueError(
                f"cannot copy {self.dtype}{list(self.shape)} into "
                f"{target.dtype}{list(target.shape)}: shape and dtype must be equal."
            )
        there, here = (self, target) if target.device.device_type == 1 else (target, self)
        if here.device == there.device:
            _move(self, target)
        elif here.device.device_type != 1 or not there.device.has_streams():
            raise ExecutionError(
                f"{self.device} and {target.device} cannot copy beside the host's work: one is to "
                "be a device with streams, the other the same or cpu(0). Use copyto."
            )
        elif self.nbytes:
            addresses = (there._tensor.data_ptr(), here._tensor.data_ptr())
            copy = native_runtime().packed("device_copy_later")
            copy(there.device.device_type, *addresses, self.nbytes, int(there is self))
        return target

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice) and index == slice(None):
            if isinstance(value, int | float | bool | np.generic):
                value = np.full(self.shape, value, dtype=numpy_dtype(self.dtype))
            self.copyfrom(value)
            return
        raise IndexError("only y[:] = value is supported; use y.numpy() for parts of an array.")

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("a 0-dimensional array has no length")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ArgumentValueError("NumPy has no view of this tensor: leave copy=False away.")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def __float__(self) -> float:
        return float(self._read().reshape(()))

    def __int__(self) -> int:
        return int(self._read().reshape(()))

    def __repr__(self) -> str:
        return f"<NDArray shape={self.shape}, dtype={self.dtype}, {self.device}>\n{self._read()!r}"

    def same_as(self, other: object) -> bool:
        """Return whether both are the same array in memory."""
        if not isinstance(other, NDArray):
            return False
        return self is other or self._tensor.same_as(other._tensor)

    def _create_view(self, shape: Sequence[int]) -> NDArray:
        """Return an array of another shape over the first elements of this one's memory."""
        extents = extents_of(shape)
        if min(extents, default=0) < 0 or math.prod(extents) > self.size:
            raise ArgumentValueError(
                f"an array of {self.size} elements has no view of shape {extents}."
            )
        if not self._tensor.is_contiguous():
            raise ArgumentValueError("an array that is not contiguous has no view: copy it first.")
        return NDArray(_view(self._tensor, self.__dlpack_device__(), extents, self.dtype))

    # DLPack, and tvm-ffi's protocol for arguments.

    def __tvm_ffi_object__(self) -> Any:
        return self._tensor

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.__dlpack_device__()

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule that shares the memory and keeps it alive."""
        return self._tensor.__dlpack__()


def _values_of(source: Any) -> npt.NDArray[Any]:
    """Return the elements of any kind of array, local or remote, for reading."""
    if isinstance(source, NDArray):
        return source._read()
    if not isinstance(source, np.ndarray) and hasattr(source, "asnumpy"):
        return np.asarray(source.asnumpy())
    return np.asarray(source)


class _Capsule:
    """Gives a bare DLPack capsule the protocol that importers ask for."""

    def __init__(self, capsule: Any, device: tuple[int, int] = (1, 0)) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


class DLTensor(ctypes.Structure):
    """DLPack's tensor, which owns nothing; `shape` and `strides` are addresses."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


def array(
    source: Any,
    device: AnyDevice | None = None,
    dtype: str | None = None,
    *,
    ctx: AnyDevice | None = None,
) -> NDArray:
    """Return a new array on `device` (default ``cpu(0)``) with a copy of the elements of `source`.

    Lists and Python numbers become float32 and int32, as classic scripts expect of literals.  `ctx`
    is what `device` was called once.
    """
    device = ctx if device is None else device
    values = _values_of(source)
    if isinstance(source, NDArray):
        inferred, shape = source.dtype, source.shape
    else:
        if not hasattr(source, "dtype"):
            literal = {"f": "float32", "i": "int32"}.get(values.dtype.kind)
            values = values.astype(literal) if literal else values
        inferred, shape = dtypes.canonical(values.dtype), values.shape
    return empty(shape, dtype or inferred, device).copyfrom(values)


def empty(
    shape: int | Sequence[int],
    dtype: str = "float32",
    device: AnyDevice | None = None,
    mem_scope: str | None = None,
    *,
    ctx: AnyDevice | None = None,
) -> NDArray:
    """Return a new array with arbitrary elements, aligned to 64 bytes.

    `shape` is an extent or a sequence of them; ``()`` makes a scalar, and extents may be 0.
    `mem_scope` is None or "global": images, and memory that threads share, are a kernel's own.
    """
    if mem_scope not in (None, "", "global"):
        raise ArgumentValueError(
            f"mem_scope={mem_scope!r}: arrays are in memory that all of a device sees; leave it "
            "out, and let a stage of the function copy the array there: cache_read"
        )
    device = ctx if device is None else device
    extents = extents_of(shape)
    if any(extent < 0 for extent in extents):
        raise ArgumentValueError(f"cannot make an array of shape {extents}: an extent is negative.")
    dtype = dtypes.canonical(dtype)
    if device is not None and not isinstance(device, Device):
        if not isinstance(device, RemoteDevice):
            raise ArgumentTypeError(f"{device!r} is not a device; write for example cpu(0).")
        remote: NDArray = device.empty(extents, dtype)
        return remote
    if device is not None:
        device.check()
        if device.device_type != 1:
            return _empty_on(device, extents, dtype)
    return NDArray(_allocate(extents, dtype))


def extents_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return a shape's extents; ArgumentTypeError for what is no extent or a sequence of them."""
    try:
        if hasattr(shape, "__index__"):
            return (operator.index(shape),)
        return tuple(map(operator.index, shape))
    except TypeError as error:
        raise ArgumentTypeError(
            f"{shape!r} is no shape: it takes a whole number, or a sequence of them."
        ) from error


def _empty_on(device: Device, shape: tuple[int, ...], dtype: str) -> NDArray:
    """Return a new array in the memory of a device beside the processor."""
    code, bits, lanes = dtypes.parse(dtype)
    kind = (device.device_type, device.device_id, dtypes.DLPACK_CODE[code], bits, lanes)
    return NDArray(native_runtime().packed("device_empty")(*kind, *shape))


def empty_pinned(shape: int | Sequence[int], dtype: str, device: Device) -> NDArray:
    """Return a new array of the host in memory that a device can copy beside the host's work.

    Its elements are arbitrary; `copyto_async` copies from and to it.
    """
    extents = extents_of(shape)
    dtype = dtypes.canonical(dtype)
    if any(extent < 0 for extent in extents):
        raise ArgumentValueError(f"cannot make an array of shape {extents}: an extent is negative.")
    if not isinstance(device, Device) or not device.has_streams():
        raise ArgumentValueError(
            f"{device} has no pinned memory: opencl, cuda and rocm devices of this process do."
        )
    device.check()
    size_bytes = math.prod(extents) * dtypes.bytes_of(dtype)
    kind = (device.device_type, device.device_id)
    pinned = native_runtime().packed("device_pinned")
    address = pinned(*kind, size_bytes + ALIGNMENT_BYTES)
    memory = (ctypes.c_uint8 * (size_bytes + ALIGNMENT_BYTES)).from_address(address)
    weakref.finalize(memory, pinned, kind[0], kind[1], 0, address)
    start = -address % ALIGNMENT_BYTES
    whole: npt.NDArray[np.uint8] = np.ctypeslib.as_array(memory)
    return NDArray(_over(whole[start : start + size_bytes], extents, dtype))


def _move(source: NDArray, target: NDArray) -> None:
    """Copy between arrays of one shape and dtype, on whatever devices."""
    native_runtime().packed("tensor_copy")(source._tensor, target._tensor)


def from_dlpack(source: Any) -> NDArray:
    """Return an array over the memory of a tensor or DLPack capsule, which stays alive with it.

    The memory must be on the CPU and writable; arrays that are not need ``array(source)``.
    """
    if type(source).__name__ == "PyCapsule":
        source = _Capsule(source)
    if isinstance(source, NDArray):
        return NDArray(source._tensor)
    return NDArray(tvm_ffi().from_dlpack(source))


def numpy_dtype(dtype: str) -> Any:
    """Return the NumPy dtype of one lane of `dtype`; ExecutionError if NumPy has none."""
    name = dtypes.scalar_of(dtype)
    if name in _NUMPY_OWN:
        return np.dtype(name)
    if name == "bfloat16" or dtypes.is_carried(name):
        try:
            import ml_dtypes
        except ImportError:
            raise ExecutionError(
                f"NumPy has no {name} of its own. Install ml_dtypes, which adds it: "
                "pip install ml_dtypes."
            ) from None
        return np.dtype(getattr(ml_dtypes, name))
    if dtypes.is_custom(name):
        return np.dtype(dtypes.custom_carrier(name))
    raise ExecutionError(f"an array of {dtype} cannot be seen from NumPy.")


def is_numpy_own(dtype: str) -> bool:
    """Return whether NumPy has a dtype without another package."""
    return dtype in _NUMPY_OWN


def pack_halves(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the bytes of four-bit integers as DLPack lays them out: the first in the low half."""
    flat = values.reshape(-1).astype(np.int8).view(np.uint8) & 15
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    return np.asarray(flat[0::2] | (flat[1::2] << 4), np.uint8)


def unpack_halves(
    raw: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: str
) -> npt.NDArray[Any]:
    """Return the four-bit integers of `dtype` in packed bytes, as a new array."""
    both: npt.NDArray[Any] = np.stack([raw & 15, raw >> 4], axis=-1)
    both = both.reshape(-1)[: math.prod(shape)]
    if dtypes.is_int(dtype):
        both = np.asarray((both ^ 8).astype(np.int8) - 8)
    return both.astype(numpy_dtype(dtype)).reshape(shape)


def _allocate(shape: tuple[int, ...], dtype: str) -> Any:
    """Make a tvm_ffi Tensor over aligned memory that NumPy owns."""
    # Four bits lie two in a byte, and the runtime's tensors have a byte for each, which it copies.
    size_bytes = math.prod(shape) * dtypes.bytes_of(dtype)
    if size_bytes >= 2**62:
        raise MemoryError(f"an array of shape {shape} does not fit into memory.")
    return _over(aligned_bytes(size_bytes), shape, dtype)


def aligned_bytes(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Return a new array of so many bytes, aligned to 64."""
    raw = np.empty(size_bytes + ALIGNMENT_BYTES, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + size_bytes]


def array_over(memory: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: str) -> NDArray:
    """Return an array over a piece of bytes that begins at a multiple of 64; it keeps them."""
    return NDArray(_over(memory, shape, dtype))


def _over(memory: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: str) -> Any:
    """Make a tvm_ffi Tensor over bytes of NumPy's."""
    ffi = tvm_ffi()
    if dtype in _NUMPY_OWN and memory.size:
        return ffi.from_dlpack(memory.view(dtype).reshape(shape))
    # NumPy cannot say the type or the shape: borrow its bytes and describe them ourselves.
    if not memory.size:  # an empty slice need not begin where it was cut
        memory = aligned_bytes(ALIGNMENT_BYTES)
    return _view(ffi.from_dlpack(memory), (1, 0), shape, dtype)


def _view(owner: Any, device: tuple[int, int], shape: tuple[int, ...], dtype: str) -> Any:
    """Return a tvm_ffi Tensor over another's memory, which it keeps."""
    ffi = tvm_ffi()
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    strides = (ctypes.c_int64 * max(len(shape), 1))(*_compact_strides(shape))
    code, bits, lanes = dtypes.parse(dtype)
    prototype = DLTensor(
        data=owner.data_ptr(),
        device_type=device[0],
        device_id=device[1],
        ndim=len(shape),
        code=dtypes.DLPACK_CODE[code],
        bits=bits,
        lanes=lanes,
        shape=ctypes.addressof(extents),
        strides=ctypes.addressof(strides),
    )
    handle = ctypes.c_void_p()
    view = ffi.LIB.TVMFFITensorCreateUnsafeView
    if view(ctypes.c_void_p(owner.__chandle__()), ctypes.byref(prototype), ctypes.byref(handle)):
        raise MemoryError(f"an array of shape {shape} and dtype {dtype} cannot be made.")
    return _adopt(handle.value or 0, device)


def _compact_strides(shape: tuple[int, ...]) -> list[int]:
    """Return row-major strides in elements; an extent of 0 counts as 1."""
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return strides


def _adopt(handle: int, device: tuple[int, int]) -> Any:
    """Wrap a new tensor handle, whose one reference becomes Python's."""
    # A DLPack capsule is the way in that needs nothing but public functions.
    ffi = tvm_ffi()
    managed = ctypes.c_void_p()
    failed = ffi.LIB.TVMFFITensorToDLPack(ctypes.c_void_p(handle), ctypes.byref(managed))
    ffi.LIB.TVMFFIObjectDecRef(ctypes.c_void_p(handle))
    if failed:
        raise MemoryError("a tensor cannot be handed over.")
    return ffi.from_dlpack(_Capsule(_new_capsule(managed, b"dltensor", None), device))


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def _numpy_view(tensor: Any, shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    """Return a NumPy array over a CPU tensor's memory, which keeps the tensor alive."""
    if tensor.__dlpack_device__()[0] != 1:
        raise ExecutionError("an array that is not on the CPU cannot be read; copy it first.")
    element = numpy_dtype(dtype)
    lanes = dtypes.lanes_of(dtype)
    full = shape if lanes == 1 else (*shape, lanes)
    if math.prod(full) == 0:
        return np.empty(full, element)
    if not tensor.is_contiguous():
        if dtype not in _NUMPY_OWN:
            raise ExecutionError(f"an array of {dtype} that is not contiguous cannot be read.")
        return np.from_dlpack(tensor)
    raw = (ctypes.c_char * (math.prod(full) * element.itemsize)).from_address(tensor.data_ptr())
    raw._tensor = tensor
    return np.frombuffer(raw, dtype=element).reshape(full)


def array_of_tensor(tensor: Any) -> npt.NDArray[Any]:
    """Return the values of a tensor, which may ask for gradients, lie elsewhere, or be a view."""
    held = tensor.detach().cpu().resolve_conj().resolve_neg()
    if str(held.dtype) != "torch.bfloat16":
        return np.asarray(held.numpy(), order="C")
    import torch

    bits: npt.NDArray[Any] = held.contiguous().view(torch.int16).numpy()
    return bits.view(numpy_dtype("bfloat16"))


def tensor_of_array(array: npt.NDArray[Any]) -> Any:
    """Return a tensor with a copy of an array's values."""
    import torch

    copied = np.array(array)
    if copied.dtype.name != "bfloat16":
        return torch.from_numpy(copied)
    return torch.from_numpy(copied.view(np.int16)).view(torch.bfloat16)
