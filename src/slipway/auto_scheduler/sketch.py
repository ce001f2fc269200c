"""Sketches: schedules of a computation with knobs, written down as steps.

The stages are visited from the last to the first, and each gets the steps of its role: a product
is tiled for registers and two levels of cache and computed inside the tiles of what follows it, a
reduction or an elementwise result gets vectors and threads, what is cheap is inlined.  Lengths of
tiles, unrolling and places are knobs; every combination of their values is a schedule, because a
length that does not fit is taken for the next smaller one that does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.auto_scheduler.analysis import Role, StageRole, can_be_cut, extent, roles
from slipway.auto_scheduler.steps import MARKS, UNROLL, Step
from slipway.backends.cpu.tile import vector_registers
from slipway.target import Target
from slipway.te.operation import ComputeOp, Operation
from slipway.tuning.space import Candidate, Choices, candidate_of, divisors, fitting

if TYPE_CHECKING:
    from slipway.auto_scheduler.compute_dag import ComputeDAG

Knobs = dict[str, tuple[int, ...]]
TILED, CUT = "tiles", "parts"
UNROLLS = (0, 16, 64, 512)
MOST_INNER, MOST_OUTER = 64, 64  # lengths of tiles
ROOT, INLINED, IN_TILE = 0, 1, 2


class Sketches(Choices):
    """All schedules that the sketches of a computation have for a target."""

    def __init__(self, dag: ComputeDAG, target: Target) -> None:
        self.dag, self.target = dag, target
        self.roles = roles(dag.ops, dag.outputs)
        values, defaults = self._found()
        super().__init__(values, defaults)

    def _found(self) -> tuple[dict[str, Knobs], dict[str, Candidate]]:
        """Return the knobs of each kind of sketch, and its candidate that needs no search."""
        values = {name: self._knobs(name, self.roles) for name in self._kinds()}
        return values, {name: self._first(name, name, knobs) for name, knobs in values.items()}

    def _kinds(self) -> tuple[str, ...]:
        return (CUT, TILED) if any(self._is_cut(r) for r in self.roles) else (TILED,)

    def _first(self, name: str, kind: str, knobs: Knobs) -> Candidate:
        return candidate_of(name, self._default(kind, knobs))

    def with_values(self, candidate: Candidate, **values: Any) -> Candidate:
        """Return the candidate with other values, so that equal schedules are equal."""
        return self.canonical(super().with_values(candidate, **values))

    def canonical(self, candidate: Candidate) -> Candidate:
        """Return the candidate whose lengths are those that its schedule has."""
        knobs = dict(candidate.knobs)
        for role in self.roles:
            if role.role is Role.TILED and not (candidate.strategy == CUT and self._is_cut(role)):
                op = self._op(role)
                for axis in op.axis:
                    for level, length in enumerate(self._lengths(op, axis, knobs)):
                        if axis_name(op, axis, level) in knobs:
                            knobs[axis_name(op, axis, level)] = length
        return candidate_of(candidate.strategy, knobs)

    def sample(self, rng: random.Random) -> Candidate:
        """Return a random candidate, most of which have whole vectors."""
        found = super().sample(rng)
        for _ in range(4):
            if self._register_share(found) <= 1.0:
                break
            found = super().sample(rng)
        return found

    def predicted(self, candidate: Candidate) -> float | None:
        """Return a guess at the cycles of the products: vectors, registers and reuse of loads."""
        cycles = 0.0
        for role in self.roles:
            if role.role is Role.TILED:
                cycles += self._product_cycles(role, dict(candidate.knobs))
        return cycles or None

    # Knobs.

    def _op(self, role: StageRole) -> ComputeOp:
        op = self.dag.ops[role.number]
        assert isinstance(op, ComputeOp)
        return op

    def _is_cut(self, role: StageRole) -> bool:
        return role.role in (Role.TILED, Role.REDUCED) and can_be_cut(self._op(role))

    def _lanes(self, op: Operation) -> int:
        bits = max(8, dtypes.bits_of(op.output_dtype(0)))
        return max(1, self.target.vector_bits // bits)

    def _knobs(self, strategy: str, searched: Sequence[StageRole]) -> Knobs:
        knobs: Knobs = {}
        for role in searched:
            if role.role in (Role.INPUT, Role.INLINE, Role.FOLLOWER):
                continue
            op = self._op(role)
            if role.role is Role.PLACED:
                knobs[f"{op.name}.place"] = (ROOT, INLINED, IN_TILE)
            elif strategy == CUT and self._is_cut(role):
                steps = math.prod(extent(a) for a in op.reduce_axis)
                knobs[f"{op.name}.parts"] = tuple(
                    n for n in divisors(steps) if n <= 1024 and n < steps
                )
            elif role.role is Role.TILED:
                self._tile_knobs(op, knobs)
            else:
                knobs[f"{op.name}.vector"] = self._vectors(op)
                knobs[f"{op.name}.parallel"] = (0, 1)
                if role.role is Role.REDUCED:
                    knobs[f"{op.name}.unroll"] = UNROLLS
        return {name: values for name, values in knobs.items() if len(values) > 1}

    def _tile_knobs(self, op: ComputeOp, knobs: Knobs) -> None:
        for axis in op.axis:
            length = extent(axis)
            is_last = axis is op.axis[-1]
            inner = MOST_INNER if is_last else 16
            fits = {n for n in divisors(length) if n <= inner}
            if is_last:
                fits |= {1 << i for i in range(inner.bit_length()) if 1 << i <= length}
            knobs[axis_name(op, axis, 2)] = tuple(sorted(fits))
            knobs[axis_name(op, axis, 1)] = tuple(n for n in divisors(length) if n <= 8)
            knobs[axis_name(op, axis, 0)] = tuple(n for n in divisors(length) if n <= MOST_OUTER)
        for axis in op.reduce_axis:
            knobs[axis_name(op, axis, 0)] = divisors(extent(axis))
        knobs[f"{op.name}.level"] = (1, 2)
        knobs[f"{op.name}.unroll"] = UNROLLS

    def _vectors(self, op: ComputeOp) -> tuple[int, ...]:
        if not op.axis:
            return (1,)
        last, lanes = extent(op.axis[-1]), self._lanes(op)
        return tuple(sorted({1, *(n for n in (lanes, 2 * lanes, 4 * lanes) if n <= last)}))

    def _default(self, strategy: str, knobs: Knobs) -> dict[str, int]:
        found = {name: values[0] for name, values in knobs.items()}
        for role in self.roles:
            if role.role in (Role.INPUT, Role.INLINE, Role.FOLLOWER):
                continue
            op = self._op(role)
            lanes = self._lanes(op)
            wanted = {f"{op.name}.vector": lanes, f"{op.name}.parallel": 1,
                      f"{op.name}.parts": 8 * lanes, f"{op.name}.level": 2}  # fmt: skip
            if role.role is Role.TILED:
                last = min(2 * lanes, extent(op.axis[-1]))
                wanted[axis_name(op, op.axis[-1], 2)] = last
                rows = 4  # of the innermost tile, along the axes before the last one
                for axis in reversed(op.axis[:-1]):
                    length = fitting(rows, extent(axis))
                    wanted[axis_name(op, axis, 2)] = length
                    rows = max(1, rows // length)
                for axis in op.reduce_axis:
                    wanted[axis_name(op, axis, 0)] = 64
            for name, value in wanted.items():
                if name in knobs:
                    found[name] = max((v for v in knobs[name] if v <= value), default=value)
        return found

    def _lengths(self, op: ComputeOp, axis: Any, knobs: dict[str, int]) -> list[int]:
        """Return the lengths of the inner loops of a data axis, the innermost last."""
        inner = knobs.get(axis_name(op, axis, 2), 1)
        left = -(-extent(axis) // inner)
        middle = fitting(knobs.get(axis_name(op, axis, 1), 1), left)
        outer = fitting(knobs.get(axis_name(op, axis, 0), 1), left // middle)
        return [outer, middle, inner]

    # A guess at the cost.

    def _register_share(self, candidate: Candidate) -> float:
        """Return the registers that a product's accumulators take, over those that there are."""
        most = 0.0
        knobs = dict(candidate.knobs)
        for role in self.roles:
            if (
                role.role is Role.TILED
                and axis_name(self._op(role), self._op(role).axis[-1], 2) in knobs
            ):
                sums = self._accumulators(self._op(role), knobs)
                most = max(most, sums / vector_registers(self.target))
        return most

    def _accumulators(self, op: ComputeOp, knobs: dict[str, int]) -> int:
        tile = [self._lengths(op, axis, knobs)[2] for axis in op.axis]
        return math.prod(tile[:-1]) * -(-tile[-1] // self._lanes(op))

    def _product_cycles(self, role: StageRole, knobs: dict[str, int]) -> float:
        op, lanes = self._op(role), self._lanes(self._op(role))
        tile = [self._lengths(op, axis, knobs)[2] for axis in op.axis]
        vectors = -(-tile[-1] // lanes)
        rows = math.prod(tile[:-1])
        points = 1.0
        for axis, length in zip(op.axis, tile, strict=True):
            points *= -(-extent(axis) // length)
        steps = points * math.prod(extent(a) for a in op.reduce_axis)
        multiplies = rows * vectors / 2
        latency = 4.0 if rows * vectors < 8 else 0.0  # too few chains to fill two units
        loads = (rows + vectors) / 2
        spills = max(0, rows * vectors + vectors + 1 - vector_registers(self.target))
        return float(steps * (max(multiplies, loads, latency) + 2 * spills))

    # Steps.

    def steps_of(self, candidate: Candidate) -> list[Step]:
        """Return the steps of a candidate's schedule."""
        return SketchWriter(self, candidate.strategy, dict(candidate.knobs)).steps


class SketchWriter:
    """Writes the steps of one candidate.

    The graph's operations are visited from the last to the first, so that the numbers of those
    before one that puts a stage in are still the graph's.
    """

    def __init__(self, sketches: Sketches, strategy: str, knobs: Mapping[str, Any]) -> None:
        self.sketches, self.strategy = sketches, strategy
        self.knobs = dict(knobs)
        self.steps: list[Step] = []
        self.shift: dict[int, int] = {}  # stages put in at or before an operation's own
        self.tile_of: dict[int, tuple[int, int]] = {}  # of products: (stages back, loop)
        self._write_all()

    def _write_all(self) -> None:
        for role in reversed(self.sketches.roles):
            self._write(role)

    def _number(self, op: int) -> int:
        """Return the number that the stage of an operation has now."""
        return op + sum(count for at, count in self.shift.items() if at <= op)

    def _do(self, *step: Any) -> int:
        self.steps.append(list(step))
        return len(self.steps) - 1

    def _knob(self, name: str, otherwise: int) -> int:
        return int(self.knobs.get(name, otherwise))

    def _write(self, role: StageRole) -> None:
        if role.role in (Role.INPUT, Role.FOLLOWER):
            return
        op = self.sketches._op(role)
        if role.role is Role.INLINE:
            self._do("CI", self._number(role.number))
        elif role.role is Role.PLACED:
            self._place(role, op)
        elif self.strategy == CUT and self.sketches._is_cut(role):
            self._cut(role, op)
        elif role.role is Role.TILED:
            self._tile(role, op)
        else:
            self._spread(self._number(role.number), op)

    def _place(self, role: StageRole, op: ComputeOp) -> None:
        """Inline a stage, compute it in the tiles of what reads it, or for itself."""
        choice = self._knob(f"{op.name}.place", ROOT)
        readers = [n for n, other in enumerate(self.sketches.dag.ops)
                   if any(t.op is op for t in other.input_tensors)]  # fmt: skip
        tile = self.tile_of.get(readers[0]) if len(readers) == 1 else None
        if choice == INLINED:
            self._do("CI", self._number(role.number))
        elif choice == IN_TILE and tile is not None:
            self._do("CA", self._number(role.number), self._number(readers[0]) - tile[0], tile[1])
        else:
            self._spread(self._number(role.number), op)

    def _spread(self, stage: int, op: ComputeOp) -> None:
        """Vectors along the last axis, threads along the others."""
        data, reduced = len(op.axis), len(op.reduce_axis)
        if not data:
            return
        vector = self._knob(f"{op.name}.vector", 1)
        if vector > 1:
            self._do("SP", stage, data - 1, extent(op.axis[-1]), [vector], 1)
            if reduced:
                first = data + 1
                order = [*range(data), *range(first, first + reduced), data]
                self._do("RE", stage, order)
        outer = data if vector > 1 else data - 1
        if outer > 1:
            self._do("FU", stage, list(range(outer)))
        if (data > 1 or vector > 1) and self._knob(f"{op.name}.parallel", 1):
            self._do("AN", stage, 0, MARKS.index("parallel"))
        if vector > 1:
            self._do("AN", stage, 1 + reduced, MARKS.index("vectorize"))
        unroll = self._knob(f"{op.name}.unroll", 0)
        if unroll:
            self._do("PR", stage, 0, f"{UNROLL}${unroll}")

    def _cut(self, role: StageRole, op: ComputeOp) -> None:
        """Reduce in parts, the lanes of vectors, then reduce the parts."""
        stage, data, reduced = self._number(role.number), len(op.axis), len(op.reduce_axis)
        if reduced > 1:
            self._do("FU", stage, list(range(data, data + reduced)))
        parts = self._knob(f"{op.name}.parts", 1)
        steps = math.prod(extent(a) for a in op.reduce_axis)
        self._do("SP", stage, data, steps, [parts], 1)
        self._do("RF", stage, data + 1, data)
        self.shift[role.number] = self.shift.get(role.number, 0) + 1
        # The partial results have the parts as their last data axis, before the reduction.
        self._do("RE", stage, [*range(data), data + 1, data])
        if data:
            if data > 1:
                self._do("FU", stage, list(range(data)))
            self._do("AN", stage, 0, MARKS.index("parallel"))
        lanes = 4 * self.sketches._lanes(op)
        last = 2 if data else 1
        if parts > lanes and parts % lanes == 0:
            self._do("SP", stage, last, parts, [lanes], 1)
            last += 1
        if parts > 1:
            self._do("AN", stage, last, MARKS.index("vectorize"))

    def _levels(
        self, stage: int, op: ComputeOp
    ) -> tuple[list[int], list[list[int]], list[list[int]]]:
        """Split a product: four levels of each axis, two of each that is summed.

        Returns the steps that split the axes, and the loops of each level of both.
        """
        data, reduced, sources = len(op.axis), len(op.reduce_axis), []
        for i, axis in enumerate(op.axis):
            lengths = self.sketches._lengths(op, axis, self.knobs)
            sources.append(self._do("SP", stage, 4 * i, extent(axis), lengths, 1))
        for i, axis in enumerate(op.reduce_axis):
            length = self._knob(axis_name(op, axis, 0), 1)
            self._do("SP", stage, 4 * data + 2 * i, extent(axis), [length], 1)
        space = [[4 * i + part for i in range(data)] for part in range(4)]
        steps = [[4 * data + 2 * i + part for i in range(reduced)] for part in range(2)]
        return sources, space, steps

    def _tile(self, role: StageRole, op: ComputeOp) -> None:
        """Tile a product: S0 S1 R0 S2 R1 S3, inside the first levels of what follows it."""
        stage, data, reduced = self._number(role.number), len(op.axis), len(op.reduce_axis)
        if role.follower is None:  # its own copy follows
            self._do("CHW", stage, "local")
            self.shift[role.number] = self.shift.get(role.number, 0) + 1
            follower = stage + 1
        else:
            follower = self._number(role.follower)
        level = self._knob(f"{op.name}.level", 2)
        sources, space, steps = self._levels(stage, op)
        self._do("RE", stage, [*space[0], *space[1], *steps[0], *space[2], *steps[1], *space[3]])
        for i, source in enumerate(sources):
            self._do("FSP", follower, (level + 1) * i, source, level)
        order = [(level + 1) * i + part for part in range(level + 1) for i in range(data)]
        self._do("RE", follower, order)
        if data > 1:
            self._do("FU", follower, list(range(data)))
        self._do("AN", follower, 0, MARKS.index("parallel"))
        self._do("CA", stage, follower, (level - 1) * data)
        self._do("PR", stage, 0, f"{UNROLL}${self._knob(f'{op.name}.unroll', 0)}")
        last = self.sketches._lengths(op, op.axis[-1], self.knobs)
        if last[2] > 1:
            self._do("AN", stage, 4 * data + 2 * reduced - 1, MARKS.index("vectorize"))
        inner = math.prod(last[1:] if level == 2 else last)
        if 1 < inner <= 256:
            self._do("AN", follower, level * data, MARKS.index("vectorize"))
        # What the product reads is computed once for each step of its outer reduction loops.
        self.tile_of[role.number] = (int(role.follower is None), 2 * data - 1 + reduced)


def axis_name(op: Operation, axis: Any, level: int) -> str:
    """Return the knob of an inner loop of an axis; level 2 is the innermost."""
    return f"{op.name}.{axis.var.name}.{level}"
