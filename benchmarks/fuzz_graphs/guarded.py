"""Run a compiled graph kernel by kernel, with a page that may not be touched beside every tensor.

Each tensor has memory of its own, which ends (or begins) exactly at such a page, at the alignment
that the generated argument checks ask for: that of one element.  Inputs may not be written while
a kernel reads them, and the kernels' workspaces are guarded in the same way.  A kernel that reads
or writes beyond a tensor ends the process with SIGSEGV; whoever calls this looks after that.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
_READ, _WRITE = 1, 2
_PRIVATE_ANONYMOUS = 0x22
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_TENSOR = 7  # type index of a DLTensor* argument
_SLOTS = ("__slipway_parallel_launch", "__slipway_workspace_alloc", "__slipway_workspace_free")
_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.c_int32)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)


class _DLTensor(ctypes.Structure):
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


class _Any(ctypes.Structure):
    _fields_ = (
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_uint32),
        ("value", ctypes.c_uint64),
    )


_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Any), ctypes.c_int32, ctypes.POINTER(_Any)
)


class Memory:
    """Pages with one before and one behind that may not be touched."""

    def __init__(self, size: int, at_end: bool, align: int = 1) -> None:
        pages = -(-max(size, 1) // PAGE)
        self.room = pages * PAGE
        self.base = _libc.mmap(None, self.room + 2 * PAGE, 0, _PRIVATE_ANONYMOUS, -1, 0)
        if self.base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError("no pages")
        self.start = self.base + PAGE
        self.protect(_READ | _WRITE)
        ctypes.memset(self.start, 0xCD, self.room)
        offset = (self.room - size) // align * align if at_end else 0
        self.address = self.start + offset
        self.size = size

    def protect(self, how: int) -> None:
        if _libc.mprotect(self.start, self.room, how):
            raise OSError(ctypes.get_errno(), "mprotect")

    def slack_is_untouched(self) -> bool:
        """Whether the bytes of the pages beside the tensor are as they were."""
        before = self.address - self.start
        after = self.room - before - self.size
        return (
            ctypes.string_at(self.start, before) == b"\xcd" * before
            and ctypes.string_at(self.address + self.size, after) == b"\xcd" * after
        )

    def free(self) -> None:
        _libc.munmap(self.base, self.room + 2 * PAGE)


class _Tensor:
    def __init__(self, shape, dtype: str, at_end: bool) -> None:
        from slipway import dtypes

        code, bits, _ = dtypes.parse(dtype)
        self.shape, self.dtype = shape, dtype
        self.memory = Memory(int(np.prod(shape)) * dtypes.bytes_of(dtype), at_end)
        self._dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.struct = _DLTensor(
            self.memory.address, 1, 0, len(shape), dtypes.DLPACK_CODE[code], bits, 1,
            ctypes.addressof(self._dims), None, 0,
        )  # fmt: skip

    def write(self, array: np.ndarray) -> None:
        data = np.ascontiguousarray(array).tobytes()
        ctypes.memmove(self.memory.address, data, len(data))

    def read(self) -> np.ndarray:
        raw = ctypes.string_at(self.memory.address, self.memory.size)
        return np.frombuffer(raw, self.dtype).reshape(self.shape).copy()


def run(factory, inputs: dict[str, np.ndarray], at_end: bool) -> list[np.ndarray]:
    """Return the outputs of ``relay.build``'s result.  Raises AssertionError for a write beside."""
    library = factory.lib.loaded().library
    workspaces = _Workspaces(at_end)
    restore = workspaces.install(library)
    tensors: list[list[_Tensor]] = []
    try:
        for node in factory.graph.nodes:
            given = [tensors[ref.node][ref.index] for ref in node.inputs]
            outs = [_Tensor(t.shape, t.dtype, at_end) for t in node.types]
            tensors.append(outs)
            if not node.function:
                array = inputs.get(node.name)
                outs[0].write(factory.graph.params[node.name] if array is None else array)
            elif node.function == "__nop":
                outs[0].write(given[0].read())
            else:
                _call(library, node.function, given, outs)
        return [tensors[ref.node][ref.index].read() for ref in factory.graph.outputs]
    finally:
        restore()
        workspaces.free()
        for outs in tensors:
            for tensor in outs:
                tensor.memory.free()


def _call(library, name: str, given: list[_Tensor], outs: list[_Tensor]) -> None:
    function = _CALL(library.address("__tvm_ffi_" + name))
    everything = [*given, *outs]
    args = (_Any * len(everything))(
        *(_Any(_TENSOR, 0, ctypes.addressof(t.struct)) for t in everything)
    )
    for tensor in given:
        tensor.memory.protect(_READ)
    status = function(None, args, len(everything), ctypes.byref(_Any()))
    assert status == 0, f"{name} gave status {status}"
    for tensor in given:
        tensor.memory.protect(_READ | _WRITE)
    for tensor in everything:
        assert tensor.memory.slack_is_untouched(), f"{name} wrote beside a tensor"


class _Workspaces:
    """The kernels' temporary memory, guarded; and no threads."""

    ALIGN = 64

    def __init__(self, at_end: bool) -> None:
        self.at_end = at_end
        self.live: dict[int, Memory] = {}
        self.problem = ""
        self._alloc, self._free = _ALLOC(self._give), _FREE(self._take)

    def _give(self, size: int, device_type: int, device_id: int) -> int:
        memory = Memory(size, self.at_end, self.ALIGN)
        self.live[memory.address] = memory
        return memory.address

    def _take(self, address: int, device_type: int, device_id: int) -> None:
        memory = self.live.pop(address)
        if not memory.slack_is_untouched():
            self.problem = "a kernel wrote beside its workspace"
        memory.free()

    def install(self, library):
        """Put the functions into the library's slots; return what puts the old ones back."""
        values = [0, *(ctypes.cast(f, ctypes.c_void_p).value for f in (self._alloc, self._free))]
        old = []
        for slot, value in zip(_SLOTS, values, strict=True):
            address = library.address(slot)
            if address:
                pointer = ctypes.c_void_p.from_address(address)
                old.append((pointer, pointer.value))
                pointer.value = value

        def restore() -> None:
            for pointer, value in old:
                pointer.value = value
            assert not self.problem, self.problem

        return restore

    def free(self) -> None:
        for memory in self.live.values():
            memory.free()
