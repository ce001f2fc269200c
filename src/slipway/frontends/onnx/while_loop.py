"""Loop as a while_loop, where how often it runs is known only when the model does.

The states are the number of the iteration, the condition, what the loop carries, and for each scan
output, and each tensor that an iteration appends to, as many rows as there may be iterations:
iteration i writes row i.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import DependsOnInputs
from slipway.frontends.onnx.values import Counted
from slipway.relay.dims import SymbolDim, is_open
from slipway.relay.expr import Constant, Expr, Tuple, Var
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import children, post_order
from slipway.transform.graph.loop_invariants import looped

if TYPE_CHECKING:
    from slipway.frontends.onnx.converters import NodeView

NUMBER, FLAG = TensorType((), "int64"), TensorType((), "bool")


@dataclass(frozen=True)
class _Growth:
    """What each iteration appends along an axis of a tensor that grows."""

    axis: int
    piece: Expr


def while_loop(
    node: NodeView,
    limit: Expr | None,
    going: Expr,
    carried: Sequence[Any],
    most: int | None,
    open_iterations: SymbolDim | None = None,
) -> list[Any]:
    """Return what a Loop carries at the end, and its scan outputs.

    `most` is the largest number of iterations, where that is known, and `open_iterations` the size
    that `limit` is.  A state to which each iteration only appends is kept as a scan output is.
    Raises UnsupportedNode for a body whose other states change their type, for scan outputs of
    which nothing says how long they are, and for a loop without an end.
    """
    assert node.subgraph is not None
    for value in carried:
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType):
            raise node.unsupported("it carries what is no tensor, in a loop of unknown length")
    types = [value.checked_type for value in carried]
    iteration, flag = Var("iteration", NUMBER), Var("going", FLAG)
    kept, found = _body(node, [iteration, flag], types)
    again, *after = found
    always = _is_true(going) and (again is flag or _is_true(again))
    if limit is None and always:
        raise node.unsupported("it never ends: it has no trip count, and its condition stays true")
    new, given = after[: len(kept)], after[len(kept) :]
    growing = _growing(new, kept, types, found)
    for number, (value, wanted) in enumerate(zip(new, types, strict=True)):
        if value.checked_type != wanted and number not in growing:
            raise node.unsupported(
                f"what it carries changes from {wanted} to {value.checked_type} (state {number}), "
                "in a loop of unknown length"
            )
    stays = [number for number in range(len(kept)) if number not in growing]
    given = [*given, *(growth.piece for growth in growing.values())]
    if given and most is None:
        raise DependsOnInputs(
            "nothing bounds how often it runs, and so the size of its scan outputs: bind the trip "
            "count to a value with constants={...} (--bind NAME=VALUE on the command line)"
        )
    stacked = [TensorType((most or 0, *v.tensor_type.shape), v.tensor_type.dtype) for v in given]
    rows = [Var(f"rows{i}", type_) for i, type_ in enumerate(stacked)]
    written = [_with_row(r, iteration, v) for r, v in zip(rows, given, strict=True)]
    states = [iteration, flag, *(kept[i] for i in stays), *rows]
    test: Expr = flag if limit is None else relay.logical_and(flag, relay.less(iteration, limit))
    one = const(1, "int64")
    empty = [const(np.zeros(type_.shape, type_.dtype)) for type_ in stacked]
    first = [const(0, "int64"), going, *(carried[i] for i in stays), *empty]
    states_after = [iteration + one, relay.reshape(again, ()), *(new[i] for i in stays), *written]
    iterations, _, *last = looped(states, test, states_after, first)
    count = relay.reshape(iterations, (1,))
    known = open_iterations if always else None
    results: dict[int, Any] = dict(zip(stays, last, strict=False))
    filled = last[len(stays) :]
    scans = len(filled) - len(growing)
    for (number, growth), value in zip(growing.items(), filled[scans:], strict=True):
        results[number] = _appended(carried[number], growth, value, count, known)
    scanned = [_first(value, count, 0, known) for value in filled[:scans]]
    return [*(results[i] for i in range(len(kept))), *scanned]


def _body(node: NodeView, control: list[Var], types: Sequence[Any]) -> tuple[list[Var], list[Expr]]:
    """Return the states of a body, and what it makes of them.

    A state without elements has one for now: what is appended to it would else be all there is.
    """
    assert node.subgraph is not None
    filled = [TensorType(tuple(1 if d == 0 else d for d in t.shape), t.dtype) for t in types]
    for attempt in [types] if filled == list(types) else [filled, types]:
        kept = [Var(f"state{i}", t) for i, t in enumerate(attempt)]
        found = node.subgraph(node.attr("body"), [*control, *kept])
        if any(not isinstance(value, Expr) for value in found):
            raise node.unsupported("its body gives what is no tensor, in a loop of unknown length")
        growing = _growing(found[1 : len(kept) + 1], kept, types, found)
        if all(
            t == own or i in growing for i, (t, own) in enumerate(zip(types, attempt, strict=True))
        ):
            break
    return kept, found


def _growing(
    new: Sequence[Expr], kept: Sequence[Var], types: Sequence[Any], found: Sequence[Expr]
) -> dict[int, _Growth]:
    """Return the states to which an iteration appends, and which it does not read."""
    uses = Counter(id(child) for e in post_order(Tuple(tuple(found))) for child in children(e))
    made = {}
    for number, (value, state, type_) in enumerate(zip(new, kept, types, strict=True)):
        if value.checked_type == type_ or not is_call_of(value, "concatenate"):
            continue
        (parts,) = value.args
        if not isinstance(parts, Tuple) or parts.fields[0] is not state or uses[id(state)] != 1:
            continue
        axis = value.attrs.axis % type_.rank
        pieces = list(parts.fields[1:])
        piece = pieces[0] if len(pieces) == 1 else relay.concatenate(pieces, axis)
        if not any(map(is_open, piece.tensor_type.shape)):
            made[number] = _Growth(axis, piece)
    return made


def _appended(
    first: Expr, growth: _Growth, rows: Expr, count: Expr, iterations: SymbolDim | None
) -> Any:
    """Return a tensor with what the iterations appended, one row an iteration."""
    most, *shape = rows.tensor_type.shape
    axis = growth.axis
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
    each = shape[axis]
    shape[axis] *= most
    added = relay.reshape(relay.transpose(rows, order), tuple(shape))
    begin = first.tensor_type.shape[axis]
    whole = relay.concatenate([first, added], axis) if begin else added
    if iterations is not None:
        return _first(whole, count, axis, iterations * each + begin)
    count = relay.add(relay.multiply(count, const(each, "int64")), const(begin, "int64"))
    return _first(whole, count, axis, None)


def _first(data: Expr, count: Expr, axis: int, size: SymbolDim | None) -> Any:
    """Return as much along an axis as there is: `size`, where it is one of the inputs' sizes."""
    if size is None:
        return Counted(data, count, axis)
    return relay.strided_slice(data, [0], [size], axes=[axis])


def _is_true(value: Expr) -> bool:
    return isinstance(value, Constant) and bool(value.array.reshape(-1)[0])


def _with_row(rows: Var, iteration: Expr, value: Expr) -> Expr:
    """Return `rows` with `value` in the place of number `iteration`."""
    most = rows.tensor_type.shape[0]
    positions = np.arange(most, dtype="int64").reshape(-1, *(1 for _ in value.tensor_type.shape))
    here = relay.equal(const(positions), iteration)
    return relay.where(here, relay.expand_dims(value, 0), rows)
