"""A trained model: what it writes, and the perplexity of its compiled forms."""

import gc
import json

import numpy as np
import pytest
from character_model import FILE, HELD_OUT, TEXT, perplexity, tokens_of, trained, write_file
from decoder import logits

from slipway.llm.gguf_file import GGUFFile
from slipway.llm.gguf_model import model_of
from slipway.llm.model import LanguageModel, Source, compile_model
from slipway.llm.transformers_config import from_transformers
from slipway.relay.expr import Constant
from slipway.relay.ops.packed.block_formats import decode
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

OPENING = "When yellow leaves, or none, or few, do"


def exact(path):
    """Return the configuration of a file and the numbers that its bytes stand for."""
    config, weights, _ = model_of(GGUFFile(path))
    found = {}
    for name in weights.names:
        value = weights.read(name)
        blocks = getattr(value, "format", "")
        found[name] = decode(blocks, np.asarray(value.data), np.float64) if blocks else value
    return config, found


def compiled(path, target="llvm -mcpu=native", **options):
    config, weights, _ = model_of(GGUFFile(path))
    library, description = compile_model(
        Source("verse", config, weights, None), target, context=256, **options
    )
    return LanguageModel(GraphModule(library["default"](cpu())), description)


@pytest.fixture(scope="module")
def verse():
    return compiled(FILE, all_logits=True, rows=4)


def all_logits(model, tokens):
    """Return the compiled model's logits after each of the tokens."""
    module, at_once = model.module, model.description.rows
    rows = []
    for first in range(0, len(tokens), at_once):
        part = np.array(tokens[first : first + at_once], np.int32)
        module.run(tokens=part, position=np.array([first], np.int32))
        rows.append(module.get_output(0).numpy())
    return np.concatenate(rows)


def check_perplexity(path, model=None, within=0.02):
    """Hold logits and perplexity against exact arithmetic on the same weights."""
    config, weights = exact(path)
    model = compiled(path, all_logits=True, rows=64) if model is None else model
    for text in (TEXT[:150], HELD_OUT[:100]):
        tokens = tokens_of(text)
        want, found = logits(config, weights, np.array(tokens)), all_logits(model, tokens)
        error = found - want
        assert np.sqrt((error * error).mean()) < 0.03 * want.std()
        ratio = perplexity(found, tokens) / perplexity(want, tokens)
        assert abs(ratio - 1) < within


def test_it_goes_on_with_the_verse(verse):
    verse.reset()
    made = list(verse.generate(tokens_of(OPENING), 45, stop=()))
    following = TEXT[TEXT.index(OPENING) + len(OPENING) :]
    assert made == tokens_of(following)[1:46]


def test_its_tokenizer():
    pytest.importorskip("tokenizers")
    tokenizer = Source.read(FILE).tokenizer
    assert tokenizer.encode(TEXT) == tokens_of(TEXT)
    assert tokenizer.decode(tokens_of(TEXT)) == TEXT


def test_perplexity(verse):
    assert verse.description.caches == "float16"
    check_perplexity(FILE, verse)


def test_what_compiling_took_is_given_back():
    """The weights are in the module alone: neither the file's nor those of the graph stay."""
    before = [o for o in gc.get_objects() if type(o) is Constant]  # of other tests
    model = LanguageModel.from_file(FILE, context=64, rows=1)
    vocabulary = model.description.vocabulary
    known = set(map(id, before))
    kept = [
        o for o in gc.get_objects()
        if type(o) is Constant and id(o) not in known and o.array.shape[:1] == (vocabulary,)
    ]  # fmt: skip
    assert not kept
    assert model.feed([1, 2]).shape == (vocabulary,)


@pytest.mark.long
@pytest.mark.parametrize("name", ["", "q4_0"])
def test_perplexity_of_other_weights(name, tmp_path):
    config, weights = exact(FILE)
    path = tmp_path / "other.gguf"
    write_file(path, config, in_order(weights, config), name)
    check_perplexity(path)


def in_order(weights, config):
    """Return rows of query and key in transformers' order: pairs are halves of a head."""
    made = {}
    for name, value in weights.items():
        heads = config.heads if "q_proj" in name else config.kv_heads if "k_proj" in name else 0
        if heads:
            value = value.reshape(heads, -1, 2, value.shape[-1]).swapaxes(1, 2)
            value = value.reshape(-1, value.shape[-1])
        made[name] = np.asarray(value, np.float32)
    return made


@pytest.mark.long
def test_training_it_again(tmp_path):
    """A model of other sizes, trained here, from a folder as transformers writes them."""
    pytest.importorskip("transformers")
    settings, weights = trained(60, hidden_size=96, num_key_value_heads=4, intermediate_size=160)
    path = tmp_path / "trained.gguf"
    write_file(path, from_transformers(json.loads(json.dumps(settings))), weights, "q8_0")
    check_perplexity(path)
