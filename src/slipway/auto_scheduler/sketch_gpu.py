"""Sketches for GPUs: the loops of each result are blocks and threads.

A product is tiled for blocks, virtual threads, threads and registers, and computed inside the tiles
of what follows it; what it reads may come by shared memory, which the threads of a block fill
together.  A long sum, and a product of few results, may be summed by the threads of a block for
each result.  Every other stage that is not inlined is a kernel of one thread for each result.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from slipway.auto_scheduler.analysis import LONG, Role, StageRole, extent
from slipway.auto_scheduler.sketch import (
    CUT,
    INLINED,
    ROOT,
    UNROLLS,
    Knobs,
    Sketches,
    SketchWriter,
    axis_name,
)
from slipway.auto_scheduler.steps import MARKS, UNROLL, Step
from slipway.auto_scheduler.tiles_read import PartRead, parts_read
from slipway.backends.gpu.limits import most_threads, shared_bytes
from slipway.target import Target
from slipway.te.operation import ComputeOp, Operation
from slipway.tuning.space import Candidate, divisors, fitting

if TYPE_CHECKING:
    from slipway.auto_scheduler.compute_dag import ComputeDAG

THREADS = (16, 32, 64, 128, 256, 512, 1024)  # of a block
USUAL_THREADS = 64
VECTORS = (1, 2, 4)  # that a thread brings to shared memory at once
MOST_OF_AXIS = 64  # threads along one axis
PARTS = (1, 16, 32, 64, 128, 256)  # threads that sum one result together
USUAL_PARTS = 32
REFUSED = 1e6  # times the time of a candidate that a block has no room for
FEW_RESULTS = 4096  # of a product: one thread for each would leave most of a GPU idle


class GpuSketches(Sketches):
    """All schedules in threads that the sketch of a computation has for a GPU."""

    def __init__(self, dag: ComputeDAG, target: Target) -> None:
        self._parts_read: dict[str, list[PartRead]] = {}
        super().__init__(dag, target)

    @property
    def most_threads(self) -> int:
        """The threads that a block of the target may have."""
        return most_threads(self.target)

    def sample(self, rng: random.Random) -> Candidate:
        """Return a random candidate, most of which a block of the target has room for."""
        found = super().sample(rng)
        for _ in range(16):
            if self._fits(found):
                break
            found = super().sample(rng)
        return found

    def _fits(self, candidate: Candidate) -> bool:
        """Return whether a block has so many threads, and so much shared memory."""
        room = shared_bytes(self.target)
        return all(n <= self.most_threads for n in self._threads(candidate)) and all(
            self._shared(op, dict(candidate.knobs)) <= room
            for op in map(self._op, self._tiled(candidate.strategy))
        )

    def _shared(self, op: ComputeOp, knobs: dict[str, int]) -> int:
        """Return the bytes that a block keeps of what a product reads."""
        if not knobs.get(f"{op.name}.shared", 0):
            return 0
        lengths = {axis.var: math.prod(self._lengths(op, axis, knobs)) for axis in op.axis}
        lengths |= {axis.var: knobs.get(axis_name(op, axis, 0), 1) for axis in op.reduce_axis}
        if op.name not in self._parts_read:
            self._parts_read[op.name] = parts_read(op)
        return sum(part.bytes(lengths) for part in self._parts_read[op.name])

    def predicted(self, candidate: Candidate) -> float | None:
        """Return a guess at the time of the products, in multiply-adds with their loads."""
        knobs, found = dict(candidate.knobs), 0.0
        tiled = self._tiled(candidate.strategy)
        for role, threads in zip(tiled, self._threads(candidate), strict=True):
            op = self._op(role)
            lengths = [self._lengths(op, axis, knobs) for axis in op.axis]
            sums = [outer * inner for outer, _, inner in lengths]
            work = math.prod(extent(a) for a in (*op.axis, *op.reduce_axis))
            found += work * (1 + sum(1 / n for n in sums)) * max(1.0, USUAL_THREADS / threads)
        return found * (1.0 if self._fits(candidate) else REFUSED) or None

    def steps_of(self, candidate: Candidate) -> list[Step]:
        """Return the steps of a candidate's schedule."""
        return GpuWriter(self, candidate.strategy, dict(candidate.knobs)).steps

    def _tiled(self, strategy: str) -> list[StageRole]:
        products = [role for role in self.roles if role.role is Role.TILED]
        return [role for role in products if strategy != CUT or not self._is_cut(role)]

    def _threads(self, candidate: Candidate) -> list[int]:
        """Return the threads of a block of each product."""
        knobs = dict(candidate.knobs)
        return [
            math.prod(self._lengths(op, axis, knobs)[1] for axis in op.axis)
            for op in map(self._op, self._tiled(candidate.strategy))
        ]

    def _is_cut(self, role: StageRole) -> bool:
        if role.role is not Role.TILED:
            return False
        op = self._op(role)
        results = math.prod(extent(axis) for axis in op.axis)
        return results <= FEW_RESULTS and self._steps(op) >= LONG

    def _steps(self, op: ComputeOp) -> int:
        return math.prod(extent(axis) for axis in op.reduce_axis)

    def _parts(self, op: ComputeOp) -> tuple[int, ...]:
        most = min(self.most_threads, self._steps(op))
        found = tuple(n for n in PARTS if n <= most)
        # A single number has no loop that could be a thread but those that are summed.
        return found if op.axis else found[1:] or (most,)

    def _knobs(self, strategy: str, searched: Sequence[StageRole]) -> Knobs:
        knobs: Knobs = {}
        for role in searched:
            if role.role in (Role.INPUT, Role.INLINE, Role.FOLLOWER):
                continue
            op = self._op(role)
            if role.role is Role.PLACED:
                knobs[f"{op.name}.place"] = (ROOT, INLINED)
            if strategy == CUT and self._is_cut(role):
                knobs[f"{op.name}.parts"] = self._parts(op)[1:]
            elif role.role is Role.TILED:
                self._tile_knobs(op, knobs)
            else:
                knobs[f"{op.name}.threads"] = tuple(n for n in THREADS if n <= self.most_threads)
            if role.role is Role.REDUCED and op.num_outputs == 1:
                knobs[f"{op.name}.parts"] = self._parts(op)
        return {name: values for name, values in knobs.items() if len(values) > 1}

    def _tile_knobs(self, op: ComputeOp, knobs: Knobs) -> None:
        for axis in op.axis:
            legal = divisors(extent(axis))
            knobs[axis_name(op, axis, 2)] = tuple(n for n in legal if n <= 8)
            knobs[axis_name(op, axis, 1)] = tuple(n for n in legal if n <= MOST_OF_AXIS)
            knobs[axis_name(op, axis, 0)] = tuple(n for n in legal if n <= 4)
        for axis in op.reduce_axis:
            knobs[axis_name(op, axis, 0)] = tuple(n for n in divisors(extent(axis)) if n <= 64)
        knobs[f"{op.name}.shared"] = (0, 1)
        knobs[f"{op.name}.vector"] = VECTORS
        knobs[f"{op.name}.unroll"] = UNROLLS

    def _default(self, strategy: str, knobs: Knobs) -> dict[str, int]:
        found = {name: values[0] for name, values in knobs.items()}
        for role in self.roles:
            if role.role in (Role.INPUT, Role.INLINE, Role.FOLLOWER):
                continue
            op = self._op(role)
            parts = USUAL_PARTS if self._steps(op) >= LONG else 1
            wanted = {f"{op.name}.threads": USUAL_THREADS, f"{op.name}.parts": parts}
            if role.role is Role.TILED:
                left = USUAL_THREADS
                for axis in reversed(op.axis):
                    inner = fitting(2, extent(axis))
                    threads = fitting(min(16, left), extent(axis) // inner)
                    wanted[axis_name(op, axis, 2)] = inner
                    wanted[axis_name(op, axis, 1)] = threads
                    left = max(1, left // threads)
                for axis in op.reduce_axis:
                    wanted[axis_name(op, axis, 0)] = 8
            for name, value in wanted.items():
                if name in knobs:
                    found[name] = max((v for v in knobs[name] if v <= value), default=value)
        return found


class GpuWriter(SketchWriter):
    """Writes the steps of one candidate."""

    def _write(self, role: StageRole) -> None:
        products = [one for one in self.sketches.roles if one.follower == role.number]
        if self.strategy == CUT and any(map(self.sketches._is_cut, products)):
            self._spread(self._number(role.number), self.sketches._op(role))  # no tile is there
        else:
            super()._write(role)

    def _place(self, role: StageRole, op: ComputeOp) -> None:
        if self._knob(f"{op.name}.place", ROOT) == INLINED:
            self._do("CI", self._number(role.number))
        else:
            self._spread(self._number(role.number), op)

    def _spread(self, stage: int, op: ComputeOp) -> None:
        """A thread for each result, or several that sum it together."""
        data = len(op.axis)
        if not data and not op.reduce_axis:
            return
        if not data or self._knob(f"{op.name}.parts", 1) > 1:
            self._sum_together(stage, op)
            return
        if data > 1:
            self._do("FU", stage, list(range(data)))
        length = math.prod(map(extent, op.axis))
        threads = self._knob(f"{op.name}.threads", USUAL_THREADS)
        self._do("SP", stage, 0, length, [min(threads, length)], 1)
        self._bind(stage, 0, "blockIdx.x")
        self._bind(stage, 1, "threadIdx.x")

    def _cut(self, role: StageRole, op: ComputeOp) -> None:
        self._sum_together(self._number(role.number), op)

    def _sum_together(self, stage: int, op: ComputeOp) -> None:
        """A block for each result, whose threads sum parts of it."""
        data, reduced = len(op.axis), len(op.reduce_axis)
        if reduced > 1:
            self._do("FU", stage, list(range(data, data + reduced)))
        if data > 1:
            self._do("FU", stage, list(range(data)))
        if data:
            self._bind(stage, 0, "blockIdx.x")
        summed = min(1, data)  # the number of the loop
        steps = math.prod(map(extent, op.reduce_axis))
        parts = min(self._knob(f"{op.name}.parts", USUAL_PARTS), steps)
        self._do("SP", stage, summed, steps, [parts], 1)
        self._bind(stage, summed + 1, "threadIdx.x")

    def _bind(self, stage: int, loop: int, mark: str) -> None:
        self._do("AN", stage, loop, MARKS.index(mark))

    def _tile(self, role: StageRole, op: ComputeOp) -> None:
        """Tile a product: S0 S1 S2 R0 R1 S3, inside the first three levels of what follows it."""
        data, reduced = len(op.axis), len(op.reduce_axis)
        if role.follower is None:  # its own copy follows
            self._do("CHW", self._number(role.number), "local")
            self.shift[role.number] = self.shift.get(role.number, 0) + 1
        caches = self._cached(role, op)
        stage = self._number(role.number) - (role.follower is None)
        follower = stage + 1 if role.follower is None else self._number(role.follower)
        sources, space, steps = self._levels(stage, op)
        self._do("RE", stage, [*space[0], *space[1], *space[2], *steps[0], *steps[1], *space[3]])
        for i, source in enumerate(sources):
            self._do("FSP", follower, 4 * i, source, 3)
        self._do("RE", follower, [part for level in space for part in level])
        for level, mark in enumerate(("blockIdx.x", "vthread", "threadIdx.x")):
            if data > 1:
                self._do("FU", follower, list(range(level, level + data)))
            self._bind(follower, level, mark)
        self._do("CA", stage, follower, 2)
        self._do("PR", stage, 0, f"{UNROLL}${self._knob(f'{op.name}.unroll', 0)}")
        for source in caches:
            self._fetch(source, stage, 3 * data + reduced - 1, op, sources)

    def _cached(self, role: StageRole, op: ComputeOp) -> list[int]:
        """Let a product read through shared memory; return the operations that are copied there."""
        if not self._knob(f"{op.name}.shared", 0):
            return []
        ops = list(self.sketches.dag.ops)
        read = sorted({ops.index(t.op) for t in op.input_tensors}, reverse=True)
        for source in read:
            product = self._number(role.number) - (role.follower is None)
            self._do("CHR", self._number(source), "shared", [product])
            self.shift[source + 1] = self.shift.get(source + 1, 0) + 1
        return read

    def _fetch(
        self, source: int, product: int, loop: int, op: Operation, tiles: Sequence[int]
    ) -> None:
        """Let the threads of a block fill their part of shared memory together."""
        cache, axes = self._number(source) + 1, len(self.sketches.dag.ops[source].output_shape(0))
        self._do("CA", cache, product, loop)
        if axes > 1:
            self._do("FU", cache, list(range(axes)))
        vector = self._knob(f"{op.name}.vector", 1)
        self._do("SP", cache, 0, None, [vector], 1)
        self._do("FFSP", cache, 0, list(tiles), 1, 1)
        self._bind(cache, 1, "threadIdx.x")
        if vector > 1:
            self._bind(cache, 2, "vectorize")
