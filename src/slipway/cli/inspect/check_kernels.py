"""``slipway check --explain``: the strategy and knobs of every kernel, and what it should cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slipway.cli import console


def explained(kernels: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what `inspect.coverage` says of each kernel, as plain values."""
    return [
        {
            "operator": k.operator,
            "layers": list(k.layers),
            "strategy": k.schedule or "general",
            "knobs": k.knobs,
            "cycles": None if k.cycles is None else round(k.cycles),
        }
        for k in kernels
    ]


def print_explained(kernels: Sequence[Mapping[str, Any]]) -> None:
    """Print one row for each kernel, in the order in which they run."""
    rows = [
        (
            console.layer(k["layers"][0] if k["layers"] else ""),
            k["operator"],
            k["strategy"],
            console.plain(k["knobs"]) or "-",
            "-" if k["cycles"] is None else f"{k['cycles']:,}",
        )
        for k in kernels
    ]
    columns = ("node", "operator", "strategy", "knobs", "predicted cycles")
    console.table(columns, rows, text_columns=4)
    console.out.print(
        'Another choice: PassContext(config={"schedules.force": {OPERATOR: {"strategy": NAME, '
        "KNOB: VALUE}}}). Predicted cycles are those of one core for the strategy's main loop."
    )
