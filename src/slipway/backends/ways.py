"""Kernels of operators that open sizes compute in one of two ways (`op_registry.Ways`)."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.ir.expr import PrimExpr
from slipway.relay import op_registry
from slipway.relay.expr import Call, Function, Op
from slipway.relay.visit import post_order, rewrite


@dataclass(frozen=True)
class KernelWays:
    """Two kernels that compute the same; `condition`, a formula of sizes, is true for `one`."""

    condition: PrimExpr
    one: Function
    other: Function


def ways_of(function: Function) -> KernelWays | None:
    """Return both kernels of a function with an operator that has two ways; None without one."""
    for expr in post_order(function.body, into_functions=False):
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            ways = op_registry.get(expr.op.name).ways_function
            if ways is not None:
                found = ways(expr.attrs, expr.args, expr.tensor_type)
                made = [_with_call(function, expr, call) for call in (found.one, found.other)]
                return KernelWays(found.condition, *made)
    return None


def _with_call(function: Function, old: Call, new: Call) -> Function:
    return rewrite(function, lambda e: new if e is old else None)  # type: ignore[no-any-return]
