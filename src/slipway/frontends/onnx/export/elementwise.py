"""Operators of single elements, and what runs over an axis: reductions, sums, sorts, norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.frontends.onnx.export.writer import Given, Unwritten, Write, Writer, kind_of, shape_of
from slipway.relay.expr import Call

# Operators that have the same meaning, inputs and defaults there.
_SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow",
    "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "erf": "Erf", "abs": "Abs", "negative": "Neg", "floor": "Floor",
    "ceil": "Ceil", "maximum": "Max", "minimum": "Min", "where": "Where", "equal": "Equal",
    "greater": "Greater", "less": "Less", "greater_equal": "GreaterOrEqual",
    "less_equal": "LessOrEqual", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
    "logical_not": "Not", "round": "Round", "sign": "Sign", "copy": "Identity",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "device_copy": "Identity", "annotation.stop_fusion": "Identity",
    "annotation.checkpoint": "Identity", "annotation.on_device": "Identity",
}  # fmt: skip
_BITS = {"bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor",
         "bitwise_not": "BitwiseNot"}  # fmt: skip
_REDUCE = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin",
           "prod": "ReduceProd"}  # fmt: skip


def _same(kind: str) -> Write:
    return lambda w, _call, given: w.node(kind, given)


def _bits(kind: str) -> Write:
    def write(w: Writer, call: Call, given: Given) -> str:
        if w.opset < 18:
            raise Unwritten(f"{call.op.name} (before opset 18)")
        return w.node(kind, given)

    return write


def _times(kind: str, factor: float) -> Write:
    """Write a function, and its results times a number."""
    return lambda w, call, given: w.node(
        "Mul", [w.node(kind, given), w.scalar(factor, kind_of(call).dtype)]
    )


def _not_equal(w: Writer, _call: Call, given: Given) -> str:
    return w.node("Not", [w.node("Equal", given)])


def _test(*kinds: str) -> Write:
    """Write whether one of float's special values is there; integers have none."""

    def write(w: Writer, call: Call, given: Given) -> str:
        if not dtypes.is_float(kind_of(call.args[0]).dtype):
            return w.node("Not", [w.node("Equal", [given[0], given[0]])])
        found = [w.node(kind, given) for kind in kinds]
        return found[0] if len(found) == 1 else w.node("Or", found)

    return write


def _isfinite(w: Writer, call: Call, given: Given) -> str:
    return w.node("Not", [_test("IsInf", "IsNaN")(w, call, given)])


def _relu(w: Writer, call: Call, given: Given) -> str:
    """Relu takes integers from opset 14 on."""
    dtype = kind_of(call).dtype
    if dtypes.is_float(dtype):
        return w.node("Relu", given)
    return w.node("Max", [given[0], w.scalar(0, dtype)])


def _trunc(w: Writer, call: Call, given: Given) -> str:
    below = w.node("Less", [given[0], w.scalar(0, kind_of(call).dtype)])
    return w.node("Where", [below, w.node("Ceil", given), w.node("Floor", given)])


def _floor_mod(w: Writer, call: Call, given: Given) -> str:
    """Integers have it as Mod, floats as what the rounded quotient leaves."""
    if dtypes.is_integral(kind_of(call).dtype):
        return w.node("Mod", given)
    whole = w.node("Floor", [w.node("Div", given)])
    return w.node("Sub", [given[0], w.node("Mul", [whole, given[1]])])


def _floor_divide(w: Writer, call: Call, given: Given) -> str:
    if dtypes.is_integral(kind_of(call).dtype):
        left = w.node("Sub", [given[0], w.node("Mod", given)])
        return w.node("Div", [left, given[1]])
    return w.node("Floor", [w.node("Div", given)])


def _shift(direction: str) -> Write:
    def write(w: Writer, call: Call, given: Given) -> str:
        if not dtypes.is_uint(kind_of(call).dtype):
            raise Unwritten(f"{call.op.name} (of signed integers)")
        return w.node("BitShift", given, direction=direction)

    return write


def _clip(w: Writer, call: Call, given: Given) -> str:
    dtype = kind_of(call).dtype
    return w.node("Clip", [given[0], *(w.scalar(v, dtype)
                                       for v in (call.attrs.a_min, call.attrs.a_max))])  # fmt: skip


def _prelu(w: Writer, call: Call, given: Given) -> str:
    """The slopes of an axis, as ONNX broadcasts them: from the last axis on."""
    shape = shape_of(call)
    axis = call.attrs.axis % len(shape)
    if shape_of(call.args[1]) == [shape[axis]]:
        given = [given[0], w.reshape(given[1], [-1, *[1] * (len(shape) - 1 - axis)])]
    return w.node("PRelu", given)


def _cast(w: Writer, call: Call, given: Given) -> str:
    return w.cast(given[0], kind_of(call).dtype)


# -- along axes ------------------------------------------------------------------------------------


def _axes(call: Call) -> list[int]:
    rank = len(shape_of(call.args[0]))
    given = call.attrs.axis
    chosen = sorted(int(a) % rank for a in (range(rank) if given is None else np.atleast_1d(given)))
    if getattr(call.attrs, "exclude", False):
        return [a for a in range(rank) if a not in chosen]
    return chosen


def reduced(w: Writer, name: str, kind: str, axes: list[int], keep: int) -> str:
    """Write a reduction; without axes there is none."""
    if not axes:
        return name
    if kind == "ReduceSum" or w.opset >= 18:
        return w.node(kind, [name, w.whole(*axes)], keepdims=keep)
    return w.node(kind, [name], axes=axes, keepdims=keep)


def _reduce(kind: str) -> Write:
    return lambda w, call, given: reduced(w, given[0], kind, _axes(call), int(call.attrs.keepdims))


def _truths(kind: str) -> Write:
    """Whether all or one hold, of ones and zeros: ONNX reduces no bool."""

    def write(w: Writer, call: Call, given: Given) -> str:
        ones = w.cast(given[0], "int32")
        return w.cast(reduced(w, ones, kind, _axes(call), int(call.attrs.keepdims)), "bool")

    return write


def _position(kind: str) -> Write:
    def write(w: Writer, call: Call, given: Given) -> str:
        a, shape = call.attrs, shape_of(call.args[0])
        axes = [int(v) % len(shape) for v in (range(len(shape)) if a.axis is None
                                              else np.atleast_1d(a.axis))]  # fmt: skip
        if len(axes) != 1:  # the position in several axes is that in their elements
            rest = [i for i in range(len(shape)) if i not in axes]
            moved = w.transpose(given[0], [*rest, *sorted(axes)])
            data, axis = w.reshape(moved, [*(shape[i] for i in rest), -1]), len(rest)
        else:
            data, axis = given[0], axes[0]
        found = w.node(kind, [data], axis=axis, keepdims=0,
                       select_last_index=int(a.select_last_index))  # fmt: skip
        return w.cast(w.reshape(found, shape_of(call)), kind_of(call).dtype)

    return write


def _cumsum(w: Writer, call: Call, given: Given) -> str:
    a = call.attrs
    return w.node("CumSum", [given[0], w.scalar(a.axis, "int64")],
                  exclusive=int(a.exclusive), reverse=int(a.reverse))  # fmt: skip


def _topk(w: Writer, call: Call, given: Given) -> Any:
    a, shape = call.attrs, shape_of(call.args[0])
    count = a.k or shape[a.axis]
    values, positions = w.several("TopK", [given[0], w.whole(count)], 2, axis=a.axis,
                               largest=int(not a.is_ascend))  # fmt: skip
    return values, w.cast(positions, a.dtype)


def _softmax(kind: str) -> Write:
    return lambda w, call, given: w.node(kind, given, axis=call.attrs.axis)


# -- norms -----------------------------------------------------------------------------------------


def _layer_norm(w: Writer, call: Call, given: Given) -> str:
    axis = call.attrs.axis % len(shape_of(call))
    if axis == len(shape_of(call)) - 1 and w.opset >= 17:
        return w.node("LayerNormalization", given, axis=-1, epsilon=call.attrs.epsilon)
    return _normal(w, call, given, [axis])


def _instance_norm(w: Writer, call: Call, given: Given) -> str:
    rank = len(shape_of(call))
    axis = call.attrs.axis % rank
    if axis == 1:
        return w.node("InstanceNormalization", given, epsilon=call.attrs.epsilon)
    return _normal(w, call, given, [a for a in range(1, rank) if a != axis])


def _normal(w: Writer, call: Call, given: Given, axes: list[int]) -> str:
    """Write a norm over axes by its formula; its factors lie along its own axis."""
    kind = kind_of(call)
    shape = [1] * kind.rank
    shape[call.attrs.axis] = -1
    centred = w.node("Sub", [given[0], reduced(w, given[0], "ReduceMean", axes, 1)])
    variance = reduced(w, w.node("Mul", [centred, centred]), "ReduceMean", axes, 1)
    shifted = w.node("Add", [variance, w.scalar(call.attrs.epsilon, kind.dtype)])
    whole = w.node("Div", [centred, w.node("Sqrt", [shifted])])
    scaled = w.node("Mul", [whole, w.reshape(given[1], shape)])
    return w.node("Add", [scaled, w.reshape(given[2], shape)])


def _lrn(w: Writer, call: Call, given: Given) -> str:
    a, rank = call.attrs, len(shape_of(call))
    order = list(range(rank))
    order[1], order[a.axis] = order[a.axis], order[1]
    data = w.transpose(given[0], order)
    made = w.node("LRN", [data], size=a.size, alpha=a.alpha, beta=a.beta, bias=a.bias)
    return w.transpose(made, order)


WRITERS: dict[str, Write] = {
    **{name: _same(kind) for name, kind in _SAME.items()},
    **{name: _bits(kind) for name, kind in _BITS.items()},
    **{name: _reduce(kind) for name, kind in _REDUCE.items()},
    "log2": _times("Log", 1 / math.log(2)), "log10": _times("Log", 1 / math.log(10)),
    "not_equal": _not_equal, "isfinite": _isfinite, "isnan": _test("IsNaN"),
    "isinf": _test("IsInf"), "nn.relu": _relu, "trunc": _trunc,
    "floor_mod": _floor_mod, "floor_divide": _floor_divide,
    "mod": lambda w, _call, given: w.node("Mod", given, fmod=1),
    "left_shift": _shift("LEFT"), "right_shift": _shift("RIGHT"),
    "clip": _clip, "nn.prelu": _prelu, "cast": _cast,
    "rsqrt": lambda w, _call, given: w.node("Reciprocal", [w.node("Sqrt", given)]),
    "nn.leaky_relu": lambda w, call, given: w.node("LeakyRelu", given, alpha=call.attrs.alpha),
    "all": _truths("ReduceMin"), "any": _truths("ReduceMax"),
    "argmax": _position("ArgMax"), "argmin": _position("ArgMin"),
    "cumsum": _cumsum, "topk": _topk,
    "nn.softmax": _softmax("Softmax"), "nn.log_softmax": _softmax("LogSoftmax"),
    "nn.layer_norm": _layer_norm, "nn.instance_norm": _instance_norm, "nn.lrn": _lrn,
}  # fmt: skip
