"""MEAN, SUM, REDUCE_MAX and the other reductions; ARG_MAX; CUMSUM."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.ranks import first_ranked
from slipway.frontends.tflite.converters import NodeView, converter
from slipway.frontends.tflite.operators.arithmetic import is_quantized
from slipway.frontends.tflite.quantized import out_range, stored
from slipway.relay import quantization as rule
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const


def axes_of(node: NodeView, position: int = 1) -> tuple[int, ...]:
    """Return the constant axes from the front, each once."""
    rank = len(node.shape())
    return tuple(sorted({a % rank for a in node.integers(position)})) if rank else ()


@converter("MEAN", "SUM")
def mean_or_sum(node: NodeView) -> Any:
    """Of quantised data: the sum less its zero points, times one factor."""
    axes, keep = axes_of(node), bool(node.option("keep_dims"))
    if not axes:
        return node[0]
    if not is_quantized(node):
        make: Any = relay.mean if node.kind == "MEAN" else relay.sum
        return make(node[0], axes, keep)
    count = 1
    for axis in axes:
        count *= node.shape()[axis]
    if is_open(count):
        raise node.unsupported("quantised numbers are summed over axes of known sizes only")
    if not count:
        raise node.unsupported("quantised numbers of no elements have no mean and no sum")
    source, target = node.quantization(), node.out_quantization()
    multiplier, shift = rule.quantize_multiplier(source.scale / target.scale)
    if node.kind == "MEAN":
        extra = min(count.bit_length() - 1, 32, 31 + shift)
        multiplier = (multiplier << extra) // count
        shift -= extra
    total = relay.sum(relay.cast(node[0], "int32"), axes, keep)
    if source.zero_point:
        total = relay.subtract(total, const(source.zero_point * count, "int32"))
    factor, exponent = const(multiplier, "int32"), const(shift, "int32")
    low, high = out_range(node)
    scaled = relay.qnn.op.rescale(total, factor, exponent)
    return stored(scaled, target.zero_point, low, high, node.out().dtype)


REDUCTIONS = {
    "REDUCE_MAX": "max", "REDUCE_MIN": "min", "REDUCE_PROD": "prod", "REDUCE_ANY": "any",
    "REDUCE_ALL": "all",
}  # fmt: skip


@converter(*REDUCTIONS)
def reduction(node: NodeView) -> Any:
    """Reductions that need no scale."""
    if node.kind == "REDUCE_PROD" and is_quantized(node):
        raise node.unsupported("it is not supported on quantised numbers")
    axes = axes_of(node)
    if not axes:
        return node[0]
    return getattr(relay, REDUCTIONS[node.kind])(node[0], axes, bool(node.option("keep_dims")))


@converter("ARG_MAX", "ARG_MIN")
def arg_extremum(node: NodeView) -> Any:
    """The first position of the largest or smallest element."""
    make: Any = relay.argmax if node.kind == "ARG_MAX" else relay.argmin
    axis = node.integer(1)
    return make(node[0], axis, dtype=node.out().dtype)


@converter("CUMSUM")
def cumsum(node: NodeView) -> Any:
    """Running sums, perhaps from the end, perhaps without the element itself."""
    if is_quantized(node):
        raise node.unsupported("it is not supported on quantised numbers")
    axis = node.integer(1)
    backward = bool(node.option("reverse"))
    data = relay.reverse(node[0], axis) if backward else node[0]
    dtype = node[0].tensor_type.dtype
    found = relay.cumsum(data, axis, dtype, bool(node.option("exclusive")))
    return relay.reverse(found, axis) if backward else found


@converter("TOPK_V2")
def topk(node: NodeView) -> Any:
    """The largest k along the last axis, and where they are."""
    k = node.integer(1)
    if not node.shape() or not 0 <= k <= node.shape()[-1]:
        raise node.unsupported(f"there are no {k} largest elements along {node.shape()}")
    return first_ranked(node[0], k, -1, False, "int32")
