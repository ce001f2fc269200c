"""Write the manual pages of the command line: one for `slipway`, one for each command.

    PYTHONPATH=src python tools/manual_pages.py build/man

They hold what `--help` says, so nothing is written twice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from slipway.cli.app import app
from slipway.cli.exit_codes import MEANINGS
from slipway.version import VERSION


def manual_pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    return {f"{'-'.join(names)}.1": _page(names, cmd) for names, cmd in _commands()}


def _commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    todo: list[tuple[tuple[str, ...], Any]] = [(("slipway",), typer.main.get_command(app))]
    while todo:
        names, command = todo.pop()
        yield names, command
        todo += [((*names, name), c) for name, c in getattr(command, "commands", {}).items()]


def _page(names: tuple[str, ...], command: Any) -> str:
    help_text = (command.help or command.short_help or "").strip()
    summary = help_text.partition("\n\n")[0].replace("\n", " ").rstrip(".")
    lines = [f'.TH "{"-".join(names).upper()}" 1 "" "slipway {VERSION}" "Slipway"']
    lines += [".SH NAME", f"{_text('-'.join(names))} \\- {_text(summary)}"]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    shown = [p.metavar or (p.name or "").upper() for p in arguments]
    inner = getattr(command, "commands", {})
    lines += [".SH SYNOPSIS", f".B {_text(' '.join(names))}"]
    lines += [_text(" ".join(["[OPTIONS]", *shown, *(["COMMAND [ARGS]..."] if inner else [])]))]
    lines += [".SH DESCRIPTION", *_paragraphs(help_text)]
    for title, rows in (
        ("COMMANDS", [(n, c.get_short_help_str(200)) for n, c in inner.items() if not c.hidden]),
        ("ARGUMENTS", [(s, a.help or "") for s, a in zip(shown, arguments, strict=True)]),
        ("OPTIONS", [(_spelled(o), o.help or "") for o in options]),
        ("EXIT STATUS", [(str(c), m) for c, m in MEANINGS.items()] if len(names) == 1 else []),
    ):
        if rows:
            lines.append(f".SH {title}")
        for name, text in rows:
            lines += [".TP", f".B {_text(name)}", _text(" ".join(text.split())) or "\\&"]
    if len(names) > 1:
        lines += [".SH SEE ALSO", f".BR {_text('-'.join(names[:-1]))} (1)"]
    return "\n".join([*lines, ""])


def _spelled(option: Any) -> str:
    spellings = ", ".join([*option.opts, *option.secondary_opts])
    value = option.metavar or str(option.name).upper()
    return spellings if option.is_flag else f"{spellings} {value}"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield lines of groff; indented lines are examples and stay as they are."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text)):
        if number:  # a section begins with a paragraph anyhow
            yield ".PP"
        if paragraph.startswith(("    ", "\t")):
            yield from (".nf", *(_text(line) for line in paragraph.splitlines()), ".fi")
        else:
            yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Return text as groff shows it literally."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/man")
    target.mkdir(parents=True, exist_ok=True)
    for name, text in manual_pages().items():
        (target / name).write_text(text, encoding="utf-8")
