"""What `slipway chat` does with long conversations and with models that are compiled already."""

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from slipway.cli.app import app
from slipway.cli.exit_codes import OptionError
from slipway.cli.language import chat
from slipway.cli.language.options import load
from slipway.llm.saved import DESCRIPTION

CONTEXT = 100


class Talker:
    """A model with a token for each letter, which answers with five."""

    def __init__(self):
        self.description = SimpleNamespace(context=CONTEXT)
        self.tokens = []
        self.requests = []

    def chat_tokens(self, messages):
        return list("".join(m["content"] for m in messages))

    def chat(self, messages, most, sampling):
        del most, sampling
        self.requests.append([m["content"] for m in messages])
        self.tokens = self.chat_tokens(messages)
        yield "reply"


def test_a_long_conversation_forgets_its_first_questions(monkeypatch):
    talker = Talker()
    monkeypatch.setattr(chat, "load", lambda *given: talker)
    questions = [letter * 30 for letter in "abcd"]
    lines = "\n".join(questions)
    made = CliRunner().invoke(app, ["chat", "model.gguf", "--system", "sys"], input=lines)
    assert made.exit_code == 0, made.output
    assert made.stdout.count("reply") == 4
    assert [request[1::2] for request in talker.requests] == [
        questions[:1], questions[:2], questions[1:3], questions[2:4],
    ]  # fmt: skip
    assert all(request[0] == "sys" for request in talker.requests)
    assert "longer than the 100 positions of the caches" in " ".join(made.stderr.split())


def test_a_question_too_long_for_the_caches_ends_nothing(monkeypatch):
    talker = Talker()
    monkeypatch.setattr(chat, "load", lambda *given: talker)
    lines = "\n".join(["a" * 30, "b" * (CONTEXT + 1), "c" * 30])
    made = CliRunner().invoke(app, ["chat", "model.gguf", "--system", "sys"], input=lines)
    assert made.exit_code == 1, made.output  # a pipe, whose other end sees no more than this
    assert [request[1::2] for request in talker.requests] == [["a" * 30], ["a" * 30, "c" * 30]]
    assert "tokens, and the caches hold 100: ask something shorter" in " ".join(made.stderr.split())


def test_who_types_a_question_that_is_too_long_has_seen_that_it_was(monkeypatch):
    lines = iter(["b" * (CONTEXT + 1), "c" * 30])

    def line(shown):
        for text in lines:
            return text
        raise EOFError

    monkeypatch.setattr(chat, "load", lambda *given: Talker())
    monkeypatch.setattr("builtins.input", line)
    monkeypatch.setattr(chat, "_is_typed", lambda: True)
    made = CliRunner().invoke(app, ["chat", "model.gguf"])
    assert made.exit_code == 0, made.output
    assert made.stdout.count("reply") == 1


def test_a_line_that_is_no_utf8_is_read_with_replacement_characters(monkeypatch):
    talker = Talker()
    monkeypatch.setattr(chat, "load", lambda *given: talker)
    lines = iter(["caf\udce9", "gr\u00fc\u00df"])  # as Python decodes what a terminal sends

    def line(shown):
        for text in lines:
            return text
        raise EOFError

    monkeypatch.setattr("builtins.input", line)
    made = CliRunner().invoke(app, ["chat", "model.gguf"])
    assert made.exit_code == 0, made.output
    assert [request[-1] for request in talker.requests] == ["caf\ufffd", "gr\u00fc\u00df"]


@pytest.mark.parametrize(
    ("option", "given"),
    [("--context", (64, "", None, None)), ("--quantise", (None, "q8_0", None, None)),
     ("--target", (None, "", "llvm", None)), ("--save", (None, "", None, "other")),
     ("--caches", (None, "", None, None, "float16"))],
)  # fmt: skip
def test_what_a_compiled_model_cannot_be_is_refused(tmp_path, option, given):
    (tmp_path / DESCRIPTION).write_text("{}")
    context, quantise, target, *others = given
    with pytest.raises(OptionError, match=f"{option}: .* is compiled already"):
        load(tmp_path, context, quantise, target, SimpleNamespace(remote=None), *others)
