"""What scripts need besides (classic): the machine's cores, classes that derive from ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from slipway.errors import ArgumentValueError
from slipway.runtime.packed_func import get_global_func

T = TypeVar("T")
BUILT = "slipway-built-"  # folders of libraries that a LocalBuilder made


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


def get_global_func_with_default_on_worker(
    name: str | Callable[..., Any] | None, default: Any
) -> Any:
    """Return a function, or what `register_func` knows by its name; `default` for None.

    Raises ArgumentValueError for a name that is not known.
    """
    if name is None:
        return default
    if callable(name):
        return name
    found = get_global_func(name, allow_missing=True) or _OURS.get(name)
    if found is None:
        raise ArgumentValueError(
            f"no function {name!r} is registered here: register_func it in the initializer, which "
            "is called when the builder or runner is made"
        )
    return found


def remove_build_dir(artifact_path: str) -> None:
    """Delete a library that a LocalBuilder made, with its folder; what a script wrote stays."""
    folder = Path(artifact_path).parent
    if folder.name.startswith(BUILT):
        shutil.rmtree(folder, ignore_errors=True)


_OURS = {"meta_schedule.remove_build_dir": remove_build_dir}


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
