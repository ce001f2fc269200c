"""A decoder as its papers write it: NumPy in float64, all positions at once, without caches."""

import numpy as np

from slipway.llm.network import rope_tables

ACTIVATIONS = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def random_weights(config, rng, fused=False, biased=False, normed=False):
    """Return a dictionary of random weights by transformers' names."""
    made = {}

    def put(name, *shape, around=0.0):
        spread = 0.2 if len(shape) == 1 else 1.5 / np.sqrt(shape[-1])
        made[name] = (rng.standard_normal(shape) * spread + around).astype(np.float32)

    hidden, size, ff = config.hidden, config.head_size, config.feed_forward
    one = 1.0 - config.norm_offset
    put("model.embed_tokens.weight", config.vocabulary, hidden)
    put("model.norm.weight", hidden, around=one)
    if not config.tied:
        put("lm_head.weight", config.vocabulary, hidden)
    for i in range(len(config.layers)):
        at = f"model.layers.{i}."
        norms = ["input_layernorm", "post_attention_layernorm"]
        if config.sandwich:
            norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        if config.parallel:
            norms = ["input_layernorm"]
        if config.norms_after:
            norms = ["post_attention_layernorm", "post_feedforward_layernorm"]
        for norm in norms:
            put(f"{at}{norm}.weight", hidden, around=one)
            if config.centred:
                put(f"{at}{norm}.bias", hidden)
        rows = {"q": config.heads * size, "k": config.kv_heads * size, "v": config.kv_heads * size}
        if fused:
            put(f"{at}self_attn.qkv_proj.weight", sum(rows.values()), hidden)
            put(f"{at}mlp.gate_up_proj.weight", 2 * ff, hidden)
        else:
            for key, count in rows.items():
                put(f"{at}self_attn.{key}_proj.weight", count, hidden)
                if biased:
                    put(f"{at}self_attn.{key}_proj.bias", count)
            if config.layers[i].is_sparse:
                put(f"{at}mlp.gate.weight", config.experts.count, hidden)
                for e in range(config.experts.count):
                    own = config.experts.feed_forward
                    put(f"{at}mlp.experts.{e}.gate_proj.weight", own, hidden)
                    put(f"{at}mlp.experts.{e}.up_proj.weight", own, hidden)
                    put(f"{at}mlp.experts.{e}.down_proj.weight", hidden, own)
            elif config.gated:
                put(f"{at}mlp.gate_proj.weight", ff, hidden)
            if not config.layers[i].is_sparse:
                put(f"{at}mlp.up_proj.weight", ff, hidden)
        if normed:
            joint = config.joint_norms
            put(f"{at}self_attn.q_norm.weight", rows["q"] if joint else size, around=one)
            put(f"{at}self_attn.k_norm.weight", rows["k"] if joint else size, around=one)
        put(f"{at}self_attn.o_proj.weight", hidden, config.heads * size)
        if not config.layers[i].is_sparse:
            put(f"{at}mlp.down_proj.weight", hidden, ff)
    return made


def named(config, weights):
    """Return the weights by the names of the family's files."""
    for here, there in config.names:
        weights = {name.replace(here, there): value for name, value in weights.items()}
    return weights


def logits(config, weights, tokens):
    """Return the logits (tokens, vocabulary)."""
    w = {name: np.asarray(value, np.float64) for name, value in weights.items()}

    def norm(x, name):
        scale, bias = w[name] + config.norm_offset, w.get(name.replace("weight", "bias"), 0)
        if config.centred:
            x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config.epsilon) * scale + bias

    def mixture(x, at):
        experts, out = config.experts, np.zeros_like(x)
        scores = x @ w[at + "mlp.gate.weight"].T
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores = scores / scores.sum(-1, keepdims=True)
        for row, own in enumerate(scores):
            used = np.argsort(-own, kind="stable")[: experts.used]
            whole = own[used].sum() if experts.normalised else 1
            for e in used:
                gate, up, down = (
                    w[f"{at}mlp.experts.{e}.{n}_proj.weight"] for n in ("gate", "up", "down")
                )
                inner = ACTIVATIONS[config.activation](gate @ x[row]) * (up @ x[row])
                out[row] += own[e] / whole * (down @ inner)
        return out * experts.scale

    def feed_forward(x, at):
        if at + "mlp.gate.weight" in w:
            return mixture(x, at)
        act = ACTIVATIONS[config.activation]
        if not config.gated:
            return act(x @ w[at + "mlp.up_proj.weight"].T) @ w[at + "mlp.down_proj.weight"].T
        if at + "mlp.gate_up_proj.weight" in w:
            gate, up = np.split(x @ w[at + "mlp.gate_up_proj.weight"].T, 2, -1)
        else:
            gate, up = (x @ w[f"{at}mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        return (act(gate) * up) @ w[at + "mlp.down_proj.weight"].T

    share = config.residual_scale
    x = w["model.embed_tokens.weight"][tokens] * config.embedding_scale
    for i, layer in enumerate(config.layers):
        at = f"model.layers.{i}."
        first = x if config.norms_after else norm(x, at + "input_layernorm.weight")
        mixed = _attention(config, layer, w, at + "self_attn.", norm, first)
        after = at + "post_attention_layernorm.weight"
        if config.parallel:
            x = x + share * (mixed + feed_forward(first, at))
            continue
        if not (config.sandwich or config.norms_after):
            x = x + share * mixed
            x = x + share * feed_forward(norm(x, after), at)
            continue
        x = x + norm(mixed, after)
        before = norm(x, at + "pre_feedforward_layernorm.weight") if config.sandwich else x
        x = x + norm(feed_forward(before, at), at + "post_feedforward_layernorm.weight")
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    found = norm(x, "model.norm.weight") @ head.T * config.logit_scale
    cap = config.logit_softcap
    return cap * np.tanh(found / cap) if cap else found


def _attention(config, layer, w, at, norm, x):
    count, size = len(x), config.head_size
    if at + "qkv_proj.weight" in w:
        rows = np.cumsum([config.heads * size, config.kv_heads * size])
        parts = np.split(x @ w[at + "qkv_proj.weight"].T, rows, -1)
    else:
        parts = [x @ w[f"{at}{n}_proj.weight"].T + w.get(f"{at}{n}_proj.bias", 0) for n in "qkv"]
    if at + "q_norm.weight" in w and config.joint_norms:
        parts = [
            *(norm(p, f"{at}{n}_norm.weight") for p, n in zip(parts[:2], "qk", strict=True)),
            parts[2],
        ]
    q, k, v = (p.reshape(count, -1, size).transpose(1, 0, 2) for p in parts)
    if at + "q_norm.weight" in w and not config.joint_norms:
        q, k = norm(q, at + "q_norm.weight"), norm(k, at + "k_norm.weight")
    pairs = layer.rope.size // 2
    if pairs:
        cosine, sine = (t.astype(np.float64) for t in rope_tables(layer.rope, count))
        q, k = (_rotated(t, cosine, sine, pairs, layer.rope.interleaved) for t in (q, k))
    k, v = (np.repeat(t, config.heads // config.kv_heads, 0) for t in (k, v))
    scale = size**-0.5 if config.attention_scale is None else config.attention_scale
    scores = q @ k.transpose(0, 2, 1) * scale
    cap = config.attention_softcap
    scores = cap * np.tanh(scores / cap) if cap else scores
    own, other = np.arange(count)[:, None], np.arange(count)
    seen = (other <= own) & ((other > own - layer.window) | (layer.window == 0))
    scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (powers / powers.sum(-1, keepdims=True)) @ v
    return mixed.transpose(1, 0, 2).reshape(count, -1) @ w[at + "o_proj.weight"].T


def _rotated(x, cosine, sine, pairs, interleaved):
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else (
        slice(0, pairs), slice(pairs, 2 * pairs)
    )  # fmt: skip
    out = x.copy()
    a, b = x[..., first], x[..., second]
    out[..., first], out[..., second] = a * cosine - b * sine, b * cosine + a * sine
    return out
