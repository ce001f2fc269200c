"""``slipway tune --board``: the kernels of each layer, by instructions on the emulated board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.cli import console

if TYPE_CHECKING:
    from slipway.cli.model_file import ModelOptions
    from slipway.tuning.board_search import BoardResult, LayerChoice


def tune_on_board(
    model: Path, name: str, records: Path, options: ModelOptions, as_json: bool
) -> None:
    """Search, write the records and print what was gained."""
    from slipway.micro.board import find_board
    from slipway.target import Target
    from slipway.toolchain.tempdir import tempdir
    from slipway.tuning.board_search import BoardBench, search_board

    board = find_board(name)
    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, Target(board.target))
    with tempdir() as folder:
        bench = BoardBench(module, parameters or {}, board, Path(folder.path))
        layers = bench.layers()
        with console.step(f"Counting {len(layers)} layers on {board.title}"):
            result = search_board(layers, bench, board.flash_bytes, board.ram_bytes, _tell)
    result.write_records(records)
    if as_json:
        print(json.dumps(json_of(result, records), indent=1))
        return
    console.table(
        ("layer", "kernel", "instructions less", "bytes more"),
        [
            (str(c).rpartition(": ")[0], c.family, f"{c.saved:,}", f"{c.more_bytes:,}")
            for c in result.chosen
        ],
    )
    before, after = result.before, result.after
    console.out.print(
        f"{before.instructions:,} instructions before, {after.instructions:,} after "
        f"({after.instructions / before.instructions:.2f}); flash {before.flash_bytes:,} to "
        f"{after.flash_bytes:,} of {board.flash_bytes:,} bytes, RAM {before.ram_bytes:,} to "
        f"{after.ram_bytes:,} of {board.ram_bytes:,}"
    )
    console.out.print(
        f"{console.plain(records)}: {len(result.chosen)} choices; with gcc's {result.level}"
    )


def _tell(choice: LayerChoice) -> None:
    said = choice.error or f"{choice.saved:,} instructions less, {choice.more_bytes:,} bytes more"
    console.err.print(f"{choice}: {console.plain(said)}")


def json_of(result: BoardResult, records: Path) -> dict[str, Any]:
    """Return a result as JSON: before, after, and what was chosen."""
    costs = {
        when: {
            "instructions": cost.instructions,
            "flash_bytes": cost.flash_bytes,
            "ram_bytes": cost.ram_bytes,
        }
        for when, cost in (("before", result.before), ("after", result.after))
    }
    return {
        **costs,
        "level": result.level,
        "records": str(records),
        "chosen": [choice.record for choice in result.chosen],
    }
