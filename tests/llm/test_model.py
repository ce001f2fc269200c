"""What a model remembers, generates and refuses; models that are saved and opened."""

import numpy as np
import pytest
from decoder import logits, random_weights
from tests.llm.test_network import loaded, source

from slipway.errors import ArgumentValueError, ExecutionError, ModelError
from slipway.llm.model import (
    LanguageModel,
    cache_bytes,
    compile_model,
    usual_caches,
)
from slipway.llm.sampling import Sampling
from slipway.llm.saved import save
from slipway.relay.ops.packed.block_formats import decode, encode
from slipway.target import Target


@pytest.fixture(scope="module")
def parts():
    given, weights = source("llama", seed=3)
    return given, weights, loaded(given, context=24, rows=8)


def greedy(given, weights, tokens, count):
    tokens = list(tokens)
    for _ in range(count):
        tokens.append(int(logits(given.config, weights, tokens)[-1].argmax()))
    return tokens[-count:]


def test_it_continues_greedily(parts):
    given, weights, model = parts
    model.reset()
    assert list(model.generate([3, 1, 4], 9, stop=())) == greedy(given, weights, [3, 1, 4], 9)


def test_a_prompt_keeps_what_it_shares(parts):
    given, weights, model = parts
    model.reset()
    model.prompt([5, 6, 7, 8])
    want = logits(given.config, weights, [5, 6, 9])[-1]
    np.testing.assert_allclose(model.prompt([5, 6, 9]), want, atol=1e-4)
    assert model.tokens == [5, 6, 9]
    np.testing.assert_allclose(model.prompt([5, 6, 9]), want, atol=1e-4)
    want = logits(given.config, weights, [5, 6])[-1]
    np.testing.assert_allclose(model.prompt([5, 6]), want, atol=1e-4)


def test_a_refused_prompt_leaves_no_logits_of_before(parts):
    """What is held is shortened to what the prompt shares; then the prompt is refused."""
    given, weights, model = parts
    model.reset()
    model.prompt([5, 6, 7])
    with pytest.raises(ExecutionError, match="not in the vocabulary"):
        model.prompt([5, 99999])
    want = logits(given.config, weights, [5])[-1]
    np.testing.assert_allclose(model.prompt([5]), want, atol=1e-4)


def test_it_ends_with_the_caches_and_with_a_stop(parts):
    model = parts[2]
    model.reset()
    made = list(model.generate([3, 1, 4], stop=()))
    assert len(made) == 24 - 3 + 1  # the last token needs no place
    assert list(model.generate([3, 1, 4], stop=[made[5]])) == made[: made.index(made[5])]


def test_too_many_tokens_are_refused_before_any_is_computed(parts):
    _, _, model = parts
    model.reset()
    model.feed([1] * 20)
    with pytest.raises(ExecutionError, match=r"5 tokens after 20 .* 24 positions"):
        model.feed([2] * 5)
    assert model.room == 4
    with pytest.raises(ExecutionError, match=r"prompt of 25 tokens .* 24 positions"):
        model.prompt([2] * 25)
    with pytest.raises(ExecutionError, match=r"token 50 is not in the vocabulary of 50"):
        model.feed([50])
    with pytest.raises(ExecutionError, match=r"at least one token"):
        model.feed([])
    with pytest.raises(ModelError, match=r"without a tokenizer"):
        model.encode("text")
    assert model.tokens == [1] * 20


def test_a_context_that_does_not_fit_is_refused(parts, monkeypatch):
    given = parts[0]
    with pytest.raises(ModelError, match=r"41 positions: llama knows 1 to 40"):
        compile_model(given, "llvm", context=41)
    with pytest.raises(ArgumentValueError, match=r"rows is 0"):
        compile_model(given, "llvm", rows=0)
    monkeypatch.setattr("slipway.llm.model._memory", lambda: 1000)
    with pytest.raises(ModelError, match=r"caches of 40 positions .* smaller context"):
        compile_model(given, "llvm")


def test_what_caches_hold(parts):
    """Halves with weights in blocks, where an instruction converts them; what is asked for else."""
    given, f16c = parts[0], "llvm -mcpu=x86-64-v3"
    for options, want in (
        ((f16c,), "float32"), ((f16c, "q8_0"), "float16"),
        (("llvm -mcpu=x86-64", "q8_0"), "float32"),
        (("llvm -mtriple=aarch64-linux-gnu", "q4_0"), "float16"),
        (("llvm -mtriple=wasm32", "q8_0"), "float32"),
    ):  # fmt: skip
        assert usual_caches(given, Target(options[0]), *options[1:]) == want
    assert cache_bytes(given.config, 40, "bfloat16") * 2 == cache_bytes(given.config, 40)
    with pytest.raises(ArgumentValueError, match=r"caches is 'int8'.* float16, bfloat16"):
        compile_model(given, "llvm", caches="int8")
    for wrong in ("q9", "q4_1", "Q4_0"):
        with pytest.raises(ArgumentValueError, match=rf"quantise is '{wrong}'.* q8_0, q4_0"):
            compile_model(given, "llvm", quantise=wrong)


@pytest.mark.parametrize(("caches", "unit"), [("float16", 2**-10), ("bfloat16", 2**-7)])
def test_the_error_of_halves(parts, caches, unit):
    """Each key and value is off by half a unit; the logits, of the largest, by one at most."""
    given, weights, _ = parts
    model = loaded(given, rows=4, caches=caches)
    assert model.description.caches == caches
    tokens = [3, 1, 4, 1, 5, 9, 2]
    want = logits(given.config, weights, tokens)[-1]
    assert np.abs(model.feed(tokens) - want).max() < unit * np.abs(want).max()


def test_saved_and_opened(parts, tmp_path):
    given, weights, _ = parts
    library, description = compile_model(given, "llvm", context=16, rows=1)
    save(tmp_path / "model", library, description, None)
    model = LanguageModel.open(tmp_path / "model")
    assert model.description == description
    assert list(model.generate([3, 1, 4], 4, stop=())) == greedy(given, weights, [3, 1, 4], 4)
    (tmp_path / "model" / "model.json").write_text("{}")
    with pytest.raises(ModelError, match=r"model.json cannot be read"):
        LanguageModel.open(tmp_path / "model")


def test_quantised_weights_are_near(parts):
    """The error of data in int8, measured against the same weights in float64."""
    given = parts[0]
    weights = random_weights(given.config, np.random.default_rng(3))
    rounded = {
        name: decode("q8_0", encode("q8_0", value)) if value.ndim == 2 else value
        for name, value in weights.items()
    }
    model = loaded(given, quantise="q8_0", rows=4)
    tokens = [3, 1, 4, 1, 5, 9, 2]
    want = logits(given.config, rounded, tokens)[-1]
    assert np.abs(model.feed(tokens) - want).max() < 0.03 * np.abs(want).max()


def test_draws_repeat_with_a_seed(parts):
    model = parts[2]
    how = Sampling(1.0, top_k=20, top_p=0.9, seed=7)
    first = list(model.generate([3, 1], 8, how, stop=()))
    assert first == list(model.generate([3, 1], 8, how, stop=()))
    assert first != list(model.generate([3, 1], 8, Sampling(1.0, seed=8), stop=()))
