"""Layers of transformers that onnxruntime's optimiser fuses: its embedding and its attention.

They are expanded to the operators that they stand for, which are fused here as the target
wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.op_registry import const
from slipway.relay.ops.build import counted, length

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


@converter("com.microsoft.EmbedLayerNormalization")
def embed_layer_norm(node: NodeView) -> Any:
    """layer_norm(word + position + segment embeddings), and how many words each row has."""
    if node.rank(0) != 2:
        raise node.unsupported(f"its words have {node.rank(0)} axes; 2 are served")
    rows, length = node.type().shape
    total = relay.take(node.input(2), node.input(0), 0)
    if node.has(8):
        position = relay.take(node.input(3), node.input(8), 0)
    else:
        position = relay.strided_slice(node.input(3), [0], [length], axes=[0])
    total = relay.add(total, position)
    if node.has(1) and node.has(4):
        total = relay.add(total, relay.take(node.input(4), node.input(1), 0))
    epsilon = node.attr("epsilon", 1e-12)
    result = relay.nn.layer_norm(total, node.input(5), node.input(6), -1, epsilon)
    lengths: Any
    if node.has(7):
        lengths = relay.sum(relay.cast(node.input(7), "int32"), 1)
    else:
        lengths = const(np.zeros(rows, np.int32))
    return [result, lengths, total][: len(node.outputs)]


@converter("com.microsoft.Attention")
def attention(node: NodeView) -> Any:
    """Attention of all heads, with the projections before it; keys and values of before go first.

    The mask is (batch,) lengths, (batch, keys) or (batch, rows, keys); where it is 0,
    `mask_filter_value` is added to the score.
    """
    x = node.input(0)
    if node.rank(0) != 3:
        raise node.unsupported(f"its input has {node.rank(0)} axes; 3 are served")
    if node.has(6):
        raise node.unsupported("shared buffers are not served")
    batch, rows, width = node.type().shape
    flat = relay.nn.matmul(relay.reshape(x, (batch * rows, width)), node.input(1))
    if node.has(2):
        flat = relay.add(flat, node.input(2))
    return attention_of(node, relay.reshape(flat, (batch, rows, flat.tensor_type.shape[1])))


def attention_of(node: NodeView, flat: Expr) -> Any:
    """Return the attention of (batch, rows, queries and keys and values); the mask is input 3."""
    heads = node.attr("num_heads")
    if node.attr("do_rotary", 0) or node.attr("past_present_share_buffer", 0):
        raise node.unsupported("rotary embeddings and shared buffers are not served")
    batch, rows, full = flat.tensor_type.shape
    sizes = node.attr("qkv_hidden_sizes") or (full // 3,) * 3
    if sum(sizes) != full or any(size % heads for size in sizes):
        raise node.unsupported(f"{heads} heads do not divide its weights of {full} columns")
    ends = np.cumsum(sizes)
    query, key, value = (
        of_heads(relay.strided_slice(flat, [int(end - size)], [int(end)], axes=[2]),
                  (batch, rows, heads, size // heads))
        for size, end in zip(sizes, ends, strict=True)
    )  # fmt: skip
    if node.has(4):
        past = node.input(4)
        key, value = (
            relay.concatenate([relay.reshape(relay.take(past, const(np.int64(i)), 0, mode="fast"),
                                             past.tensor_type.shape[1:]), part], 2)
            for i, part in enumerate((key, value))
        )  # fmt: skip
    scale = node.attr("scale", 0.0) or 1 / np.sqrt(sizes[0] // heads)
    terms = added_for(node, node.optional(3), query, key)
    if node.has(5):
        terms.append(node.input(5))
    result = weighted(query, key, value, node.like(scale), terms)
    if len(node.outputs) == 1 or not node.outputs[1]:
        return result
    if sizes[1] != sizes[2]:
        raise node.unsupported("keys and values of different widths make no one tensor of both")
    return [result, relay.stack([key, value], 0)]


def of_heads(flat: Expr, shape: tuple[int, int, int, int]) -> Any:
    """Return (rows, columns) as (batch, heads, rows, columns of one)."""
    return relay.transpose(relay.reshape(flat, shape), (0, 2, 1, 3))


def _product(a: Expr, b: Expr) -> Any:
    """Matrix products of (batch, heads, m, k) and (batch, heads, k, n)."""
    batch, heads, m, k = a.tensor_type.shape
    n = b.tensor_type.shape[3]
    flat = relay.nn.batch_matmul(
        relay.reshape(a, (batch * heads, m, k)), relay.reshape(b, (batch * heads, k, n)),
        transpose_b=False,
    )  # fmt: skip
    return relay.reshape(flat, (batch, heads, m, n))


def weighted(
    query: Any, key: Any, value: Any, scale: Any, terms: list[Any], cap: float = 0.0
) -> Any:
    """Return softmax(scale * query key + terms) value, (batch, rows, columns of all heads).

    With `cap`, the scores are kept within it by a tanh.
    """
    batch, heads, rows, _ = query.tensor_type.shape
    scores = _product(query, relay.transpose(key, (0, 1, 3, 2)))
    scores = relay.multiply(scores, scale)
    if cap:
        most = const(cap, scores.tensor_type.dtype)
        scores = relay.multiply(relay.tanh(relay.divide(scores, most)), most)
    for term in terms:
        scores = relay.add(scores, term)
    result = _product(relay.nn.softmax(scores, -1), value)
    columns = heads * value.tensor_type.shape[3]
    return relay.reshape(relay.transpose(result, (0, 2, 1, 3)), (batch, rows, columns))


def added_for(node: NodeView, mask: Any, query: Any, key: Any) -> list[Any]:
    """Return what a mask adds to the scores, broadcast over the heads."""
    (batch, _, rows, _), keys = query.tensor_type.shape, key.tensor_type.shape[2]
    filtered = node.like(node.attr("mask_filter_value", -10000.0))
    terms: list[Any] = []
    if mask is not None:
        shape = mask.tensor_type.shape
        if shape == (batch,):
            ends = relay.reshape(relay.cast(mask, "int32"), (batch, 1))
            seen = relay.less(counted(keys, "int32"), ends)
        elif shape in ((batch, keys), (batch, rows, keys)):
            seen = relay.not_equal(mask, const(0, mask.tensor_type.dtype))
        else:
            raise node.unsupported(
                f"its mask has the shape {shape}; ({batch},), ({batch}, {keys}) and "
                f"({batch}, {rows}, {keys}) are served"
            )
        between = (1, 1) if seen.tensor_type.rank == 2 else (1,)
        seen = relay.reshape(seen, (batch, *between, *seen.tensor_type.shape[1:]))
        terms.append(relay.where(seen, node.like(0), filtered))
    if node.attr("unidirectional", 0):
        own = relay.reshape(counted(rows, "int32"), (rows, 1))
        before = relay.subtract(length(key, 2, "int32"), length(query, 2, "int32"))
        own = relay.add(own, before)
        seen = relay.less_equal(relay.reshape(counted(keys, "int32"), (1, keys)), own)
        lowest = node.like(np.finfo(node.type().dtype).min)
        terms.append(relay.where(seen, node.like(0), lowest))
    return terms
