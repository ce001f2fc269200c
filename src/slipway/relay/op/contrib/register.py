"""Tables of patterns: what an accelerator's code generator takes as one operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_TABLES: dict[str, Any] = {}


def register_pattern_table(compiler: str, table: Callable[[], Any] | None = None) -> Any:
    """Keep what `table` returns for the code generator `compiler`; usable as a decorator.

    A table is a list of (name, pattern) or (name, pattern, check); names begin with the
    compiler's and a dot.
    """

    def register(made: Callable[[], Any]) -> Callable[[], Any]:
        _TABLES[compiler] = made()
        return made

    return register if table is None else register(table)


def get_pattern_table(compiler: str) -> Any:
    """Return the table of a code generator, or None."""
    return _TABLES.get(compiler)
