"""Candidates become functions of one library, so that a device gets them in one upload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slipway.backends.choices import FORCE
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.errors import SlipwayError
from slipway.ir.function import PrimFunc
from slipway.transform.context import PassContext
from slipway.tuning.space import Candidate
from slipway.tuning.task import TuningTask


@dataclass
class Built:
    """A library with a function for each candidate that could be built; why others could not."""

    path: Path | None
    functions: dict[Candidate, str] = field(default_factory=dict)
    errors: dict[Candidate, str] = field(default_factory=dict)


def build_candidates(task: TuningTask, candidates: Sequence[Candidate], path: Path) -> Built:
    """Compile candidates of a task into the library `path`.

    A combination of knobs that a schedule refuses is an error of that candidate alone.
    """
    built = Built(None)
    loops: dict[str, PrimFunc] = {}
    for number, candidate in enumerate(candidates):
        name = f"candidate_{number}"
        try:
            loops[name] = lowered(task, candidate, name)
            built.functions[candidate] = name
        except SlipwayError as error:
            built.errors[candidate] = f"{type(error).__name__}: {error}"
    try:
        _export(task, loops, path)
    except SlipwayError:  # of one of them: the others must not pay for it
        good = {}
        for candidate, name in list(built.functions.items()):
            try:
                build_module({name: loops[name]}, task.target)
                good[name] = loops[name]
            except SlipwayError as error:
                del built.functions[candidate]
                built.errors[candidate] = f"{type(error).__name__}: {error}"
        _export(task, good, path)
    built.path = path if built.functions else None
    return built


def lowered(task: TuningTask, candidate: Candidate, name: str) -> PrimFunc:
    """Return the loops of one candidate."""
    context = PassContext.current()
    config = {**context.config, FORCE: {task.op: task.space.forced(candidate)}}
    with PassContext(
        opt_level=context.opt_level,
        required_pass=list(context.required_pass),
        disabled_pass=list(context.disabled_pass),
        config=config,
    ):
        return lower_kernel(name, task.function, task.target)


def _export(task: TuningTask, loops: dict[str, PrimFunc], path: Path) -> None:
    if loops:
        OperatorModule(build_module(loops, task.target)).export_library(str(path))
