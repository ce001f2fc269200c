"""The model in a GGUF file: its configuration, and its weights under transformers' names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slipway.errors import ModelError, did_you_mean
from slipway.llm.config import MOST_LAYERS, Experts, LayerConfig, ModelConfig, Rope, checked
from slipway.llm.gguf_file import GGUFFile
from slipway.llm.positions import yarn_amplitude, yarn_divisors
from slipway.llm.weights import Array, Matrix, Weights

# The family, and whether pairs of a head are neighbours (files of that architecture hold the rows
# of query and key in that order).
_ARCHITECTURES = {
    "llama": ("llama", True),
    "qwen2": ("qwen2", False),
    "qwen3": ("qwen3", False),
    "gemma": ("gemma", False),
    "gemma2": ("gemma2", False),
    "gemma3": ("gemma3_text", False),
    "phi3": ("phi3", False),
    "smollm3": ("smollm3", True),
    "granite": ("granite", True),
    "qwen2moe": ("qwen2_moe", False),
    "qwen3moe": ("qwen3_moe", False),
    "olmoe": ("olmoe", False),
    "granitemoe": ("granitemoe", True),
    "lfm2": ("lfm2", False),
    "lfm2moe": ("lfm2_moe", False),
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "shortconv.conv": "conv.conv",
    "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
    "exp_probs_b": "mlp.gate.e_score_correction",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.gate_proj",
    "ffn_up_exps": "mlp.experts.up_proj",
    "ffn_down_exps": "mlp.experts.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
}
# Older files of Mixtral have a tensor for each expert: ffn_up.3.
_OF_ONE = {"ffn_gate": "gate_proj", "ffn_up": "up_proj", "ffn_down": "down_proj"}
_SUMS_TO_ONE = (
    "llama",
    "qwen3_moe",
    "granitemoe",
    "lfm2_moe",
)  # the shares of those experts that are used
_SANDWICH = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "token_embd_norm": "model.norm",  # as files of LFM 2 call it
    "output": "lm_head",
}


class _Metadata:
    """The values of an architecture's keys, each of the type that is asked for."""

    def __init__(self, file: GGUFFile, architecture: str) -> None:
        self.file, self.prefix = file, architecture + "."

    def count(self, key: str, default: int | None = None) -> int:
        value = self.file.metadata.get(self.prefix + key, default)
        if isinstance(value, list):  # one for each layer; 0 for one without attention
            some = {str(one): one for one in value if one != 0}
            value = some.popitem()[1] if len(some) == 1 else value
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelError(
                f"{self.file.path}: {self.prefix}{key} is {value!r}, and must be a positive number"
            )
        return value

    def number(self, key: str, default: float) -> float:
        value = self.file.metadata.get(self.prefix + key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise ModelError(f"{self.file.path}: {self.prefix}{key} is {value!r}, and no number")
        return float(value)


def config_of(file: GGUFFile) -> ModelConfig:
    """Return the configuration that a file's metadata says."""
    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in _ARCHITECTURES:
        hint = did_you_mean(str(architecture), _ARCHITECTURES)
        raise ModelError(
            f"{file.path}: slipway.llm knows no architecture {architecture!r}.{hint} "
            f"It knows: {', '.join(_ARCHITECTURES)}"
        )
    family, interleaved = _ARCHITECTURES[architecture]
    data = _Metadata(file, architecture)
    hidden, heads = data.count("embedding_length"), data.count("attention.head_count")
    size = data.count("attention.key_length", hidden // heads or 1)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelError(f"{file.path} has no tensor 'token_embd.weight': it holds no whole model")
    gemma = family.startswith("gemma")
    ends = file.metadata.get("tokenizer.ggml.eos_token_id")
    more = file.metadata.get("tokenizer.ggml.eot_token_id")
    config = ModelConfig(
        family=family,
        vocabulary=embedding.shape[0],
        hidden=hidden,
        feed_forward=data.count("feed_forward_length"),
        heads=heads,
        kv_heads=data.count("attention.head_count_kv", heads),
        head_size=size,
        context=data.count("context_length", 2048),
        layers=_layers(file, data, family, interleaved, size),
        epsilon=data.number("attention.layer_norm_rms_epsilon", 1e-6),
        activation="gelu_tanh" if gemma else "silu",
        embedding_scale=float(hidden) ** 0.5 if gemma else data.number("embedding_scale", 1.0),
        residual_scale=data.number("residual_scale", 1.0),
        logit_scale=1 / (data.number("logit_scale", 1.0) or 1.0),
        attention_scale=_attention_scale(family, data, hidden, heads),
        attention_softcap=data.number("attn_logit_softcapping", 50.0 * (family == "gemma2")),
        logit_softcap=data.number("final_logit_softcapping", 30.0 * (family == "gemma2")),
        tied="output.weight" not in file.tensors,
        sandwich=family in ("gemma2", "gemma3_text"),
        joint_norms=family == "olmoe",
        experts=_experts(file, data, family),
        taps=data.count("shortconv.l_cache") if family.startswith("lfm2") else 0,
        end_tokens=tuple(t for t in (ends, more) if isinstance(t, int)),
        begin_token=file.metadata.get("tokenizer.ggml.bos_token_id"),
    )
    return checked(config, str(file.path))


def _attention_scale(family: str, data: _Metadata, hidden: int, heads: int) -> float | None:
    """Return what scores are multiplied with where a head's size does not say it.

    The 27B models of Gemma 2 and 3 take the hidden size over the heads instead.  Files do not say
    so: readers know them by their layers.  Granite's files do.
    """
    if family.startswith("granite"):
        return data.number("attention.scale", 0.0) or None
    wide = (family, data.count("block_count")) in (("gemma2", 46), ("gemma3_text", 62))
    return (hidden / heads) ** -0.5 if wide else None


def _experts(file: GGUFFile, data: _Metadata, family: str) -> Experts | None:
    """Return the mixture of experts, None where a file has none."""
    if not file.metadata.get(f"{data.prefix}expert_count"):
        return None
    count, used = data.count("expert_count"), data.count("expert_used_count")
    if used > count:
        raise ModelError(f"{file.path}: {used} of {count} experts are used for each token")
    size = data.count("feed_forward_length", 1)
    size = data.count("expert_feed_forward_length", size)
    shared = file.tensors.get("blk.0.ffn_up_shexp.weight")
    normalised = file.metadata.get(f"{data.prefix}expert_weights_norm", family in _SUMS_TO_ONE)
    gating = file.metadata.get(f"{data.prefix}expert_gating_func", 1)
    if gating not in (1, 2):
        raise ModelError(f"{file.path}: experts are chosen by {gating!r}: known are 1 (softmax) "
                         "and 2 (sigmoid)")  # fmt: skip
    return Experts(
        count, used, size, "softmax" if gating == 1 else "sigmoid", bool(normalised),
        data.number("expert_weights_scale", 0.0) or 1.0,
        0 if shared is None else shared.shape[0],
    )  # fmt: skip


def _layers(
    file: GGUFFile, data: _Metadata, family: str, interleaved: bool, size: int
) -> tuple[LayerConfig, ...]:
    rope = Rope(
        data.number("rope.freq_base", 10000.0),
        data.count("rope.dimension_count", size),
        interleaved=interleaved,
    )
    # As llama.cpp reads them: linear where no type is named, and a factor of 0 stands for none.
    scaling = file.metadata.get(f"{data.prefix}rope.scaling.type", "linear")
    factor = data.number("rope.scaling.factor", data.number("rope.scale_linear", 1.0)) or 1.0
    if min(factor, rope.theta) <= 0 or (scaling == "yarn" and rope.theta == 1):
        raise ModelError(
            f"{file.path}: rope.freq_base is {rope.theta} and rope.scaling.factor {factor}; both "
            "must be positive, and the first not 1"
        )
    if scaling == "linear" and factor != 1:
        rope = replace(rope, factors=(factor,))
    elif scaling == "yarn":
        original = data.count("rope.scaling.original_context_length", data.count("context_length"))
        divisors = yarn_divisors(rope.size // 2, rope.theta, factor, original)
        longer = yarn_amplitude(factor) * data.number("rope.scaling.attn_factor", 1.0)
        rope = replace(rope, factors=divisors, amplitude=longer)
    elif scaling not in ("none", "", "linear", "longrope"):
        raise ModelError(
            f"{file.path}: positions scaled by {scaling!r} are not known, but linear, yarn and "
            "longrope"
        )
    for name in ("rope_freqs", "rope_factors_short", "rope_factors_long"):
        if f"{name}.weight" in file.tensors:
            factors = np.asarray(file.read(f"{name}.weight"), np.float32).reshape(-1)
            divisors = tuple(map(float, factors))
            rope = (
                replace(rope, long_factors=divisors)
                if name.endswith("long")
                else replace(rope, factors=divisors)
            )
    if rope.long_factors:
        original = data.count("rope.scaling.original_context_length")
        amplitude = data.number("rope.scaling.attn_factor", 1.0)
        rope = replace(rope, original=original, amplitude=amplitude)
    window = file.metadata.get(f"{data.prefix}attention.sliding_window") or 0
    if isinstance(window, bool) or not isinstance(window, int) or window < 0:
        raise ModelError(f"{file.path}: the sliding window is {window!r}, and no whole number")
    made = []
    count = data.count("block_count")
    if count > MOST_LAYERS:
        raise ModelError(f"{file.path}: {count:,} layers are more than {MOST_LAYERS:,}")
    for i in range(count):
        slides, own = bool(window), rope
        if family == "gemma2":
            slides = bool(window) and i % 2 == 0
        elif family == "gemma3_text":
            slides = bool(window) and (i + 1) % 6 != 0
            if slides:
                own = Rope(10000.0, rope.size, interleaved=interleaved)
        elif family == "smollm3" and (i + 1) % 4 == 0:
            own = Rope()
        is_sparse = f"blk.{i}.ffn_gate_inp.weight" in file.tensors
        is_conv = f"blk.{i}.shortconv.conv.weight" in file.tensors
        width = window if slides else 0
        made.append(LayerConfig(own, width, is_sparse=is_sparse, is_conv=is_conv))
    return tuple(made)


def weights_of(file: GGUFFile, config: ModelConfig) -> Weights:
    """Return the file's tensors by the names of transformers."""
    layer = {**_LAYER_NAMES, **(_SANDWICH if config.sandwich else {})}
    names: dict[str, str] = {}
    for own in file.tensors:
        stem, _, kind = own.rpartition(".")
        if stem.startswith("blk."):
            _, number, part = stem.split(".", 2) if stem.count(".") >= 2 else ("", "", "")
            expert = part.rpartition(".")
            if expert[0] in _OF_ONE and expert[2].isdecimal():
                part = f"mlp.experts.{expert[2]}.{_OF_ONE[expert[0]]}"
            dense = f"blk.{number}.ffn_gate_inp.weight" not in file.tensors
            if dense and part == "ffn_up" and f"blk.{number}.ffn_gate.weight" not in file.tensors:
                names[f"model.layers.{number}.mlp.gate_up_proj.{kind}"] = own  # as Phi-3 has it
            elif part:  # one without another name is refused when nobody asks for it
                own_name = layer.get(part, part)
                joint = "_" if own_name.endswith("correction") else "."  # a bias without a weight
                names[f"model.layers.{number}.{own_name}{joint}{kind}"] = own
        elif stem in _NAMES:
            names[f"{_NAMES[stem]}.{kind}"] = own

    def read(name: str) -> Matrix | Array:
        return file.read(names[name])

    return Weights(list(names), read)


def model_of(file: GGUFFile) -> tuple[ModelConfig, Weights, dict[str, Any]]:
    """Return the configuration, the weights and the tokenizer's metadata of a file."""
    config = config_of(file)
    tokens = {k: v for k, v in file.metadata.items() if k.startswith("tokenizer.")}
    return config, weights_of(file, config), tokens
