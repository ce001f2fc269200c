"""Which sums are computed with a product as one instruction, rounded once."""

from __future__ import annotations

from slipway.ir import expr as E


def product_of(node: E.BinaryOp) -> E.Mul | None:
    """Return the multiplication in a sum or difference that is fused with it, if there is one."""
    if type(node) is E.Add or type(node) is E.Sub:
        for side in (node.b, node.a):
            if type(side) is E.Mul:
                return side
    return None
