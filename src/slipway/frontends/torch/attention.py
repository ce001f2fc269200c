"""Matrix products and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.product import product_of
from slipway.frontends.steps import run_steps
from slipway.frontends.torch.converters import NodeView, cast, converter, like, number
from slipway.relay.dims import is_open
from slipway.relay.expr import Expr
from slipway.relay.op_registry import const


@converter("mm", "bmm", "matmul", "mv", "dot")
def product(node: NodeView) -> Any:
    """Matrix products of any ranks."""
    other = {"mm": "mat2", "bmm": "mat2", "mv": "vec", "dot": "tensor"}.get(node.kind, "other")
    return node.narrow(product_of(node.input(), node.input(other), node.wide()))


@converter("_int_mm")
def integers(node: NodeView) -> Any:
    """The product of matrices of bytes in 32 bits."""
    return product_of(cast(node.input(), "int32"), cast(node.input("mat2"), "int32"))


@converter("linear")
def linear(node: NodeView) -> Any:
    """Input @ weight.T + bias."""
    x, shape = node.input("input"), node.shape("input")
    bias = node.optional("bias")
    if node.rank("weight") == 1 or (bias is not None and node.rank("bias") > 1):
        return _plain_linear(node, bias)
    flat = x if len(shape) == 2 else relay.reshape(x, (-1, shape[-1]))
    wide = node.wide("input")
    result: relay.Expr = relay.nn.dense(flat, node.input("weight"), out_dtype=wide)
    result = _biased(result, bias)
    result = result if len(shape) == 2 else relay.reshape(result, node.out.shape)
    return node.narrow(result)


def _plain_linear(node: NodeView, bias: Expr | None) -> Any:
    """A linear map of one weight vector, or whose bias is no vector: a product and a sum."""
    weight, wide = node.input("weight"), node.wide("input")
    factor = weight if node.rank("weight") == 1 else relay.transpose(weight, (1, 0))
    result = product_of(node.input("input"), factor, wide)
    if bias is not None:
        result = relay.add(result, cast(bias, result.tensor_type.dtype))
    return node.narrow(result)


def _biased(product: Expr, bias: Expr | None) -> Expr:
    if bias is None:
        return product
    made: Expr = relay.nn.bias_add(product, cast(bias, product.tensor_type.dtype), axis=-1)
    return made


@converter("addmm", "addmv", "baddbmm", "addbmm")
def add_product(node: NodeView) -> Any:
    """Beta * self + alpha * (one @ other)."""
    names = {"addmm": ("mat1", "mat2"), "addmv": ("mat", "vec")}
    first, second = names.get(node.kind, ("batch1", "batch2"))
    result = product_of(node.input(first), node.input(second), node.wide(first))
    if node.kind == "addbmm":
        result = relay.sum(result, [0])
    alpha, beta = node.arg("alpha", 1), node.arg("beta", 1)
    if alpha != 1:
        result = relay.multiply(result, like(alpha, result))
    bias = node.input()
    if beta == 0:
        return node.narrow(result)
    if beta != 1:
        bias = relay.multiply(bias, like(beta, bias))
    if bias.tensor_type.shape == result.tensor_type.shape[-1:]:
        return node.narrow(_biased(result, bias))
    return node.narrow(relay.add(result, cast(bias, result.tensor_type.dtype)))


@converter(
    "scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_attention_math",
)  # fmt: skip
def attention(node: NodeView) -> Any:
    """softmax(query @ key.T * scale + mask) @ value, over any leading axes."""
    if node.arg("dropout_p", 0.0):
        raise node.unsupported("dropout_p is set: call module.eval() before the export")
    query, key, value = node.input("query"), node.input("key"), node.input("value")
    width = query.tensor_type.shape[-1]
    heads, groups = query.tensor_type.shape[-3:-2], key.tensor_type.shape[-3:-2]
    if node.arg("enable_gqa", False) and heads != groups:
        times = heads[0] // groups[0]
        key, value = (relay.repeat(x, times, x.tensor_type.rank - 3) for x in (key, value))
    scale = node.arg("scale") or 1 / math.sqrt(width)
    dtype = query.tensor_type.dtype
    wide = "float32" if dtype == "float16" else ""
    rank = key.tensor_type.rank
    transposed = relay.transpose(key, (*range(rank - 2), rank - 1, rank - 2))
    scores = product_of(query, transposed, wide)
    scores = relay.multiply(scores, like(scale, scores))
    mask = node.optional("attn_mask")
    if node.arg("is_causal", False):
        mask = _not_later(*scores.tensor_type.shape[-2:])
    if mask is not None:
        kind = scores.tensor_type.dtype
        if mask.tensor_type.dtype == "bool":
            mask = relay.where(mask, number(0, kind), number(-np.inf, kind))
        scores = relay.add(scores, cast(mask, kind))
    result = product_of(relay.nn.softmax(scores, -1), cast(value, wide or dtype), wide)
    result = cast(result, dtype)
    return result if len(node.outputs) == 1 else [result, *[None] * (len(node.outputs) - 1)]


def _not_later(rows: int, columns: int) -> Any:
    """Return which columns each row sees: those up to its own number."""
    if is_open(rows) or is_open(columns):
        positions = relay.reshape(relay.arange(0, rows, dtype="int32"), (rows, 1))
        return relay.greater_equal(positions, relay.arange(0, columns, dtype="int32"))
    take_table(rows, columns)
    return const(np.tril(np.ones((rows, columns), bool)))


@converter("_grouped_mm", "transformers::grouped_mm_fallback")
def grouped_product(node: NodeView) -> Any:
    """Rows sorted by group, each with the matrix of its group: layers of experts.

    Few rows gather their matrices; more go through all of them, one group after another.
    """
    own = node.kind == "_grouped_mm"
    x, weight = (node.input(n) for n in (("self", "mat2") if own else ("input", "weight")))
    ends = node.optional("offs")
    if ends is None or x.tensor_type.rank != 2 or weight.tensor_type.rank != 3:
        raise node.unsupported("its groups are no rows of a matrix")
    if node.optional("bias") is not None:
        raise node.unsupported("a bias per group")
    rows, (groups, _, width) = x.tensor_type.shape[0], weight.tensor_type.shape
    ends = cast(ends, "int64")
    numbers = relay.arange(0, rows, 1, "int64") if is_open(rows) else const(np.arange(rows))
    if not is_open(rows) and rows <= groups:
        position = relay.searchsorted(ends, numbers, True, "int64")
        chosen = relay.take(weight, position, 0, mode="clip")
        found = product_of(relay.expand_dims(x, 1), chosen, node.wide("self" if own else "input"))
        there = relay.less(position, number(groups, "int64"))
        found = relay.reshape(node.narrow(found), (rows, width))
        return relay.where(relay.expand_dims(there, 1), found, like(0, found))
    starts = relay.concatenate(
        [const(np.zeros(1, np.int64)), relay.strided_slice(ends, [0], [groups - 1])], 0
    )

    def step(states: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        matrix, start, end = slices
        made = node.narrow(product_of(x, matrix, node.wide("self" if own else "input")))
        inside = relay.logical_and(relay.greater_equal(numbers, start), relay.less(numbers, end))
        return [relay.where(relay.expand_dims(inside, 1), made, states[0])], []

    empty = relay.zeros((rows, width), node.out.dtype)
    return run_steps(step, [empty], [weight, starts, ends])[0][0]
