"""Choosing the next token from logits: greedy, or drawn with temperature, top-k and top-p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import ArgumentValueError

if TYPE_CHECKING:
    from slipway.llm.forms import Form

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; a `temperature` of 0 takes the likeliest.

    `top_k` keeps that many tokens (0: all), `top_p` the fewest of them whose probabilities sum to
    it; `seed` makes the draws repeatable.  From the logit of a token that was drawn before
    `presence` is subtracted, and `frequency` for each time that it was; `bias` is added to those of
    the tokens that it names.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None
    presence: float = 0.0
    frequency: float = 0.0
    bias: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        if not (np.isfinite(self.temperature) and self.temperature >= 0):
            raise ArgumentValueError(f"temperature is {self.temperature}: it must be 0 or more")
        if self.top_k < 0:
            raise ArgumentValueError(f"top_k is {self.top_k}: it must be 0 (all tokens) or more")
        if not 0 < self.top_p <= 1:
            raise ArgumentValueError(f"top_p is {self.top_p}: it must be above 0 and at most 1")
        if self.seed is not None and self.seed < 0:
            raise ArgumentValueError(f"seed is {self.seed}: it must be 0 or more")
        for name, value in (("presence", self.presence), ("frequency", self.frequency)):
            if not -2 <= value <= 2:
                raise ArgumentValueError(f"{name} penalty is {value}: it must be from -2 to 2")
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in self.bias):
            raise ArgumentValueError(
                f"bias is {self.bias}: write pairs of a token's number and what is added"
            )
        for token, value in self.bias:
            if not -100 <= value <= 100:
                raise ArgumentValueError(
                    f"the bias of token {token} is {value}: it must be from -100 to 100"
                )


class Sampler:
    """Draws tokens one after the other, each with its own random numbers, of a form where given."""

    def __init__(self, how: Sampling, form: Form | None = None) -> None:
        self.how, self.form = how, form
        self._random = np.random.default_rng(how.seed)
        self._made: dict[int, int] = {}  # tokens that were drawn, and how often

    def pick(self, logits: Array) -> int:
        """Return a token for the logits (vocabulary,)."""
        how = self.how
        logits = self._adjusted(np.asarray(logits, np.float64).reshape(-1))
        if self.form is not None:
            logits = self.form.allowed(logits)
        if how.temperature == 0 or how.top_k == 1:
            token = int(logits.argmax())
        else:
            order, weights = likely(logits, how)
            token = int(order[self._random.choice(len(order), p=weights)])
        self._made[token] = self._made.get(token, 0) + 1
        if self.form is not None:
            self.form.take(token)
        return token

    def _adjusted(self, logits: Array) -> Array:
        """Return the logits with penalties and biases."""
        how = self.how
        if not (how.bias or (self._made and (how.presence or how.frequency))):
            return logits
        logits = logits.copy()
        for token, value in how.bias:
            logits[token] += value
        for token, count in self._made.items():
            logits[token] -= how.presence + how.frequency * count
        return logits


def log_probabilities(logits: Array) -> Array:
    """Return the logarithms of the probabilities that logits (vocabulary,) stand for."""
    logits = np.asarray(logits, np.float64).reshape(-1)
    below = logits - logits.max()
    made: Array = below - np.log(np.exp(below).sum())
    return made


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
