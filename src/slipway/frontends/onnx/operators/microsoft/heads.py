"""Attention after its projections, and rotary embeddings: what onnxruntime's optimiser fuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.microsoft.attention import added_for, of_heads, weighted
from slipway.relay.ops.build import counted, length, scalar

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


@converter("com.microsoft.MultiHeadAttention")
def multi_head_attention(node: NodeView) -> Any:
    """Attention of queries, keys and values, which may be packed, of another model, or of before.

    A bias for each column of all three is added first.
    """
    heads = int(node.attr("num_heads"))
    query, key, value = _unpacked(node, heads)
    for index, past in ((1, 6), (2, 7)):
        if node.has(past):
            part = (query, key, value)[index]
            joined = relay.concatenate([node.input(past), part], 2)
            key, value = (joined, value) if index == 1 else (key, joined)
    width = query.tensor_type.shape[3]
    terms = added_for(node, node.optional(4), query, key)
    if node.has(5):
        terms.append(node.input(5))
    scale = node.attr("scale", 0.0) or 1 / np.sqrt(width)
    result = weighted(query, key, value, node.like(scale), terms)
    return [result, key, value][: len(node.outputs)]


def _unpacked(node: NodeView, heads: int) -> list[Any]:
    """Return queries, keys and values, each (batch, heads, rows, columns of one)."""
    first = node.input(0)
    if node.rank() == 5 or (node.has(1) and node.rank(1) == 5):  # (batch, rows, heads, 3 or 2, n)
        whole = first if node.rank() == 5 else node.input(1)
        count = whole.tensor_type.shape[3]
        parts = relay.split(whole, count, axis=3)
        found: list[Any] = [relay.squeeze(part, [3]) for part in parts]
        found = [relay.transpose(part, (0, 2, 1, 3)) for part in found]
        return found if count == 3 else [_biased(node, 0, heads), *found]
    return [_biased(node, index, heads) for index in range(3)]


def _biased(node: NodeView, index: int, heads: int) -> Any:
    value = node.input(index)
    if node.rank(index) == 4:  # of an encoder, split into heads before
        return value
    batch, rows, columns = value.tensor_type.shape
    if columns % heads:
        raise node.unsupported(f"{heads} heads do not divide its {columns} columns")
    if node.has(3):
        start = sum(node.type(i).shape[-1] for i in range(index))
        bias = relay.strided_slice(node.input(3), [start], [start + columns], axes=[0])
        value = relay.add(value, bias)
    return of_heads(value, (batch, rows, heads, columns // heads))


@converter("com.microsoft.RotaryEmbedding")
def rotary_embedding(node: NodeView) -> Any:
    """Pairs of columns rotated by the angles of their positions."""
    value, split = node.input(0), node.rank() == 3
    wide = node.type(2).shape[1] * 2
    batch, rows = node.type().shape[0], node.type().shape[1 if split else 2]
    if split:
        full = node.type().shape[2]
        heads = int(node.attr("num_heads", 0)) or full // wide
        value = of_heads(value, (batch, rows, heads, full // heads))
    positions = node.input(1)
    if positions.tensor_type.shape == (1,) or positions.tensor_type.rank == 0:
        own = counted(rows, positions.tensor_type.dtype)
        positions = relay.reshape(relay.add(own, positions), (1, rows))
    interleaved = bool(node.attr("interleaved", 0))
    result = rotated(value, node.input(2), node.input(3), positions, interleaved)
    if not split:
        return result
    return relay.reshape(relay.transpose(result, (0, 2, 1, 3)), node.type().shape)


def rotated(value: Expr, cosine: Expr, sine: Expr, positions: Any, interleaved: bool) -> Any:
    """Return (batch, heads, rows, columns) rotated; `positions` are (batch or 1, rows)."""
    batch, heads, rows, columns = value.tensor_type.shape
    half = cosine.tensor_type.shape[1]
    wide = half * 2
    cos, sin = (relay.expand_dims(relay.take(table, positions, 0), 1) for table in (cosine, sine))
    rotary: Any = value
    if wide != columns:
        rotary = relay.strided_slice(value, [0], [wide], axes=[3])
    if interleaved:
        pairs = relay.reshape(rotary, (batch, heads, rows, half, 2))
        halves: list[Any] = [relay.squeeze(p, [4]) for p in relay.split(pairs, 2, axis=4)]
    else:
        halves = list(relay.split(rotary, 2, axis=3))
    one, other = halves
    left = relay.subtract(relay.multiply(one, cos), relay.multiply(other, sin))
    right = relay.add(relay.multiply(one, sin), relay.multiply(other, cos))
    if interleaved:
        pairs = relay.stack([left, right], 4)
        result: Any = relay.reshape(pairs, (batch, heads, rows, wide))
    else:
        result = relay.concatenate([left, right], 3)
    if wide == columns:
        return result
    kept = relay.strided_slice(value, [wide], [columns], axes=[3])
    return relay.concatenate([result, kept], 3)


@converter("com.microsoft.GroupQueryAttention")
def group_query_attention(node: NodeView) -> Any:
    """Attention of heads that share keys and values, which those of before precede.

    An entry of the batch has so many of before as `seqlens_k` says; what fills the tensors up is
    behind its last key, and not seen.
    """
    heads, groups = int(node.attr("num_heads")), int(node.attr("kv_num_heads"))
    for name in ("smooth_softmax", "k_quant_type", "v_quant_type", "qk_output"):
        if node.attr(name, 0) not in (0, -1, "NONE"):
            raise node.unsupported(f"its attribute {name!r} is set")
    if node.has(11) or len([o for o in node.outputs if o]) not in (1, 3):
        raise node.unsupported("sinks and scores as results are not served")
    query, key, value = _grouped(node, heads, groups)
    batch, _, rows, width = query.tensor_type.shape
    before = node.type(3).shape[2] if node.has(3) else 0
    last = relay.reshape(node.input(5), (batch, 1))  # of each entry, where its last key lies
    held = relay.add(relay.subtract(last, length(query, 2, "int32")), scalar(1, "int32"))
    held = relay.maximum(held, scalar(0, "int32"))
    if node.has(3):
        held = relay.minimum(held, length(node.input(3), 2, "int32"))
    own = relay.add(held, relay.reshape(counted(rows, "int32"), (1, rows)))
    if node.attr("do_rotary", 0):
        positions = node.input(9) if node.has(9) else own
        interleaved = bool(node.attr("rotary_interleaved", 0))
        query, key = (
            rotated(part, node.input(7), node.input(8), positions, interleaved)
            for part in (query, key)
        )
    keys = before + rows
    if node.has(3):
        index = relay.reshape(counted(keys, "int32"), (1, keys))
        order = _order(index, held, length(node.input(3), 2, "int32"))
        seen = relay.less(index, relay.add(held, length(query, 2, "int32")))
        key, value = (_joined(node, at, part, order, seen) for at, part in ((3, key), (4, value)))
    terms = _hidden(node, relay.minimum(own, last), keys)
    scale = node.attr("scale", 0.0) or 1 / np.sqrt(width)
    many_keys, many_values = (
        relay.repeat(part, heads // groups, 1) if heads != groups else part for part in (key, value)
    )
    cap = node.attr("softcap", 0.0)
    result = weighted(query, many_keys, many_values, node.like(scale), terms, cap)
    return [result, key, value][: len(node.outputs)]


def _grouped(node: NodeView, heads: int, groups: int) -> list[Any]:
    """Return queries of all heads, keys and values of the groups."""
    if node.has(1):
        parts, counts = [node.input(i) for i in range(3)], (heads, groups, groups)
    else:
        width = node.type().shape[2] // (heads + 2 * groups)
        ends = [heads * width, (heads + groups) * width]
        parts, counts = list(relay.split(node.input(0), ends, axis=2)), (heads, groups, groups)
    made = []
    for part, count in zip(parts, counts, strict=True):
        batch, rows, columns = part.tensor_type.shape
        made.append(of_heads(part, (batch, rows, count, columns // count)))
    return made


def _order(index: Any, held: Any, before: Any) -> Any:
    """Return where each key lies in those of before and then the new ones: (batch, keys)."""
    moved = relay.add(index, relay.subtract(before, held))
    return relay.where(relay.less(index, held), relay.add(index, relay.zeros_like(held)), moved)


def _joined(node: NodeView, at: int, part: Any, order: Any, seen: Any) -> Any:
    """Return keys or values of before with the new ones behind them, and zeros at the end."""
    whole = relay.concatenate([node.input(at), part], 2)
    batch, keys = order.tensor_type.shape
    order = relay.minimum(order, relay.subtract(length(whole, 2, "int32"), scalar(1, "int32")))
    index = relay.reshape(order, (batch, 1, keys, 1))
    moved = relay.gather(whole, 2, relay.broadcast_to(index, whole.tensor_type.shape))
    return relay.where(relay.reshape(seen, (batch, 1, keys, 1)), moved, node.like(0))


def _hidden(node: NodeView, positions: Any, keys: Any) -> list[Any]:
    """Return what is added to the scores: no row sees keys behind it, or too far before it."""
    batch, rows = positions.tensor_type.shape
    index = relay.reshape(counted(keys, "int32"), (1, 1, keys))
    here = relay.reshape(positions, (batch, rows, 1))
    seen = relay.less_equal(index, here)
    window = int(node.attr("local_window_size", -1))
    if window > 0:
        first = relay.subtract(here, scalar(window - 1, "int32"))
        seen = relay.logical_and(seen, relay.greater_equal(index, first))
    lowest = node.like(np.finfo(node.type().dtype).min)
    terms = [relay.expand_dims(relay.where(seen, node.like(0), lowest), 1)]
    return [*terms, node.input(10)] if node.has(10) else terms
