"""Results by what was measured (classic): a script looks up what it has measured before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slipway.autotvm.measure import MeasureInput, MeasureResult
from slipway.autotvm.record import decode, encode, measure_str_key
from slipway.classic.placeholders import TUNING, placeholder_of
from slipway.errors import NotAvailableError


class Database:
    """Keeps results; one of a script's own has `load` and `save`."""

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        """Return the latest result of an input, or all of them; None without one."""
        raise NotAvailableError(f"{type(self).__name__} has no load(inp, get_all)")

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Keep a result, beside those that are there (`extend`) or in their place."""
        raise NotAvailableError(f"{type(self).__name__} has no save(inp, res, extend)")

    def filter(self, func: Any) -> list[tuple[MeasureInput, MeasureResult]]:
        """Return the trials for which ``func(inp, results)`` holds, the latest result of each."""
        raise NotAvailableError(f"{type(self).__name__} has no filter(func)")


class DummyDatabase(Database):
    """Keeps results in this process, as lines of a log."""

    def __init__(self) -> None:
        self.db: dict[str, list[str]] = {}

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        """Return the latest result of an input, or all of them; None without one."""
        lines = self.db.get(measure_str_key(inp))
        if lines is None:
            return None
        results = [decode(line)[1] for line in lines]
        return results if get_all else max(results, key=lambda result: result.timestamp)

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Keep a result, beside those that are there (`extend`) or in their place."""
        key = measure_str_key(inp)
        known = self.db.get(key, []) if extend else []
        self.db[key] = [*known, encode(inp, res)]

    def filter(self, func: Any) -> list[tuple[MeasureInput, MeasureResult]]:
        """Return the trials for which ``func(inp, results)`` holds, the latest result of each."""
        found = []
        for lines in self.db.values():
            trials = [decode(line) for line in lines]
            results = [result for _, result in trials]
            if func(trials[0][0], results):
                found.append((trials[0][0], max(results, key=lambda r: r.timestamp)))
        return found

    def flush(self) -> None:
        """Forget everything."""
        self.db = {}


def filter_inputs(
    db: Database, measure_inputs: Iterable[MeasureInput], retry: bool = False
) -> tuple[list[MeasureResult | None], list[MeasureInput]]:
    """Return the known result of each input, None without one, and the inputs that have none.

    `retry`: a failure is no result.
    """
    found: list[MeasureResult | None] = []
    unsaved = []
    for inp in measure_inputs:
        known = db.load(inp)
        if known is None or (retry and known.error_no != 0):
            known = None
            unsaved.append(inp)
        found.append(known)
    return found, unsaved


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
