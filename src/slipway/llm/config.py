"""What a language model looks like: sizes, and what its family does differently.

`from_transformers` reads the ``config.json`` of a transformers folder; `gguf_model` the metadata of
a GGUF file.  The families differ in norms, biases, activation and positions only, so that one
network serves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slipway.errors import ModelError, did_you_mean
from slipway.llm.families import (
    FALCON,
    FAMILIES,
    GPT2,
    GPT_NEO,
    INTERLEAVED,
    NO_ROPE,
    OF_HEADS,
    OPT,
    ROTATED_PARTS,
    SLIDES,
)
from slipway.llm.family_defaults import usual_choices, usual_sizes
from slipway.llm.missing import KINDS, kinds_of_layers, missing_features
from slipway.llm.positions import longrope_amplitude, yarn_amplitude, yarn_divisors

FULL, SLIDING = KINDS


@dataclass(frozen=True)
class Rope:
    """The angles of positions: pair i of a head turns by position / theta ** (i / pairs).

    `size` is the elements of a head that are rotated, 0 for none.  `factors` divides the
    frequencies of all pairs by one number or each by its own, `long_factors` does instead in a
    context of more than `original` positions; `wavelengths` (low, high, original, factor) is Llama
    3's way to divide those of long waves.  Queries are multiplied with 1 + beta * log(1 + p // n)
    at position p where `growth` is (beta, n).
    """

    theta: float = 10000.0
    size: int = 0
    factors: tuple[float, ...] = ()
    wavelengths: tuple[float, float, float, float] | None = None
    amplitude: float = 1.0
    interleaved: bool = False
    long_factors: tuple[float, ...] = ()
    original: int = 0
    growth: tuple[float, int] = (0.0, 1)


@dataclass(frozen=True)
class LayerConfig:
    """What may differ from layer to layer: the angles, and the positions that are seen (0: all).

    `score_scale` multiplies the scores of attention, besides what all layers scale them by.
    """

    rope: Rope
    window: int = 0
    score_scale: float = 1.0


@dataclass(frozen=True)
class ModelConfig:
    """The sizes of a decoder, and its family's choices."""

    family: str
    vocabulary: int
    hidden: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_size: int
    context: int
    layers: tuple[LayerConfig, ...]
    epsilon: float = 1e-6
    activation: str = "silu"
    norm_offset: float = 0.0  # Gemma's norms scale by 1 + weight
    embedding_scale: float = 1.0
    attention_scale: float | None = None
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    tied: bool = False
    sandwich: bool = False  # norms behind attention and feed-forward too, as Gemma 2 has them
    norms_after: bool = False  # norms behind attention and feed-forward only, as OLMo 2 has them
    parallel: bool = False  # attention and feed-forward read the same norm, and are added together
    centred: bool = False  # norms take the mean away first (LayerNorm)
    gated: bool = True  # the feed-forward has a gate, or is two products
    # Rows of a joint matrix: queries, key and value of a head of keys, then those of the next.
    heads_apart: bool = False
    transposed: bool = False  # the layers' matrices lie with the data's columns first
    learned_positions: bool = False  # a table is added to the embedding
    joint_norms: bool = False  # query and key are normalised over all heads together
    head_norms: tuple[str, ...] = ()  # names of those with weights for each head
    norms_behind_rope: bool = False  # query and key are normalised when they have been rotated
    plain_norms: bool = False  # norms have no weights
    position_offset: int = 0  # rows of the table of positions before that of position 0
    clip: float = 0.0  # query, key and value are at most that far from 0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    names: tuple[tuple[str, str], ...] = ()  # parts of weights' names: here, in the files
    end_tokens: tuple[int, ...] = ()
    begin_token: int | None = None


_EPSILONS = ("rms_norm_eps", "layer_norm_eps", "norm_epsilon", "layer_norm_epsilon", "norm_eps")
_REFUSED = {  # what the network does not compute
    "use_bidirectional_attention": "attention to tokens that follow",
    "_remove_final_layer_norm": "a network without its last norm",
}  # fmt: skip
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_new": "gelu_tanh",
                "gelu_pytorch_tanh": "gelu_tanh",
                "relu": "relu", "relu2": "relu2", "xielu": "xielu"}  # fmt: skip


# What a file says of the whole model for its language model, and where those names begin.
_OF_BOTH = ("tie_word_embeddings", "eos_token_id", "bos_token_id")
_LANGUAGE_PARTS = (("model.", "model.language_model."), ("", "language_model."))
MOST_LAYERS = 10_000
_MOST = 2**31  # of whatever is counted
_LARGEST = 1e30


def _need(given: Mapping[str, Any], key: str, where: str) -> Any:
    if given.get(key) is None:
        raise ModelError(f"{where} lacks {key!r}: it is not the whole description of a model")
    return given[key]


def _count(given: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    value = given.get(key)
    value = default if value is None else value
    if value is None:
        _need(given, key, where)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelError(f"{where}: {key} is {_shown(value)}, and must be a positive whole number")
    if value > _MOST:
        raise ModelError(f"{where}: {key} is {_shown(value)}, more than any model has ({_MOST:,})")
    return value


def _number(given: Mapping[str, Any], key: str, where: str, default: float) -> float:
    value = given.get(key)
    if value is None:
        return default
    # An integer of JSON may be larger than a float holds; the comparison takes any.
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not -_LARGEST <= value <= _LARGEST:
        raise ModelError(f"{where}: {key} is {_shown(value)}, and must be a number")
    return float(value)


def _positive(
    given: Mapping[str, Any], key: str, where: str, default: float | None = None
) -> float:
    if default is None:
        _need(given, key, where)
    value = _number(given, key, where, default or 0.0)
    if value <= 0:
        raise ModelError(f"{where}: {key} is {value}, and must be positive")
    return value


def _list(given: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """Return a list, an empty one where the key is missing."""
    value = given.get(key)
    if value is not None and not isinstance(value, list):
        raise ModelError(f"{where}: {key} is {_shown(value)}, and must be a list")
    return value or []


def _token(value: Any, key: str, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelError(f"{where}: {key} is {_shown(value)}, and must be a token's number")
    return value


def _tokens(given: Mapping[str, Any], key: str, where: str) -> tuple[int, ...]:
    """Return one token or several."""
    value = given.get(key)
    if value is None:
        return ()
    several = value if isinstance(value, list) else [value]
    return tuple(_token(v, key, where) for v in several)


def _shown(value: Any) -> str:
    """Return a value for a message, short."""
    return repr(value)[:80]


def checked(config: ModelConfig, where: str) -> ModelConfig:
    """Return `config`, or raise ModelError where its sizes contradict each other."""
    if config.heads % config.kv_heads:
        raise ModelError(
            f"{where}: {config.heads} heads cannot share {config.kv_heads} heads of keys and values"
        )
    if (
        config.head_size % 2
        or not config.layers
        or any(c.rope.size > config.head_size for c in config.layers)
    ):
        raise ModelError(
            f"{where}: heads of {config.head_size} elements cannot be rotated in pairs"
        )
    for rope in {layer.rope for layer in config.layers}:
        for divisors in (rope.factors, rope.long_factors):
            if len(divisors) not in (0, 1, rope.size // 2):
                raise ModelError(
                    f"{where}: {len(divisors)} divisors of frequencies for {rope.size // 2} pairs "
                    "of a head"
                )
    return config


def _in_usual_names(given: Mapping[str, Any], family: str, where: str) -> Mapping[str, Any]:
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
    if family in ("gpt2", "gpt_bigcode", "gptj"):
        own = {name: given.get(theirs) for name, theirs in GPT2.items()}
        own["intermediate_size"] = own["intermediate_size"] or 4 * _count(given, "n_embd", where)
        shared = family == "gpt_bigcode" and given.get("multi_query", True)
        given = {**given, **own, "num_key_value_heads": 1 if shared else None}
    if family == "gptj" and given.get("rotary_dim") is not None:
        size = _count(given, "n_embd", where) // _count(given, "n_head", where)
        part = _count(given, "rotary_dim", where) / max(size, 1)
        given = {**given, "partial_rotary_factor": part}
    return given


def _of_falcon(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    if given.get("alibi"):
        raise ModelError(f"{where}: alibi is set, and slipway.llm does not know ALiBi's positions")
    own = {name: given.get(theirs) for name, theirs in FALCON.items()}
    own["intermediate_size"] = own["intermediate_size"] or 4 * _count(given, "hidden_size", where)
    one = given.get("multi_query", True) and not given.get("new_decoder_architecture")
    return {**given, **own, "num_key_value_heads": 1 if one else given.get("num_kv_heads")}


def _of_granite_hybrid(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the description of a file of this family that has neither experts nor state spaces."""
    lacking = missing_features(given)
    if not kinds_of_layers(given):
        lacking.append("state spaces (Mamba), which all layers are where layer_types is missing")
    if lacking:
        raise ModelError(f"{where}: slipway.llm does not compute {', '.join(lacking)}")
    own: dict[str, Any] = {"intermediate_size": given.get("shared_intermediate_size")}
    if given.get("position_embedding_type") != "rope":
        own["no_rope_layers"] = [0] * len(kinds_of_layers(given))
    return {**given, **own, "layer_types": kinds_of_layers(given)}


def _of_gpt_neo(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    own = {name: given.get(theirs) for name, theirs in GPT_NEO.items()}
    own["intermediate_size"] = given.get("intermediate_size") or 4 * _count(
        given, "hidden_size", where
    )
    kinds = _list(given, "attention_layers", where)
    for entry in [] if kinds else _list(given, "attention_types", where):
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], list)):
            raise ModelError(f"{where}: attention_types has {_shown(entry)}, no [kinds, count]")
        count = _count({"attention_types": entry[1]}, "attention_types", where)
        if len(kinds) + len(entry[0]) * count > MOST_LAYERS:  # before a list is made of them
            raise ModelError(f"{where}: attention_types are more than {MOST_LAYERS:,} layers")
        kinds = kinds + entry[0] * count
    wrong = next((kind for kind in kinds if kind not in ("global", "local")), None)
    if wrong is not None:
        raise ModelError(f"{where}: a layer is {_shown(wrong)}, neither global nor local")
    own["layer_types"] = [SLIDING if kind == "local" else FULL for kind in kinds] or None
    return {**given, **own, "num_key_value_heads": None}


def from_transformers(given: Mapping[str, Any], where: str = "config.json") -> ModelConfig:
    """Return the configuration of a transformers ``config.json``."""
    family = str(_need(given, "model_type", where))
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
    given = _in_usual_names({**usual_choices(family), **given}, family, where)
    hidden = _count(given, "hidden_size", where)
    heads = _count(given, "num_attention_heads", where)
    head_size = _count(given, "head_dim", where, hidden // heads)
    count = _count(given, "num_hidden_layers", where)
    if count > MOST_LAYERS:
        raise ModelError(f"{where}: {count:,} layers are more than {MOST_LAYERS:,}")
    activation = _activation(given, family, where)
    scalar = _number(given, "query_pre_attn_scalar", where, 0.0) if "gemma" in family else 0.0
    if scalar < 0:
        raise ModelError(f"{where}: query_pre_attn_scalar is {scalar}, and must be positive")
    normed = next((names for key, names in OF_HEADS.items() if given.get(key)), ())
    for key, what in _REFUSED.items():
        if given.get(key):
            raise ModelError(f"{where}: {key} is set, and slipway.llm does not know {what}")
    begin = given.get("bos_token_id")
    epsilon = next((key for key in _EPSILONS if given.get(key) is not None), _EPSILONS[0])
    choices = {**FAMILIES[family], **_scales(given, family, where)}
    if family == "olmo":
        choices["clip"] = _number(given, "clip_qkv", where, 0.0)
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
    config = ModelConfig(
        family=family,
        vocabulary=_count(given, "vocab_size", where),
        hidden=hidden,
        feed_forward=_count(given, "intermediate_size", where),
        heads=heads,
        kv_heads=_count(given, "num_key_value_heads", where, heads),
        head_size=head_size,
        context=_count(given, "max_position_embeddings", where, 2048),
        layers=_layers(given, family, head_size, count, where),
        epsilon=_number(given, epsilon, where, choices.pop("epsilon", 1e-6)),
        activation=activation,
        attention_scale=scalar**-0.5 if scalar else choices.pop("attention_scale", None),
        attention_softcap=_number(given, "attn_logit_softcapping", where, 0.0),
        logit_softcap=_number(given, "final_logit_softcapping", where, 0.0),
        tied=bool(given.get("tie_word_embeddings")),
        head_norms=normed,
        end_tokens=_tokens(given, "eos_token_id", where),
        begin_token=None if begin is None else _token(begin, "bos_token_id", where),
        **choices,
    )
    return checked(config, where)


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
        return {"logit_scale": _number(given, "logit_scale", where, 0.0625)}
    if not family.startswith("granite"):
        return {}
    return {
        "embedding_scale": _number(given, "embedding_multiplier", where, 1.0),
        "attention_scale": _number(given, "attention_multiplier", where, 1.0),
        "residual_scale": _number(given, "residual_multiplier", where, 1.0),
        "logit_scale": 1.0 / _positive(given, "logits_scaling", where, 1.0),
    }


def _layers(
    given: Mapping[str, Any], family: str, head_size: int, count: int, where: str
) -> tuple[LayerConfig, ...]:
    window = _count(given, "sliding_window", where, 1) if given.get("sliding_window") else 0
    if family not in SLIDES:
        window = 0
    if family in ("qwen2", "qwen3", "smollm3") and not given.get("use_sliding_window"):
        window = 0
    kinds = _list(given, "layer_types", where)
    kinds = kinds or list(_usual_kinds(given, family, count, bool(window), where))
    if len(kinds) != count:
        raise ModelError(f"{where}: layer_types has {len(kinds)} entries for {count} layers")
    other = next((kind for kind in kinds if kind not in KINDS), None)
    if other is not None:
        raise ModelError(
            f"{where}: a layer is {_shown(other)}, and must be one of {', '.join(KINDS)}"
        )
    rotates = _list(given, "no_rope_layers", where)
    if family == "smollm3" and not rotates:
        every = _count(given, "no_rope_layer_interval", where, 4)
        rotates = [int((i + 1) % every != 0) for i in range(count)]
    if window and family in ("cohere2", "exaone4"):  # layers that see all have no positions
        rotates = [int(kind == SLIDING) for kind in kinds]
    rotates = rotates or [int(family not in NO_ROPE)] * count
    if len(rotates) != count:
        raise ModelError(f"{where}: no_rope_layers has {len(rotates)} entries for {count} layers")
    made: list[LayerConfig] = []
    for kind, is_rotated in zip(kinds, rotates, strict=True):
        rope = _rope(given, str(kind), head_size, where) if is_rotated else Rope()
        divisor = len(made) + 1 if given.get("scale_attn_by_inverse_layer_idx") else 1
        made.append(LayerConfig(rope, window if kind == SLIDING else 0, 1 / divisor))
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
        every = _count(given, "sliding_window_pattern", where, 6 if family == "gemma3_text" else 4)
        return [FULL if (i + 1) % every == 0 else SLIDING for i in range(count)]
    if family in ("qwen2", "qwen3"):
        first = int(_number(given, "max_window_layers", where, 0))
        return [SLIDING if i >= first else FULL for i in range(count)]
    return [SLIDING] * count


def _kinds_by_letter(pattern: str, count: int, where: str) -> Sequence[str]:
    """Return the kinds of layers that a text like "LLLG" repeats; the last layer sees all."""
    if not pattern or set(pattern) - set("LG"):
        raise ModelError(
            f"{where}: sliding_window_pattern is {_shown(pattern)}, and must be a number or a text "
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
        raise ModelError(f"{where}: the positions are {_shown(found)}, and must be an object")
    other = _number(given, "rotary_emb_base", where, 10000.0)
    theta = _number(found, "rope_theta", where, _number(given, "rope_theta", where, other))
    family = str(given.get("model_type"))
    usual = ROTATED_PARTS.get(family, 1.0)
    if given.get("model_type") == "gpt_neox":
        usual = _number(given, "rotary_pct", where, 0.25)
    part = _number(found, "partial_rotary_factor", where,
                   _number(given, "partial_rotary_factor", where, usual))  # fmt: skip
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
        return replace(rope, factors=(_positive(found, "factor", where, 1.0),))
    if name == "llama3":
        keys = ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings", "factor")
        low, high, original, factor = (_positive(found, key, where) for key in keys)
        if low == high:
            raise ModelError(f"{where}: low_freq_factor and high_freq_factor are both {low}")
        return replace(rope, wavelengths=(low, high, original, factor))
    if name == "dynamic" and found.get("alpha"):  # HunYuan's: the base alone is stretched
        stretch = _positive(found, "alpha", where) ** (head_size / max(head_size - 2, 1))
        return replace(rope, theta=theta * stretch)
    if name == "dynamic":  # stretches what is longer than the context that the model says
        return rope
    most = _count(given, "max_position_embeddings", where, 2048)
    original = _count({**given, **found}, "original_max_position_embeddings", where, most)
    factor = _positive(found, "factor", where, most / original)
    if name == "yarn":
        made = _yarn(found, rope, factor, original, where)
        beta = _number(found, "llama_4_scaling_beta", where, 0.0)
        return replace(made, growth=(beta, original)) if family == "ministral3" else made
    if name in ("longrope", "su"):
        return _longrope(found, rope, factor, original, where)
    raise ModelError(f"{where}: positions of the type {name!r} are not known, but default, linear, "
                     "dynamic, llama3, yarn and longrope")  # fmt: skip


def _yarn(found: Mapping[str, Any], rope: Rope, factor: float, original: int, where: str) -> Rope:
    scales = [_number(found, key, where, 0.0) for key in ("mscale", "mscale_all_dim")]
    usual = yarn_amplitude(factor)
    if all(scales):
        usual = yarn_amplitude(factor, scales[0]) / yarn_amplitude(factor, scales[1])
    fast, slow = (
        _positive(found, "beta_fast", where, 32.0),
        _positive(found, "beta_slow", where, 1.0),
    )
    if rope.theta == 1 or not rope.size:
        raise ModelError(f"{where}: yarn needs a rope_theta other than 1, and pairs to rotate")
    whole = bool(found.get("truncate", True))
    divisors = yarn_divisors(rope.size // 2, rope.theta, factor, original, fast, slow, whole)
    amplitude = _positive(found, "attention_factor", where, usual)
    return replace(rope, factors=divisors, amplitude=amplitude)


def _longrope(
    found: Mapping[str, Any], rope: Rope, factor: float, original: int, where: str
) -> Rope:
    lists = []
    for key in ("short_factor", "long_factor"):
        values = _list(found, key, where)
        lists.append(tuple(_positive({key: v}, key, where) for v in values))
        if len(values) != rope.size // 2:
            raise ModelError(
                f"{where}: {key} has {len(values)} entries for {rope.size // 2} pairs of a head"
            )
    if original < 2:
        raise ModelError(f"{where}: original_max_position_embeddings is {original}")
    usual = longrope_amplitude(factor, original)
    amplitude = _positive(found, "attention_factor", where, usual)
    return replace(
        rope, factors=lists[0], long_factors=lists[1], original=original, amplitude=amplitude
    )
