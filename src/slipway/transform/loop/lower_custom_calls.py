"""Calls of the user's own intrinsics, replaced by what their rules say for the target.

before: ``B[i] = mylog(A[i])``
after:  ``B[i] = log(A[i])``  with ``register_intrin_lowering("tir.mylog", "llvm", f=...)``
"""

from __future__ import annotations

from slipway.ir.custom import has_rules, lowered
from slipway.ir.expr import Call
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.visit import rewrite_bottom_up


def lower_custom_calls(func: PrimFunc) -> PrimFunc:
    """Return `func` with the rules registered for its target's kind applied to its calls."""
    target = func.attr("target")
    if target is None or not has_rules():
        return func

    def rule(node: Node) -> Node | None:
        return lowered(node, target.kind.name) if isinstance(node, Call) else None

    made: PrimFunc = func.replace(body=rewrite_bottom_up(func.body, rule))
    return made
