"""Products of matrices, and attention, which is made of them."""

from __future__ import annotations

import numpy as np

from slipway.frontends.onnx.export.writer import Given, Unwritten, Write, Writer, kind_of, shape_of
from slipway.relay.expr import Call, Expr
from slipway.relay.ops.nn.attention import causal_offset, scale_of


def _of_one_type(call: Call) -> None:
    """ONNX's products give what their operands are."""
    kinds = {kind_of(one).dtype for one in (*call.args, call)}
    if len(kinds) > 1:
        raise Unwritten(f"{call.op.name} (of {', '.join(sorted(kinds))})")


def _swapped(w: Writer, expr: Expr, name: str) -> str:
    rank = len(shape_of(expr))
    return w.transpose(name, [*range(rank - 2), rank - 1, rank - 2])


def _dense(w: Writer, call: Call, given: Given) -> str:
    """Write data @ weight.T."""
    _of_one_type(call)
    return w.node("MatMul", [given[0], _swapped(w, call.args[1], given[1])])


def _matmul(w: Writer, call: Call, given: Given) -> str:
    _of_one_type(call)
    flags = (call.attrs.transpose_a, call.attrs.transpose_b)
    sides = [_swapped(w, expr, one) if flag else one
             for expr, one, flag in zip(call.args, given, flags, strict=True)]  # fmt: skip
    return w.node("MatMul", sides)


def _bias_add(w: Writer, call: Call, given: Given) -> str:
    """Write the addition of a vector along an axis."""
    rank = len(shape_of(call))
    after = [1] * (rank - 1 - call.attrs.axis % rank)
    return w.node("Add", [given[0], w.reshape(given[1], [-1, *after])])


def _attention(w: Writer, call: Call, given: Given) -> str:
    """Scores, softmax, and the mean of the values, by heads."""
    a, dtype = call.attrs, kind_of(call).dtype
    query, key, value = (
        w.transpose(name, [layout.index(axis) for axis in "BNSH"])
        for name, layout in zip(given, a.layouts(), strict=False)
    )
    sizes = [dict(zip(layout, shape_of(arg), strict=True))
             for layout, arg in zip(a.layouts(), call.args, strict=False)]  # fmt: skip
    rows, keys = sizes[0]["S"], sizes[1]["S"]
    if sizes[0]["N"] != sizes[1]["N"]:
        key, value = (_repeated(w, name, size, sizes[0]["N"])
                      for name, size in zip((key, value), sizes[1:], strict=True))  # fmt: skip
    scores = w.node("MatMul", [query, w.transpose(key, [0, 1, 3, 2])])
    scores = w.node("Mul", [scores, w.scalar(scale_of(a, shape_of(call.args[0])), dtype)])
    if len(given) == 4:
        order = [a.bias_layout.index(axis) for axis in "BNST"]
        scores = w.node("Add", [scores, w.transpose(given[3], order)])
    if a.causal_mask:
        seen = np.tri(rows, keys, causal_offset(a, rows, keys), dtype=bool)
        lowest = w.scalar(-np.inf, dtype)
        scores = w.node("Where", [w.constant(seen), scores, lowest])
    made = w.node("MatMul", [w.node("Softmax", [scores], axis=-1), value])
    return w.transpose(made, ["BNSH".index(axis) for axis in a.out_layout])


def _repeated(w: Writer, name: str, size: dict[str, int], heads: int) -> str:
    """Give each group of queries the heads of keys, or of values, that it shares."""
    batch, own, length, width = (size[axis] for axis in "BNSH")
    beside = w.reshape(name, [batch, own, 1, length, width])
    times = w.whole(1, 1, heads // own, 1, 1)
    return w.reshape(w.node("Tile", [beside, times]), [batch, heads, length, width])


WRITERS: dict[str, Write] = {
    "nn.dense": _dense, "nn.matmul": _matmul, "nn.batch_matmul": _matmul,
    "nn.bias_add": _bias_add, "nn.attention": _attention, "nn.attention_bias": _attention,
}  # fmt: skip
