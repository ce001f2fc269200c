"""Which schedule an operator gets on a target.

An `Implementation` belongs to one operator: a schedule function, perhaps its own compute (a
Winograd convolution, say), and the condition under which it applies.  `select` takes the one of
greatest priority that applies.  An operator without any gets the schedule of its fusion pattern,
from ``schedules/generic``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway import te
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


_IMPLEMENTATIONS: dict[str, list[Implementation]] = {}
_MODULES = (
    "cpu.attention", "cpu.by_lane", "cpu.conv", "cpu.conv_few", "cpu.conv_rows",
    "cpu.conv_streamed", "cpu.dense", "cpu.depthwise", "cpu.gemm", "cpu.long_softmax", "cpu.norm",
    "cpu.paired", "cpu.paired_rows", "cpu.pool", "cpu.pool_rows", "cpu.product", "cpu.quantized",
    "cpu.quantized_depthwise", "cpu.quantized_packed", "cpu.quantized_rows",
    "cpu.quantized_winograd", "cpu.resize", "cpu.resize_blocked", "cpu.rows_by_lane", "cpu.softmax",
    "cpu.winograd", "micro.direct", "scan",
)  # fmt: skip
_loaded = False


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


def _load() -> None:
    global _loaded
    if not _loaded:
        for module in _MODULES:
            importlib.import_module(f"slipway.schedules.{module}")
        _loaded = True


def implementations(op: str) -> Sequence[Implementation]:
    """Return all that is registered for an operator, whatever the target."""
    _load()
    return tuple(_IMPLEMENTATIONS.get(op, ()))


def candidates(
    op: str, attrs: Any, in_types: Sequence[Type], target: Target
) -> list[Implementation]:
    """Return the implementations that apply, the preferred first; empty if there is none."""
    fitting = [e for e in implementations(op) if e.applies(attrs, in_types, target)]
    return sorted(fitting, key=lambda e: -e.priority)


def select(op: str, attrs: Any, in_types: Sequence[Type], target: Target) -> Implementation | None:
    """Return the implementation to use, or None: the operator gets the schedule of its pattern."""
    fitting = candidates(op, attrs, in_types, target)
    return fitting[0] if fitting else None
