"""vision.select_boxes, the greedy non-maximum suppression, and the classic function over it.

How many boxes are selected depends on the data, so the result has room for all of them, and a
second result says how many there are.  Only boxes above the least score are looked at, and they are
taken from a heap one by one, until a class has as many as it may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import builder, ops
from slipway.ir.node import node
from slipway.relay.dims import SymbolDim, size_of, smaller
from slipway.relay.expr import Call, TupleWrapper
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import need_dtype, need_rank, need_shape
from slipway.relay.ops.tensor.sort import Heap
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike


@node
class SelectBoxesAttrs(Attrs):
    """`limit`: the most boxes that a class can have, for the size of the result (0: all)."""

    limit: int = 0


SELECT = register_op(
    "vision.select_boxes", "boxes", "scores", "max_per_class", "iou_threshold", "score_threshold",
    attrs=SelectBoxesAttrs, pattern=OpPattern.OPAQUE,
    doc="Per sample and class, the boxes (N, 4: corners) in falling order of score whose overlap "
    "with none selected before exceeds the threshold: rows (sample, class, box), and their number.",
)  # fmt: skip


def _room(attrs: SelectBoxesAttrs, scores: Any) -> Any:
    batch, classes, count = (size_of(d) for d in scores.shape)
    return batch * classes * (smaller(attrs.limit, count) if attrs.limit else count)


@SELECT.type_relation
def _select_type(
    attrs: SelectBoxesAttrs, boxes: TensorType, scores: TensorType, max_per_class: TensorType,
    iou_threshold: TensorType, score_threshold: TensorType,
) -> Type:  # fmt: skip
    need_rank("scores", scores, 3)
    batch, _, count = scores.shape
    need_shape("boxes", boxes, (batch, count, 4), "four corners of each box of the scores")
    for name, given in (("boxes", boxes), ("scores", scores)):
        need_dtype(name, given, "float32", "all coordinates")
    need_dtype("max_per_class", max_per_class, "int64", "a count")
    for name, given in (("iou_threshold", iou_threshold), ("score_threshold", score_threshold)):
        need_dtype(name, given, "float32", "the scores")
        need_rank(name, given, 0)
    need_rank("max_per_class", max_per_class, 0)
    return TupleType((TensorType((_room(attrs, scores), 3), "int64"), TensorType((1,), "int64")))


@SELECT.reference
def _select_reference(
    attrs: SelectBoxesAttrs, boxes: Any, scores: Any, most: Any, overlap: Any, lowest: Any
) -> Any:
    found = []
    order = np.argsort(-scores, axis=-1, kind="stable")
    for sample, by_class in enumerate(order):
        low = np.minimum(boxes[sample, :, :2], boxes[sample, :, 2:])
        high = np.maximum(boxes[sample, :, :2], boxes[sample, :, 2:])
        area = (high - low).prod(1)
        for kind, positions in enumerate(by_class):
            chosen: list[int] = []
            for box in positions:
                if len(chosen) >= most:
                    break
                if not scores[sample, kind, box] > lowest:
                    continue  # of sorted scores all that follow too, but for a NaN
                sides = np.minimum(high[box], high[chosen]) - np.maximum(low[box], low[chosen])
                common = np.maximum(sides, 0).prod(1)
                if not (common / (area[box] + area[chosen] - common) > overlap).any():
                    chosen.append(int(box))
            found += [(sample, kind, box) for box in chosen]
    rows = np.full((_room(attrs, scores), 3), -1, np.int64)
    rows[: len(found)] = np.array(found, np.int64).reshape(-1, 3)
    return rows, np.array([len(found)], np.int64)


@SELECT.compute
def _select_compute(
    attrs: SelectBoxesAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    rows_type, count_type = out_types

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        return _Selection(rows_type, ins, outs).statements()

    made = te().extern(
        [rows_type.shape, count_type.shape], inputs, statements, "select_boxes", ["int64", "int64"]
    )
    return list(made)


class _Scores(Heap):
    """A heap of numbers above the least score, the largest on top, of equal ones the first.

    No NaN is above it.  Positions are counted from the end, so that the first has the largest.
    """

    def before(self, value: Any, other: Any) -> Any:
        return value < other


_TOGETHER = 8  # selected boxes that a box is held against at once


class _Selection:
    """The loops of a selection, and what they read and write."""

    def __init__(self, rows_type: TensorType, ins: list[Any], outs: list[Any]) -> None:
        self.ib = ib = builder.create()
        self.batch, self.classes, total = (size_of(d) for d in ins[1].shape)
        self.total: Any = total.formula if isinstance(total, SymbolDim) else total
        room = rows_type.shape[0]
        self.room = room
        formula: Any = room.formula if isinstance(room, SymbolDim) else te().const(room, "int32")
        self.space = formula.astype("int64")
        self.boxes, self.scores, self.most, self.overlap, self.minimum = map(ib.buffer_ptr, ins)
        self.rows, self.count = map(ib.buffer_ptr, outs)
        self.free = ib.allocate("bool", (1,), "free", scope="local")
        self.first = ib.allocate("int64", (1,), "first", scope="local")
        self.left = ib.allocate("int32", (1,), "left", scope="local")
        self.other = ib.allocate("int32", (1,), "other", scope="local")
        # What is above the least score, and the low corner, the high one and the area of each
        # selected box of a class: for as many as there may be, so that memory can be planned.
        bound = total.high if isinstance(total, SymbolDim) else None
        most = self.total if bound is None else bound
        values = ib.allocate("float32", (most,), "values")
        positions = ib.allocate("int32", (most,), "positions")
        slots = most + (_TOGETHER - 1)
        self.chosen = [ib.allocate("float32", (slots,), f"chosen{n}") for n in range(5)]
        self.hits = ib.allocate("int32", (_TOGETHER,), "hits", scope="local")
        self.heap = _Scores(ib, True, values, positions, lambda index: (index,))

    def statements(self) -> Any:
        ib = self.ib
        self.count[0] = te().const(0, "int64")
        with ib.for_range(0, self.room, "r") as r, ib.for_range(0, 3, "c") as c:
            self.rows[r, c] = te().const(-1, "int64")
        with ib.for_range(0, self.total + (_TOGETHER - 1), "i") as i:
            for values in self.chosen:
                values[i] = te().const(0, "float32")
        with ib.for_range(0, self.batch, "b") as b, ib.for_range(0, self.classes, "k") as k:
            self.collect(b, k)
            self.first[0] = self.count[0]
            limit = ib.let("limit", te().min(self.most[()] + self.first[0], self.space))
            with ib.while_loop(te().all(self.left[0] > 0, self.count[0] < limit)):
                box = ib.let("box", self.total - 1 - self.heap.position(0))
                self.left[0] = self.left[0] - 1
                last = ib.let("last", self.left[0])
                value = ib.let("value", self.heap.value(last))
                self.heap.sift(0, last, value, ib.let("position", self.heap.position(last)))
                self.take(b, k, box)
        return ib.get()

    def collect(self, b: Any, k: Any) -> None:
        """Make a heap of the boxes of a class above the least score."""
        ib, left, heap = self.ib, self.left, self.heap
        left[0] = te().const(0, "int32")
        with ib.for_range(0, self.total, "i") as i:
            score = ib.let("score", self.scores[b, k, i])
            heap.put(left[0], score, self.total - 1 - i)
            left[0] = left[0] + (score > self.minimum[()]).astype("int32")
        half = ib.let("half", left[0] // 2)
        with ib.for_range(0, half, "i") as i:
            hole = ib.let("parent", half - 1 - i)
            value = ib.let("value", heap.value(hole))
            heap.sift(hole, left[0], value, ib.let("position", heap.position(hole)))

    def take(self, b: Any, k: Any, box: Any) -> None:
        """Select a box unless one of its class before it covers too much of it.

        Some are looked at together, in a vector; then whether one of them does.
        """
        ib, free, other, count = self.ib, self.free, self.other, self.count
        ends = [(self.boxes[b, box, axis], self.boxes[b, box, axis + 2]) for axis in (0, 1)]
        low = [ib.let("low", te().min(*pair)) for pair in ends]
        high = [ib.let("high", te().max(*pair)) for pair in ends]
        area = ib.let("area", (high[0] - low[0]) * (high[1] - low[1]))
        known = ib.let("known", (count[0] - self.first[0]).astype("int32"))
        free[0] = te().const(True, "bool")
        other[0] = te().const(0, "int32")
        zero, one = (te().const(n, "int32") for n in (0, 1))
        with ib.while_loop(te().all(other[0] < known, free[0])):
            begin = ib.let("begin", other[0])
            with ib.for_range(0, _TOGETHER, "lane", kind="vectorize") as lane:
                low0, low1, high0, high1, its_area = (v[begin + lane] for v in self.chosen)
                nothing = te().const(0, "float32")
                tall = te().max(te().min(high[0], high0) - te().max(low[0], low0), nothing)
                wide = te().max(te().min(high[1], high1) - te().max(low[1], low1), nothing)
                common = ib.let("common", tall * wide)
                over = common / (area + its_area - common) > self.overlap[()]
                is_one = ops.bitwise_and(over, begin + lane < known)
                self.hits[lane] = te().select(is_one, one, zero)
            found = sum((self.hits[n] for n in range(1, _TOGETHER)), self.hits[0])
            free[0] = ops.equal(found, zero)
            other[0] = begin + _TOGETHER
        with ib.if_scope(free[0]):
            for values, value in zip(self.chosen, (*low, *high, area), strict=True):
                values[known] = value
            row = ib.let("row", count[0].astype("int32"))
            for column, index in enumerate((b, k, box)):
                self.rows[row, column] = index.astype("int64")
            count[0] = count[0] + te().const(1, "int64")


@SELECT.make
def select_boxes(
    boxes: ExprLike, scores: ExprLike, max_per_class: ExprLike, iou_threshold: ExprLike,
    score_threshold: ExprLike, limit: int = 0,
) -> Any:  # fmt: skip
    """Select boxes greedily, the largest score first."""
    call: Call = SELECT(
        boxes, scores, max_per_class, iou_threshold, score_threshold,
        attrs=SelectBoxesAttrs(int(limit)),
    )  # fmt: skip
    return TupleWrapper(call, 2)


def all_class_non_max_suppression(
    boxes: ExprLike,
    scores: ExprLike,
    max_output_boxes_per_class: ExprLike,
    iou_threshold: ExprLike,
    score_threshold: ExprLike = -np.inf,
    output_format: str = "onnx",
    limit: int = 0,
) -> Any:
    """Return (rows (room, 3) of sample, class and box, padded with -1; their number (1,)).

    That is `output_format` "onnx", the only one that is served.

    `boxes` are (batch, N, 4) corners, `scores` (batch, classes, N).  Thresholds and the count may
    be rank-0 tensors; `limit` bounds the room by a known count.
    """
    if output_format != "onnx":
        raise BadArgument("output_format", f"is {output_format!r}; only 'onnx' is served")

    def scalar(value: Any, dtype: str) -> Any:
        return as_expr(value, dtype)

    return select_boxes(
        boxes, scores, scalar(max_output_boxes_per_class, "int64"),
        scalar(iou_threshold, "float32"), scalar(score_threshold, "float32"), limit,
    )  # fmt: skip


def _select_case(rng: np.random.Generator) -> list[Any]:
    boxes = rng.uniform(0, 4, (2, 9, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (2, 3, 9)).astype(np.float32)
    scores[:, :, 4] = scores[:, :, 1]
    limits = [np.array(0.25, np.float32), np.array(0.2, np.float32)]
    return [boxes, scores, np.array(3, np.int64), *limits]


SELECT.sample_case(make=_select_case)
SELECT.sample_case(attrs=SelectBoxesAttrs(4), make=_select_case)
