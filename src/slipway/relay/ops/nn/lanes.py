"""Loops in vectors for kernels that are written with the IR builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.builder import BufferVar, IRBuilder
from slipway.ir.expr import PrimExpr
from slipway.relay.dims import SymbolDim

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike


class Lanes:
    """Loads, stores and loops of `lanes` elements; of single ones where `lanes` is 1."""

    def __init__(self, ib: IRBuilder, lanes: int) -> None:
        self.ib, self.lanes = ib, lanes

    def load(
        self, buffer: BufferVar, at: Sequence[Any], last: PrimExprLike, n: int, step: int = 1
    ) -> Any:
        """Return `n` elements of the last axis of `buffer` from index `last`, `step` apart."""
        return buffer[(*at, self.ramp(last, n, step))]

    def store(
        self,
        buffer: BufferVar,
        at: Sequence[Any],
        last: PrimExprLike,
        value: PrimExpr,
        n: int,
        step: int = 1,
    ) -> None:
        """Write `n` elements where `load` reads them."""
        kind = dtypes.with_lanes(buffer.dtype, n)
        position = (*map(ops.as_expr, at), self.ramp(last, n, step))
        self.ib.emit(S.BufferStore(buffer.buffer, ops.cast(value, kind), position))

    def ramp(self, first: PrimExprLike, n: int, step: int = 1) -> PrimExpr:
        """Return the indices of `n` elements."""
        start = ops.as_expr(first)
        return start if n == 1 else E.Ramp(start, ops.const(step, start.dtype), n)

    def all(self, value: PrimExprLike, n: int) -> PrimExpr:
        """Return `n` copies of a scalar."""
        one = ops.as_expr(value)
        return one if n == 1 else E.Broadcast(one, n)

    def over(self, extent: Any, body: Callable[[Any, int], None]) -> None:
        """Call ``body(first, n)`` so that [0, extent) is done, in vectors while they fit.

        An extent that is open is done element by element.
        """
        if isinstance(extent, SymbolDim):
            with self.ib.for_range(0, extent.formula, "v") as i:
                body(i, 1)
            return
        whole = extent // self.lanes
        if whole:
            with self.ib.for_range(0, whole, "v") as i:
                body(i * self.lanes, self.lanes)
        if extent % self.lanes:
            with self.ib.for_range(whole * self.lanes, extent, "v") as i:
                body(i, 1)

    def zero(self, dtype: str, n: int) -> Any:
        """Return a vector of zeros."""
        return ops.const(0, dtypes.with_lanes(dtype, n))
