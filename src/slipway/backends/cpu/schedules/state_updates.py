"""States of a loop of which an iteration replaces a region: whether their memory can stay.

    rows = dynamic_update_slice(rows, row, i)   ->   write `row` into the memory of `rows`

An iteration that copies what does not change takes as long as the state is large: a loop over n
rows would take n * n.  The region alone is written where all else that reads the old state can run
before.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway.relay.analysis.told_sizes import is_prefix
from slipway.relay.expr import Call, Expr, Function, Tuple, Var
from slipway.relay.op_registry import is_call_of, is_primitive
from slipway.relay.ops.tensor.update import in_place_update
from slipway.relay.visit import children
from slipway.transform.graph.simplify_expr import RESHAPES


def is_view(call: Call) -> bool:
    """Return whether a kernel's call gives what lies in memory already: its first argument."""
    return is_reshape(call.op) or is_prefix(call)


def is_reshape(function: Expr) -> bool:
    """Return whether a kernel gives the elements of its only argument in another shape."""
    assert isinstance(function, Function)
    body = function.body
    while is_call_of(body, *RESHAPES):
        (body,) = body.args
    return body is not function.body and isinstance(body, Var)


def updates_in_place(
    body: Function, order: Sequence[Expr], states: int
) -> tuple[list[Expr], dict[int, int]]:
    """Return the order of a body's kernels, and which write a state's region: its number, by id.

    The first parameters are `states`, and so are the first results.
    """
    found = _candidates(body, states)
    if not found:
        return list(order), {}
    made = list(order)
    for update, _ in found:
        after = _dependents(update, made)
        made = [
            *(e for e in made if id(e) not in after and e is not update),
            update,
            *(e for e in made if id(e) in after),
        ]
    roots = _roots(made)
    position = {id(e): i for i, e in enumerate(made)}
    results = _fields(body)
    taken: dict[int, int] = {}
    for update, number in found:
        memory = id(body.params[number])
        kept = [r for i, r in enumerate(results) if i != number]
        later = made[position[id(update)] + 1 :]
        is_read_later = any(
            roots[id(a)] == memory
            for e in later
            if isinstance(e, Call)
            for a in (e.args[1:] if is_view(e) else e.args)
        )
        reads_itself = any(roots[id(a)] == memory for a in update.args[1:])
        if not (is_read_later or reads_itself or any(roots[id(r)] == memory for r in kept)):
            taken[id(update)] = number
    return made, taken


def _candidates(body: Function, states: int) -> list[tuple[Call, int]]:
    """Return the calls that give a state anew by replacing a region of it, with its number."""
    found = []
    for number, (result, state) in enumerate(
        zip(_fields(body)[:states], body.params, strict=False)
    ):
        while isinstance(result, Call) and is_primitive(result.op) and is_reshape(result.op):
            result = result.args[0]
        if (
            isinstance(result, Call)
            and isinstance(result.op, Function)
            and result.args[0] is state
            and in_place_update(result.op) is not None
        ):
            found.append((result, number))
    return found


def _fields(body: Function) -> tuple[Expr, ...]:
    return body.body.fields if isinstance(body.body, Tuple) else (body.body,)


def _dependents(update: Expr, order: Sequence[Expr]) -> set[int]:
    """Return the ids of what is computed from an update."""
    found: set[int] = set()
    for expr in order:
        below = () if isinstance(expr, Function) else children(expr)
        if any(c is update or id(c) in found for c in below):
            found.add(id(expr))
    return found


def _roots(order: Sequence[Expr]) -> dict[int, int]:
    """Return whose memory each expression is in, by id."""
    found: dict[int, int] = {}
    for expr in order:
        is_same = isinstance(expr, Call) and is_primitive(expr.op) and is_view(expr)
        source = expr.args[0] if is_same and isinstance(expr, Call) else expr
        found[id(expr)] = found.get(id(source), id(source))
    return found
