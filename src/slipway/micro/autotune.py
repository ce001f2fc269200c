"""What classic scripts give autotvm to search for a microcontroller: a loader and a way to build.

The search measures whole batches of candidates in one library, which a session loads; firmware
loads none.  Of the project templates "crt" is a process of this machine, whose candidates are
measured here.  For boards schedules are chosen from the description of the core: docs/micro.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.errors import TuningError

HOST_TEMPLATE = "crt"


@dataclass(frozen=True)
class AutoTvmModuleLoader:
    """Stands for the projects of a template; ``autotvm.LocalRunner(module_loader=...)`` takes it.

    Raises TuningError for a template of boards: what a search would find is not measured there.
    """

    template_project_dir: str | Path
    project_options: Mapping[str, Any] | None = field(default=None)

    def __post_init__(self) -> None:
        """Refuse what cannot be measured now, and not after an hour of building."""
        template = Path(self.template_project_dir)
        if template.name != HOST_TEMPLATE:
            raise TuningError(
                f"the search cannot measure on boards ({template.name}): firmware loads no "
                "libraries. `slipway tune MODEL --board NAME` searches in a board's emulator; the "
                "rest is chosen from the description of the core. The template "
                f"{HOST_TEMPLATE!r} is measured on this machine."
            )


def autotvm_build_func() -> None:
    """Stand for the format of a project's library where ``LocalBuilder(build_func=...)`` asks."""


autotvm_build_func.output_format = ".model-library-format"  # type: ignore[attr-defined]
