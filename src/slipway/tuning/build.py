"""Candidates become functions of one library, so that a device gets them in one upload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from slipway.backends.choices import FORCE
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.errors import SlipwayError
from slipway.ir.function import BaseFunc, PrimFunc
from slipway.transform.context import PassContext
from slipway.tuning.space import Candidate
from slipway.tuning.task import TuningTask

F = TypeVar("F", bound=BaseFunc)


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
    compile_together(
        built, loops, path, lambda some: OperatorModule(build_module(some, task.target))
    )
    return built


def compile_together(
    built: Built, loops: dict[str, F], path: Path, compile_loops: Callable[[dict[str, F]], Any]
) -> None:
    """Compile the functions `loops` of candidates into the library `path`, together.

    ``compile_loops(functions)`` returns what is exported.  Where one of them is refused, each is
    compiled alone, to tell which: the others must not pay for it.
    """
    try:
        if loops:
            compile_loops(loops).export_library(str(path))
    except SlipwayError:
        good = {}
        for candidate, name in list(built.functions.items()):
            try:
                compile_loops({name: loops[name]})
                good[name] = loops[name]
            except SlipwayError as error:
                del built.functions[candidate]
                built.errors[candidate] = f"{type(error).__name__}: {error}"
        if good:
            compile_loops(good).export_library(str(path))
    built.path = path if built.functions else None


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
