"""Functions that a model may call: what it is told of them, and the calls in what it writes.

Models write calls as their chat templates show them, in one of four notations::

    Qwen, Hermes   <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
    Qwen Coder     <tool_call><function=f><parameter=x>1</parameter></function></tool_call>
    Mistral        [TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}]
    Llama 3        {"name": "f", "parameters": {"x": 1}}

Before a call there may be text.  What looks like one and names no function of the request is text.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.errors import ArgumentValueError
from slipway.llm.forms import SPACES

BEGIN, END = "<tool_call>", "</tool_call>"
LIST = "[TOOL_CALLS]"
MOST_TOOLS = 128
_NAME = re.compile(r"[\w.:-]{1,128}")


@dataclass(frozen=True)
class Call:
    """One call: the function's name, its arguments as JSON, and what the client calls it by."""

    name: str
    arguments: str
    id: str

    def as_json(self) -> dict[str, Any]:
        """Return the call in OpenAI's form."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True)
class Notation:
    """How a model writes calls.

    Those between `begin` and `end` are read one by one; without an `end` all that follows is.
    Without a `begin` an answer that begins as JSON is.
    """

    begin: str
    end: str
    arguments: str = "arguments"  # their key
    tagged: bool = False  # a tag for each argument, no JSON


HERMES, CODER = Notation(BEGIN, END), Notation(BEGIN, END, tagged=True)
MISTRAL, LLAMA = Notation(LIST, ""), Notation("", "", "parameters")


def notation_of(template: str) -> Notation:
    """Return how a chat template tells the model to write calls."""
    if BEGIN in template:
        return CODER if "<function=" in template else HERMES
    return MISTRAL if LIST in template else LLAMA


@dataclass(frozen=True)
class Tools:
    """The functions of a request.  `forced` are the names of those of which one must be called."""

    listed: Sequence[dict[str, Any]]
    notation: Notation
    forced: Sequence[str] = ()
    most: int = MOST_TOOLS  # calls of one answer

    def parameters(self, name: str) -> dict[str, Any]:
        """Return the schema of a function's arguments."""
        for tool in self.listed:
            if tool["function"]["name"] == name:
                found: dict[str, Any] = tool["function"].get("parameters") or {"type": "object"}
                return found
        raise KeyError(name)

    def grammar(self, marker: Callable[[str], str]) -> str:
        """Return what an answer must be that calls one of the `forced`, in Lark's notation.

        `marker(text)` is how the notation writes what stands around a call.
        """
        how = self.notation
        if how.tagged:
            raise ArgumentValueError(
                "'tool_choice' asks for a call, and this model writes calls in tags, to which "
                "answers cannot be kept: leave it at 'auto'"
            )
        calls = [
            {
                "type": "object",
                "properties": {"name": {"const": name}, how.arguments: self.parameters(name)},
                "required": ["name", how.arguments], "additionalProperties": False,
            }
            for name in self.forced
        ]  # fmt: skip
        call: dict[str, Any] = calls[0] if len(calls) == 1 else {"anyOf": calls}
        if how is MISTRAL:
            call = {"type": "array", "items": call, "minItems": 1, "maxItems": 1}
        around = ("", "")
        if how.begin == BEGIN:
            line = json.dumps("\n")
            around = (f"{marker(BEGIN)} {line} ", f" {line} {marker(END)}")
        schema = json.dumps({**call, "x-guidance": SPACES})
        return f"start: {around[0]}call{around[1]}\ncall: %json {schema}\n"


class CallReader:
    """Parts the text of one answer, as it comes, into what is said and what is called."""

    def __init__(self, tools: Tools) -> None:
        self.tools, self.calls = tools, list[Call]()
        self._held = ""  # what may be, or is, a part of a call
        self._inside = False
        self._at_start = True

    @property
    def is_full(self) -> bool:
        """Whether the answer has as many calls as it may have."""
        return len(self.calls) >= self.tools.most

    def take(self, piece: str) -> tuple[str, list[Call]]:
        """Return what of the text so far is said, and the calls that are complete."""
        how, said, found = self.tools.notation, "", list[Call]()
        self._held += piece
        while True:
            if not self._inside and self._at_start and not how.tagged:
                start = self._held.lstrip()
                if not start:
                    return said, found
                # What begins a call may be a special token, of which no text remains.
                self._inside = start[0] in "[{"
            self._at_start = False
            if not self._inside:
                at = self._held.find(how.begin) if how.begin else -1
                if at < 0:
                    keep = _begun(self._held, how.begin)
                    cut = len(self._held) - keep
                    said, self._held = said + self._held[:cut], self._held[cut:]
                    return said, found
                said, self._held, self._inside = said + self._held[:at], self._held[at:], True
            at = self._held.find(how.end, len(how.begin)) if how.end else -1
            if at < 0:
                return said, found
            whole = self._held[: at + len(how.end)]
            self._held, self._inside = self._held[len(whole) :], False
            made = self._read(whole)
            found += made
            said += "" if made else whole

    def finish(self) -> tuple[str, list[Call]]:
        """Return the same for what is left when the answer has ended."""
        left, self._held = self._held, ""
        made = self._read(left) if self._inside else []
        return ("" if made else left), made

    def _read(self, text: str) -> list[Call]:
        """Return the calls that a text is, none where it is something else."""
        how = self.tools.notation
        inner = text.strip().removeprefix(how.begin)
        inner = inner.removesuffix(how.end).strip() if how.end else inner.strip()
        read = _tagged(inner, self.tools) if how.tagged else _objects(inner)
        names = {tool["function"]["name"] for tool in self.tools.listed}
        made = []
        for one in read:
            name = one.get("name")
            given = one.get("arguments", one.get("parameters", {}))
            if isinstance(given, str):  # JSON in JSON
                given = _json(given)
            if not isinstance(name, str) or name not in names or not isinstance(given, dict):
                return []
            made.append(
                Call(name, json.dumps(given, ensure_ascii=False), f"call_{uuid.uuid4().hex[:24]}")
            )
        made = made[: self.tools.most - len(self.calls)]
        self.calls += made
        return made


def _begun(text: str, marker: str) -> int:
    """Return how many characters at the end of a text may be the beginning of the marker."""
    return next((n for n in range(len(marker) - 1, 0, -1) if text.endswith(marker[:n])), 0)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of a text: one, a list, or several that semicolons or lines part."""
    decoder, found, at = json.JSONDecoder(), list[dict[str, Any]](), 0
    while at < len(text):
        try:
            one, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        many = one if isinstance(one, list) else [one]
        if not all(isinstance(m, dict) for m in many):
            return []
        found += many
        while at < len(text) and text[at] in "; \n\t\r":
            at += 1
    return found


_FUNCTION = re.compile(r"<function=([^>\n]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def _tagged(text: str, tools: Tools) -> list[dict[str, Any]]:
    """Return the calls of a text with a tag for each argument; what is no text is JSON."""
    found = []
    for name, inside in _FUNCTION.findall(text):
        try:
            known = tools.parameters(name.strip()).get("properties", {})
        except KeyError:
            return []
        arguments = {}
        for key, value in _PARAMETER.findall(inside):
            kind = known.get(key.strip(), {}).get("type", "string")
            read = None if kind == "string" else _json(value)
            arguments[key.strip()] = value if read is None and value != "null" else read
        found.append({"name": name.strip(), "arguments": arguments})
    return found


def tools_of(
    body: dict[str, Any], template: str, told: Callable[[Sequence[dict[str, Any]]], bool]
) -> Tools | None:
    """Return the functions that a request's body names; None where none may be called.

    `told(tools)` says whether the model's chat template speaks of them.
    """
    listed, choice = body.get("tools"), body.get("tool_choice")
    if listed is None or listed == []:
        if choice not in (None, "none", "auto"):
            raise ArgumentValueError(f"'tool_choice' is {choice!r} and there are no 'tools'")
        return None
    if not isinstance(listed, list) or len(listed) > MOST_TOOLS:
        raise ArgumentValueError(f"'tools' must be a list of at most {MOST_TOOLS} functions")
    names = [_name_of(tool) for tool in listed]
    forced = _forced(choice, names)
    at_once = body.get("parallel_tool_calls")
    if at_once not in (None, False, True):
        raise ArgumentValueError(f"'parallel_tool_calls' is {at_once!r}: it is true or false")
    if choice == "none":
        return None
    if not told(listed):
        raise ArgumentValueError(
            "'tools' are not served: the model's chat template says nothing of them"
        )
    most = 1 if at_once is False or forced else MOST_TOOLS
    return Tools(listed, notation_of(template), forced, most)


def _name_of(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type", "function") != "function":
        raise ArgumentValueError(
            "'tools' must be objects of the type 'function' with a 'function': no others are served"
        )
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ArgumentValueError(f"'tools' has a function of the name {name!r}: it needs a word")
    if not (parameters is None or isinstance(parameters, dict)):
        raise ArgumentValueError(f"'tools': the parameters of {name!r} must be a JSON schema")
    return name


def _forced(choice: Any, names: Sequence[str]) -> Sequence[str]:
    """Return the functions of which the request wants one called."""
    if choice in (None, "none", "auto"):
        return ()
    if choice == "required":
        return names
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or name not in names:
        raise ArgumentValueError(
            f"'tool_choice' is {choice!r}: it must be 'none', 'auto', 'required', or name one of "
            f"the functions {', '.join(names)}"
        )
    return (name,)
