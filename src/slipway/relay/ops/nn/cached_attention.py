"""nn.cached_attention: new positions join a cache of keys and values, and attend to all of it.

    keys[:, p + s] = key[s];  values[:, p + s] = value[s]
    out[s] = softmax(query[s] @ keys[:, :p + s + 1].T * scale) @ values[:, :p + s + 1]

for S new positions that follow the `p` which the cache holds.  The caches are written in place:
they are inputs of the model whose memory stays from run to run, so that a step copies nothing.
Keys lie in blocks of B positions, (kv_heads, T / B, D, B), so that scores of neighbouring positions
are a vector, and the keys of a block contiguous; values as (kv_heads, T, D).
Several heads of the query in a row share one head of the caches.

Caches of float16 or bfloat16 take half the memory.  What joins them is rounded, in float16 to the
largest finite number at most; what is computed with them is computed in float32.

nn.sloped_cached_attention is the same with a slope for each head of the query: the score of a
position d before its own is less by slope * d (ALiBi).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank
from slipway.relay.ops.nn.cached_kernel import (
    LARGEST_HALF,
    CachedAttentionAttrs,
    cached_attention_kernel,
)
from slipway.relay.ops.nn.rotary import need_position
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike

CACHES = ("float32", "float16", "bfloat16")  # what caches may hold


CACHED_ATTENTION = register_op(
    "nn.cached_attention", "query", "key", "value", "key_cache", "value_cache", "position",
    attrs=CachedAttentionAttrs, pattern=OpPattern.OPAQUE,
    doc="Attention of query (S, heads, D) to a cache that key and value (S, kv_heads, D) join.",
)  # fmt: skip


SLOPED_ATTENTION = register_op(
    "nn.sloped_cached_attention", "query", "key", "value", "key_cache", "value_cache", "position",
    "slopes", attrs=CachedAttentionAttrs, pattern=OpPattern.OPAQUE,
    doc="nn.cached_attention with a slope (heads,) of the scores for each head of the query.",
)  # fmt: skip


@CACHED_ATTENTION.type_relation
def _type(
    attrs: CachedAttentionAttrs,
    query: TensorType,
    key: TensorType,
    value: TensorType,
    key_cache: TensorType,
    value_cache: TensorType,
    position: TensorType,
) -> Type:
    for name, given, rank in (
        ("query", query, 3), ("key", key, 3), ("value", value, 3),
        ("key_cache", key_cache, 4), ("value_cache", value_cache, 3),
    ):  # fmt: skip
        need_rank(name, given, rank)
        if name.endswith("_cache"):
            if given.dtype not in CACHES:
                raise BadArgument(name, f"is {given}; caches hold {', '.join(CACHES)}")
        else:
            need_dtype(name, given, "float32", "the sums")
    rows, heads, size = query.shape
    if tuple(key.shape) != tuple(value.shape):
        raise BadArgument("value", f"is {value}, but key is {key}")
    if key.shape[0] != rows or key.shape[2] != size:
        raise BadArgument("key", f"is {key}: its first and last axes must be those of {query}")
    shared = key.shape[1]
    if heads % shared:
        raise BadArgument("key", f"has {shared} heads, which do not divide the query's {heads}")
    blocks, block = key_cache.shape[1], key_cache.shape[3]
    slots = blocks * block
    if tuple(key_cache.shape) != (shared, blocks, size, block):
        raise BadArgument(
            "key_cache", f"is {key_cache}: it must be ({shared}, blocks, {size}, positions)"
        )
    if tuple(value_cache.shape) != (shared, slots, size):
        raise BadArgument("value_cache", f"is {value_cache}: it must be {(shared, slots, size)}")
    if attrs.window < 0 or attrs.softcap < 0:
        raise BadArgument("window", f"{attrs.window} and softcap {attrs.softcap} are not negative")
    need_position(position)
    return query


@SLOPED_ATTENTION.type_relation
def _sloped_type(attrs: CachedAttentionAttrs, query: TensorType, *more: TensorType) -> Type:
    *others, slopes = more
    need_dtype("slopes", slopes, "float32", "the sums")
    if tuple(slopes.shape) != (query.shape[1],):
        raise BadArgument("slopes", f"is {slopes}: it must have the query's {query.shape[1]} heads")
    return CACHED_ATTENTION.infer(attrs, [query, *others])


@CACHED_ATTENTION.reference
def _reference(
    attrs: CachedAttentionAttrs,
    query: Array,
    key: Array,
    value: Array,
    key_cache: Array,
    value_cache: Array,
    position: Array,
    slopes: Array | None = None,
) -> Any:
    rows, heads, size = query.shape
    start = int(position[0])
    group = heads // key.shape[1]
    values = value_cache.copy()
    keys = key_cache.transpose(0, 2, 1, 3).reshape(key.shape[1], size, -1)  # a copy
    keys[:, :, start : start + rows] = _kept(key.transpose(1, 2, 0), keys.dtype)
    values[:, start : start + rows] = _kept(value.transpose(1, 0, 2), values.dtype)
    total = start + rows
    keys = np.repeat(keys[:, :, :total], group, 0).astype(query.dtype)
    values = np.repeat(values[:, :total], group, 0).astype(query.dtype)
    scores = query.transpose(1, 0, 2) @ keys * attrs.factor(size)
    if attrs.softcap:
        scores = attrs.softcap * np.tanh(scores / attrs.softcap)
    own = start + np.arange(rows)[:, None]
    if slopes is not None:
        scores = scores + slopes[:, None, None] * (np.arange(total) - own)
    seen = np.arange(total) <= own
    if attrs.window:
        seen &= np.arange(total) > own - attrs.window
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (weights / weights.sum(-1, keepdims=True)) @ values
    return np.asarray(mixed.transpose(1, 0, 2), query.dtype, order="C")


SLOPED_ATTENTION.reference(_reference)


def _kept(joining: Array, dtype: np.dtype[Any]) -> Any:
    """Return keys or values as a cache keeps them."""
    if dtype == np.float16:
        joining = np.clip(joining, -LARGEST_HALF, LARGEST_HALF)
    return joining.astype(dtype)


@CACHED_ATTENTION.compute
def _compute(
    attrs: CachedAttentionAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    return cached_attention_kernel(
        attrs, inputs, out_types[0], lanes=1, tile=1, sums=1, kind="serial"
    )


SLOPED_ATTENTION.compute(_compute)


@CACHED_ATTENTION.make
def cached_attention(
    query: ExprLike,
    key: ExprLike,
    value: ExprLike,
    key_cache: ExprLike,
    value_cache: ExprLike,
    position: ExprLike,
    scale: float | None = None,
    window: int = 0,
    softcap: float = 0.0,
) -> Call:
    """Causal attention to caches (kv_heads, T / B, D, B) and (kv_heads, T, D), written to."""
    attrs = CachedAttentionAttrs(None if scale is None else float(scale), window, float(softcap))
    return CACHED_ATTENTION(query, key, value, key_cache, value_cache, position, attrs=attrs)


@SLOPED_ATTENTION.make
def sloped_cached_attention(
    query: ExprLike,
    key: ExprLike,
    value: ExprLike,
    key_cache: ExprLike,
    value_cache: ExprLike,
    position: ExprLike,
    slopes: ExprLike,
    scale: float | None = None,
    window: int = 0,
    softcap: float = 0.0,
) -> Call:
    """Causal attention to caches, with a slope for each head."""
    attrs = CachedAttentionAttrs(None if scale is None else float(scale), window, float(softcap))
    return SLOPED_ATTENTION(
        query, key, value, key_cache, value_cache, position, slopes, attrs=attrs
    )


def _case(
    rows: int,
    heads: int,
    shared: int,
    size: int,
    blocks: int,
    start: int,
    sloped: bool = False,
    **how: Any,
) -> None:
    shapes = (
        (rows, heads, size), (rows, shared, size), (rows, shared, size),
        (shared, blocks, size, 16), (shared, blocks * 16, size), (1,),
    )  # fmt: skip

    biases = ((heads,),) if sloped else ()

    def arrays(rng: np.random.Generator) -> list[Any]:
        made = [rng.standard_normal(s).astype("float32") for s in shapes[:-1]]
        more = [rng.standard_normal(s).astype("float32") for s in biases]
        return [*made, np.array([start], "int32"), *more]

    (SLOPED_ATTENTION if sloped else CACHED_ATTENTION).sample_case(
        *shapes, *biases, attrs=CachedAttentionAttrs(**how),
        dtypes=(*["float32"] * 5, "int32", *["float32"] * len(biases)), make=arrays,
    )  # fmt: skip


_case(1, 4, 2, 16, 2, 21)
_case(7, 2, 2, 8, 1, 3, scale=0.3)
_case(5, 3, 1, 32, 3, 0, window=3, softcap=4.0)
_case(6, 4, 2, 16, 2, 21, sloped=True)
_case(2, 2, 1, 8, 1, 3, sloped=True, window=3, softcap=2.0)
