"""nn.rotary_embedding: pairs of a head's elements, rotated by angles that grow with the position.

    (a, b) -> (a cos - b sin, b cos + a sin)

with cosine and sine of row `position + s` of two tables.  A table of D / 2 columns rotates the
first D elements of each head and leaves the others as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import builder
from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_float, need_rank
from slipway.relay.ops.nn.lanes import Lanes
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike


@node
class RotaryAttrs(Attrs):
    """`interleaved`: neighbours are a pair; else an element and the one half a rotation behind."""

    interleaved: bool = False


ROTARY = register_op(
    "nn.rotary_embedding", "data", "cosine", "sine", "position", attrs=RotaryAttrs,
    pattern=OpPattern.OPAQUE,
    doc="Rotate pairs of data (S, heads, D) by the angles of rows position + s of the tables.",
)  # fmt: skip


@ROTARY.type_relation
def _rotary_type(
    attrs: RotaryAttrs, data: TensorType, cosine: TensorType, sine: TensorType, position: TensorType
) -> Type:
    need_rank("data", data, 3)
    need_float("data", data)
    for name, table in (("cosine", cosine), ("sine", sine)):
        need_rank(name, table, 2)
        need_dtype(name, table, data.dtype, "the data")
        if 2 * table.shape[1] > data.shape[2]:
            raise BadArgument(
                name,
                f"is {table}: its {table.shape[1]} pairs do not fit heads of {data.shape[2]} "
                "elements",
            )
    if tuple(cosine.shape) != tuple(sine.shape):
        raise BadArgument("sine", f"is {sine}, but cosine is {cosine}")
    need_position(position)
    return data


def need_position(position: TensorType) -> None:
    """The position must be one int32."""
    need_dtype("position", position, "int32", "other indices")
    if tuple(position.shape) != (1,):
        raise BadArgument("position", f"must have one element, got {position}")


@ROTARY.reference
def _rotary_reference(
    attrs: RotaryAttrs, data: Array, cosine: Array, sine: Array, position: Array
) -> Any:
    pairs = cosine.shape[1]
    rows = slice(int(position[0]), int(position[0]) + len(data))
    c, s = cosine[rows, None, :], sine[rows, None, :]
    out = data.copy()
    first, second = _halves(attrs, pairs)
    a, b = data[..., first], data[..., second]
    out[..., first], out[..., second] = a * c - b * s, b * c + a * s
    return out


def _halves(attrs: RotaryAttrs, pairs: int) -> tuple[slice, slice]:
    if attrs.interleaved:
        return slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    return slice(0, pairs), slice(pairs, 2 * pairs)


def rotary(attrs: RotaryAttrs, inputs: list[Any], out: TensorType, lanes: int) -> list[Any]:
    """Return the rotated data, computed in vectors of `lanes`."""

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        ib = builder.create()
        data, cosine, sine, position = map(ib.buffer_ptr, ins)
        result = ib.buffer_ptr(outs[0])
        rows, heads, size = ins[0].shape
        pairs = ins[1].shape[1]
        v = Lanes(ib, lanes)
        with ib.for_range(0, rows, "s") as s, ib.for_range(0, heads, "h") as h:
            row = ib.let("row", position[0] + s)

            def rotate(j: Any, n: int) -> None:
                c, d = v.load(cosine, (row,), j, n), v.load(sine, (row,), j, n)
                if attrs.interleaved:
                    left, right, step = 2 * j, 2 * j + 1, 2
                else:
                    left, right, step = j, j + pairs, 1
                a, b = (v.load(data, (s, h), i, n, step) for i in (left, right))
                v.store(result, (s, h), left, a * c - b * d, n, step)
                v.store(result, (s, h), right, b * c + a * d, n, step)

            v.over(size_of(pairs), rotate)
            rotated = 2 * pairs

            def keep(j: Any, n: int) -> None:
                v.store(result, (s, h), j + rotated, v.load(data, (s, h), j + rotated, n), n)

            v.over(size_of(size) - 2 * size_of(pairs), keep)
        return ib.get()

    return [te().extern([out.shape], inputs, statements, "T_rotary", [out.dtype])]


@ROTARY.compute
def _rotary_compute(
    attrs: RotaryAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    return rotary(attrs, inputs, out_types[0], 1)


@ROTARY.make
def rotary_embedding(
    data: ExprLike,
    cosine: ExprLike,
    sine: ExprLike,
    position: ExprLike,
    interleaved: bool = False,
) -> Call:
    """Rotary position embedding of data (S, heads, D) that starts at `position`."""
    return ROTARY(data, cosine, sine, position, attrs=RotaryAttrs(bool(interleaved)))


def _case(*shape: int, pairs: int, interleaved: bool) -> None:
    def arrays(rng: np.random.Generator) -> list[Any]:
        angles = rng.uniform(0, 6, (8, pairs))
        return [
            rng.standard_normal(shape).astype("float32"),
            np.cos(angles).astype("float32"),
            np.sin(angles).astype("float32"),
            np.array([2], "int32"),
        ]

    ROTARY.sample_case(
        shape, (8, pairs), (8, pairs), (1,), attrs=RotaryAttrs(interleaved),
        dtypes=("float32", "float32", "float32", "int32"), make=arrays,
    )  # fmt: skip


_case(5, 2, 16, pairs=8, interleaved=False)
_case(1, 3, 20, pairs=5, interleaved=True)
