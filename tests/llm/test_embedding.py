"""Vectors of texts: what files say of them, and their numbers."""

import json

import numpy as np
import pytest
from tests.llm.test_network import SIZES, peer_of, source

from slipway.errors import ArgumentValueError, ExecutionError, ModelError
from slipway.llm.embedding import Pooling, pooling_of_folder, pooling_of_gguf
from slipway.llm.model import LanguageModel, Source, compile_model
from slipway.llm.saved import save
from slipway.llm.weights import Weights
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule


def loaded(given, **options):
    library, description = compile_model(given, "llvm", **options)
    return LanguageModel(GraphModule(library["default"](cpu())), description)


def write(folder, pooling=None, modules=None):
    (folder / "1_Pooling").mkdir(exist_ok=True)
    if pooling is not None:
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if modules is not None:
        named = [{"idx": i, "type": kind} for i, kind in enumerate(modules)]
        (folder / "modules.json").write_text(json.dumps(named))


OF = "sentence_transformers.models."


@pytest.mark.parametrize(
    ("pooling", "modules", "wanted"),
    [
        (None, None, Pooling()),
        ({"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False},
         [OF + "Transformer", OF + "Pooling", OF + "Normalize"], Pooling("last", True)),
        ({"pooling_mode_mean_tokens": True}, [OF + "Transformer", OF + "Pooling"],
         Pooling("mean", False)),
        ({"pooling_mode_cls_token": True}, None, Pooling("cls", True)),
        ({"pooling_mode": "lasttoken"}, None, Pooling("last", True)),
        ({"pooling_mode": "mean"}, None, Pooling("mean", True)),
    ],
)  # fmt: skip
def test_what_a_folder_says(tmp_path, pooling, modules, wanted):
    write(tmp_path, pooling, modules)
    assert pooling_of_folder(tmp_path) == wanted


@pytest.mark.parametrize(
    ("pooling", "modules", "words"),
    [
        ({"pooling_mode_weightedmean_tokens": True}, None, "pooled in another way than mean or"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, None, "another way"),
        (None, [OF + "Transformer", OF + "Pooling", OF + "Dense"], "made by Dense as well"),
        ([1], None, "damaged: it holds list"),
    ],
)
def test_what_a_folder_says_and_is_not_known(tmp_path, pooling, modules, words):
    write(tmp_path, pooling, modules)
    with pytest.raises(ModelError, match=words):
        pooling_of_folder(tmp_path)
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be read"):
        pooling_of_folder(tmp_path)


def test_what_a_gguf_file_says():
    for kind, how in ((1, "mean"), (2, "cls"), (3, "last"), (0, ""), (None, ""), ("3", "")):
        given = {"general.architecture": "qwen3", "qwen3.pooling_type": kind}
        assert pooling_of_gguf(given) == Pooling(how)


@pytest.mark.parametrize("how", ["mean", "last", "cls"])
def test_the_rows_before_the_logits_are_pooled(how):
    pytest.importorskip("torch")
    torch, peer, given = peer_of("qwen3", **SIZES, head_dim=8)
    model = loaded(given, rows=4, pooling=how)
    for count in (1, 4, 9):
        tokens = np.random.default_rng(count).integers(0, 50, count)
        with torch.no_grad():
            rows = peer.model(torch.tensor(tokens)[None]).last_hidden_state[0].numpy()
        want = {"mean": rows.mean(0), "last": rows[-1], "cls": rows[0]}[how]
        found = model.embed_tokens(tokens)
        np.testing.assert_allclose(found, want / np.linalg.norm(want), atol=2e-6)


def test_files_of_the_layers_alone(tmp_path):
    given, _ = source("llama", seed=3)
    plain = loaded(given, pooling="mean")
    names = [n.removeprefix("model.") for n in given.weights.names if n != "lm_head.weight"]
    bare = Weights(names, lambda name: given.weights.read(f"model.{name}"))
    other = Source("bare", given.config, bare, None, Pooling("mean", False))
    library, description = compile_model(other, "llvm")
    assert (description.pooling, description.normalised) == ("mean", False)
    save(tmp_path / "saved", library, description, None)
    model = LanguageModel.open(tmp_path / "saved")
    made = model.embed_tokens([1, 2, 3])
    np.testing.assert_allclose(
        made / np.linalg.norm(made), plain.embed_tokens([1, 2, 3]), rtol=1e-6
    )


def test_what_is_refused():
    given, _ = source("llama", seed=3)
    writes, reads = loaded(given), loaded(given, pooling="cls")
    with pytest.raises(ExecutionError, match="is compiled to write text"):
        writes.embed_tokens([1])
    with pytest.raises(ExecutionError, match="is compiled to make vectors"):
        next(reads.generate([1]))
    with pytest.raises(ExecutionError, match="41 tokens is longer than the 40 positions"):
        reads.embed_tokens([1] * 41)
    with pytest.raises(ArgumentValueError, match="pooling is 'max': write one of mean, last, cls"):
        compile_model(given, "llvm", pooling="max")
