"""Link a model for a board, only to see what it takes there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slipway.micro.board import Board, board_toml, with_room
from slipway.micro.board_tools import missing_for
from slipway.micro.fit import Need
from slipway.micro.image_size import linked_need, read_map, stack_bound
from slipway.micro.model_library import only_model, unpack_model_library
from slipway.micro.project import TemplateProject, get_microtvm_template_projects

_ROOM_BYTES = 16 << 20
_IRQ_FRAME_BYTES = 104  # what a Cortex-M core with FPU pushes for an interrupt
_CALLER_BYTES = 64  # main's own frame


def measure_boards(
    boards: Sequence[Board], archive_for: Callable[[str], Path]
) -> dict[str, Need | None]:
    """Link a model for each board, and return what it takes by the board's name.

    `archive_for` makes the model's archive for a target; it is asked once for each.  None stands
    for a board whose compiler is not installed.
    """
    archives: dict[str, Path] = {}
    found: dict[str, Need | None] = {}
    for board in boards:
        if missing_for(board):
            found[board.name] = None
            continue
        if board.target not in archives:
            archives[board.target] = archive_for(board.target)
        archive = archives[board.target]
        with tempfile.TemporaryDirectory(prefix="slipway-fit-") as folder:
            model = only_model(unpack_model_library(archive, Path(folder)))
            found[board.name] = measure_linked(archive, model, board)
    return found


def measure_linked(archive: Path, model: dict[str, Any], board: Board) -> Need:
    """Build the bench firmware of an archive for a board and add up its map file.

    The stack is the proven bound of the model's run function, with room for its caller and one
    interrupt.  It is linked for the board with more memory, so that a model that is too large gives
    numbers too.  Raises ToolchainError without the board's compiler.
    """
    with tempfile.TemporaryDirectory(prefix="slipway-fit-") as folder:
        roomy = Path(folder) / f"{board.name}.toml"
        roomy.write_text(board_toml(with_room(board, _ROOM_BYTES)), encoding="utf-8")
        target = Path(folder) / "project"
        template = TemplateProject.from_directory(get_microtvm_template_projects("baremetal"))
        options = {"board": str(roomy), "project_type": "bench"}
        project = template.generate_project_from_mlf(archive, target, options)
        try:
            project.build()
        finally:
            project.close()
        bound = stack_bound(target / "build", f"tvmgen_{model['model_name']}_run")
        pieces = read_map(target / "build" / "firmware.map", model)
    if bound is not None:
        bound += _IRQ_FRAME_BYTES + _CALLER_BYTES
    return linked_need(pieces, bound)
