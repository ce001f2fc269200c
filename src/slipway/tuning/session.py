"""One device while it measures: its session, and the arguments that lie on it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import RPCError
from slipway.rpc.client import RPCSession
from slipway.tuning.space import Candidate

Array = np.ndarray[Any, Any]
TURN_S = 0.004  # a candidate's share of a turn, in which it runs as often as it can
HOPELESS = 4.0  # times the fastest's time, in each of the first turns: no more turns are spent
FIRST_TURNS = 2


class MeasuringSession:
    """A session on a device, with copies of the inputs and room for the outputs."""

    def __init__(
        self, session: RPCSession, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        self._session, self._outputs = session, len(outputs)
        device = session.cpu(0)
        self._arguments = [
            device.empty(array.shape, str(array.dtype)).copyfrom(array)
            for array in (*inputs, *outputs)
        ]

    def close(self) -> None:
        """End the session; the device may be gone already."""
        self._arguments = []
        with contextlib.suppress(RPCError, OSError):
            self._session.close()

    def times(
        self, path: Path, functions: Mapping[Candidate, str], turns: int
    ) -> dict[Candidate, list[float]]:
        """Return the seconds of a run of each candidate, one for each turn that it had.

        What is far slower than the fastest has the first turns alone: it would take most of the
        time, and more turns would not tell more.
        """
        library, device = self._loaded(path), self._session.cpu(0)
        # The first runs fill caches and tell how often a candidate runs in its share of a turn.
        numbers: dict[Candidate, int] = {}
        for candidate, name in functions.items():
            once = library.time_evaluator(name, device, number=1)(*self._arguments).mean
            numbers[candidate] = max(1, min(1000, round(TURN_S / max(once, 1e-7))))
        times: dict[Candidate, list[float]] = {c: [] for c in functions}
        for turn in range(turns):
            fastest = min(map(min, times.values())) if turn >= FIRST_TURNS else 0.0
            left = [c for c in functions if not fastest or min(times[c]) <= HOPELESS * fastest]
            for candidate in left if turn % 2 == 0 else left[::-1]:
                run = library.time_evaluator(
                    functions[candidate], device, number=numbers[candidate]
                )
                times[candidate].append(run(*self._arguments).mean)
        return times

    def results(self, path: Path, function: str) -> list[Array]:
        """Return what a function of a library writes."""
        self._loaded(path).get_function(function)(*self._arguments)
        return [a.numpy() for a in self._arguments[len(self._arguments) - self._outputs :]]

    def _loaded(self, path: Path) -> Any:
        self._session.upload(str(path))
        return self._session.load_module(path.name)
