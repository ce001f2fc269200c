"""Lowering of te.scan: a recurrence that runs in order along the first axis of its states.

The state, its placeholder, and the update tensors are one storage: step t writes row t, and the
update formula reads earlier rows through the placeholder.  Everything the update needs that
depends on the state is computed inside the scan's loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from slipway.arith.interval import Interval, interval_of
from slipway.arith.linear import Atom, Linear
from slipway.errors import ScheduleError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import IterVar, PrimExpr, Var
from slipway.te.group import Group
from slipway.te.operation import ComputeOp, Operation, ScanOp
from slipway.te.primitives.state import ROOT, SCOPE
from slipway.te.stage import Stage
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.te.infer_bound import Bounds
    from slipway.te.lowering import Lowering
    from slipway.te.schedule import Schedule


def scan_body(op: ScanOp) -> list[Operation]:
    """Return the operations between the states and the updates: those that run at every step."""
    states = {t.op for t in op.state_placeholder}
    memo: dict[Operation, bool] = {}

    def depends(current: Operation) -> bool:
        if current in states:
            return True
        if current not in memo:
            memo[current] = False
            memo[current] = any([depends(t.op) for t in current.input_tensors])
        return memo[current]

    for update in op.update:
        depends(update.op)
        memo[update.op] = True
    return [o for o, inside in memo.items() if inside]


def attach_scan_bodies(sch: Schedule) -> None:
    """Put every stage of a scan's body into the scan's loop, as a group: the default schedule."""
    for stage in sch.stages:
        if isinstance(stage.op, ScanOp):
            body = [sch.stage_map[op] for op in scan_body(stage.op)]
            for inner in body:
                inner.attach_type = SCOPE
                inner.attach_stage = stage
                inner.attach_ivar = stage.op.scan_axis
            group = Group(sch, body)
            group.attach_stage = stage
            sch.groups.append(group)


def scan_ranges(bounds: Bounds, op: ScanOp) -> dict[IterVar, tuple[Linear, Linear]]:
    """Return the ranges of the scan axis and the spatial axes: always the whole state."""
    an = bounds.an
    ranges = {}
    for axis in (op.scan_axis, *op.spatial):
        assert axis.dom is not None
        ranges[axis] = (an.linear(axis.dom.min), an.linear(axis.dom.extent))
    for tensor in op.outputs:
        bounds.regions[tensor] = [
            (an.constant(0, s.dtype), an.linear(s).shifted(-1)) for s in tensor.shape
        ]
    return ranges


def scan_reads(
    bounds: Bounds,
    op: ScanOp,
    tensor: Tensor,
    whole: list[Interval],
    relaxed: dict[Atom, Interval],
) -> Iterable[list[Interval]]:
    """Yield what the scan reads of `tensor`: row t of an update, all of an init."""
    if tensor in op.update:
        an = bounds.an
        time = bounds.nests[op].values[an.var_atom(op.scan_axis.var)]
        inside = interval_of(an, time, relaxed)
        yield [inside or whole[0], *whole[1:]]
    if tensor in op.init:
        yield whole


def find_aliases(
    sch: Schedule, owned: set[Tensor], consumers: dict[Operation, list[Stage]]
) -> dict[Tensor, Tensor]:
    """Return which tensors live in the storage of a scan's states.

    An initial row does too, unless something else reads it or its stage says where it is.
    """
    aliases: dict[Tensor, Tensor] = {}
    for stage in sch.stages:
        op = stage.op
        if not isinstance(op, ScanOp):
            continue
        states = zip(op.outputs, op.state_placeholder, op.update, strict=True)
        for output, state, update in states:
            if update in owned:
                raise ScheduleError(
                    f"update tensor {update.name!r} of scan {op.name!r} is an argument; pass the "
                    "scan's own output instead"
                )
            if update in aliases:
                raise ScheduleError(
                    f"scan {op.name!r} updates two states from tensor {update.name!r}; compute "
                    "one tensor per state"
                )
            aliases[state] = output
            aliases[update] = output
        for output, init in zip(op.outputs, op.init, strict=True):
            if init not in owned and _begins_there(sch, stage, init, consumers):
                aliases[init] = output
    return aliases


def _begins_there(
    sch: Schedule, scan: Stage, init: Tensor, consumers: dict[Operation, list[Stage]]
) -> bool:
    """Return whether the stage of `init` can store into the scan's own first rows."""
    stage = sch.stage_map[init.op]
    at_top = stage.attach_type == ROOT and scan.attach_type == ROOT
    plain = isinstance(stage.op, ComputeOp) and len(stage.op.outputs) == 1 and not stage.scope
    once = consumers.get(stage.op) == [scan] and scan.op.input_tensors.count(init) == 1
    return at_top and plain and once


def scan_statement(lowering: Lowering, stage: Stage) -> S.Stmt:
    """Return the copy of the initial rows, then the loop over the other steps."""
    op: ScanOp = stage.op  # type: ignore[assignment]
    nest = lowering.bounds.nests[op]
    copies = [
        _copy_rows(lowering, source, target)
        for source, target in zip(op.init, op.outputs, strict=True)
        if source not in lowering.bounds.aliases
    ]
    body: S.Stmt = S.NOP
    for loop in reversed(nest.loops):
        stages = lowering.attached.get((op, loop.axis))
        if stages:
            body = lowering.pipeline(stages, body)
        if loop.atom is None:
            continue
        extent = lowering.an.to_expr(loop.extent)
        if extent.dtype != loop.var.dtype:  # a short part of a long axis
            extent = ops.cast(extent, loop.var.dtype)
        zero = ops.const(0, loop.var.dtype)
        thread = loop.axis if loop.axis.kind == "thread" else None
        kind = S.ForKind.THREAD if thread is not None else S.ForKind.SERIAL
        body = S.For(loop.var, zero, extent, kind, body, thread)
    return S.seq((*copies, body))


def _copy_rows(lowering: Lowering, source: Tensor, target: Tensor) -> S.Stmt:
    """Return loops that copy all of `source` to the first rows of `target`."""
    axes = [Var(f"{target.name}.init{d}", s.dtype) for d, s in enumerate(source.shape)]
    given, state = lowering.storage[source], lowering.storage[target]
    here: tuple[PrimExpr, ...] = tuple(axes)
    stmt: S.Stmt = S.BufferStore(state.buffer, E.BufferLoad(given.buffer, here), here)
    for axis, extent in zip(reversed(axes), reversed(source.shape), strict=True):
        stmt = S.For(axis, ops.const(0, axis.dtype), extent, S.ForKind.SERIAL, stmt)
    return stmt
