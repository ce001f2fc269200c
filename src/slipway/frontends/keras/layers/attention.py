"""Attention of several heads."""

from __future__ import annotations

import math
from typing import Any

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.activation import number


@converter("MultiHeadAttention")
def _multi_head(view: LayerView) -> Any:
    """Query, value and, where it is given, key, each (batch, steps, width)."""
    if any(view.given.get(n) is not None for n in ("attention_mask", "use_causal_mask")
           if view.given.get(n) is not False):  # fmt: skip
        raise view.unsupported("it is given a mask")
    if view.given.get("return_attention_scores"):
        raise view.unsupported("it returns its scores")
    query, value, *rest = view.inputs
    key = rest[0] if rest else value
    inside = f"{view.name}."
    parts = [
        view.convert(view.option(f"{'_' + name}_dense"), [x], inside)
        for name, x in (("query", query), ("key", key), ("value", value))
    ]
    heads = [_heads(x) for x in parts]
    width = int(parts[0].tensor_type.shape[-1])
    batch, count = parts[0].tensor_type.shape[0], parts[0].tensor_type.shape[2]
    scores = relay.nn.batch_matmul(heads[0], heads[1])
    scores = relay.multiply(scores, number(1 / math.sqrt(width), scores))
    made = relay.nn.batch_matmul(relay.nn.softmax(scores, axis=-1), heads[2], transpose_b=False)
    steps, depth = made.tensor_type.shape[1:]
    joined = relay.transpose(relay.reshape(made, (batch, count, steps, depth)), [0, 2, 1, 3])
    return view.convert(view.option("_output_dense"), [joined], inside)


def _heads(x: Any) -> Any:
    """(batch, steps, heads, width) as (batch * heads, steps, width)."""
    batch, steps, heads, width = x.tensor_type.shape
    return relay.reshape(relay.transpose(x, [0, 2, 1, 3]), (batch * heads, steps, width))
