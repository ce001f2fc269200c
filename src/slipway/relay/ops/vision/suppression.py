"""vision.suppress_boxes, and non_max_suppression over it: boxes that others cover are taken out.

A row of the data is one box with its score, perhaps its class, and four corners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import builder, ops
from slipway.ir.node import node
from slipway.relay.expr import Call, Tuple, TupleWrapper
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.build import call, counted, known, known_ints, length, scalar, typed
from slipway.relay.ops.checks import need_dtype, need_float, need_rank, need_shape
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike


@node
class SuppressBoxesAttrs(Attrs):
    """Limits (-1: none), the least overlap that suppresses, and where a row has what.

    `any_class`: boxes of other classes suppress too; `id_index` -1: rows have no class.
    """

    max_output_size: int = -1
    iou_threshold: float = 0.5
    any_class: bool = False
    top_k: int = -1
    coord_start: int = 2
    score_index: int = 1
    id_index: int = 0


SUPPRESS = register_op(
    "vision.suppress_boxes", "data", "valid_count", "order", attrs=SuppressBoxesAttrs,
    pattern=OpPattern.OPAQUE,
    doc="Rows (N, boxes, values) in the given order, -1 where a row before covers too much of a "
    "box; and the places that they come from.",
)  # fmt: skip


@SUPPRESS.type_relation
def _type(
    attrs: SuppressBoxesAttrs, data: TensorType, valid_count: TensorType, order: TensorType
) -> Type:
    need_rank("data", data, 3)
    need_float("data", data)
    batch, count, width = data.shape
    need_shape("valid_count", valid_count, (batch,), "a number for each sample")
    need_shape("order", order, (batch, count), "a place for each box")
    for name, given in (("valid_count", valid_count), ("order", order)):
        need_dtype(name, given, "int32", "all places")
    indices = (attrs.coord_start, attrs.coord_start + 3, attrs.score_index, max(attrs.id_index, 0))
    if not all(0 <= i < width for i in indices):
        raise BadArgument("data", f"is {data}: its rows are too short for {attrs}")
    return TupleType((data, TensorType((batch, count), "int32")))


@SUPPRESS.reference
def _reference(attrs: SuppressBoxesAttrs, data: Any, valid_count: Any, order: Any) -> Any:
    rows, positions = np.full_like(data, -1), np.full(order.shape, -1, np.int32)
    for sample, most in enumerate(valid_count):
        keep = min(int(most), attrs.top_k) if attrs.top_k > 0 else int(most)
        kept: list[int] = []
        for rank, position in enumerate(order[sample, :keep]):
            row = data[sample, position]
            if attrs.iou_threshold > 0:
                if len(kept) == attrs.max_output_size:
                    break
                if row[attrs.score_index] > 0:
                    if any(_covers(attrs, rows[sample, k], row) for k in kept):
                        continue
                    kept.append(rank)
            rows[sample, rank], positions[sample, rank] = row, position
    return rows, positions


def _covers(attrs: SuppressBoxesAttrs, other: Any, row: Any) -> bool:
    if attrs.id_index >= 0:
        one, two = other[attrs.id_index], row[attrs.id_index]
        if one < 0 or (not attrs.any_class and one != two):
            return False
    first, last = attrs.coord_start, attrs.coord_start + 4
    a, b = row[first:last], other[first:last]
    low = np.maximum(np.minimum(a[:2], a[2:]), np.minimum(b[:2], b[2:]))
    high = np.minimum(np.maximum(a[:2], a[2:]), np.maximum(b[:2], b[2:]))
    common = np.maximum(high - low, 0).prod(dtype=row.dtype)
    joined = np.abs(a[2:] - a[:2]).prod() + np.abs(b[2:] - b[:2]).prod() - common
    return bool(joined > 0 and common / joined >= row.dtype.type(attrs.iou_threshold))


@SUPPRESS.compute
def _compute(
    attrs: SuppressBoxesAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    rows_type, positions_type = out_types

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        return _Suppression(attrs, rows_type, ins, outs).statements()

    made = te().extern(
        [rows_type.shape, positions_type.shape], inputs, statements, "suppress_boxes",
        [rows_type.dtype, "int32"],
    )  # fmt: skip
    return list(made)


class _Suppression:
    """The loops of a suppression, and what they read and write."""

    def __init__(
        self, attrs: SuppressBoxesAttrs, rows_type: TensorType, ins: list[Any], outs: list[Any]
    ) -> None:
        self.attrs = attrs
        self.batch, self.total, self.width = rows_type.shape
        self.dtype = rows_type.dtype
        self.ib = ib = builder.create()
        self.data, self.valid_count, self.order = (ib.buffer_ptr(b) for b in ins)
        self.rows, self.positions = (ib.buffer_ptr(b) for b in outs)
        self.free = ib.allocate("bool", (1,), "free")
        self.count = ib.allocate("int32", (1,), "count")

    def statements(self) -> Any:
        ib, attrs = self.ib, self.attrs
        with ib.for_range(0, self.batch, "b") as b:
            self.count[0] = te().const(0, "int32")
            keep = te().min(self.valid_count[b], self.total)
            if attrs.top_k > 0:
                keep = te().min(keep, attrs.top_k)
            self.copy(b, keep)
            if attrs.iou_threshold > 0:
                with ib.for_range(0, self.total, "i") as i, ib.if_scope(i < keep):
                    self.suppress(b, i)
        return ib.get()

    def copy(self, b: Any, keep: Any) -> None:
        """Copy the rows of a sample in the order of their scores."""
        ib = self.ib
        with ib.for_range(0, self.total, "i") as i:
            with ib.if_scope(i < keep):
                position = self.order[b, i]
                with ib.for_range(0, self.width, "c") as c:
                    self.rows[b, i, c] = self.data[b, position, c]
                self.positions[b, i] = position
            with ib.else_scope():
                self.wipe(b, i)

    def suppress(self, b: Any, i: Any) -> None:
        """Keep row i, or wipe it where a kept one before it covers it."""
        ib, attrs, free, count = self.ib, self.attrs, self.free, self.count
        free[0] = te().const(True, "bool")
        full = ops.equal(count[0], te().const(attrs.max_output_size, "int32"))
        with ib.if_scope(full):
            free[0] = te().const(False, "bool")
        counted = self.rows[b, i, attrs.score_index] > self.number(0)
        with ib.if_scope(te().all(counted, free[0])):
            with ib.for_range(0, i, "j") as j:
                rivals = self.rivals(b, i, j)
                common, joined = self.areas(b, i, j)
                over = common / joined >= self.number(attrs.iou_threshold)
                with ib.if_scope(te().all(rivals, joined > self.number(0), over)):
                    free[0] = te().const(False, "bool")
            with ib.if_scope(free[0]):
                count[0] = count[0] + te().const(1, "int32")
        with ib.if_scope(te().all(ops.equal(free[0], te().const(False, "bool")))):
            self.wipe(b, i)

    def rivals(self, b: Any, i: Any, j: Any) -> Any:
        """Whether row j was kept, and is of a class that row i competes with."""
        rows, attrs = self.rows, self.attrs
        rivals = rows[b, j, attrs.score_index] > self.number(0)
        if attrs.id_index >= 0:
            kind = rows[b, j, attrs.id_index]
            rivals = te().all(rivals, kind >= self.number(0))
            if not attrs.any_class:
                own = rows[b, i, attrs.id_index]
                rivals = te().all(rivals, ops.equal(kind, own))
        return rivals

    def areas(self, b: Any, i: Any, j: Any) -> tuple[Any, Any]:
        """The area common to two boxes, and that of both together."""
        common: Any = None
        areas: list[Any] = [None, None]
        for axis in (0, 1):
            (low, high), (low2, high2) = self.side(b, i, axis), self.side(b, j, axis)
            shared = te().max(te().min(high, high2) - te().max(low, low2), self.number(0))
            common = shared if common is None else common * shared
            for n, side in enumerate((high - low, high2 - low2)):
                areas[n] = side if areas[n] is None else areas[n] * side
        return common, areas[0] + areas[1] - common

    def side(self, b: Any, i: Any, axis: int) -> tuple[Any, Any]:
        start = self.attrs.coord_start + axis
        one, two = self.rows[b, i, start], self.rows[b, i, start + 2]
        return te().min(one, two), te().max(one, two)

    def wipe(self, b: Any, i: Any) -> None:
        with self.ib.for_range(0, self.width, "c") as c:
            self.rows[b, i, c] = self.number(-1)
        self.positions[b, i] = te().const(-1, "int32")

    def number(self, value: float) -> Any:
        return te().const(value, self.dtype)


@SUPPRESS.make
def suppress_boxes(
    data: ExprLike, valid_count: ExprLike, order: ExprLike, **options: Any
) -> TupleWrapper:
    """Return (rows, places); `options` are the attributes."""
    made: Call = SUPPRESS(data, valid_count, order, attrs=SuppressBoxesAttrs(**options))
    return TupleWrapper(made, 2)


def non_max_suppression(
    data: ExprLike,
    valid_count: ExprLike,
    indices: ExprLike | None,
    max_output_size: ExprLike = -1,
    iou_threshold: ExprLike = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Any:
    """Suppress boxes of (N, boxes, values) that a box of a higher score covers.

    With `return_indices` (places (N, boxes) out of `indices`, in front; their number (N, 1)), else
    the rows in falling order of score, -1 where suppressed, with `invalid_to_bottom` behind.
    """
    (x, own), (counts, _) = typed(data), typed(valid_count)
    counted_most = known_ints("max_output_size", max_output_size)
    if len(counted_most) != 1:
        raise BadArgument("max_output_size", f"is {list(counted_most)}; write one number")
    (most,) = counted_most
    need_rank("data", own, 3)
    overlap = known("iou_threshold", iou_threshold)
    if overlap.size != 1:
        raise BadArgument("iou_threshold", f"is {overlap}; write one number")
    threshold = float(overlap.item())
    total = own.shape[1]
    scores = call("strided_slice", x, [score_index], [score_index + 1], None, [2])
    number = counted(total, "int32")
    counts = call("cast", counts, "int32")
    valid = call("less", number, call("expand_dims", counts, 1))
    scores = call("where", valid, call("squeeze", scores, [2]), scalar(-np.inf, own.dtype))
    order = call("topk", scores, 0, -1, "indices", False, "int32")
    rows, positions = suppress_boxes(
        x, counts, order, max_output_size=most, iou_threshold=threshold,
        any_class=bool(force_suppress), top_k=int(top_k), coord_start=int(coord_start),
        score_index=int(score_index), id_index=int(id_index),
    )  # fmt: skip
    if return_indices:
        there = call("greater_equal", positions, scalar(0, "int32"))
        own_positions = call("maximum", positions, scalar(0, "int32"))
        found = call("gather", indices, 1, own_positions)
        front, count = to_front(there)
        found = call("gather", call("where", there, found, scalar(-1, "int32")), 1, front)
        return TupleWrapper(Tuple((found, count)), 2)
    if not invalid_to_bottom:
        return rows
    first = call("squeeze", call("strided_slice", rows, [0], [1], None, [2]), [2])
    there = call("greater_equal", first, scalar(0, own.dtype))
    front, count = to_front(there)
    inside = call("expand_dims", call("less", number, count), 2)
    moved = call("gather", rows, 1, call("broadcast_to", call("expand_dims", front, 2), own.shape))
    return call("where", inside, moved, scalar(-1, own.dtype))


def to_front(there: Any) -> tuple[Any, Any]:
    """Return the places that bring what is there to the front, in order, and its number (N, 1)."""
    number = counted(typed(there)[1].shape[1], "int32")
    key = call("where", there, number, call("add", number, length(there, 1, "int32")))
    count = call("sum", call("cast", there, "int32"), [1], keepdims=True)
    return call("topk", key, 0, -1, "indices", True, "int32"), count


def _case(rng: np.random.Generator) -> list[Any]:
    corners = np.sort(rng.uniform(0, 4, (2, 9, 2, 2)), 2).reshape(2, 9, 4)
    kind, score = rng.integers(-1, 2, (2, 9, 1)), rng.uniform(-0.1, 1, (2, 9, 1))
    data = np.concatenate([kind, score, corners], 2).astype(np.float32)
    order = np.argsort(-data[:, :, 1], axis=1, kind="stable").astype(np.int32)
    return [data, np.array([9, 6], np.int32), order]


for _attrs in (
    SuppressBoxesAttrs(iou_threshold=0.2),
    SuppressBoxesAttrs(3, 0.1, True, 7),
    SuppressBoxesAttrs(-1, 0.3, False, -1, 2, 1, -1),
    SuppressBoxesAttrs(iou_threshold=0.0, top_k=4),
):
    SUPPRESS.sample_case(attrs=_attrs, make=_case)
