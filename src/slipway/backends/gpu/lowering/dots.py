"""Sums of products of bytes add to what they are added to: one instruction does both.

before: ``c[0] = c[0] + dot4_ss(a, b, 0)``
after:  ``c[0] = dot4_ss(a, b, c[0])``
"""

from __future__ import annotations

from typing import Any

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.function import PrimFunc
from slipway.ir.instructions.dot4 import DOTS
from slipway.ir.visit import map_children, walk


def accumulate_dots(func: PrimFunc) -> PrimFunc:
    """Return `func` with the sums inside of its dot products."""
    if not any(isinstance(n, E.Call) and n.op in DOTS for n in walk(func.body)):
        return func
    return func.replace(body=_visit(func.body))  # type: ignore[no-any-return]


def _visit(node: Any) -> Any:
    made = map_children(node, _visit)
    if isinstance(made, E.Add):
        for dot, other in ((made.b, made.a), (made.a, made.b)):
            if isinstance(dot, E.Call) and dot.op in DOTS and ops.as_int(dot.args[2]) == 0:
                return dot.replace(args=(*dot.args[:2], other))
    return made
