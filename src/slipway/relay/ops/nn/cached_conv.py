"""nn.cached_conv1d: a short causal convolution along positions, of each channel by itself.

    out[s, c] = sum over t of weight[c, t] row[p + s - (L - 1) + t, c]

for S new rows that follow `p` others, of which a state (L - 1, C) holds the last; rows before the
first are zero.  The state is written in place: it is an input whose memory stays from run to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import builder, ops
from slipway.ir import expr as E
from slipway.ir.expr import PrimExpr
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank
from slipway.relay.ops.nn.lanes import Lanes
from slipway.relay.ops.nn.rotary import need_position
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike

CACHED_CONV = register_op(
    "nn.cached_conv1d", "data", "weight", "state", "position", pattern=OpPattern.OPAQUE,
    doc="Causal convolution of the rows of data (S, C), which follow those of a state (L - 1, C).",
)  # fmt: skip


@CACHED_CONV.type_relation
def _type(
    attrs: Attrs | None,
    data: TensorType,
    weight: TensorType,
    state: TensorType,
    position: TensorType,
) -> Type:
    for name, given in (("data", data), ("weight", weight), ("state", state)):
        need_rank(name, given, 2)
        need_dtype(name, given, "float32", "the sums")
    channels, taps = weight.shape
    if data.shape[1] != channels:
        raise BadArgument("data", f"is {data}: its last axis must be the weight's {channels}")
    if taps < 2 or tuple(state.shape) != (taps - 1, channels):
        raise BadArgument(
            "state", f"is {state}: it must hold {taps - 1} rows of {channels}, one at least"
        )
    need_position(position)
    return data


@CACHED_CONV.reference
def _reference(
    attrs: Attrs | None, data: Array, weight: Array, state: Array, position: Array
) -> Any:
    taps, known = weight.shape[1], int(position[0])
    before = state.copy()
    before[: max(0, taps - 1 - known)] = 0
    rows = np.concatenate([before, data])
    windows = np.lib.stride_tricks.sliding_window_view(rows, taps, 0)  # (S, C, L)
    return np.einsum("sct,ct->sc", windows.astype(np.float64), weight).astype(np.float32)


@CACHED_CONV.compute
def _compute(attrs: Attrs | None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    return cached_conv(inputs, out_types[0], 1)


def cached_conv(inputs: list[Any], out: TensorType, lanes: int) -> list[Any]:
    """Return the convolution in vectors of `lanes` channels."""

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        ib = builder.create()
        data, weight, state, position = map(ib.buffer_ptr, ins)
        made, v = ib.buffer_ptr(outs[0]), Lanes(ib, lanes)
        rows, taps = ins[0].shape[0], int(ins[1].shape[1])
        start = ib.let("start", position[0])

        def row(r: Any, c: Any, n: int) -> PrimExpr:
            """Row r of the data, of the state where r is negative, zero before the first."""
            fresh = v.load(data, (ops.maximum(r, ops.const(0, "int32")),), c, n)
            kept_at = ops.minimum(r + (taps - 1), ops.const(taps - 2, "int32"))
            kept = E.Select(v.all(start + r >= 0, n), v.load(state, (kept_at,), c, n),
                            v.zero("float32", n))  # fmt: skip
            return E.Select(v.all(ops.as_expr(r) >= 0, n), fresh, kept)

        # Tap after tap, so that those of neighbouring channels are a vector.
        columns = ib.allocate("float32", (taps, int(ins[1].shape[0])), "columns")
        with ib.for_range(0, int(ins[1].shape[0]), "c") as c, ib.for_range(0, taps, "t") as t:
            columns[t, c] = weight[c, t]

        def taken(c: Any, t: int, n: int) -> PrimExpr:
            found: PrimExpr = v.load(columns, (t,), c, n)
            return found

        def channels(c: Any, n: int) -> None:
            with ib.for_range(0, rows, "s") as s:
                total: Any = v.zero("float32", n)
                for t in range(taps):
                    total = total + row(s + (t - taps + 1), c, n) * taken(c, t, n)
                v.store(made, (s,), c, total, n)
            # Ascending, so that a row of the state is read before it is written.
            for i in range(taps - 1):
                last = ib.let("last", row(ops.as_expr(rows) + (i - taps + 1), c, n))
                v.store(state, (i,), c, last, n)

        v.over(int(ins[0].shape[1]), channels)
        return ib.get()

    return [te().extern([out.shape], inputs, statements, "T_cached_conv1d", [out.dtype])]


@CACHED_CONV.make
def cached_conv1d(data: ExprLike, weight: ExprLike, state: ExprLike, position: ExprLike) -> Call:
    """Causal convolution (L taps) of rows (S, C) that follow a state (L - 1, C), written to."""
    return CACHED_CONV(data, weight, state, position)


def _case(rows: int, channels: int, taps: int, start: int) -> None:
    shapes = ((rows, channels), (channels, taps), (taps - 1, channels), (1,))

    def make(rng: np.random.Generator) -> list[Any]:
        arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes[:-1]]
        return [*arrays, np.array([start], "int32")]

    CACHED_CONV.sample_case(*shapes, dtypes=(*["float32"] * 3, "int32"), make=make)


_case(4, 8, 3, 5)
_case(1, 5, 4, 1)
