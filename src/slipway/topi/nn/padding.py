"""Elements put around and between those of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.tag import INJECTIVE

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr


def pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None,
    pad_value: float | PrimExpr = 0.0, name: str = "pad", attrs: Any = None,
) -> Tensor:  # fmt: skip
    """Return `data` with so many elements `pad_value` before and after each dimension."""
    before, after = list(pad_before), list(pad_after if pad_after is not None else pad_before)
    if not len(before) == len(after) == data.ndim:
        raise InvalidShapeError(
            f"pad of {data.shape} by {before} and {after}: write a number for each dimension"
        )
    shape = tuple(
        ops.add(ops.add(n, b), a) for n, b, a in zip(data.shape, before, after, strict=True)
    )

    def element(*i: Any) -> Any:
        tests, position = [], []
        for index, n, b, a in zip(i, data.shape, before, after, strict=True):
            position.append(ops.sub(index, b))
            tests += [ops.greater_equal(index, b)] if b else []
            tests += [ops.less(index, ops.add(n, b))] if a else []
        value = data(*position)
        fill = ops.cast(ops.as_expr(pad_value), data.dtype)
        return ops.if_then_else(ops.all_of(tests), value, fill) if tests else value

    return compute(shape, element, name, f"{INJECTIVE},pad", attrs)  # type: ignore[no-any-return]


def dilate(
    data: Tensor, strides: Sequence[int], dilation_value: float = 0.0, name: str = "dilate"
) -> Tensor:
    """Return `data` with ``strides - 1`` elements `dilation_value` between two neighbours."""
    if len(strides) != data.ndim:
        raise InvalidShapeError(f"dilate of {data.shape} needs {data.ndim} strides, got {strides}")
    shape = tuple(
        ops.add(ops.mul(ops.sub(n, 1), s), 1) for n, s in zip(data.shape, strides, strict=True)
    )
    fill = const(dilation_value, data.dtype)

    def element(*i: PrimExpr) -> Any:
        pairs = list(zip(i, strides, strict=True))
        tests = [ops.equal(ops.floormod(x, s), 0) for x, s in pairs if s != 1]
        value = data(*(ops.floordiv(x, s) for x, s in pairs))
        return ops.if_then_else(ops.all_of(tests), value, fill) if tests else value

    return compute(shape, element, name, f"{INJECTIVE},dilate")  # type: ignore[no-any-return]
