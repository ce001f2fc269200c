"""Choosing the next token from logits: greedy, or drawn with temperature, top-k and top-p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.errors import ArgumentValueError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; a `temperature` of 0 takes the likeliest.

    `top_k` keeps that many tokens (0: all), `top_p` the fewest of them whose probabilities sum to
    it; `seed` makes the draws repeatable.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.temperature) and self.temperature >= 0):
            raise ArgumentValueError(f"temperature is {self.temperature}: it must be 0 or more")
        if self.top_k < 0:
            raise ArgumentValueError(f"top_k is {self.top_k}: it must be 0 (all tokens) or more")
        if not 0 < self.top_p <= 1:
            raise ArgumentValueError(f"top_p is {self.top_p}: it must be above 0 and at most 1")
        if self.seed is not None and self.seed < 0:
            raise ArgumentValueError(f"seed is {self.seed}: it must be 0 or more")


class Sampler:
    """Draws tokens one after the other; each has its own random numbers."""

    def __init__(self, how: Sampling) -> None:
        self.how = how
        self._random = np.random.default_rng(how.seed)

    def pick(self, logits: Array) -> int:
        """Return a token for the logits (vocabulary,)."""
        logits = np.asarray(logits, np.float64).reshape(-1)
        how = self.how
        if how.temperature == 0 or how.top_k == 1:
            return int(logits.argmax())
        order, weights = likely(logits, how)
        return int(order[self._random.choice(len(order), p=weights)])


def likely(logits: Array, how: Sampling) -> tuple[Any, Any]:
    """Return the tokens that may be drawn, the likeliest first, and their probabilities."""
    count = len(logits)
    keep = min(how.top_k or count, count)
    if keep < count:
        order = np.argpartition(logits, count - keep)[count - keep :]
        order = order[np.argsort(-logits[order], kind="stable")]
    else:
        order = np.argsort(-logits, kind="stable")
    scaled = (logits[order] - logits[order[0]]) / how.temperature
    weights = np.exp(scaled)
    weights /= weights.sum()
    if how.top_p < 1:
        last = int(np.searchsorted(np.cumsum(weights), how.top_p)) + 1
        order, weights = order[:last], weights[:last]
        weights = weights / weights.sum()
    return order, weights
