"""An HTTP server with the interface of OpenAI's: /v1/models, /v1/completions, /v1/chat/completions.

One model answers one request at a time; the others wait.  With ``"stream": true`` the text comes as
server-sent events.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from slipway.errors import ArgumentValueError, MissingPackageError, SlipwayError
from slipway.llm.model import LanguageModel
from slipway.llm.sampling import Sampling
from slipway.version import install_line

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MOST_BODY = 1 << 22  # bytes of a request
MOST_TOKENS = 512  # that are made where a request does not say
LOOK_AFTER_S = 0.5  # at whether the client still waits


# What a request may ask for and this server does not do: what it says where it asks for nothing.
UNSERVED: dict[str, tuple[Any, ...]] = {
    "n": (1,), "best_of": (1,), "echo": (False,), "suffix": ("",), "logprobs": (False,),
    "top_logprobs": (0,), "logit_bias": ({},), "tools": ([],), "functions": ([],),
    "frequency_penalty": (0,), "presence_penalty": (0,),
    "response_format": ({"type": "text"},),
}  # fmt: skip


class UnknownModelError(ArgumentValueError):
    """A request names a model that the server does not have."""


class Answer:
    """One request: what is generated, counted, and how it ended."""

    def __init__(self, model: LanguageModel, body: dict[str, Any], is_chat: bool) -> None:
        self.model, self.is_chat = model, is_chat
        name = model.description.name
        if body.get("model") not in (None, name):
            raise UnknownModelError(f"the model {body['model']!r} is not here: {name!r} is served")
        for parameter, nothing in UNSERVED.items():
            if body.get(parameter) is not None and body[parameter] not in nothing:
                raise ArgumentValueError(
                    f"'{parameter}' is {body[parameter]!r}: that is not served"
                )
        self.tokens = _chat(model, body) if is_chat else _prompt(model, body.get("prompt"))
        if not self.tokens:
            raise ArgumentValueError(
                "the prompt is empty, and the model has no token that begins a text: give it a text"
            )
        if len(self.tokens) >= model.description.context:
            raise ArgumentValueError(
                f"the prompt has {len(self.tokens)} tokens; the model's context is "
                f"{model.description.context}"
            )
        most = body.get("max_completion_tokens", body.get("max_tokens"))
        self.most = MOST_TOKENS if most is None else _whole("max_tokens", most, 1)
        seed = body.get("seed")
        self.sampling = Sampling(
            _real("temperature", body.get("temperature"), 1.0),
            _whole("top_k", body.get("top_k") or 0, 0),
            _real("top_p", body.get("top_p"), 1.0),
            None if seed is None else _whole("seed", seed, -(2**63)) % 2**64,
        )
        stop = body.get("stop") or []
        self.stops = [stop] if isinstance(stop, str) else stop
        if not isinstance(stop, str | list) or not all(isinstance(s, str) and s for s in stop):
            raise ArgumentValueError("'stop' must be a text or a list of texts")
        self.streams = body.get("stream")
        if self.streams not in (None, False, True):
            raise ArgumentValueError(f"'stream' is {self.streams!r}: it must be true or false")
        self.made = 0
        self.reason = "stop"

    def pieces(self) -> Iterator[str]:
        """Yield the text, up to one of the stops."""
        assert self.model.tokenizer is not None  # it made the tokens
        held = ""
        longest = max((len(s) for s in self.stops), default=0)
        for piece in self.model.tokenizer.pieces(self._counted()):
            held += piece
            ends = [at for s in self.stops if (at := held.find(s)) >= 0]
            if ends:
                self.reason = "stop"
                yield held[: min(ends)]
                return
            safe = len(held) - longest + 1 if longest else len(held)
            if safe > 0:
                yield held[:safe]
                held = held[safe:]
        if held:
            yield held

    def _counted(self) -> Iterator[int]:
        for token in self.model.generate(self.tokens, self.most, self.sampling):
            self.made += 1
            yield token
            if self.made == self.most or self.model.room < 1:
                self.reason = "length"

    def usage(self) -> dict[str, int]:
        """Return the counts of tokens."""
        read = len(self.tokens)
        return {"prompt_tokens": read, "completion_tokens": self.made,
                "total_tokens": read + self.made}  # fmt: skip


def _chat(model: LanguageModel, body: dict[str, Any]) -> list[int]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ArgumentValueError("'messages' must be a list of {role, content}, one at least")
    return model.chat_tokens([_plain(m) for m in messages])


def _prompt(model: LanguageModel, prompt: Any) -> list[int]:
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        (prompt,) = prompt
    if isinstance(prompt, str):
        return model.encode(prompt)
    count = model.description.vocabulary
    if isinstance(prompt, list) and prompt and all(type(t) is int for t in prompt):
        wrong = next((t for t in prompt if not 0 <= t < count), None)
        if wrong is not None:
            raise ArgumentValueError(f"the token {wrong} is not in the vocabulary of {count}")
        return prompt
    raise ArgumentValueError("'prompt' must be one text, or the tokens of one")


def _plain(message: Any) -> dict[str, str]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = [p.get("text") if isinstance(p, dict) else None for p in content]
        kinds = {p.get("type", "text") for p in content if isinstance(p, dict)}
        if not all(isinstance(text, str) for text in texts) or kinds - {"text"}:
            raise ArgumentValueError("the parts of a 'content' must be texts: no others are served")
        content = "".join(str(text) for text in texts)
    if not isinstance(content, str) or not isinstance(message.get("role"), str):
        raise ArgumentValueError("a message needs a 'role' and a 'content', both texts")
    return {"role": message["role"], "content": content}


def _whole(name: str, value: Any, minimum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ArgumentValueError(f"'{name}' must be a whole number of at least {minimum}")
    return value


def _real(name: str, value: Any, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentValueError(f"'{name}' must be a number")
    return float(value)


def application(model: LanguageModel) -> Starlette:
    """Return the ASGI application that serves `model`."""
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError:
        raise MissingPackageError(
            f"serving needs starlette and uvicorn: {install_line('web')}"
        ) from None

    service = _Service(model)

    async def no_such_thing(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _refused(f"{request.method} {request.url.path}: {error.detail}", error.status_code)

    return Starlette(
        routes=[
            Route("/v1/models", service.models),
            Route("/v1/models/{name:path}", service.one_model),
            Route("/v1/completions", service.complete, methods=["POST"]),
            Route("/v1/chat/completions", service.complete, methods=["POST"]),
        ],
        exception_handlers={HTTPException: no_such_thing},
    )


def _refused(problem: str, status: int = 400, code: str | None = None) -> Response:
    from starlette.responses import JSONResponse

    error = {"message": problem, "type": "invalid_request_error", "param": None, "code": code}
    return JSONResponse({"error": error}, status)


class _Service:
    """One model, which answers one request at a time."""

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.name = model, model.description.name
        self.busy = asyncio.Lock()
        self.entry = {
            "id": self.name, "object": "model", "created": int(time.time()), "owned_by": "slipway",
        }  # fmt: skip

    async def models(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        del request
        return JSONResponse({"object": "list", "data": [self.entry]})

    async def one_model(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        wanted = request.path_params["name"]
        if wanted != self.name:
            problem = f"the model {wanted!r} is not here: {self.name!r} is served"
            return _refused(problem, 404, "model_not_found")
        return JSONResponse(self.entry)

    async def complete(self, request: Request) -> Response:
        from starlette.responses import JSONResponse, StreamingResponse

        is_chat = request.url.path.endswith("/chat/completions")
        raw = b""
        async for part in request.stream():
            raw += part
            if len(raw) > MOST_BODY:
                return _refused(f"a request may have {MOST_BODY} bytes", 413)
        try:
            body = json.loads(raw)
            if not isinstance(body, dict):
                return _refused("the body must be a JSON object")
            answer = Answer(self.model, body, is_chat)
        except RecursionError:
            return _refused("the body is nested too deeply")
        except UnknownModelError as error:
            return _refused(str(error), 404, "model_not_found")
        except SlipwayError as error:
            return _refused(str(error))
        except ValueError as error:  # of bytes that are no text, too
            return _refused(f"the body is no JSON: {error}")
        made = _Form(is_chat, self.name)
        if answer.streams:
            options = body.get("stream_options")
            usage = isinstance(options, dict) and bool(options.get("include_usage"))
            events = _events(answer, made, self.busy, usage)
            return StreamingResponse(events, media_type="text/event-stream")
        try:
            async with self.busy:
                text = await _whole_text(answer, request)
        except SlipwayError as error:
            return _refused(str(error), 500)
        return JSONResponse(made.whole(text, answer))


async def _whole_text(answer: Answer, request: Request) -> str:
    """Return the text, or what there is of it when the client goes away: nobody waits for more."""
    text, pieces, looked = "", answer.pieces(), time.monotonic()
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        text += piece
        if time.monotonic() - looked > LOOK_AFTER_S:
            if await request.is_disconnected():
                break
            looked = time.monotonic()
    return text


async def _events(
    answer: Answer, made: _Form, busy: asyncio.Lock, usage: bool
) -> AsyncIterator[str]:
    """Yield the events of a stream; the model is free again when the client goes away."""
    await busy.acquire()
    step: asyncio.Future[str | None] | None = None
    try:
        if answer.is_chat:
            yield made.event({"role": "assistant", "content": ""}, None)
        pieces = answer.pieces()
        while True:
            step = asyncio.ensure_future(asyncio.to_thread(next, pieces, None))
            piece = await asyncio.shield(step)
            if piece is None:
                break
            yield made.event({"content": piece} if answer.is_chat else piece, None)
        yield made.event({} if answer.is_chat else "", answer.reason)
        if usage:
            yield made.usage(answer)
        yield "data: [DONE]\n\n"
    except SlipwayError as error:
        yield f"data: {json.dumps({'error': {'message': str(error)}})}\n\n"
    finally:
        if step is None or step.done():
            busy.release()
        else:  # the client went away while a thread computes: the model is free when it has
            step.add_done_callback(lambda done: busy.release())


class _Form:
    """The JSON of an answer."""

    def __init__(self, is_chat: bool, name: str) -> None:
        self.is_chat = is_chat
        kind = "chatcmpl" if is_chat else "cmpl"
        self.head = {"id": f"{kind}-{uuid.uuid4().hex}", "created": int(time.time()), "model": name}

    def whole(self, text: str, answer: Answer) -> dict[str, Any]:
        """Return the answer as one object."""
        said: dict[str, Any] = {"text": text}
        if self.is_chat:
            said = {"message": {"role": "assistant", "content": text}}
        choice = {"index": 0, **said, "finish_reason": answer.reason}
        kind = "chat.completion" if self.is_chat else "text_completion"
        return {**self.head, "object": kind, "choices": [choice], "usage": answer.usage()}

    def event(self, part: Any, reason: str | None) -> str:
        """Return one event of a stream."""
        key = "delta" if self.is_chat else "text"
        return self._event(choices=[{"index": 0, key: part, "finish_reason": reason}])

    def usage(self, answer: Answer) -> str:
        """Return the event that counts the tokens of a stream, its last."""
        return self._event(choices=[], usage=answer.usage())

    def _event(self, **parts: Any) -> str:
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        return f"data: {json.dumps({**self.head, 'object': kind, **parts})}\n\n"
