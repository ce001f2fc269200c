"""The HTTP server of language models: what it answers, and what it refuses."""

import asyncio
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("starlette")

from slipway.llm.serving import server
from slipway.llm.serving.server import application

CONTEXT, LETTERS = 64, 128


class Echo:
    """A model of letters that says the alphabet, from the letter behind the prompt's last."""

    def __init__(self):
        self.description = SimpleNamespace(name="echo", context=CONTEXT, vocabulary=LETTERS,
                                           chat_template="", pooling="")  # fmt: skip
        self.tokenizer = SimpleNamespace(
            pieces=lambda tokens: map(chr, tokens), decode=lambda tokens: "".join(map(chr, tokens))
        )
        self.wanted = []
        self.room = CONTEXT
        self.made = 0
        self.wait = threading.Event()
        self.wait.set()

    def encode(self, text):
        return [ord(letter) for letter in text]

    def chat_tokens(self, messages, tools=None):
        return self.encode(messages[-1]["content"])

    def generate(self, tokens, most, how, seen=None, form=None):
        assert form is None
        assert how.temperature >= 0
        self.wanted.append(how)
        for number in range(most):
            self.wait.wait(20)
            self.made += 1
            token = ord("a") + (tokens[-1] - ord("a") + 1 + number) % 26
            if seen is not None:  # the token has twice the weight of the one below it
                logits = np.full(LETTERS, -np.inf)
                logits[[token, token - 1]] = 0, -np.log(2)
                seen(token, logits)
            yield token


def ask(app, path, body=None, method=None, gone=False):
    """Return the status and the text of one request; the client of `gone` does not wait."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    method = method or ("GET" if body is None else "POST")
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": [],
        "query_string": b"", "scheme": "http", "server": ("here", 80), "root_path": "",
        "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
    }  # fmt: skip
    sent = []
    waiting = [{"type": "http.request", "body": raw, "more_body": False}]

    async def receive():
        if waiting:
            return waiting.pop()
        if not gone:
            await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    text = b"".join(m.get("body", b"") for m in sent[1:]).decode()
    return sent[0]["status"], text


@pytest.fixture
def model():
    return Echo()


@pytest.fixture
def app(model):
    return application(model)


def test_texts_and_tokens_are_continued(app):
    for prompt in ("a", ["a"], [ord("a")]):
        status, text = ask(app, "/v1/completions", {"prompt": prompt, "max_tokens": 3, "seed": -5})
        answer = json.loads(text)
        assert (status, answer["choices"][0]["text"]) == (200, "bcd")
        assert answer["usage"]["total_tokens"] == 4
        assert answer["choices"][0]["finish_reason"] == "length"


def test_a_chat_of_parts(app):
    parts = [{"type": "text", "text": "x"}, {"type": "text", "text": "c"}]
    request = {"messages": [{"role": "user", "content": parts}], "max_tokens": 9, "stop": ["gh"]}
    status, text = ask(app, "/v1/chat/completions", {**request, "model": "echo", "n": 1})
    assert status == 200
    choice = json.loads(text)["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("def", "stop")


@pytest.mark.parametrize("usage", [False, True])
def test_a_stream_counts_its_tokens_where_asked(app, usage):
    request = {"prompt": "a", "max_tokens": 2, "stream": True}
    request |= {"stream_options": {"include_usage": True}} if usage else {}
    status, text = ask(app, "/v1/completions", request)
    *events, end, _ = text.split("\n\n")
    assert (status, end) == (200, "data: [DONE]")
    events = [json.loads(event.removeprefix("data: ")) for event in events]
    assert "".join(c["text"] for e in events for c in e["choices"]) == "bc"
    counts = [e["usage"]["completion_tokens"] for e in events if "usage" in e]
    assert counts == ([2] if usage else [])


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"prompt": "x" * CONTEXT}, 400, "64 tokens; the model's context is 64"),
        ({"prompt": 5}, 400, "'prompt' must be one text"), ({"n": 0}, 400, "'n' must be a whole"),
        ({"prompt": ["a", 5]}, 400, "'prompt' must be"), ({"prompt": []}, 400, "'prompt' must be"),
        ({"prompt": ["a"] * 9, "n": 20}, 400, "more than 128"), ({"n": 129}, 400, "at most 128"),
        ({"prompt": ["a"] * 129}, 400, "'prompt' has 129 texts"),
        ({"n": 2, "best_of": 3}, 400, "'best_of' must be 'n'"),
        ({"logprobs": 21}, 400, "'logprobs' is 21: at most 20"),
        ({"logprobs": True}, 400, "'logprobs' must be a whole number"),
        ({"presence_penalty": 3}, 400, "presence penalty is 3"),
        ({"frequency_penalty": 10**400}, 400, "'frequency_penalty' is larger than"),
        ({"logit_bias": {"128": 1}}, 400, "token 128, which is not in the vocabulary of 128"),
        ({"logit_bias": {"a": 1}}, 400, "'logit_bias' must be"),
        ({"logit_bias": {"3": 101}}, 400, "bias of token 3 is 101"),
        ({"tools": [{"type": "function"}]}, 400, "that is not served"),
        ({"tool_choice": "required"}, 400, "'tool_choice' is 'required': that is not served"),
        ({"modalities": ["text", "audio"]}, 400, "'modalities' is ['text', 'audio']"),
        ({"audio": {"voice": "x"}}, 400, "'audio' is"),
        ({"stream_options": {}}, 400, "'stream_options' needs 'stream'"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, 400, "'stream_options' is"),
        ({"prompt": ""}, 400, "the prompt is empty"), ({"stream": "no"}, 400, "'stream' is 'no'"),
        ({"prompt": [1, LETTERS]}, 400, "token 128 is not in the vocabulary of 128"),
        ({"prompt": [True]}, 400, "'prompt' must be one text"),
        ({"stop": 5}, 400, "'stop' must be"), ({"stop": {"a": 1}}, 400, "'stop' must be"),
        ({"stop": [""]}, 400, "'stop' must be"), ({"max_tokens": 0}, 400, "'max_tokens'"),
        ({"temperature": -1}, 400, "temperature is -1"), ({"echo": True}, 400, "'echo' is True"),
        ({"model": "gpt-4"}, 404, "'gpt-4' is not here: 'echo' is served"),
    ],
)  # fmt: skip
def test_what_is_refused(app, model, change, status, words):
    found, text = ask(app, "/v1/completions", {"prompt": "a", "max_tokens": 2, **change})
    error = json.loads(text)["error"]
    assert found == status
    assert words in error["message"]
    assert error["code"] == ("model_not_found" if status == 404 else None)
    assert error["param"] == (words.split("'")[1] if words.startswith("'") and status == 400
                              else error["param"])  # fmt: skip
    assert not model.made


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (None, "'messages' must be"), ([], "one at least"), (["hi"], "'role' and a 'content'"),
        ([{"role": "user", "content": None}], "'role' and a 'content'"),
        ([{"role": "user", "content": [{"type": "text", "text": 5}]}], "parts of a 'content'"),
        ([{"role": "user", "content": [{"type": "image_url", "text": ""}]}], "no others"),
        ([{"role": "user", "content": ["hi"]}], "parts of a 'content'"),
    ],
)  # fmt: skip
def test_messages_that_are_refused(app, messages, words):
    status, text = ask(app, "/v1/chat/completions", {"messages": messages})
    assert status == 400
    assert words in json.loads(text)["error"]["message"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [(b'{"prompt"', "the body is no JSON: Expecting"), (b"\xff\xfe{", "the body is no JSON"),
     (b"[]", "must be a JSON object"), (b'{"prompt":' + b"[" * 100_000, "nested too deeply")],
)  # fmt: skip
def test_bodies_that_are_no_requests(app, raw, words):
    status, text = ask(app, "/v1/completions", raw)
    assert status == 400
    assert words in json.loads(text)["error"]["message"]


def test_places_that_are_not_there_say_so_in_json(app):
    assert json.loads(ask(app, "/v1/models/echo")[1])["id"] == "echo"
    for path, method, wanted in (
        ("/v1/models/other", "GET", 404), ("/v1/images", "POST", 404),
        ("/v1/completions", "GET", 405),
    ):  # fmt: skip
        status, text = ask(app, path, method=method)
        assert status == wanted
        assert json.loads(text)["error"]["message"]
    assert "/v1/chat/completions" in json.loads(ask(app, "/v1/images", {})[1])["error"]["message"]


def test_health(app):
    found = json.loads(ask(app, "/health")[1])
    assert found == {"status": "ok", "model": "echo", "busy": False}


@pytest.mark.parametrize(("origins", "wanted"), [((), None), (["*"], "*"), (["http://a"], None)])
def test_pages_of_origins_that_are_allowed(model, origins, wanted):
    from starlette.testclient import TestClient

    client = TestClient(application(model, origins))
    how = {"Origin": "http://b", "Access-Control-Request-Method": "POST",
           "Access-Control-Request-Headers": "authorization, content-type"}  # fmt: skip
    allowed = client.options("/v1/chat/completions", headers=how)
    made = client.post("/v1/completions", json={"prompt": "a", "max_tokens": 2},
                       headers={"Origin": "http://b"})  # fmt: skip
    assert made.status_code == 200
    for answer in (allowed, made):
        assert answer.headers.get("access-control-allow-origin") == wanted
    assert (allowed.status_code == 200) == (wanted is not None)


def test_each_prompt_has_its_answers(app, model):
    request = {"prompt": ["a", "k"], "n": 2, "max_tokens": 2, "seed": 7}
    status, text = ask(app, "/v1/completions", request)
    answer = json.loads(text)
    found = [(choice["index"], choice["text"]) for choice in answer["choices"]]
    assert (status, found) == (200, [(0, "bc"), (1, "bc"), (2, "lm"), (3, "lm")])
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 8, "total_tokens": 10}
    assert [how.seed for how in model.wanted] == [7, 8, 7, 8]  # else both answers were the same
    assert ask(app, "/v1/completions", {**request, "prompt": [[97], [98, 99]]})[0] == 200


def test_a_stream_of_several_answers_says_which(app):
    request = {"messages": [{"role": "developer", "content": "a"}], "n": 2, "max_tokens": 2}
    _, text = ask(app, "/v1/chat/completions", {**request, "stream": True})
    events = [json.loads(e.removeprefix("data: ")) for e in text.split("\n\n")[:-2]]
    texts = {0: "", 1: ""}
    for event in events:
        (choice,) = event["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
    assert texts == {0: "bc", 1: "bc"}
    assert [e["choices"][0]["finish_reason"] for e in events].count("length") == 2


def test_log_probabilities_of_a_text(app):
    request = {"prompt": "a", "max_tokens": 3, "logprobs": 2, "stop": "d"}
    found = json.loads(ask(app, "/v1/completions", request)[1])["choices"][0]
    assert found["text"] == "bc"  # and none of what the stop leaves out is told
    told = found["logprobs"]
    assert (told["tokens"], told["text_offset"]) == (["b", "c"], [0, 1])
    assert told["token_logprobs"] == pytest.approx([np.log(2 / 3)] * 2)
    assert told["top_logprobs"][1] == pytest.approx({"c": np.log(2 / 3), "b": np.log(1 / 3)})
    found = json.loads(ask(app, "/v1/completions", {**request, "logprobs": 0})[1])["choices"][0]
    assert found["logprobs"]["top_logprobs"] is None


@pytest.mark.parametrize("streams", [False, True])
def test_log_probabilities_of_a_chat(app, streams):
    request = {
        "messages": [{"role": "user", "content": "a"}], "max_completion_tokens": None,
        "max_tokens": 2, "logprobs": True, "top_logprobs": 1, "stream": streams,
    }  # fmt: skip
    _, text = ask(app, "/v1/chat/completions", request)
    if streams:
        events = [json.loads(e.removeprefix("data: ")) for e in text.split("\n\n")[:-2]]
        told = [e["choices"][0]["logprobs"] for e in events]
        entries = [entry for one in told if one for entry in one["content"]]
    else:
        entries = json.loads(text)["choices"][0]["logprobs"]["content"]
    assert [(e["token"], e["bytes"]) for e in entries] == [("b", [98]), ("c", [99])]
    assert entries[1]["top_logprobs"][0]["token"] == "c"
    del request["logprobs"]
    status, text = ask(app, "/v1/chat/completions", {**request, "stream": False})
    assert (status, "needs 'logprobs'" in text) == (400, True)


def test_what_draws_are_told(app, model):
    more = {"presence_penalty": 0.5, "frequency_penalty": -1, "logit_bias": {"98": -100},
            "top_p": 0, "temperature": 2}  # fmt: skip
    assert ask(app, "/v1/completions", {"prompt": "a", "max_tokens": 1, **more})[0] == 200
    (how,) = model.wanted
    assert (how.presence, how.frequency, how.bias) == (0.5, -1, ((98, -100),))
    assert (how.top_k, how.top_p) == (1, 1)  # the fewest tokens that have any probability


def test_nothing_is_made_for_a_client_that_went_away(app, model, monkeypatch):
    monkeypatch.setattr(server, "LOOK_AFTER_S", 0)
    ask(app, "/v1/completions", {"prompt": "a", "max_tokens": 500, "n": 9}, gone=True)
    assert model.made == 1
    status, text = ask(app, "/v1/completions", {"prompt": "a", "max_tokens": 2})
    assert (status, json.loads(text)["choices"][0]["text"]) == (200, "bc")
