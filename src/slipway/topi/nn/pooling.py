"""The largest or mean element of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import reduction as R
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.nn.windows import PoolWindows, spread
from slipway.topi.tag import ELEMWISE
from slipway.topi.utils import get_const_int

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, ShapeLike


def pool1d(
    data: Tensor,
    kernel: ShapeLike,
    stride: ShapeLike,
    dilation: ShapeLike = 1,
    padding: ShapeLike = 0,
    pool_type: str = "max",
    ceil_mode: bool = False,
    layout: str = "NCW",
    count_include_pad: bool = True,
) -> Tensor:
    """Return what `pool2d` does, over W."""
    return _pool("W", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad)  # fmt: skip


def pool2d(
    data: Tensor,
    kernel: ShapeLike,
    stride: ShapeLike,
    dilation: ShapeLike = 1,
    padding: ShapeLike = 0,
    pool_type: str = "max",
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:
    """Return the largest ("max") or mean ("avg") element of each window over H and W of `layout`.

    Padding counts in the mean unless `count_include_pad` is false.  `ceil_mode` adds the windows
    that reach over the end.
    """
    return _pool("HW", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad)  # fmt: skip


def pool3d(
    data: Tensor,
    kernel: ShapeLike,
    stride: ShapeLike,
    dilation: ShapeLike = 1,
    padding: ShapeLike = 0,
    pool_type: str = "max",
    ceil_mode: bool = False,
    layout: str = "NCDHW",
    count_include_pad: bool = True,
) -> Tensor:
    """Return what `pool2d` does, over D, H and W."""
    return _pool("DHW", data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad)  # fmt: skip


def _pool(
    over: str, data: Tensor, kernel: ShapeLike, stride: ShapeLike, dilation: ShapeLike,
    padding: ShapeLike, pool_type: str, ceil_mode: bool, layout: str, count_include_pad: bool,
) -> Tensor:  # fmt: skip
    name = f"pool{len(over)}d"
    if pool_type not in ("max", "avg"):
        raise InvalidShapeError(f"pool_type is 'max' or 'avg', not {pool_type!r}")
    lay = PoolWindows.on(data, kernel, stride, dilation, padding, ceil_mode, layout, name, over)
    after = [last + (step - 1 if ceil_mode else 0)
             for last, step in zip(lay.last, lay.steps, strict=True)]  # fmt: skip
    largest = pool_type == "max"
    x = lay.padded(data, after, ops.lowest(data.dtype) if largest else 0)
    taps = [R.reduce_axis((0, n), f"r{c.lower()}") for n, c in zip(lay.sizes, over, strict=True)]
    reducer = R.max if largest else R.sum

    def element(*i: PrimExpr) -> Any:
        return reducer(x(*lay.positions(i, [k.var for k in taps])), axis=taps)

    shape = lay.of(data.shape)
    found = compute(shape, element, name, f"pool_{pool_type}" if largest else "pool_sum")
    if largest:
        return found  # type: ignore[no-any-return]

    def mean(*i: PrimExpr) -> Any:
        count: Any = ops.const(1)
        for n, axis in enumerate(lay.axes):
            count = ops.mul(count, lay.counted(n, i[axis], count_include_pad))
        return ops.div(found(*i), ops.cast(count, data.dtype))

    return compute(shape, mean, f"{name}_mean", ELEMWISE)  # type: ignore[no-any-return]


def pool(
    data: Tensor,
    kernel: ShapeLike,
    stride: ShapeLike,
    padding: ShapeLike,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:
    """Return `pool2d` without dilation, by its name and arguments of TVM 0.6."""
    return pool2d(data, kernel, stride, 1, padding, pool_type, ceil_mode, layout, count_include_pad)


def adaptive_pool(
    data: Tensor, output_size: ShapeLike, pool_type: str, layout: str = "NCHW"
) -> Tensor:
    """Return H and W pooled to `output_size`; as PyTorch lays windows."""
    if pool_type not in ("max", "avg"):
        raise InvalidShapeError(f"pool_type is 'max' or 'avg', not {pool_type!r}")
    if len(layout) != data.ndim or not {"H", "W"} <= set(layout):
        raise InvalidShapeError(f"adaptive_pool of {data.shape} in layout {layout!r}")
    axes, wanted = [layout.index(c) for c in "HW"], spread(output_size, 2, "output_size")
    extents = [get_const_int(data.shape[a]) for a in axes]
    shape, over = list(data.shape), []
    for axis, extent, size in zip(axes, extents, wanted, strict=True):
        shape[axis] = ops.const(size)
        bounds = [(n * extent // size, -(-(n + 1) * extent // size)) for n in range(size)]
        over.append(R.reduce_axis((0, max(e - b for b, e in bounds)), f"r{axis}"))
    largest = pool_type == "max"
    neutral = ops.lowest(data.dtype) if largest else const(0, data.dtype)
    reducer = R.max if largest else R.sum

    def ends(index: PrimExpr, extent: int, size: int) -> tuple[Any, Any]:
        begin = ops.floordiv(ops.mul(index, extent), size)
        return begin, ops.floordiv(ops.add(ops.mul(ops.add(index, 1), extent), size - 1), size)

    def element(*i: PrimExpr) -> Any:
        position: list[Any] = list(i)
        tests = []
        for axis, extent, size, k in zip(axes, extents, wanted, over, strict=True):
            begin, end = ends(i[axis], extent, size)
            position[axis] = ops.add(begin, k.var)
            tests.append(ops.less(position[axis], end))
        return reducer(ops.if_then_else(ops.all_of(tests), data(*position), neutral), axis=over)

    found = compute(
        tuple(shape),
        element,
        "adaptive_pool",
        f"adaptive_pool_{pool_type}" if largest else "adaptive_pool_sum",
    )
    if largest:
        return found  # type: ignore[no-any-return]

    def mean(*i: PrimExpr) -> Any:
        count: Any = ops.const(1)
        for axis, extent, size in zip(axes, extents, wanted, strict=True):
            begin, end = ends(i[axis], extent, size)
            count = ops.mul(count, ops.sub(end, begin))
        return ops.div(found(*i), ops.cast(count, data.dtype))

    return compute(tuple(shape), mean, "adaptive_pool_mean", ELEMWISE)  # type: ignore[no-any-return]


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Return the largest or mean element of each whole channel, H and W being 1."""
    return adaptive_pool(data, 1, pool_type, layout)
