"""The network of a decoder as one relay function, for a prompt and for a step alike.

    logits = network(tokens (n,), position (1,), key_cache_0, value_cache_0, ...)

with 1 to `rows` tokens that follow the `position` ones which the caches hold.  Its attention writes
their keys and values into the caches, which are inputs whose memory stays from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from slipway import relay
from slipway.errors import ModelError
from slipway.ir.module import IRModule
from slipway.llm.config import LayerConfig, ModelConfig, Rope
from slipway.llm.mixture import MixtureLayers
from slipway.llm.weights import Matrix, Weights, joined, quantised
from slipway.relay.expr import Expr, Function, Var

BLOCK = 16  # positions whose keys lie together: the caches hold whole blocks


def cache_slots(context: int) -> int:
    """Return the positions of caches that hold `context` tokens."""
    return -(-context // BLOCK) * BLOCK


def network(
    config: ModelConfig,
    weights: Weights,
    context: int,
    rows: int,
    quantise: str = "",
    all_logits: bool = False,
    caches: str = "float32",
    hidden: bool = False,
) -> IRModule:
    """Return the module of a model for `context` positions and at most `rows` tokens at once.

    `quantise` is the format that weights of floats get, "" for none; `caches` is the type that the
    caches hold.  The logits are those of the last token, or of all; where `hidden`, the rows of all
    tokens that logits are made of come in their place.
    """
    return _Decoder(config, weights, context, rows, quantise, caches).module(all_logits, hidden)


def rope_tables(rope: Rope, positions: int, context: int = 0) -> tuple[Any, Any]:
    """Return cosines and sines (positions, pairs) of the angles in a context of so many tokens."""
    pairs = rope.size // 2
    frequencies = rope.theta ** -(np.arange(pairs, dtype=np.float64) / pairs)
    factors = rope.long_factors if 0 < rope.original < context else rope.factors
    if factors:
        frequencies = frequencies / np.asarray(factors)
    if rope.wavelengths is not None:
        low, high, original, factor = rope.wavelengths
        rotations = original * frequencies / (2 * math.pi)  # over the original context
        smooth = np.clip((rotations - low) / (high - low), 0, 1)
        frequencies = (1 - smooth) * frequencies / factor + smooth * frequencies
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequencies
    beta, every = rope.growth
    grown = 1 + beta * np.log1p(np.arange(positions) // every)[:, None]
    cosines, sines = (rope.amplitude * grown * f(angles) for f in (np.cos, np.sin))
    return cosines.astype(np.float32), sines.astype(np.float32)


class _Decoder(MixtureLayers):
    """Builds the function of a model, layer by layer."""

    def __init__(
        self, config: ModelConfig, weights: Weights, context: int, rows: int, quantise: str,
        caches: str,
    ) -> None:  # fmt: skip
        self.config, self.quantise, self.kept = config, quantise, caches
        self.weights = weights.of_whole_model().renamed(config.names)
        self.slots, self.context = cache_slots(context), context
        self.count = relay.Dim("n", 1, rows) if rows > 1 else 1
        self.position = relay.var("position", shape=(1,), dtype="int32")
        self.tables: dict[Rope, tuple[Expr, Expr]] = {}

    def module(self, all_logits: bool, hidden: bool) -> IRModule:
        """Return the module, with the logits of all tokens or of the last, or the rows before."""
        config = self.config
        tokens = relay.var("tokens", shape=(self.count,), dtype="int32")
        embedding = self.matrix("model.embed_tokens.weight", config.vocabulary, config.hidden)
        x = self.embedded(embedding, tokens)
        if "model.embed_norm.weight" in self.weights:
            x = self.norm(x, "model.embed_norm", config.hidden)
        if config.learned_positions:
            x = relay.add(x, self.learned_positions())
        caches: list[Var] = []
        for number, layer in enumerate(config.layers):
            own = self.caches(number, layer)
            caches += own
            x = self.layer(f"model.layers.{number}.", layer, x, own)
        if not (all_logits or hidden or isinstance(self.count, int)):
            x = relay.take(x, relay.const(np.array([-1], np.int32)), axis=0, mode="fast")
        x = self.norm(x, "model.norm", config.hidden)
        if hidden:
            self.weights.check_all_read(config.family)
            return IRModule.from_expr(Function((tokens, self.position, *caches), x))
        head = embedding
        if not (config.tied or "lm_head.weight" not in self.weights):
            head = self.matrix("lm_head.weight", config.vocabulary, config.hidden)
        logits = self.scaled(self.product(x, head, "lm_head.bias"), config.logit_scale)
        if config.logit_softcap:
            cap = relay.const(config.logit_softcap)
            logits = cap * relay.tanh(logits / cap)
        self.weights.check_all_read(config.family)
        return IRModule.from_expr(Function((tokens, self.position, *caches), logits))

    def caches(self, number: int, layer: LayerConfig) -> list[Var]:
        """Return the inputs in which a layer keeps what the tokens before have left."""
        config = self.config
        if layer.is_conv:
            shape: tuple[int, ...] = (config.taps - 1, config.hidden)
            return [relay.var(f"conv_state_{number}", shape=shape)]
        blocks = self.slots // BLOCK
        keys = (config.kv_heads, blocks, config.head_size, BLOCK)
        values = (config.kv_heads, self.slots, config.head_size)
        return [
            relay.var(f"{name}_cache_{number}", shape=shape, dtype=self.kept)
            for name, shape in (("key", keys), ("value", values))
        ]

    def matrix(self, name: str, rows: int, columns: int) -> Matrix:
        """Return a weight, in blocks where the network's are to be."""
        if self.config.transposed and name.startswith("model.layers."):
            found = self.weights.matrix(name, columns, rows)
            return quantised(Matrix(np.asarray(found.data.T, order="C")), self.quantise)
        return quantised(self.weights.matrix(name, rows, columns), self.quantise)

    def learned_positions(self) -> Any:
        """Return the rows of the table of positions for this run's tokens."""
        offset = self.config.position_offset
        table = self.weights.matrix("model.embed_positions.weight", self.config.context + offset,
                                    self.config.hidden)  # fmt: skip
        positions = relay.add(self.position, relay.arange(0, self.count, 1, "int32"))
        positions = relay.add(positions, relay.const(offset)) if offset else positions
        return relay.take(relay.const(table.data), positions, axis=0)

    def embedded(self, matrix: Matrix, tokens: Expr) -> Any:
        """Return the rows of the embedding for tokens."""
        if matrix.format:
            x = relay.nn.block_take(relay.const(matrix.data), tokens, matrix.format)
        else:
            x = relay.take(relay.const(matrix.data), tokens, axis=0)
        return self.scaled(x, self.config.embedding_scale)

    def scaled(self, x: Expr, scale: float) -> Any:
        """Return `x` times a number."""
        return x if scale == 1.0 else relay.multiply(x, relay.const(np.float32(scale)))

    def product(self, x: Expr, matrix: Matrix, bias: str = "") -> Any:
        """Multiply by a matrix, with the bias of that name where the model has it."""
        weight = relay.const(matrix.data)
        if matrix.format:
            made = relay.nn.block_dense(x, weight, matrix.format)
        else:
            made = relay.nn.dense(x, weight)
        if bias and bias in self.weights:
            made = made + relay.const(self.weights.vector(bias, matrix.shape[0]))
        return made

    def products(self, x: Expr, prefix: str, names: list[tuple[str, int]]) -> list[Any]:
        """Multiply by several matrices of the data's columns, as one product where that works."""
        columns = self.config.hidden
        matrices = [self.matrix(f"{prefix}{n}.weight", rows, columns) for n, rows in names]
        whole = joined(matrices)
        if whole is None:
            return [
                self.product(x, m, f"{prefix}{n}.bias")
                for (n, _), m in zip(names, matrices, strict=True)
            ]
        made = self.product(x, whole)
        parts = []
        for part, (name, rows) in zip(_split(made, [r for _, r in names]), names, strict=True):
            biased = part
            if f"{prefix}{name}.bias" in self.weights:
                biased = part + relay.const(self.weights.vector(f"{prefix}{name}.bias", rows))
            parts.append(biased)
        return parts

    def norm(self, x: Expr, name: str, size: int) -> Any:
        """X / root of the mean of squares, times the weight; less its mean before where centred."""
        config, weights = self.config, self.weights
        scale: Any = np.float32(1)
        if not config.plain_norms:
            scale = weights.vector(f"{name}.weight", size) + np.float32(config.norm_offset)
        if config.centred:
            x = relay.subtract(x, relay.mean(x, axis=-1, keepdims=True))
        mean = relay.mean(relay.multiply(x, x), axis=-1, keepdims=True)
        made: Any = (
            x * relay.rsqrt(mean + relay.const(np.float32(config.epsilon))) * relay.const(scale)
        )
        if f"{name}.bias" in weights:
            made = made + relay.const(weights.vector(f"{name}.bias", size))
        return made

    def layer(self, prefix: str, layer: LayerConfig, x: Expr, caches: list[Var]) -> Any:
        """Return what a layer makes of `x`."""
        config, hidden = self.config, self.config.hidden
        before = x if config.norms_after else self.norm(x, prefix + "input_layernorm", hidden)
        if layer.is_conv:
            mixed = self.convolution(prefix + "conv.", before, *caches)
        else:
            mixed = self.attention(prefix + "self_attn.", layer, before, *caches)
        norm_after = prefix + "post_attention_layernorm"
        if config.parallel:
            if f"{norm_after}.weight" in self.weights:  # both read x, each through its own norm
                before = self.norm(x, norm_after, hidden)
            return self.added(x, mixed + self.second(prefix + "mlp.", layer, before))
        if config.sandwich or config.norms_after:
            x = self.added(x, self.norm(mixed, norm_after, hidden))
            before = x
            if config.sandwich:
                before = self.norm(x, prefix + "pre_feedforward_layernorm", hidden)
            made = self.second(prefix + "mlp.", layer, before)
            return self.added(x, self.norm(made, prefix + "post_feedforward_layernorm", hidden))
        x = self.added(x, mixed)
        before = self.norm(x, norm_after, hidden)
        return self.added(x, self.second(prefix + "mlp.", layer, before))

    def second(self, prefix: str, layer: LayerConfig, x: Expr) -> Any:
        """Return the second part of a layer, behind attention."""
        return self.mixture(prefix, x) if layer.is_sparse else self.feed_forward(prefix, x)

    def added(self, x: Expr, more: Expr) -> Any:
        """Return the sum of a layer's input and what a part of it made."""
        return relay.add(x, self.scaled(more, self.config.residual_scale))

    def convolution(self, prefix: str, x: Expr, state: Var) -> Any:
        """Return a gated short convolution along the tokens."""
        hidden, taps = self.config.hidden, self.config.taps
        (whole,) = self.products(x, prefix, [("in_proj", 3 * hidden)])
        before, after, inner = _split(whole, [hidden] * 3)
        found = self.weights.read(f"{prefix}conv.weight")
        weight = np.asarray(getattr(found, "data", found), np.float32)
        if weight.size != hidden * taps:
            raise ModelError(
                f"the weight '{prefix}conv.weight' has the shape {weight.shape}, not "
                f"{(hidden, taps)}"
            )
        weight = weight.reshape(hidden, taps)
        mixed = relay.nn.cached_conv1d(before * inner, relay.const(weight), state, self.position)
        if f"{prefix}conv.bias" in self.weights:
            mixed = mixed + relay.const(self.weights.vector(f"{prefix}conv.bias", hidden))
        out = self.matrix(f"{prefix}out_proj.weight", hidden, hidden)
        return self.product(after * mixed, out, f"{prefix}out_proj.bias")

    def attention(self, prefix: str, layer: LayerConfig, x: Expr, keys: Var, values: Var) -> Any:
        """Return the attention of tokens to themselves and those that the caches hold."""
        config = self.config
        size, count = config.head_size, config.heads
        names = [("q_proj", count * size), ("k_proj", config.kv_heads * size),
                 ("v_proj", config.kv_heads * size)]  # fmt: skip
        if f"{prefix}qkv_proj.weight" in self.weights:
            (whole,) = self.products(x, prefix, [("qkv_proj", sum(rows for _, rows in names))])
            query, key, value = self.of_heads(whole, [rows for _, rows in names])
        else:
            query, key, value = self.products(x, prefix, names)
        normed = f"{prefix}q_norm.weight" in self.weights and not config.head_norms
        if normed and config.joint_norms:
            query = self.norm(query, f"{prefix}q_norm", count * size)
            key = self.norm(key, f"{prefix}k_norm", config.kv_heads * size)
        if config.clip:
            query, key, value = (
                relay.clip(t, -config.clip, config.clip) for t in (query, key, value)
            )
        query, key, value = (
            relay.reshape(t, (self.count, number, size))
            for t, number in ((query, count), (key, config.kv_heads), (value, config.kv_heads))
        )
        if config.head_norms:
            query, key = (
                self.norm_of_heads(t, prefix + name, number)
                for t, name, number in zip(
                    (query, key), config.head_norms, (count, config.kv_heads), strict=True
                )
            )
        if config.norms_behind_rope:
            query, key = self.both_rotated(query, key, layer.rope)
        if normed and not config.joint_norms:
            query = self.norm(query, f"{prefix}q_norm", size)
            key = self.norm(key, f"{prefix}k_norm", size)
        if not config.norms_behind_rope:
            query, key = self.both_rotated(query, key, layer.rope)
        scale = config.attention_scale
        if layer.score_scale != 1:
            scale = layer.score_scale * (size**-0.5 if scale is None else scale)
        given = (query, key, value, keys, values, self.position)
        how = (scale, layer.window, config.attention_softcap)
        if config.slopes:
            slopes = relay.const(np.array(config.slopes, np.float32))
            mixed = relay.nn.sloped_cached_attention(*given, slopes, *how)
        else:
            mixed = relay.nn.cached_attention(*given, *how)
        mixed = relay.reshape(mixed, (self.count, count * size))
        out = self.matrix(f"{prefix}o_proj.weight", config.hidden, count * size)
        return self.product(mixed, out, f"{prefix}o_proj.bias")

    def of_heads(self, whole: Expr, rows: list[int]) -> list[Any]:
        """Return query, key and value of one product."""
        config = self.config
        if config.joint_parts:
            parts = config.joint_parts
            apart = relay.reshape(whole, (self.count, parts, 3, rows[0] // parts))
            made = relay.split(apart, 3, axis=2)
            query, value, key = (relay.reshape(m, (self.count, rows[0])) for m in made)
            return [query, key, value]
        if not config.heads_apart:
            return _split(whole, rows)
        group = config.heads // config.kv_heads
        shape = (self.count, config.kv_heads, group + 2, config.head_size)
        apart = relay.reshape(whole, shape)
        return list(relay.split(apart, [group, group + 1], axis=2))

    def norm_of_heads(self, x: Expr, name: str, heads: int) -> Any:
        """Normalise the elements of each head, and scale them by its own weights."""
        size = self.config.head_size
        if f"{name}.weight" in self.weights:
            weights = self.weights.matrix(f"{name}.weight", heads, size).data
        else:
            each = (self.weights.vector(f"{name}.{i}.weight", size) for i in range(heads))
            weights = np.stack(list(each))
        if self.config.centred:
            x = relay.subtract(x, relay.mean(x, axis=-1, keepdims=True))
        mean = relay.mean(relay.multiply(x, x), axis=-1, keepdims=True)
        root = relay.rsqrt(mean + relay.const(np.float32(self.config.epsilon)))
        return relay.multiply(relay.multiply(x, root), relay.const(weights))

    def both_rotated(self, query: Expr, key: Expr, rope: Rope) -> list[Any]:
        """Turn queries, which may grow with their positions, and keys."""
        plain = replace(rope, growth=Rope().growth)
        return [self.rotated(query, rope), self.rotated(key, plain)]

    def rotated(self, x: Expr, rope: Rope) -> Any:
        """Return heads rotated by the angles of their positions."""
        if not rope.size:
            return x
        if rope not in self.tables:
            cosine, sine = rope_tables(rope, self.slots, self.context)
            self.tables[rope] = relay.const(cosine), relay.const(sine)
        return relay.nn.rotary_embedding(x, *self.tables[rope], self.position, rope.interleaved)

    def feed_forward(self, prefix: str, x: Expr, size: int = 0) -> Any:
        """Return the products of a feed-forward network with `size` elements inside."""
        config = self.config
        rows = size or config.feed_forward
        down = self.matrix(f"{prefix}down_proj.weight", config.hidden, rows)
        if not config.gated:
            up = self.matrix(f"{prefix}up_proj.weight", rows, config.hidden)
            made = self.activated(prefix, self.product(x, up, f"{prefix}up_proj.bias"))
            return self.product(made, down, f"{prefix}down_proj.bias")
        if f"{prefix}gate_up_proj.weight" in self.weights:
            (whole,) = self.products(x, prefix, [("gate_up_proj", 2 * rows)])
            gate, up = _split(whole, [rows, rows])
        else:
            gate, up = self.products(x, prefix, [("gate_proj", rows), ("up_proj", rows)])
        activated = self.activated(prefix, gate) * up
        return self.product(activated, down, f"{prefix}down_proj.bias")

    def activated(self, prefix: str, x: Expr) -> Any:
        """Return the activation of `x`, which may have weights in each layer."""
        if self.config.activation != "xielu":
            return _ACTIVATIONS[self.config.activation](x)
        positive, negative, linear, below = (
            float(self.weights.vector(f"{prefix}act_fn.{name}", 1)[0])
            for name in ("alpha_p", "alpha_n", "beta", "eps")
        )
        rising = relay.const(np.float32(np.logaddexp(0, positive)))
        falling = relay.const(np.float32(linear + np.logaddexp(0, negative)))
        bounded = relay.minimum(x, relay.const(np.float32(below)))
        curved = (relay.exp(bounded) - relay.const(np.float32(1)) - x) * falling
        chosen = relay.where(relay.greater(x, relay.const(np.float32(0))), rising * x * x, curved)
        return chosen + relay.const(np.float32(linear)) * x


def _split(whole: Expr, rows: list[int]) -> list[Any]:
    """Return the columns of `whole`, so many for each part."""
    if len(rows) == 1:
        return [whole]
    ends = [int(end) for end in np.cumsum(rows)[:-1]]
    return list(relay.split(whole, ends, axis=1))


def _gelu_tanh(x: Expr) -> Any:
    inner = relay.const(np.float32(math.sqrt(2 / math.pi))) * (
        x + relay.const(np.float32(0.044715)) * x * x * x
    )
    half = relay.const(np.float32(0.5))
    return half * x * (relay.const(np.float32(1)) + relay.tanh(inner))


def _gelu(x: Expr) -> Any:
    half, one = relay.const(np.float32(0.5)), relay.const(np.float32(1))
    return half * x * (one + relay.erf(x * relay.const(np.float32(math.sqrt(0.5)))))


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "silu": lambda x: x * relay.sigmoid(x),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "relu": relay.nn.relu,
    "relu2": lambda x: relay.nn.relu(x) * relay.nn.relu(x),
}
