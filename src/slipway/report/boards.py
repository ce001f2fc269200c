"""Flash and RAM of a model for a microcontroller, class by class, and the boards that have them."""

from __future__ import annotations

from slipway.compiler.aot.factory import AotExecutorFactoryModule
from slipway.micro.board import board_names, find_board
from slipway.micro.fit import Verdict, estimate
from slipway.micro.model_contents import library_of_aot
from slipway.report.data import BoardFit, Report


def add_boards(report: Report, factory: AotExecutorFactoryModule) -> None:
    """Write flash, RAM and the boards of the target's core into the report.

    Weights, arena, inputs and outputs are exact; code and stack are an estimate, which
    ``slipway fit --link`` replaces by the linked image's.
    """
    library = library_of_aot(factory)
    needs = estimate({**library.metadata, "model_name": report.name})
    need = needs.need
    report.flash = [("weights", need.weights), ("code, by estimate", need.code)]
    report.ram = [
        ("arena", need.arena),
        ("inputs and outputs", need.io),
        ("stack, by estimate", need.stack),
    ]
    if len(needs.layers) == len(report.layers):
        for layer, own in zip(report.layers, needs.layers, strict=True):
            layer.weights_bytes = own.weights_bytes
    for name in board_names():
        board = find_board(name)
        if board.core != factory.target.cpu:
            continue
        verdict = Verdict(board, need)
        report.boards.append(
            BoardFit(
                name, board.flash_bytes, board.ram_bytes, verdict.flash_margin, verdict.ram_margin
            )
        )
