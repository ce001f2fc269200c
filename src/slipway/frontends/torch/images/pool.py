"""Pooling."""

from __future__ import annotations

import math
from typing import Any

from slipway import relay
from slipway.frontends.pool_positions import max_pool_with_positions
from slipway.frontends.torch.converters import NodeView, converter, like


def _batched(node: NodeView, count: int) -> tuple[Any, bool]:
    """Return the data with a batch axis, and whether it had to be put in."""
    x = node.input("self" if "self" in node.arguments else "input")
    single = x.tensor_type.rank == count + 1
    return (relay.expand_dims(x, 0) if single else x), single


def _count(node: NodeView) -> int:
    return int(next(c for c in node.kind if c.isdigit()))


@converter(
    "max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices",
    "max_pool2d_with_indices", "max_pool3d_with_indices",
)  # fmt: skip
def max_pool(node: NodeView) -> Any:
    """The largest of each window, and where it is if something reads that."""
    count = _count(node)
    x, single = _batched(node, count)
    kernel = node.ints("kernel_size", count)
    strides = node.ints("stride", count) or kernel
    if node.is_read(1):
        found = max_pool_with_positions(
            x, kernel, strides, node.ints("dilation", count, 1), node.ints("padding", count, 0) * 2,
            bool(node.arg("ceil_mode", False)),
        )  # fmt: skip
        return [relay.squeeze(part, [0]) if single else part for part in found]
    result = getattr(relay.nn, f"max_pool{count}d")(
        x, kernel, strides, node.ints("dilation", count, 1), node.ints("padding", count, 0) * 2,
        ceil_mode=bool(node.arg("ceil_mode", False)),
    )  # fmt: skip
    result = relay.squeeze(result, [0]) if single else result
    return [result, None] if len(node.outputs) > 1 else result


@converter("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(node: NodeView) -> Any:
    """The mean of each window, or its sum over a divisor, whatever it holds of the padding."""
    count, divisor = _count(node), node.arg("divisor_override")
    if divisor and node.arg("ceil_mode", False):
        raise node.unsupported("divisor_override is set, and ceil_mode cuts windows off")
    x, single = _batched(node, count)
    kernel = node.ints("kernel_size", count)
    strides = node.ints("stride", count) or kernel
    result = getattr(relay.nn, f"avg_pool{count}d")(
        x, kernel, strides, 1, node.ints("padding", count, 0) * 2,
        ceil_mode=bool(node.arg("ceil_mode", False)),
        count_include_pad=bool(divisor or node.arg("count_include_pad", True)),
    )  # fmt: skip
    if divisor:
        result = relay.multiply(result, like(math.prod(kernel) / divisor, result))
    return relay.squeeze(result, [0]) if single else result


@converter(
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
)  # fmt: skip
def adaptive_pool(node: NodeView) -> Any:
    """Pooling to a given size; to 1 it is global."""
    count = _count(node)
    kind = "max" if "max" in node.kind else "avg"
    x, single = _batched(node, count)
    size = node.ints("output_size", count)
    if all(s == 1 for s in size):
        result = getattr(relay.nn, f"global_{kind}_pool{count}d")(x)
    else:
        result = getattr(relay.nn, f"adaptive_{kind}_pool{count}d")(x, size)
    result = relay.squeeze(result, [0]) if single else result
    return [result, None] if len(node.outputs) > 1 else result
