"""A comparison as a page of its own: the report's style, tables, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from slipway.inspect.layer_name import layer_name
from slipway.report.compare import Comparison, layer_times
from slipway.toolchain.link import write_file

NBSP = "\u00a0"  # a number and its unit stay on one line
SHORT = 14  # characters, as in page/report.js
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
"""


def comparison_html(found: Comparison) -> str:
    """Return the page; it needs no script, and has the comparison as JSON in it."""
    style = files("slipway.report").joinpath("page/report.css").read_text(encoding="utf-8")
    a, b = found.a, found.b
    parts = [
        HEAD.format(title=escape(f"{b.name} beside {a.name}"), style=style),
        f"<header><h1>{escape(b.name)} beside {escape(a.name)}</h1>"
        f'<p class="quiet">A: {escape(a.target)} · B: {escape(b.target)} · '
        f"{escape(found.made)}</p></header>\n<main>",
        _list("notes", [*found.faults, *found.notes]),
        _card("Sizes and time", ("", "A", "B", "B beside A"), _in_short(found)),
    ]
    times = [
        (layer_name(name), _time(one), _time(other), _change(one, other))
        for name, one, other in layer_times(found)
    ]
    if times:
        parts.append(_card("Time of each layer", ("layer", "A", "B", "B beside A"), times))
    if not found.changes:
        parts.append(f'<p class="quiet">{escape(found.sameness())}.</p>')
    else:
        rows = [(layer_name(c.name), c.kind, c.a, c.b) for c in found.changes]
        parts.append(_card("Kernels that differ", ("kernel", "", "A", "B"), rows))
    if found.numbers:
        rows = [
            (o.output, f"{o.error:.2g}", "agrees" if o.agrees else "differs", "")
            for o in found.numbers
        ]
        parts.append(_card("Numbers of B beside A's", ("output", "largest error", "", ""), rows))
    versions = [(name, version) for name, version in found.versions.items()]
    parts.append(_card("Versions", ("what", "version"), versions))
    data = found.to_json().replace("<", "\\u003c")
    parts.append(f'</main><script type="application/json" id="data">{data}</script>')
    return "\n".join([*parts, "</body>\n</html>\n"])


def write_comparison(found: Comparison, path: Path) -> Path:
    """Write the page to `path` and return it."""
    write_file(path, comparison_html(found).encode(errors="backslashreplace"))
    return path


def _in_short(found: Comparison) -> list[tuple[str, str, str, str]]:
    a, b = found.a, found.b
    rows = []
    for name, before in a.sizes.items():
        if name in b.sizes:
            after = b.sizes[name]
            rows.append((name, f"{before:,}{NBSP}B", f"{after:,}{NBSP}B", _change(before, after)))
    if a.median_s is not None and b.median_s is not None:
        change = _change(a.median_s, b.median_s)
        rows.insert(0, ("time per run", _time(a.median_s), _time(b.median_s), change))
    return rows


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.2f}{NBSP}µs"


def _change(before: float, after: float) -> str:
    return "-" if not before else f"{after / before - 1:+.1%}"


def _list(name: str, lines: list[str]) -> str:
    return f'<ul class="{name}">' + "".join(f"<li>{escape(one)}</li>" for one in lines) + "</ul>"


def _card(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>\n" for row in rows)
    return (
        f'<section class="card"><div class="head"><h2>{escape(title)}</h2></div>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div></section>"
    )


def _cell(text: str) -> str:
    """Return a cell; no word of a short one is broken where the page is narrow."""
    kind = ' class="short"' if len(text) <= SHORT else ""
    return f"<td{kind}>{escape(text)}</td>"
