"""Schedules as plain data: the list of primitives that was applied, as JSON, and back.

A step is ``[primitive, stage, argument, ...]``.  Stages are named by the order in which they were
created; an axis is ``["axis", stage, n]``, the n-th axis that the stage ever had; a tensor is
``["tensor", stage, output]``; a stage as an argument is ``["stage", n]``.  Replaying the steps on
the default schedule of the same graph gives the same loops, so a search can work on lists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from slipway.errors import ScheduleError, did_you_mean
from slipway.ir.expr import IterVar
from slipway.ir.text.serialize import load_json
from slipway.ir.visit import substitute
from slipway.te.declare import thread_axis
from slipway.te.schedule import Schedule
from slipway.te.stage import Stage

FORMAT_VERSION = 1
Step = Sequence[Any]

_STAGE_PRIMITIVES = (
    "split",
    "fuse",
    "reorder",
    "vectorize",
    "unroll",
    "parallel",
    "pragma",
    "compute_at",
    "compute_inline",
    "compute_root",
    "set_scope",
    "double_buffer",
    "storage_align",
    "swizzle",
)
PRIMITIVES = (
    *_STAGE_PRIMITIVES,
    "bind",
    "env_threads",
    "prefetch",
    "prefetch_at",
    "tensorize",
    "cache_read",
    "cache_write",
    "rfactor",
)


def schedule_to_json(sch: Schedule) -> str:
    """Return the steps of `sch` as JSON text."""
    return json.dumps({"slipway_schedule": FORMAT_VERSION, "steps": sch.steps})


def steps_from_json(text: str) -> list[list[Any]]:
    """Return the steps that `schedule_to_json` wrote; ScheduleError for anything else."""
    try:
        document = json.loads(text)
        version, steps = document["slipway_schedule"], document["steps"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ScheduleError(f"not a stored schedule: {error}") from error
    if not isinstance(steps, list) or not all(isinstance(step, list) for step in steps):
        raise ScheduleError("not a stored schedule: its steps are not lists")
    if version != FORMAT_VERSION:
        raise ScheduleError(
            f"this schedule has format version {version}; this Slipway reads {FORMAT_VERSION}"
        )
    return list(steps)


def apply_steps(
    sch: Schedule, steps: Sequence[Step], intrinsics: Mapping[str, Any] | None = None
) -> Schedule:
    """Apply `steps` to a fresh schedule of the graph they were recorded on; return the schedule.

    `intrinsics` gives the tensor intrinsics that tensorize steps name.  Raises ScheduleError, with
    the step's number, when a step does not fit.
    """
    replay = _Replay(sch, dict(intrinsics or {}))
    for number, step in enumerate(steps):
        try:
            replay.apply(step)
        except ScheduleError as error:
            raise ScheduleError(f"step {number} {list(step)}: {error}") from error
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ScheduleError(
                f"step {number} {list(step)} does not fit this graph: {error}"
            ) from error
    return sch


class _Replay:
    def __init__(self, sch: Schedule, intrinsics: dict[str, Any]) -> None:
        self.sch = sch
        self.intrinsics = intrinsics
        self.threads: dict[str, IterVar] = {}

    def stage(self, number: int) -> Stage:
        for stage in self.sch.stages:
            if stage.number == number:
                return stage
        raise ScheduleError(f"the schedule has no stage number {number}")

    def thread(self, tag: str) -> IterVar:
        return self.threads.setdefault(tag, thread_axis(tag))

    def value(self, plain: Any) -> Any:
        if not isinstance(plain, list) or not plain or not isinstance(plain[0], str):
            return [self.value(p) for p in plain] if isinstance(plain, list) else plain
        tag, *rest = plain
        if tag == "axis":
            return self.stage(rest[0]).axes_ever[rest[1]]
        if tag == "stage":
            return self.stage(rest[0])
        if tag == "tensor":
            return self.stage(rest[0]).op.output(rest[1])
        if tag == "thread":
            return self.thread(rest[0])
        return plain

    def apply(self, step: Step) -> None:
        name, number, *plain = step
        if name not in PRIMITIVES:
            raise ScheduleError(f"unknown primitive {name!r}.{did_you_mean(str(name), PRIMITIVES)}")
        arguments = [self.value(p) for p in plain]
        if name == "cache_read":
            tensor, scope, readers = arguments
            self.sch.cache_read(tensor, scope, [r.op for r in readers])
        elif name == "cache_write":
            tensors, scope, many = arguments
            self.sch.cache_write(tensors if many else tensors[0], scope)
        elif name == "rfactor":
            self.sch.rfactor(*arguments)
        elif name == "bind":
            self.stage(number).bind(arguments[0], self.thread(plain[1]))
        elif name == "env_threads":
            self.stage(number).env_threads([self.thread(tag) for tag in plain])
        elif name == "prefetch":
            tensor, axis, offset = arguments
            self.stage(number).prefetch(tensor, axis, offset)
        elif name == "prefetch_at":
            tensor, axis, text, *axes = arguments
            positions, named, *level = load_json(text)  # older ones have no level
            given = {var: axis.var for var, axis in zip(named, axes, strict=True)}
            indices = [substitute(p, given) for p in positions]
            self.stage(number).prefetch_at(tensor, axis, indices, *level)
        elif name == "tensorize":
            axis, intrin = arguments
            if intrin not in self.intrinsics:
                raise ScheduleError(f"pass the intrinsic {intrin!r} as intrinsics={{name: it}}")
            self.stage(number).tensorize(axis, self.intrinsics[intrin])
        else:
            getattr(self.stage(number), name)(*arguments)
