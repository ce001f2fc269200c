"""Flatten storage: multi-dimensional buffers become one-dimensional ones.

before: ``C[i, j] = A[i, j]`` with A: float32[4, 8]
after:  ``C[i * 8 + j] = A[i * 8 + j]`` with A: float32[32]

The buffers of `buffer_map` keep their declared shape (the packed wrapper checks against it); the
body addresses the same data pointer through a flat buffer.  Strides and elem_offset are honoured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF, Linear
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.expr import PrimExpr
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children, walk


def flatten_storage(func: PrimFunc) -> PrimFunc:
    """Return `func` with every load and store on a one-dimensional compact buffer."""
    body = _Flattener(buffer for _, buffer in func.buffer_map).visit(func.body)
    return func.replace(body=body)  # type: ignore[no-any-return]


def not_flat(func: PrimFunc) -> str:
    """Return why `func` cannot go without this pass; "" where every access has one index."""
    for node in walk(func.body):
        if isinstance(node, (E.BufferLoad, S.BufferStore)) and len(node.indices) != 1:
            return (
                f"{node.buffer.name} is accessed by {len(node.indices)} indices, and code "
                "generators take one"
            )
    return ""


class _Flattener:
    def __init__(self, params: Iterable[Buffer]) -> None:
        # What has a memory to itself; views of parts of it are as large when they are flat.
        self.whole = {id(buffer.data): buffer for buffer in params}
        self.an = Analyzer()
        self.flat: dict[Buffer, Buffer] = {}
        self.strides: dict[Buffer, list[Linear]] = {}
        self.memo: dict[int, tuple[Any, Any]] = {}

    def visit(self, node: Any) -> Any:
        if isinstance(node, E.Var) or not isinstance(node, (PrimExpr, S.Stmt, E.IterVar)):
            return self.buffer(node) if isinstance(node, Buffer) else node
        known = self.memo.get(id(node))
        if known is not None:
            return known[1]
        if isinstance(node, E.BufferLoad):
            result: Any = E.BufferLoad(
                self.buffer(node.buffer), (self.index(node.buffer, node.indices),)
            )
        elif isinstance(node, S.BufferStore):
            index = self.index(node.buffer, node.indices)
            result = S.BufferStore(self.buffer(node.buffer), self.visit(node.value), (index,))
        elif isinstance(node, S.Allocate):
            self.whole[id(node.buffer.data)] = node.buffer
            result = map_children(node, self.visit)
        elif isinstance(node, S.For):
            if node.loop_var.dtype in ("int32", "int64"):
                self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
            result = map_children(node, self.visit)
        else:
            result = map_children(node, self.visit)
        self.memo[id(node)] = (node, result)
        return result

    def buffer(self, buffer: Buffer) -> Buffer:
        """Return the one-dimensional view of the same memory."""
        flat = self.flat.get(buffer)
        if flat is None:
            flat = self.flat[buffer] = self._make(buffer)
        return flat

    def _make(self, buffer: Buffer) -> Buffer:
        offset = buffer.elem_offset
        if buffer.ndim == 1 and not buffer.strides and offset is None:
            return buffer
        # The offset of a view may be in terms of loops that are unrolled: no part of a shape.
        whole = self.whole.get(id(buffer.data), buffer) if offset is not None else buffer
        size = self._size(whole)
        return Buffer(
            buffer.name,
            buffer.data,
            buffer.dtype,
            (size,),
            (),
            None,
            buffer.scope,
            buffer.data_alignment,
            buffer.offset_factor,
        )

    def _size(self, buffer: Buffer) -> PrimExpr:
        """The number of elements from the first address to the one after the last."""
        an = self.an
        if not buffer.shape:
            return ops.const(1)
        count = element_count(buffer)
        if not buffer.strides and count is not None:
            total = an.constant(count, "int64" if count >= 1 << 31 else buffer.shape[0].dtype)
        elif not buffer.strides:
            total = an.constant(1, buffer.shape[0].dtype)
            for extent in buffer.shape:
                total = an.multiply(total, an.linear(extent))
        else:
            total = an.constant(1, buffer.shape[0].dtype)
            for extent, stride in zip(buffer.shape, self.stride_sums(buffer), strict=True):
                total = total.plus(an.multiply(an.linear(extent).shifted(-1), stride))
        if buffer.elem_offset is not None:
            total = total.plus(an.linear(buffer.elem_offset))
        if element_count(buffer) is not None and not total.is_const and total.high < INF:
            total = an.constant(int(total.high), total.dtype)  # strides of open sizes
        return an.to_expr(total)  # type: ignore[no-any-return]

    def stride_sums(self, buffer: Buffer) -> list[Linear]:
        """Return the strides in elements; of a compact buffer those of row-major order."""
        known = self.strides.get(buffer)
        if known is not None:
            return known
        an = self.an
        if buffer.strides:
            result = [an.linear(s) for s in buffer.strides]
        else:
            is_wide = (element_count(buffer) or 0) >= 1 << 31
            dtype = buffer.shape[-1].dtype if buffer.shape else "int32"
            step = an.constant(1, "int64" if is_wide else dtype)
            result = []
            for extent in reversed(buffer.shape):
                result.append(step)
                step = an.multiply(step, an.linear(extent))
            result.reverse()
        self.strides[buffer] = result
        return result

    def index(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
        """Return the position of an element from the data pointer."""
        an = self.an
        if len(indices) != buffer.ndim:
            raise LoweringError(
                f"buffer {buffer.name!r} has {buffer.ndim} dimensions, but is accessed with "
                f"{len(indices)} indices"
            )
        if any(i.lanes > 1 or not _plain(i) for i in indices):
            return self._general_index(buffer, indices)
        total = None
        is_wide = _counts_wide(buffer, indices)
        for index, stride in zip(indices, self.stride_sums(buffer), strict=True):
            part = an.multiply(self.widened(index) if is_wide else an.linear(index), stride)
            total = part if total is None else total.plus(part)
        if total is None:
            total = an.constant(0)
        if buffer.elem_offset is not None:
            total = total.plus(an.linear(buffer.elem_offset))
        return an.to_expr(an.recombine(total))  # type: ignore[no-any-return]

    def widened(self, index: PrimExpr) -> Linear:
        """Return an index as a sum in int64: the position may need more than its parts do."""
        value = self.an.linear(index)
        if value.dtype == "int64":
            return value
        total = Linear({}, value.const, "int64")
        for atom, factor in value.terms.items():
            total = total.plus(self.an.opaque(E.Cast("int64", atom.expr)), factor)
        return total

    def _general_index(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
        """Indices with vectors or loads inside: build the sum as it stands."""
        is_wide = _counts_wide(buffer, indices)
        total: PrimExpr = ops.const(0, "int64" if is_wide else "int32")
        for index, stride in zip(indices, self.stride_sums(buffer), strict=True):
            index = self.visit(index)
            if is_wide and not index.dtype.startswith("int64"):
                index = ops.cast(index, dtypes.with_lanes("int64", index.lanes))
            step = self.an.to_expr(stride)
            total = ops.add(total, ops.mul(index, ops.cast(step, "int64") if is_wide else step))
        if buffer.elem_offset is not None:
            total = ops.add(total, buffer.elem_offset)
        return self.an.simplify(total)  # type: ignore[no-any-return]


def _counts_wide(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> bool:
    """Return whether a position is an int64: there are so many, or one of its indices is one."""
    if any(dtypes.scalar_of(index.dtype) == "int64" for index in indices):
        return True
    return not buffer.strides and (element_count(buffer) or 0) >= 1 << 31


def element_count(buffer: Buffer) -> int | None:
    """Return how many elements a buffer has; None where that is not known."""
    extents = [ops.as_int(extent) for extent in buffer.shape]
    known = [extent for extent in extents if extent is not None]
    return math.prod(known) if len(known) == len(extents) else None


def _plain(index: PrimExpr) -> bool:
    """Return whether an index has no loads inside."""
    stack: list[Any] = [index]
    while stack:
        node = stack.pop()
        if isinstance(node, E.BufferLoad):
            return False
        for name in node.FIELDS:
            value = getattr(node, name)
            items = value if type(value) is tuple else (value,)
            stack.extend(item for item in items if isinstance(item, PrimExpr))
    return True
