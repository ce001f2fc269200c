"""Instruments: what may watch the passes of a PassContext.

::

    timer = PassTimer()
    with PassContext(instruments=[timer, VerifyEachPass(), PassDumper(print)]):
        slipway.build(s, args)
    print(timer.render())
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from slipway.ir.function import PrimFunc
from slipway.transform.verify import VerifyEachPass


class PassTimer:
    """Measures the time of every pass; `seconds` sums them by name, in order of first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._started = 0.0

    def run_before_pass(self, func: PrimFunc, info: Any) -> None:
        """Start the clock."""
        self._started = time.perf_counter()

    def run_after_pass(self, func: PrimFunc, info: Any) -> None:
        """Add what the pass took."""
        spent = time.perf_counter() - self._started
        self.seconds[info.name] = self.seconds.get(info.name, 0.0) + spent
        self.calls[info.name] = self.calls.get(info.name, 0) + 1

    def render(self) -> str:
        """Return a table: pass, calls, milliseconds, share."""
        total = sum(self.seconds.values()) or 1.0
        lines = [f"{'pass':<22}{'calls':>6}{'ms':>10}{'share':>8}"]
        for name, spent in self.seconds.items():
            calls, share = self.calls[name], spent / total
            lines.append(f"{name:<22}{calls:>6}{spent * 1e3:>10.2f}{share:>8.1%}")
        return "\n".join(lines)


class PassDumper:
    """Hands the text of the function to `write` after every pass that changed it.

    `only` names the passes to show; all of them where it is empty.
    """

    def __init__(self, write: Callable[[str], Any] = print, only: tuple[str, ...] = ()) -> None:
        self.write = write
        self.only = only
        self._before: PrimFunc | None = None

    def run_before_pass(self, func: PrimFunc, info: Any) -> None:
        """Remember the function."""
        self._before = func

    def run_after_pass(self, func: PrimFunc, info: Any) -> None:
        """Write the function, when the pass made another of it."""
        if func is not self._before and (not self.only or info.name in self.only):
            self.write(f"# after {info.name}\n{func}")


# The classic names.
PassTimingInstrument = PassTimer


class PrintAfterAll(PassDumper):
    """Prints the function after every pass (the classic name)."""


__all__ = ["PassDumper", "PassTimer", "PassTimingInstrument", "PrintAfterAll", "VerifyEachPass"]
