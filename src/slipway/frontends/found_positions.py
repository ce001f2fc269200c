"""Where a condition holds: positions with room for all of them, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def positions_in_room(condition: Expr) -> tuple[Expr, Expr]:
    """Return the positions (int64) of the true elements of a bool vector, and their number (1,).

    There is room for all; what lies after the last is 0.
    """
    (total,) = condition.tensor_type.shape
    held = relay.cast(condition, "int32")
    zero = const(np.int32(0))
    position = relay.where(condition, relay.cumsum(held, 0), zero)  # the others meet in 0
    every = relay.arange(0, total, 1, "int32")
    found = relay.scatter_elements(relay.zeros((total + 1,), "int32"), position, every, 0)
    first = relay.strided_slice(found, [1], [total + 1])
    return relay.cast(first, "int64"), relay.sum(relay.cast(held, "int64"), 0, keepdims=True)


def coordinates(positions: Expr, of: Expr) -> list[Expr]:
    """Return what flat positions (int64) in a tensor are along each of its axes."""
    columns: list[Any] = []
    left: Any = positions
    for axis, extent in reversed(list(enumerate(of.tensor_type.shape))):
        size = relay.maximum(_extent(of, axis), _int64(1)) if is_open(extent) else _int64(extent)
        columns.append(relay.mod(left, size))
        left = relay.floor_divide(left, size)
    return columns[::-1]


def _extent(of: Expr, axis: int) -> Any:
    """Return the size of an open axis as the run knows it."""
    element = relay.strided_slice(relay.shape_of(of, "int64"), [axis], [axis + 1])
    return relay.reshape(element, ())


def _int64(value: int | Sequence[int]) -> Any:
    return const(np.asarray(value, np.int64))
