"""Messages of a request, as chat templates take them."""

from __future__ import annotations

import json
from typing import Any

from slipway.errors import ArgumentValueError


def messages_of(given: Any) -> list[dict[str, Any]]:
    """Return the messages of a request's body.  Raises ArgumentValueError for what is none."""
    if not isinstance(given, list) or not given:
        raise ArgumentValueError("'messages' must be a list of {role, content}, one at least")
    return [_plain(message) for message in given]


def _plain(message: Any) -> dict[str, Any]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = [p.get("text") if isinstance(p, dict) else None for p in content]
        kinds = {p.get("type", "text") for p in content if isinstance(p, dict)}
        if not all(isinstance(text, str) for text in texts) or kinds - {"text"}:
            raise ArgumentValueError("the parts of a 'content' must be texts: no others are served")
        content = "".join(str(text) for text in texts)
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if content is None and calls:
        content = ""
    if not isinstance(content, str) or not isinstance(message.get("role"), str):
        raise ArgumentValueError("a message needs a 'role' and a 'content', both texts")
    role = message["role"]
    made: dict[str, Any] = {"role": "system" if role == "developer" else role, "content": content}
    if calls:
        made["tool_calls"] = _calls(calls)
    for key in ("name", "tool_call_id"):
        if isinstance(message.get(key), str):
            made[key] = message[key]
    return made


def _calls(given: Any) -> list[dict[str, Any]]:
    """Return calls of earlier answers; templates take their arguments as objects, not as text."""
    made = []
    for call in given if isinstance(given, list) else [None]:
        if not isinstance(call, dict):
            call = {}
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ArgumentValueError("'tool_calls' of a message must be {id, type, function}")
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                arguments = None
        if not isinstance(arguments, dict):
            raise ArgumentValueError(
                f"the arguments of the call of {function['name']!r} must be a JSON object"
            )
        own = {"name": function["name"], "arguments": arguments}
        made.append({"id": str(call.get("id", "")), "type": "function", "function": own})
    return made
