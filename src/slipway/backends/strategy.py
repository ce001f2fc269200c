"""Which schedule an operator gets on a target.

An `Implementation` belongs to one operator: a schedule function, perhaps its own compute (a
Winograd convolution, say), and the condition under which it applies.  `select` takes the one of
greatest priority that applies.  An operator without any gets the schedule of its fusion pattern,
from ``backends/cpu/schedules/generic``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.backend import backend_of, backends
from slipway.relay.types import Type

if TYPE_CHECKING:
    from slipway.target import Target

ScheduleFunction = Callable[["Target", Sequence[te.Tensor], te.Tensor], te.Schedule]
ComputeFunction = Callable[
    ["Target", Any, Sequence[te.Tensor], Sequence[Type]], Sequence[te.Tensor]
]
Condition = Callable[[Any, Sequence[Type], "Target"], bool]


@dataclass(frozen=True)
class Implementation:
    """One way to compute and schedule an operator.

    `schedule(target, outs, anchor)` gets the outputs of the whole fused kernel and the operator's
    own tensor among them.  `compute` None means the operator's own.
    """

    name: str
    op: str
    schedule: ScheduleFunction
    compute: ComputeFunction | None
    applies: Condition
    priority: int

    @property
    def home(self) -> str:
        """The module that holds it: strategies in a backend's packages are that backend's."""
        function = getattr(self.schedule, "func", self.schedule)
        return str(getattr(function, "__module__", ""))


_IMPLEMENTATIONS: dict[str, list[Implementation]] = {}


def _always(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    return True


def register_implementation(
    *ops: str,
    name: str,
    priority: int = 10,
    compute: ComputeFunction | None = None,
    applies: Condition = _always,
) -> Callable[[ScheduleFunction], ScheduleFunction]:
    """Decorator: enter a schedule function for the operators `ops`."""

    def register(schedule: ScheduleFunction) -> ScheduleFunction:
        for op in ops:
            entry = Implementation(name, op, schedule, compute, applies, priority)
            _IMPLEMENTATIONS.setdefault(op, []).append(entry)
        return schedule

    return register


_imported: set[str] = set()


def _import(package: str) -> None:
    """Import the modules of a package of strategies, each of which registers its own."""
    if package in _imported:
        return
    _imported.add(package)
    found = importlib.import_module(package)
    for item in pkgutil.walk_packages(found.__path__, f"{package}."):
        importlib.import_module(item.name)


def implementations(op: str, target: Target) -> list[Implementation]:
    """Return the strategies for an operator that the target's backend has, or that a user added."""
    packages = backend_of(target).strategies
    for package in packages:
        _import(package)
    return [e for e in _IMPLEMENTATIONS.get(op, ()) if _is_of(e.home, packages)]


@lru_cache(maxsize=4096)
def _is_of(module: str, packages: tuple[str, ...]) -> bool:
    """Return whether a module lies in one of `packages`, or in no backend's."""
    every = {name for backend in backends() for name in backend.strategies}
    inside = [name for name in every if module.startswith(f"{name}.")]
    return not inside or any(name in packages for name in inside)


def candidates(
    op: str, attrs: Any, in_types: Sequence[Type], target: Target
) -> list[Implementation]:
    """Return the implementations that apply, the preferred first; empty if there is none."""
    fitting = [e for e in implementations(op, target) if e.applies(attrs, in_types, target)]
    return sorted(fitting, key=lambda e: -e.priority)


def select(op: str, attrs: Any, in_types: Sequence[Type], target: Target) -> Implementation | None:
    """Return the implementation to use, or None: the operator gets the schedule of its pattern."""
    fitting = candidates(op, attrs, in_types, target)
    return fitting[0] if fitting else None
