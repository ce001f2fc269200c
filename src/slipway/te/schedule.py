"""Schedule: how every stage of a tensor-expression graph is computed.

A schedule is a mutable builder over immutable operations.  `steps` lists what was asked, as
plain data (see `te.steps`), so that it can be stored as JSON and replayed on the same graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import ScheduleError, did_you_mean
from slipway.ir.buffer import Buffer
from slipway.ir.expr import IterVar, PrimExpr, ProducerLoad
from slipway.ir.visit import post_order_by
from slipway.te import dataflow, group
from slipway.te.operation import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp
from slipway.te.primitives.relations import Fuse, Singleton, Split
from slipway.te.primitives.state import ROOT, StageBase
from slipway.te.rewrite import inside
from slipway.te.scan_loop import attach_scan_bodies
from slipway.te.stage import Stage
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def create_schedule(ops: Any) -> Schedule:
    """Return the default schedule that computes `ops` (operations or tensors) and all they read."""
    items = list(ops) if isinstance(ops, (tuple, list)) else [ops]
    outputs = [o.op if isinstance(o, Tensor) else o for o in items]
    for one in outputs:
        if not isinstance(one, Operation):
            raise ScheduleError(f"te.create_schedule takes T.op (or a list of them), got {one!r}")
    schedule = Schedule(outputs)
    attach_scan_bodies(schedule)
    return schedule


class Schedule:
    """Stages in topological order, producers first."""

    def __init__(self, outputs: list[Operation]) -> None:
        self.outputs = list(outputs)
        self.stages: list[Stage] = []
        self.stage_map: dict[Operation, Stage] = {}
        self.groups: list[group.Group] = []
        self.steps: list[list[Any]] = []
        self._created = 0
        self._logging = True
        for op in topological_order(outputs):
            self.add_stage(op, len(self.stages))
        for op in outputs:
            self.stage_map[op].is_output = True
        self._original_order = [s.op for s in self.stages]

    def add_stage(self, op: Operation, position: int, beside: Stage | None = None) -> Stage:
        """Insert a stage for `op` before stage number `position`, in the group of `beside`."""
        stage = Stage(self, op, self._created)
        if beside is not None and beside.group is not None:
            beside.group.join(stage)
        self._created += 1
        self.stages.insert(position, stage)
        self.stage_map[op] = stage
        return stage

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        op = key.op if isinstance(key, Tensor) else key
        stage = self.stage_map.get(op) if isinstance(op, Operation) else None
        if stage is None:
            names = [s.name for s in self.stages]
            name = getattr(op, "name", str(op))
            raise ScheduleError(
                f"{name!r} is no stage of this schedule, which has: {', '.join(names)}."
                f"{did_you_mean(str(name), names)}"
            )
        return stage

    def __contains__(self, key: Tensor | Operation) -> bool:
        return (key.op if isinstance(key, Tensor) else key) in self.stage_map

    def normalize(self) -> Schedule:
        """Return this schedule (classic name; lowering normalises by itself)."""
        return self

    def tensor_key(self, tensor: Tensor) -> list[Any]:
        """Return how steps name a tensor: stage number and output index."""
        return ["tensor", self[tensor].number, tensor.value_index]

    def log(self, stage: StageBase | None, primitive: str, arguments: tuple[Any, ...]) -> None:
        """Record one primitive as a plain step; nested primitives are not recorded."""
        if not self._logging:
            return
        plain = [self._plain(stage, value) for value in arguments]
        self.steps.append([primitive, None if stage is None else stage.number, *plain])

    def _plain(self, stage: StageBase | None, value: object) -> Any:
        if isinstance(value, IterVar):
            for owner in ([stage] if stage is not None else []) + list[StageBase](self.stages):
                for position, axis in enumerate(owner.axes_ever):
                    if axis is value:
                        return ["axis", owner.number, position]
            return ["thread", value.thread_tag]
        if isinstance(value, Stage):
            return ["stage", value.number]
        if value is None or isinstance(value, (bool, int, float, str, list)):
            return value
        if hasattr(value, "value"):
            return value.value
        return str(value)

    # The primitives that change the graph live in te.dataflow.

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """Let `readers` read `tensor` through a copy in memory scope `scope`; return the copy."""
        return dataflow.cache_read(self, tensor, scope, readers)

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Compute `tensor` (or all outputs of one operation) in `scope`, then copy it out.

        Returns the tensor that is computed in `scope`; its stage has the original axes.
        """
        return dataflow.cache_write(self, tensor, scope)

    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> group.Group:
        """Return the stages on the way from `inputs` to `outputs`; see `te.group`."""
        return group.create_group(self, outputs, inputs, include_inputs)

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Compute partial reductions for each step of reduction loop `axis` in a stage of its own.

        The new stage has `axis` as data axis number `factor_axis`; `tensor` reduces over it.
        Returns the tensor of partial results.
        """
        return dataflow.rfactor(self, tensor, axis, factor_axis)


def topological_order(outputs: list[Operation]) -> list[Operation]:
    """Return every operation that `outputs` need, producers before consumers."""
    return post_order_by(outputs, lambda op: [t.op for t in op.input_tensors])


def kept_in_memory(sch: Schedule) -> set[Operation]:
    """Return the operations whose results an extern or a scan reads from memory: not inlined."""
    readers = (stage.op for stage in sch.stages if isinstance(stage.op, (ExternOp, ScanOp)))
    return {tensor.op for op in readers for tensor in op.input_tensors}


def auto_inline_injective(sch: Schedule) -> None:
    """Inline every stage without a reduction that is no output and has not been scheduled."""
    _auto_inline(sch, lambda op: True)


def auto_inline_broadcast(sch: Schedule) -> None:
    """Inline stages as `auto_inline_injective`, of those that read at some of their axes, in order.

    An axis may be left out, as where a vector is added to rows.
    """
    _auto_inline(sch, lambda op: _reads_at(op, False))


def auto_inline_elementwise(sch: Schedule) -> None:
    """Inline stages as `auto_inline_injective`, of those that read at their own axes alone."""
    _auto_inline(sch, lambda op: _reads_at(op, True))


def _auto_inline(sch: Schedule, fits: Callable[[ComputeOp], bool]) -> None:
    kept = kept_in_memory(sch)
    for stage in sch.stages:
        op = stage.op
        if op in kept:
            continue
        touched = stage.relations or stage.iter_var_attrs or stage.attach_type != ROOT
        if not isinstance(op, ComputeOp) or op.reduce_axis or stage.is_output or touched:
            continue
        if stage.leaf_iter_vars == stage.all_iter_vars and fits(op):
            stage.compute_inline()


def _reads_at(op: ComputeOp, all_axes: bool) -> bool:
    """Return whether an operation reads all it reads at its axes, all of them or some in order."""
    axes: list[PrimExpr] = [axis.var for axis in op.axis]
    for load in post_order_by(op.body, inside):
        if not isinstance(load, ProducerLoad):
            continue
        positions = [axes.index(i) if i in axes else -1 for i in load.indices]
        if -1 in positions or positions != sorted(set(positions)):
            return False
        if all_axes and len(positions) < len(axes):
            return False
    return True


AutoInlineInjective = auto_inline_injective  # as C++ names the three
AutoInlineBroadcast = auto_inline_broadcast
AutoInlineElemWise = auto_inline_elementwise

__all__ = [
    "AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "Buffer", "Fuse", "IterVar",
    "PlaceholderOp", "ScanOp", "Schedule", "Singleton", "Split", "Stage", "auto_inline_broadcast",
    "auto_inline_elementwise", "auto_inline_injective", "create_schedule", "topological_order",
]  # fmt: skip
