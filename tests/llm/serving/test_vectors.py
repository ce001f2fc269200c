"""/v1/embeddings: what is answered and refused."""

import base64
import json

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("tokenizers")

from served import Saying, ask, letters
from tests.llm.test_network import source

from slipway.llm.model import LanguageModel, compile_model
from slipway.llm.serving.server import application
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule


@pytest.fixture(scope="module")
def model():
    given, _ = source("llama", seed=3, vocab_size=257)
    library, description = compile_model(given, "llvm", rows=4, pooling="last")
    return LanguageModel(GraphModule(library["default"](cpu())), description, letters())


@pytest.fixture(scope="module")
def app(model):
    return application(model)


def vectors(app, **body):
    status, text = ask(app, "/v1/embeddings", body)
    return status, json.loads(text)


def test_each_text_has_its_vector(app, model):
    status, body = vectors(app, input=["one text", "ü", [1, 2]], model="llama")
    assert status == 200
    assert [one["index"] for one in body["data"]] == [0, 1, 2]
    assert body["usage"] == {"prompt_tokens": 12, "total_tokens": 12}
    for one, text in zip(body["data"], ("one text", "ü"), strict=False):
        np.testing.assert_allclose(one["embedding"], model.embed(text), rtol=1e-6)
        assert np.linalg.norm(one["embedding"]) == pytest.approx(1)
    np.testing.assert_allclose(body["data"][2]["embedding"], model.embed_tokens([1, 2]), rtol=1e-6)


def test_bytes_and_fewer_dimensions(app):
    _, plain = vectors(app, input="text")
    _, coded = vectors(app, input="text", encoding_format="base64")
    whole = np.array(plain["data"][0]["embedding"], "f4")
    found = np.frombuffer(base64.b64decode(coded["data"][0]["embedding"]), "<f4")
    np.testing.assert_array_equal(found, whole)
    _, short = vectors(app, input="text", dimensions=5)
    np.testing.assert_allclose(
        short["data"][0]["embedding"], whole[:5] / np.linalg.norm(whole[:5]), rtol=1e-6
    )
    assert len(vectors(app, input="text", dimensions=500)[1]["data"][0]["embedding"]) == len(whole)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "'input' must be one text"), ({"input": []}, 400, "'input' must be"),
        ({"input": ["a", 5]}, 400, "'input' must be"), ({"input": ""}, 400, "has 0 tokens"),
        ({"input": [257]}, 400, "the token 257 is not in the vocabulary of 257"),
        ({"input": "x" * 41}, 400, "a text has 41 tokens; the model takes 1 to 40"),
        ({"input": "a", "encoding_format": "f8"}, 400, "'encoding_format' is 'f8'"),
        ({"input": "a", "dimensions": 0}, 400, "'dimensions' must be a whole number"),
        ({"input": ["a"] * 2049}, 400, "'input' has 2049 texts; 2048 are served"),
        ({"input": "a", "model": "ada"}, 404, "'ada' is not here"),
    ],
)  # fmt: skip
def test_what_is_refused(app, body, status, words):
    found, answer = vectors(app, **body)
    assert found == status
    assert words in answer["error"]["message"]


def test_a_model_serves_texts_or_vectors(app):
    for path, body in (
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    ):
        status, text = ask(app, path, body)
        assert (status, "ask /v1/embeddings" in json.loads(text)["error"]["message"]) == (400, True)
    status, body = vectors(application(Saying("x")), input="a")
    assert (status, "--embeddings" in body["error"]["message"]) == (400, True)
