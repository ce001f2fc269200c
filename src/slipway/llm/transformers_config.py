"""The configuration of a model of transformers: what its ``config.json`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from slipway.errors import ModelError, did_you_mean
from slipway.llm.config import MOST_LAYERS, ModelConfig, checked
from slipway.llm.experts import experts_of, sparse_layers
from slipway.llm.families import FAMILIES, OF_HEADS, OWN_NORMS
from slipway.llm.family_defaults import usual_choices, usual_sizes
from slipway.llm.layers import layers_of
from slipway.llm.missing import missing_features
from slipway.llm.own_names import in_usual_names
from slipway.llm.positions import alibi_slopes
from slipway.llm.values import count_of, need, number_of, positive, token_of, tokens_of

_EPSILONS = ("rms_norm_eps", "layer_norm_eps", "norm_epsilon", "layer_norm_epsilon", "norm_eps")
_REFUSED = {  # what the network does not compute
    "use_bidirectional_attention": "attention to tokens that follow",
    "apply_residual_connection_post_layernorm": "sums with what norms made (of BLOOM)",
    "_remove_final_layer_norm": "a network without its last norm",
}  # fmt: skip
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_new": "gelu_tanh",
                "gelu_pytorch_tanh": "gelu_tanh",
                "relu": "relu", "relu2": "relu2", "xielu": "xielu"}  # fmt: skip


# What a file says of the whole model for its language model, and where those names begin.
_OF_BOTH = ("tie_word_embeddings", "eos_token_id", "bos_token_id")
_LANGUAGE_PARTS = (("model.", "model.language_model."), ("", "language_model."))


def from_transformers(given: Mapping[str, Any], where: str = "config.json") -> ModelConfig:
    """Return the configuration of a transformers ``config.json``."""
    family = str(need(given, "model_type", where))
    inner = given.get("text_config")
    if family not in FAMILIES and isinstance(inner, Mapping):
        return _language_part(given, inner, where)
    if family not in FAMILIES:
        lacking = missing_features(given)
        hint = f" It does not compute {', '.join(lacking)}." if lacking else ""
        hint += did_you_mean(family, FAMILIES)
        raise ModelError(
            f"{where}: slipway.llm knows no model_type {family!r}.{hint} "
            f"It knows: {', '.join(FAMILIES)}"
        )
    given = in_usual_names({**usual_choices(family), **given}, family, where)
    hidden = count_of(given, "hidden_size", where)
    heads = count_of(given, "num_attention_heads", where)
    head_size = count_of(given, "head_dim", where, hidden // heads)
    count = count_of(given, "num_hidden_layers", where)
    if count > MOST_LAYERS:
        raise ModelError(f"{where}: {count:,} layers are more than {MOST_LAYERS:,}")
    activation = _activation(given, family, where)
    scalar = number_of(given, "query_pre_attn_scalar", where, 0.0) if "gemma" in family else 0.0
    if scalar < 0:
        raise ModelError(f"{where}: query_pre_attn_scalar is {scalar}, and must be positive")
    normed = next((names for key, names in OF_HEADS.items() if given.get(key)), ())
    if family not in OWN_NORMS:
        normed = ()
    for key, what in _REFUSED.items():
        if given.get(key):
            raise ModelError(f"{where}: {key} is set, and slipway.llm does not know {what}")
    begin = given.get("bos_token_id")
    epsilon = next((key for key in _EPSILONS if given.get(key) is not None), _EPSILONS[0])
    choices = _choices(given, family, where)
    experts = experts_of(given, family, where)
    if family == "granitemoehybrid" and experts is not None:
        choices["names"] = FAMILIES["granitemoe"]["names"]
    layers = layers_of(given, family, head_size, count, where)
    if experts is not None:
        sparse = sparse_layers(given, count, where)
        layers = tuple(
            replace(layer, is_sparse=its) for layer, its in zip(layers, sparse, strict=True)
        )
    config = ModelConfig(
        family=family,
        vocabulary=count_of(given, "vocab_size", where),
        hidden=hidden,
        feed_forward=count_of(given, "intermediate_size", where),
        heads=heads,
        kv_heads=count_of(given, "num_key_value_heads", where, heads),
        head_size=head_size,
        context=count_of(given, "max_position_embeddings", where, 2048),
        layers=layers,
        experts=experts,
        epsilon=number_of(given, epsilon, where, choices.pop("epsilon", 1e-6)),
        activation=activation,
        attention_scale=scalar**-0.5 if scalar else choices.pop("attention_scale", None),
        attention_softcap=number_of(given, "attn_logit_softcapping", where, 0.0),
        logit_softcap=number_of(given, "final_logit_softcapping", where, 0.0),
        tied=bool(given.get("tie_word_embeddings")),
        head_norms=normed,
        end_tokens=tokens_of(given, "eos_token_id", where),
        begin_token=None if begin is None else token_of(begin, "bos_token_id", where),
        **choices,
    )
    return checked(config, where)


def _choices(given: Mapping[str, Any], family: str, where: str) -> dict[str, Any]:
    """Return what a family's network does differently, by what its file says."""
    choices: dict[str, Any] = {**FAMILIES[family], **_scales(given, family, where)}
    if family in ("bloom", "mpt", "falcon") and given.get("alibi"):
        heads = count_of(given, "num_attention_heads", where)
        size = count_of(given, "hidden_size", where) // heads
        choices["slopes"] = _slopes(given, family, heads, size, where)
    if family == "mpt" and given.get("softmax_scale") is not None:
        choices["attention_scale"] = number_of(given, "softmax_scale", where, 1.0)
    if "taps" in given:
        choices["taps"] = given["taps"]
    if family == "hyperclovax":
        choices["sandwich"] = bool(given.get("use_post_norm"))
        if not choices["sandwich"]:
            choices["names"] = ()
    if family in ("olmo", "olmoe", "mpt"):
        choices["clip"] = number_of(given, "clip_qkv", where, 0.0)
    if family == "opt":
        choices["plain_norms"] = given.get("layer_norm_elementwise_affine") is False
    if family in ("gpt2", "gpt_bigcode") and given.get("scale_attn_weights") is False:
        choices["attention_scale"] = 1.0
    if family == "falcon":
        choices["heads_apart"] = bool(
            given.get("new_decoder_architecture") or not given.get("multi_query", True)
        )
        choices["parallel"] = bool(
            given.get("new_decoder_architecture") or given.get("parallel_attn", True)
        )
    if family == "gpt_bigcode":
        choices["heads_apart"] = not given.get("multi_query", True)
    if family in ("stablelm", "gpt_neox"):
        choices["parallel"] = bool(given.get("use_parallel_residual", family == "gpt_neox"))
    return choices


def _slopes(
    given: Mapping[str, Any], family: str, heads: int, size: int, where: str
) -> tuple[float, ...]:
    """Return ALiBi's slopes as a family computes them."""
    if family == "mpt":
        return alibi_slopes(heads, positive(given, "alibi_bias_max", where, 8.0), ceiling=True)
    slopes = alibi_slopes(heads)
    if family == "bloom":
        return slopes
    # Falcon's are bfloat16, and scaled as scores are.
    short = np.array(slopes, np.float32).view(np.uint32)
    short = (short + 0x7FFF + (short >> 16 & 1)) & np.uint32(0xFFFF0000)
    return tuple(float(slope) * size**-0.5 for slope in short.view(np.float32))


def _activation(given: Mapping[str, Any], family: str, where: str) -> str:
    names = [str(given[k]) for k in ("hidden_activation", "hidden_act") if given.get(k)] or ["silu"]
    for name in names:
        if name not in _ACTIVATIONS or (name == "xielu") != (family == "apertus"):
            raise ModelError(
                f"{where}: the activation {name!r} is not one of {', '.join(_ACTIVATIONS)}"
            )
    if family == "gemma" and names[0] == "gelu":  # its first files say so, and mean the other
        return "gelu_tanh"
    return _ACTIVATIONS[names[0]]


def _language_part(given: Mapping[str, Any], inner: Mapping[str, Any], where: str) -> ModelConfig:
    """Return the language model of one that reads pictures or sounds too."""
    kept = {key: given[key] for key in _OF_BOTH if given.get(key) is not None}
    usual = usual_sizes(str(inner.get("model_type")))
    config = from_transformers({**usual, **kept, **inner}, f"{where}: text_config")
    return replace(config, names=(*_LANGUAGE_PARTS, *config.names))


def _scales(given: Mapping[str, Any], family: str, where: str) -> dict[str, float]:
    """Return the numbers that a family multiplies embeddings, scores, sums and logits with."""
    if "gemma" in family:
        return {"embedding_scale": float(given["hidden_size"]) ** 0.5}
    if family.startswith("cohere"):
        return {"logit_scale": number_of(given, "logit_scale", where, 0.0625)}
    if not family.startswith(("granite", "hyperclovax")):
        return {}
    made = {
        "embedding_scale": number_of(given, "embedding_multiplier", where, 1.0),
        "residual_scale": number_of(given, "residual_multiplier", where, 1.0),
    }
    logits = positive(given, "logits_scaling", where, 1.0)
    if family == "hyperclovax":  # whose heads say what scores are scaled by, if the file does not
        if given.get("attention_multiplier") is not None:
            made["attention_scale"] = number_of(given, "attention_multiplier", where, 1.0)
        return {**made, "logit_scale": logits}
    attention = number_of(given, "attention_multiplier", where, 1.0)
    return {**made, "attention_scale": attention, "logit_scale": 1.0 / logits}
