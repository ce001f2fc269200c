"""How often candidates run on one device."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from slipway.errors import RPCTimeoutError
from slipway.tuning.builders import InLibrary
from slipway.tuning.session import FIRST_ROUNDS, LEAST_ROUNDS, MeasuringSession, interleaved
from slipway.tuning.space import candidate_of

LIBRARY = Path("library.tar")
SECONDS = {"quick": 0.001, "usual": 0.002, "slow": 0.5}


class Device:
    """A session whose functions take the time that their name stands for."""

    has_exact_clock = False

    def __init__(self):
        self.runs = Counter()

    def device(self, kind):
        tensor = SimpleNamespace(copyfrom=lambda array: array)
        return SimpleNamespace(empty=lambda shape, dtype: tensor)

    def upload(self, path):
        pass

    def load_module(self, name):
        def evaluator(function, device, number, min_repeat_ms=0):
            def run(*arguments):
                self.runs[function] += max(number, round(min_repeat_ms / SECONDS[function] / 1e3))
                return SimpleNamespace(mean=SECONDS[function])

            return run

        return SimpleNamespace(time_evaluator=evaluator)


def test_what_is_far_slower_has_the_first_turns_alone():
    device = Device()
    session = MeasuringSession(device, [np.zeros(3)], [np.zeros(3)])
    functions = {candidate_of(name, {}): name for name in SECONDS}
    times = session.times({c: InLibrary(LIBRARY, f) for c, f in functions.items()}, 9)
    rounds = {functions[c]: len(seconds) for c, seconds in times.items()}
    assert rounds == {"quick": 9, "usual": 9, "slow": FIRST_ROUNDS}
    assert device.runs["slow"] == 1 + FIRST_ROUNDS


def test_a_first_run_that_compiles_or_waits_says_nothing_of_the_others():
    """By its time alone a candidate would run once in each round, beside many runs of another."""
    runs = []

    def run(candidate, number):
        runs.append((candidate, number))
        begun = [c for c, _ in runs].count(candidate) == 1
        return 0.2 if candidate == "late" and begun else 0.0001

    times = interleaved(run, ["late", "usual"], 3)
    rounds = {c: {n for of, n in runs if of == c and n > 1} for c in ("late", "usual")}
    assert rounds == {"late": {40}, "usual": {40}}
    assert all(len(seconds) == 3 for seconds in times.values())


def test_what_takes_long_has_fewer_rounds(monkeypatch):
    monkeypatch.setitem(SECONDS, "endless", 3.0)
    device = Device()
    session = MeasuringSession(device, [np.zeros(3)], [np.zeros(3)])
    for names, wanted in ((["endless"], LEAST_ROUNDS), (["slow"], 8), (["usual", "slow"], 18)):
        functions = {candidate_of(n, {}): InLibrary(LIBRARY, n) for n in names}
        times = session.times(functions, 18)
        assert len(times[candidate_of(names[0], {})]) == wanted


def test_the_clock_is_read_while_the_device_works(monkeypatch):
    """An idle core's governor holds it at a fraction of its clock, which is no throttling."""
    device = Device()

    def about(session):
        is_busy = session.runs["quick"] * SECONDS["quick"] >= 0.05
        return {"clock_mhz": "1800" if is_busy else "600", "clock_limit_mhz": "1800"}

    monkeypatch.setattr("slipway.tuning.session.about_of", about)
    session = MeasuringSession(device, [np.zeros(3)], [np.zeros(3)])
    assert not session.condition(InLibrary(LIBRARY, "quick")).is_throttled


def test_the_default_may_take_longer_than_what_is_tried():
    """All are held against it: where it had no time, each that is tried would be at fault."""

    class Limited(Device):
        timeout = 0.1

        def load_module(self, name):
            evaluator = super().load_module(name).time_evaluator

            def limited(function, *arguments, **options):
                if SECONDS[function] > self.timeout:
                    raise RPCTimeoutError(f"{function} took too long")
                return evaluator(function, *arguments, **options)

            return SimpleNamespace(time_evaluator=limited)

    device = Limited()
    functions = {candidate_of(name, {}): InLibrary(LIBRARY, name) for name in SECONDS}
    session = MeasuringSession(
        device, [np.zeros(3)], [np.zeros(3)], default=candidate_of("slow", {})
    )
    assert len(session.times(functions, 9)[candidate_of("slow", {})]) == FIRST_ROUNDS
    assert device.timeout == 0.1
    session = MeasuringSession(
        device, [np.zeros(3)], [np.zeros(3)], default=candidate_of("quick", {})
    )
    with pytest.raises(RPCTimeoutError, match="slow took too long"):
        session.times(functions, 9)
    assert device.timeout == 0.1
