"""Sequences of different lengths: masked, reversed, their last steps."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter
from slipway.frontends.mxnet.operators.index import whole
from slipway.frontends.mxnet.operators.slices import cut


@converter("SequenceMask", "_npx_sequence_mask")
def _mask(node: NodeView) -> Any:
    if not node.flag("use_sequence_length"):
        return node.data
    return relay.sequence_mask(
        node.data, whole(node[1]), node.real("value", 0.0), node.axis("axis", 0)
    )


@converter("SequenceReverse")
def _reverse(node: NodeView) -> Any:
    if not node.flag("use_sequence_length"):
        return relay.reverse(node.data, 0)
    return relay.reverse_sequence(node.data, whole(node[1]), 0, 1)


@converter("SequenceLast")
def _last(node: NodeView) -> Any:
    axis = node.axis("axis", 0)
    if not node.flag("use_sequence_length"):
        extent = node.shape[axis]
        return relay.squeeze(cut(node.data, axis, extent - 1, extent), [axis])
    data = node.data if axis == 0 else relay.transpose(
        node.data, [1, 0, *range(2, len(node.shape))]
    )  # fmt: skip
    counts = relay.subtract(relay.cast(node[1], "int32"), relay.const(1, "int32"))
    batch = relay.arange(relay.const(data.tensor_type.shape[1], "int32"), dtype="int32")
    return relay.gather_nd(data, relay.stack([counts, batch], 0))
