"""What a language model looks like: sizes, and what its family does differently.

`transformers_config` reads the ``config.json`` of a transformers folder; `gguf_model` the metadata
of a GGUF file.  The families differ in norms, biases, activation and positions only, so that one
network serves them.
"""

from __future__ import annotations

from dataclasses import dataclass

from slipway.errors import ModelError
from slipway.llm.missing import KINDS

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
    A layer `is_sparse` whose feed-forward is a mixture of experts, and `is_conv` one that has a
    short convolution for attention.
    """

    rope: Rope
    window: int = 0
    score_scale: float = 1.0
    is_sparse: bool = False
    is_conv: bool = False


@dataclass(frozen=True)
class Experts:
    """A mixture of experts: `used` of `count`, each of `feed_forward` elements.

    `scores` of a token are a softmax over all experts or sigmoids; those used may be `normalised`
    to a sum of 1, and are multiplied with `scale`.  All tokens pass an expert of `shared` elements.
    """

    count: int
    used: int
    feed_forward: int
    scores: str = "softmax"
    normalised: bool = True
    scale: float = 1.0
    shared: int = 0


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
    # A joint matrix lies in so many parts, each with rows of queries, values and keys.
    joint_parts: int = 0
    slopes: tuple[float, ...] = ()  # of heads: a score is less by that for each position before
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
    taps: int = 0  # of the layers' convolutions
    experts: Experts | None = None  # of the layers that are sparse
    names: tuple[tuple[str, str], ...] = ()  # parts of weights' names: here, in the files
    end_tokens: tuple[int, ...] = ()
    begin_token: int | None = None


MOST_LAYERS = 10_000


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
