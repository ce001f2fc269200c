"""What commands print with."""

import io

import pytest
from rich.console import Console

from slipway.cli import console

ROWS = [
    (f"node_{i}" + "ü漢" * (i % 3), "[green]native[/]", console.plain("a[1]"), str(i))
    for i in range(console.LONG + 1)
]


def printed(monkeypatch, rows, *, long=console.LONG, **how):
    """Return a table as a console draws it; `long` is how many rows Rich draws."""
    shown = io.StringIO()
    monkeypatch.setattr(console, "LONG", long)
    made = Console(file=shown, highlight=False, soft_wrap=True, emoji=False, **how)
    monkeypatch.setattr(console, "out", made)
    console.table(("node", "status", "becomes", "n"), rows, title="All", text_columns=3)
    return shown.getvalue()


@pytest.mark.parametrize(
    "how", [{"width": 200}, {"width": 200, "force_terminal": True}, {"width": 20}]
)
def test_long_tables_look_as_short_ones(monkeypatch, how):
    assert printed(monkeypatch, ROWS, **how) == printed(monkeypatch, ROWS, long=10**6, **how)


def test_long_tables_leave_paragraphs_to_rich(monkeypatch):
    rows = [("a\nb", "", "", ""), *ROWS]
    assert printed(monkeypatch, rows, width=200) == printed(
        monkeypatch, rows, long=10**6, width=200
    )


def test_names_with_colons_are_no_pictures(capsys):
    with console.out.capture() as taken:
        console.out.print(console.plain("block:key:0"))
        console.table(("name",), [("block:key:0",)])
    assert taken.get().count("block:key:0") == 2
    with console.err.capture() as taken, console.step("Reading a:key:b"):
        pass
    assert "a:key:b" in taken.get()


def test_a_table_without_rows_is_not_shown(monkeypatch):
    """A search that is interrupted before its first kernel has none."""
    assert printed(monkeypatch, [], width=200) == ""
