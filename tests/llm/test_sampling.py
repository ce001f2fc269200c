"""Draws: how often each token comes, and which are left out."""

import numpy as np
import pytest

from slipway.errors import ArgumentValueError
from slipway.llm.sampling import Sampler, Sampling, likely, log_probabilities

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


def test_what_was_drawn_is_penalised():
    """Each draw makes a token less likely; what was not drawn stays as it is."""
    many = Sampler(Sampling(frequency=0.4))
    assert [many.pick(LOGITS) for _ in range(5)] == [1, 3, 1, 3, 2]
    once = Sampler(Sampling(presence=2.0))
    assert [once.pick(LOGITS) for _ in range(6)] == [1, 3, 2, 0, 1, 1]
    np.testing.assert_array_equal(LOGITS, np.log([0.1, 0.4, 0.2, 0.3]))


def test_biases_are_added():
    how = Sampling(1.0, seed=3, bias=((1, -100.0), (0, np.log(3.0))))
    sampler = Sampler(how)
    counts = np.bincount([sampler.pick(LOGITS) for _ in range(4000)], minlength=4)
    np.testing.assert_allclose(counts / 4000, [3 / 8, 0, 2 / 8, 3 / 8], atol=0.03)


def test_log_probabilities():
    found = log_probabilities((LOGITS + 500).astype(np.float32))
    np.testing.assert_allclose(found, LOGITS, atol=1e-4)
    assert log_probabilities(np.array([0, -np.inf]))[1] == -np.inf


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": -1}, {"temperature": np.nan}, {"top_k": -1}, {"top_p": 0}, {"top_p": 1.1},
     {"seed": -1}, {"presence": 2.1}, {"frequency": np.nan}, {"bias": ((3, 101.0),)}],
)  # fmt: skip
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ArgumentValueError, match=next(iter(wrong))):
        Sampling(**wrong)
