"""Which values a model's inputs take, as far as it tells: for those who must make some up."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Var
from slipway.relay.meaning import Meaning, Meanings
from slipway.relay.visit import post_order

# What moves or repeats the elements of its first argument, and computes nothing.
_MOVES = ("reshape", "transpose", "layout_transform", "squeeze", "expand_dims", "nn.pad",
          "nn.batch_flatten", "strided_slice")  # fmt: skip
_KEEPS = (*_MOVES, "cast")  # and integers stay what they are


def input_values(main: Function, meanings: Meanings) -> dict[str, dict[str, Any]]:
    """Return what is known of the values of inputs by name, as metadata holds it.

    ``scale`` and ``zero_point`` of quantised integers; ``labels``, the texts that positions stand
    for; ``range`` (low, high) of floats that
    the model quantises before it computes anything with them, and of integers that it reads tables
    by (words of a vocabulary, say).
    """
    found: dict[str, dict[str, Any]] = {
        name: known for name, meaning in meanings.inputs.items() if (known := meaning_of(meaning))
    }
    params = {id(param) for param in main.params}
    for expr in post_order(main.body, into_functions=False):
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            continue
        if expr.op.name == "qnn.quantize":
            source, limits = _source(expr.args[0]), _limits(expr)
            if isinstance(source, Var) and id(source) in params and limits is not None:
                found.setdefault(source.name_hint, {"range": limits})
        elif (read := _rows_read(expr.op.name, expr)) is not None:
            source, rows = _source(read[0], _KEEPS), read[1]
            if isinstance(source, Var) and id(source) in params:
                known = found.setdefault(source.name_hint, {"range": [0.0, rows - 1.0]})
                if "range" in known:
                    known["range"] = [0.0, min(known["range"][1], rows - 1.0)]
    return found


def _rows_read(name: str, call: Call) -> tuple[Expr, int] | None:
    """Return the indices that an operator reads a table by, and how many rows that has."""
    attrs: Any = call.attrs
    if name == "take" and attrs.axis is not None:
        table: Any = call.args[0].checked_type
        rows = table.shape[attrs.axis]
        return (call.args[1], rows) if isinstance(rows, int) and rows > 0 else None
    return (call.args[0], attrs.depth) if name == "one_hot" else None


def scale_of(meaning: Meaning | None) -> dict[str, Any]:
    """Return scale and zero point of a quantised tensor, as metadata holds them; else nothing."""
    if meaning is None or meaning.scale <= 0:
        return {}
    return {"scale": meaning.scale, "zero_point": meaning.zero_point}


def meaning_of(meaning: Meaning | None) -> dict[str, Any]:
    """Return that, and what classes are called or which texts an input takes."""
    labels = {"labels": list(meaning.labels)} if meaning is not None and meaning.labels else {}
    return scale_of(meaning) | labels


def _source(expr: Expr, through: tuple[str, ...] = _MOVES) -> Expr:
    while isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in through:
        expr = expr.args[0]
    return expr


def _limits(quantize: Call) -> list[float] | None:
    """Return the real values that the smallest and the largest integer stand for."""
    scale, zero = quantize.args[1], quantize.args[2]
    dtype = str(quantize.attrs.out_dtype)
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    if not dtypes.is_integral(dtype) or dtypes.bits_of(dtype) > 16:
        return None
    scales = np.asarray(scale.array, np.float64)
    zeros = np.asarray(zero.array, np.float64)
    low, high = ((end - zeros) * scales for end in dtypes.int_range(dtype))
    limits = [float(low.max()), float(high.min())]  # one scale a channel: what all of them hold
    return limits if np.isfinite(limits).all() and limits[0] < limits[1] else None
