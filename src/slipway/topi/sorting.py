"""Sorting by ranks, and running sums.

The rank of an element is how many others come before it; equal ones keep their order, and a NaN is
above all numbers.  Every element is compared with every other: n * n comparisons along the axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import math
from slipway.te import reduction as R
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.indexing import gather
from slipway.topi.transform import reshape
from slipway.topi.utils import normalize_axis
from slipway.topi.utils import prod as product

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr


def _before(value: Any, other: Any, rises: bool) -> Any:
    """Return whether a value comes before another one that is not equal."""
    small, large = (value, other) if rises else (other, value)
    less = ops.less(small, large)
    if not dtypes.is_float(value.dtype):
        return less
    return R.any(less, R.all(math.isnan(large), ops.logical_not(math.isnan(small))))


def _order(data: Tensor, axis: int, rises: bool, count: Any, valid: Tensor | None) -> Tensor:
    """Return the positions (int32) of the first `count` along `axis`, in order."""
    extent = data.shape[axis]
    other = R.reduce_axis((0, extent), "other")

    def comes_before(index: Any, mine: Any, left: Any, right: Any) -> Any:
        """Return whether the element at `left` comes before that at `right`."""
        first, second = ((*mine[:axis], x, *mine[axis + 1 :]) for x in (left, right))
        value, compared = data(*first), data(*second)
        ahead = _before(value, compared, rises)
        tied = ops.logical_not(_before(compared, value, rises))
        result = R.any(ahead, R.all(tied, ops.less(left, right)))
        if valid is None:
            return result
        # What is not valid stays where it is, behind all that is.
        limit = ops.cast(valid(*mine[:axis], *mine[axis + 1 :]), "int32")
        inside = ops.less(left, limit), ops.less(right, limit)
        return R.any(
            R.all(*inside, result), R.all(inside[0], ops.logical_not(inside[1])),
            R.all(ops.logical_not(inside[0]), ops.logical_not(inside[1]), ops.less(left, right)),
        )  # fmt: skip

    def rank(*i: PrimExpr) -> Any:
        return R.sum(ops.cast(comes_before(i, i, other.var, i[axis]), "int32"), axis=other)

    ranks = compute(data.shape, rank, "ranks")
    source = R.reduce_axis((0, extent), "source")

    def position(*i: PrimExpr) -> Any:
        here = ranks(*i[:axis], source.var, *i[axis + 1 :])
        is_it = ops.equal(here, ops.cast(i[axis], "int32"))
        found = ops.select(is_it, ops.cast(source.var, "int32"), const(0, "int32"))
        return R.sum(found, axis=source)

    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    return compute(shape, position, "order")  # type: ignore[no-any-return]


def _cast(x: Tensor, dtype: str, name: str) -> Tensor:
    return compute(x.shape, lambda *i: ops.cast(x(*i), dtype), name)  # type: ignore[no-any-return]


def argsort(
    data: Tensor, valid_count: Tensor | None = None, axis: int = -1, is_ascend: bool = True,
    dtype: str = "float32",
) -> Tensor:  # fmt: skip
    """Return the positions that sort `data` along `axis`; only the first `valid_count` move."""
    at = normalize_axis(axis, data.ndim)
    order = _order(data, at, bool(is_ascend), data.shape[at], valid_count)
    return _cast(order, dtype, "argsort")


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """Return `data` sorted along `axis`."""
    at = normalize_axis(axis, data.ndim)
    return gather(data, at, _order(data, at, bool(is_ascend), data.shape[at], None))


def topk(
    data: Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False,
    dtype: str = "int64",
) -> Any:  # fmt: skip
    """Return the `k` largest (smallest) along `axis` and their positions; all sorted for k < 1.

    `ret_type` is "both", "values" or "indices".
    """
    if ret_type not in ("both", "values", "indices"):
        raise InvalidShapeError(f"ret_type is 'both', 'values' or 'indices', not {ret_type!r}")
    at = normalize_axis(axis, data.ndim)
    size = ops.as_int(data.shape[at])
    if size is not None and k > size:
        raise InvalidShapeError(f"topk of {k} along dimension {at} of {data.shape}")
    order = _order(data, at, is_ascend, k if k >= 1 else data.shape[at], None)
    values, indices = gather(data, at, order), _cast(order, dtype, "topk_indices")
    return {"values": values, "indices": indices}.get(ret_type, [values, indices])


def _running(name: str, reducer: Any, neutral: int) -> Any:
    def apply(
        data: Tensor, axis: int | None = None, dtype: str | None = None,
        exclusive: bool | None = None,
    ) -> Tensor:  # fmt: skip
        if axis is None:
            return apply(reshape(data, (product(data.shape),)), 0, dtype, exclusive)
        at, kind = normalize_axis(axis, data.ndim), dtype or data.dtype
        over = R.reduce_axis((0, data.shape[at]), "k")

        def element(*i: PrimExpr) -> Any:
            value = ops.cast(data(*i[:at], over.var, *i[at + 1 :]), kind)
            test = (ops.less if exclusive else ops.less_equal)(over.var, i[at])
            return reducer(ops.select(test, value, const(neutral, kind)), axis=over)

        return compute(data.shape, element, name)  # type: ignore[no-any-return]

    apply.__name__ = name
    apply.__doc__ = f"Return the {name[3:]} of all elements up to each (before it: `exclusive`)."
    return apply


cumsum = _running("cumsum", R.sum, 0)
cumprod = _running("cumprod", R.prod, 1)
