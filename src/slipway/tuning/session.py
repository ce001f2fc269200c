"""One device while it measures: its session, and the arguments that lie on it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from slipway.errors import RPCError, TuningError
from slipway.rpc.about import about_of
from slipway.rpc.client import RPCSession
from slipway.runtime.artifact import metadata_of
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.model_devices import ModelDevices
from slipway.tuning.builders import InLibrary
from slipway.tuning.drift import Condition
from slipway.tuning.runner import Runner
from slipway.tuning.space import Candidate

Array = np.ndarray[Any, Any]
ROUND_S = 0.004  # a candidate's share of a round, in which it runs as often as it can
FIRST_RUNS, FIRST_S = 4, 0.25  # that say how long a candidate takes, and when that is known
COLD_RUNS = 50  # at most in a round, where caches are flushed before each: that takes time too
FLUSH = "cache_flush_cpu_non_first_arg"  # of the device, by the classic name
BUSY_MS = 100  # of work before a device is asked for its clock: governors look each 10 ms or so
PATIENCE = 10.0  # times the limit of a call, for the default
HOPELESS = 4.0  # times the fastest's time, in each of the first rounds: no more are spent
FIRST_ROUNDS = 2
LONG_S = 4.0  # that the rounds of one candidate take, where one run takes long
LEAST_ROUNDS = 4  # of what takes longer than that, each of which a winner has to win
RUNS = 60  # of a winner, whose results are looked at: a race is in one of many
RUNS_S = 0.5  # that these take at most, but for the first

T = TypeVar("T")


class MeasuringSession:
    """A session on a device, with copies of the inputs and room for the outputs.

    `kind` is that of the device that the functions are for: "cpu", "opencl", ...  `is_cold`: before
    each run all arguments but the first leave the caches, if it is a processor's.  `default`, which
    all are held against, may take longer than the session's limit.  Raises TuningError where caches
    cannot be flushed.
    """

    def __init__(
        self,
        session: RPCSession,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        kind: str = "cpu",
        is_cold: bool = False,
        default: Candidate | None = None,
    ) -> None:
        self._session, self._outputs, self._default = session, len(outputs), default
        self._nothing = [_no_results(array) for array in outputs]
        self._device = session.device(kind)
        self._flush = _flush_of(session) if is_cold and kind == "cpu" else None
        self._arguments = [
            self._device.empty(array.shape, str(array.dtype)).copyfrom(array)
            for array in (*inputs, *self._nothing)
        ]

    def close(self) -> None:
        """End the session; the device may be gone already."""
        self._arguments = []
        with contextlib.suppress(RPCError, OSError):
            self._session.close()

    def times(
        self, functions: Mapping[Candidate, InLibrary], rounds: int
    ) -> dict[Candidate, list[float]]:
        """Return the seconds of a run of each candidate, one for each round that it had."""
        paths = dict.fromkeys(function.path for function in functions.values())
        libraries = {path: self._loaded(path) for path in paths}

        def run(candidate: Candidate, number: int) -> float:
            with self._patience() if candidate == self._default else contextlib.nullcontext():
                return once(candidate, number)

        def once(candidate: Candidate, number: int) -> float:
            function = functions[candidate]
            library = libraries[function.path]
            if self._flush is None:
                timer = library.time_evaluator(function.name, self._device, number=number)
                return float(timer(*self._arguments).mean)
            runs = min(number, COLD_RUNS)
            timer = library.time_evaluator(
                function.name, self._device, number=1, repeat=runs, f_preproc=self._flush
            )
            return float(timer(*self._arguments).median)

        return taken(run, list(functions), rounds, self._session)

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        """Let calls take longer than the session's limit: that is for what is tried."""
        limit = self._session.timeout
        self._session.timeout = None if limit is None else PATIENCE * limit
        try:
            yield
        finally:
            self._session.timeout = limit

    def results(self, function: InLibrary) -> Iterator[list[Array]]:
        """Yield what a function of a library writes, in one run after another.

        Before each of them the outputs hold what is no result of anything.
        """
        run = self._loaded(function.path).get_function(function.name)
        outputs = self._arguments[len(self._arguments) - self._outputs :]
        for _ in looked_at(self._session):
            for output, nothing in zip(outputs, self._nothing, strict=True):
                output.copyfrom(nothing)
            run(*self._arguments)
            yield [output.numpy() for output in outputs]

    def condition(self, work: InLibrary) -> Condition:
        """Return what the device says of its heat and clock while it works at a function.

        An idle core's clock is low, and says nothing of what it can have.
        """
        library = self._loaded(work.path)
        library.time_evaluator(work.name, self._device, number=1, min_repeat_ms=BUSY_MS)(
            *self._arguments
        )
        return Condition.of(about_of(self._session))

    def _loaded(self, path: Path) -> Any:
        self._session.upload(str(path))
        return self._session.load_module(path.name)


def _flush_of(session: RPCSession) -> Any:
    """Return a processor's function that flushes caches."""
    if session.has_exact_clock:
        raise TuningError(
            "the caches of a modelled core are the model's, and are not flushed: measure warm there"
        )
    try:
        return session.get_function(FLUSH)
    except AttributeError as error:
        raise TuningError(
            f"the device has no {FLUSH}, which takes data out of its caches: start a newer server "
            f"there, or measure warm ({error})"
        ) from error


class ModelSession:
    """A session on a device, which runs whole models; `inputs` are by name."""

    def __init__(self, session: RPCSession, inputs: Mapping[str, Array]) -> None:
        self._session, self._inputs = session, inputs
        self._models: dict[Path, GraphModule] = {}
        self._devices: dict[Path, ModelDevices] = {}

    def close(self) -> None:
        """End the session; the device may be gone already."""
        self._models = {}
        with contextlib.suppress(RPCError, OSError):
            self._session.close()

    def times(self, paths: Mapping[Candidate, Path], rounds: int) -> dict[Candidate, list[float]]:
        """Return the seconds of a run of the model with each candidate, one for each round."""

        def run(candidate: Candidate, number: int) -> float:
            return self.seconds(paths[candidate], number)

        return taken(run, list(paths), rounds, self._session)

    def seconds(self, path: Path, number: int) -> float:
        """Return the seconds of one run of a model, the mean of so many."""
        module = self._loaded(path).module
        timer = module.time_evaluator("run", self._devices[path].main, number=number)
        return float(timer().mean)

    def results(self, path: Path) -> Iterator[list[Array]]:
        """Yield the outputs of a model, of one run after another."""
        model = self._loaded(path)
        for _ in looked_at(self._session):
            model.run()
            yield [model.get_output(i).numpy() for i in range(model.get_num_outputs())]

    def keep(self, paths: Collection[Path]) -> None:
        """Forget the models that are not in `paths`: each has its weights on the device."""
        self._models = {path: model for path, model in self._models.items() if path in paths}

    def _loaded(self, path: Path) -> GraphModule:
        if path not in self._models:
            self._session.upload(str(path))
            library = self._session.load_module(path.name)
            # A .wasm file is read by who runs it, and has one kind of device.
            about = {} if path.suffix == ".wasm" else metadata_of(path)
            devices = self._devices[path] = ModelDevices(about, self._session)
            model = GraphModule(library["default"](*devices.each))
            for name, value in self._inputs.items():
                model.set_input(name, value)
            self._models[path] = model
        return self._models[path]


def looked_at(session: RPCSession) -> Iterator[None]:
    """Yield for each run whose results are looked at: one where every run is the same."""
    end = time.monotonic() + RUNS_S
    for number in range(1 if session.has_exact_clock else RUNS):
        if number and time.monotonic() > end:
            break
        yield


def twice(work: Callable[[], T]) -> T:
    """Return what `work` does, tried once more where the device is lost, for whatever reason.

    Raises RPCError when it is lost again.
    """
    try:
        return work()
    except RPCError:
        return work()


def opened(runner: Runner, task: object, begin: Callable[[RPCSession], T]) -> T:
    """Return what `begin` makes of a fresh session, to measure `task`.

    Raises TuningError where there is none: that is no candidate's fault.
    """
    try:
        session = runner.open()
        try:
            return begin(session)
        except RPCError:
            return begin(runner.open())
    except RPCError as error:
        raise TuningError(f"no session with {runner.device} for {task}: {error}") from error


def _no_results(array: Array) -> Array:
    """Return values of an array's type that no kernel computes, or hardly ever: NaN of floats."""
    byte = b"\xff" if "float" in str(array.dtype) else b"\xa5"
    return np.frombuffer(byte * array.nbytes, array.dtype).reshape(array.shape)


def taken(
    run: Callable[[Candidate, int], float],
    candidates: Sequence[Candidate],
    rounds: int,
    session: RPCSession,
) -> dict[Candidate, list[float]]:
    """Return the seconds of a run of each candidate, once where the clock has no noise.

    Raises RPCError for a device whose times are none: not a number, endless, nothing or less.
    """

    def sensible(candidate: Candidate, number: int) -> float:
        seconds = run(candidate, number)
        if not 0 < seconds < math.inf:
            raise RPCError(f"the device says that a run of {candidate} took {seconds} seconds")
        return seconds

    if not session.has_exact_clock:
        return interleaved(sensible, candidates, rounds)
    times = {}
    for candidate in candidates:
        sensible(candidate, 1)  # fills the caches
        times[candidate] = [sensible(candidate, 1)]
    return times


def _quickest(run: Callable[[Candidate, int], float], candidate: Candidate) -> float:
    """Return the shortest of a few first runs, or of fewer where they take long.

    The very first may compile, or wait for a processor: by that alone a candidate would run but
    once in each round, and a single run begins with what others left in the caches.
    """
    found = [run(candidate, 1)]
    while len(found) < FIRST_RUNS and sum(found) < FIRST_S:
        found.append(run(candidate, 1))
    return min(found)


def interleaved(
    run: Callable[[Candidate, int], float], candidates: Sequence[Candidate], rounds: int
) -> dict[Candidate, list[float]]:
    """Return the seconds of a run of each candidate, one for each round that it had.

    ``run(candidate, number)`` is the mean of so many runs.  What is far slower than the fastest has
    the first rounds alone: it would take most of the time, and more rounds would not tell more.
    Where the fastest takes long, there are fewer rounds for all: of so long a run noise is a small
    part, and eighteen of three seconds each, twice for each duel, took minutes.
    """
    # The first runs fill caches and tell how often a candidate runs in its share of a round.
    first = {c: max(_quickest(run, c), 1e-7) for c in candidates}
    numbers = {c: max(1, min(1000, round(ROUND_S / first[c]))) for c in candidates}
    rounds = min(rounds, max(LEAST_ROUNDS, round(LONG_S / min(first.values()))))
    times: dict[Candidate, list[float]] = {c: [] for c in candidates}
    for round_number in range(rounds):
        fastest = min(map(min, times.values())) if round_number >= FIRST_ROUNDS else 0.0
        left = [c for c in candidates if not fastest or min(times[c]) <= HOPELESS * fastest]
        for candidate in left if round_number % 2 == 0 else left[::-1]:
            times[candidate].append(run(candidate, numbers[candidate]))
    return times
