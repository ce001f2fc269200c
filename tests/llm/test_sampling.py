"""Draws: how often each token comes, and which are left out."""

import numpy as np
import pytest

from slipway.errors import ArgumentValueError
from slipway.llm.sampling import Sampler, Sampling, likely

LOGITS = np.log([0.1, 0.4, 0.2, 0.3])


def test_greedy_takes_the_likeliest():
    assert Sampler(Sampling()).pick(LOGITS) == 1
    assert Sampler(Sampling(2.0, top_k=1)).pick(LOGITS) == 1


@pytest.mark.parametrize(
    ("how", "want"),
    [
        (Sampling(1.0), [0.1, 0.4, 0.2, 0.3]),
        (Sampling(1.0, top_k=2), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(1.0, top_p=0.7), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(1.0, top_p=0.71), [0, 4 / 9, 2 / 9, 3 / 9]),
        (Sampling(1.0, top_p=1e-9), [0, 1, 0, 0]),
        (Sampling(0.5), np.array([1, 16, 4, 9]) / 30),
        (Sampling(1.0, top_k=99), [0.1, 0.4, 0.2, 0.3]),
    ],
)
def test_probabilities(how, want):
    order, weights = likely(LOGITS, how)
    found = np.zeros(4)
    found[order] = weights
    np.testing.assert_allclose(found, want, atol=1e-12)


def test_draws_follow_them():
    sampler = Sampler(Sampling(1.0, seed=1))
    counts = np.bincount([sampler.pick(LOGITS) for _ in range(4000)], minlength=4)
    np.testing.assert_allclose(counts / 4000, np.exp(LOGITS), atol=0.03)


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": -1}, {"temperature": np.nan}, {"top_k": -1}, {"top_p": 0}, {"top_p": 1.1},
     {"seed": -1}],
)  # fmt: skip
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ArgumentValueError, match=next(iter(wrong))):
        Sampling(**wrong)
