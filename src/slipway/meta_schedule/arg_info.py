"""What a function takes (classic): the dtype and shape of each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from slipway.blocks.schedule import Schedule
from slipway.errors import ArgumentValueError, TuningError
from slipway.ir import ops
from slipway.ir.function import IRModule, PrimFunc


class ArgInfo:
    """What is known of an argument."""

    @staticmethod
    def from_json(json_obj: Any) -> TensorInfo:
        """Return what `as_json` wrote.  Raises ArgumentValueError for anything else."""
        kind, dtype, shape = [*json_obj, None, None, None][:3]
        if kind != "TENSOR" or not isinstance(dtype, str) or not isinstance(shape, list | tuple):
            raise ArgumentValueError(f"{json_obj!r:.200} is not ['TENSOR', dtype, shape]")
        return TensorInfo(dtype, tuple(int(n) for n in shape))

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list[TensorInfo]:
        """Return the tensors that a function takes.  Raises TuningError where one has no shape."""
        found = []
        for _, buffer in func.buffer_map:
            shape = [ops.as_int(n) for n in buffer.shape]
            if None in shape:
                raise TuningError(f"the buffer {buffer.name!r} has no fixed shape")
            found.append(TensorInfo(buffer.dtype, tuple(int(n or 0) for n in shape)))
        return found

    @staticmethod
    def from_entry_func(mod: IRModule, remove_preproc: bool = True) -> list[TensorInfo]:
        """Return the tensors that the module's function takes."""
        del remove_preproc
        return ArgInfo.from_prim_func(Schedule(mod).func)


class TensorInfo(NamedTuple):
    """A tensor."""

    dtype: str
    shape: Sequence[int]

    def __str__(self) -> str:
        return f'TensorInfo("{self.dtype}", {list(self.shape)})'

    @staticmethod
    def from_json(json_obj: Any) -> TensorInfo:
        """Return what `as_json` wrote.  Raises ArgumentValueError for anything else."""
        return ArgInfo.from_json(json_obj)

    def as_json(self) -> list[Any]:
        """Return it as plain values."""
        return ["TENSOR", self.dtype, list(self.shape)]
