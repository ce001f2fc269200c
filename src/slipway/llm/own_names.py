"""Descriptions of families that have names of their own, in the names of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.errors import ModelError
from slipway.llm.config import FULL, MOST_LAYERS, SLIDING
from slipway.llm.families import BLOOM, EXAONE, FALCON, GPT2, GPT_NEO, MPT, OF_CONVOLUTIONS, OPT
from slipway.llm.missing import kinds_of_layers, missing_features
from slipway.llm.values import count_of, list_of, number_of, shown


def in_usual_names(given: Mapping[str, Any], family: str, where: str) -> Mapping[str, Any]:
    """Return what a file says that has names of its own, under those of the other families."""
    if family == "gpt_neox":  # each head has its own keys, whatever a file says
        given = {**given, "num_key_value_heads": None}
    if family == "opt":
        if given.get("do_layer_norm_before") is False or given.get("word_embed_proj_dim") not in (
            None, given.get("hidden_size"),
        ):  # fmt: skip
            raise ModelError(
                f"{where}: norms behind the sums, or embeddings of another size than the layers, "
                "as OPT-350m has them, are not known"
            )
        own = {name: given.get(theirs) for name, theirs in OPT.items()}
        given = {**given, **own, "num_key_value_heads": None}
    if family == "falcon":
        return _of_falcon(given, where)
    if family == "granitemoehybrid":
        return _of_granite_hybrid(given, where)
    if family == "gpt_neo":
        return _of_gpt_neo(given, where)
    if family == "bloom":
        return _of_bloom(given, where)
    if family == "mpt":
        return _of_mpt(given, where)
    if family in ("persimmon", "codegen"):  # each head has its own keys
        given = {**given, "num_key_value_heads": None}
    if family in OF_CONVOLUTIONS:
        return _of_lfm2(given, where)
    if family == "exaone":
        own = {name: given.get(theirs) for name, theirs in EXAONE.items()}
        return {**given, **{name: value for name, value in own.items() if value is not None}}
    if family in ("gpt2", "gpt_bigcode", "gptj", "codegen"):
        own = {name: given.get(theirs) for name, theirs in GPT2.items()}
        own["intermediate_size"] = own["intermediate_size"] or 4 * count_of(given, "n_embd", where)
        shared = family == "gpt_bigcode" and given.get("multi_query", True)
        given = {**given, **own, "num_key_value_heads": 1 if shared else None}
    if family in ("gptj", "codegen") and given.get("rotary_dim") is not None:
        size = count_of(given, "n_embd", where) // count_of(given, "n_head", where)
        part = count_of(given, "rotary_dim", where) / max(size, 1)
        given = {**given, "partial_rotary_factor": part}
    return given


def _of_falcon(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    own = {name: given.get(theirs) for name, theirs in FALCON.items()}
    own["intermediate_size"] = own["intermediate_size"] or 4 * count_of(given, "hidden_size", where)
    one = given.get("multi_query", True) and not given.get("new_decoder_architecture")
    return {**given, **own, "num_key_value_heads": 1 if one else given.get("num_kv_heads")}


def _of_lfm2(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return a description whose feed-forward has the size that the network makes of the file's."""
    own = _renamed(given, {"intermediate_size": "block_ff_dim", "rms_norm_eps": "norm_eps",
                           "tie_word_embeddings": "tie_embedding"})  # fmt: skip
    size = count_of(own, "intermediate_size", where)
    if given.get("block_auto_adjust_ff_dim", given["model_type"] == "lfm2"):
        multiple = count_of(given, "block_multiple_of", where, 256)
        size = int(number_of(given, "block_ffn_dim_multiplier", where, 1.0) * int(2 * size / 3))
        size = -(-size // multiple) * multiple
    if not list_of(given, "layer_types", where):
        count = count_of(given, "num_hidden_layers", where)
        full = list_of(given, "full_attn_idxs", where)
        own["layer_types"] = [FULL if i in full or not full else "conv" for i in range(count)]
    own["first_k_dense_replace"] = given.get("num_dense_layers")
    return {**own, "intermediate_size": size, "taps": count_of(given, "conv_L_cache", where, 3)}


def _renamed(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a description with the family's own keys under the usual ones too."""
    own = {name: given[theirs] for name, theirs in names.items() if given.get(theirs) is not None}
    return {**given, **own}


def _of_bloom(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    own = _renamed(given, BLOOM)
    own["intermediate_size"] = 4 * count_of(own, "hidden_size", where)
    return {**own, "hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": None, "alibi": True}


def _of_mpt(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    own = _renamed(given, MPT)
    attention = given.get("attn_config") or {}
    if not isinstance(attention, Mapping):
        raise ModelError(f"{where}: attn_config is {shown(attention)}, and must be an object")
    if attention.get("alibi", True) is False or attention.get("prefix_lm"):
        raise ModelError(
            f"{where}: attn_config says positions that are not ALiBi's, or a prefix whose tokens "
            "see each other; neither is known"
        )
    wide = count_of(given, "expansion_ratio", where, 4) * count_of(own, "hidden_size", where)
    return {
        **own, "intermediate_size": wide, "hidden_act": "gelu", "num_key_value_heads": None,
        "alibi": True, "clip_qkv": attention.get("clip_qkv"),
        "softmax_scale": attention.get("softmax_scale"),
        "alibi_bias_max": attention.get("alibi_bias_max"),
    }  # fmt: skip


def _of_granite_hybrid(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the description of a file of this family that has neither experts nor state spaces."""
    lacking = missing_features({**given, "num_local_experts": 0})
    if not kinds_of_layers(given):
        lacking.append("state spaces (Mamba), which all layers are where layer_types is missing")
    if lacking:
        raise ModelError(f"{where}: slipway.llm does not compute {', '.join(lacking)}")
    own: dict[str, Any] = {}
    if not given.get("num_local_experts"):
        own["intermediate_size"] = given.get("shared_intermediate_size")
    if given.get("position_embedding_type") != "rope":
        own["no_rope_layers"] = [0] * len(kinds_of_layers(given))
    return {**given, **own, "layer_types": kinds_of_layers(given)}


def _of_gpt_neo(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    own = {name: given.get(theirs) for name, theirs in GPT_NEO.items()}
    own["intermediate_size"] = given.get("intermediate_size") or 4 * count_of(
        given, "hidden_size", where
    )
    kinds = list_of(given, "attention_layers", where)
    for entry in [] if kinds else list_of(given, "attention_types", where):
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], list)):
            raise ModelError(f"{where}: attention_types has {shown(entry)}, no [kinds, count]")
        count = count_of({"attention_types": entry[1]}, "attention_types", where)
        if len(kinds) + len(entry[0]) * count > MOST_LAYERS:  # before a list is made of them
            raise ModelError(f"{where}: attention_types are more than {MOST_LAYERS:,} layers")
        kinds = kinds + entry[0] * count
    wrong = next((kind for kind in kinds if kind not in ("global", "local")), None)
    if wrong is not None:
        raise ModelError(f"{where}: a layer is {shown(wrong)}, neither global nor local")
    own["layer_types"] = [SLIDING if kind == "local" else FULL for kind in kinds] or None
    return {**given, **own, "num_key_value_heads": None}
