"""The gradient of pools over H and W."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import reduction as R
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.nn.windows import PoolWindows
from slipway.topi.tag import ELEMWISE
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
    if not dtypes.is_float(data.dtype) or grads.dtype != data.dtype:
        raise InvalidShapeError(
            f"pool_grad of {grads.dtype} for data of {data.dtype}: both are of one kind of reals"
        )
    options = (kernel, stride, padding, pool_type, ceil_mode, layout, count_include_pad)
    lay = PoolWindows.on(data, kernel, stride, 1, padding, ceil_mode, layout, "pool_grad")
    shape = [get_const_int(d) for d in lay.of(data.shape)]
    if [get_const_int(d) for d in grads.shape] != shape:
        raise InvalidShapeError(f"pool_grad of {grads.shape}: the pool of {data.shape} is {shape}")
    return gradient_of_windows(grads, data, *options)


def gradient_of_windows(
    grads: Tensor, data: Tensor, kernel: ShapeLike, stride: ShapeLike, padding: ShapeLike,
    pool_type: str, ceil_mode: bool, layout: str, count_include_pad: bool,
) -> Tensor:  # fmt: skip
    """Return `pool_grad` of as many windows as there are gradients, perhaps fewer than fit."""
    lay = PoolWindows.on(data, kernel, stride, 1, padding, ceil_mode, layout, "pool_grad")
    lay = replace(lay, counts=tuple(grads.shape[axis] for axis in lay.axes))
    counts, extents = ([get_const_int(n) for n in sizes] for sizes in (lay.counts, lay.extents))
    best = _first_largest(data, lay, counts, extents) if pool_type == "max" else None
    reached = [-(-size // step) for size, step in zip(lay.sizes, lay.steps, strict=True)]
    over = [R.reduce_axis((0, n), name) for n, name in zip(reached, ("wy", "wx"), strict=True)]
    wide = "float32" if data.dtype in ("float16", "bfloat16") else data.dtype

    def element(*i: PrimExpr) -> Any:
        position: list[Any] = list(i)
        taps, inside, number = [], [], ops.const(1)
        for n, axis in enumerate(lay.axes):
            padded = ops.add(i[axis], lay.first[n])
            window = ops.sub(ops.floordiv(padded, lay.steps[n]), over[n].var)
            taps.append(ops.sub(padded, ops.mul(window, lay.steps[n])))
            inside += [ops.greater_equal(window, 0), ops.less(window, counts[n]),
                       ops.less(taps[n], lay.sizes[n])]  # fmt: skip
            position[axis] = window
            if best is None:
                number = ops.mul(number, lay.counted(n, window, count_include_pad))
        part = ops.cast(grads(*position), wide)
        if best is None:
            part = ops.div(part, ops.cast(number, wide))
        else:
            tap = ops.add(ops.mul(taps[0], lay.sizes[1]), taps[1])
            part = ops.if_then_else(ops.equal(best(*position), tap), part, const(0, wide))
        return R.sum(ops.if_then_else(ops.all_of(inside), part, const(0, wide)), axis=over)

    found = compute(tuple(data.shape), element, "T_pool_grad", f"pool_grad_{pool_type}")
    if wide == data.dtype:
        return found  # type: ignore[no-any-return]
    return compute(  # type: ignore[no-any-return]
        tuple(data.shape), lambda *i: ops.cast(found(*i), data.dtype), "T_cast", ELEMWISE
    )


def _first_largest(
    data: Tensor, lay: PoolWindows, counts: Sequence[int], extents: Sequence[int]
) -> Tensor:
    """Return the number of the first largest element in each window, counted by rows."""
    ends = [(counts[n] - 1) * lay.steps[n] + lay.sizes[n] - extents[n] - lay.first[n]
            for n in (0, 1)]  # fmt: skip
    x = lay.padded(data, [max(end, 0) for end in ends], ops.lowest(data.dtype))
    over = [R.reduce_axis((0, n), name) for n, name in zip(lay.sizes, ("ry", "rx"), strict=True)]

    def larger(one: Any, other: Any) -> Any:
        """NaN is larger than all numbers; of equals the first one."""
        nan, other_nan = (ops.not_equal(v[1], v[1]) for v in (one, other))
        equal = ops.logical_or(ops.equal(one[1], other[1]), ops.logical_and(nan, other_nan))
        above = ops.logical_or(
            ops.greater(one[1], other[1]), ops.logical_and(nan, ops.logical_not(other_nan))
        )
        sooner = ops.logical_and(equal, ops.less(one[0], other[0]))
        wins = ops.logical_or(above, sooner)
        return tuple(ops.select(wins, a, b) for a, b in zip(one, other, strict=True))

    reducer = R.comm_reducer(
        larger, lambda n, v: (ops.max_value(n), ops.lowest(v)), "first_largest"
    )

    def element(*i: PrimExpr) -> Any:
        taps = [k.var for k in over]
        number = ops.add(ops.mul(taps[0], lay.sizes[1]), taps[1])
        at = lay.positions(i, taps)
        inside = []  # padding comes after all elements, minus infinity among them
        for n, axis in enumerate(lay.axes):
            offset = ops.sub(at[axis], lay.first[n])
            inside += [ops.greater_equal(offset, 0), ops.less(offset, extents[n])]
        number = ops.select(ops.all_of(inside), number, ops.max_value("int32"))
        return reducer((number, x(*at)), axis=over)

    found, _ = compute(lay.of(data.shape), element, "largest_index")
    return found  # type: ignore[no-any-return]
