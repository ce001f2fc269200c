"""How windows lie on a padded tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.topi.utils import get_const_int

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike, ShapeLike


def spread(value: ShapeLike, count: int, what: str) -> list[int]:
    """Return one number per spatial dimension, given one for all or a list."""
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(items) not in (1, count):
        raise InvalidShapeError(f"{what} is one number or {count}, got {value}")
    return [get_const_int(x) for x in items] * (count // len(items))


def sides(padding: ShapeLike, kernel: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the padding before and after each spatial dimension.

    Given "VALID" (none), "SAME" (as large as the kernel needs), one number, one for each dimension,
    or those before all dimensions and then those after; `kernel` is as dilated.
    """
    count = len(kernel)
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise InvalidShapeError(f"padding is 'SAME', 'VALID' or numbers, not {padding!r}")
        whole = [n - 1 if padding.upper() == "SAME" else 0 for n in kernel]
        return [(n + 1) // 2 for n in whole], [n // 2 for n in whole]
    items: list[Any] = list(padding) if isinstance(padding, (list, tuple)) else [padding]
    if len(items) == 2 * count:
        return [get_const_int(x) for x in items[:count]], [get_const_int(x) for x in items[count:]]
    before = spread(padding, count, "padding")
    return before, list(before)


def windows(extent: PrimExprLike, window: int, stride: int, ceil_mode: bool = False) -> Any:
    """Return how many windows lie within `extent` (and, in `ceil_mode`, begin within it)."""
    room = ops.sub(extent, window)
    if ceil_mode:
        room = ops.add(room, stride - 1)
    size = ops.as_int(room)
    if stride < 1 or (size is not None and size < 0):
        raise InvalidShapeError(f"windows of {window} by steps of {stride} over {extent}")
    return ops.add(ops.floordiv(room, stride), 1)
