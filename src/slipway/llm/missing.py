"""What the networks of families that `slipway.llm` does not know have, so that it can be named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KINDS = ("full_attention", "sliding_attention")
_COUNTS_OF_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_STATE_SPACES = ("mamba_", "ssm_", "state_size", "time_step_rank", "linear_conv_kernel_dim")
_RECURRENT = ("conv_L_cache", "lru_width", "attention_hidden_size")  # LFM 2, Griffin, RWKV
_OTHERS = {  # option of a file -> what it stands for
    "kv_lora_rank": "keys and values from a latent vector",
    "hidden_size_per_layer_input": "an embedding for each layer",
    "altup_num_inputs": "several streams that predict each other (AltUp)",
    "is_encoder_decoder": "an encoder",
}


def missing_features(given: Mapping[str, Any]) -> list[str]:
    """Return what a configuration asks for that `slipway.llm` does not compute."""
    found = []
    for key in _COUNTS_OF_EXPERTS:
        count = given.get(key)
        if isinstance(count, int) and count > 1:
            found.append(f"a mixture of experts ({key} is {count})")
            break
    inner = given.get("attn_config")
    declared = given.get("alibi") or (isinstance(inner, Mapping) and inner.get("alibi"))
    if declared:
        found.append("ALiBi's positions")
    kinds = kinds_of_layers(given)
    others = [kind for kind in dict.fromkeys(map(str, kinds)) if kind not in KINDS]
    if others:
        found.append(f"layers of the kind {', '.join(map(repr, others))[:80]}")
    elif not kinds and any(key.startswith(_STATE_SPACES) for key in given):
        found.append("state spaces (Mamba)")
    elif not kinds and any(key in given for key in _RECURRENT):
        found.append("convolutions or recurrent layers in place of attention")
    return found + [f"{what} ({key})" for key, what in _OTHERS.items() if given.get(key)]


def kinds_of_layers(given: Mapping[str, Any]) -> Sequence[Any]:
    """Return the kinds that a configuration lists, one for each layer; none where it does not."""
    for key in ("layer_types", "layers_block_type"):
        kinds = given.get(key)
        if isinstance(kinds, list) and kinds:
            return ["full_attention" if kind == "attention" else kind for kind in kinds]
    return ()
