"""Operators whose result's shape depends on a value, where the model says what shape it will be.

A static compiler must know every shape.  Where a size, a list of axes or the number of elements
found is computed at run time, but the file (or ONNX's shape inference) states the shape of the
result, that shape is used, and the rest is done at run time: where a slice begins, which of the
axes that fit is reduced, which elements are kept.  A model that runs into another shape than it
declares is in error; its values are then not defined.

Each entry of `DECLARED` has the signature ``f(node, shapes)`` with one shape per output, None where
it is not stated, and gives the results, or None where the shapes do not settle it.  It is asked
after the operator's own converter has declined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.found_positions import coordinates, positions_in_room
from slipway.frontends.onnx import signals_at_run_time
from slipway.frontends.onnx.converters import NodeView
from slipway.frontends.onnx.counted import cut_to_declared
from slipway.frontends.onnx.operators.control import counted_loop
from slipway.frontends.onnx.operators.pool_indices import unpooled
from slipway.frontends.onnx.operators.reduce import reduced
from slipway.frontends.onnx.operators.resize import resized
from slipway.frontends.onnx.operators.resize_at_run_time import resized_at_run_time
from slipway.frontends.onnx.operators.signal import transformed
from slipway.frontends.onnx.values import Counted
from slipway.frontends.ranks import first_ranked
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const
from slipway.relay.ops.tensor.scan import CUMPROD, CUMSUM, ScanAttrs

if TYPE_CHECKING:
    from slipway.relay.expr import Expr, ExprLike

Shape = tuple[int, ...]
Shapes = Sequence[Shape | None]
DECLARED: dict[str, Callable[[NodeView, Shapes], Any]] = {}
MAX_ROOM = 4096  # elements that may be kept, each compared with each
MAX_CHOICES = 8  # ways to understand the axes, all of which are computed


def declared(
    *names: str, same_rank: bool = False
) -> Callable[[Callable[[NodeView, Shapes], Any]], Any]:
    """Decorator: enter the function for operators of ai.onnx; the first shape must be stated.

    With `same_rank` the shapes that are stated must have as many axes as the input, one at least.
    """

    def fits(node: NodeView, shapes: Shapes) -> bool:
        rank = node.rank() if same_rank else 0
        return not same_rank or (rank > 0 and all(s is None or len(s) == rank for s in shapes))

    def enter(function: Callable[[NodeView, Shapes], Any]) -> Any:
        def guarded(node: NodeView, shapes: Shapes) -> Any:
            usable = shapes[0] is not None and fits(node, shapes)
            return function(node, shapes) if usable else None

        for name in names:
            DECLARED[name] = guarded
        return function

    return enter


def _int64(value: ExprLike) -> Any:
    return const(np.asarray(value, np.int64))


def _positions(count: int) -> Any:
    take_table(count)
    return _int64(np.arange(count))


def _wide(value: Expr) -> Any:
    return value if value.tensor_type.dtype == "int64" else relay.cast(value, "int64")


def _element(vector: Any, index: int) -> Any:
    """Return one element of a vector as a rank-0 tensor."""
    return relay.reshape(relay.strided_slice(vector, [index], [index + 1]), ())


def _from_back(axes: ExprLike, rank: int) -> Any:
    """Count negative axes from the front."""
    negative = relay.less(axes, _int64(0))
    return relay.where(negative, relay.add(axes, _int64(rank)), axes)


# -- axes chosen at run time -----------------------------------------------------------------------


def _fits(shape: Shape, axes: tuple[int, ...], keep: bool, wanted: Shape) -> bool:
    if keep:
        return tuple(1 if a in axes else d for a, d in enumerate(shape)) == wanted
    return tuple(d for a, d in enumerate(shape) if a not in axes) == wanted


def _is_set(axes: Expr, chosen: tuple[int, ...]) -> Any:
    """Tell, at run time, whether the vector `axes` lists exactly the axes `chosen`."""
    result: Any = None
    for axis in chosen:
        there = relay.any(relay.equal(axes, _int64(axis)), None, False)
        result = there if result is None else relay.logical_and(result, there)
    return result


def _selected(cases: list[tuple[Any, Any]]) -> Any:
    """Return the value whose condition holds; the last one's is not looked at."""
    result = cases[-1][1]
    for condition, value in reversed(cases[:-1]):
        result = relay.where(condition, value, result)
    return result


@declared(
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
def _reduce(node: NodeView, shapes: Shapes) -> Any:
    wanted, shape, keep = shapes[0], node.type().shape, bool(node.attr("keepdims", 1))
    assert wanted is not None
    rank, count = len(shape), node.type(1).size
    if not count:
        axes = () if node.attr("noop_with_empty_axes", 0) else tuple(range(rank))
        return reduced(node, axes, keep)
    found = [a for a in combinations(range(rank), count) if _fits(shape, a, keep, wanted)]
    if not found or len(found) > MAX_CHOICES:
        return None
    given = _from_back(relay.reshape(_wide(node.input(1)), (-1,)), rank)
    return _selected([(_is_set(given, axes), reduced(node, axes, keep)) for axes in found])


@declared("CumSum", "CumProd")
def _cumulative(node: NodeView, shapes: Shapes) -> Any:
    rank = node.rank()
    if not 0 < rank <= MAX_CHOICES:
        return None
    axis = _from_back(relay.reshape(_wide(node.input(1)), ()), rank)
    definition = CUMSUM if node.kind == "CumSum" else CUMPROD
    flags = bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0))
    return _selected([
        (relay.equal(axis, _int64(a)), definition(node.input(0), attrs=ScanAttrs(a, *flags)))
        for a in range(rank)
    ])  # fmt: skip


def _is_transformable(node: NodeView, axis: int) -> bool:
    half = node.attr("inverse", 0) and node.attr("onesided", 0) and not node.has(1)
    return int(node.type().shape[axis]) > (1 if half else 0)


@declared("DFT")
def _dft(node: NodeView, shapes: Shapes) -> Any:
    if not node.has(2):
        return None
    given = _from_back(relay.reshape(_wide(node.input(2)), ()), node.rank())
    axes = range(min(node.rank() - 1, MAX_CHOICES))
    made = [(a, transformed(node, a)) for a in axes if _is_transformable(node, a)]
    cases = [
        (relay.equal(given, _int64(a)), value)
        for a, value in made
        if value.tensor_type.shape == shapes[0]
    ]
    return _selected(cases) if cases else None


# -- shapes that say everything --------------------------------------------------------------------


@declared("Reshape", "Squeeze", "Unsqueeze")
def _reshape(node: NodeView, shapes: Shapes) -> Any:
    assert shapes[0] is not None
    return relay.reshape(node.input(0), shapes[0], allowzero=True)


@declared("Expand")
def _expand(node: NodeView, shapes: Shapes) -> Any:
    assert shapes[0] is not None
    return relay.broadcast_to(node.input(0), shapes[0])


@declared("Tile", same_rank=True)
def _tile(node: NodeView, shapes: Shapes) -> Any:
    pairs = list(zip(shapes[0] or (), node.type().shape, strict=True))
    if any(d == 0 or out % d for out, d in pairs):
        return None
    return relay.tile(node.input(0), [out // d for out, d in pairs])


@declared("ConstantOfShape")
def _constant_of_shape(node: NodeView, shapes: Shapes) -> Any:
    value = node.attr("value")
    value = np.zeros(1, np.float32) if value is None else value.reshape(-1)
    assert shapes[0] is not None
    return relay.full(const(value[0], value.dtype.name), shapes[0], value.dtype.name)


@declared("TopK", same_rank=True)
def _top_k(node: NodeView, shapes: Shapes) -> Any:
    axis = node.attr("axis", -1) % node.rank()
    count = (shapes[0] or ())[axis]
    if not node.attr("sorted", 1):
        return None
    ascend = not node.attr("largest", 1)
    return first_ranked(node.input(0), count, axis, ascend, "int64")


@declared("Split", same_rank=True)
def _split(node: NodeView, shapes: Shapes) -> Any:
    axis = node.attr("axis", 0) % node.rank()
    if any(shape is None for shape in shapes):
        return None
    lengths = [shape[axis] for shape in shapes if shape is not None]
    if sum(lengths) != node.type().shape[axis]:
        return None
    return relay.split(node.input(0), [int(c) for c in np.cumsum(lengths)[:-1]], axis)


@declared("OneHot")
def _one_hot(node: NodeView, shapes: Shapes) -> Any:
    wanted = shapes[0] or ()
    if not wanted:
        return None
    axis = node.attr("axis", -1) % len(wanted)
    depth = wanted[axis]
    indices = _wide(node.input(0))
    from_end = relay.add(indices, _int64(depth))
    indices = relay.where(relay.less(indices, _int64(0)), from_end, indices)
    hot = relay.one_hot(indices, 1, 0, depth, axis, "bool")
    values = node.input(2)
    return relay.where(hot, _element(values, 1), _element(values, 0))


@declared("Range")
def _range(node: NodeView, shapes: Shapes) -> Any:
    if len(shapes[0] or ()) != 1:
        return None
    (count,) = shapes[0] or ()
    dtype = node.type().dtype
    start, step = (relay.reshape(node.input(i), ()) for i in (0, 2))
    steps = relay.cast(_positions(count), dtype)
    return relay.add(start, relay.multiply(steps, step))


@declared("Resize", "Upsample")
def _resize(node: NodeView, shapes: Shapes) -> Any:
    wanted = shapes[0] or ()
    scales = node.optional(2) if node.kind == "Resize" and node.opset >= 11 else node.optional(1)
    from_size = scales is None or scales.tensor_type.size == 0  # else the factors count
    stretched = node.attr("keep_aspect_ratio_policy", "stretch") == "stretch"
    region = node.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    if from_size and stretched and not region:
        return resized(node, wanted)
    return resized_at_run_time(node, wanted)


# -- where to read ---------------------------------------------------------------------------------


def _per_axis(node: NodeView, values: Expr, axes: Any, axis: int, rank: int, default: int) -> Any:
    """Return the entry of `values` whose entry of `axes` (None: in order) is `axis`."""
    count = values.tensor_type.shape[0]
    if axes is None:
        return _element(values, axis) if axis < count else _int64(default)
    mine = relay.equal(_from_back(axes, rank), _int64(axis))
    found = relay.sum(relay.where(mine, values, _int64(0)), None, False)
    listed = relay.any(mine, None, False)
    return relay.where(listed, found, _int64(default))


@declared("MaxUnpool")
def _max_unpool(node: NodeView, shapes: Shapes) -> Any:
    return unpooled(node, shapes[0] or ())


@declared("STFT")
def _stft(node: NodeView, shapes: Shapes) -> Any:
    return signals_at_run_time.stft(node, shapes[0] or ())


@declared("MelWeightMatrix")
def _mel_weight_matrix(node: NodeView, shapes: Shapes) -> Any:
    return signals_at_run_time.mel_weight_matrix(node, shapes[0] or ())


@declared("Col2Im")
def _col_to_im(node: NodeView, shapes: Shapes) -> Any:
    return signals_at_run_time.col_to_im(node, shapes[0] or ())


def _loop(node: NodeView, shapes: Shapes) -> Any:
    """Each scan output has as many rows as are stated; all of them the same number."""
    scanned = shapes[len(node.inputs) - 2 :]
    rows = {shape[0] if shape else None for shape in scanned}
    if None in rows or len(rows) != 1:
        return None
    return cut_to_declared(counted_loop(node, rows.pop()), shapes)


DECLARED["Loop"] = _loop


def _are_vectors(node: NodeView, *indices: int) -> bool:
    """Return whether the inputs that list something, where they are given, have one axis."""
    return all(node.rank(i) == 1 for i in indices if node.has(i))


@declared("Slice", same_rank=True)
def _slice(node: NodeView, shapes: Shapes) -> Any:
    if not _are_vectors(node, 1, 3, 4):
        return None
    wanted, x, rank = shapes[0] or (), node.input(0), node.rank()
    starts = _wide(node.input(1))
    axes = _wide(node.input(3)) if node.has(3) else None
    steps = _wide(node.input(4)) if node.has(4) else None
    for axis, (extent, out) in enumerate(zip(node.type().shape, wanted, strict=True)):
        if axes is None and axis >= starts.tensor_type.shape[0]:
            continue
        step = _int64(1) if steps is None else _per_axis(node, steps, axes, axis, rank, 1)
        start = _per_axis(node, starts, axes, axis, rank, 0)
        start = relay.where(relay.less(start, _int64(0)), relay.add(start, _int64(extent)), start)
        start = relay.minimum(relay.maximum(start, _int64(0)), _int64(max(extent - 1, 0)))
        x = relay.take(x, relay.add(start, relay.multiply(_positions(out), step)), axis)
    return x


def _reflected(position: Any, extent: int) -> Any:
    """Return places mirrored at the first and the last element, as often as it takes."""
    if extent == 1:
        return relay.multiply(position, _int64(0))
    period = _int64(2 * (extent - 1))
    position = relay.floor_mod(position, period)
    return relay.minimum(position, relay.subtract(period, position))


@declared("Pad", same_rank=True)
def _pad(node: NodeView, shapes: Shapes) -> Any:
    if node.opset < 11 or not _are_vectors(node, 1, 3):
        return None
    wanted, x, rank = shapes[0] or (), node.input(0), node.rank()
    pads = _wide(node.input(1))
    axes = _wide(node.input(3)) if node.has(3) else None
    before = relay.strided_slice(pads, [0], [pads.tensor_type.shape[0] // 2])
    mode, inside = node.attr("mode", "constant"), None
    for axis, (extent, out) in enumerate(zip(node.type().shape, wanted, strict=True)):
        position = relay.subtract(_positions(out), _per_axis(node, before, axes, axis, rank, 0))
        if mode == "constant":
            there = relay.logical_and(
                relay.greater_equal(position, _int64(0)), relay.less(position, _int64(extent))
            )
            there = relay.reshape(there, [-1 if a == axis else 1 for a in range(rank)])
            inside = there if inside is None else relay.logical_and(inside, there)
        if mode == "reflect":
            position = _reflected(position, extent)
        x = relay.take(x, position, axis, mode="wrap" if mode == "wrap" else "clip")
    if inside is None:
        return x
    fill = relay.reshape(node.input(2), ()) if node.has(2) else node.like(0)
    return relay.where(inside, x, fill)


# -- elements found at run time --------------------------------------------------------------------


def true_positions(condition: Expr, count: int) -> Any:
    """Return the positions (int64) of the first `count` true elements of a bool vector."""
    # Before the k-th true element lie those whose running count is at most k.
    running = relay.cumsum(relay.cast(condition, "int32"), 0)
    running = relay.reshape(running, (1, running.tensor_type.shape[0]))
    take_table(count)
    rank = const(np.arange(count, dtype=np.int32).reshape(-1, 1))
    return relay.sum(relay.cast(relay.less_equal(running, rank), "int64"), 1)


def _number_of(condition: Expr) -> Any:
    return relay.sum(relay.cast(condition, "int64"), 0, keepdims=True)


def _compress(node: NodeView, shapes: Shapes) -> Any:
    """The slices where the condition holds; without a declared shape there is room for all."""
    x, axis, condition = node.input(0), node.attr("axis"), node.input(1)
    if axis is None:
        x, axis = relay.reshape(x, (-1,)), 0
    if not x.tensor_type.rank or condition.tensor_type.rank != 1:
        return None
    axis %= x.tensor_type.rank
    (total,) = condition.tensor_type.shape
    if shapes[0] is not None and len(shapes[0]) == x.tensor_type.rank:
        return relay.take(x, true_positions(condition, shapes[0][axis]), axis)
    if is_open(total) or total > MAX_ROOM:
        positions, number = positions_in_room(condition)
        return Counted(relay.take(x, positions, axis), number, axis)
    kept = relay.take(x, true_positions(condition, total), axis)
    return Counted(kept, _number_of(condition), axis)


def _non_zero(node: NodeView, shapes: Shapes) -> Any:
    """Positions of what is not zero; without a declared shape there is room for all."""
    x = node.input(0)
    total, wanted = x.tensor_type.size, shapes[0]
    if wanted is not None and (len(wanted) != 2 or wanted[0] != x.tensor_type.rank):
        return None
    if wanted is not None and is_open(wanted[1]):
        wanted = None
    if x.tensor_type.dtype != "bool":
        x = relay.not_equal(x, node.like(0))
    flat = relay.reshape(x, (-1,))
    if wanted is None and (is_open(total) or total > MAX_ROOM):
        position, number = positions_in_room(flat)
    else:
        position, number = true_positions(flat, (wanted or (0, total))[1]), _number_of(flat)
    rows = coordinates(position, x)
    room = position.tensor_type.shape[0]
    found = relay.stack(rows, 0) if rows else const(np.zeros((0, room), np.int64))
    return found if wanted is not None else Counted(found, number, 1)


DECLARED.update({"Compress": _compress, "NonZero": _non_zero})
