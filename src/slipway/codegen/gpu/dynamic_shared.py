"""Shared memory that a launch gives a kernel: scope "shared.dyn".

It is one piece, which begins at a multiple of 16 bytes; the kernel knows where in it each buffer
lies, the host how many bytes they take together.
"""

from __future__ import annotations

from slipway import dtypes
from slipway.codegen.capture import captured
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer

SCOPE = "shared.dyn"
MEMORY = "slw_dynamic"  # what a kernel calls it
ALIGNMENT = 16


class DynamicShared:
    """Where the buffers of a kernel lie in what its launch gives it."""

    def __init__(self) -> None:
        self.offsets: dict[int, E.PrimExpr] = {}  # by data Var
        self._end: E.PrimExpr = ops.const(0, "int64")

    def offset_of(self, buffer: Buffer) -> E.PrimExpr:
        """Return the first byte of `buffer`: behind those met before, where it is new."""
        found = self.offsets.get(id(buffer.data))
        if found is None:
            found = self.offsets[id(buffer.data)] = self._end
            self._end = ops.add(found, _whole(_bytes(buffer)))
        return found

    def total(self, kernel: str, params: list[E.Var]) -> E.PrimExpr | None:
        """Return how many bytes a launch gives; None: the kernel has none of this memory.

        Raises CodegenError where that is not known before the kernel runs.
        """
        if not self.offsets:
            return None
        known = {id(var) for var in params}
        for var in captured(S.Evaluate(self._end)):
            if id(var) not in known:
                raise CodegenError(
                    f"{kernel}: how much memory in scope {SCOPE!r} it takes depends on {var.name}, "
                    "which is not known before it runs. Give that memory a shape of constants and "
                    "of sizes that the caller says"
                )
        return self._end


def _bytes(buffer: Buffer) -> E.PrimExpr:
    size: E.PrimExpr = ops.const(dtypes.bytes_of(buffer.dtype), "int64")
    for extent in buffer.shape:
        size = ops.mul(size, ops.cast(extent, "int64"))
    return size


def _whole(size: E.PrimExpr) -> E.PrimExpr:
    known = ops.as_int(size)
    if known is not None:
        return ops.const(-(-known // ALIGNMENT) * ALIGNMENT, "int64")
    return ops.mul(ops.floordiv(ops.add(size, ALIGNMENT - 1), ALIGNMENT), ALIGNMENT)
