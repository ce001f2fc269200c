"""What scripts need besides (classic): the machine's cores, classes that derive from ours."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class Described:
    """A part of a search that is printed by its class, as classic TVM printed it."""

    def __str__(self) -> str:
        return f"meta_schedule.{type(self).__name__}({hex(id(self))})"


def cpu_count(logical: bool = True) -> int:
    """Return the processors of this machine; without `logical`, its cores where Linux tells."""
    threads = os.cpu_count() or 1
    return threads if logical else _cores() or threads


def derived_object(cls: T) -> T:
    """Return a class that derives from one here, for a decorator of classic TVM."""
    return cls


@cache
def _cores() -> int:
    """Return how many sets of threads share a core; 0 where that is not told."""
    found = set()
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list"):
        try:
            found.add(path.read_text())
        except OSError:
            return 0
    return len(found)
