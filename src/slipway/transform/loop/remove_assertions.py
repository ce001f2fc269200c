"""Assertions left out, for "tir.disable_assert": True.

before: ``assert n == 4, "..."; B[i] = A[i]``
after:  ``B[i] = A[i]``
"""

from __future__ import annotations

from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.visit import rewrite_bottom_up


def remove_assertions(func: PrimFunc) -> PrimFunc:
    """Return `func` without the assertions in its body."""

    def rule(node: Node) -> Node | None:
        return node.body if isinstance(node, S.AssertStmt) else None

    made: PrimFunc = func.replace(body=rewrite_bottom_up(func.body, rule))
    return made
