"""``tvmc.target``: what a command line says of targets.

A line has one target, ``llvm -mcpu=skylake``; one with its host, ``opencl -device=mali, llvm``; and
before them libraries that would take parts of the model, ``cmsis-nn, c -mcpu=cortex-m55``.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slipway.driver.tvmc.composite_target import get_codegen_names
from slipway.driver.tvmc.model import TVMCException
from slipway.errors import TargetError, did_you_mean
from slipway.target import Target
from slipway.target.kinds import ALIASES, KINDS

# A comma ends a name; in a value it does at the end of the word only: -mattr=+v8.2a,+dotprod.
_TOKEN = re.compile(
    r"""\s*(
      ,
      | [^\s,='"]+ = (?: '[^']*' | "[^"]*" | [^\s'"]*? (?= ,? (?: \s | $ ) ) )
      | [^\s,='"]+
    )""",
    re.VERBOSE,
)
_OF_A_LIBRARY: dict[str, type] = {"mcpu": str, "mattr": str}
MOST = 2  # a target and its host


def tokenize_target(target: str) -> list[str]:
    """Return the words and commas of a line's targets; a quoted value is a part of its word."""
    tokens, at, text = [], 0, target.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise TVMCException(f"the target {target!r} cannot be read from {text[at:]!r} on")
        tokens.append(found[1])
        at = found.end()
    return tokens


def parse_target(target: str) -> list[dict[str, Any]]:
    """Return name, options, text and whether it is a kind of target, of each that a line names.

    Raises TVMCException for none at all, for one that is named twice, and for an option without a
    target before it.
    """
    groups: list[list[str]] = [[]]
    for token in tokenize_target(target):
        if token == ",":
            groups.append([])
        else:
            groups[-1].append(token)
    made: list[dict[str, Any]] = []
    for words in groups:
        if not words or words[0].startswith("-"):
            what = repr(words[0]) if words else "a comma" if len(groups) > 1 else "its end"
            raise TVMCException(
                f"the target {target!r} names no kind before {what}; "
                "several are written as opencl -device=mali, llvm -mtriple=aarch64-linux-gnu"
            )
        name = words[0]
        if any(name == other["name"] for other in made):
            raise TVMCException(f"the target {target!r} names {name!r} twice")
        made.append(
            {
                "name": name,
                "opts": dict(map(_option, words[1:])),
                "raw": " ".join(words),
                "is_tvm_target": name in KINDS or name in ALIASES or "/" in name,
            }
        )
    return made


def target_from_cli(
    target: str, additional_target_options: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[Target, list[dict[str, Any]]]:
    """Return the target of a line, with its host, and the libraries before it.

    `target` may be JSON, or the path of a file of JSON, too.  `additional_target_options` are those
    of kinds, as `reconstruct_target_args` returns them.  Raises TVMCException for what is unknown.
    """
    options = {name: dict(values) for name, values in (additional_target_options or {}).items()}
    text = target.strip()
    if text.endswith(".json") and Path(text).is_file():
        text = Path(text).read_text(encoding="utf-8").strip()
    if text.startswith("{"):
        described = _described(text)
        kind = str(described.get("kind", ""))
        _check_named(options, {kind})
        described |= options.get(kind, {})
        return _made(described, None), []
    named = parse_target(text)
    _check_named(options, {each["name"] for each in named})
    for each in named:
        added = options.get(each["name"], {})
        each["opts"] |= added
        each["raw"] += "".join(f" -{name}={value}" for name, value in added.items())
    known_libraries = get_codegen_names()
    libraries = [each for each in named if each["name"] in known_libraries]
    kinds = [each for each in named if each["name"] not in known_libraries]
    if not kinds:
        names = ", ".join(each["name"] for each in libraries)
        raise TVMCException(
            f"{names} needs a target behind it, which compiles the rest: {names}, c"
        )
    if len(kinds) > MOST or (libraries and named[-1] in libraries):
        raise TVMCException(
            f"the target {target!r} is more than libraries, a target and its host, in this order"
        )
    host = kinds[1]["raw"] if len(kinds) == MOST else None
    return _made(kinds[0]["raw"], host), libraries


def generate_target_args(parser: argparse.ArgumentParser) -> None:
    """Add ``--target``, and an option for each of a kind's, ``--target-llvm-mcpu``."""
    parser.add_argument("--target", default="llvm", help="the target, as Target() reads it")
    for kind, name, type_ in _options():
        group = f"of the target {kind}"
        parser.add_argument(f"--target-{kind}-{name}", type=_TYPES.get(type_, str), help=group)


def reconstruct_target_args(parsed: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the options of kinds that a line has, by kind and name."""
    found: dict[str, dict[str, Any]] = {}
    for kind, name, _ in _options():
        value = getattr(parsed, f"target_{kind}_{name}".replace("-", "_"), None)
        if value is not None:
            found.setdefault(kind, {})[name] = value
    return found


def _options() -> Iterator[tuple[str, str, type]]:
    for kind in KINDS.values():
        yield from ((kind.name, name, type_) for name, type_ in kind.options.items())
    for library in get_codegen_names():
        yield from ((library, name, type_) for name, type_ in _OF_A_LIBRARY.items())


def _whole(text: str) -> int:
    return int({"true": "1", "false": "0"}.get(text.lower(), text))


_TYPES: Mapping[type, Any] = {int: int, bool: _whole}


def _option(word: str) -> tuple[str, Any]:
    name, equals, value = word.lstrip("-").partition("=")
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return name, (value[1:-1] if quoted else value) if equals else True


def _described(text: str) -> dict[str, Any]:
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TVMCException(f"the target is no JSON: {error}") from None
    assert isinstance(described, dict)  # it begins with a brace
    return described


def _check_named(options: Mapping[str, Mapping[str, Any]], named: set[str]) -> None:
    for kind, values in options.items():
        if kind not in named and values:
            raise TVMCException(
                f"Passed --target-{kind}-{next(iter(values))} but did not specify {kind} target."
                f"{did_you_mean(kind, sorted(named))}"
            )


def _made(target: Any, host: str | None) -> Target:
    try:
        return Target(target, host=host)
    except (TargetError, ValueError, TypeError) as error:
        raise TVMCException(str(error)) from error
