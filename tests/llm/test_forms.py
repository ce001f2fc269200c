"""Answers in a form: JSON, and JSON of a schema."""

import json

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("llguidance")

from served import COUNT, END, Saying, chat, letters, streamed
from tokenizers import Tokenizer as Inner
from tokenizers import models

from slipway.errors import ArgumentValueError, ModelError
from slipway.llm.forms import FormMaker
from slipway.llm.serving.server import application
from slipway.llm.tokenizer import Tokenizer

SCHEMA = {
    "type": "object", "required": ["city", "days", "kind"], "additionalProperties": False,
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 6},
        "days": {"type": "array", "items": {"type": "integer", "minimum": 3, "maximum": 12},
                 "minItems": 1, "maxItems": 3},
        "kind": {"enum": ["a", "ü"]},
    },
}  # fmt: skip


def kept(schema=SCHEMA, **more):
    return {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, **more}}


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_drawn_is_of_the_schema(seed):
    model = Saying("Sure! Here is the JSON:")
    status, body = chat(
        application(model), response_format=kept(strict=True), temperature=2, seed=seed
    )
    choice = body["choices"][0]
    made = json.loads(choice["message"]["content"])
    assert (status, choice["finish_reason"]) == (200, "stop")
    assert sorted(made) == ["city", "days", "kind"]
    assert 1 <= len(made["city"]) <= 6
    assert all(3 <= day <= 12 for day in made["days"])
    assert made["kind"] in ("a", "ü")


def test_an_answer_in_the_form_stays_as_it_is():
    text = '{"city": "Rome", "days": [3, 12], "kind": "ü"}'
    app = application(Saying(text + " and more"))
    assert chat(app, response_format=kept())[1]["choices"][0]["message"]["content"] == text
    deltas, reason = streamed(app, response_format=kept())
    assert ("".join(d.get("content", "") for d in deltas), reason) == (text, "stop")
    _, body = chat(app, response_format=kept(), max_tokens=len(text.encode()))
    assert body["choices"][0]["finish_reason"] == "stop"
    _, body = chat(app, response_format=kept(), max_tokens=5)
    assert body["choices"][0]["finish_reason"] == "length"


def test_an_object_of_any_kind():
    app = application(Saying('{"a": [1, {"b": null}], "c": "d"} tail'))
    _, body = chat(app, response_format={"type": "json_object"})
    assert json.loads(body["choices"][0]["message"]["content"]) == {
        "a": [1, {"b": None}], "c": "d"
    }  # fmt: skip
    _, body = chat(app, response_format={"type": "text"})
    assert body["choices"][0]["message"]["content"].endswith(" tail")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("json", "'response_format' is 'json'"), ({"type": "xml"}, "its type must be 'text'"),
        ({"type": "json_schema"}, "json_schema of {name, schema}"),
        (kept(5), "json_schema of {name, schema}"),
        (kept({"type": "quark"}), "'response_format' cannot be kept to: Invalid type: quark"),
        (kept({"$ref": "#/nowhere"}), "'response_format' cannot be kept to"),
        (kept({"type": "string", "pattern": "(?=a)b"}), "'response_format' cannot be kept to"),
    ],
)  # fmt: skip
def test_what_is_refused(wanted, words):
    model = Saying("x")
    status, body = chat(application(model), response_format=wanted)
    assert status == 400
    assert words in body["error"]["message"]
    assert body["error"]["param"] == "response_format"
    assert not model.prompts


def test_tokens_that_do_not_fit_are_left_out():
    maker = FormMaker(letters(), COUNT, [END])
    form = maker.form(maker.of_schema({"enum": [12, 13]}, "x"))
    digits = {d: maker_token for d in "0123" for maker_token in letters().encode(d)}
    for expected, taken in (("1", "1"), ("23", "3")):
        left = form.allowed(np.zeros(COUNT))
        fits = {d for d, token in digits.items() if left[token] == 0}
        assert fits == set(expected)
        assert not form.is_complete
        form.take(digits[taken])
    with pytest.raises(ModelError, match="form fails"):
        form.take(digits["0"])


def test_tokens_that_the_library_cannot_read():
    words = Tokenizer(Inner(models.WordLevel({"a": 0, "b": 1}, unk_token="a")))
    with pytest.raises(ModelError, match="answers in a form are not served: llguidance"):
        FormMaker(words, 2, [1])
    with pytest.raises(ArgumentValueError, match="g cannot be kept to"):
        FormMaker(letters(), COUNT, [END]).of_lark("start: (", "g")
