"""torch's fused operators of transformers, as the operators that they are made of.

A trace of an encoder in evaluation mode has them in place of its layers, with packed weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def fast_paths(torch: Any) -> dict[Any, Callable[..., Any]]:
    """Return what each fused operator is made of, as decompositions of a program."""
    aten = torch.ops.aten
    linear = torch.nn.functional.linear

    def attention(
        query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any,
        qkv_bias: Any, proj_weight: Any, proj_bias: Any, mask: Any = None,
        need_weights: bool = True, average_attn_weights: bool = True,
        mask_type: int | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        def heads(x: Any, part: int) -> Any:
            rows = slice(part * embed_dim, (part + 1) * embed_dim)
            made = linear(x, qkv_weight[rows], qkv_bias[rows])
            return made.reshape(*x.shape[:2], num_head, -1).transpose(1, 2)

        q, k, v = heads(query, 0), heads(key, 1), heads(value, 2)
        hidden = None if mask is None else _over_heads(mask, mask_type)
        weights = None
        if need_weights:
            scores = q @ k.transpose(-1, -2) * (embed_dim // num_head) ** -0.5
            if hidden is not None:
                scores = scores.masked_fill(hidden, float("-inf"))
            weights = torch.softmax(scores, -1)
            mixed = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            allowed = None if hidden is None else ~hidden
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, allowed)
        joined = mixed.transpose(1, 2).reshape(*query.shape[:2], embed_dim)
        none = query.new_empty(0) if weights is None else weights
        return linear(joined, proj_weight, proj_bias), none

    def layer(
        src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any,
        proj_weight: Any, proj_bias: Any, use_gelu: bool, norm_first: bool, eps: float,
        norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any, norm_bias_2: Any,
        ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any,
        mask: Any = None, mask_type: int | None = None,
    ) -> Any:  # fmt: skip
        def mixed(x: Any) -> Any:
            return attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight,
                             proj_bias, mask, False, True, mask_type)[0]  # fmt: skip

        def forward(x: Any) -> Any:
            inner = linear(x, ffn_weight_1, ffn_bias_1)
            inner = torch.nn.functional.gelu(inner) if use_gelu else torch.relu(inner)
            return linear(inner, ffn_weight_2, ffn_bias_2)

        def first(x: Any) -> Any:
            return torch.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

        def second(x: Any) -> Any:
            return torch.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

        if norm_first:
            x = src + mixed(first(src))
            return x + forward(second(x))
        x = first(src + mixed(src))
        return second(x + forward(x))

    return {
        aten._native_multi_head_attention.default: attention,
        aten._transformer_encoder_layer_fwd.default: layer,
    }


def _over_heads(mask: Any, kind: int | None) -> Any:
    """Return where attention is hidden, over (batch, heads, queries, keys)."""
    hidden = mask if mask.dtype.is_floating_point is False else mask != 0
    if kind == 1:  # of keys, by batch
        return hidden[:, None, None, :]
    return hidden if hidden.ndim == 4 else hidden[None, None]
