"""Bound inference: which part of every tensor must be computed, and where.

Consumers come first.  For each stage, the region its consumers read is the union of their index
intervals, with every loop relaxed except those that enclose the place where the stage is computed.
The region becomes the range of the stage's axes and the shape of its storage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import Interval, interval_of, union
from slipway.arith.linear import INDEX_TYPES, INF, Atom, Linear
from slipway.errors import ScheduleError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import IterVar, PrimExpr, ProducerLoad, SizeVar, Var
from slipway.ir.visit import walk
from slipway.te.inline import inline_bodies
from slipway.te.loop_nest import LeafLoop, LoopNest
from slipway.te.operation import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    lets_in,
    loads_in,
)
from slipway.te.primitives.state import INLINE, ROOT, SCOPE
from slipway.te.scan_loop import find_aliases, scan_ranges, scan_reads
from slipway.te.schedule import Schedule
from slipway.te.stage import Stage
from slipway.te.tensor import Tensor


class TensorBuffer:
    """Where a tensor lives: its buffer, and the tensor index of the buffer's first element."""

    __slots__ = ("buffer", "mins")

    def __init__(self, buffer: Buffer, mins: list[Linear] | None) -> None:
        self.buffer = buffer
        self.mins = mins  # None: all zero


class Bounds:
    """The result of bound inference for one schedule.

    `nests` holds the loops of every stage that has some, `regions` the [low, high] read of every
    tensor that is computed, `bodies` the formulas after inlining.
    """

    def __init__(self, schedule: Schedule, an: Analyzer, args: Iterable[Tensor]) -> None:
        self.schedule = schedule
        self.an = an
        self.bodies = inline_bodies(schedule)
        self.nests: dict[Operation, LoopNest] = {}
        self.regions: dict[Tensor, list[Interval]] = {}
        self.loop_ranges: dict[Atom, Interval] = {}
        self.bound_to_args = set(args)
        self.loads: dict[Operation, list[ProducerLoad]] = {
            op: [load for expr in body for load in loads_in(expr)]
            for op, body in self.bodies.items()
        }
        self.lets = {op: [x for e in body for x in lets_in(e)] for op, body in self.bodies.items()}
        self.consumers = self._find_consumers()
        # What lives in another's storage.
        self.aliases = find_aliases(schedule, self.bound_to_args, self.consumers)
        for stage in reversed(schedule.stages):
            if stage.attach_type != INLINE and not isinstance(stage.op, PlaceholderOp):
                self._infer(stage)

    def _find_consumers(self) -> dict[Operation, list[Stage]]:
        found: dict[Operation, list[Stage]] = {}
        for stage in self.schedule.stages:
            if stage.attach_type == INLINE:
                continue
            if isinstance(stage.op, ComputeOp):
                read = {load.producer.op: None for load in self.loads[stage.op]}
            else:
                read = {t.op: None for t in stage.op.input_tensors}
            for op in read:
                found.setdefault(op, []).append(stage)
        return found

    # -- where a stage is computed ---------------------------------------------------------------

    def path(self, stage: Stage) -> list[LeafLoop]:
        """Return the loops of other stages that enclose the place where `stage` is computed."""
        if stage.attach_type != SCOPE:
            return []
        parent = stage.attach_stage
        assert parent is not None
        assert stage.attach_ivar is not None
        axis = parent.loop_of(stage.attach_ivar)
        nest = self.nests.get(parent.op)
        if nest is None:
            raise ScheduleError(
                f"cannot compute stage {stage.name!r} at {parent.name!r}: that stage is "
                f"{'inlined' if parent.attach_type == INLINE else 'not computed after it'}. "
                "Attach to a stage that reads this one and has loops"
            )
        loops = list(nest.path)
        for loop in nest.loops:
            loops.append(loop)
            if loop.axis is axis:
                return loops
        raise ScheduleError(
            f"cannot compute stage {stage.name!r} at axis {axis.name!r} of {parent.name!r}: that "
            "axis was split or fused afterwards. Call compute_at after splitting, with a loop that "
            f"is still there: {', '.join(repr(x.axis.name) for x in nest.loops)}"
        )

    def _infer(self, stage: Stage) -> None:
        an = self.an
        path = self.path(stage)
        fixed = {loop.atom for loop in path if loop.atom is not None}
        fixed -= self._shared_threads(stage, path)
        relaxed = {a: r for a, r in self.loop_ranges.items() if a not in fixed}
        self._check_consumers(stage, path)
        regions = {t: self._region(stage, t, relaxed) for t in stage.op.outputs}
        read = next((r for r in regions.values() if r is not None), None)
        for tensor, region in regions.items():
            # One that nobody reads is computed where its neighbours are.
            self.regions[tensor] = region or read or self._whole(tensor)
            if isinstance(stage.op, ExternOp):  # its body writes all of it, wherever it stands
                self.regions[tensor] = self._whole(tensor)
        nest = LoopNest(an, stage)
        nest.path = path
        nest.build(self._root_ranges(stage))
        self.nests[stage.op] = nest
        for loop in nest.loops:
            if loop.atom is not None:
                last = loop.extent.shifted(-1)
                if any(not a.variables.isdisjoint(self.loop_ranges) for a in last.terms):
                    high = last.high
                    last = an.constant(int(high), last.dtype) if high < INF else last
                self.loop_ranges[loop.atom] = (an.constant(0, loop.var.dtype), last)

    @staticmethod
    def _shared_threads(stage: Stage, path: list[LeafLoop]) -> set[Atom]:
        """Thread loops that all see one copy of the stage's storage, by its scope."""
        shared = {
            "global": ("threadIdx", "blockIdx", "vthread"),
            "shared": ("threadIdx", "vthread"),
            "warp": ("threadIdx.x",),
        }
        kind = stage.scope.partition(".")[0]  # of "shared.dyn"
        tags = shared.get(kind, ())  # without a scope each thread has a copy of its own
        found = set()
        for loop in path:
            bound = loop.axis
            assert stage.attach_stage is not None
            mark = _thread_of(loop, bound, stage)
            if loop.atom is not None and mark and mark.startswith(tags or ("\0",)):
                found.add(loop.atom)
        return found

    def _check_consumers(self, stage: Stage, path: list[LeafLoop]) -> None:
        if not path:
            return
        for consumer in self.consumers.get(stage.op, ()):
            nest = self.nests[consumer.op]
            around = [*nest.path, *nest.loops]
            if isinstance(consumer.op, ScanOp) and stage.op in {t.op for t in consumer.op.init}:
                around = nest.path  # the first steps of a scan are computed before its loops
            if [x.var for x in around[: len(path)]] != [x.var for x in path]:
                assert stage.attach_stage is not None
                assert stage.attach_ivar is not None
                raise ScheduleError(
                    f"cannot compute stage {stage.name!r} at axis {stage.attach_ivar.name!r} of "
                    f"{stage.attach_stage.name!r}: stage {consumer.name!r} reads it too, outside "
                    f"that loop. Compute {consumer.name!r} inside the same loop, or attach "
                    f"{stage.name!r} further out"
                )

    # -- what is read ----------------------------------------------------------------------------

    def _whole(self, tensor: Tensor) -> list[Interval]:
        an = self.an
        return [(an.constant(0, s.dtype), an.linear(s).shifted(-1)) for s in tensor.shape]

    def _region(
        self, stage: Stage, tensor: Tensor, relaxed: dict[Atom, Interval]
    ) -> list[Interval] | None:
        """What is read of a tensor, or must be there; None where nothing is."""
        an = self.an
        whole = self._whole(tensor)
        region: list[Interval] | None = None
        if stage.is_output or tensor in self.bound_to_args:
            region = whole
            if stage.attach_type == ROOT:
                return whole
        if region is not None and stage.attach_type == SCOPE:
            region = None  # an output computed at its consumer: as much as that reads
        for consumer in self.consumers.get(stage.op, ()):
            for read in self._reads(consumer, tensor, whole, relaxed):
                if region is None:
                    region = read
                else:
                    region = [union(an, a, b) for a, b in zip(region, read, strict=True)]
        return region

    def _reads(
        self, consumer: Stage, tensor: Tensor, whole: list[Interval], relaxed: dict[Atom, Interval]
    ) -> Iterable[list[Interval]]:
        op, an = consumer.op, self.an
        if isinstance(op, ExternOp):
            if tensor in op.inputs:
                yield whole
            return
        if isinstance(op, ScanOp):
            yield from scan_reads(self, op, tensor, whole, relaxed)
            return
        nest = self.nests[op]
        intervals: dict[Atom, Interval | None] = {**nest.axis_intervals(relaxed)}
        loops: dict[Atom, Interval | None] = {**relaxed}
        for let in self.lets[op]:
            intervals[an.var_atom(let.var)] = self._values_of(let, intervals)
            loops[an.var_atom(let.var)] = intervals[an.var_atom(let.var)]
        seen = set()
        for load in self.loads[op]:
            if load.producer is not tensor:
                continue
            sums = [an.linear(i) for i in load.indices]
            key = tuple(s.key for s in sums)
            if key in seen:
                continue
            seen.add(key)
            yield [
                self._clip(self._covered(x, nest, intervals, loops), bound)
                for x, bound in zip(sums, whole, strict=True)
            ]

    def _values_of(self, let: E.Let, intervals: Mapping[Atom, Interval | None]) -> Interval | None:
        """What a Let's variable may be: it is known inside its expression alone, not in bounds."""
        an = self.an
        if let.value.dtype not in INDEX_TYPES:  # never an index itself, only part of one
            return None
        return _interval_of(an, an.linear(let.value), intervals)

    def _covered(
        self,
        index: Linear,
        nest: LoopNest,
        intervals: Mapping[Atom, Interval | None],
        relaxed: Mapping[Atom, Interval | None],
    ) -> Interval | None:
        """What an index covers: axis by axis, or, if that is tighter, in terms of the loops.

        Of a fused loop p the axes y = p // w and x = p % w each have an interval of their own;
        the index y * w + x is p again, and known exactly.
        """
        an = self.an
        by_axis = _interval_of(an, index, intervals)
        if len(index.terms) < 2:
            return by_axis
        in_loops = an.recombine(an.substitute(index, nest.values))
        by_loop = _interval_of(an, in_loops, relaxed)
        if by_axis is None or by_loop is None:
            return by_loop or by_axis
        gap, other = (an.recombine(last.minus(first)).high for first, last in (by_loop, by_axis))
        return by_loop if gap < other else by_axis

    def _clip(self, read: Interval | None, whole: Interval) -> Interval:
        """Cut an interval to the tensor's shape, when it provably covers all of it."""
        if read is None:
            return whole
        an = self.an
        below = an.decide(E.LE, an.recombine(read[0].minus(whole[0])))
        above = an.decide(E.GE, an.recombine(read[1].minus(whole[1])))
        return whole if below and above else read

    def _root_ranges(self, stage: Stage) -> dict[IterVar, tuple[Linear, Linear]]:
        an, op = self.an, stage.op
        ranges: dict[IterVar, tuple[Linear, Linear]] = {}
        if isinstance(op, ComputeOp):
            for d, axis in enumerate(op.axis):
                low, high = self.regions[op.output(0)][d]
                for other in op.outputs[1:]:
                    low, high = union(an, (low, high), self.regions[other][d])
                ranges[axis] = (low, an.recombine(high.minus(low)).shifted(1))
            for tensor in op.outputs:
                self.regions[tensor] = [
                    (low, low.plus(extent).shifted(-1))
                    for low, extent in (ranges[a] for a in op.axis)
                ]
            for axis in op.reduce_axis:
                assert axis.dom is not None
                ranges[axis] = (an.linear(axis.dom.min), an.linear(axis.dom.extent))
        elif isinstance(op, ScanOp):
            return scan_ranges(self, op)
        return ranges

    # -- storage ---------------------------------------------------------------------------------

    def allocate(self, tensor: Tensor, stage: Stage, scope: str) -> TensorBuffer:
        """Return new storage for the region of `tensor` that is computed.

        It has room for the largest sizes.  Rows of a large one are as far apart as those of a run
        are long: what a run touches lies together, whatever the largest size is.
        """
        an = self.an
        region = self.regions[tensor]
        mins = [low for low, _ in region]
        shape: list[PrimExpr] = []
        own: list[PrimExpr] = []  # of the sizes that a run has
        for low, high in region:
            extent = an.recombine(high.minus(low)).shifted(1)
            own.append(an.to_expr(extent))
            if not extent.is_const and extent.high < INF:
                extent = an.constant(int(extent.high), extent.dtype)
            shape.append(an.to_expr(extent))
        # What an extern operation calls takes its buffer as compact.
        is_ours = scope in ("", "global") and isinstance(stage.op, ComputeOp)
        together = is_ours and _is_of_open_sizes(shape, own)
        strides: list[PrimExpr] = []  # compact
        if together or stage.alignments:
            strides = self._strides(stage, own if together else shape)
        buffer = decl_buffer(shape, tensor.dtype, tensor.name, strides=strides, scope=scope)
        return TensorBuffer(buffer, mins)

    def _strides(self, stage: Stage, shape: list[PrimExpr]) -> list[PrimExpr]:
        """Return strides of rows as long as `shape` says, padded as storage_align asked."""
        strides: list[PrimExpr] = []
        step: PrimExpr = ops.const(1)
        for axis, extent in zip(reversed(stage.op.axis), reversed(shape), strict=True):
            wanted = stage.alignments.get(axis)
            size = ops.as_int(step)
            if wanted is not None:
                factor, offset = wanted
                if size is not None:
                    step = ops.const(size + (factor + offset - size % factor) % factor)
                else:
                    missing = factor + offset - ops.floormod(step, factor)
                    step = ops.add(step, ops.floormod(missing, factor))
            strides.append(step)
            step = ops.mul(step, extent)
        return strides[::-1]


def _interval_of(
    an: Analyzer, x: Linear, ranges: Mapping[Atom, Interval | None]
) -> Interval | None:
    """Return the interval of an index; elements of tensors in it may have any value."""
    inside = (v for atom in x.terms for v in atom.variables)
    unknown: dict[Atom, Interval | None] = {v: None for v in inside if v.kind == "other"}
    return interval_of(an, x, {**ranges, **unknown} if unknown else ranges)


def _thread_of(loop: LeafLoop, axis: IterVar, stage: Stage) -> str:
    parent = stage.attach_stage
    while parent is not None:
        mark = parent.iter_var_attrs.get(axis)
        if mark is not None and mark.bind_thread is not None:
            return mark.bind_thread.thread_tag
        parent = parent.attach_stage
    return ""


_SPREAD_BYTES = 1 << 14  # of a buffer from which on it matters how much of it a run touches


def _is_of_open_sizes(shape: list[PrimExpr], own: list[PrimExpr]) -> bool:
    """Return whether a large buffer has extents that only sizes of the run make smaller."""
    known = [extent for extent in map(ops.as_int, shape) if extent is not None]
    if len(known) < len(shape) or math.prod(known) * 4 < _SPREAD_BYTES:
        return False
    if all(ops.as_int(extent) is not None for extent in own):
        return False
    return all(
        isinstance(node, SizeVar)
        for extent in own
        for node in walk(extent)
        if isinstance(node, Var)
    )


__all__ = ["Any", "Bounds", "TensorBuffer"]
