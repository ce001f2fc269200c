"""Candidates become functions of one library, so that a device gets them in one upload.

How that is done is a job: it can be carried to another process, and says all that is needed there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from slipway.backends.choices import FORCE
from slipway.compiler.driver import build
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.errors import SlipwayError
from slipway.ir.function import BaseFunc, IRModule, PrimFunc
from slipway.relay.expr import Function
from slipway.target import Target
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


class BuildJob(Protocol):
    """Candidates to compile; how depends on the present PassContext, too."""

    def run(self, path: Path) -> Built:
        """Compile them into the library `path`; one that is refused is its own error."""


@dataclass(frozen=True)
class KernelJob:
    """Candidates of a model's kernel, with what "schedules.force" takes for each."""

    function: Function
    target: Target
    op: str
    wishes: Mapping[Candidate, Mapping[str, Any]]

    def run(self, path: Path) -> Built:
        """Compile them into one library.

        A combination of knobs that a schedule refuses is an error of that candidate alone.
        """
        built = Built(None)
        loops: dict[str, PrimFunc] = {}
        for number, candidate in enumerate(self.wishes):
            name = f"candidate_{number}"
            try:
                loops[name] = self.lowered(candidate, name)
                built.functions[candidate] = name
            except SlipwayError as error:
                built.errors[candidate] = f"{type(error).__name__}: {error}"
        compile_together(
            built, loops, path, lambda some: OperatorModule(build_module(some, self.target))
        )
        return built

    def lowered(self, candidate: Candidate, name: str) -> PrimFunc:
        """Return the loops of one candidate."""
        context = PassContext.current()
        with PassContext(
            opt_level=context.opt_level,
            required_pass=list(context.required_pass),
            disabled_pass=list(context.disabled_pass),
            config={**context.config, FORCE: {self.op: self.wishes[candidate]}},
        ):
            return lower_kernel(name, self.function, self.target)


def kernel_job(task: TuningTask, candidates: Sequence[Candidate]) -> KernelJob:
    """Return the job of a kernel's candidates."""
    wishes = {candidate: task.space.forced(candidate) for candidate in candidates}
    return KernelJob(task.function, task.target, task.op, wishes)


@dataclass(frozen=True)
class LoopsJob:
    """Candidates that have been lowered, as what says how is a function of the user's."""

    target: Target
    loops: Mapping[str, BaseFunc]
    built: Built

    @classmethod
    def of(
        cls,
        target: Target,
        candidates: Sequence[Candidate],
        lowered: Callable[[Candidate, str], BaseFunc],
    ) -> LoopsJob:
        """Return the job of what `lowered` makes of candidates, each under the name it is told.

        One that is refused is its own error, and so is one for which a function of the user's
        raises: other candidates may be right.
        """
        built = Built(None)
        loops: dict[str, BaseFunc] = {}
        for number, candidate in enumerate(candidates):
            name = f"candidate_{number}"
            try:
                loops[name] = lowered(candidate, name)
                built.functions[candidate] = name
            except Exception as error:
                built.errors[candidate] = f"{type(error).__name__}: {error}"
        return cls(target, loops, built)

    def run(self, path: Path) -> Built:
        """Compile them into one library."""
        compile_together(
            self.built, dict(self.loops), path,
            lambda some: build(IRModule.from_functions(some), target=self.target),
        )  # fmt: skip
        return self.built


def compile_together(
    built: Built, loops: dict[str, F], path: Path, compile_loops: Callable[[dict[str, F]], Any]
) -> None:
    """Compile the functions `loops` of candidates into the library `path`, together.

    ``compile_loops(functions)`` returns what is exported.  Where one of them is refused, each is
    compiled alone, to tell which: the others must not pay for it.  What is refused together and
    not alone (a limit of time on a busy machine) leaves the first of them.
    """
    names = {name: candidate for candidate, name in built.functions.items()}
    left = dict(loops)
    while left:
        try:
            compile_loops(left).export_library(str(path))
            break
        except SlipwayError as error:
            refused = _refused_alone(left, compile_loops) if len(left) > 1 else {}
            for name, why in (refused or dict.fromkeys(list(left)[1:] or left, error)).items():
                del left[name], built.functions[names[name]]
                built.errors[names[name]] = f"{type(why).__name__}: {why}"
    built.path = path if built.functions else None


def _refused_alone(
    loops: dict[str, F], compile_loops: Callable[[dict[str, F]], Any]
) -> dict[str, SlipwayError]:
    """Return the errors of the functions that do not compile by themselves."""
    refused = {}
    for name, one in loops.items():
        try:
            compile_loops({name: one})
        except SlipwayError as error:
            refused[name] = error
    return refused
