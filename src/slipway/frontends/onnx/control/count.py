"""How often a Loop runs that ends when a counter reaches a size.

Exporters write recurrent layers with a while loop as ``time < steps``, without a trip count:
`steps` is a size of the inputs, or a number, and `time` one of the states, to which each iteration
adds one.  Where that is so, and the first iteration always takes place, the condition says nothing
that the count does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.frontends.converter_table import UnsupportedNode
from slipway.relay.dims import SymbolDim, is_open
from slipway.relay.expr import Call, Constant, Expr, Var
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

if TYPE_CHECKING:
    from slipway.frontends.onnx.converters import NodeView

SAME = ("cast", "reshape", "squeeze", "expand_dims")  # of one element
# The operands in the order counter, bound; and by how much "<" would be with a larger bound.
COMPARED = {
    "less": (0, 1, 0), "less_equal": (0, 1, 1), "greater": (1, 0, 0), "greater_equal": (1, 0, 1),
}  # fmt: skip


@dataclass(frozen=True)
class LoopCount:
    """The number of iterations: as the size that it is, and as the value that the model computes.

    Where it `is_exact` the loop runs so often, and need not compute its condition.
    """

    size: Any
    value: Expr
    is_exact: bool

    @property
    def most(self) -> int | None:
        """The largest number of iterations."""
        return self.size.high if isinstance(self.size, SymbolDim) else int(self.size)


def loop_count(node: NodeView, going: Expr, carried: Sequence[Any]) -> LoopCount | None:
    """Return how often a Loop runs as its condition says; None where it counts to no size."""
    if any(not isinstance(v, Expr) or not isinstance(v.type, TensorType) for v in carried):
        return None
    iteration = Var("iteration", TensorType((), "int64"))
    flag = Var("going", TensorType((), "bool"))
    states = [Var(f"state{i}", v.tensor_type) for i, v in enumerate(carried)]
    assert node.subgraph is not None
    try:
        found = node.subgraph(node.attr("body"), [iteration, flag, *states], True)
    except UnsupportedNode:
        return None
    if any(not isinstance(value, Expr) for value in found):
        return None
    again, *new = found
    counters = _counters(node, iteration, states, new, carried)
    bounds = {
        state: first
        for state, value, first in zip(states, new, carried, strict=False)
        if _same(value) is state
    }
    inner = {iteration, flag, *states}
    found_counts = [_count(node, test, counters, bounds, inner) for test in _all_of(again)]
    counts = [c for c in found_counts if c is not None and c.most is not None]
    if not counts:
        return None
    fewest = min(counts, key=lambda count: count.most or 0)
    began = node.sizes.of(going)
    is_exact = (
        len(counts) == len(found_counts)
        and all(count.is_exact and _is_same(count.size, fewest.size) for count in counts)
        and began is not None
        and all(began.flat)
    )
    return replace(fewest, is_exact=is_exact)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or bool(is_open(one) == is_open(other) and one == other)


def _counters(
    node: NodeView, iteration: Var, states: Sequence[Var], new: Sequence[Expr],
    carried: Sequence[Expr],
) -> dict[Var, int]:  # fmt: skip
    """Return the states to which each iteration adds one, with the number that each begins at."""
    found = {iteration: 0}
    for state, value, first in zip(states, new, carried, strict=False):
        base, more = _sum(value)
        begin = node.sizes.of(first)
        if base is state and more == 1 and begin is not None and begin.size == 1:
            number = begin.flat[0]
            if not is_open(number) and number == int(number):
                found[state] = int(number)
    return found


def _count(
    node: NodeView, test: Expr, counters: Mapping[Var, int], bounds: Mapping[Var, Expr],
    inner: set[Var],
) -> LoopCount | None:  # fmt: skip
    """Return how many iterations there are until a comparison ends the loop after one."""
    if not isinstance(test, Call) or getattr(test.op, "name", "") not in COMPARED:
        return None
    left, right, more = COMPARED[test.op.name]
    base, ahead = _sum(test.args[left])
    if not isinstance(base, Var) or base not in counters:
        return None
    bound = _same(test.args[right])
    bound = bounds.get(bound, bound) if isinstance(bound, Var) else bound
    if any(isinstance(e, Var) and e in inner for e in post_order(bound)):
        return None
    size = node.sizes.of(bound)
    if size is None or size.size != 1:
        return None
    # Iteration i, from 0 on, is the last one where begin + i + ahead is no longer below the bound.
    offset = more + 1 - counters[base] - ahead
    count, is_known = size.flat[0] + offset, True
    try:
        if count < 1:
            count = 1
    except TypeInferenceError:  # it depends on a size whether there is a second iteration
        if count.high is None:
            return None
        count, is_known = count.high, False
    if not is_open(count):
        if count != int(count):
            return None
        count = int(count)
    number = relay.reshape(relay.cast(bound, "int64"), ())
    return LoopCount(count, relay.add(number, const(offset, "int64")), is_known)


def _all_of(test: Expr) -> list[Expr]:
    """Return the conditions that must all be true."""
    test = _same(test)
    if is_call_of(test, "logical_and"):
        return [one for part in test.args for one in _all_of(part)]
    return [test]


def _sum(value: Expr) -> tuple[Expr, int]:
    """Return what a whole number is added to, and the number."""
    value = _same(value)
    if is_call_of(value, "add"):
        for base, more in (value.args, value.args[::-1]):
            more = _same(more)
            if isinstance(more, Constant) and more.array.size == 1:
                number = more.array.reshape(-1)[0]
                if number == int(number):
                    base, before = _sum(base)
                    return base, before + int(number)
    return value, 0


def _same(value: Expr) -> Expr:
    """Return what a value is of another type or shape, where it is one element."""
    while isinstance(value, Call) and getattr(value.op, "name", "") in SAME:
        if value.tensor_type.rank and value.tensor_type.size != 1:
            break
        value = value.args[0]
    return value
