"""Which schedule an operator gets on a target.

An `Implementation` belongs to one operator: a schedule function, perhaps its own compute (a
Winograd convolution, say), and the condition under which it applies.  `select` takes the one of
greatest priority that applies.  An operator without any gets the schedule of its fusion pattern,
from ``backends/generic``.
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
    "cpu.schedules.attention.fused", "cpu.schedules.matmul.lane_fma", "cpu.schedules.conv.direct",
    "cpu.schedules.conv.few_filters", "cpu.schedules.conv.rows", "cpu.schedules.conv.k_blocked",
    "cpu.schedules.matmul.dense", "cpu.schedules.conv.depthwise", "cpu.schedules.matmul.gemm",
    "cpu.schedules.norm.long_softmax", "cpu.schedules.norm.layer", "cpu.schedules.matmul.dot_pairs",
    "cpu.schedules.matmul.dot_pairs_rows", "cpu.schedules.pool.blocked", "cpu.schedules.pool.rows",
    "cpu.schedules.matmul.few_rows", "cpu.schedules.quantized.broadcast",
    "cpu.schedules.quantized.depthwise", "cpu.schedules.quantized.packed",
    "cpu.schedules.quantized.rows", "cpu.schedules.quantized.winograd",
    "cpu.schedules.resize.plain", "cpu.schedules.resize.blocked",
    "cpu.schedules.matmul.lane_fma_rows", "cpu.schedules.norm.softmax",
    "cpu.schedules.conv.winograd", "micro.schedules.direct", "cpu.schedules.scan",
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
            importlib.import_module(f"slipway.backends.{module}")
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
