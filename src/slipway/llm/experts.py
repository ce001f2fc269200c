"""The mixture of experts that a ``config.json`` of transformers says, and its layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.errors import ModelError
from slipway.llm.config import Experts
from slipway.llm.values import count_of, list_of, number_of, positive, shown

_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_USED = ("num_experts_per_tok", "moe_k", "moe_topk")
_SIZES = ("moe_intermediate_size", "intermediate_size")

# How many there are where a file of the family is silent, as transformers' classes say it.
_USUAL_COUNTS = {
    "mixtral": 8, "qwen2_moe": 60, "qwen3_moe": 128, "olmoe": 64, "flex_olmo": 7,
    "granitemoe": 8, "granitemoeshared": 8, "ernie4_5_moe": 64, "glm4_moe": 128,
}  # fmt: skip
ALWAYS = "one"  # a shared expert as large as the others


@dataclass(frozen=True)
class _Family:
    """How a family computes scores, and what its files do not say."""

    scores: str = "softmax"
    normalises: bool | None = True  # None: as norm_topk_prob says, by default not
    shared: str = ""  # the key of the shared expert's elements, or of how many it is wide


MIXTURES = {
    "mixtral": _Family(),
    "qwen2_moe": _Family(normalises=None, shared="shared_expert_intermediate_size"),
    "qwen3_moe": _Family(normalises=None),
    "olmoe": _Family(normalises=None),
    "flex_olmo": _Family(normalises=None),
    "granitemoe": _Family(),
    "granitemoeshared": _Family(shared="shared_intermediate_size"),
    "granitemoehybrid": _Family(shared="shared_intermediate_size"),
    "ernie4_5_moe": _Family(shared="moe_num_shared_experts"),
    "hunyuan_v1_moe": _Family(shared=ALWAYS),
    "lfm2_moe": _Family("sigmoid", None),
    "dots1": _Family("sigmoid", None, "n_shared_experts"),
    "glm4_moe": _Family("sigmoid", None, "n_shared_experts"),
}


def experts_of(given: Mapping[str, Any], family: str, where: str) -> Experts | None:
    """Return the mixture of experts of a family that has one; None where a file has no experts."""
    how = MIXTURES.get(family)
    if how is None:
        return None
    count = _whole(given, _COUNTS, where, _USUAL_COUNTS.get(family, 0))
    if not count:
        return None
    used = _whole(given, _USED, where, 1 if family == "hunyuan_v1_moe" else 0)
    if used > count:
        raise ModelError(f"{where}: {used} of {count} experts are used for each token")
    for key in ("n_group", "topk_group"):
        if given.get(key, 1) not in (None, 1):
            raise ModelError(
                f"{where}: {key} is {shown(given[key])}, and slipway.llm does not choose experts "
                "by groups"
            )
    size = count_of(given, _SIZES[given.get(_SIZES[0]) is None], where)
    normalised = bool(given.get("norm_topk_prob")) if how.normalises is None else how.normalises
    return Experts(
        count, used, size, how.scores, normalised,
        positive(given, "routed_scaling_factor", where, 1.0),
        _shared(given, how.shared, size, where),
    )  # fmt: skip


def _whole(given: Mapping[str, Any], keys: tuple[str, ...], where: str, usual: int) -> int:
    """Return the number under the first of the keys that a file has, 0 for none.

    It may be a list with one number for each layer, if they are alike.
    """
    key = next((key for key in keys if given.get(key) is not None), None)
    if key is None:
        return usual
    value = given[key]
    if isinstance(value, list) and value and all(one == value[0] for one in value):
        value = value[0]
    return 0 if value == 0 and value is not False else count_of({key: value}, key, where)


def _shared(given: Mapping[str, Any], key: str, size: int, where: str) -> int:
    """Return the elements of the expert that all tokens pass."""
    if key == ALWAYS:
        return size
    if not key or not given.get(key):
        return 0
    wide = count_of(given, key, where)
    return wide if key.endswith("_size") else wide * size


def sparse_layers(given: Mapping[str, Any], count: int, where: str) -> list[bool]:
    """Return which of `count` layers have a mixture of experts."""
    kinds = list_of(given, "mlp_layer_types", where)
    if kinds:
        if len(kinds) != count:
            raise ModelError(
                f"{where}: mlp_layer_types has {len(kinds)} entries for {count} layers"
            )
        return [kind == "sparse" for kind in kinds]
    dense = set(map(str, list_of(given, "mlp_only_layers", where)))
    first = int(number_of(given, "first_k_dense_replace", where, 0))
    first = max(first, int(number_of(given, "moe_layer_start_index", where, 0)))
    last = int(number_of(given, "moe_layer_end_index", where, -1))
    last = count - 1 if last < 0 else last
    every = count_of(given, "decoder_sparse_step", where, 1)
    every = count_of(given, "moe_layer_interval", where, every)
    return [
        first <= i <= last and (i + 1) % every == 0 and str(i) not in dense for i in range(count)
    ]
