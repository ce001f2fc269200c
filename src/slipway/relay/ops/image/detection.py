"""vision.select_boxes, the greedy part of non-maximum suppression, and the classic function of all.

How many boxes are selected depends on the data, so the result has room for all of them, and a
second result says how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import builder
from slipway.ir.node import node
from slipway.relay.dims import SymbolDim, size_of, smaller
from slipway.relay.expr import Call, TupleWrapper
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, make, register_op
from slipway.relay.ops.checks import need_dtype, need_rank, need_shape
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike


@node
class SelectBoxesAttrs(Attrs):
    """`limit`: the most boxes that a class can have, for the size of the result (0: all)."""

    limit: int = 0


SELECT = register_op(
    "vision.select_boxes", "boxes", "order", "scores", "max_per_class", "iou_threshold",
    "score_threshold", attrs=SelectBoxesAttrs, pattern=OpPattern.OPAQUE,
    doc="Per sample and class, the boxes (N, 4: corners) in falling order of score whose overlap "
    "with none selected before exceeds the threshold: rows (sample, class, box), and their number.",
)  # fmt: skip


def _room(attrs: SelectBoxesAttrs, scores: Any) -> Any:
    batch, classes, count = (size_of(d) for d in scores.shape)
    return batch * classes * (smaller(attrs.limit, count) if attrs.limit else count)


@SELECT.type_relation
def _select_type(
    attrs: SelectBoxesAttrs, boxes: TensorType, order: TensorType, scores: TensorType,
    max_per_class: TensorType, iou_threshold: TensorType, score_threshold: TensorType,
) -> Type:  # fmt: skip
    need_rank("scores", scores, 3)
    batch, _, count = scores.shape
    need_shape("boxes", boxes, (batch, count, 4), "four corners of each box of the scores")
    need_shape("order", order, scores.shape, "like the scores")
    need_dtype("order", order, "int64", "positions")
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
    attrs: SelectBoxesAttrs, boxes: Any, order: Any, scores: Any, most: Any, overlap: Any,
    lowest: Any,
) -> Any:  # fmt: skip
    found = []
    for sample, by_class in enumerate(order):
        low = np.minimum(boxes[sample, :, :2], boxes[sample, :, 2:])
        high = np.maximum(boxes[sample, :, :2], boxes[sample, :, 2:])
        area = (high - low).prod(1)
        for kind, positions in enumerate(by_class):
            chosen: list[int] = []
            for rank, box in enumerate(positions):
                if len(chosen) >= most:
                    break
                if not scores[sample, kind, rank] > lowest:
                    continue  # of sorted scores all that follow too, but for a NaN in front
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
    batch, classes, total = (size_of(d) for d in inputs[2].shape)
    room = rows_type.shape[0]
    formula = room.formula if isinstance(room, SymbolDim) else te().const(room, "int32")
    space = formula.astype("int64")

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        ib = builder.create()
        boxes, order, scores, most, overlap, minimum = (ib.buffer_ptr(b) for b in ins)
        rows, count = (ib.buffer_ptr(b) for b in outs)
        free = ib.allocate("bool", (1,), "free")
        first = ib.allocate("int64", (1,), "first")
        count[0] = te().const(0, "int64")
        with ib.for_range(0, room, "r") as r, ib.for_range(0, 3, "c") as c:
            rows[r, c] = te().const(-1, "int64")

        def sides(b: Any, box: Any, axis: int) -> tuple[Any, Any]:
            one, two = boxes[b, box, axis], boxes[b, box, axis + 2]
            return te().min(one, two), te().max(one, two)

        def area(b: Any, box: Any) -> Any:
            (y1, y2), (x1, x2) = sides(b, box, 0), sides(b, box, 1)
            return (y2 - y1) * (x2 - x1)

        def common(b: Any, one: Any, two: Any) -> Any:
            product = None
            for axis in (0, 1):
                (low, high), (low2, high2) = sides(b, one, axis), sides(b, two, axis)
                side = te().max(te().min(high, high2) - te().max(low, low2), 0.0)
                product = side if product is None else product * side
            return product

        with ib.for_range(0, batch, "b") as b, ib.for_range(0, classes, "k") as k:
            first[0] = count[0]
            with ib.for_range(0, total, "i") as i:
                box = order[b, k, i].astype("int32")
                limit = te().min(most[()] + first[0], space)
                wanted = te().all(scores[b, k, i] > minimum[()], count[0] < limit)
                with ib.if_scope(wanted):
                    free[0] = te().const(True, "bool")
                    begin, end = first[0].astype("int32"), count[0].astype("int32")
                    with ib.for_range(begin, end, "j") as j:
                        other = rows[j, 2].astype("int32")
                        shared = common(b, box, other)
                        joined = area(b, box) + area(b, other) - shared
                        with ib.if_scope(shared / joined > overlap[()]):
                            free[0] = te().const(False, "bool")
                    with ib.if_scope(free[0]):
                        position = count[0].astype("int32")
                        rows[position, 0] = b.astype("int64")
                        rows[position, 1] = k.astype("int64")
                        rows[position, 2] = order[b, k, i]
                        count[0] = count[0] + te().const(1, "int64")
        return ib.get()

    made = te().extern(
        [rows_type.shape, count_type.shape], inputs, statements, "select_boxes", ["int64", "int64"]
    )
    return list(made)


@SELECT.make
def select_boxes(
    boxes: ExprLike, order: ExprLike, scores: ExprLike, max_per_class: ExprLike,
    iou_threshold: ExprLike, score_threshold: ExprLike, limit: int = 0,
) -> Any:  # fmt: skip
    """Select boxes greedily; `order` and `scores` are sorted, the largest score first."""
    call: Call = SELECT(
        boxes, order, scores, max_per_class, iou_threshold, score_threshold,
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
    values = make("topk")(as_expr(scores), 0, -1, "both", False, "int64")

    def scalar(value: Any, dtype: str) -> Any:
        return as_expr(value, dtype)

    return select_boxes(
        boxes, values[1], values[0], scalar(max_output_boxes_per_class, "int64"),
        scalar(iou_threshold, "float32"), scalar(score_threshold, "float32"), limit,
    )  # fmt: skip


def _select_case(rng: np.random.Generator) -> list[Any]:
    boxes = rng.uniform(0, 4, (2, 9, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (2, 3, 9)).astype(np.float32)
    order = np.argsort(-scores, axis=-1, kind="stable")
    return [
        boxes, order, np.take_along_axis(scores, order, -1), np.array(3, np.int64),
        np.array(0.25, np.float32), np.array(0.2, np.float32),
    ]  # fmt: skip


SELECT.sample_case(make=_select_case)
SELECT.sample_case(attrs=SelectBoxesAttrs(4), make=_select_case)
