"""Nested programs: branches and loops of torch.cond, while_loop, scan and map.

A region is a graph module with inputs of its own; `convert(region, inputs)` gives what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slipway import relay
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.steps import run_steps
from slipway.relay.expr import Constant, Expr, Tuple, TupleWrapper, Var
from slipway.relay.types import TensorType
from slipway.transform.graph.loop_invariants import looped

Convert = Callable[[Any, Sequence[Any]], list[Any]]
Region = Callable[[Convert, Sequence[Any]], list[Any]]
FLAG = TensorType((), "bool")


def branch(convert: Convert, arguments: Sequence[Any]) -> list[Any]:
    """``cond(predicate, taken, other, operands)``: one of two regions."""
    predicate, taken, other, operands = arguments
    if isinstance(predicate, bool):
        return convert(taken if predicate else other, operands)
    condition = _flag(predicate)
    if isinstance(condition, Constant):
        return convert(taken if condition.array.item() else other, operands)
    sides = [convert(region, operands) for region in (taken, other)]
    _tensors(*sides)
    kinds = [[value.checked_type for value in side] for side in sides]
    if kinds[0] != kinds[1]:
        raise UnsupportedNode("its branches give different shapes")
    if len(sides[0]) == 1:
        return [relay.If(condition, sides[0][0], sides[1][0])]
    choice = relay.If(condition, Tuple(tuple(sides[0])), Tuple(tuple(sides[1])))
    return list(TupleWrapper(choice, len(sides[0])))


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
