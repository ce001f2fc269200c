"""What differs from layer to layer of a model of transformers: angles, windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from slipway.errors import ModelError
from slipway.llm.config import FULL, SLIDING, LayerConfig, Rope
from slipway.llm.families import (
    INTERLEAVED,
    NO_ROPE,
    OF_CONVOLUTIONS,
    ROTATED_PARTS,
    SLIDES,
    WHEN_SAID,
)
from slipway.llm.missing import KINDS
from slipway.llm.positions import longrope_amplitude, yarn_amplitude, yarn_divisors
from slipway.llm.values import count_of, list_of, number_of, positive, shown

CONV = "conv"  # a layer with a short convolution for attention


def layers_of(
    given: Mapping[str, Any], family: str, head_size: int, count: int, where: str
) -> tuple[LayerConfig, ...]:
    """Return what each layer does."""
    window = count_of(given, "sliding_window", where, 1) if given.get("sliding_window") else 0
    if family not in SLIDES:
        window = 0
    if family in WHEN_SAID and not given.get("use_sliding_window"):
        window = 0
    kinds = list_of(given, "layer_types", where)
    kinds = kinds or list(_usual_kinds(given, family, count, bool(window), where))
    if len(kinds) != count:
        raise ModelError(f"{where}: layer_types has {len(kinds)} entries for {count} layers")
    known = (*KINDS, CONV) if family in OF_CONVOLUTIONS else KINDS
    other = next((kind for kind in kinds if kind not in known), None)
    if other is not None:
        raise ModelError(
            f"{where}: a layer is {shown(other)}, and must be one of {', '.join(known)}"
        )
    rotates = list_of(given, "no_rope_layers", where)
    if family == "smollm3" and not rotates:
        every = count_of(given, "no_rope_layer_interval", where, 4)
        rotates = [int((i + 1) % every != 0) for i in range(count)]
    if window and family in ("cohere2", "exaone4"):  # layers that see all have no positions
        rotates = [int(kind == SLIDING) for kind in kinds]
    rotates = rotates or [int(family not in NO_ROPE and not given.get("alibi"))] * count
    if len(rotates) != count:
        raise ModelError(f"{where}: no_rope_layers has {len(rotates)} entries for {count} layers")
    made: list[LayerConfig] = []
    for kind, is_rotated in zip(kinds, rotates, strict=True):
        rope = _rope(given, str(kind), head_size, where) if is_rotated else Rope()
        divisor = len(made) + 1 if given.get("scale_attn_by_inverse_layer_idx") else 1
        made.append(LayerConfig(rope, window if kind == SLIDING else 0, 1 / divisor,
                                is_conv=kind == CONV))  # fmt: skip
    return tuple(made)


def _usual_kinds(
    given: Mapping[str, Any], family: str, count: int, window: bool, where: str
) -> Sequence[str]:
    """Return the kinds of layers of older files, which do not list them."""
    if not window:
        return [FULL] * count
    if family in ("gemma2", "vaultgemma"):
        return [FULL if i % 2 else SLIDING for i in range(count)]
    if family == "cwm":
        return [SLIDING if i % 4 else FULL for i in range(count)]
    if family in ("gemma3_text", "olmo3", "cohere2", "exaone4"):
        pattern = given.get("sliding_window_pattern")
        if isinstance(pattern, str):
            return _kinds_by_letter(pattern, count, where)
        every = count_of(
            given, "sliding_window_pattern", where, 6 if family == "gemma3_text" else 4
        )
        return [FULL if (i + 1) % every == 0 else SLIDING for i in range(count)]
    if family in ("qwen2", "qwen3", "qwen2_moe", "dots1"):
        first = int(number_of(given, "max_window_layers", where, 0))
        return [SLIDING if i >= first else FULL for i in range(count)]
    return [SLIDING] * count


def _kinds_by_letter(pattern: str, count: int, where: str) -> Sequence[str]:
    """Return the kinds of layers that a text like "LLLG" repeats; the last layer sees all."""
    if not pattern or set(pattern) - set("LG"):
        raise ModelError(
            f"{where}: sliding_window_pattern is {shown(pattern)}, and must be a number or a text "
            "of L (local layers) and G (global ones), as LLLG"
        )
    letters = [pattern[i % len(pattern)] for i in range(count - 1)] + ["G"]
    return [SLIDING if letter == "L" else FULL for letter in letters]


def _rope(given: Mapping[str, Any], kind: str, head_size: int, where: str) -> Rope:
    found = given.get("rope_parameters") or given.get("rope_scaling") or {}
    if isinstance(found, Mapping) and kind in found:
        found = found[kind]
    elif kind == SLIDING and given.get("rope_local_base_freq") is not None:
        found = {"rope_theta": given["rope_local_base_freq"]}
    if not isinstance(found, Mapping):
        raise ModelError(f"{where}: the positions are {shown(found)}, and must be an object")
    other = number_of(given, "rotary_emb_base", where, 10000.0)
    theta = number_of(found, "rope_theta", where, number_of(given, "rope_theta", where, other))
    family = str(given.get("model_type"))
    usual = ROTATED_PARTS.get(family, 1.0)
    if given.get("model_type") == "gpt_neox":
        usual = number_of(given, "rotary_pct", where, 0.25)
    part = number_of(found, "partial_rotary_factor", where,
                   number_of(given, "partial_rotary_factor", where, usual))  # fmt: skip
    if theta <= 0 or not 0 <= part <= 1:
        raise ModelError(
            f"{where}: rope_theta is {theta} and partial_rotary_factor {part}; the first must be "
            "positive, the second from 0 to 1"
        )
    rope = Rope(theta, int(head_size * part + 1e-6) // 2 * 2, interleaved=family in INTERLEAVED)
    name = str(found.get("rope_type") or found.get("type") or "default")
    if name == "default":
        return rope
    if name == "linear":
        return replace(rope, factors=(positive(found, "factor", where, 1.0),))
    if name == "llama3":
        keys = ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings", "factor")
        low, high, original, factor = (positive(found, key, where) for key in keys)
        if low == high:
            raise ModelError(f"{where}: low_freq_factor and high_freq_factor are both {low}")
        return replace(rope, wavelengths=(low, high, original, factor))
    if name == "dynamic" and found.get("alpha"):  # HunYuan's: the base alone is stretched
        stretch = positive(found, "alpha", where) ** (head_size / max(head_size - 2, 1))
        return replace(rope, theta=theta * stretch)
    if name == "dynamic":  # stretches what is longer than the context that the model says
        return rope
    most = count_of(given, "max_position_embeddings", where, 2048)
    original = count_of({**given, **found}, "original_max_position_embeddings", where, most)
    factor = positive(found, "factor", where, most / original)
    if name == "yarn":
        made = _yarn(found, rope, factor, original, where)
        beta = number_of(found, "llama_4_scaling_beta", where, 0.0)
        return replace(made, growth=(beta, original)) if family == "ministral3" else made
    if name in ("longrope", "su"):
        return _longrope(found, rope, factor, original, where)
    raise ModelError(f"{where}: positions of the type {name!r} are not known, but default, linear, "
                     "dynamic, llama3, yarn and longrope")  # fmt: skip


def _yarn(found: Mapping[str, Any], rope: Rope, factor: float, original: int, where: str) -> Rope:
    scales = [number_of(found, key, where, 0.0) for key in ("mscale", "mscale_all_dim")]
    usual = yarn_amplitude(factor)
    if all(scales):
        usual = yarn_amplitude(factor, scales[0]) / yarn_amplitude(factor, scales[1])
    fast, slow = (
        positive(found, "beta_fast", where, 32.0),
        positive(found, "beta_slow", where, 1.0),
    )
    if rope.theta == 1 or not rope.size:
        raise ModelError(f"{where}: yarn needs a rope_theta other than 1, and pairs to rotate")
    whole = bool(found.get("truncate", True))
    divisors = yarn_divisors(rope.size // 2, rope.theta, factor, original, fast, slow, whole)
    amplitude = positive(found, "attention_factor", where, usual)
    return replace(rope, factors=divisors, amplitude=amplitude)


def _longrope(
    found: Mapping[str, Any], rope: Rope, factor: float, original: int, where: str
) -> Rope:
    lists = []
    for key in ("short_factor", "long_factor"):
        values = list_of(found, key, where)
        lists.append(tuple(positive({key: v}, key, where) for v in values))
        if len(values) != rope.size // 2:
            raise ModelError(
                f"{where}: {key} has {len(values)} entries for {rope.size // 2} pairs of a head"
            )
    if original < 2:
        raise ModelError(f"{where}: original_max_position_embeddings is {original}")
    usual = longrope_amplitude(factor, original)
    amplitude = positive(found, "attention_factor", where, usual)
    return replace(
        rope, factors=lists[0], long_factors=lists[1], original=original, amplitude=amplitude
    )
