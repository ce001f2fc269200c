"""Running sums and products along an axis.

Along an axis that others lie inside of, a step adds a run of elements to the results of the step
before, which are in local variables if they are few.  Along the last axis each step waits for the
sum before, so that some rows are summed together.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.dtypes import is_float
from slipway.ir import builder
from slipway.ir.node import node
from slipway.relay import op_registry
from slipway.relay.dims import is_open, usual
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import need_number, normal_axis
from slipway.relay.ops.tensor.loops import WORTH_SHARING, nest
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike

LANES = 16
KEPT = 8  # vectors of sums in local variables
BESIDE = (8, 4, 2, 1)  # rows that are summed together: sums of integers do not wait so long


@node
class ScanAttrs(Attrs):
    """The axis; `exclusive` leaves the element itself out, `reverse` runs from the end."""

    axis: int = 0
    exclusive: bool = False
    reverse: bool = False


def _scan_rows(
    ib: Any, attrs: ScanAttrs, x: Any, y: Any, out: TensorType, start: Any, join: Any
) -> None:
    """Along the last axis: rows beside each other, whose sums do not wait for each other."""
    *outer, rows, _ = (1, *out.shape) if out.rank == 1 else out.shape
    shape = (*outer, rows)
    if any(map(is_open, shape)):
        parts = [] if is_open(rows) else [n for n in BESIDE if rows % n == 0]
        runs = [(0, rows, parts[0] if parts else 1)]
    else:  # one run of rows, whatever the axes around them
        outer, runs = [], _rows_beside(prod(shape), BESIDE if is_float(out.dtype) else BESIDE[-2:])
    for begin, end, beside in runs:
        count = (end - begin) // beside
        with nest(ib, [*outer, count], usual(out.size) >= WORTH_SHARING) as positions:
            *before, part = positions
            first = begin + part * beside
            at = [
                (*before, first + r) if outer else tuple(_unravelled(first + r, shape))
                for r in range(beside)
            ]
            found = at if out.rank > 1 else [()]
            _scan_beside(ib, attrs, x, y, out, start, join, found)


def _rows_beside(rows: int, counts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (begin, end, beside) of runs that cover `rows`, the largest of `counts` first."""
    runs, begin = [], 0
    for beside in counts:
        end = begin + (rows - begin) // beside * beside
        if end > begin:
            runs.append((begin, end, beside))
            begin = end
    return runs


def _scan_beside(
    ib: Any, attrs: ScanAttrs, x: Any, y: Any, out: TensorType, start: Any, join: Any,
    rows: Sequence[tuple[Any, ...]],
) -> None:  # fmt: skip
    """Some rows, at their indices `rows`, step by step."""
    length = out.shape[-1]
    sums = ib.allocate(out.dtype, (len(rows),), "sums", scope="local")
    for r in range(len(rows)):
        sums[r] = start
    with ib.for_range(0, length, "k") as k:
        position = length - 1 - k if attrs.reverse else k
        for r, row in enumerate(rows):
            at = (*row, position)
            if attrs.exclusive:
                added = ib.let("added", join(sums[r], x[at]))
                y[at] = sums[r]
                sums[r] = added
            else:
                sums[r] = join(sums[r], x[at])
                y[at] = sums[r]


def _scan_slices(
    ib: Any, attrs: ScanAttrs, x: Any, y: Any, out: TensorType, start: Any, join: Any
) -> None:
    """Along an outer axis: slices of what lies inside, in vectors."""
    axis = attrs.axis % out.rank
    inside = out.shape[axis + 1 :]
    between, whole, runs = inside[:-1], inside[-1:], _runs(inside[-1])
    if not any(map(is_open, inside)):  # one run of elements, whatever the rows in it
        between, whole, runs = (), inside, _covering(prod(inside))
    with nest(ib, out.shape[:axis], usual(out.size) >= WORTH_SHARING) as outer:

        def step(k: Any, before: Any) -> None:
            """Write slice `k`; `before` is the one that it adds to, None for the first."""
            with nest(ib, between) as inner:
                for begin, end, lanes in runs:
                    chunks = (end - begin) // lanes
                    with (
                        ib.for_range(0, chunks, "c") as c,
                        ib.for_range(0, lanes, "v", kind="vectorize") as v,
                    ):
                        at = (*inner, *_unravelled(begin + c * lanes + v, whole))
                        here = (*outer, k, *at)
                        if before is None:
                            y[here] = start if attrs.exclusive else x[here]
                        else:
                            last_one = (*outer, before, *at)
                            y[here] = join(y[last_one], x[last_one if attrs.exclusive else here])

        length = out.shape[axis]
        step(length - 1 if attrs.reverse else 0, None)
        with ib.for_range(1, length, "k") as k:
            position = length - 1 - k if attrs.reverse else k
            step(position, position + 1 if attrs.reverse else position - 1)


def _scan_columns(
    ib: Any, attrs: ScanAttrs, x: Any, y: Any, out: TensorType, start: Any, join: Any
) -> None:
    """Along an outer axis: the few vectors of what lies inside, their sums in variables.

    What was stored is not loaded for the next step: the last vector goes over a part of the one
    before, and a processor waits until both have left for the cache.
    """
    axis = attrs.axis % out.rank
    inside, length = out.shape[axis + 1 :], out.shape[axis]
    vectors = _vectors(inside)
    with nest(ib, out.shape[:axis], usual(out.size) >= WORTH_SHARING) as outer:
        sums = [ib.allocate(out.dtype, (n,), "sums", scope="local") for _, n in vectors]
        for (_, lanes), its in zip(vectors, sums, strict=True):
            with ib.for_range(0, lanes, "v", kind="vectorize") as v:
                its[v] = start
        with ib.for_range(0, length, "k") as k:
            position = length - 1 - k if attrs.reverse else k
            for (at, lanes), its in zip(vectors, sums, strict=True):
                with ib.for_range(0, lanes, "v", kind="vectorize") as v:
                    here = (*outer, position, *_unravelled(at + v, inside))
                    if attrs.exclusive:
                        y[here] = its[v]
                    its[v] = join(its[v], x[here])
                    if not attrs.exclusive:
                        y[here] = its[v]


def _vectors(inside: Sequence[Any]) -> list[tuple[int, int]]:
    """Return where the vectors of what lies inside begin, and their lanes; none of open sizes."""
    if any(map(is_open, inside)):
        return []
    runs = _covering(prod(inside))
    return [(at, lanes) for begin, end, lanes in runs for at in range(begin, end, lanes)]


def _unravelled(position: Any, extents: Sequence[int]) -> list[Any]:
    """Return the indices of an element by its position; flat storage makes that of them again."""
    found: list[Any] = []
    for extent in reversed(extents[1:]):
        found.insert(0, te().floormod(position, extent))
        position = te().floordiv(position, extent)
    return [position, *found]


def _covering(count: int) -> list[tuple[int, int, int]]:
    """Return (begin, end, lanes) of vectors over a run: the last may go over some once more."""
    if count >= LANES:
        whole = count // LANES * LANES
        return [(0, whole, LANES)] + [(count - LANES, count, LANES)] * (whole < count)
    runs, begin = [], 0
    for lanes in (8, 4, 2, 1):
        if begin + lanes <= count:
            runs.append((begin, begin + lanes, lanes))
            begin += lanes
    return runs


def _runs(extent: int) -> list[tuple[int, int, int]]:
    """Return (begin, end, lanes) of the vectors of an axis, and of what is left of it.

    Of an axis that is open both: either may have no steps.
    """
    whole = extent // LANES * LANES
    runs = [(0, extent, LANES), (whole, extent, 1)]
    return [run for run in runs if is_open(extent) or run[0] + run[2] <= extent]


def _register(name: str, multiply: bool) -> OpDefinition:
    definition = register_op(
        name, "data", attrs=ScanAttrs, pattern=OpPattern.OPAQUE, flops_per_element=1,
        doc=f"The running {'product' if multiply else 'sum'} along an axis.",
    )  # fmt: skip

    @definition.type_relation
    def relation(attrs: ScanAttrs, data: TensorType) -> Type:
        need_number("data", data)
        normal_axis(attrs.axis, data.rank)
        return data

    @definition.reference
    def evaluate(attrs: ScanAttrs, data: Array) -> Any:
        moved = np.moveaxis(data, attrs.axis, -1)
        moved = moved[..., ::-1] if attrs.reverse else moved
        out = (np.cumprod if multiply else np.cumsum)(moved, axis=-1, dtype=data.dtype)
        if attrs.exclusive:
            start = np.full((*out.shape[:-1], 1), 1 if multiply else 0, data.dtype)
            out = np.concatenate([start, out[..., :-1]], axis=-1)
        out = out[..., ::-1] if attrs.reverse else out
        return np.asarray(np.moveaxis(out, -1, attrs.axis), order="C")

    @definition.compute
    def compute(attrs: ScanAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        (out,) = out_types
        start = te().const(1 if multiply else 0, out.dtype)

        def statements(ins: list[Any], outs: list[Any]) -> Any:
            ib = builder.create()
            x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
            join = operator.mul if multiply else operator.add
            if 0 not in out.shape:
                along_last = attrs.axis % out.rank == out.rank - 1
                inside = out.shape[attrs.axis % out.rank + 1 :]
                few = 0 < len(_vectors(inside)) <= KEPT
                around = _scan_columns if few else _scan_slices
                (_scan_rows if along_last else around)(ib, attrs, x, y, out, start, join)
            return ib.get()

        made = te().extern([out.shape], inputs, statements, f"T_{name}", [out.dtype])
        return [made]

    @definition.make
    def make(
        data: ExprLike,
        axis: int | None = None,
        dtype: str | None = None,
        exclusive: bool = False,
    ) -> Call:
        if dtype is not None:
            data = op_registry.make("cast")(data, dtype)
        if axis is None:  # over all elements, in order
            data = op_registry.make("reshape")(data, (-1,))
        return definition(data, attrs=ScanAttrs(int(axis or 0), bool(exclusive), False))

    make.__name__, make.__doc__ = name, definition.doc
    for attrs in (
        ScanAttrs(1),
        ScanAttrs(0, True),
        ScanAttrs(-1, True, True),
        ScanAttrs(1, False, True),
    ):
        definition.sample_case((3, 4), attrs=attrs)
    definition.sample_case((3, 3, 7), attrs=ScanAttrs(0))  # 21 elements a step: a last vector
    definition.sample_case((2, 3, 9, 17), attrs=ScanAttrs(1))  # more vectors than are kept
    definition.sample_case((2, 3, 19), attrs=ScanAttrs(1, True))
    definition.sample_case((2, 3, 2, 1, 7), attrs=ScanAttrs(1, True, True))  # 14: 8, 4 and 2
    return definition


CUMSUM, CUMPROD = _register("cumsum", False), _register("cumprod", True)
cumsum: Any = CUMSUM.make_function
cumprod: Any = CUMPROD.make_function
