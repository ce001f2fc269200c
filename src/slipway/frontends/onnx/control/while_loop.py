"""Loop as a while_loop, where how often it runs is known only when the model does.

The states are the number of the iteration, the condition, what the loop carries, and for each scan
output, and each tensor that an iteration appends to, as many rows as there may be iterations:
iteration i writes row i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.onnx.control.body import Appended, Body, body_of, zeros
from slipway.frontends.onnx.converters import DependsOnInputs
from slipway.frontends.onnx.values import Counted
from slipway.relay.dims import SymbolDim
from slipway.relay.expr import Constant, Expr, Tuple, Var
from slipway.relay.op_registry import const
from slipway.relay.types import TensorType
from slipway.relay.visit import substitute
from slipway.transform.graph.loop_invariants import looped

if TYPE_CHECKING:
    from slipway.frontends.onnx.converters import NodeView

NUMBER, FLAG = TensorType((), "int64"), TensorType((), "bool")


def while_loop(
    node: NodeView,
    limit: Expr | None,
    going: Expr,
    carried: Sequence[Any],
    most: int | None,
    trip_count: SymbolDim | None = None,
    is_counted: bool = False,
) -> list[Any]:
    """Return what a Loop carries at the end, and its scan outputs.

    `most` is the largest number of iterations, where that is known, and `trip_count` the size that
    `limit` is.  One that `is_counted` runs so often whatever its body says.  A state to which each
    iteration only appends is kept as a scan output is, one that it reads too in a tensor with room
    for it.  Raises UnsupportedNode for a body whose states
    change their type otherwise, for scan outputs of which nothing says how long they are, and for
    a loop without an end.
    """
    for value in carried:
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType):
            raise node.unsupported("it carries what is no tensor, in a loop of unknown length")
    iteration, flag = Var("iteration", NUMBER), Var("going", FLAG)
    body = body_of(node, [iteration, flag], [v.tensor_type for v in carried], most)
    if is_counted:
        body = replace(body, again=const(True, "bool"))
    always = _is_true(going) and (body.again is flag or _is_true(body.again))
    if limit is None and always:
        raise node.unsupported("it never ends: it has no trip count, and its condition stays true")
    stays = [number for number in range(len(carried)) if number not in body.appended]
    given = [*body.scans, *(appended.piece for appended in body.appended.values())]
    if given and most is None:
        raise DependsOnInputs(
            "nothing bounds how often it runs, and so the size of its scan outputs: bind the trip "
            "count to a value with constants={...} (--bind NAME=VALUE on the command line), or say "
            "in which range an input lies that is it, dims={...: (1, 64)} (--dim NAME=1..64)"
        )
    known = trip_count if always else None
    length: Any = most or 0 if known is None else known
    stacked = [TensorType((length, *v.tensor_type.shape), v.tensor_type.dtype) for v in given]
    rows = [Var(f"rows{i}", type_) for i, type_ in enumerate(stacked)]
    written = [_with_row(r, iteration, v) for r, v in zip(rows, given, strict=True)]
    kept, after = _kept(body, carried, iteration)
    states = [iteration, flag, *(kept[i] for i in stays), *rows]
    test: Expr = flag if limit is None else relay.logical_and(flag, relay.less(iteration, limit))
    one = const(1, "int64")
    first = [
        const(0, "int64"), going,
        *(body.rooms[i].first(carried[i]) if i in body.rooms else carried[i] for i in stays),
        *map(zeros, stacked),
    ]  # fmt: skip
    again = relay.reshape(body.again, ())
    made = Tuple((iteration + one, again, *(after[i] for i in stays), *written))
    rooms = {body.states[i]: body.rooms[i].present(kept[i]) for i in body.rooms}
    states_after = substitute(made, rooms).fields if rooms else made.fields
    iterations, _, *last = looped(states, test, states_after, first, body.iteration)
    count = relay.reshape(iterations, (1,))
    results: dict[int, Any] = dict(zip(stays, last, strict=False))
    for number, room in body.rooms.items():
        size = None if known is None else room.begin + room.change * known
        found = room.count(carried[number], iterations)
        results[number] = _first(results[number], found, room.axis, size)
    filled = last[len(stays) :]
    scans = len(body.scans)
    for (number, appended), value in zip(body.appended.items(), filled[scans:], strict=True):
        results[number] = _appended(carried[number], appended, value, count, known)
    scanned = [v if known is not None else Counted(v, count, 0) for v in filled[:scans]]
    return [*(results[i] for i in range(len(carried))), *scanned]


def _kept(
    body: Body, carried: Sequence[Expr], iteration: Expr
) -> tuple[dict[int, Var], dict[int, Expr]]:
    """Return the variables that hold the states, and what becomes of them."""
    kept = dict(enumerate(body.states))
    after = dict(enumerate(body.new))
    for number, room in body.rooms.items():
        kept[number] = Var(f"room{number}", room.type)
        count = room.count(carried[number], iteration)
        after[number] = room.after(kept[number], body.states[number], body.new[number], count)
    return kept, after


def _appended(
    first: Expr, appended: Appended, rows: Expr, count: Expr, trip_count: SymbolDim | None
) -> Any:
    """Return a tensor with what the iterations appended, one row an iteration."""
    length, *shape = rows.tensor_type.shape
    axis = appended.axis
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
    each = shape[axis]
    shape[axis] *= length
    added = relay.reshape(relay.transpose(rows, order), tuple(shape))
    begin = first.tensor_type.shape[axis]
    whole = relay.concatenate([first, added], axis) if begin else added
    if trip_count is not None:
        return whole
    count = relay.add(relay.multiply(count, const(each, "int64")), const(begin, "int64"))
    return Counted(whole, count, axis)


def _first(data: Expr, count: Expr, axis: int, size: SymbolDim | None) -> Any:
    """Return as much along an axis as there is: `size`, where it is one of the inputs' sizes."""
    if size is None:
        return Counted(data, count, axis)
    return relay.strided_slice(data, [0], [size], axes=[axis])


def _is_true(value: Expr) -> bool:
    return isinstance(value, Constant) and bool(value.array.reshape(-1)[0])


def _with_row(rows: Var, iteration: Expr, value: Expr) -> Expr:
    """Return `rows` with `value` in the place of number `iteration`."""
    row, begin = relay.expand_dims(value, 0), relay.reshape(iteration, (1,))
    return relay.dynamic_update_slice(rows, row, begin, [0])
