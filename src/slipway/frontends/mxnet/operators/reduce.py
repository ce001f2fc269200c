"""Sums, extremes and the places of extremes along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, dtype_of

REDUCE: dict[str, Callable[..., Any]] = {
    "sum": relay.sum, "mean": relay.mean, "max": relay.max, "min": relay.min, "prod": relay.prod,
}  # fmt: skip


def axes_of(node: NodeView) -> list[int] | None:
    """Return the axes that are reduced; None for all of them."""
    rank = len(node.shape)
    given = [a % rank for a in node.ints("axis")]
    if node.flag("exclude"):
        return [a for a in range(rank) if a not in given]
    return given or None


def _enter(name: str, function: Callable[..., Any]) -> None:
    @converter(name, f"{name}_axis", f"_np_{name}", f"_npi_{name}")
    def convert(node: NodeView) -> Any:
        axes, kept = axes_of(node), node.flag("keepdims")
        made = function(node.data, axis=axes, keepdims=kept)
        whole = axes is None and not kept and not node.op.startswith("_np")
        return relay.reshape(made, (1,)) if whole else made


for _name, _function in REDUCE.items():
    _enter(_name, _function)


@converter("nansum", "nanprod")
def _without_nan(node: NodeView) -> Any:
    neutral = node.const(0.0 if node.op == "nansum" else 1.0)
    data = relay.where(relay.isnan(node.data), neutral, node.data)
    made = (relay.sum if node.op == "nansum" else relay.prod)(
        data, axis=axes_of(node), keepdims=node.flag("keepdims")
    )
    whole = axes_of(node) is None and not node.flag("keepdims")
    return relay.reshape(made, (1,)) if whole else made


@converter("argmax", "argmin", "argmax_channel")
def _position(node: NodeView) -> Any:
    """Return places as numbers of float32, as MXNet does."""
    find = relay.argmin if node.op == "argmin" else relay.argmax
    if node.op == "argmax_channel":
        return relay.cast(find(node.data, axis=1), dtype_of(node.data))
    axis, kept = node.value("axis"), node.flag("keepdims")
    if axis is None:
        flat = find(relay.reshape(node.data, (-1,)), axis=0)
        return relay.cast(relay.reshape(flat, (1,)), "float32")
    return relay.cast(find(node.data, axis=int(axis), keepdims=kept), "float32")


@converter("cumsum", "_np_cumsum")
def _running(node: NodeView) -> Any:
    axis = node.value("axis")
    return relay.cumsum(node.data, axis, node.text("dtype") or None)
