"""Builders and runners by themselves (classic), and those of a script's own.

    build = LocalBuilder().build([MeasureInput(target, task, config)])
    results = LocalRunner().run(inputs, build)

A class that derives from `Runner` measures in a way of its own: a tuner's candidates then have the
times that its `run` gives, and a winner's results are compared on this machine.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from slipway.autotvm.errors import BUILD_ERRORS, MeasureErrorNo
from slipway.errors import NotAvailableError, SlipwayError, TuningError
from slipway.runtime.ndarray import NDArray
from slipway.tuning.measure import Bench, Measured, error_text, scored
from slipway.tuning.runner import LocalRunner as Here
from slipway.tuning.schedules.single import (
    FOLDER,
    Making,
    Measurements,
    Single,
    built,
    of_kernel,
    of_schedule,
)
from slipway.tuning.space import Candidate


class BuildResult(NamedTuple):
    """A library and its function's arguments; or, in `error`, why there is none."""

    filename: str
    arg_info: tuple[Any, ...]
    error: str | None
    time_cost: float
    error_no: int = 0


class Builder:
    """Compiles candidates; one of a script's own has `build(measure_inputs)`."""

    def __init__(
        self, timeout: float = 10.0, n_parallel: int | None = None,
        build_kwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.timeout, self.n_parallel = timeout, n_parallel
        self.build_kwargs: dict[str, Any] | None = build_kwargs
        self.task: Any = None

    def set_task(self, task: Any, build_kwargs: dict[str, Any] | None = None) -> None:
        """Be told what is tuned."""
        self.task, self.build_kwargs = task, build_kwargs or self.build_kwargs

    def build(self, measure_inputs: Sequence[Any]) -> list[Any]:
        """Return a `BuildResult` for each input."""
        raise NotAvailableError(f"{type(self).__name__} has no build(measure_inputs)")


class Runner:
    """Measures libraries; one of a script's own has `run(measure_inputs, build_results)`.

    It returns a `MeasureResult` for each input.
    """

    def __init__(self, timeout: float = 5.0, n_parallel: int | None = None) -> None:
        self.timeout, self.n_parallel = timeout, n_parallel
        self.task: Any = None

    def set_task(self, task: Any) -> None:
        """Be told what is tuned."""
        self.task = task

    def get_build_kwargs(self) -> dict[str, Any]:
        """Return what the builder is told of the device: nothing, its target says it."""
        return {}

    def run(self, measure_inputs: Sequence[Any], build_results: Sequence[Any]) -> list[Any]:
        """Return a result for each input."""
        raise NotAvailableError(f"{type(self).__name__} has no run(measure_inputs, build_results)")


def libraries_of(inputs: Sequence[Any], timeout_s: float) -> list[BuildResult]:
    """Compile each input, here, into a library in a folder of its own, which is the caller's."""
    found = []
    for inp in inputs:
        one = built(_making(inp), inp.task.target, timeout_s)
        number = int(BUILD_ERRORS[one.kind])
        error = one.error or None
        found.append(BuildResult(one.path, tuple(one.args), error, one.seconds, number))
    return found


def _making(inp: Any) -> Making:
    """Return what makes the module of an input."""
    if isinstance(inp.config, Candidate):
        return partial(of_kernel, inp.task.kernel, inp.config)

    def of_template() -> tuple[Any, list[Any]]:
        schedule, args = inp.task.instantiate(inp.config)
        return of_schedule(schedule, args, inp.task.target)

    return of_template


class Outcome(NamedTuple):
    """What came of a library: the seconds of a run in each round, or an error."""

    costs: list[float]
    error_no: int
    error_msg: str
    all_cost: float


def measured(measurements: Measurements, task: Any, library: Single) -> Outcome:
    """Return what came of a library that was built; one that was not has its error."""
    start = time.perf_counter()
    costs: list[float] = []
    number, text = BUILD_ERRORS[library.kind], library.error
    if not number:
        try:
            costs, text = measurements.seconds(task, Path(library.path))
            number = MeasureErrorNo.WRONG_ANSWER if text else MeasureErrorNo.NO_ERROR
        except SlipwayError as error:
            timed_out = isinstance(error, TimeoutError)
            number = MeasureErrorNo.RUN_TIMEOUT if timed_out else MeasureErrorNo.RUNTIME_DEVICE
            text = error_text(error)
    return Outcome(costs, int(number), text, library.seconds + time.perf_counter() - start)


def give_inputs(bench: Bench, given: Sequence[Any]) -> None:
    """Let a bench run candidates with values of a script's: of the inputs, or all arguments.

    Raises TuningError where they do not fit.
    """
    wanted = bench.subject.inputs()
    values = [v.numpy() if isinstance(v, NDArray) else v for v in given]
    if len(values) not in (len(wanted), len(wanted) + len(bench.subject.outputs())):
        raise TuningError(
            f"ref_input has {len(values)} arrays, and {bench.task} takes {len(wanted)} inputs: "
            "one for each, or for each argument"
        )
    for number, type_ in enumerate(wanted):
        if tuple(values[number].shape) != tuple(type_.shape):
            raise TuningError(
                f"ref_input: array {number} is of the shape {tuple(values[number].shape)}, and "
                f"{bench.task} takes {type_}"
            )
        bench.inputs[number] = values[number].astype(type_.dtype)


class Inputs(Protocol):
    """What makes the input of a candidate for a builder and a runner."""

    def __call__(self, candidate: Candidate) -> Any:
        """Return it."""


class OwnBench(Bench):
    """Measures with a builder and a runner of a script's; the runner gives times alone.

    A winner's results are compared here, so that the task has to be one of this machine's.
    """

    def __init__(self, bench: Bench, builder: Any, runner: Any, input_of: Inputs) -> None:
        here = Here()
        super().__init__(bench.task, bench.subject, here, bench.folder, bench.rounds, bench.builder)
        self.inputs = bench.inputs
        self._own, self._maker, self._input_of = runner, builder, input_of
        runner.set_task(bench.task)
        builder.set_task(bench.task, runner.get_build_kwargs())

    def measure(
        self, candidates: Sequence[Candidate], rounds: int = 0, together: bool = False
    ) -> list[Measured]:
        """Measure candidates and the default; how often each runs, the runner decides."""
        default = self._default
        batch = list(dict.fromkeys([default, *candidates]))
        inputs = [self._input_of(candidate) for candidate in batch]
        made = _one_for_each(self._maker.build(inputs), inputs, self._maker, "build")
        try:
            ran = _one_for_each(self._own.run(inputs, made), inputs, self._own, "run")
        finally:
            for library in made:
                remove_built(getattr(library, "filename", ""))
        found = {c: _outcome(c, result) for c, result in zip(batch, ran, strict=True)}
        beside = found[default]
        for one in found.values():
            if not one.kind and beside.seconds:
                found[one.candidate] = scored(one.candidate, one.seconds, beside.seconds)
        return list(found.values())


def _one_for_each(made: Any, inputs: Sequence[Any], maker: Any, method: str) -> list[Any]:
    found = list(made)
    if len(found) != len(inputs):
        raise TuningError(
            f"{type(maker).__name__}.{method} returned {len(found)} results for {len(inputs)} "
            "inputs: it returns one for each"
        )
    return found


def _outcome(candidate: Candidate, result: Any) -> Measured:
    """Return what a script's result says of a candidate, or what is wrong with it."""
    costs = list(result.costs)
    if result.error_no:
        is_built = int(result.error_no) in map(int, BUILD_ERRORS.values())
        text = str(costs[0]) if costs else f"error {int(result.error_no)}"
        return Measured(candidate, kind="build" if is_built else "run", error=text)
    seconds = [float(cost) for cost in costs]
    if not seconds:
        return Measured(candidate, kind="run", error="the runner gave no times")
    if not all(0 < s < math.inf for s in seconds):
        said = f"the runner says that a run took {min(seconds)} to {max(seconds)} seconds"
        return Measured(candidate, kind="run", error=said)
    return Measured(candidate, seconds)


def remove_built(filename: str) -> None:
    """Delete a library that was built here, with its folder; what a script wrote is its own."""
    folder = Path(filename).parent
    if folder.name.startswith(FOLDER):
        shutil.rmtree(folder, ignore_errors=True)
