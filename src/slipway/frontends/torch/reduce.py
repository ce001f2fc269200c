"""Reductions over axes, running sums, and orders."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.torch.arithmetic import greater_or_lesser
from slipway.frontends.torch.converters import NodeView, cast, converter, like, number
from slipway.relay.dims import SymbolDim, is_open

PLAIN = {"sum": "sum", "mean": "mean", "prod": "prod", "amax": "max", "amin": "min"}


@converter(*PLAIN)
def reduce(node: NodeView) -> Any:
    """Over the axes named, or all; sums of integers are 64 bits wide."""
    x = cast(node.input(), node.out.dtype)
    wide = {"float16": "float32", "bool": "uint8"}
    x = cast(x, wide.get(x.tensor_type.dtype, x.tensor_type.dtype))
    axes, keep = node.axes(), bool(node.arg("keepdim", False))
    if not axes:
        return node.narrow(x)
    return node.narrow(getattr(relay, PLAIN[node.kind])(x, axes, keep))


@converter("max", "min")
def extreme(node: NodeView) -> Any:
    """Of all elements, of two tensors, or along an axis with its position."""
    step = relay.max if node.kind == "max" else relay.min
    if "other" in node.arguments:
        return greater_or_lesser(node.kind == "max", *node.pair(node.out.dtype))
    x = node.input()
    x = cast(x, "uint8") if x.tensor_type.dtype == "bool" else x
    if "dim" not in node.arguments:
        return node.narrow(step(x, tuple(range(node.rank()))))
    axis, keep = node.axis(), bool(node.arg("keepdim", False))
    position = (relay.argmax if node.kind == "max" else relay.argmin)(x, axis, keep, dtype="int64")
    return [node.narrow(step(x, axis, keep)), position]


@converter("argmax", "argmin")
def position(node: NodeView) -> Any:
    """Where the extreme is, along an axis or in the flattened tensor."""
    function = relay.argmax if node.kind == "argmax" else relay.argmin
    if node.arguments.get("dim") is None:
        flat = function(relay.reshape(node.input(), (-1,)), 0, dtype="int64")
        return relay.reshape(flat, node.out.shape)
    return function(node.input(), node.axis(), bool(node.arg("keepdim", False)), dtype="int64")


@converter("_is_any_true", "_is_all_true")
def is_true(node: NodeView) -> Any:
    """Whether one or all of the elements hold; what programs assert of their values."""
    return (relay.any if node.kind == "_is_any_true" else relay.all)(node.input())


@converter("any", "all")
def truth(node: NodeView) -> Any:
    """Whether one holds, or all do."""
    x = cast(node.input(), "bool")
    axes = node.axes()
    function = relay.any if node.kind == "any" else relay.all
    held = function(x, axes, bool(node.arg("keepdim", False))) if axes else x
    return cast(held, node.out.dtype)  # of bytes torch gives bytes


@converter("var", "std", "var_mean", "std_mean")
def variance(node: NodeView) -> Any:
    """The variance with a correction of the count, 1 unless it is given."""
    x, axes, keep = node.input(), node.axes(), bool(node.arg("keepdim", False))
    correction = node.arguments.get("correction")
    if correction is None:
        correction = 1 if node.arg("unbiased", True) else 0
    sizes = [node.shape()[a] for a in axes]
    mean = relay.mean(x, axes, True)
    centred = relay.subtract(x, mean)
    total = relay.sum(relay.multiply(centred, centred), axes, keep)
    if any(map(is_open, sizes)):
        counted = like(math.prod(d for d in sizes if not is_open(d)), x)
        for size in filter(is_open, sizes):
            counted = relay.multiply(counted, node.as_tensor(size, x.tensor_type.dtype))
        less = relay.subtract(counted, like(correction, x))
        result = relay.divide(total, relay.maximum(less, like(0, x)))
    else:
        result = relay.multiply(total, like(_inverse(math.prod(sizes) - correction), x))
    result = relay.sqrt(result) if node.kind.startswith("std") else result
    if not node.kind.endswith("mean"):
        return result
    return [result, relay.reshape(mean, result.tensor_type.shape)]


def _inverse(count: float) -> float:
    return 1 / count if count > 0 else math.inf


@converter("logsumexp")
def logsumexp(node: NodeView) -> Any:
    """log(sum(exp(x))) without overflow."""
    return relay.logsumexp(node.input(), node.axes(), bool(node.arg("keepdim", False)))


@converter("cumsum", "cumprod")
def running(node: NodeView) -> Any:
    """The running sum or product."""
    function = relay.cumsum if node.kind == "cumsum" else relay.cumprod
    return function(cast(node.input(), node.out.dtype), node.axis())


@converter("cummax", "cummin", "logcumsumexp")
def scanned(node: NodeView) -> Any:
    """The maximum, the minimum, or log(sum(exp(x))) so far: each step doubles how far it sees."""
    x, axis = node.input(), node.axis()
    if not node.rank():
        return x if node.kind == "logcumsumexp" else [x, number(0, "int64")]
    count, rank = node.shape()[axis], node.rank()
    is_sum = node.kind == "logcumsumexp"
    dtype = x.tensor_type.dtype
    lowest = _lowest(dtype, node.kind == "cummin")
    view = [1] * rank
    view[axis] = count
    position: Any = relay.reshape(relay.arange(0, count, 1, "int64"), view)
    position = relay.broadcast_to(position, node.shape())
    most = count.high if isinstance(count, SymbolDim) else count
    if most is None:
        raise node.unsupported(f"nothing bounds the size {count} that it goes along")
    reach = 1
    while reach < most:
        before = _shifted(x, axis, reach, lowest)
        if is_sum:
            high, low = relay.maximum(x, before), relay.minimum(x, before)
            gap = relay.where(relay.isinf(high), like(0, x), relay.subtract(low, high))
            x = relay.add(high, relay.log(relay.add(relay.exp(gap), like(1, x))))
        else:
            better = (relay.greater_equal if node.kind == "cummax" else relay.less_equal)(x, before)
            known = dtypes.is_float(dtype)
            own = relay.logical_or(better, relay.isnan(x)) if known else better
            if known:
                own = relay.logical_and(own, relay.logical_not(_hidden(x, before)))
            position = relay.where(own, position, _shifted(position, axis, reach, 0))
            x = relay.where(own, x, before)
        reach *= 2
    return x if is_sum else [x, position]


def _hidden(x: Any, before: Any) -> Any:
    """Return whether a NaN stands before what is none."""
    return relay.logical_and(relay.isnan(before), relay.logical_not(relay.isnan(x)))


def _lowest(dtype: str, largest: bool) -> Any:
    if dtypes.is_float(dtype):
        return np.inf if largest else -np.inf
    if dtype == "bool":
        return largest
    return dtypes.int_range(dtype)[1 if largest else 0]


def _shifted(x: Any, axis: int, steps: int, value: Any) -> Any:
    """Return the tensor moved up an axis, with a value in front."""
    kind = x.tensor_type
    front = list(kind.shape)
    front[axis] = steps
    extent = kind.shape[axis]
    filled = relay.full(number(value, kind.dtype), front, kind.dtype)
    if is_open(extent):  # which may be less than the steps
        moved = relay.concatenate([filled, x], axis)
        return relay.strided_slice(moved, [0], [extent], axes=[axis])
    kept = relay.strided_slice(x, [0], [extent - steps], axes=[axis])
    return relay.concatenate([filled, kept], axis)
