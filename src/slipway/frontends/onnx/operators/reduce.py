"""Reductions and the positions of extremes."""

from __future__ import annotations

from typing import Any

from slipway import dtypes, relay
from slipway.frontends.onnx.converters import NodeView, converter


@converter(
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
def reduce(node: NodeView) -> Any:
    """Axes as attribute or, in newer opsets, as input; none of them means all (or nothing)."""
    axes = node.ints_from(1, "axes", "the axes")
    if not axes:
        axes = () if node.attr("noop_with_empty_axes", 0) else None
    return reduced(node, axes, bool(node.attr("keepdims", 1)))


def reduced(node: NodeView, axes: tuple[int, ...] | None, keep: bool) -> Any:
    """Return the reduction that `node` names, along `axes`."""
    x = node.input(0)
    match node.kind:
        case "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd":
            if node.type().dtype == "bool":
                return (relay.any if node.kind == "ReduceMax" else relay.all)(x, axes, keep)
            return getattr(relay, node.kind.removeprefix("Reduce").lower())(x, axes, keep)
        case "ReduceL1":
            return relay.sum(relay.abs(x), axes, keep)
        case "ReduceL2":
            total = relay.sum(relay.multiply(x, x), axes, keep)
            dtype = node.type().dtype
            if not dtype.startswith("float"):
                return relay.cast(relay.sqrt(relay.cast(total, "float64")), dtype)
            return relay.sqrt(total)
        case "ReduceSumSquare":
            return relay.sum(relay.multiply(x, x), axes, keep)
        case _:
            log_of = _log_sum if node.kind == "ReduceLogSum" else relay.logsumexp
            dtype = node.type().dtype
            if dtypes.is_float(dtype):
                return log_of(x, axes, keep)
            return relay.cast(log_of(relay.cast(x, "float64"), axes, keep), dtype)


def _log_sum(x: Any, axes: tuple[int, ...] | None, keep: bool) -> Any:
    return relay.log(relay.sum(x, axes, keep))


@converter("ArgMax", "ArgMin")
def arg_extreme(node: NodeView) -> Any:
    """The position of the largest or smallest along an axis."""
    function = relay.argmax if node.kind == "ArgMax" else relay.argmin
    return function(
        node.input(0), node.attr("axis", 0), bool(node.attr("keepdims", 1)),
        select_last_index=bool(node.attr("select_last_index", 0)), dtype="int64",
    )  # fmt: skip
