"""Reductions over axes, running sums, and orders."""

from __future__ import annotations

import math
from typing import Any

from slipway import relay
from slipway.frontends.torch.converters import NodeView, cast, converter, like

PLAIN = {"sum": "sum", "mean": "mean", "prod": "prod", "amax": "max", "amin": "min"}


@converter(*PLAIN)
def reduce(node: NodeView) -> Any:
    """Over the axes named, or all; sums of integers are 64 bits wide."""
    x = cast(node.input(), node.out.dtype)
    half = x.tensor_type.dtype == "float16"
    x = relay.cast(x, "float32") if half else x
    axes, keep = node.axes(), bool(node.arg("keepdim", False))
    if not axes:
        return node.narrow(x)
    return node.narrow(getattr(relay, PLAIN[node.kind])(x, axes, keep))


@converter("max", "min")
def extreme(node: NodeView) -> Any:
    """Of all elements, of two tensors, or along an axis with its position."""
    step = relay.max if node.kind == "max" else relay.min
    if "other" in node.arguments:
        choose = relay.maximum if node.kind == "max" else relay.minimum
        return choose(*node.pair(node.out.dtype))
    x = node.input()
    if "dim" not in node.arguments:
        return step(x, tuple(range(node.rank())))
    axis, keep = node.axis(), bool(node.arg("keepdim", False))
    position = (relay.argmax if node.kind == "max" else relay.argmin)(x, axis, keep, dtype="int64")
    return [step(x, axis, keep), position]


@converter("argmax", "argmin")
def position(node: NodeView) -> Any:
    """Where the extreme is, along an axis or in the flattened tensor."""
    function = relay.argmax if node.kind == "argmax" else relay.argmin
    if node.arguments.get("dim") is None:
        flat = function(relay.reshape(node.input(), (-1,)), 0, dtype="int64")
        return relay.reshape(flat, node.out.shape)
    return function(node.input(), node.axis(), bool(node.arg("keepdim", False)), dtype="int64")


@converter("any", "all")
def truth(node: NodeView) -> Any:
    """Whether one holds, or all do."""
    x = cast(node.input(), "bool")
    axes = node.axes()
    if not axes:
        return x
    function = relay.any if node.kind == "any" else relay.all
    return function(x, axes, bool(node.arg("keepdim", False)))


@converter("var", "std", "var_mean", "std_mean")
def variance(node: NodeView) -> Any:
    """The variance with a correction of the count, 1 unless it is given."""
    x, axes, keep = node.input(), node.axes(), bool(node.arg("keepdim", False))
    correction = node.arguments.get("correction")
    if correction is None:
        correction = 1 if node.arg("unbiased", True) else 0
    count = math.prod(node.shape()[a] for a in axes)
    mean = relay.mean(x, axes, True)
    centred = relay.subtract(x, mean)
    total = relay.sum(relay.multiply(centred, centred), axes, keep)
    result = relay.multiply(total, like(1 / max(count - correction, 0), x))
    result = relay.sqrt(result) if node.kind.startswith("std") else result
    if not node.kind.endswith("mean"):
        return result
    return [result, relay.reshape(mean, result.tensor_type.shape)]


@converter("logsumexp")
def logsumexp(node: NodeView) -> Any:
    """log(sum(exp(x))) without overflow."""
    return relay.logsumexp(node.input(), node.axes(), bool(node.arg("keepdim", False)))


@converter("cumsum", "cumprod")
def running(node: NodeView) -> Any:
    """The running sum or product."""
    function = relay.cumsum if node.kind == "cumsum" else relay.cumprod
    return function(cast(node.input(), node.out.dtype), node.axis())


@converter("topk")
def topk(node: NodeView) -> Any:
    """The largest or smallest along an axis, with their positions."""
    least = not node.arg("largest", True)
    axis = node.axis(default=-1)
    return relay.topk(node.input(), int(node.arg("k")), axis, "both", least, "int64")


@converter("sort", "argsort")
def sort(node: NodeView) -> Any:
    """All elements in order along an axis, with their positions."""
    axis = node.axis(default=-1)
    count = node.shape()[axis] if node.rank() else 1
    least = not node.arg("descending", False)
    values, places = relay.topk(node.input(), count, axis, "both", least, "int64")
    return places if node.kind == "argsort" else [values, places]
