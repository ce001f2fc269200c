"""Which way sorts a row, by the cycles that each is told to take: shared by the ways of topk.

A heap (the operator's own loops) is for few of many, lanes of rows for very few of many rows.
Where fewer are wanted than there are, the last of them is found by counting, and only those before
it are put in order; of a long row, among the groups of elements that may have them.  Else each
element's rank is counted, by all others in vectors; and long rows are sorted by the bytes of their
keys.  A key is an integer of the order of the results, the same for what is equal there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, log2, prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.schedules.inlined import shape_of, view
from slipway.ir import builder, calls, ops
from slipway.relay.dims import is_open
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.backends.strategy import Problem
    from slipway.ir.buffer import Buffer
    from slipway.ir.expr import PrimExpr
    from slipway.relay.ops.tensor.sort import TopKAttrs
    from slipway.target import Target

LANES, RANKS, BYTES = "topk.lanes", "topk.ranks", "topk.bytes"
LIMIT, GROUPS = "topk.limit", "topk.groups"
HEAP = "heap"
# The types that lanes compare, and those in which they compare narrower ones.
_WIDE = {t: t for t in ("float32", "float64", "int32", "int64")}
_WIDE |= dict.fromkeys(("float16", "bfloat16"), "float32")
_WIDE |= dict.fromkeys(("int8", "uint8", "int16", "uint16"), "int32")
_SHORT = ("float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8")
_LONG = ("float64", "int64", "uint32")
# Cycles: of a place in the order, of an element; of a heap for one that is refused, for one that is
# taken, with what a branch costs that nobody predicts, and for a level of one that is taken out.
_POSITION, _ELEMENT = 6, 4
_APART = 2  # of a narrow element that is loaded alone, as those of other rows are
_REFUSED, _TAKEN, _LEVEL = 2.5, 40, 18
# Of a comparison of vectors; of an element's key and its store where its rank is.
_COMPARED, _PLACED = 1.5, 8
# Of a vector of keys that is held against a limit; of the sum of such counts; of an element that is
# taken or passed by, without a branch.  The share of the
# bits that are looked at, of numbers that differ.
_COUNTED, _SUMMED, _TOLD, _LOOKED = 1, 30, 2, 0.75
# Of a vector of keys, and of their least; how many more candidates there are than are wanted.
_KEYS, _MORE = 8, 1.5
_GROUP = 1.75  # a group is told apart in the time of so many elements that are looked at
# Of an element in a pass over one byte of the keys, and of the 256 counts of such a pass.
_MOVED, _COUNTS = 9, 768
MOST_BYTES = 1 << 24  # elements of a row; their places in two buffers are workspace
LONGEST_RANKED = 1 << 12  # elements of a row whose keys and ranks stay on the stack


def group_steps(length: int, count: int, lanes: int) -> tuple[int, int]:
    """Return how many elements a group has, and how many groups there are: whole vectors.

    As many as take the least time to tell apart, and to look into as many as are wanted.
    """
    steps = max(2, round((_GROUP * length / max(1, count)) ** 0.5))
    width = -(-length // steps // lanes) * lanes
    return -(-length // width), width


def extents(attrs: TopKAttrs, shape: Sequence[int]) -> tuple[int, int, int]:
    """Return what lies around the axis, its length, and what lies inside."""
    axis = attrs.axis % len(shape)
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def key_type(dtype: str) -> str:
    """Return the type of the keys of `dtype`; "" where it has none."""
    return "int32" if dtype in _SHORT else "int64" if dtype in _LONG else ""


def lane_type(dtype: str) -> str:
    """Return the type in which lanes compare elements of `dtype`; "" where they do not."""
    return _WIDE.get(dtype, "")


def key_lanes(target: Target, dtype: str) -> int:
    """Return the lanes of a vector of the keys of `dtype`."""
    return vector_lanes(target, key_type(dtype))


def limit_bits(dtype: str) -> int:
    """Return the bits of what keys of `dtype` may be, without their sign."""
    if dtype in ("int8", "uint8", "int16"):
        return dtypes.bits_of(dtype)
    return dtypes.bits_of(key_type(dtype)) - 1


def costs(attrs: TopKAttrs, data: TensorType, target: Target) -> dict[str, float]:
    """Return the cycles of one row by each way that serves `data`."""
    around, length, inside = extents(attrs, data.shape)
    count = attrs.k or length
    if not count or not length:
        return {HEAP: 0.0}
    taken = count * (1 + log(length / count))
    found = {HEAP: _REFUSED * length + _TAKEN * taken + _LEVEL * count * log2(count)}
    wide = lane_type(data.dtype)
    if wide:
        lanes = vector_lanes(target, wide)
        if 1 < lanes <= (inside if inside > 1 else around) and count <= lanes:
            found[LANES] = length * (_POSITION * count + _ELEMENT) / lanes
            if wide != data.dtype and inside == 1:
                found[LANES] += _APART * length
    if key_type(data.dtype):
        lanes = key_lanes(target, data.dtype)
        if lanes > 1 and length <= LONGEST_RANKED:
            found[RANKS] = length * length * _COMPARED / lanes + _PLACED * length
        if lanes > 1 and count < length and count <= LONGEST_RANKED and length <= MOST_BYTES:
            found[LIMIT] = _limited(data.dtype, length, count, lanes)
            steps, width = group_steps(length, count, lanes)
            if _MORE * count <= width <= length:
                told = _TOLD * (width + steps * _MORE * count)
                groups = _limited(data.dtype, width, 0, lanes) - _TOLD * width
                best = _limited(data.dtype, _MORE * count, count, lanes)
                found[GROUPS] = _KEYS * length / lanes + told + groups + best
        if length <= MOST_BYTES:
            passes = dtypes.bits_of(key_type(data.dtype)) // 8
            found[BYTES] = passes * (_MOVED * length + _COUNTS) + _PLACED * length
    return found


def _limited(dtype: str, length: float, count: int, lanes: int) -> float:
    """Return the cycles of a limit that is found among keys, and of what is chosen by it."""
    looked = _LOOKED if dtypes.is_float(dtype) else 1
    bits = looked * (1 + limit_bits(dtype))
    counted = _COUNTED if key_type(dtype) == "int32" else 2 * _COUNTED
    passes = bits * (length * counted / lanes + _SUMMED)
    ranks = count * count * _COMPARED / lanes + _PLACED * count
    return passes + _TOLD * length + ranks


def is_best(name: str, attrs: TopKAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Return whether the way of this name takes the fewest cycles."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    if not data.rank or any(map(is_open, data.shape)):
        return False
    known = costs(attrs, data, target)
    return min(known, key=known.__getitem__) == name


def key_of(value: PrimExpr, rises: bool) -> Any:
    """Return an integer that is less where `value` comes before in the result.

    Equal numbers, both zeros among them, and all NaN have one key; a NaN is above all numbers.
    """
    kind = key_type(value.dtype)
    if not dtypes.is_float(value.dtype):
        key = ops.cast(value, kind)
    else:
        wide = value if kind == "int64" else ops.cast(value, "float32")
        most = ops.const((1 << dtypes.bits_of(kind) - 1) - 1, kind)
        bits = calls.reinterpret(kind, wide)
        zero = ops.const(0, kind)
        key = ops.select(ops.less(bits, zero), ops.bitwise_xor(bits, most), bits)
        key = ops.select(ops.equal(wide, ops.const(0.0, wide.dtype)), zero, key)
        key = ops.select(te.isnan(wide), most, key)
    return key if rises else ops.bitwise_xor(key, ops.const(-1, kind))


def cost_by(name: str) -> Callable[[Problem, Any], float]:
    """Return what tells the cycles of all rows by the way of this name."""

    def cost(problem: Problem, knobs: Any) -> float:
        (data,) = problem.in_types
        assert isinstance(data, TensorType)
        rows = prod(data.shape) / data.shape[problem.attrs.axis]
        return float(rows * costs(problem.attrs, data, problem.target)[name])

    return cost


def computed_by(
    statements: Callable[[TopKAttrs, Buffer, list[Buffer], Any], Any],
) -> Callable[[Problem, Sequence[te.Tensor], Any], list[te.Tensor]]:
    """Return what computes the results by loops of statements, on memory as it lies."""

    def compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: Any) -> list[te.Tensor]:
        types = [t for t in problem.out_types if isinstance(t, TensorType)]

        def loops(ins: list[Buffer], outs: list[Buffer]) -> Any:
            return statements(problem.attrs, ins[0], outs, knobs)

        shapes, kinds = [t.shape for t in types], [t.dtype for t in types]
        return list(te.extern(shapes, list(inputs), loops, "T_topk", kinds))

    return compute


class RowLoops:
    """The data and the results of all rows, (around, elements, inside), for loops over them."""

    def __init__(self, attrs: TopKAttrs, data: Buffer, outs: Sequence[Buffer]) -> None:
        self.rises = attrs.is_ascend
        self.around, self.length, self.inside = extents(attrs, shape_of(data))
        self.count = attrs.k or self.length
        self.ib = builder.create()
        self.x = self.ib.buffer_ptr(view(data, (self.around, self.length, self.inside)))
        self.results = [
            self.ib.buffer_ptr(view(b, (self.around, self.count, self.inside))) for b in outs
        ]
        self.kind = key_type(data.dtype)
