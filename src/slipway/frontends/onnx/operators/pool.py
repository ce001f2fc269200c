"""Pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.conv import padding_of
from slipway.frontends.onnx.operators.pool_indices import max_pool_with_indices
from slipway.frontends.open_padding import average_inside, surrounded, surrounded_by_lowest
from slipway.relay.dims import is_open

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def _function(node: NodeView, template: str, count: int) -> Any:
    if count not in (1, 2, 3):
        raise node.unsupported(f"pools {count} spatial axes; 1 to 3 are served")
    return getattr(relay.nn, template.format(count))


@converter("MaxPool", "AveragePool")
def window_pool(node: NodeView) -> Any:
    """Pooling of windows."""
    if node.kind == "AveragePool":
        return average_of_windows(node, node.input(0))
    if len([o for o in node.outputs if o]) > 1:
        return max_pool_with_indices(node)
    kernel, strides, dilation, padding, ceil = _windows(node, node.input(0))
    data, padding = surrounded_by_lowest(node.input(0), padding, range(2, 2 + len(kernel)))
    pool = _function(node, "max_pool{}d", len(kernel))
    return pool(data, kernel, strides, dilation, padding, ceil_mode=ceil)


def average_of_windows(node: NodeView, data: Expr) -> Any:
    """Means of the windows that a node's attributes say, of data with its channels first."""
    kernel, strides, dilation, padding, ceil = _windows(node, data)
    counted = bool(node.attr("count_include_pad", 0))
    pool = _function(node, "avg_pool{}d", len(kernel))
    if any(map(is_open, padding)) and not counted:
        return average_inside(data, kernel, strides, dilation, padding)
    data, padding = surrounded(data, padding, range(2, 2 + len(kernel)))
    return pool(data, kernel, strides, dilation, padding, ceil_mode=ceil, count_include_pad=counted)


def _windows(node: NodeView, data: Expr) -> tuple[Any, ...]:
    """Return a pool's window, strides, dilation, padding, and whether lengths are rounded up."""
    kernel = tuple(node.attr("kernel_shape"))
    ones = (1,) * len(kernel)
    strides, dilation = tuple(node.attr("strides", ones)), tuple(node.attr("dilations", ones))
    padding = padding_of(node, data.tensor_type.shape[2:], kernel, strides, dilation)
    return kernel, strides, dilation, padding, bool(node.attr("ceil_mode", 0))


@converter("GlobalAveragePool", "GlobalMaxPool")
def global_pool(node: NodeView) -> Any:
    """Pooling of all spatial elements."""
    kind = "avg" if node.kind == "GlobalAveragePool" else "max"
    return _function(node, f"global_{kind}_pool{{}}d", node.rank() - 2)(node.input(0))


def _to_the_last_window(
    extents: Any, kernel: Any, strides: Any, dilation: Any, padding: Any
) -> tuple[int, ...]:
    """Return padding with which the windows that ceil_mode adds are whole.

    One that would begin behind the data is none.
    """
    count = len(kernel)
    after = []
    for a in range(count):
        length = extents[a] + padding[a] + padding[count + a]
        reach = dilation[a] * (kernel[a] - 1) + 1
        last = -(-(length - reach) // strides[a])
        last -= last * strides[a] >= extents[a] + padding[a]
        after.append(padding[count + a] + max(last * strides[a] + reach - length, 0))
    return (*padding[:count], *after)


@converter("LpPool", "GlobalLpPool")
def lp_pool(node: NodeView) -> Any:
    """The p-norm of each window: (sum |x|^p)^(1/p), through an average of powers."""
    p = float(node.attr("p", 2))
    x = node.input(0)
    if p == 2:  # squares and a root take a fifth of the time of powers
        powers = relay.multiply(x, x)
    else:
        powers = relay.abs(x) if p == 1 else relay.power(relay.abs(x), node.like(p))
    if node.kind == "GlobalLpPool":
        axes = tuple(range(2, node.rank()))
        total = relay.sum(powers, axes, keepdims=True)
    else:
        kernel = tuple(node.attr("kernel_shape"))
        count, size = len(kernel), 1
        for k in kernel:
            size *= k
        ones = (1,) * count
        strides, dilation = tuple(node.attr("strides", ones)), tuple(node.attr("dilations", ones))
        extents = node.type().shape[2:]
        padding = padding_of(node, extents, kernel, strides, dilation)
        if node.attr("ceil_mode", 0):
            if any(map(is_open, (*extents, *padding))):
                raise node.unsupported("ceil_mode with open sizes")
            padding = _to_the_last_window(extents, kernel, strides, dilation, padding)
        powers, padding = surrounded(powers, padding, range(2, 2 + count))
        pool = _function(node, "avg_pool{}d", count)
        average = pool(powers, kernel, strides, dilation, padding, count_include_pad=True)
        total = relay.multiply(average, node.like(size))
    if p == 2:
        return relay.sqrt(total)
    return relay.power(total, node.like(1 / p)) if p != 1 else total
