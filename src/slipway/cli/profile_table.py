"""The rows of a table of layers, slowest first."""

from __future__ import annotations

from typing import Any

from slipway.cli.console import time_text


def profile_rows(module: Any, limit: int | None = None) -> list[tuple[str, str, str]]:
    """Run `module` layer by layer; return (name, time, share of the whole), slowest first.

    With `limit`, the layers after the first `limit` are summed up in one last row.
    """
    layers = sorted(module.profile(), key=lambda layer: -layer.seconds)
    whole = sum(layer.seconds for layer in layers) or 1.0
    shown = layers if limit is None else layers[:limit]
    rows = [(x.name, time_text(x.seconds), f"{x.seconds / whole:.1%}") for x in shown]
    rest = layers[len(shown) :]
    if rest:
        seconds = sum(layer.seconds for layer in rest)
        rows.append((f"{len(rest)} others", time_text(seconds), f"{seconds / whole:.1%}"))
    return rows
