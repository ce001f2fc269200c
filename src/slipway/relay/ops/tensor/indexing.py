"""Operators that read and write at positions which follow from shapes, lengths or indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.dims import smaller
from slipway.relay.expr import Constant, Tuple, TupleWrapper
from slipway.relay.op_registry import BadArgument, as_expr, const
from slipway.relay.ops.build import (
    call,
    counted,
    known_ints,
    length,
    scalar,
    take,
    typed,
    where,
)
from slipway.relay.ops.checks import (
    broadcast_shapes,
    integers,
    need_integral,
    need_rank,
    normal_axis,
)
from slipway.relay.ops.dyn import length_of, of_rank, sizes_may_be_tensors
from slipway.relay.types import ANY, TensorType, is_open

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike, Extents


def _listed(argument: str, values: Any) -> Sequence[Any]:
    if not isinstance(values, Tuple | tuple | list):
        raise BadArgument(argument, f"is {values!r}; write a list of tensors")
    return values.fields if isinstance(values, Tuple) else values


def meshgrid(data: Sequence[Any], indexing: str = "ij") -> TupleWrapper:
    """Return one grid per vector; "xy" exchanges the first two axes."""
    if indexing not in ("ij", "xy"):
        raise BadArgument("indexing", f"is {indexing!r}; use 'ij' or 'xy'")
    vectors = []
    for value in _listed("data", data):
        x, own = typed(value)
        need_rank("data", own, 0, 1)
        vectors.append((x, own.shape[0] if own.rank else 1))
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = [vectors[i][1] for i in order]
    grids = []
    for number, (x, extent) in enumerate(vectors):
        position = [1] * len(shape)
        position[order.index(number)] = extent
        grids.append(call("broadcast_to", call("reshape", x, position), shape))
    return TupleWrapper(Tuple(tuple(grids)), len(grids))


def unravel_index(indices: ExprLike, shape: ExprLike) -> Any:
    """Return the indices in `shape` of row-major positions, one row per axis."""
    x, own = typed(indices)
    need_integral("indices", own)
    sizes = known_ints("shape", shape)
    rows = []
    for axis, size in enumerate(sizes):
        step = scalar(int(np.prod(sizes[axis + 1 :])), own.dtype)
        row = call("floor_divide", x, step)
        rows.append(call("floor_mod", row, scalar(size, own.dtype)))
    return call("stack", rows, 0)


def adv_index(inputs: Sequence[Any]) -> Any:
    """Read ``data[i0, i1, ...]`` as NumPy does; the indices broadcast with each other."""
    fields = inputs.fields if isinstance(inputs, Tuple) else _listed("inputs", inputs)
    if not fields:
        raise BadArgument("inputs", "is empty; write the data, then its indices")
    x, own = typed(fields[0])
    indices = [typed(i) for i in fields[1:]]
    if not 1 <= len(indices) <= own.rank:
        raise BadArgument("inputs", f"has {len(indices)} indices for {own}")
    shape: tuple[int, ...] = ()
    for _, kind in indices:
        need_integral("inputs", kind)
        shape = broadcast_shapes(shape, kind.shape, "inputs")
    rows = [call("broadcast_to", call("cast", i, "int64"), shape) for i, _ in indices]
    return call("gather_nd", x, call("stack", rows, 0))


def sliding_window(data: ExprLike, axis: int, window_shape: Extents, strides: Extents) -> Any:
    """Return windows over the axes from `axis` on: their positions, then what lies in each."""
    x, own = typed(data)
    first = normal_axis(axis, own.rank)
    window, steps = integers("window_shape", window_shape), integers("strides", strides)
    if len(window) != own.rank - first or len(steps) != len(window):
        raise BadArgument("window_shape", f"{window} and the strides {steps} must have one number "
                          f"for each axis of {own} from {first} on")  # fmt: skip
    for i, (size, step) in enumerate(zip(window, steps, strict=True)):
        extent = own.shape[first + i]
        if not 1 <= size <= extent or step < 1:
            raise BadArgument("window_shape", f"{window} with strides {steps} does not fit {own}")
        count = (extent - size) // step + 1
        if is_open(count):
            starts = call("multiply", call("arange", 0, count, 1, "int32"), scalar(step, "int32"))
            starts = call("reshape", starts, (count, 1))
            positions = call("add", starts, const(np.arange(size, dtype=np.int32)))
            x = call("take", x, positions, first + 2 * i, mode="fast")
            continue
        starts = np.arange(count) * step
        x = take(x, starts[:, None] + np.arange(size), first + 2 * i)
    axes = range(len(window))
    positions = [*range(first), *(first + 2 * i for i in axes)]
    return call("transpose", x, [*positions, *(first + 2 * i + 1 for i in axes)])


def sequence_mask(
    data: ExprLike, valid_length: ExprLike, mask_value: float = 0, axis: int = 0
) -> Any:
    """Put `mask_value` behind the valid length of each sequence; `axis` 0 or 1 is time."""
    (x, own), (lengths, kind) = typed(data), typed(valid_length)
    if axis not in (0, 1) or own.rank < 2:
        raise BadArgument("axis", f"is {axis} of {own}; time is axis 0 or 1, the batch the other")
    if kind.shape != (own.shape[1 - axis],):
        raise BadArgument("valid_length", f"must have one length per sequence of {own}, got {kind}")
    batch = [1] * own.rank
    batch[1 - axis] = own.shape[1 - axis]
    step = _steps(own, axis, kind.dtype)
    inside = call("less", step, call("reshape", lengths, batch))
    return call("where", inside, x, scalar(mask_value, own.dtype))


def reverse_sequence(
    data: ExprLike, seq_lengths: ExprLike, seq_axis: int = 1, batch_axis: int = 0
) -> Any:
    """Turn the first ``seq_lengths[b]`` elements of each sequence around; the rest stays.

    A length beyond the sequence's turns all of it, one below zero none.
    """
    (x, own), (lengths, kind) = typed(data), typed(seq_lengths)
    along, beside = normal_axis(seq_axis, own.rank, "seq_axis"), normal_axis(batch_axis, own.rank)
    if along == beside:
        raise BadArgument("batch_axis", f"is the axis of the sequences, {along}")
    if kind.shape != (own.shape[beside],):
        raise BadArgument("seq_lengths", f"must have one length per sequence of {own}, got {kind}")
    batch = [1] * own.rank
    batch[beside] = own.shape[beside]
    step = _steps(own, along, "int32")
    count = call("minimum", call("cast", lengths, "int32"), length(x, along, "int32"))
    count = call("reshape", count, batch)
    mirrored = call("subtract", call("subtract", count, scalar(1, "int32")), step)
    positions = call("where", call("less", step, count), mirrored, step)
    return call("gather", x, along, call("broadcast_to", positions, own.shape))


def _steps(own: TensorType, axis: int, dtype: str) -> Any:
    """Return the positions along an axis, in a shape that broadcasts with the tensor."""
    shape = [1] * own.rank
    shape[axis] = own.shape[axis]
    return call("reshape", counted(own.shape[axis], dtype), shape)


def strided_set(
    data: ExprLike, v: ExprLike, begin: ExprLike, end: ExprLike, strides: ExprLike | None = None
) -> Any:
    """Return `data` with the slice begin:end:strides replaced by `v`."""
    (x, own), (new, kind) = typed(data), typed(v)
    first, last = known_ints("begin", begin), known_ints("end", end)
    steps = (1,) * len(first) if strides is None else known_ints("strides", strides)
    if not len(first) == len(last) == len(steps) <= own.rank or 0 in steps:
        raise BadArgument("begin", f"{first}, end {last} and strides {steps} do not fit {own}")
    inside: Any = np.ones(own.shape, bool)
    sizes, sources = [], []
    for axis, extent in enumerate(own.shape):
        part = slice(first[axis], last[axis], steps[axis]) if axis < len(first) else slice(None)
        positions = np.arange(extent)[part]
        sizes.append(len(positions))
        source = np.full(extent, -1)
        source[positions] = np.arange(len(positions))
        view = [1] * own.rank
        view[axis] = extent
        inside = inside & (source >= 0).reshape(view)
        sources.append(source.clip(0))
    if kind.shape != tuple(sizes):
        raise BadArgument("v", f"must have the shape of the slice, {tuple(sizes)}, got {kind}")
    if not inside.any():
        return x
    for axis, source in enumerate(sources):
        new = take(new, source, axis)
    return where(inside, new, x)


def invert_permutation(data: ExprLike) -> Any:
    """Return where each number of a permutation stands."""
    x, own = typed(data)
    need_rank("data", own, 1)
    need_integral("data", own)
    numbers = const(np.arange(own.shape[0], dtype=own.dtype))
    return call("scatter_elements", const(np.zeros(own.shape, own.dtype)), x, numbers, 0)


def scatter(data: ExprLike, indices: ExprLike, updates: ExprLike, axis: int) -> Any:
    """Return `data` with `updates` put in along `axis` at `indices`."""
    return call("scatter_elements", data, indices, updates, axis)


def scatter_add(data: ExprLike, indices: ExprLike, updates: ExprLike, axis: int) -> Any:
    """Return `data` with `updates` added along `axis` at `indices`."""
    return call("scatter_elements", data, indices, updates, axis, "add")


def _summed(data: TensorType, segment_ids: TensorType, num_segments: Any) -> TensorType:
    count = num_segments if isinstance(num_segments, int) else ANY
    return TensorType((count, *data.shape[segment_ids.rank :]), data.dtype)


@sizes_may_be_tensors(
    "num_segments", tensors=("data", "segment_ids"), result=_summed, needs_shapes=True
)
def sum_of_segments(data: ExprLike, segment_ids: ExprLike, num_segments: int) -> Any:
    """Return the sums of `num_segments` segments; ids for the first slices alone are enough."""
    (x, own), (ids, kind) = typed(data), typed(segment_ids)
    need_integral("segment_ids", kind)
    if kind.rank < 1 or kind.shape[1:] != own.shape[1 : kind.rank]:
        raise BadArgument("segment_ids", f"is {kind}: it must have the first axes of {own}")
    count = kind.shape[0]
    if kind.shape[:1] != own.shape[:1]:
        if is_open(count) or is_open(own.shape[0]) or count > own.shape[0]:
            raise BadArgument("segment_ids", f"is {kind}: it must have the first axes of {own}")
        x = call("strided_slice", x, [0], [count], axes=[0])
    zeros = const(np.zeros((int(num_segments), *own.shape[kind.rank :]), own.dtype))
    return call("scatter_nd", zeros, call("expand_dims", ids, 0), x, "add")


def segment_sum(
    data: ExprLike, segment_ids: ExprLike, num_segments: int | ExprLike | None = None
) -> Any:
    """Return the sum of the slices of each segment; `num_segments` None: as many as the ids say."""
    count: Any = num_segments
    if num_segments is None:
        ids = as_expr(segment_ids)
        if isinstance(ids, Constant):
            count = int(ids.array.max(initial=-1)) + 1
        else:
            count = call("add", call("cast", call("max", ids), "int64"), const(np.int64(1)))
    return sum_of_segments(data, segment_ids, count)


@sizes_may_be_tensors(
    "output_shape",
    tensors=("sparse_indices", "sparse_values", "default_value"),
    result=lambda sparse_values, output_shape: of_rank(
        length_of("output_shape", output_shape), sparse_values.dtype
    ),
)
def sparse_to_dense(
    sparse_indices: ExprLike,
    output_shape: ExprLike,
    sparse_values: ExprLike,
    default_value: ExprLike = 0,
) -> Any:
    """Return a tensor that holds `sparse_values` at `sparse_indices`, else `default_value`."""
    (positions, kind), (values, own) = typed(sparse_indices), typed(sparse_values)
    need_integral("sparse_indices", kind)
    need_rank("sparse_indices", kind, 0, 1, 2)
    shape = known_ints("output_shape", output_shape)
    count = kind.shape[0] if kind.rank else 1
    depth = kind.shape[1] if kind.rank == 2 else 1
    if depth != len(shape):
        raise BadArgument("sparse_indices", f"is {kind}, but the result has {len(shape)} axes")
    rows = call("transpose", call("reshape", positions, (count, depth)), (1, 0))
    filled = call("full", call("cast", as_expr(default_value), own.dtype), shape)
    return call("scatter_nd", filled, rows, call("broadcast_to", values, (count,)))


def trilu(data: ExprLike, k: ExprLike, upper: bool = True) -> Any:
    """Keep the upper (or lower) triangle from diagonal `k` on, zeros elsewhere."""
    x, own = typed(data)
    if own.rank < 2:
        raise BadArgument("data", f"must have at least 2 axes, got {own}")
    rows, columns = own.shape[-2:]
    if is_open(rows) or is_open(columns):
        across, down = (call("expand_dims", call("arange", 0, extent, 1, "int64"), axis)
                        for extent, axis in ((columns, 0), (rows, 1)))  # fmt: skip
        diagonal = call("subtract", across, down)
    else:
        diagonal = const(np.arange(columns)[None, :] - np.arange(rows)[:, None], "int64")
    number = call("reshape", call("cast", as_expr(k), "int64"), ())
    name = "greater_equal" if upper else "less_equal"
    return call("where", call(name, diagonal, number), x, scalar(0, own.dtype))


def matrix_set_diag(
    data: ExprLike, diagonal: ExprLike, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT"
) -> Any:
    """Return matrices with the diagonals `k` (one, or first and last) replaced.

    Several diagonals lie in rows, that of the largest number first; `align` says on which side
    the shorter ones above and below the main diagonal lie.
    """
    (x, own), (new, kind) = typed(data), typed(diagonal)
    sides = align.split("_")
    if len(sides) != 2 or set(sides) - {"LEFT", "RIGHT"}:
        raise BadArgument("align", f"is {align!r}; use RIGHT_LEFT, LEFT_RIGHT, ...")
    if own.rank < 2:
        raise BadArgument("data", f"must have 2 axes or more, got {own}")
    integers("k", k)
    low, high = (int(k), int(k)) if np.ndim(k) == 0 else (int(v) for v in k)  # type: ignore[union-attr, arg-type]
    rows, columns = own.shape[-2:]
    if is_open(rows) or is_open(columns):
        return _with_open_diagonal(x, own, new, kind, low, high)
    if not -rows < low <= high < columns:
        raise BadArgument("k", f"is {k}, and the matrices are {rows} by {columns}")
    lengths = {d: min(rows + min(d, 0), columns - max(d, 0)) for d in range(low, high + 1)}
    longest = max(lengths.values())
    wanted = (*own.shape[:-2], *((high - low + 1,) if low != high else ()), longest)
    if kind.shape != wanted:
        raise BadArgument("diagonal", f"must have shape {wanted}, got {kind}")
    r, c = np.indices((rows, columns))
    number = c - r
    inside = (number >= low) & (number <= high)
    position = np.minimum(r, c)
    for d, count in lengths.items():
        if sides[0 if d >= 0 else 1] == "RIGHT":
            position = position + np.where(number == d, longest - count, 0)
    flat = np.where(inside, (high - number) * longest + position, 0)
    new = call("reshape", new, (*own.shape[:-2], -1))
    return where(inside, take(new, flat, own.rank - 2), x)


def _with_open_diagonal(
    x: Any, own: TensorType, new: Any, kind: TensorType, low: int, high: int
) -> Any:
    """Return matrices of open sizes with one diagonal replaced."""
    rows, columns = own.shape[-2:]
    if low != high:
        raise BadArgument("k", f"is {low} to {high}: of matrices of open sizes, say one diagonal")
    down = call("expand_dims", call("arange", 0, rows, 1, "int64"), 1)
    across = call("arange", 0, columns, 1, "int64")
    wanted = (*own.shape[:-2], smaller(rows + min(low, 0), columns - max(low, 0)))
    if kind.shape != wanted:
        raise BadArgument("diagonal", f"must have shape {wanted}, got {kind}")
    spread = call("take", new, call("minimum", down, across), own.rank - 2)
    number = call("subtract", across, down)
    return call("where", call("equal", number, const(np.int64(low))), spread, x)


def searchsorted(
    sorted_sequence: ExprLike, values: ExprLike, right: bool = False, dtype: str = "int32"
) -> Any:
    """Return where values belong in sorted rows: before equal elements, or behind with `right`.

    Every element of a row is compared: that is one pass over (values x elements).
    """
    (row, own), (v, kind) = typed(sorted_sequence), typed(values)
    if own.rank < 1 or (own.rank > 1 and own.shape[:-1] != kind.shape[:-1]):
        raise BadArgument("values", f"is {kind}: it must have the leading axes of {own}")
    name = "less_equal" if right else "less"
    if own.rank > 1:
        row = call("expand_dims", row, own.rank - 1)
    before = call(name, row, call("expand_dims", v, kind.rank))
    return call("sum", call("cast", before, dtype), [-1])
