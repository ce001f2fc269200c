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
    x, heads = node.input(0), node.attr("num_heads")
    if node.rank(0) != 3:
        raise node.unsupported(f"its input has {node.rank(0)} axes; 3 are served")
    if node.attr("do_rotary", 0) or node.attr("past_present_share_buffer", 0) or node.has(6):
        raise node.unsupported("rotary embeddings and shared buffers are not served")
    batch, rows, width = node.type().shape
    full = node.type(1).shape[1]
    sizes = node.attr("qkv_hidden_sizes") or (full // 3,) * 3
    if sum(sizes) != full or any(size % heads for size in sizes):
        raise node.unsupported(f"{heads} heads do not divide its weights of {full} columns")
    flat = relay.nn.matmul(relay.reshape(x, (batch * rows, width)), node.input(1))
    if node.has(2):
        flat = relay.add(flat, node.input(2))
    ends = np.cumsum(sizes)
    query, key, value = (
        _of_heads(relay.strided_slice(flat, [int(end - size)], [int(end)], axes=[1]),
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
    keys = key.tensor_type.shape[2]
    scale = node.attr("scale", 0.0) or 1 / np.sqrt(sizes[0] // heads)
    scores = _product(query, relay.transpose(key, (0, 1, 3, 2)))
    scores = relay.multiply(scores, node.like(scale))
    for term in _masks(node, batch, rows, keys):
        scores = relay.add(scores, term)
    result = _product(relay.nn.softmax(scores, -1), value)
    result = relay.reshape(relay.transpose(result, (0, 2, 1, 3)), (batch, rows, sizes[2]))
    if len(node.outputs) == 1 or not node.outputs[1]:
        return result
    if sizes[1] != sizes[2]:
        raise node.unsupported("keys and values of different widths make no one tensor of both")
    return [result, relay.stack([key, value], 0)]


def _of_heads(flat: Expr, shape: tuple[int, int, int, int]) -> Any:
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


def _masks(node: NodeView, batch: int, rows: int, keys: int) -> list[Any]:
    """Return what is added to the scores, each broadcast over the heads."""
    filtered = node.like(node.attr("mask_filter_value", -10000.0))
    terms: list[Any] = []
    if node.has(3):
        mask = node.input(3)
        shape = mask.tensor_type.shape
        if shape == (batch,):
            ends = relay.reshape(relay.cast(mask, "int32"), (batch, 1))
            seen = relay.less(const(np.arange(keys, dtype=np.int32)), ends)
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
        later = np.triu(np.ones((rows, keys), bool), 1 + keys - rows)
        lowest = np.finfo(node.type().dtype).min
        terms.append(const(np.where(later, lowest, 0).astype(node.type().dtype)))
    if node.has(5):
        terms.append(node.input(5))
    return terms
