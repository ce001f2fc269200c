"""Sorting, and the largest of an axis."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter


@converter("argsort", "sort")
def _sort(node: NodeView) -> Any:
    data, axis = node.data, node.value("axis", -1)
    if axis is None:
        data, axis = relay.reshape(data, (-1,)), 0
    upward = node.flag("is_ascend", True)
    if node.op == "sort":
        return relay.sort(data, int(axis), upward)
    return relay.argsort(data, int(axis), upward, node.text("dtype", "float32"))


@converter("topk", "_npx_topk")
def _topk(node: NodeView) -> Any:
    """Return the k largest, or the smallest; k of 0 is all of them."""
    data, axis = node.data, node.value("axis", -1)
    if axis is None:
        data, axis = relay.reshape(data, (-1,)), 0
    kind = node.text("ret_typ", "indices")
    if kind not in ("indices", "value", "both"):
        raise node.unsupported(f"its ret_typ is {kind!r}")
    extent = data.tensor_type.shape[int(axis)]
    made = relay.topk(
        data, node.integer("k", 1) or extent, int(axis), {"value": "values"}.get(kind, kind),
        node.flag("is_ascend"), "int32",
    )  # fmt: skip
    dtype = node.text("dtype", "float32")
    if kind == "value":
        return made
    if kind == "indices":
        return relay.cast(made, dtype)
    return [made[0], relay.cast(made[1], dtype)]
