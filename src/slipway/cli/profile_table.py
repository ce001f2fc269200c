"""The rows of a table of layers, slowest first."""

from __future__ import annotations

from typing import Any

from slipway.cli.console import time_text


def profile_rows(
    module: Any, limit: int | None = None, number: int = 10, repeat: int = 3
) -> list[tuple[str, str, str]]:
    """Run `module` layer by layer; return (name, time, share of the whole), slowest first.

    Each layer runs `repeat` x `number` times. With `limit`, the layers after the first `limit` are
    summed up in one last row.
    """
    layers = sorted(module.profile(number=number, repeat=repeat), key=lambda layer: -layer[2])
    whole = sum(seconds for _, _, seconds in layers) or 1.0
    shown = layers if limit is None else layers[:limit]
    rows = [
        (layer_name(name), time_text(seconds), f"{seconds / whole:.1%}")
        for name, _, seconds in shown
    ]
    rest = layers[len(shown) :]
    if rest:
        seconds = sum(seconds for _, _, seconds in rest)
        rows.append((f"{len(rest)} others", time_text(seconds), f"{seconds / whole:.1%}"))
    return rows


def layer_name(function: str) -> str:
    """Return the operators that a compiled function does: "conv2d add relu" and the like."""
    return function.split("_fused_", 1)[-1]
