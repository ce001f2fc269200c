"""Products of two bfloat16 tensors: the right side is copied into blocks of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.stages import shape_of
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.ir.hardware import HardwareIntrinsic
    from slipway.ir.instructions.tiles import TileInstruction
    from slipway.relay.ops.nn.dense import MatmulAttrs


def takes_product(
    entry: HardwareIntrinsic | TileInstruction,
    attrs: MatmulAttrs,
    in_types: Sequence[Type],
    lanes: int,
) -> bool:
    """Return whether an instruction computes a product of two tensors in blocks of `lanes`."""
    a, b = in_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    return (
        {a.dtype, b.dtype} == {entry.a_dtype}
        and attrs.out_dtype == entry.c_dtype
        and not attrs.transpose_a
        and a.shape[-1] % entry.depth == 0
        and b.shape[-2 if attrs.transpose_b else -1] >= lanes
    )


def packed_side(b: te.Tensor, attrs: MatmulAttrs, lanes: int, depth: int) -> te.Tensor:
    """Return (b, K, N) or (b, N, K) as (b, blocks of `lanes`, pairs, lanes, depth), padded."""
    *batch, inner, columns = shape_of(b)
    if attrs.transpose_b:
        inner, columns = columns, inner

    def element(*i: PrimExpr) -> Any:
        *p, block, k, lane, odd = i
        row, column = k * depth + odd, block * lanes + lane
        value = b(*p, column, row) if attrs.transpose_b else b(*p, row, column)
        if columns % lanes == 0:
            return value
        return te.if_then_else(column < columns, value, te.const(0, b.dtype))

    shape = (*batch, -(-columns // lanes), inner // depth, lanes, depth)
    packed: te.Tensor = te.compute(shape, element, name="packed", tag="injective,pack")
    return packed


def batch_of(operand: te.Tensor, batch: Sequence[Any]) -> Sequence[Any]:
    """Return the indices of an operand's batch, which may be one for all."""
    return [0] if batch and shape_of(operand)[0] == 1 else batch


def schedule_packed(schedule: te.Schedule, packed: te.Tensor, parallel: bool) -> None:
    """Copy whole vectors, a block of columns a task."""
    stage: Any = schedule[packed]
    *blocks, _, lane, odd = stage.op.axis
    stage.vectorize(stage.fuse(lane, odd))
    each = stage.fuse(*blocks)
    if parallel:
        stage.parallel(each)
