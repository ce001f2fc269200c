"""Link a model for a board, only to see what it takes there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from slipway.micro.board import Board
from slipway.micro.fit import Need
from slipway.micro.image_size import linked_need, read_map, stack_bound
from slipway.micro.project import TemplateProject, get_microtvm_template_projects

_IRQ_FRAME_BYTES = 104  # what a Cortex-M core with FPU pushes for an interrupt
_CALLER_BYTES = 64  # main's own frame


def measure_linked(archive: Path, model: dict[str, Any], board: Board) -> Need:
    """Build the bench firmware of an archive for a board and add up its map file.

    The stack is the proven bound of the model's run function, with room for its caller and one
    interrupt.  Raises ToolchainError without the board's compiler.
    """
    with tempfile.TemporaryDirectory(prefix="slipway-fit-") as folder:
        target = Path(folder) / "project"
        template = TemplateProject.from_directory(get_microtvm_template_projects("baremetal"))
        options = {"board": board.name, "project_type": "bench"}
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
