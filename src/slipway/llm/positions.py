"""Longer contexts than a model was trained for: what its angles are divided by.

YaRN divides the frequencies of long waves by a factor and leaves short ones as they are, between
two numbers of rotations over the original context.  "longrope" (Phi-3) lists a divisor for each
pair of a head, one list for the original context and one for a longer one.  Both make the rotated
vectors longer, so that scores stay as sharp.
"""

from __future__ import annotations

import math

import numpy as np


def yarn_divisors(
    pairs: int, theta: float, factor: float, original: float,
    fast: float = 32.0, slow: float = 1.0, whole: bool = True,
) -> tuple[float, ...]:  # fmt: skip
    """Return what the frequency of each pair is divided by.

    Pairs with more than `fast` rotations over `original` positions keep their frequency, those with
    fewer than `slow` get it divided by `factor`; `whole`: the ends between are whole numbers.
    """

    def pair_of(rotations: float) -> float:
        return pairs * math.log(original / (rotations * 2 * math.pi)) / math.log(theta)

    low, high = pair_of(fast), pair_of(slow)
    if whole:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * pairs - 1)
    high += 0.001 * (low == high)
    kept = 1 - np.clip((np.arange(pairs) - low) / (high - low), 0, 1)
    return tuple(map(float, 1 / ((1 - kept) / factor + kept)))


def yarn_amplitude(factor: float, scale: float = 1.0) -> float:
    """Return how much longer YaRN makes the rotated vectors."""
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def longrope_amplitude(factor: float, original: float) -> float:
    """Return how much longer "longrope" makes the rotated vectors."""
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0


def alibi_slopes(heads: int, most: float = 8.0, ceiling: bool = False) -> tuple[float, ...]:
    """Return ALiBi's slopes: 2 to the powers of -most / n, -2 most / n, ... for a power of two n.

    Of other numbers of heads the slopes between those of twice as many follow (or, with `ceiling`,
    come from the next power of two, every second one first, as MPT has them).
    """
    whole = 2 ** math.floor(math.log2(heads))
    if ceiling and whole != heads:
        finer = alibi_slopes(2 * whole, most)
        return (*finer[1::2], *finer[::2])[:heads]
    slopes = tuple(2 ** (-most * (i + 1) / whole) for i in range(whole))
    if whole == heads:
        return slopes
    finer = tuple(2 ** (-most * (i + 1) / (2 * whole)) for i in range(2 * whole))
    return (*slopes, *finer[::2][: heads - whole])
