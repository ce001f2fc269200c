"""Rows of shared memory that are permuted, so that a column of them lies in different banks.

before: ``allocate A.shared: float32[32, 32]  # swizzle 1``; ``A.shared[i, j]``
after:  ``A.shared[i, j ^ i % 32]``

What is permuted are parts of a row that stay together, as many as are no more than the banks; where
several rows are no more than the banks, they are permuted alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slipway import dtypes
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.expr import PrimExpr
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children, walk
from slipway.target.gpu_costs import ANY_GPU


def swizzle_of(node: S.Allocate) -> tuple[tuple[str, Any], ...]:
    """Return what memory is noted to be permuted by."""
    return tuple(note for note in node.annotations if note[0] == S.SWIZZLE)


def swizzle_storage(func: PrimFunc) -> PrimFunc:
    """Return `func` with the indices of memory that is noted to be permuted.

    Raises LoweringError where an instruction gets the address of such memory.
    """
    if not any(isinstance(n, S.Allocate) and swizzle_of(n) for n in S.statements(func.body)):
        return func
    return func.replace(body=_swizzled(func.body, func.name))  # type: ignore[no-any-return]


def _swizzled(node: Any, name: str) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    made = map_children(node, lambda child: _swizzled(child, name))
    if isinstance(made, S.Allocate) and swizzle_of(made):
        ((_, unit),) = swizzle_of(made)
        _refuse_addresses(made, name)
        layout = _Layout.of(made.buffer, unit)
        body = made.body if layout is None else layout.visit(made.body)
        return made.replace(body=body, annotations=())
    return made


def _refuse_addresses(node: S.Allocate, name: str) -> None:
    data = node.buffer.data
    for inner in walk(node.body):
        view = getattr(inner, "buffer", None)
        other = isinstance(view, Buffer) and view.data is data and view is not node.buffer
        given: list[Any] = list(inner.args) if isinstance(inner, E.Call) else []
        if isinstance(inner, E.Call) and inner.op == "address_of":
            given += [getattr(arg, "buffer", None) for arg in inner.args]
        if other or any(arg is data or arg is node.buffer for arg in given):
            raise LoweringError(
                f"{name}: an instruction gets the address of {node.buffer.name!r}, whose rows are "
                "swizzled: it would find other elements there. Use storage_align for it"
            )


@dataclass(frozen=True)
class _Layout:
    """Of a buffer: the axis that numbers rows, parts that are permuted, and rows permuted alike."""

    buffer: Buffer
    row: int
    unit: int
    parts: int
    alike: int

    @staticmethod
    def of(buffer: Buffer, unit: int) -> _Layout | None:
        """Return that of a buffer; None where nothing is to be permuted."""
        length = ops.as_int(buffer.shape[-1]) if buffer.shape else None
        rows = [a for a, n in enumerate(buffer.shape[:-1]) if ops.as_int(n) != 1]
        if length is None or not rows or length % unit:
            return None
        size, banks = dtypes.bytes_of(buffer.dtype), ANY_GPU.banks * ANY_GPU.bank_bytes
        count = length // unit
        parts = min(count & -count, max(1, banks // (unit * size)))
        if parts == 1:
            return None
        return _Layout(buffer, rows[-1], unit, parts, max(1, banks // (length * size)))

    def visit(self, node: Any) -> Any:
        if not isinstance(node, PrimExpr | S.Stmt):
            return node
        made = map_children(node, self.visit)
        if isinstance(made, E.BufferLoad) and made.buffer is self.buffer:
            return E.BufferLoad(made.buffer, self._at(made.indices))
        if isinstance(made, S.BufferStore) and made.buffer is self.buffer:
            return S.BufferStore(made.buffer, made.value, self._at(made.indices))
        return made

    def _at(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        row, column = indices[self.row], indices[-1]
        key = ops.floormod(ops.floordiv(row, self.alike), self.parts)
        part = ops.bitwise_xor(ops.floordiv(column, self.unit), ops.cast(key, column.dtype))
        position = ops.add(ops.mul(part, self.unit), ops.floormod(column, self.unit))
        return (*indices[:-1], position)
