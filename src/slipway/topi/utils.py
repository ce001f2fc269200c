"""Shapes as Python numbers, places in them, and stages inlined."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from slipway.arith.analyzer import Analyzer
from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.target import Target
from slipway.te.declare import compute
from slipway.te.operation import ComputeOp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway import te
    from slipway.ir.expr import PrimExpr, PrimExprLike


def get_const_int(value: PrimExprLike) -> int:
    """Return a constant expression as an int; InvalidShapeError when it is not constant."""
    found = ops.as_int(simplify(value))
    if found is None:
        raise InvalidShapeError(f"{value} is not a constant integer")
    return found


def get_const_float(value: PrimExprLike) -> float:
    """Return a constant expression as a float; InvalidShapeError when it is not constant."""
    found = ops.const_value(simplify(value))
    if found is None:
        raise InvalidShapeError(f"{value} is not a constant number")
    return float(found)


def get_const_tuple(values: Sequence[PrimExprLike]) -> tuple[Any, ...]:
    """Return a shape with ints where it is constant, and its variables elsewhere."""
    return tuple(v if ops.as_int(v) is None else ops.as_int(v) for v in values)


def get_float_tuple(values: Sequence[PrimExprLike]) -> tuple[float, ...]:
    """Return constant expressions as floats."""
    return tuple(get_const_float(v) for v in values)


def equal_const_int(expr: PrimExprLike, value: int) -> bool:
    """Return whether an expression is the constant `value`."""
    return ops.as_int(simplify(expr)) == value


def simplify(expr: PrimExprLike) -> Any:
    """Return an expression in its simplest form; a Python number as it is."""
    return expr if isinstance(expr, (int, float)) else Analyzer().simplify(ops.as_expr(expr))


def prod(x: Sequence[PrimExprLike]) -> Any:
    """Return the product of extents; 1 of none."""
    product: Any = ops.const(1)
    for extent in x:
        product = ops.mul(product, extent)
    return product


def ravel_index(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """Return the position, in order of rows, of an element of a tensor of `shape`."""
    flat: Any = ops.const(0)
    for extent, index in zip(shape, indices, strict=True):
        flat = ops.add(ops.mul(flat, extent), index)
    return flat


def unravel_index(idx: PrimExprLike, shape: Sequence[Any]) -> list[Any]:
    """Return the indices of the element at position `idx`, in order of rows."""
    found: list[Any] = []
    for extent in reversed(shape):
        found.append(ops.floormod(idx, extent))
        idx = ops.floordiv(idx, extent)
    return found[::-1]


def const_matrix(matrix: np.ndarray, name: str = "const_matrix") -> te.Tensor:
    """Return a tensor of two axes that is computed from the numbers of `matrix` where it is read.

    Raises InvalidShapeError for other than two axes.
    """
    if matrix.ndim != 2:
        raise InvalidShapeError(f"const_matrix takes a matrix, not an array of {matrix.ndim} axes")
    dtype = str(matrix.dtype)

    def element(i: PrimExpr, j: PrimExpr) -> Any:
        found: Any = ops.const(0, dtype)
        for (row, column), value in np.ndenumerate(matrix):
            here = ops.logical_and(ops.equal(i, row), ops.equal(j, column))
            found = ops.select(here, ops.const(value.item(), dtype), found)
        return found

    made: te.Tensor = compute(matrix.shape, element, name=name, attrs={"const_matrix": True})
    return made


def ceil_div(a: PrimExprLike, b: PrimExprLike) -> Any:
    """Return a / b, rounded up."""
    return ops.floordiv(ops.add(a, ops.sub(b, 1)), b)


def traverse_inline(s: Any, final_op: Any, callback: Callable[[Any], object]) -> None:
    """Inline the injective stages that `final_op` reads, and call `callback` with each operation.

    Outputs of the schedule and reductions stay; an operation comes after those it reads.
    """
    seen: set[int] = set()

    def visit(op: Any) -> None:
        if id(op) in seen:
            return
        seen.add(id(op))
        if is_injective(op):
            if not s[op].is_output:
                s[op].compute_inline()
            for tensor in op.input_tensors:
                if isinstance(tensor.op, ComputeOp):
                    visit(tensor.op)
        callback(op)

    visit(final_op)


def is_injective(op: te.Operation) -> bool:
    """Return whether an operation computes one tensor, element by element, without a reduction."""
    return isinstance(op, ComputeOp) and not op.reduce_axis and op.num_outputs == 1


def get_shape(
    src_shape: Sequence[PrimExprLike], src_layout: str, dst_layout: str
) -> tuple[Any, ...]:
    """Return a shape with its axes in another order: layouts of the same letters, NCHW say."""
    source, wanted = str(src_layout), str(dst_layout)
    if sorted(source) != sorted(wanted) or len(source) != len(src_shape):
        raise InvalidShapeError(f"shape {src_shape} of layout {source} has no layout {wanted}")
    return get_const_tuple([src_shape[source.index(axis)] for axis in wanted])


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """Return the largest power of two that divides `n`, at most `max_value`."""
    power = n & -n
    while max_value is not None and power > max_value:
        power //= 2
    return power


def _has_form(layout: str, axes: str, numbered: bool) -> bool:
    inner = layout.removeprefix(axes)
    if inner == layout or "c" not in inner:
        return False
    return inner[:-1].isdigit() if numbered else "n" in inner


def ncw_pack_layout(layout_info: str) -> bool:
    """Return whether a layout is NCW with blocks of batches and channels, NCW4n8c say."""
    return _has_form(layout_info, "NCW", numbered=False)


def ncw_xc_layout(layout_info: str) -> bool:
    """Return whether a layout is NCW with blocks of channels, NCW16c say."""
    return _has_form(layout_info, "NCW", numbered=True)


def nchw_pack_layout(layout_info: str) -> bool:
    """Return whether a layout is NCHW with blocks of batches and channels, NCHW1n16c say."""
    return _has_form(layout_info, "NCHW", numbered=False)


def nchw_xc_layout(layout_info: str) -> bool:
    """Return whether a layout is NCHW with blocks of channels, NCHW16c say."""
    return _has_form(layout_info, "NCHW", numbered=True)


def is_empty_shape(shape: Sequence[PrimExprLike]) -> bool:
    """Return whether an extent is known to be 0."""
    return any(ops.as_int(extent) == 0 for extent in shape)


def is_target(names: str | Sequence[str]) -> bool:
    """Return whether one of the names is a key of the target in whose scope this is called."""
    target = Target.current(allow_none=False)
    keys = target.keys if target is not None else []
    return any(name in keys for name in ([names] if isinstance(names, str) else names))


def need_rank(what: str, tensor: Any, rank: int) -> None:
    """Raise InvalidShapeError for a tensor of another number of dimensions."""
    if len(tensor.shape) != rank:
        raise InvalidShapeError(f"{what} has {rank} dimensions, got {tuple(tensor.shape)}")


def normalize_axis(axis: SupportsIndex, ndim: int, what: str = "axis") -> int:
    """Return `axis` counted from the front; InvalidShapeError outside [-ndim, ndim)."""
    try:
        axis = operator.index(axis)
    except TypeError:
        raise InvalidShapeError(f"{what} {axis!r} is no integer") from None
    if not -ndim <= axis < ndim:
        raise InvalidShapeError(f"{what} {axis} is outside [-{ndim}, {ndim})")
    return axis % ndim
