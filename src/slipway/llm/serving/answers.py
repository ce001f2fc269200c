"""What a client of the HTTP server asks for, and the texts that a model answers it with.

A request has an answer for each of its prompts, or `n` for each.  An answer comes in pieces, with
the probabilities of its tokens where the client wants them.  Where a request names functions, what
the model writes is parted into what it says and what it calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slipway.errors import ArgumentValueError
from slipway.llm.forms import Form
from slipway.llm.model import LanguageModel
from slipway.llm.sampling import Sampling, log_probabilities
from slipway.llm.serving.messages import messages_of
from slipway.llm.serving.requests import named_model, real, texts_of, whole
from slipway.llm.serving.tools import Call, CallReader, Tools, tools_of

MOST_TOKENS = 512  # that are made where a request does not say
MOST_ANSWERS = 128  # of one request
MOST_LIKELY = 20  # tokens whose probabilities are told beside that of the one taken

# What a request may ask for and this server does not do: what it says where it asks for nothing.
UNSERVED: dict[str, tuple[Any, ...]] = {
    "echo": (False,), "suffix": ("",), "functions": ([],), "function_call": ("none", "auto"),
    "audio": (), "modalities": (["text"],), "web_search_options": (),
}  # fmt: skip
OF_CHATS: dict[str, tuple[Any, ...]] = {"tools": ([],), "tool_choice": ("none", "auto")}


@dataclass
class Token:
    """A token of an answer: its text, its log-probability, and the likeliest in its place."""

    text: str
    logprob: float
    likeliest: list[tuple[str, float]]
    at: int = 0  # of its text in the answer's


@dataclass
class AnswerRequest:
    """What one body asks for.  Raises ArgumentValueError for what is wrong or not served."""

    model: LanguageModel
    body: dict[str, Any]
    is_chat: bool
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        model, body = self.model, self.body
        named_model(model, body)
        if model.description.pooling:
            raise ArgumentValueError(
                f"{model.description.name!r} makes vectors of texts and writes none: ask "
                "/v1/embeddings"
            )
        unserved = UNSERVED if self.is_chat else {**UNSERVED, **OF_CHATS}
        for parameter, nothing in unserved.items():
            if body.get(parameter) is not None and body[parameter] not in nothing:
                raise ArgumentValueError(
                    f"'{parameter}' is {body[parameter]!r}: that is not served"
                )
        self.tools: Tools | None = None
        given = body.get("prompt")
        if self.is_chat:
            prompts = [self._chat()]
        else:
            prompts = texts_of(model, "prompt", given, MOST_ANSWERS, model.encode)
        self.grammar = self._grammar()
        for tokens in prompts:
            _fits(model, tokens)
        self.prompt_tokens = sum(map(len, prompts))
        limits = (body.get(key) for key in ("max_completion_tokens", "max_tokens"))
        most = next((value for value in limits if value is not None), MOST_TOKENS)
        self.most = whole("max_tokens", most, 1)
        self.likely = _likely(body, self.is_chat)
        stop = body.get("stop") or []
        self.stops = [stop] if isinstance(stop, str) else stop
        if not isinstance(stop, str | list) or not all(isinstance(s, str) and s for s in stop):
            raise ArgumentValueError("'stop' must be a text or a list of texts")
        self.streams = body.get("stream")
        if self.streams not in (None, False, True):
            raise ArgumentValueError(f"'stream' is {self.streams!r}: it must be true or false")
        self.counts = _counts_stream(body)
        count = 1 if body.get("n") is None else whole("n", body["n"], 1, MOST_ANSWERS)
        if body.get("best_of") not in (None, count):
            raise ArgumentValueError("'best_of' must be 'n': all that is made is answered")
        if count * len(prompts) > MOST_ANSWERS:
            raise ArgumentValueError(f"'n' answers to each prompt are more than {MOST_ANSWERS}")
        how = _sampling(body, model.description.vocabulary)
        for tokens in prompts:
            for number in range(count):
                # Draws of one seed are the same: each answer to a prompt has its own.
                seed = None if how.seed is None else (how.seed + number) % 2**64
                own = Answer(self, tokens, len(self.answers), replace(how, seed=seed))
                self.answers.append(own)

    def _chat(self) -> list[int]:
        """Return the tokens of the messages, which tell of the functions that may be called."""
        model, body = self.model, self.body
        messages = messages_of(body.get("messages"))
        plain = model.chat_tokens(messages)
        self.tools = tools_of(
            body, model.description.chat_template,
            lambda tools: model.chat_tokens(messages, tools) != plain,
        )  # fmt: skip
        return plain if self.tools is None else model.chat_tokens(messages, self.tools.listed)

    def _grammar(self) -> str | None:
        """Return the form that each answer must have, None where it is free."""
        schema = _schema(self.body.get("response_format"))
        forced = self.tools is not None and self.tools.forced
        if schema is not None and self.tools is not None:
            raise ArgumentValueError("'response_format' beside 'tools' is not served: leave one")
        if schema is not None:
            return self.model.forms.of_schema(schema, "'response_format'")
        if forced and self.tools is not None:
            forms = self.model.forms
            return forms.of_lark(self.tools.grammar(forms.marker), "'tool_choice'")
        return None

    def usage(self) -> dict[str, int]:
        """Return the counts of tokens."""
        made = sum(answer.made for answer in self.answers)
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": made,
                "total_tokens": self.prompt_tokens + made}  # fmt: skip


@dataclass
class Answer:
    """One text: what is generated, counted, and how it ended."""

    request: AnswerRequest
    tokens: list[int]
    index: int
    sampling: Sampling
    made: int = 0
    reason: str = "stop"
    _new: list[Token] = field(default_factory=list)  # whose text has not come yet

    def parts(self) -> Iterator[tuple[str, list[Token], list[Call]]]:
        """Yield what is said, its tokens, and what is called."""
        if self.request.tools is None:
            for text, tokens in self.pieces():
                yield text, tokens, []
            return
        reader = CallReader(self.request.tools)
        for text, tokens in self.pieces():
            said, calls = reader.take(text)
            if reader.calls and not said.strip():  # a line between two calls
                said = ""
            yield said, tokens, calls
            if reader.is_full:
                break
        said, calls = ("", []) if reader.is_full else reader.finish()
        if reader.calls:
            self.reason, said = "tool_calls", said if said.strip() else ""
        if said or calls:
            yield said, [], calls

    def pieces(self) -> Iterator[tuple[str, list[Token]]]:
        """Yield the text, up to one of the stops, and the tokens that begin in each piece."""
        tokenizer, stops = self.request.model.tokenizer, self.request.stops
        assert tokenizer is not None  # it made the tokens
        held, out = "", 0
        waiting: list[Token] = []
        longest = max((len(s) for s in stops), default=0)

        def until(end: int) -> list[Token]:
            found = [token for token in waiting if token.at < end]
            waiting[:] = waiting[len(found) :]
            return found

        for piece in tokenizer.pieces(self._counted()):
            for token in self._new:
                token.at = out + len(held)
            waiting += self._new
            self._new.clear()
            held += piece
            ends = [at for s in stops if (at := held.find(s)) >= 0]
            if ends:
                self.reason = "stop"
                yield held[: min(ends)], until(out + min(ends))
                return
            safe = len(held) - longest + 1 if longest else len(held)
            if safe > 0:
                yield held[:safe], until(out + safe)
                held, out = held[safe:], out + safe
        if held or waiting or self._new:
            yield held, waiting + self._new

    def _counted(self) -> Iterator[int]:
        request = self.request
        seen = None if request.likely is None else self._seen
        form: Form | None = None
        if request.grammar is not None:
            form = request.model.forms.form(request.grammar)
        for token in request.model.generate(
            self.tokens, request.most, self.sampling, seen=seen, form=form
        ):
            self.made += 1
            yield token
            ends = form is not None and form.is_complete
            if not ends and (self.made == request.most or request.model.room < 1):
                self.reason = "length"

    def _seen(self, token: int, logits: Any) -> None:
        """Note a token's probability."""
        tokenizer = self.request.model.tokenizer
        assert tokenizer is not None
        known = log_probabilities(logits)
        count = self.request.likely or 0
        order = np.argsort(-known, kind="stable")[:count]
        likeliest = [(tokenizer.decode([int(t)]), float(known[t])) for t in order]
        self._new.append(Token(tokenizer.decode([token]), float(known[token]), likeliest))


def _fits(model: LanguageModel, tokens: list[int]) -> None:
    if not tokens:
        raise ArgumentValueError(
            "the prompt is empty, and the model has no token that begins a text: give it a text"
        )
    if len(tokens) >= model.description.context:
        raise ArgumentValueError(
            f"the prompt has {len(tokens)} tokens; the model's context is "
            f"{model.description.context}"
        )


def _sampling(body: dict[str, Any], vocabulary: int) -> Sampling:
    """Return how tokens are drawn."""
    seed = body.get("seed")
    top_p = real("top_p", body.get("top_p"), 1.0)
    top_k = whole("top_k", body.get("top_k") or 0, 0)
    given = body.get("logit_bias") or {}
    if not isinstance(given, dict) or not all(isinstance(t, str) and t.isdecimal() for t in given):
        raise ArgumentValueError("'logit_bias' must be an object of tokens' numbers and biases")
    bias = tuple((int(t), real("logit_bias", value, 0.0)) for t, value in given.items())
    wrong = next((t for t, _ in bias if t >= vocabulary), None)
    if wrong is not None:
        raise ArgumentValueError(
            f"'logit_bias' names the token {wrong}, which is not in the vocabulary of {vocabulary}"
        )
    return Sampling(
        real("temperature", body.get("temperature"), 1.0),
        top_k if top_p else 1,  # the fewest tokens that have any probability: the likeliest
        top_p or 1.0,
        None if seed is None else whole("seed", seed, -(2**63)) % 2**64,
        real("presence_penalty", body.get("presence_penalty"), 0.0),
        real("frequency_penalty", body.get("frequency_penalty"), 0.0),
        bias,
    )


def _counts_stream(body: dict[str, Any]) -> bool:
    """Return whether a stream ends with the counts of tokens."""
    options = body.get("stream_options")
    if options is None:
        return False
    usage = options.get("include_usage", False) if isinstance(options, dict) else 0
    if usage is not None and not isinstance(usage, bool):
        raise ArgumentValueError(
            f"'stream_options' is {options!r}: it must be an object, whose include_usage is true "
            "or false"
        )
    if not body.get("stream"):
        raise ArgumentValueError("'stream_options' needs 'stream' to be true")
    return bool(usage)


def _likely(body: dict[str, Any], is_chat: bool) -> int | None:
    """Return how many likely tokens are told beside each that is taken; None where none are."""
    wanted = body.get("logprobs")
    if not is_chat:
        wanted = None if wanted is False else wanted
        return None if wanted is None else whole("logprobs", wanted, 0, MOST_LIKELY)
    if wanted not in (None, False, True):
        raise ArgumentValueError(f"'logprobs' is {wanted!r}: it must be true or false")
    count = whole("top_logprobs", body.get("top_logprobs") or 0, 0, MOST_LIKELY)
    if count and not wanted:
        raise ArgumentValueError("'top_logprobs' needs 'logprobs' to be true")
    return count if wanted else None


def _schema(wanted: Any) -> dict[str, Any] | None:
    """Return the schema of the form that an answer is asked for, None for any text."""
    if wanted is None or wanted == {"type": "text"}:
        return None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "json_object":
        return {"type": "object"}
    named = wanted.get("json_schema") if kind == "json_schema" else None
    schema = named.get("schema") if isinstance(named, dict) else None
    if not isinstance(schema, dict):
        raise ArgumentValueError(
            f"'response_format' is {wanted!r}: its type must be 'text', 'json_object', or "
            "'json_schema' with a json_schema of {name, schema}"
        )
    return schema
