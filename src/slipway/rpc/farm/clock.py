"""A farm's clock: Unix time, and what was noted by it when somebody sets the machine's clock."""

from __future__ import annotations

import time
from collections.abc import Callable

_SET_S = 1.0  # what a clock gains or loses at once; a time server's corrections are smaller

# Seconds that pass whatever the clock says, those in which the machine sleeps among them.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_s() -> float:
    """Return the machine's Unix time."""
    return time.time()


def steady_s() -> float:
    """Return seconds since some moment, which nobody sets."""
    return time.clock_gettime(_STEADY)


class Clock:
    """Unix time; who notes times enters with `follow`, to move them when the clock is set.

    A tracker on a board without a battery begins hours or years in the past, until a time server
    answers: without this, sessions would have lasted as long, or less than nothing.
    """

    def __init__(self) -> None:
        self._followers: list[Callable[[float], None]] = []
        self._offset = wall_s() - steady_s()
        self.times_set = 0

    def follow(self, move: Callable[[float], None]) -> None:
        """Call `move` with the seconds, positive or negative, by which the clock is set."""
        self._followers.append(move)

    def now(self) -> float:
        """Return the time, after everything noted has been moved to where it is."""
        wall = wall_s()
        moved = wall - steady_s() - self._offset
        self._offset += moved
        if abs(moved) > _SET_S:
            self.times_set += 1
            for move in self._followers:
                move(moved)
        return wall
