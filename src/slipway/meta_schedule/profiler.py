"""How long the parts of a search took (classic).

with Profiler() as profiler:
    ...
print(profiler.table())
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from slipway.entered import Entered
from slipway.errors import ArgumentValueError

_ENTERED: Entered[Profiler] = Entered("profilers")
_TOTAL = "Total"


class Profiler:
    """Seconds by name, of what happens inside its block."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._begun = 0.0

    def __enter__(self) -> Profiler:
        _ENTERED.enter(self)
        self._begun = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.add(_TOTAL, time.perf_counter() - self._begun)
        _ENTERED.leave(self)

    def add(self, name: str, seconds: float) -> None:
        """Count seconds for a name."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def get(self) -> dict[str, float]:
        """Return the seconds by name; "Total" is that of the block."""
        return dict(self._seconds)

    def table(self) -> str:
        """Return a table of them, the longest first.  Raises ValueError inside the block."""
        total = self._seconds.get(_TOTAL)
        if total is None:
            raise ArgumentValueError("the total time is not known before the profiler's block ends")
        lines = [f"{'ID':>3} | {'Name':<24} | {'Time (min)':>10} | {'Percentage':>10}"]
        lines.append("-" * len(lines[0]))
        ordered = sorted(self._seconds.items(), key=lambda pair: (pair[0] != _TOTAL, -pair[1]))
        for number, (name, seconds) in enumerate(ordered):
            share = 100.0 * seconds / total if total else 0.0
            lines.append(
                f"{number or '':>3} | {name:<24} | {seconds / 60:10.4f} | {share:10.4f}"
            )  # fmt: skip
        return "\n".join(lines)

    @staticmethod
    def current() -> Profiler | None:
        """Return the profiler whose block this is in."""
        return _ENTERED.innermost()

    @staticmethod
    def timeit(name: str) -> AbstractContextManager[None]:
        """Return a block whose time the present profiler, where there is one, counts for `name`."""
        return _timed(name)


@contextmanager
def _timed(name: str) -> Iterator[None]:
    begun = time.perf_counter()
    try:
        yield
    finally:
        present = Profiler.current()
        if present is not None:
            present.add(name, time.perf_counter() - begun)
