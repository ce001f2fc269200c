"""Names for the parts of a value that it reads more than once.

Stages that are inlined into each other share expressions: expanded wherever it is read, a part
doubles the text with each stage that reads the one before twice.

before: ``B[i] = (f(A[i]) * f(A[i])) * (f(A[i]) * f(A[i]))``, one node for each f and each product
after:  ``t = f(A[i]); u = t * t; B[i] = u * u``

What is computed under a condition only stays there; values that are short expanded stay as they
are.
"""

from __future__ import annotations

from slipway.ir import expr as E
from slipway.ir.visit import children, map_children, post_order_by, substitute

_LONG = 256  # nodes, expanded
_TIMES = 4  # as many as there are, at least, before parts get names
_PART = 4  # nodes of a part that gets one


def named_parts(value: E.PrimExpr) -> E.PrimExpr:
    """Return `value` with a Let around it for each part that it reads more than once."""
    order = post_order_by([value], _always)
    written: dict[int, int] = {}
    reads: dict[int, int] = {}
    for node in order:
        below = _always(node)
        written[id(node)] = 1 + sum(written[id(child)] for child in below)
        for child in below:
            reads[id(child)] = reads.get(id(child), 0) + 1
    if written[id(value)] < max(_LONG, _TIMES * len(order)):
        return value
    names: dict[E.PrimExpr, E.PrimExpr] = {}
    lets: list[tuple[E.Var, E.PrimExpr]] = []
    fresh: dict[int, E.PrimExpr] = {}
    for node in order:
        if _always(node):
            made = map_children(node, lambda child: fresh.get(id(child), child))
        else:
            made = substitute(node, names)
        if reads.get(id(node), 0) > 1 and written[id(node)] >= _PART:
            var = E.Var("part", node.dtype)
            lets.append((var, made))
            names[node] = made = var
        fresh[id(node)] = made
    result = fresh[id(value)]
    for var, part in reversed(lets):
        result = E.Let(var, part, result)
    return result


def _always(node: E.PrimExpr) -> list[E.PrimExpr]:
    """Return what a value computes whatever its conditions say, and outside of names of its own."""
    if isinstance(node, (E.Add, E.Sub, E.Mul, E.Min, E.Max, E.Cast, E.Div)):
        return [child for child in children(node) if isinstance(child, E.PrimExpr)]
    if isinstance(node, E.Call) and node.op in _PURE:
        return [arg for arg in node.args if isinstance(arg, E.PrimExpr)]
    return []


_PURE = frozenset((
    "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "fabs", "erf", "pow", "bitwise_and",
    "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right",
))  # fmt: skip
