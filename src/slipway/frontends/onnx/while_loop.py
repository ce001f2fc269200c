"""Loop as a while_loop, where how often it runs is known only when the model does.

The states are the number of the iteration, the condition, what the loop carries, and for each scan
output as many rows as there may be iterations: iteration i writes row i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import DependsOnInputs
from slipway.frontends.onnx.values import Counted
from slipway.relay.expr import Constant, Expr, Var
from slipway.relay.op_registry import const
from slipway.relay.types import TensorType
from slipway.transform.graph.loop_invariants import looped

if TYPE_CHECKING:
    from slipway.frontends.onnx.converters import NodeView

NUMBER, FLAG = TensorType((), "int64"), TensorType((), "bool")


def while_loop(
    node: NodeView, limit: Expr | None, going: Expr, carried: Sequence[Any], most: int | None
) -> list[Any]:
    """Return what a Loop carries at the end, and its scan outputs.

    `most` is the largest number of iterations, where it is known.  Raises UnsupportedNode for a
    body whose states change their type, for scan outputs of which nothing says how long they are,
    and for a loop without an end.
    """
    assert node.subgraph is not None
    body = node.attr("body")
    for value in carried:
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType):
            raise node.unsupported("it carries what is no tensor, in a loop of unknown length")
    types = [value.checked_type for value in carried]
    iteration, flag = Var("iteration", NUMBER), Var("going", FLAG)
    kept = [Var(f"state{i}", t) for i, t in enumerate(types)]
    found = node.subgraph(body, [iteration, flag, *kept])
    if any(not isinstance(value, Expr) for value in found):
        raise node.unsupported("its body gives what is no tensor, in a loop of unknown length")
    again, *rest = found
    if limit is None and _is_true(going) and (again is flag or _is_true(again)):
        raise node.unsupported("it never ends: it has no trip count, and its condition stays true")
    new, given = rest[: len(kept)], rest[len(kept) :]
    for number, (value, wanted) in enumerate(zip(new, types, strict=True)):
        if value.checked_type != wanted:
            raise node.unsupported(
                f"what it carries changes from {wanted} to {value.checked_type} (state {number}), "
                "in a loop of unknown length"
            )
    if given and most is None:
        raise DependsOnInputs(
            "nothing bounds how often it runs, and so the size of its scan outputs: bind the trip "
            "count to a value with constants={...} (--bind NAME=VALUE on the command line)"
        )
    stacked = [TensorType((most or 0, *v.tensor_type.shape), v.tensor_type.dtype) for v in given]
    rows = [Var(f"rows{i}", type_) for i, type_ in enumerate(stacked)]
    written = [_with_row(r, iteration, v) for r, v in zip(rows, given, strict=True)]
    states = [iteration, flag, *kept, *rows]
    test: Expr = flag if limit is None else relay.logical_and(flag, relay.less(iteration, limit))
    one = const(1, "int64")
    empty = [const(np.zeros(type_.shape, type_.dtype)) for type_ in stacked]
    first = [const(0, "int64"), going, *carried, *empty]
    states_after = [iteration + one, relay.reshape(again, ()), *new, *written]
    iterations, _, *last = looped(states, test, states_after, first)
    count = relay.reshape(iterations, (1,))
    scanned = [Counted(value, count, 0) for value in last[len(kept) :]]
    return [*last[: len(kept)], *scanned]


def _is_true(value: Expr) -> bool:
    return isinstance(value, Constant) and bool(value.array.reshape(-1)[0])


def _with_row(rows: Var, iteration: Expr, value: Expr) -> Expr:
    """Return `rows` with `value` in the place of number `turn`."""
    most = rows.tensor_type.shape[0]
    positions = np.arange(most, dtype="int64").reshape(-1, *(1 for _ in value.tensor_type.shape))
    here = relay.equal(const(positions), iteration)
    return relay.where(here, relay.expand_dims(value, 0), rows)
