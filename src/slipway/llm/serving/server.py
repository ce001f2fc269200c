"""An HTTP server with OpenAI's interface: models, completions, chat completions, embeddings.

One model answers one request at a time; the others wait.  With ``"stream": true`` the text comes as
server-sent events.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from slipway.errors import MissingPackageError, SlipwayError
from slipway.llm.model import LanguageModel
from slipway.llm.serving.answers import Answer, AnswerRequest, Token
from slipway.llm.serving.requests import UnknownModelError
from slipway.llm.serving.tools import Call
from slipway.llm.serving.vectors import VectorRequest
from slipway.version import install_line

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

SERVED = "/v1/models, /v1/completions, /v1/chat/completions, /v1/embeddings and /health"
MOST_BODY = 1 << 22  # bytes of a request
LOOK_AFTER_S = 0.5  # at whether the client still waits


def application(model: LanguageModel, origins: Sequence[str] = ()) -> Starlette:
    """Return the ASGI application that serves `model`.

    Pages of the `origins` may ask it from a browser: ``"*"`` stands for all.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.middleware.cors import CORSMiddleware
        from starlette.routing import Route
    except ImportError:
        raise MissingPackageError(
            f"serving needs starlette and uvicorn: {install_line('web')}"
        ) from None

    service = _Service(model)

    async def no_such_thing(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        problem = f"{request.method} {request.url.path}: {error.detail}. Served are {SERVED}"
        return _refused(problem, error.status_code)

    allowed = Middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=["*"],
                         allow_headers=["*"])  # fmt: skip
    return Starlette(
        middleware=[allowed] if origins else [],
        routes=[
            Route("/health", service.health),
            Route("/v1/models", service.models),
            Route("/v1/models/{name:path}", service.one_model),
            Route("/v1/completions", service.complete, methods=["POST"]),
            Route("/v1/chat/completions", service.complete, methods=["POST"]),
            Route("/v1/embeddings", service.embed, methods=["POST"]),
        ],
        exception_handlers={HTTPException: no_such_thing},
    )


def _refused(problem: str, status: int = 400, code: str | None = None) -> Response:
    from starlette.responses import JSONResponse

    named = re.match(r"'(\w+)'", problem)  # what it is about
    param = named[1] if named else None
    error = {"message": problem, "type": "invalid_request_error", "param": param, "code": code}
    return JSONResponse({"error": error}, status)


class _Service:
    """One model, which answers one request at a time."""

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.name = model, model.description.name
        self.busy = asyncio.Lock()
        self.entry = {
            "id": self.name, "object": "model", "created": int(time.time()), "owned_by": "slipway",
        }  # fmt: skip

    async def health(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        del request
        return JSONResponse({"status": "ok", "model": self.name, "busy": self.busy.locked()})

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
        wanted = await _read(request, lambda body: AnswerRequest(self.model, body, is_chat))
        if not isinstance(wanted, AnswerRequest):
            return wanted
        made = _Form(is_chat, self.name)
        if wanted.streams:
            events = _events(wanted, made, self.busy)
            return StreamingResponse(events, media_type="text/event-stream")
        try:
            async with self.busy:
                choices = []
                for answer in wanted.answers:
                    said, gone = await _whole(answer, request)
                    choices.append(made.choice(answer, said))
                    if gone:
                        break
        except SlipwayError as error:
            return _refused(str(error), 500)
        return JSONResponse(made.whole(choices, wanted))

    async def embed(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        wanted = await _read(request, lambda body: VectorRequest(self.model, body))
        if not isinstance(wanted, VectorRequest):
            return wanted
        try:
            async with self.busy:
                data = []
                for number in range(len(wanted.texts)):
                    data.append(await asyncio.to_thread(wanted.vector, number))
                    if await request.is_disconnected():
                        break
        except SlipwayError as error:
            return _refused(str(error), 500)
        return JSONResponse(wanted.whole(data))


Wanted = TypeVar("Wanted")


async def _read(request: Request, made: Callable[[dict[str, Any]], Wanted]) -> Wanted | Response:
    """Return what is made of a request's body, or the answer that refuses it."""
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > MOST_BODY:
            return _refused(f"a request may have {MOST_BODY} bytes", 413)
    try:
        body = json.loads(raw)
        if not isinstance(body, dict):
            return _refused("the body must be a JSON object")
        return made(body)
    except RecursionError:
        return _refused("the body is nested too deeply")
    except UnknownModelError as error:
        return _refused(str(error), 404, "model_not_found")
    except SlipwayError as error:
        return _refused(str(error))
    except ValueError as error:  # of bytes that are no text, too
        return _refused(f"the body is no JSON: {error}")


@dataclass
class _Said:
    """A whole answer: its text, the tokens that are told, and what it calls."""

    text: str = ""
    tokens: list[Token] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


async def _whole(answer: Answer, request: Request) -> tuple[_Said, bool]:
    """Return an answer, or what there is of it when the client went away."""
    parts, looked = answer.parts(), time.monotonic()
    said = _Said()
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        text, tokens, calls = part
        said = _Said(said.text + text, said.tokens + tokens, said.calls + calls)
        if time.monotonic() - looked > LOOK_AFTER_S:
            if await request.is_disconnected():
                return said, True
            looked = time.monotonic()
    return said, False


async def _events(wanted: AnswerRequest, made: _Form, busy: asyncio.Lock) -> AsyncIterator[str]:
    """Yield the events of a stream; the model is free again when the client goes away."""
    await busy.acquire()
    step: asyncio.Future[tuple[str, list[Token], list[Call]] | None] | None = None
    try:
        for answer in wanted.answers:
            if wanted.is_chat:
                yield made.event(answer, {"role": "assistant", "content": ""})
            parts, called = answer.parts(), 0
            while True:
                step = asyncio.ensure_future(asyncio.to_thread(next, parts, None))
                part = await asyncio.shield(step)
                if part is None:
                    break
                text, tokens, calls = part
                if text or tokens or wanted.tools is None:
                    yield made.event(answer, {"content": text} if wanted.is_chat else text, tokens)
                for call in calls:
                    told = {"index": called, **call.as_json()}
                    yield made.event(answer, {"tool_calls": [told]})
                    called += 1
            yield made.event(answer, {} if wanted.is_chat else "", reason=answer.reason)
        if wanted.counts:
            yield made.usage(wanted)
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

    def whole(self, choices: list[dict[str, Any]], wanted: AnswerRequest) -> dict[str, Any]:
        """Return all answers as one object."""
        kind = "chat.completion" if self.is_chat else "text_completion"
        return {**self.head, "object": kind, "choices": choices, "usage": wanted.usage()}

    def choice(self, answer: Answer, said: _Said) -> dict[str, Any]:
        """Return one answer of several."""
        body: dict[str, Any] = {"text": said.text}
        if self.is_chat:
            message: dict[str, Any] = {"role": "assistant", "content": said.text}
            if said.calls:
                message["content"] = said.text.strip() or None
                message["tool_calls"] = [call.as_json() for call in said.calls]
            body = {"message": message}
        return {"index": answer.index, **body, "logprobs": self.logprobs(answer, said.tokens),
                "finish_reason": answer.reason}  # fmt: skip

    def logprobs(self, answer: Answer, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """Return the probabilities of tokens, None where nobody asked for them."""
        if answer.request.likely is None:
            return None
        if self.is_chat:
            entries = [
                {**_entry(t.text, t.logprob), "top_logprobs": [_entry(*one) for one in t.likeliest]}
                for t in tokens
            ]
            return {"content": entries, "refusal": None}
        return {
            "tokens": [t.text for t in tokens], "token_logprobs": [t.logprob for t in tokens],
            "top_logprobs": [dict(t.likeliest) for t in tokens] if answer.request.likely else None,
            "text_offset": [t.at for t in tokens],
        }  # fmt: skip

    def event(
        self, answer: Answer, part: Any, tokens: Sequence[Token] = (), reason: str | None = None
    ) -> str:
        """Return one event of a stream."""
        key = "delta" if self.is_chat else "text"
        logprobs = self.logprobs(answer, tokens) if tokens else None
        choice = {"index": answer.index, key: part, "logprobs": logprobs, "finish_reason": reason}
        return self._event(choices=[choice])

    def usage(self, wanted: AnswerRequest) -> str:
        """Return the event that counts the tokens of a stream, its last."""
        return self._event(choices=[], usage=wanted.usage())

    def _event(self, **parts: Any) -> str:
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        return f"data: {json.dumps({**self.head, 'object': kind, **parts})}\n\n"


def _entry(text: str, logprob: float) -> dict[str, Any]:
    whole = "\ufffd" not in text  # else a part of a character
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()) if whole else None}
