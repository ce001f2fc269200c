"""Shapes as Python numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.ir import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import PrimExprLike


def get_const_int(value: PrimExprLike) -> int:
    """Return a constant expression as an int; ValueError when it is not constant."""
    found = ops.as_int(value)
    if found is None:
        raise ValueError(f"{value} is not a constant integer")
    return found


def get_const_tuple(values: Sequence[PrimExprLike]) -> tuple[Any, ...]:
    """Return a shape with ints where it is constant, and its variables elsewhere."""
    return tuple(v if ops.as_int(v) is None else ops.as_int(v) for v in values)


def normalize_axis(axis: int, ndim: int) -> int:
    """Return `axis` counted from the front; ValueError outside [-ndim, ndim)."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is outside [-{ndim}, {ndim})")
    return axis % ndim
