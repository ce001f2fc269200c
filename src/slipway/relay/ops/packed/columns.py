"""Columns summed into an image: what each pixel of the data adds to pixels of the result.

    y[n, c, h * stride + t * dilation - cut] += columns[n, c * taps + t, h]    for all h and taps t

That is the second half of a transposed convolution, whose first is a product with its kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import integers
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import ExprLike, Extents


@node
class ColumnSumAttrs(Attrs):
    """`window`, `strides` and `dilation` of the spatial axes, and the `size` of the image.

    Its first pixel is the one after the first `cut` of those that columns reach.
    """

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    cut: tuple[int, ...]
    size: tuple[int, ...]


COLUMN_SUM = register_op(
    "nn.contrib_column_sum", "data", attrs=ColumnSumAttrs, pattern=OpPattern.INJECTIVE,
    doc="Columns of a window's taps summed where they overlap, as in a transposed convolution.",
)  # fmt: skip


@COLUMN_SUM.type_relation
def _column_sum_type(attrs: ColumnSumAttrs, data: TensorType) -> Type:
    count = len(attrs.strides)
    numbers = (attrs.window, attrs.strides, attrs.dilation, attrs.cut, attrs.size)
    if data.rank != 2 + count or any(len(given) != count for given in numbers):
        raise BadArgument("data", f"must have {2 + count} axes for {count} strides, got {data}")
    if min((*attrs.window, *attrs.strides, *attrs.dilation), default=0) < 1 or min(attrs.cut) < 0:
        raise BadArgument("window", "and strides and dilation must be 1 at least, and cut 0")
    taps = prod(attrs.window)
    if data.shape[1] % taps:
        raise BadArgument("data", f"{data.shape[1]} channels are no columns of {taps} taps each")
    return TensorType((data.shape[0], data.shape[1] // taps, *attrs.size), data.dtype)


@COLUMN_SUM.reference
def _column_sum_reference(attrs: ColumnSumAttrs, data: Any) -> Any:
    batch, rows, *extents = data.shape
    made = np.zeros((batch, rows // prod(attrs.window), *attrs.size), data.dtype)
    columns = data.reshape(*made.shape[:2], *attrs.window, *extents)
    for taps in np.ndindex(*attrs.window):
        read, written = [], []
        for a, tap in enumerate(taps):
            at = np.arange(extents[a]) * attrs.strides[a] + tap * attrs.dilation[a] - attrs.cut[a]
            inside = (at >= 0) & (at < attrs.size[a])
            read.append(np.flatnonzero(inside))
            written.append(at[inside])
        part = columns[(slice(None), slice(None), *taps)]
        made[(..., *np.ix_(*written))] += part[(..., *np.ix_(*read))]
    return made


def _steps(attrs: ColumnSumAttrs, axis: int, phase: int) -> list[tuple[int, int]]:
    """Return (tap, e) of the taps that pixels ``m * stride + phase`` get, from data at m + e."""
    found = []
    for tap in range(attrs.window[axis]):
        apart = phase + attrs.cut[axis] - tap * attrs.dilation[axis]
        if apart % attrs.strides[axis] == 0:
            found.append((tap, apart // attrs.strides[axis]))
    return found


@COLUMN_SUM.compute
def _column_sum_compute(
    attrs: ColumnSumAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (out,), (columns,) = out_types, inputs
    m, count, extents = te(), len(attrs.strides), columns.shape[2:]
    zero, taps = m.const(0, out.dtype), prod(attrs.window)

    def element(n: PrimExpr, c: PrimExpr, *pixel: PrimExpr) -> Any:
        pairs = list(zip(pixel, attrs.strides, strict=True))
        starts = [m.floordiv(q, s) if s > 1 else q for q, s in pairs]

        def read(steps: Sequence[tuple[int, int]]) -> Any:
            """What one tap gives; nothing beyond the ends of the data."""
            tap = reduce(lambda t, a: t * attrs.window[a] + steps[a][0], range(count), 0)
            at = [start + e for start, (_, e) in zip(starts, steps, strict=True)]
            value = columns(n, c * taps + tap, *at)
            for a, (_, e) in enumerate(steps):
                if e < 0:
                    value = m.if_then_else(at[a] >= 0, value, zero)
                if e + (attrs.size[a] - 1) // attrs.strides[a] >= int(extents[a]):
                    value = m.if_then_else(at[a] < extents[a], value, zero)
            return value

        def among(phases: tuple[int, ...]) -> Any:
            """The choice by the remainders of the axes after those of `phases`."""
            axis = len(phases)
            if axis == count:
                steps = [_steps(attrs, a, phase) for a, phase in enumerate(phases)]
                values = [read(each) for each in product(*steps)]
                return reduce(lambda x, y: x + y, values) if values else zero
            q, stride = pairs[axis]
            chosen = among((*phases, stride - 1))
            for phase in range(stride - 2, -1, -1):
                own = among((*phases, phase))
                chosen = m.if_then_else(m.floormod(q, stride) == phase, own, chosen)
            return chosen

        return among(())

    return [m.compute(out.shape, element, name="T_column_sum", tag="column_sum")]


@COLUMN_SUM.make
def contrib_column_sum(
    data: ExprLike, window: Extents, strides: Extents, dilation: Extents, cut: Extents,
    size: Extents,
) -> Call:  # fmt: skip
    """Sum columns, the taps of each channel after the other, into an image of `size`."""
    given = {"window": window, "strides": strides, "dilation": dilation, "cut": cut, "size": size}
    attrs = ColumnSumAttrs(*(tuple(integers(name, each)) for name, each in given.items()))
    return COLUMN_SUM(as_expr(data), attrs=attrs)


COLUMN_SUM.sample_case(
    (1, 6, 4), attrs=ColumnSumAttrs((3,), (2,), (1,), (0,), (9,))
)  # fmt: skip
COLUMN_SUM.sample_case(
    (2, 12, 3, 4), attrs=ColumnSumAttrs((3, 2), (2, 3), (1, 2), (1, 0), (4, 13))
)  # fmt: skip
