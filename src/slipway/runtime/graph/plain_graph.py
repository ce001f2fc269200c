"""A model's executor bound with ctypes, for a first result without tvm-ffi's package.

Importing that takes as long as everything else of a small model's first call.  It serves what most
models are: tensors of fixed sizes in the processor's memory, of types that NumPy has, nothing that
lives from run to run, kernels that call nothing by name.  Whatever else there is, `plain_graph`
leaves to `GraphModule`, which also tells what is wrong where something fails here.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import ArtifactError, ToolchainError
from slipway.runtime.artifact import Artifact
from slipway.runtime.graph.param_store import ParamStore
from slipway.runtime.libraries.library import (
    FUNCTION_PREFIX,
    DsoLibrary,
    fill_native_slots,
    needs_more,
)
from slipway.runtime.libraries.native_library import address_of, plain_library
from slipway.runtime.ndarray import DLTensor, is_numpy_own
from slipway.runtime.params import read_params

Array = np.ndarray[Any, Any]
_CPU = 1  # DLPack's number


class _Any(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("zero", ctypes.c_uint32), ("value", ctypes.c_int64))


class _Function(ctypes.Structure):
    _fields_ = (("call", ctypes.c_void_p), ("self", ctypes.c_void_p))


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p
)


class PlainGraph:
    """An instance of a model, its parameters set.

    Attributes: `names`, those of its inputs, parameters among them.
    """

    def __init__(self, artifact: Artifact, library: DsoLibrary) -> None:
        self._lib = plain_library()
        fill_native_slots(library, lambda name: address_of(getattr(self._lib, name)))
        self._module = self._created(artifact, library)
        kept: list[object] = [library]  # what must be there as long as the module
        keep = ctypes.c_void_p()  # in whose name the module reads parameters
        weakref.finalize(self, _release, self._lib, self._module, keep, kept).atexit = False
        described = list(self._described())
        if any(role == "state" for _, role in described):
            raise NotPlainError
        self.names = [name for name, _ in described]
        params = ParamStore(read_params(artifact.params) if artifact.params else {})
        kept.append(params)
        self._keep(params, keep)
        for number, name in enumerate(self.names):
            if name in params.positions:
                self._share(number, params, name, keep)
        call, own = self._function("run")
        self._nothing = _Any()
        self._run = partial(call, own, None, 0, ctypes.addressof(self._nothing))

    def _created(self, artifact: Artifact, library: DsoLibrary) -> ctypes.c_void_p:
        names = [str(name) for name in artifact.metadata.get("functions", ())]
        found = [(name, library.address(FUNCTION_PREFIX + name)) for name in names]
        table = [(name.encode(), address) for name, address in found if address]
        functions = (_Function * len(table))(*(_Function(address, None) for _, address in table))
        texts = (ctypes.c_char_p * len(table))(*(name for name, _ in table))
        blob, module, device = artifact.graph or b"", ctypes.c_void_p(), _Device(_CPU, 0)
        self._check(
            self._lib.slw_graph_module_create_from_table(
                *(ctypes.byref(device), ctypes.c_size_t(1), blob, ctypes.c_size_t(len(blob))),
                *(texts, functions, ctypes.c_size_t(len(table)), ctypes.byref(module)),
            )
        )
        return module

    def _check(self, status: int) -> None:
        if status:
            self._lib.slw_error_clear()
            raise NotPlainError

    def _function(self, name: str) -> tuple[Any, int | None]:
        found = _Function()
        get = self._lib.slw_module_get_function
        self._check(get(self._module, name.encode(), ctypes.byref(found)))
        return _CALL(found.call), found.self

    def _value(self, name: str, *numbers: int) -> _Any:
        """Return what a function of the module gives for numbers."""
        call, own = self._function(name)
        given = (_Any * max(len(numbers), 1))(*(_Any(1, 0, number) for number in numbers))
        result = _Any()
        self._check(call(own, ctypes.addressof(given), len(numbers), ctypes.addressof(result)))
        return result

    def _described(self) -> Iterator[tuple[str, str]]:
        """Yield the name and role of each input, parameters among them."""
        info, text, size = self._value("get_input_info"), ctypes.c_void_p(), ctypes.c_size_t()
        get = self._lib.slw_any_get_bytes
        self._check(get(ctypes.byref(info), ctypes.byref(text), ctypes.byref(size)))
        lines = ctypes.string_at(text.value or 0, size.value).decode().splitlines()
        self._lib.slw_any_clear(ctypes.byref(info))
        for line in lines:
            name, *_, role = line.split("\t")
            yield name, role

    def _keep(self, params: ParamStore, keep: ctypes.c_void_p) -> None:
        extent = (ctypes.c_int64 * 1)(params.block.size)
        whole = _tensor(params.block.ctypes.data, extent, "uint8")
        self._check(self._lib.slw_tensor_view(ctypes.byref(whole), None, ctypes.byref(keep)))

    def _share(self, number: int, params: ParamStore, name: str, keep: ctypes.c_void_p) -> None:
        start, _, shape, dtype = params.positions[name]
        extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        values = _tensor(params.block.ctypes.data + start, extents, dtype, len(shape))
        share = self._lib.slw_graph_module_share_param
        self._check(share(self._module, ctypes.c_uint32(number), ctypes.byref(values), keep))

    def view(self, function: str, number: int) -> Array:
        """Return an array over an input ("get_input") or output ("get_output") of a number."""
        held = self._value(function, number)
        try:
            find = self._lib.slw_any_get_tensor
            find.restype = ctypes.POINTER(DLTensor)
            return self._over(find(ctypes.byref(held)).contents)
        finally:
            self._lib.slw_any_clear(ctypes.byref(held))

    def _over(self, tensor: DLTensor) -> Array:
        extents = (ctypes.c_int64 * max(tensor.ndim, 1)).from_address(tensor.shape)
        shape = tuple(extents[: tensor.ndim])
        dtype = dtypes.from_dlpack(tensor.code, tensor.bits, tensor.lanes)
        if not is_numpy_own(dtype) or not math.prod(shape):
            raise NotPlainError
        count = math.prod(shape) * np.dtype(dtype).itemsize
        raw = (ctypes.c_char * count).from_address(tensor.data + tensor.byte_offset)
        raw._graph = self  # as long as somebody sees its memory
        return np.frombuffer(raw, dtype).reshape(shape)

    def run(self) -> bool:
        """Run the model; False where it failed."""
        if not self._run():
            return True
        self._lib.slw_error_clear()
        return False


class NotPlainError(Exception):
    """Something is to be asked or told that this has no words for."""


def _release(
    lib: ctypes.CDLL, module: ctypes.c_void_p, keep: ctypes.c_void_p, _kept: object
) -> None:
    lib.slw_module_release(module)
    lib.slw_object_release(keep)


def _tensor(address: int, extents: Any, dtype: str, ndim: int = 1) -> DLTensor:
    code, bits, lanes = dtypes.parse(dtype)
    return DLTensor(
        data=address, device_type=_CPU, device_id=0, ndim=ndim, code=dtypes.DLPACK_CODE[code],
        bits=bits, lanes=lanes, shape=ctypes.addressof(extents), strides=None, byte_offset=0,
    )  # fmt: skip


def plain_graph(artifact: Artifact) -> PlainGraph | None:
    """Return an executor of a checked artifact; None where it takes more than there is here."""
    metadata: Mapping[str, Any] = artifact.metadata
    devices: Sequence[int] = metadata.get("device_types") or [int(metadata.get("device_type", 1))]
    if list(devices) != [_CPU]:
        return None
    with suppress(NotPlainError, ArtifactError, ToolchainError, OSError):
        library = DsoLibrary(artifact.name, artifact.library)
        if not needs_more(library):
            return PlainGraph(artifact, library)
    return None
