"""What every command prints with: steps with their time, progress bars, sizes, tables.

Results go to stdout; steps and bars go to stderr, so that a pipe gets the results only.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape, render
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from slipway.errors import printable
from slipway.inspect.layer_name import layer_name

T = TypeVar("T")

# A file or a pipe has no width: tables in it need not be folded.
PIPE_WIDTH = 200
LONG = 200  # rows from which on a table is laid out here: Rich takes 0.4 ms for each
_width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH

# Names have colons, too: "block:key:0" is no picture of a key.
out = Console(highlight=False, soft_wrap=True, width=_width, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def plain(words: object) -> str:
    """Return what a file, a model or a person named so as it is shown: no markup, no control."""
    return escape(printable(str(words)))


def layer(name: str) -> str:
    """Return the name of a model's node as a table shows it."""
    return plain(layer_name(name))


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show `title` with a moving mark while the block runs, then the line with its seconds."""
    start = time.perf_counter()
    title = plain(title)
    with err.status(f"{title} ..."):
        yield
    err.print(f"[green]✓[/] {title} [dim]({time.perf_counter() - start:.1f} s)[/]")


def progress(items: Sequence[T], title: str) -> Iterable[T]:
    """Iterate over `items` under a progress bar, then print the line with its seconds."""
    start = time.perf_counter()
    title = plain(title)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        yield from bar.track(items, description=title)
    err.print(f"[green]✓[/] {title} [dim]({time.perf_counter() - start:.1f} s)[/]")


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str | None = None,
    text_columns: int = 1,
) -> None:
    """Print a table, if it has rows; columns after the first `text_columns` are aligned right."""
    rows = list(rows)
    if not rows:
        return
    lines = _lines(columns, rows, text_columns) if len(rows) > LONG else []
    if lines:
        out.print(*([f"[bold]{title}[/]"] if title else []), *lines, sep="\n")
        return
    view = Table(title=title, title_justify="left", title_style="bold", header_style="", box=SIMPLE)
    for index, name in enumerate(columns):
        if index < text_columns:  # folded, because a name cut short cannot be looked up
            view.add_column(name, overflow="fold")
        else:
            view.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        view.add_row(*row)
    out.print(view)


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int) -> list[str]:
    """Return the lines of a table as Rich draws it; none where it does not fit, or has paragraphs.

    What is too wide is folded, which Rich does.
    """
    widths = [cell_len(name) for name in columns]
    measured = []
    for row in rows:
        cells = [(cell, cell_len(_shown(cell))) for cell in row]
        widths = [max(width, own) for width, (_, own) in zip(widths, cells, strict=True)]
        measured.append(cells)
    whole = sum(widths) + 3 * len(widths) - 1
    if whole + 2 > out.width or any("\n" in cell for row in rows for cell in row):
        return []

    def line(cells: Sequence[tuple[str, int]]) -> str:
        parts = []
        for index, ((cell, own), width) in enumerate(zip(cells, widths, strict=True)):
            room = " " * (width - own)
            parts.append(f" {cell}{room} " if index < text_columns else f" {room}{cell} ")
        return f" {' '.join(parts)} "

    head = line([(name, cell_len(name)) for name in columns])
    blank = " " * (whole + 2)
    return [blank, head, f" {'─' * whole} ", *map(line, measured), blank]


def _shown(cell: str) -> str:
    """Return a cell without its markup."""
    return render(cell, emoji=False).plain if "[" in cell else cell


def size_text(size_bytes: float) -> str:
    """Return a size for people: 512 B, 28.3 KB, 1.2 MB (powers of 1000)."""
    for unit in ("B", "KB", "MB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} B" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} GB"


def age_text(seconds: float) -> str:
    """Return an age for people: 12 s, 3 min 04 s, 5 h 10 min, 2 d 3 h."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
