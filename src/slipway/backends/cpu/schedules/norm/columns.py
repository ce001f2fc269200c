"""Softmax and log-softmax along an axis that others lie inside of: vectors of columns.

    for task (what lies around, some vectors of columns):
        most[:] = max over k of x[k, :]
        out[k, :] = exp(x[k, :] - most[:]), sums[:] = the sum of these over k
        out[k, :] = out[k, :] / sums[:]

Where the columns are fewer than a vector, those of several positions lie behind one another and are
read as they lie; what each position has is joined at the end::

    12 columns, vectors of 16: 3 vectors are 4 positions, for which there are 48 sums at first
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import RowKnobs, copied_elements, row_space, vector_lanes
from slipway.backends.cpu.schedules.inlined import shape_of, view
from slipway.backends.cpu.schedules.norm.exponential import exponential_of
from slipway.backends.cpu.schedules.norm.softmax import softmax_cost
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.ir import builder, ops
from slipway.relay.dims import is_open
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.ir.builder import BufferVar
    from slipway.ir.expr import PrimExpr
    from slipway.target import Target

_KIND = "float32"  # of all that is computed
_VECTORS, _FEWEST = 4, 4  # of columns of a task; lanes of a vector
_MOST, _FILLED = 9, 0.8  # vectors of several positions; the part of vectors that columns fill well

Piece = tuple[int, int]  # where a vector begins, its lanes


def apart(width: int, lanes: int) -> list[Piece]:
    """Return vectors that take `width` elements, none of them twice: the last ones are short."""
    found, at = [], 0
    while at < width:
        while lanes > width - at:
            lanes //= 2
        found.append((at, lanes))
        at += lanes
    return found


def covering(width: int, lanes: int) -> list[Piece]:
    """Return vectors that take `width` elements: the last may begin in the one before."""
    if width < lanes:
        return apart(width, lanes)
    whole = [(at, lanes) for at in range(0, width - lanes + 1, lanes)]
    return [*whole, (width - lanes, lanes)] if width % lanes else whole


class _Columns:
    """Builds the loops of all columns from their buffers."""

    def __init__(self, problem: Problem, data: Buffer, out: Buffer, lanes: int) -> None:
        shape = shape_of(data)
        axis = problem.attrs.axis % len(shape)
        self.around, self.length = prod(shape[:axis]), int(shape[axis])
        self.inside, self.lanes = prod(shape[axis + 1 :]), lanes
        self.target, self.is_log = problem.target, problem.op == "nn.log_softmax"
        self.ib = builder.create()
        whole = (self.around, self.length * self.inside)
        self.x, self.out = (self.ib.buffer_ptr(view(b, whole)) for b in (data, out))

    def statements(self, shared: bool) -> Any:
        """Return the loops over all tasks."""
        kind = "parallel" if shared else "serial"
        positions = self._positions()
        if positions > 1:
            with self.ib.for_range(0, self.around, "row", kind=kind) as row:
                self._task(row, 0, self.inside * positions, positions)
            return self.ib.get()
        width = _VECTORS * self.lanes
        blocks = max(0, self.inside // width - 1)
        if blocks:
            with self.ib.for_range(0, self.around * blocks, "block", kind=kind) as block:
                first = ops.floormod(block, blocks) * width
                self._task(ops.floordiv(block, blocks), first, width, 1)
        last = self.inside - blocks * width
        with self.ib.for_range(0, self.around, "row", kind=kind) as row:
            self._task(row, blocks * width, last, 1)
        return self.ib.get()

    def _positions(self) -> int:
        """Return how many positions are taken together."""
        lanes, inside = self.lanes, self.inside
        count = min(lanes // gcd(inside, lanes), self.length)
        filled = inside / (-(-inside // lanes) * lanes)
        if inside < lanes or (filled < _FILLED and count * inside <= _MOST * lanes):
            return count
        return 1

    def _task(self, row: PrimExpr, first: PrimExpr | int, width: int, positions: int) -> None:
        """The columns from `first` on; `width` elements are those of so many positions."""
        step = positions * self.inside
        steps, tail = divmod(self.length, positions)
        whole = covering(width, self.lanes) if positions == 1 else apart(width, self.lanes)
        short = apart(tail * self.inside, self.lanes)
        exponential = exponential_of(self.target)

        def at(k: PrimExpr, piece: Piece, lane: PrimExpr) -> Any:
            return row, first + k * step + piece[0] + lane

        def value(index: tuple[PrimExpr, ...]) -> Any:
            return ops.cast(self.x[index], _KIND)

        keeps = not self.is_log  # the logarithm is of the sum alone
        direct = self.out.dtype == _KIND
        kept = self.out
        if keeps and not direct:
            kept = self.ib.allocate(_KIND, (self.length * width // positions,), "exponentials")

        def kept_at(k: PrimExpr, piece: Piece, lane: PrimExpr) -> Any:
            return at(k, piece, lane) if direct else k * width + piece[0] + lane

        def largest(k: PrimExpr, piece: Piece, lane: PrimExpr, before: PrimExpr) -> Any:
            return ops.max_of_numbers(before, value(at(k, piece, lane)))

        most = self._reduced("most", steps, whole, short, largest, ops.min_value(_KIND), width)
        self._join(most, positions, ops.max_of_numbers)

        def added(k: PrimExpr, piece: Piece, lane: PrimExpr, before: PrimExpr) -> Any:
            made = exponential(value(at(k, piece, lane)) - most[piece[0] + lane])
            if not keeps:
                return before + made
            made = self.ib.let("exponential", made)
            kept[kept_at(k, piece, lane)] = made
            return before + made

        sums = self._reduced("sums", steps, whole, short, added, ops.const(0.0, _KIND), width)
        self._join(sums, positions, operator.add, self._of_sum)
        for k, pieces in ((None, apart(width, self.lanes)), (steps, short)):
            with self._each_step(steps if k is None else None, k) as number:
                for piece in pieces:
                    with self._lanes(piece) as lane:
                        own = piece[0] + lane
                        if self.is_log:
                            made = (value(at(number, piece, lane)) - most[own]) - sums[own]
                        else:
                            made = self._scaled(kept[kept_at(number, piece, lane)], sums[own])
                        self.out[at(number, piece, lane)] = ops.cast(made, self.out.dtype)

    def _of_sum(self, total: PrimExpr) -> Any:
        """Return what the results are made with."""
        if self.is_log:
            return te.log(total)
        return total if self.target.is_strict else ops.const(1.0, _KIND) / total

    def _scaled(self, exponential: PrimExpr, by: PrimExpr) -> Any:
        return exponential / by if self.target.is_strict else exponential * by

    def _reduced(
        self,
        name: str,
        steps: int,
        whole: Sequence[Piece],
        short: Sequence[Piece],
        merge: Callable[[Any, Piece, Any, Any], Any],
        start: PrimExpr,
        width: int,
    ) -> Any:
        """Return what is merged of all steps, in registers, and then of the last positions."""
        ib = self.ib
        found = ib.allocate(_KIND, (width,), name, scope="local")
        parts = [
            ib.allocate(_KIND, (piece[1],), f"{name}{n}", scope="local")
            for n, piece in enumerate(whole)
        ]
        for part, piece in zip(parts, whole, strict=True):
            with self._lanes(piece) as lane:
                part[lane] = start
        with self._each_step(steps, None) as k:
            for part, piece in zip(parts, whole, strict=True):
                with self._lanes(piece) as lane:
                    part[lane] = merge(k, piece, lane, part[lane])
        for part, piece in zip(parts, whole, strict=True):
            with self._lanes(piece) as lane:
                found[piece[0] + lane] = part[lane]
        for piece in short:
            with self._lanes(piece) as lane:
                own = piece[0] + lane
                found[own] = merge(ops.const(steps, "int32"), piece, lane, found[own])
        return found

    def _join(
        self,
        found: BufferVar,
        positions: int,
        join: Callable[[Any, Any], Any],
        made: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """Join what the positions have of each column, and give it to all of them again."""
        columns = apart(self.inside, self.lanes) if positions > 1 else []
        for piece in columns:
            with self.ib.for_range(1, positions, "position") as k, self._lanes(piece) as lane:
                own = piece[0] + lane
                found[own] = join(found[own], found[k * self.inside + own])
        width = shape_of(found.asobject())[0]
        for piece in columns or apart(width, self.lanes):
            with self._lanes(piece) as lane:
                found[piece[0] + lane] = made(found[piece[0] + lane])
        for piece in columns:
            with self.ib.for_range(1, positions, "position") as k, self._lanes(piece) as lane:
                found[k * self.inside + piece[0] + lane] = found[piece[0] + lane]

    def _lanes(self, piece: Piece) -> Any:
        return self.ib.for_range(0, piece[1], "lane", kind="vectorize")

    @contextmanager
    def _each_step(self, steps: int | None, number: int | None) -> Iterator[Any]:
        """A loop over `steps`, or one of them without a loop."""
        if steps is None:
            yield ops.const(number, "int32")
        else:
            with self.ib.for_range(0, steps, "k") as k:
                yield k


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, along an axis that is not the last, of known sizes."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    if data.dtype not in ("float32", "float16", "bfloat16") or any(map(is_open, data.shape)):
        return False
    axis = attrs.axis % data.rank
    inside, length = prod(data.shape[axis + 1 :]), data.shape[axis]
    lanes = vector_lanes(target, _KIND)
    return inside > 1 and length > 0 and lanes >= _FEWEST <= length * inside


def _compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: RowKnobs) -> list[te.Tensor]:
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    shared = prod(out.shape) >= knobs.share_from

    def statements(ins: list[Buffer], outs: list[Buffer]) -> Any:
        return _Columns(problem, ins[0], outs[0], knobs.lanes).statements(shared)

    return [te.extern(out.shape, list(inputs), statements, f"T_{problem.op}", out.dtype)]


def _default(problem: Problem) -> RowKnobs:
    target = problem.target
    return RowKnobs(vector_lanes(target, _KIND), copied_elements(target) // 4)


def _space(problem: Problem) -> Space:
    return row_space(problem, vector_lanes(problem.target, _KIND), minimum=_FEWEST)


register_strategy(
    "nn.softmax", "nn.log_softmax", name="softmax.columns", priority=20, compute=_compute,
    applies=_applies, default=_default, space=_space, cost=softmax_cost,
)(as_they_are(RowKnobs))  # fmt: skip
