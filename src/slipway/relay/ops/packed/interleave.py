"""Parts of an image, each of the pixels with one remainder modulo the strides, put in order.

    y[n, c, h * s + r, w * t + q] = parts[r, q][n, c, h, w]

The spatial axes are those from the third on, so that channels in blocks (NCHW16c) stay the vectors
that they are.  Pixels that no part has are zero.  A part may have the pixels of several remainders
together, one after the other along the channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import is_open, size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import integers
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import ExprLike, Extents


@node
class InterleaveAttrs(Attrs):
    """`strides` of the spatial axes, and their `size`.

    `sources` gives for each remainder, those of the last axis fastest, the number of the part that
    has its pixels; -1 for none.  With `together`, so many are in each part: numbers 0 to 8 of nine
    in the first one.
    """

    strides: tuple[int, ...]
    size: tuple[int, ...]
    sources: tuple[int, ...]
    together: int = 1


INTERLEAVE = register_op(
    "nn.contrib_interleave", "data...", attrs=InterleaveAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="Pixels of each remainder modulo the strides, from a part of their own; else zeros.",
)  # fmt: skip


@INTERLEAVE.type_relation
def _interleave_type(attrs: InterleaveAttrs, data: TupleType) -> Type:
    parts = [f for f in data.fields if isinstance(f, TensorType)]
    if not parts or len(parts) != len(data.fields):
        raise BadArgument("data", f"must be a tuple of at least one tensor, got {data}")
    count, first = len(attrs.strides), parts[0]
    if first.rank < 2 + count or len(attrs.size) != count or min(attrs.strides, default=0) < 1:
        raise BadArgument("strides", f"{attrs.strides} and size {attrs.size} do not fit {first}")
    if len(attrs.sources) != prod(attrs.strides) or not all(
        -1 <= s < len(parts) * attrs.together for s in attrs.sources
    ):
        raise BadArgument("sources", f"{attrs.sources} must be a part's number for each remainder")
    around = first.shape[:2], first.shape[2 + count :], first.dtype
    for number, part in enumerate(parts):
        if (part.shape[:2], part.shape[2 + count :], part.dtype) != around:
            raise BadArgument("data", f"field {number} is {part}, and the first {first}")
    batch, channels = around[0]
    if attrs.together < 1 or channels % attrs.together:
        raise BadArgument("data", f"is {first}, no channels of {attrs.together} remainders")
    shape = (batch, channels // attrs.together, *attrs.size, *around[1])
    return TensorType(shape, first.dtype)


@INTERLEAVE.reference
def _interleave_reference(attrs: InterleaveAttrs, data: Sequence[Any]) -> Any:
    first, count = data[0], len(attrs.strides)
    batch, channels = first.shape[0], first.shape[1] // attrs.together
    made = np.zeros((batch, channels, *attrs.size, *first.shape[2 + count :]), first.dtype)
    for rests, source in zip(np.ndindex(*attrs.strides), attrs.sources, strict=True):
        if source < 0:
            continue
        part, within = divmod(source, attrs.together)
        given = data[part][:, within * channels : (within + 1) * channels]
        own = made[(slice(None), slice(None), *map(_every, rests, attrs.strides))]
        there = zip(own.shape[2:], given.shape[2 : 2 + count], strict=False)
        common = (slice(None), slice(None), *(slice(min(pair)) for pair in there))
        own[common] = given[common]
    return made


def _every(phase: int, stride: int) -> slice:
    return slice(phase, None, stride)


@INTERLEAVE.compute
def _interleave_compute(
    attrs: InterleaveAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (out,) = out_types
    count, m = len(attrs.strides), te()
    zero = m.const(0, out.dtype)

    def element(*i: PrimExpr) -> Any:
        pairs = list(zip(i[2 : 2 + count], attrs.strides, strict=True))
        at = [m.floordiv(q, s) if s > 1 else q for q, s in pairs]

        def read(source: int) -> Any:
            if source < 0:
                return zero
            number, within = divmod(source, attrs.together)
            part, channel = inputs[number], i[1] + within * size_of(out.shape[1])
            value = part(i[0], channel, *at, *i[2 + count :])
            for position, extent, size, stride in zip(
                at, part.shape[2:], attrs.size, attrs.strides, strict=False
            ):
                given = size_of(extent)
                if is_open(given) or is_open(size) or given * stride < size:
                    value = m.if_then_else(position < extent, value, zero)
            return value

        def among(axis: int, first: int) -> Any:
            """The choice by the remainders of the axes from `axis` on; `first` is their first."""
            if axis == count:
                return read(attrs.sources[first])
            q, stride = pairs[axis]
            step = prod(attrs.strides[axis + 1 :])
            if len(set(attrs.sources[first : first + stride * step])) == 1:
                return among(count, first)
            chosen = among(axis + 1, first + (stride - 1) * step)
            for phase in range(stride - 2, -1, -1):
                own = among(axis + 1, first + phase * step)
                chosen = m.if_then_else(m.floormod(q, stride) == phase, own, chosen)
            return chosen

        return among(0, 0)

    return [m.compute(out.shape, element, name="T_interleave", tag="interleave")]


@INTERLEAVE.make
def contrib_interleave(
    data: ExprLike, strides: Extents, size: Sequence[int], sources: Extents | None = None,
    together: int = 1,
) -> Call:  # fmt: skip
    """Put parts of the pixels with one remainder modulo `strides`, or `together`, in order."""
    steps = integers("strides", strides)
    order = range(prod(steps)) if sources is None else integers("sources", sources)
    attrs = InterleaveAttrs(tuple(steps), tuple(size), tuple(order), together)
    return INTERLEAVE(as_expr(data), attrs=attrs)


INTERLEAVE.sample_case(
    [(1, 2, 3), (1, 2, 3)], attrs=InterleaveAttrs((2,), (5,), (0, 1))
)  # fmt: skip
INTERLEAVE.sample_case(
    [(2, 2, 2, 3, 4), (2, 2, 2, 2, 4)], attrs=InterleaveAttrs((2, 3), (5, 7), (0, -1, 1, -1, 1, 0))
)  # fmt: skip
INTERLEAVE.sample_case(
    [(1, 6, 2, 3)], attrs=InterleaveAttrs((2, 3), (3, 7), (0, -1, 2, 1, 2, 0), 3)
)  # fmt: skip
