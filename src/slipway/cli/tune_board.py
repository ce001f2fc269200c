"""``slipway tune --board``: the kernels of each layer, in the board's emulator or at its cable."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.cli import console

if TYPE_CHECKING:
    from slipway.cli.model_file import ModelOptions
    from slipway.micro.board import Board
    from slipway.micro.session import Session
    from slipway.tuning.boards.search import BoardResult, LayerChoice


@dataclass(frozen=True)
class Cable:
    """The serial port that a board is at, and its rate."""

    port: str
    baud: int

    def open(self, board: Board) -> Session:
        """Return a session with the board's firmware, to be entered."""
        from slipway.micro.serial_port import SerialPort
        from slipway.micro.session import Session

        return Session(SerialPort(self.port, self.baud), self.port, board=board)


def tune_on_board(
    model: Path, name: str, records: Path, options: ModelOptions, as_json: bool,
    cable: Cable | None = None,
) -> None:  # fmt: skip
    """Search, write the records and print what was gained.

    On the board at a cable where one is given, by its clock; else by instructions in its emulator.
    """
    from slipway.micro.board import find_board
    from slipway.target import Target
    from slipway.toolchain.tempdir import tempdir
    from slipway.tuning.boards.cable_bench import CLOCK_NOISE, LOADED_LEVELS, CableBench
    from slipway.tuning.boards.search import BoardBench, search_board

    board = find_board(name)
    unit = "instructions" if cable is None else "nanoseconds"
    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, Target(board.target))
    with tempdir() as folder:
        given, path = parameters or {}, Path(folder.path)
        sizes = board.flash_bytes, board.ram_bytes
        if cable is None:
            bench = BoardBench(module, given, board, path)
            layers = bench.layers()
            with console.step(f"Counting {len(layers)} layers on {board.title}"):
                result = search_board(layers, bench, *sizes, partial(_tell, unit))
        else:
            on_cable = CableBench(module, given, board, path, lambda: cable.open(board))
            layers = on_cable.layers()
            with console.step(f"Timing {len(layers)} layers on {board.title} at {cable.port}"):
                result = search_board(
                    layers, on_cable, *sizes, partial(_tell, unit), levels=LOADED_LEVELS,
                    noise=CLOCK_NOISE,
                )  # fmt: skip
    result.write_records(records)
    if as_json:
        print(json.dumps(json_of(result, records, unit), indent=1))
        return
    console.table(
        ("layer", "kernel", f"{unit} less", "bytes more"),
        [
            (str(c).rpartition(": ")[0], c.family, f"{c.saved:,}", f"{c.more_bytes:,}")
            for c in result.chosen
        ],
    )
    before, after = result.before, result.after
    console.out.print(
        f"{before.instructions:,} {unit} before, {after.instructions:,} after "
        f"({after.instructions / before.instructions:.2f}); flash {before.flash_bytes:,} to "
        f"{after.flash_bytes:,} of {board.flash_bytes:,} bytes, RAM {before.ram_bytes:,} to "
        f"{after.ram_bytes:,} of {board.ram_bytes:,}"
    )
    console.out.print(
        f"{console.plain(records)}: {len(result.chosen)} choices; with gcc's {result.level}"
    )


def _tell(unit: str, choice: LayerChoice) -> None:
    said = choice.error or f"{choice.saved:,} {unit} less, {choice.more_bytes:,} bytes more"
    console.err.print(f"{choice}: {console.plain(said)}")


def json_of(result: BoardResult, records: Path, unit: str = "instructions") -> dict[str, Any]:
    """Return a result as JSON: before, after, and what was chosen."""
    costs = {
        when: {
            unit: cost.instructions,
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
