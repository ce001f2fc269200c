"""What is found in data, with room for all of it: where a condition holds, which values differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.steps import run_steps
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
    """The different entries of a tensor along its first axis, with room for as many as it has.

    `positions` (int64) are those of the first of each, `repeats` how often each is there;
    `inverse` says of each entry which of them it is.
    """

    positions: Expr
    repeats: Expr
    inverse: Expr
    count: Expr

    def as_found(self) -> Distinct:
        """Return them in the order in which they are found, where they are in rising order."""
        (total,) = self.inverse.tensor_type.shape
        ones = relay.ones((total,), "int32")
        # Behind the last there is a position again that is a first one.
        firsts = relay.scatter_elements(relay.zeros((total,), "int32"), self.positions, ones, 0)
        positions, count = positions_in_room(relay.cast(firsts, "bool"))
        number = relay.cast(relay.cumsum(firsts, 0), "int64") - _int64(1)
        inverse = _taken(number, _taken(self.positions, self.inverse))
        repeats = _taken(self.repeats, _taken(self.inverse, positions))
        return Distinct(positions, repeats, inverse, count)


def distinct(entries: Expr, is_sorted: bool = True) -> Distinct:
    """Return the different elements of a vector, or slices of a matrix, in rising order.

    Without `is_sorted` they are taken as they lie, and runs of equal ones count as one.
    """
    total = entries.tensor_type.shape[0]
    order, ordered = relay.arange(0, total, 1, "int64"), entries
    if is_sorted:  # equal ones keep their order, so that each run begins with its first
        order = _rising(entries)
        ordered = _taken(entries, order)
    # The first has none before it, and is compared with itself.
    before = relay.maximum(relay.arange(0, total, 1, "int64") - _int64(1), _int64(0))
    begins = relay.not_equal(ordered, _taken(ordered, before))
    if entries.tensor_type.rank > 1:
        begins = relay.any(begins, 1, False)
    begins = relay.logical_or(begins, relay.equal(relay.arange(0, total, 1, "int64"), _int64(0)))
    runs, count = positions_in_room(begins)
    number = relay.cumsum(relay.cast(begins, "int64"), 0) - _int64(1)
    none = relay.zeros((total,), "int64")
    inverse = relay.scatter_elements(none, order, number, 0)
    repeats = relay.scatter_elements(none, number, relay.ones((total,), "int64"), 0, "add")
    return Distinct(_taken(order, runs), repeats, inverse, count)


def slices_of(data: Expr, axis: int) -> Expr:
    """Return the slices of a tensor along an axis as the rows of a matrix; of a vector itself."""
    if data.tensor_type.rank == 1:
        return data
    order = [axis, *(a for a in range(data.tensor_type.rank) if a != axis)]
    extents = data.tensor_type.shape
    shape = (extents[axis], prod(extents[a] for a in order[1:]))  # which may be 0 by any number
    made: Expr = relay.reshape(relay.transpose(data, order), shape, allowzero=True)
    return made


def _rising(entries: Expr) -> Any:
    """Return the positions (int64) of entries in rising order; of rows the first column decides.

    Rows are sorted by each column, from the last to the first: equal ones keep their order.
    """
    if entries.tensor_type.rank == 1:
        return relay.argsort(entries, 0, dtype="int64")
    first = relay.arange(0, entries.tensor_type.shape[0], 1, "int64")

    def by_one(states: list[Any], columns: list[Any]) -> tuple[list[Any], list[Any]]:
        key = _taken(columns[0], states[0])
        return [_taken(states[0], relay.argsort(key, 0, dtype="int64"))], []

    columns = relay.reverse(relay.transpose(entries, [1, 0]), 0)
    (order,), _ = run_steps(by_one, [first], [columns])
    return order


def _taken(data: Expr, positions: Expr) -> Any:
    return relay.take(data, positions, 0, mode="fast")


def _extent(of: Expr, axis: int) -> Any:
    """Return the size of an open axis as the run knows it."""
    element = relay.strided_slice(relay.shape_of(of, "int64"), [axis], [axis + 1])
    return relay.reshape(element, ())


def _int64(value: int | Sequence[int]) -> Any:
    return const(np.asarray(value, np.int64))
