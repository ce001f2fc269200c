"""Nested programs: branches and loops of torch.cond, while_loop, scan and map.

A region is a graph module with inputs of its own; `convert(region, inputs)` gives what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.steps import run_steps
from slipway.relay.dims import SymbolDim, is_open
from slipway.relay.expr import Constant, Expr, Tuple, TupleWrapper, Var
from slipway.relay.op_registry import const
from slipway.relay.types import ANY, TensorType
from slipway.transform.graph.loop_invariants import looped

Convert = Callable[[Any, Sequence[Any]], list[Any]]
Region = Callable[[Convert, Sequence[Any]], list[Any]]
FLAG = TensorType((), "bool")


def branch(convert: Convert, arguments: Sequence[Any]) -> list[Any]:
    """``cond(predicate, taken, other, operands)``: one of two regions.

    Results whose sizes differ along an axis have room for the larger, and the size that the
    condition decides.
    """
    predicate, taken, other, operands, tell = arguments
    if isinstance(predicate, bool):
        return convert(taken if predicate else other, operands)
    condition = _flag(predicate)
    if isinstance(condition, Constant):
        return convert(taken if condition.array.item() else other, operands)
    sides = [convert(region, operands) for region in (taken, other)]
    _tensors(*sides)
    unequal = _with_room(sides)
    kinds = [[value.checked_type for value in side] for side in sides]
    if kinds[0] != kinds[1]:
        raise UnsupportedNode("its branches give different shapes")
    results: list[Any] = [relay.If(condition, sides[0][0], sides[1][0])]
    if len(sides[0]) > 1:
        choice = relay.If(condition, Tuple(tuple(sides[0])), Tuple(tuple(sides[1])))
        results = list(TupleWrapper(choice, len(sides[0])))
    for index, (axis, counts) in unequal.items():
        dim = tell(index, axis, results[index].checked_type.shape[axis])
        if dim is None:
            raise UnsupportedNode("its branches give different shapes inside of another one")
        count = relay.where(condition, *counts)
        results[index] = relay.sized(results[index], count, dim, axis)
    return results


def _with_room(sides: list[list[Any]]) -> dict[int, tuple[int, list[Expr]]]:
    """Pad results whose sizes differ along one axis to the largest that either can be.

    Returns the axis of each, and how many entries each side has, which sides of one result know.
    """
    unequal = {}
    for index, pair in enumerate(zip(*sides, strict=True)):
        kinds = [value.checked_type for value in pair]
        one, two = (kind.shape for kind in kinds)
        axes = [a for a, (m, n) in enumerate(zip(one, two, strict=False)) if m != n]
        if kinds[0].dtype != kinds[1].dtype or len(one) != len(two) or len(axes) != 1:
            continue
        (axis,) = axes
        extents = (one[axis], two[axis])
        ends: list[Any] = [e.high if isinstance(e, SymbolDim) else e for e in extents]
        if any(end is None or end is ANY for end in ends):
            continue
        for side, value, extent in zip(sides, pair, extents, strict=True):
            widths: list[Any] = [(0, 0)] * len(one)
            widths[axis] = (0, max(ends) - extent)
            side[index] = value if extent == max(ends) else relay.nn.pad(value, widths)
        unequal[index] = axis, [_number(extent) for extent in extents]
    return unequal


def _number(extent: Any) -> Any:
    """Return how many entries an axis has, as a tensor of one element that the run computes."""
    if not is_open(extent):
        return const(np.array([extent], np.int64))
    return relay.shape_of(relay.zeros((extent,), "bool"), "int64")


def while_loop(convert: Convert, arguments: Sequence[Any]) -> list[Any]:
    """``while_loop(condition, body, carried, others)``: runs until the condition fails."""
    condition, body, carried, others = arguments
    _tensors(carried)
    states = [Var(f"state{i}", value.checked_type) for i, value in enumerate(carried)]
    (test,) = convert(condition, [*states, *others])
    after = convert(body, [*states, *others])
    _same_types(states, after)
    return looped(states, _flag(test), after, list(carried))


def scan(convert: Convert, arguments: Sequence[Any]) -> list[Any]:
    """``scan(step, first, sequences, others)``: the last states, and what the steps gave."""
    region, first, sequences, others = arguments
    _tensors(first, sequences)

    def step(states: list[Any], slices: list[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        found = convert(region, [*states, *slices, *others])
        _same_types(states, found[: len(states)])
        return found[: len(states)], found[len(states) :]

    last, given = run_steps(step, first, sequences)
    return [*last, *given]


def each(convert: Convert, arguments: Sequence[Any]) -> list[Any]:
    """``map_impl(step, sequences, others)``: the same for each entry along the first axis."""
    region, sequences, others = arguments
    return scan(convert, (region, [], sequences, others))


def inlined(convert: Convert, arguments: Sequence[Any]) -> list[Any]:
    """A region that always runs; what stands before it is a mode without effect here."""
    at = next(i for i, a in enumerate(arguments) if hasattr(a, "graph"))
    return convert(arguments[at], arguments[at + 1 :])


REGIONS: dict[str, Region] = {
    "cond": branch, "while_loop": while_loop, "scan": scan, "map_impl": each,
    "wrap_with_set_grad_enabled": inlined,
}  # fmt: skip


def _flag(value: Any) -> Any:
    if not isinstance(value, Expr):
        raise UnsupportedNode("its condition is no number that is known or computed")
    if value.tensor_type.dtype != "bool":
        value = relay.cast(value, "bool")
    return value if value.checked_type == FLAG else relay.reshape(value, ())


def _tensors(*groups: Sequence[Any]) -> None:
    if not all(isinstance(value, Expr) for group in groups for value in group):
        raise UnsupportedNode("it carries what is no tensor")


def _same_types(before: Sequence[Any], after: Sequence[Any]) -> None:
    _tensors(after)
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.checked_type != new.checked_type:
            raise UnsupportedNode(
                f"its state {number} changes from {old.checked_type} to {new.checked_type}"
            )
