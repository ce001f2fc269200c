"""The gradient of pools over H and W."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import reduction as R
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.nn.padding import pad
from slipway.topi.nn.windows import sides, spread, windows
from slipway.topi.utils import get_const_int

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import PrimExpr, ShapeLike


def pool_grad(
    grads: Tensor,
    data: Tensor,
    kernel: ShapeLike,
    stride: ShapeLike,
    padding: ShapeLike,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:
    """Return the gradient by `data` of a pool whose result has the gradient `grads`.

    That of a maximum goes to its first place in a window; that of a mean in equal parts to the
    elements of a window, of which padding is some unless `count_include_pad` is false.
    """
    if pool_type not in ("max", "avg"):
        raise InvalidShapeError(f"pool_type is 'max' or 'avg', not {pool_type!r}")
    if not len(layout) == data.ndim == grads.ndim or not {"H", "W"} <= set(layout):
        raise InvalidShapeError(f"pool_grad of {data.shape} in layout {layout!r}")
    if not dtypes.is_float(data.dtype) or grads.dtype != data.dtype:
        raise InvalidShapeError(
            f"pool_grad of {grads.dtype} for data of {data.dtype}: both are of one kind of reals"
        )
    axes = [layout.index(c) for c in "HW"]
    sizes, steps = spread(kernel, 2, "kernel"), spread(stride, 2, "stride")
    first, last = sides(padding, sizes)
    shape, extents = list(data.shape), [get_const_int(data.shape[a]) for a in axes]
    for n, axis in enumerate(axes):
        shape[axis] = windows(extents[n] + first[n] + last[n], sizes[n], steps[n], ceil_mode)
    counts = [get_const_int(shape[a]) for a in axes]
    if [get_const_int(d) for d in grads.shape] != [get_const_int(d) for d in shape]:
        raise InvalidShapeError(f"pool_grad of {grads.shape}: the pool of {data.shape} is {shape}")
    best = None
    if pool_type == "max":
        ends = [(counts[n] - 1) * steps[n] + sizes[n] - extents[n] - first[n] for n in (0, 1)]
        best = _first_largest(data, axes, sizes, steps, first, [max(e, 0) for e in ends], shape)
    over = [R.reduce_axis((0, -(-size // step)), name)
            for size, step, name in zip(sizes, steps, ("wy", "wx"), strict=True)]  # fmt: skip

    def element(*i: PrimExpr) -> Any:
        position: list[Any] = list(i)
        taps, inside, number = [], [], ops.const(1)
        for n, axis in enumerate(axes):
            padded = ops.add(i[axis], first[n])
            window = ops.sub(ops.floordiv(padded, steps[n]), over[n].var)
            taps.append(ops.sub(padded, ops.mul(window, steps[n])))
            inside += [ops.greater_equal(window, 0), ops.less(window, counts[n]),
                       ops.less(taps[n], sizes[n])]  # fmt: skip
            position[axis] = window
            start = ops.mul(window, steps[n])
            end = ops.minimum(ops.add(start, sizes[n]), extents[n] + first[n])
            number = ops.mul(number, sizes[n] if count_include_pad else ops.sub(
                end, ops.maximum(start, first[n])))  # fmt: skip
        if best is None:
            part = ops.div(grads(*position), ops.cast(ops.maximum(number, 1), data.dtype))
        else:
            tap = ops.add(ops.mul(taps[0], sizes[1]), taps[1])
            hit = ops.equal(best(*position), tap)
            part = ops.if_then_else(hit, grads(*position), const(0, data.dtype))
        reached = ops.logical_and(*inside[:2])
        for condition in inside[2:]:
            reached = ops.logical_and(reached, condition)
        return R.sum(ops.if_then_else(reached, part, const(0, data.dtype)), axis=over)

    return compute(tuple(data.shape), element, "T_pool_grad", f"pool_grad_{pool_type}")  # type: ignore[no-any-return]


def _first_largest(
    data: Tensor, axes: Sequence[int], sizes: Sequence[int], steps: Sequence[int],
    first: Sequence[int], ends: Sequence[int], shape: Sequence[Any],
) -> Tensor:  # fmt: skip
    """Return the number of the first largest element in each window, counted by rows."""
    before, after = [0] * data.ndim, [0] * data.ndim
    for n, axis in enumerate(axes):
        before[axis], after[axis] = first[n], ends[n]
    x = pad(data, before, after, ops.lowest(data.dtype)) if any(before + after) else data
    over = [R.reduce_axis((0, n), name) for n, name in zip(sizes, ("ry", "rx"), strict=True)]

    def larger(one: Any, other: Any) -> Any:
        sooner = ops.logical_and(ops.equal(one[1], other[1]), ops.less(one[0], other[0]))
        wins = ops.logical_or(ops.greater(one[1], other[1]), sooner)
        return tuple(ops.select(wins, a, b) for a, b in zip(one, other, strict=True))

    reducer = R.comm_reducer(
        larger, lambda n, v: (ops.max_value(n), ops.min_value(v)), "first_largest"
    )

    def element(*i: PrimExpr) -> Any:
        position: list[Any] = list(i)
        for axis, step, k in zip(axes, steps, over, strict=True):
            position[axis] = ops.add(ops.mul(i[axis], step), k.var)
        number = ops.add(ops.mul(over[0].var, sizes[1]), over[1].var)
        return reducer((number, x(*position)), axis=over)

    found, _ = compute(tuple(shape), element, "largest_index")
    return found  # type: ignore[no-any-return]
