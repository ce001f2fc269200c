"""Pooling over windows, over everything, and over equal parts."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter
from slipway.frontends.mxnet.operators.conv import layout_of

MAX = {1: relay.nn.max_pool1d, 2: relay.nn.max_pool2d, 3: relay.nn.max_pool3d}
AVERAGE = {1: relay.nn.avg_pool1d, 2: relay.nn.avg_pool2d, 3: relay.nn.avg_pool3d}


@converter("Pooling", "Pooling_v1", "_npx_pooling")
def _pooling(node: NodeView) -> Any:
    rank = len(node.shape) - 2
    layout = layout_of(node, rank)
    kind = node.text("pool_type", "max")
    if node.flag("global_pool"):
        return _whole(node, kind, layout)
    sizes = node.ints("kernel")
    strides = node.ints("stride") or [1] * rank
    options: dict[str, Any] = {
        "pool_size": tuple(sizes), "strides": tuple(strides), "layout": layout,
        "padding": tuple(_padding(node, layout, sizes, strides)),
        "ceil_mode": node.text("pooling_convention", "valid") == "full",
    }  # fmt: skip
    beyond = _beyond(node, layout, options) if options["ceil_mode"] else [0] * rank
    if any(beyond):
        if kind != "max":
            raise node.unsupported("the last of its windows lies outside of the data")
        pads = options["padding"]
        after = [p + b for p, b in zip(pads[rank:], beyond, strict=True)]
        options |= {"padding": (*pads[:rank], *after), "ceil_mode": False}
    if kind == "max":
        return MAX[rank](node.data, **options)
    counted = node.flag("count_include_pad", True)
    if kind == "avg":
        return AVERAGE[rank](node.data, count_include_pad=counted, **options)
    if kind in ("sum", "lp"):
        power = node.integer("p_value", 2) if kind == "lp" else 1
        return _summed(node, power, layout, options)
    raise node.unsupported(f"its pool_type is {kind!r}")


def _beyond(node: NodeView, layout: str, options: dict[str, Any]) -> list[int]:
    """Return what must be padded behind each axis for MXNet's number of windows.

    "full" counts a window that begins behind the data, which other formats leave out; without
    such a one there is nothing to add.
    """
    extents = [node.shape[layout.index(a)] for a in layout if a not in "NC"]
    sizes, strides = options["pool_size"], options["strides"]
    before = options["padding"][: len(sizes)]
    last = [
        -(-(e + 2 * p - k) // s) * s
        for e, k, s, p in zip(extents, sizes, strides, before, strict=True)
    ]
    if all(b < e + p for b, e, p in zip(last, extents, before, strict=True)):
        return [0] * len(sizes)
    return [
        max(b + k - (e + 2 * p), 0) for b, k, e, p in zip(last, sizes, extents, before, strict=True)
    ]


def _padding(node: NodeView, layout: str, sizes: list[int], strides: list[int]) -> list[int]:
    rank = len(sizes)
    pads = node.ints("pad") or [0] * rank
    if node.text("pooling_convention", "valid") != "same":
        return pads + pads
    extents = [node.shape[layout.index(a)] for a in layout if a not in "NC"]
    total = [
        max((-(-e // s) - 1) * s + k - e, 0)
        for e, s, k in zip(extents, strides, sizes, strict=True)
    ]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


def _summed(node: NodeView, power: int, layout: str, options: dict[str, Any]) -> Any:
    """Sum a power over windows, as the mean times their size: padding adds nothing."""
    if options["ceil_mode"]:
        raise node.unsupported("pooling_convention full of sums")
    data = node.data
    if power != 1:
        data = relay.power(relay.abs(data), node.const(float(power)))
    count = 1
    for size in options["pool_size"]:
        count *= size
    mean = AVERAGE[len(options["pool_size"])](data, count_include_pad=True, **options)
    total = relay.multiply(mean, node.const(float(count)))
    return total if power == 1 else relay.power(total, node.const(1.0 / power))


def _whole(node: NodeView, kind: str, layout: str) -> Any:
    axes = [i for i, axis in enumerate(layout) if axis not in "NC"]
    if kind == "max":
        return relay.max(node.data, axis=axes, keepdims=True)
    if kind == "avg":
        return relay.mean(node.data, axis=axes, keepdims=True)
    if kind == "sum":
        return relay.sum(node.data, axis=axes, keepdims=True)
    if kind == "lp":
        power = float(node.integer("p_value", 2))
        inner = relay.power(relay.abs(node.data), node.const(power))
        return relay.power(relay.sum(inner, axes, True), node.const(1.0 / power))
    raise node.unsupported(f"its pool_type is {kind!r}")


@converter("_contrib_AdaptiveAvgPooling2D")
def _adaptive(node: NodeView) -> Any:
    size = node.ints("output_size") or [1]
    return relay.nn.adaptive_avg_pool2d(node.data, tuple(size * 2 if len(size) == 1 else size))
