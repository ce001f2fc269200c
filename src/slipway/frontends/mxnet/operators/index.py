"""Elements taken by indices: rows, picks, embeddings, one-hot."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, dtype_of, shape_of
from slipway.relay.expr import Expr


def whole(value: Expr) -> Any:
    """Return indices, which MXNet has as numbers of float32, as integers."""
    return value if dtype_of(value) in ("int32", "int64") else relay.cast(value, "int32")


@converter("Embedding", "_npx_embedding")
def _embedding(node: NodeView) -> Any:
    return relay.take(node[1], whole(node[0]), axis=0, mode="clip")


@converter("take", "_npi_take")
def _take(node: NodeView) -> Any:
    mode = node.text("mode", "clip")
    if mode == "raise":
        raise node.unsupported("its mode is 'raise'")
    return relay.take(node.data, whole(node[1]), axis=node.axis("axis", 0), mode=mode)


@converter("batch_take")
def _batch_take(node: NodeView) -> Any:
    positions = relay.expand_dims(whole(node[1]), 1)
    return relay.squeeze(relay.gather(node.data, 1, positions), [1])


@converter("pick", "_npx_pick")
def _pick(node: NodeView) -> Any:
    """Take one element along an axis for each place of the others."""
    axis = node.axis("axis", -1)
    extent = node.shape[axis]
    positions = whole(node[1])
    if len(shape_of(positions)) != len(node.shape):
        positions = relay.expand_dims(positions, axis)
    if node.text("mode", "clip") == "wrap":
        positions = relay.floor_mod(positions, relay.const(extent, dtype_of(positions)))
    else:
        positions = relay.clip(positions, 0, extent - 1)
    made = relay.gather(node.data, axis, positions)
    return made if node.flag("keepdims") else relay.squeeze(made, [axis])


@converter("gather_nd", "_npx_gather_nd")
def _gather_nd(node: NodeView) -> Any:
    return relay.gather_nd(node.data, whole(node[1]))


@converter("one_hot", "_npx_one_hot")
def _one_hot(node: NodeView) -> Any:
    dtype = node.text("dtype", "float32")
    return relay.one_hot(
        whole(node.data), relay.const(node.real("on_value", 1.0), dtype),
        relay.const(node.real("off_value", 0.0), dtype), node.integer("depth"), -1, dtype,
    )  # fmt: skip


@converter("_unravel_index", "unravel_index")
def _unravel(node: NodeView) -> Any:
    shape = node.ints("shape")
    positions = whole(node.data)
    rows = []
    for extent in reversed(shape):
        size = relay.const(extent, dtype_of(positions))
        rows.append(relay.floor_mod(positions, size))
        positions = relay.floor_divide(positions, size)
    return relay.cast(relay.stack(rows[::-1], 0), node.dtype)
