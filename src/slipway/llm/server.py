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

from slipway.errors import ArgumentValueError, NotAvailableError, SlipwayError
from slipway.llm.model import LanguageModel
from slipway.llm.sampling import Sampling

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MOST_BODY = 1 << 22  # bytes of a request
MOST_TOKENS = 512  # that are made where a request does not say


class Answer:
    """One request: what is generated, counted, and how it ended."""

    def __init__(self, model: LanguageModel, body: dict[str, Any], is_chat: bool) -> None:
        self.model, self.is_chat = model, is_chat
        if is_chat:
            messages = body.get("messages")
            if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
                raise ArgumentValueError("'messages' must be a list of {role, content}")
            self.tokens = model.chat_tokens([_plain(m) for m in messages])
        else:
            prompt = body.get("prompt")
            if not isinstance(prompt, str):
                raise ArgumentValueError("'prompt' must be a text")
            self.tokens = model.encode(prompt)
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
            None if seed is None else _whole("seed", seed, 0),
        )
        stop = body.get("stop") or []
        self.stops = [stop] if isinstance(stop, str) else list(stop)
        if not all(isinstance(s, str) and s for s in self.stops):
            raise ArgumentValueError("'stop' must be a text or a list of texts")
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


def _plain(message: dict[str, Any]) -> dict[str, str]:
    content = message.get("content")
    if isinstance(content, list):  # parts, of which texts are known
        content = "".join(p.get("text", "") for p in content if isinstance(p, dict))
    if not isinstance(content, str) or not isinstance(message.get("role"), str):
        raise ArgumentValueError("a message needs a 'role' and a 'content', both texts")
    return {"role": message["role"], "content": content}


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentValueError(f"'{name}' must be a whole number of at least {least}")
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
        from starlette.responses import JSONResponse, StreamingResponse
        from starlette.routing import Route
    except ImportError:
        raise NotAvailableError(
            "serving needs starlette and uvicorn: pip install 'slipway-ml[web]'"
        ) from None

    busy = asyncio.Lock()
    name = model.description.name
    started = int(time.time())

    def refused(problem: str, status: int = 400) -> Response:
        error = {"message": problem, "type": "invalid_request_error", "param": None, "code": None}
        return JSONResponse({"error": error}, status)

    async def models(request: Request) -> Response:
        del request
        entry = {"id": name, "object": "model", "created": started, "owned_by": "slipway"}
        return JSONResponse({"object": "list", "data": [entry]})

    async def complete(request: Request) -> Response:
        is_chat = request.url.path.endswith("/chat/completions")
        raw = b""
        async for part in request.stream():
            raw += part
            if len(raw) > MOST_BODY:
                return refused(f"a request may have {MOST_BODY} bytes", 413)
        try:
            body = json.loads(raw)
            if not isinstance(body, dict):
                return refused("the body must be a JSON object")
            answer = Answer(model, body, is_chat)
        except (ValueError, SlipwayError) as error:  # JSONDecodeError is a ValueError
            return refused(str(error))
        made = _Form(is_chat, name)
        if body.get("stream"):
            events = _events(answer, made, busy)
            return StreamingResponse(events, media_type="text/event-stream")
        try:
            async with busy:
                text = await asyncio.to_thread(lambda: "".join(answer.pieces()))
        except SlipwayError as error:
            return refused(str(error), 500)
        return JSONResponse(made.whole(text, answer))

    return Starlette(
        routes=[
            Route("/v1/models", models),
            Route("/v1/completions", complete, methods=["POST"]),
            Route("/v1/chat/completions", complete, methods=["POST"]),
        ]
    )


async def _events(answer: Answer, made: _Form, busy: asyncio.Lock) -> AsyncIterator[str]:
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
        choice = {"index": 0, key: part, "finish_reason": reason}
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        return f"data: {json.dumps({**self.head, 'object': kind, 'choices': [choice]})}\n\n"
