"""Numbers of configurations: which are there, what is next to one, drawn ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Indexed:
    """A space whose configurations have numbers; the first knob varies fastest.

    A number for which the filter of all knobs (`multi_filter`) says no is none of a configuration.
    """

    space_map: dict[str, Any]
    _filter: Callable[[Mapping[str, Any]], bool] | None = None

    def __init__(self) -> None:
        self._valid: dict[int, bool] = {}

    def multi_filter(self, filter: Callable[[Mapping[str, Any]], bool]) -> None:
        """Leave only configurations for which ``filter({knob: choice})`` holds."""
        self._filter = filter
        self.clear_cache()

    def clear_cache(self) -> None:
        """Ask the filter anew for each number."""
        self._valid.clear()

    @property
    def dims(self) -> list[int]:
        """How many choices each knob has."""
        return [len(space) for space in self.space_map.values()]

    @property
    def range_length(self) -> int:
        """How many numbers there are, of configurations or not."""
        return math.prod(self.dims)

    def __len__(self) -> int:
        return self.subrange_length(0, self.range_length)

    def subrange_length(self, start: int, end: int) -> int:
        """Return how many configurations have numbers from `start` on, before `end`."""
        if not 0 <= start <= end <= self.range_length:
            raise IndexError(f"{start} to {end} is no part of 0 to {self.range_length}")
        if self._filter is None:
            return end - start
        return sum(map(self.is_index_valid, range(start, end)))

    def entities_at(self, index: int) -> dict[str, Any]:
        """Return the choice of each knob that a number stands for."""
        spaces = self.space_map.items()
        return {
            name: space[at]
            for (name, space), at in zip(spaces, self.point2knob(index), strict=True)
        }

    def is_index_valid(self, index: int) -> bool:
        """Return whether a number is that of a configuration."""
        if not 0 <= index < self.range_length:
            return False
        if self._filter is None:
            return True
        if index not in self._valid:
            self._valid[index] = bool(self._filter(self.entities_at(index)))
        return self._valid[index]

    def point2knob(self, point: int) -> list[int]:
        """Return the number of each knob's choice."""
        found = []
        for n in self.dims:
            point, at = divmod(point, n)
            found.append(at)
        return found

    def knob2point(self, knob: Sequence[int]) -> int:
        """Return the number of a configuration by those of its choices."""
        point, step = 0, 1
        for at, n in zip(knob, self.dims, strict=True):
            point, step = point + int(at) * step, step * n
        return point

    def get_rand_index(
        self, start: int | None = None, end: int | None = None,
        to_exclude: Sequence[int] | None = None,
    ) -> int:  # fmt: skip
        """Return the number of a configuration, drawn.  Raises IndexError where there is none."""
        first, last, out = start or 0, end or self.range_length, set(to_exclude or ())
        for _ in range(64):
            index = random.randrange(first, last)
            if index not in out and self.is_index_valid(index):
                return index
        left = [i for i in range(first, last) if i not in out and self.is_index_valid(i)]
        if not left:
            raise IndexError(f"no configuration has a number from {first} to {last - 1}")
        return random.choice(left)

    def get_next_index(
        self, index: int, n: int = 1, start: int | None = None, end: int | None = None
    ) -> int | None:
        """Return the number of the n-th configuration after one, None where there is none."""
        first, last, step = start or 0, end or self.range_length, 1 if n > 0 else -1
        left = abs(n)
        while left:
            index += step
            if not first <= index < last:
                return None
            left -= self.is_index_valid(index)
        return index

    def sample_ints(self, m: int) -> list[int]:
        """Return the numbers of so many configurations, each one other."""
        found: list[int] = []
        while len(found) < m:
            found.append(self.get_rand_index(to_exclude=found))
        return found

    def random_walk(self, point: int) -> int:
        """Return the number of a configuration that differs in some knobs."""
        knob = self.point2knob(point)
        for _ in range(64 * max(1, len(knob))):
            at = random.randrange(len(knob))
            knob[at] = random.randrange(self.dims[at])
            other = self.knob2point(knob)
            if other != point and self.is_index_valid(other):
                return other
        return self.get_rand_index(to_exclude=[point])
