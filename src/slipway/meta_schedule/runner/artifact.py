"""A library that a builder made runs on a device: `runner.run(inputs)` (classic)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.errors import NotAvailableError
from slipway.meta_schedule.arg_info import TensorInfo
from slipway.meta_schedule.runner.config import EvaluatorConfig
from slipway.meta_schedule.utils import Described
from slipway.relay.types import TensorType
from slipway.rpc.client import RPCSession
from slipway.tuning.measure import random_array

ENTRY = "__tvm_main__"
_KINDS = {"llvm": "cpu", "c": "cpu"}  # device types that scripts name by the target's kind


@dataclass(frozen=True)
class RunnerInput:
    """A library, the kind of device, and what its function takes."""

    artifact_path: str
    device_type: str
    args_info: Sequence[TensorInfo]


@dataclass(frozen=True)
class RunnerResult:
    """What came of a candidate: the seconds of its runs, or the error's text."""

    run_secs: list[float] | None
    error_msg: str | None = None


class RunTimeoutError(TimeoutError):
    """A run that took longer than its runner's limit, which it tells."""


class RunnerFuture(Described):
    """What a run gives: the functions say whether it has ended, and the result."""

    def __init__(
        self, f_done: Callable[[], bool], f_result: Callable[[], RunnerResult] | None = None
    ) -> None:
        self._done, self._result = f_done, f_result

    def done(self) -> bool:
        """Return whether the run has ended."""
        return self._done()

    def result(self) -> RunnerResult:
        """Return the result, when it is there."""
        if self._result is None:
            raise NotAvailableError("this RunnerFuture has no f_result")
        return self._result()


class PyRunnerFuture(RunnerFuture):
    """What a run of a script's own runner gives: it has `done` and `result`."""

    def __init__(self) -> None:
        """Need no functions: the methods are there."""

    def done(self) -> bool:
        """Return whether the run has ended."""
        raise NotAvailableError(f"{type(self).__name__} has no done()")

    def result(self) -> RunnerResult:
        """Return the result, when it is there."""
        raise NotAvailableError(f"{type(self).__name__} has no result()")


class Runner(Described):
    """Measures what builders have made."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Begin to measure, and return what gives the results."""
        raise NotAvailableError(f"{type(self).__name__} has no run(runner_inputs)")


class PyRunner(Runner):
    """A runner of a script's own: it has `run(runner_inputs)`."""


def device_kind(name: str) -> str:
    """Return the device type that a script names, perhaps by the target's kind."""
    return _KINDS.get(name, name)


def run_on(
    open_session: Callable[[], RPCSession],
    runner_inputs: Sequence[RunnerInput],
    config: EvaluatorConfig,
    name: str,
) -> list[RunnerFuture]:
    """Return what measures each library, on a session of its own, when it is asked."""

    def seconds(one: RunnerInput) -> list[float]:
        with open_session() as session:
            return _seconds(session, one, config)

    return futures_of(seconds, runner_inputs, name)


def futures_of(
    seconds: Callable[[RunnerInput], list[float]], runner_inputs: Sequence[RunnerInput], name: str
) -> list[RunnerFuture]:
    """Return what measures each library by a function, when it is asked."""

    def future(one: RunnerInput) -> RunnerFuture:
        known: list[RunnerResult] = []

        def result() -> RunnerResult:
            if not known:
                known.append(_measured(seconds, one, name))
            return known[0]

        return RunnerFuture(lambda: bool(result()), result)

    return [future(one) for one in runner_inputs]


def _measured(
    seconds: Callable[[RunnerInput], list[float]], one: RunnerInput, name: str
) -> RunnerResult:
    try:
        return RunnerResult(seconds(one), None)
    except RunTimeoutError as error:
        return RunnerResult(None, f"{name}: Timeout, killed after {error} seconds")
    except Exception as error:  # what a device, a library or its numbers may do
        text = f"{name}: An exception occurred\n{type(error).__name__}: {error}"
        return RunnerResult(None, text)


def _seconds(session: RPCSession, one: RunnerInput, config: EvaluatorConfig) -> list[float]:
    path = Path(one.artifact_path)
    session.upload(str(path))
    library = session.load_module(path.name)
    device = session.device(device_kind(one.device_type))
    arguments: list[Any] = []
    for number, (dtype, shape) in enumerate(one.args_info):
        values = random_array(TensorType(tuple(shape), dtype), number)
        arguments.append(device.empty(values.shape, str(values.dtype)).copyfrom(values))
    timer = library.time_evaluator(
        ENTRY, device, number=config.number, repeat=config.repeat,
        min_repeat_ms=config.min_repeat_ms,
    )  # fmt: skip
    return [float(s) for s in timer(*arguments).results]
