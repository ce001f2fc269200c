"""``tvmc.target``: the text of ``--target``, which may name several kinds and libraries.

``"cmsis-nn, c -mcpu=cortex-m55"`` hands parts to a library first; of two kinds, as in
``"opencl -device=mali, llvm -mtriple=aarch64-linux-gnu"``, the second drives the first.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.driver.tvmc.composite_target import get_codegen_names
from slipway.driver.tvmc.model import TVMCException
from slipway.errors import SlipwayError, did_you_mean
from slipway.target.kinds import find_kind, list_kinds
from slipway.target.target import Target

__all__ = [
    "generate_target_args", "is_inline_json", "parse_target", "reconstruct_target_args",
    "target_from_cli", "tokenize_target", "validate_targets",
]  # fmt: skip

Options = Mapping[str, Mapping[str, Any]]
# A comma; an option whose value is in quotes, or goes on behind a comma that no space follows;
# any other word.
_TOKEN = re.compile(
    r"""\s*(,|-{1,2}[\w-]+=(?:'[^']*'|"[^"]*"|(?:[^\s,]|,(?=\S))*)|[^\s,]+)""",
)
_TYPES = (str, int, list)


def tokenize_target(target: str) -> list[str]:
    """Return the words of a text, and the commas between its targets."""
    return _TOKEN.findall(target)


def parse_target(target: str) -> list[dict[str, Any]]:
    """Return each target of a text: its name, opts, raw text, and whether it is a kind of ours."""
    parts: list[list[str]] = [[]]
    for token in tokenize_target(target):
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    if not all(parts):
        raise TVMCException(f"--target {target!r} names no target before or behind a comma")
    kinds = set(list_kinds()) - set(get_codegen_names())
    return [
        {
            "name": part[0], "opts": dict(map(_option, part[1:])), "raw": " ".join(part),
            "is_tvm_target": part[0] in kinds,
        }
        for part in parts
    ]  # fmt: skip


def _option(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not word.startswith("-") or not name.strip("-") or (equals and not value):
        raise TVMCException(f"--target has {word!r}, which is no option -name=value")
    if value[:1] in ("'", '"'):
        value = value[1:-1]
    return name.lstrip("-"), value if equals else True


def is_inline_json(target: str) -> bool:
    """Return whether a text is JSON."""
    try:
        json.loads(target)
    except ValueError:
        return False
    return True


def validate_targets(
    parse_targets: Sequence[Mapping[str, Any]], additional_target_options: Options | None = None
) -> None:
    """Raise TVMCException for targets that cannot be together."""
    names = [each["name"] for each in parse_targets]
    if len(names) > len(set(names)):
        raise TVMCException("Duplicate target definitions are not allowed")
    if not parse_targets[-1]["is_tvm_target"]:
        raise TVMCException(
            "The last target needs to be a kind of target that is compiled for: "
            f"{', '.join(list_kinds())}, not {names[-1]!r}.{did_you_mean(names[-1], list_kinds())}"
        )
    kinds = [each["name"] for each in parse_targets if each["is_tvm_target"]]
    if len(kinds) > 2:
        raise TVMCException(
            f"Only two kinds of target can be used at a time, a device's and its host's. "
            f"Found: {', '.join(kinds)}."
        )
    known = get_codegen_names()
    for each in parse_targets:
        if not each["is_tvm_target"] and each["name"] not in known:
            raise TVMCException(
                f"{each['name']!r} is neither a kind of target nor a library; libraries are "
                f"{', '.join(known)}.{did_you_mean(each['name'], [*known, *list_kinds()])}"
            )
    for kind, options in (additional_target_options or {}).items():
        if kind not in names:
            raise TVMCException(
                f"Passed --target-{kind}-{next(iter(options))} but did not specify {kind} target"
            )


def target_from_cli(
    target: str, additional_target_options: Options | None = None
) -> tuple[Target, list[dict[str, Any]]]:
    """Return the target of a text, of JSON or of a file of JSON, and the libraries before it.

    `additional_target_options` are those of ``--target-llvm-mcpu`` and the like, by kind.
    """
    extras = []
    try:
        if Path(target).is_file():
            target = Path(target).read_text(encoding="utf-8")
        if is_inline_json(target):
            found = json.loads(target)
            if not isinstance(found, dict):
                raise TVMCException(f'--target {target}: JSON of a target is {{"kind": "llvm"}}')
            more = (additional_target_options or {}).get(str(found.get("kind")), {})
            return Target({**found, **more}), []
        first = tokenize_target(target)[:1]
        if first and first[0] not in (*list_kinds(), *get_codegen_names()) and "," not in target:
            return Target(target), []  # a tag, or what says itself why it is none
    except ValueError as error:
        raise TVMCException(f"--target {target}: {error}") from error
    parsed = parse_target(target)
    validate_targets(parsed, additional_target_options)
    kinds: list[str] = []
    for each in parsed:
        each["opts"].update((additional_target_options or {}).get(each["name"], {}))
        if each["is_tvm_target"]:
            kinds.append(_text(each))
        else:
            extras.append(each)
    try:
        return Target(kinds[0], host=kinds[1] if len(kinds) == 2 else None), extras
    except SlipwayError as error:
        raise TVMCException(f"--target {target!r}: {error}") from error


def _text(parsed: Mapping[str, Any]) -> str:
    words = [
        f"--{name}" if value is True else f"-{name}={value}"
        for name, value in parsed["opts"].items()
    ]
    return " ".join((parsed["name"], *(f"'{w}'" if " " in w else w for w in words)))


def generate_target_args(parser: argparse.ArgumentParser) -> None:
    """Add ``--target``, and ``--target-<kind>-<option>`` for each option of each kind."""
    parser.add_argument("--target", help="the target, as text, JSON, or a file of JSON")
    for kind, name, type_ in _options():
        parser.add_argument(
            f"--target-{kind}-{name}", type=str if type_ is list else type_, help=argparse.SUPPRESS
        )


def reconstruct_target_args(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the options by kind that a line has given of those `generate_target_args` added."""
    found: dict[str, dict[str, Any]] = {}
    for kind, name, _ in _options():
        value = getattr(args, f"target_{kind}_{name}".replace("-", "_"), None)
        if value is not None:
            found.setdefault(kind, {})[name] = value
    return found


def _options() -> Iterator[tuple[str, str, type]]:
    for kind in list_kinds():
        if kind not in get_codegen_names():
            for name, type_ in find_kind(kind).options.items():
                if type_ in _TYPES:
                    yield kind, name, type_
    for name in get_codegen_names():
        yield name, "mcpu", str  # the libraries' own options are those of the part's processor
        yield name, "mattr", str
