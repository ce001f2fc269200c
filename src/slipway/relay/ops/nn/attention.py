"""Scaled dot-product attention: nn.attention, and nn.attention_bias with a mask.

    scores = query @ key^T * scale + bias;  result = softmax(scores) @ value

for each batch entry B and head N, over S query positions and T key positions of H elements.  A
layout names the axes of a tensor in memory: "BSNH" is what a dense layer leaves behind, "BNSH" what
models transpose it to, so that a transpose is a matter of the layout.  Key and value may have fewer
heads than the query, each of them read by several of its heads in a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_float, need_rank
from slipway.relay.ops.tensor.tensors import shape_of, te, wide
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike
    from slipway.relay.expr import ExprLike
    from slipway.te.tensor import Tensor

CAUSAL = ("", "TopLeft", "BottomRight")


@node
class AttentionAttrs(Attrs):
    """How the scores are made, and how the tensors lie in memory.

    `scale` None is one over the root of the query's size.  `causal_mask` "TopLeft" lets query
    position s see the key positions up to s, "BottomRight" those up to s + T - S.  The bias
    broadcasts against the scores, whose axes are B, N, S and T.
    """

    scale: float | None = None
    causal_mask: str = ""
    query_layout: str = "BSNH"
    key_layout: str = "BSNH"
    value_layout: str = "BSNH"
    out_layout: str = "BSNH"
    bias_layout: str = "BNST"

    def layouts(self) -> tuple[str, str, str]:
        """Return the layouts of query, key and value."""
        return self.query_layout, self.key_layout, self.value_layout


def extents(shape: Sequence[int], layout: str) -> dict[str, int]:
    """Return the extent of each axis by its letter."""
    return dict(zip(layout, shape, strict=True))


def scale_of(attrs: AttentionAttrs, query: Sequence[int]) -> float:
    """Return the factor of the scores for a query of that shape."""
    size = extents(query, attrs.query_layout)["H"]
    return 1 / math.sqrt(size) if attrs.scale is None else attrs.scale


def causal_offset(attrs: AttentionAttrs, rows: int, keys: int) -> int:
    """Return how many key positions beyond its own a query position sees."""
    return keys - rows if attrs.causal_mask == "BottomRight" else 0


def _need_layout(name: str, layout: str, axes: str) -> None:
    if sorted(layout) != sorted(axes):
        raise BadArgument(name, f"is {layout!r}: it must name the axes {', '.join(axes)} once each")


def _relation(attrs: AttentionAttrs, *types: TensorType) -> Type:
    if attrs.causal_mask not in CAUSAL:
        raise BadArgument("causal_mask", f"is {attrs.causal_mask!r}: it must be one of {CAUSAL}")
    query, key, value = types[:3]
    need_float("query", query)
    for name, given in zip(("query", "key", "value"), types, strict=False):
        need_rank(name, given, 4)
        need_dtype(name, given, query.dtype, "query")
    for name in ("query_layout", "key_layout", "value_layout", "out_layout"):
        _need_layout(name, getattr(attrs, name), "BSNH")
    q, k, v = (extents(t.shape, at) for t, at in zip(types[:3], attrs.layouts(), strict=True))
    if k["B"] != q["B"] or k["H"] != q["H"]:
        raise BadArgument("key", f"is {key}: its batch and size must be those of 'query', {query}")
    if k["N"] < 1 or q["N"] % k["N"]:
        raise BadArgument("key", f"has {k['N']} heads, which do not divide the {q['N']} of 'query'")
    if any(v[axis] != k[axis] for axis in "BSN"):
        raise BadArgument(
            "value", f"is {value}: its batch, length and heads must be those of 'key'"
        )
    if k["S"] < 1:
        raise BadArgument("key", "holds no positions")
    if len(types) == 4:
        _bias_relation(attrs, types[3], query, (q["B"], q["N"], q["S"], k["S"]))
    out = {**q, "H": v["H"]}
    return TensorType(tuple(out[axis] for axis in attrs.out_layout), query.dtype)


def _bias_relation(
    attrs: AttentionAttrs, bias: TensorType, query: TensorType, scores: tuple[int, ...]
) -> None:
    _need_layout("bias_layout", attrs.bias_layout, "BNST")
    need_rank("bias", bias, 4)
    need_dtype("bias", bias, query.dtype, "query")
    whole = extents(scores, "BNST")
    wanted = tuple(whole[axis] for axis in attrs.bias_layout)
    if any(given not in (1, full) for given, full in zip(bias.shape, wanted, strict=True)):
        raise BadArgument("bias", f"is {bias}: it does not broadcast with the scores, {wanted}")


def _reference(attrs: AttentionAttrs, query: Any, key: Any, value: Any, bias: Any = None) -> Any:
    """The textbook form, in float64 where the elements are float64 and else in float32."""
    kind = wide(query.dtype.name)
    q, k, v = (
        x.transpose([layout.index(axis) for axis in "BNSH"]).astype(kind)
        for x, layout in zip((query, key, value), attrs.layouts(), strict=True)
    )
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * np.asarray(scale_of(attrs, query.shape), kind)
    if bias is not None:
        scores = scores + bias.transpose([attrs.bias_layout.index(axis) for axis in "BNST"])
    if attrs.causal_mask:
        rows, keys = scores.shape[-2:]
        seen = np.tri(rows, keys, causal_offset(attrs, rows, keys), dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result = (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(kind) @ v
    made = result.transpose(["BNSH".index(axis) for axis in attrs.out_layout])
    return np.asarray(made.astype(query.dtype), order="C")


class Operands:
    """The operands by their axes: reads of query, key, value and bias, and all extents."""

    def __init__(self, attrs: AttentionAttrs, inputs: Sequence[Any], dtype: str) -> None:
        self.attrs = attrs
        self.dtype = wide(dtype)
        self.tensors = inputs
        q, k, v = (
            extents(shape_of(x), at) for x, at in zip(inputs[:3], attrs.layouts(), strict=True)
        )
        self.batch, self.rows, self.heads, self.size = (q[axis] for axis in "BSNH")
        self.keys, self.key_heads, self.value_size = k["S"], k["N"], v["H"]
        self.key_extents = k
        self.scale = scale_of(attrs, shape_of(inputs[0]))

    def _read(
        self,
        tensor: Tensor,
        layout: str,
        b: PrimExprLike,
        s: PrimExprLike,
        n: PrimExprLike,
        h: PrimExprLike,
    ) -> Any:
        at = {"B": b, "S": s, "N": n, "H": h}
        return tensor(*(at[axis] for axis in layout)).astype(self.dtype)

    def query(self, b: PrimExprLike, n: PrimExprLike, s: PrimExprLike, h: PrimExprLike) -> Any:
        """An element of the query, times the scale."""
        element = self._read(self.tensors[0], self.attrs.query_layout, b, s, n, h)
        return element * te().const(self.scale, self.dtype)

    def head(self, n: PrimExprLike) -> Any:
        """The head of key and value that head `n` of the query reads."""
        each = self.heads // self.key_heads
        return n if each == 1 else 0 if self.key_heads == 1 else te().floordiv(n, each)

    def key(self, b: PrimExprLike, n: PrimExprLike, t: PrimExprLike, h: PrimExprLike) -> Any:
        """An element of the key that head `n` of the query reads."""
        return self.key_of_head(b, self.head(n), t, h)

    def key_of_head(
        self, b: PrimExprLike, n: PrimExprLike, t: PrimExprLike, h: PrimExprLike
    ) -> Any:
        """An element of head `n` of the key itself."""
        return self._read(self.tensors[1], self.attrs.key_layout, b, t, n, h)

    def value(self, b: PrimExprLike, n: PrimExprLike, t: PrimExprLike, h: PrimExprLike) -> Any:
        """An element of the value that head `n` of the query reads."""
        return self.value_of_head(b, self.head(n), t, h)

    def value_of_head(
        self, b: PrimExprLike, n: PrimExprLike, t: PrimExprLike, h: PrimExprLike
    ) -> Any:
        """An element of head `n` of the value itself."""
        return self._read(self.tensors[2], self.attrs.value_layout, b, t, n, h)

    def masked(self, score: PrimExpr, b: PrimExpr, n: PrimExpr, s: PrimExpr, t: PrimExpr) -> Any:
        """A score with bias and causal mask."""
        if len(self.tensors) == 4:
            bias, layout = self.tensors[3], self.attrs.bias_layout
            at = {"B": b, "N": n, "S": s, "T": t}
            one = (0 if d == 1 else at[x] for d, x in zip(shape_of(bias), layout, strict=True))
            score = score + bias(*one).astype(self.dtype)
        if self.attrs.causal_mask:
            last = s + causal_offset(self.attrs, self.rows, self.keys)
            score = te().Select(t <= last, score, te().const(-math.inf, self.dtype))
        return score


def _compute(attrs: AttentionAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """Scores, their maximum, exponentials, sums, products with the value, quotient."""
    (out,) = out_types
    x = Operands(attrs, inputs, out.dtype)
    h = te().reduce_axis((0, x.size), name="h")
    t1, t2, t3 = (te().reduce_axis((0, x.keys), name="t") for _ in range(3))
    grid = (x.batch, x.heads, x.rows)
    products = te().compute(
        (*grid, x.keys),
        lambda b, n, s, t: te().sum(x.query(b, n, s, h) * x.key(b, n, t, h), axis=[h]),
        name="T_attention_products",
    )

    scores = te().compute(
        (*grid, x.keys),
        lambda *i: x.masked(products(*i), *i),
        name="T_attention_scores",
    )
    maximum = te().compute(
        grid, lambda *i: te().max_of_numbers(scores(*i, t1), axis=[t1]), name="T_attention_max"
    )
    exponentials = te().compute(
        (*grid, x.keys),
        lambda *i: te().exp(scores(*i) - maximum(*i[:3])),
        name="T_attention_exp",
    )
    total = te().compute(
        grid, lambda *i: te().sum(exponentials(*i, t2), axis=[t2]), name="T_attention_expsum"
    )
    mixed = te().compute(
        (*grid, x.value_size),
        lambda b, n, s, e: te().sum(exponentials(b, n, s, t3) * x.value(b, n, t3, e), axis=[t3]),
        name="T_attention_values",
    )

    def quotient(*i: PrimExpr) -> Any:
        at = dict(zip(attrs.out_layout, i, strict=True))
        b, n, s, e = (at[axis] for axis in "BNSH")
        return (mixed(b, n, s, e) / total(b, n, s)).astype(out.dtype)

    return [te().compute(out.shape, quotient, name="T_attention", tag="attention_output")]


def _flops(attrs: AttentionAttrs, in_types: Sequence[TensorType], out_type: TensorType) -> float:
    """Two for each multiply-add of both products, twelve for each power."""
    query = extents(in_types[0].shape, attrs.query_layout)
    value = extents(in_types[2].shape, attrs.value_layout)
    scores = query["B"] * query["N"] * query["S"] * value["S"]
    return float(scores * (2 * query["H"] + 2 * value["H"] + 12))


def _register(name: str, *arguments: str, doc: str) -> OpDefinition:
    definition = register_op(
        name, "query", "key", "value", *arguments, attrs=AttentionAttrs,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, doc=doc,
    )  # fmt: skip
    definition.type_relation(_relation)
    definition.reference(_reference)
    definition.compute(_compute)
    definition.flops(_flops)
    return definition


ATTENTION = _register(
    "nn.attention", doc="softmax(query @ key^T * scale) @ value for each batch entry and head."
)
ATTENTION_BIAS = _register(
    "nn.attention_bias", "bias", doc="nn.attention with a bias, or mask, added to the scores."
)


@ATTENTION.make
def attention(
    query: ExprLike,
    key: ExprLike,
    value: ExprLike,
    bias: ExprLike | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    layout: str = "BSNH",
) -> Call:
    """Scaled dot-product attention; every tensor lies in `layout`, the bias is (B, N, S, T)."""
    attrs = AttentionAttrs(
        None if scale is None else float(scale), causal_mask or "", layout, layout, layout, layout
    )
    if bias is None:
        return ATTENTION(query, key, value, attrs=attrs)
    return ATTENTION_BIAS(query, key, value, bias, attrs=attrs)


@ATTENTION_BIAS.make
def attention_bias(
    query: ExprLike,
    key: ExprLike,
    value: ExprLike,
    bias: ExprLike,
    scale: float | None = None,
    causal_mask: str | None = None,
    layout: str = "BSNH",
) -> Call:
    """`attention` with a bias that broadcasts against the scores (B, N, S, T)."""
    made: Call = attention(query, key, value, bias, scale, causal_mask, layout)
    return made


def attention_call(attrs: AttentionAttrs, *inputs: Any) -> Call:
    """Return the attention of query, key, value, and perhaps a bias."""
    definition: OpDefinition = ATTENTION if len(inputs) == 3 else ATTENTION_BIAS
    return definition(*inputs, attrs=attrs)


ATTENTION.sample_case((1, 5, 2, 4), (1, 7, 2, 4), (1, 7, 2, 6))
ATTENTION.sample_case(
    (2, 4, 19, 8), (2, 2, 19, 8), (2, 19, 2, 9),
    attrs=AttentionAttrs(0.3, "TopLeft", "BNSH", "BNSH", "BSNH", "BNSH"),
)  # fmt: skip
ATTENTION.sample_case(
    (1, 17, 3, 8), (1, 3, 8, 21), (1, 21, 3, 16),
    attrs=AttentionAttrs(None, "BottomRight", "BSNH", "BNHS", "BSNH", "BNSH"),
)  # fmt: skip
ATTENTION_BIAS.sample_case((2, 18, 3, 8), (2, 5, 3, 8), (2, 5, 3, 8), (2, 1, 18, 5))
ATTENTION_BIAS.sample_case(
    (1, 20, 4, 5), (1, 33, 1, 5), (1, 33, 1, 12), (33, 1, 1, 1),
    attrs=AttentionAttrs(1.0, "", "BSNH", "BSNH", "BSNH", "BSNH", "TSNB"),
)  # fmt: skip
