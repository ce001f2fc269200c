"""Whether a device becomes slower while a search goes on, and what it says of that itself.

The reference is the task's default choice, which every batch measures: scores are relative to it in
the same round, so that they hold on a slower clock, but a device that is too hot favours what waits
for memory over what computes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

NOTABLE = 1.25  # times the fastest batch's time of the reference
THROTTLED = 0.9  # of the clock that the device can have, or less: it holds itself back
RESTS = 4  # in a row at most
REST_S = 5.0
ENOUGH_C = 5.0  # that it has cooled down


@dataclass(frozen=True)
class Condition:
    """What a device says of its heat and clock; None for what it does not know."""

    temperature_c: float | None = None
    clock_mhz: float | None = None
    limit_mhz: float | None = None

    @staticmethod
    def of(about: Mapping[str, str]) -> Condition:
        """Return it from what a device says of itself (`rpc.about`)."""
        found = [_number(about.get(n)) for n in ("temperature_c", "clock_mhz", "clock_limit_mhz")]
        return Condition(*found)

    @property
    def is_throttled(self) -> bool:
        """Whether it runs below what it can, by its own account."""
        return bool(
            self.clock_mhz and self.limit_mhz and self.clock_mhz < THROTTLED * self.limit_mhz
        )

    def __str__(self) -> str:
        parts = []
        if self.temperature_c is not None:
            parts.append(f"{self.temperature_c:.0f} C")
        if self.clock_mhz is not None:
            limit = f" of {self.limit_mhz:.0f}" if self.limit_mhz is not None else ""
            parts.append(f"{self.clock_mhz:.0f}{limit} MHz")
        return ", ".join(parts)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


class DriftWatch:
    """How much slower than at its fastest the reference of a task was in its last batch.

    ``condition()`` asks the device; it is asked only after a notable change.
    """

    def __init__(
        self,
        condition: Callable[[], Condition],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._condition, self._sleep = condition, sleep
        self._fastest = math.inf
        self.drift = 1.0
        self.most = 1.0  # of all batches
        self.said = ""  # by the device, when it was slowest

    def note(self, seconds: float) -> None:
        """Take the time of the reference in a batch, and let a device rest that is too hot."""
        self._fastest = min(self._fastest, seconds)
        self.drift = seconds / self._fastest
        if self.drift < NOTABLE:
            self.most = max(self.most, self.drift)
            return
        condition = self._condition()
        if self.drift >= self.most:
            self.most, self.said = self.drift, str(condition)
        hot = condition.temperature_c
        for _ in range(RESTS):
            now = condition.temperature_c
            if not condition.is_throttled or hot is None or now is None or now < hot - ENOUGH_C:
                return
            self._sleep(REST_S)
            condition = self._condition()
