"""What is found in data, with room for all of it: where a condition holds, which values differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Distinct:
    """The different values of a vector, with room for as many as it has elements.

    `positions` (int64) are those of the first of each, `repeats` how often each is there;
    `inverse` says of each element which of them it is.
    """

    positions: Expr
    repeats: Expr
    inverse: Expr
    count: Expr


def distinct(flat: Expr, is_sorted: bool = True) -> Distinct:
    """Return the different values of a vector, in rising order.

    Without `is_sorted` the vector is taken as it lies, and runs of equal elements count as one.
    """
    (total,) = flat.tensor_type.shape
    order, ordered = relay.arange(0, total, 1, "int64"), flat
    if is_sorted:  # equal values keep their order, so that each run begins with its first
        order = relay.argsort(flat, 0, dtype="int64")
        ordered = relay.take(flat, order, 0, mode="fast")
    # The first element has none before it, and is compared with itself.
    before = relay.maximum(relay.arange(0, total, 1, "int64") - _int64(1), _int64(0))
    begins = relay.not_equal(ordered, relay.take(ordered, before, 0, mode="fast"))
    begins = relay.logical_or(begins, relay.equal(relay.arange(0, total, 1, "int64"), _int64(0)))
    runs, count = positions_in_room(begins)
    number = relay.cumsum(relay.cast(begins, "int64"), 0) - _int64(1)
    none = relay.zeros((total,), "int64")
    inverse = relay.scatter_elements(none, order, number, 0)
    repeats = relay.scatter_elements(none, number, relay.ones((total,), "int64"), 0, "add")
    return Distinct(relay.take(order, runs, 0, mode="fast"), repeats, inverse, count)


def _extent(of: Expr, axis: int) -> Any:
    """Return the size of an open axis as the run knows it."""
    element = relay.strided_slice(relay.shape_of(of, "int64"), [axis], [axis + 1])
    return relay.reshape(element, ())


def _int64(value: int | Sequence[int]) -> Any:
    return const(np.asarray(value, np.int64))
