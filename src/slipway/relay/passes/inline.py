"""Inline: Lets, calls of local functions and of module functions become plain dataflow.

``let %x = v; f(%x)  ->  f(v)``, shared where it is used twice, so nothing is computed twice.
"""

from __future__ import annotations

from typing import Any

from slipway.errors import LoweringError
from slipway.ir.function import GlobalVar, IRModule
from slipway.relay.expr import Call, Expr, Function, Let
from slipway.relay.op_registry import is_primitive
from slipway.relay.visit import post_order, rebuild, substitute

MAX_ROUNDS = 64


def inline(function: Function, module: IRModule | None = None) -> Function:
    """Return `function` without Lets and without calls of functions, kernels excepted.

    Raises LoweringError when functions call each other without end.
    """
    for _ in range(MAX_ROUNDS):
        result = _inline_once(function, module)
        if result is function:
            return function
        function = result
    raise LoweringError(
        "the module's functions call each other without end; recursion is not inlined"
    )


def _inline_once(function: Function, module: IRModule | None) -> Function:
    done: dict[int, Expr] = {}
    for expr in post_order(function, into_functions=False):
        if isinstance(expr, Function) and expr is not function:
            done[id(expr)] = expr
            continue
        fresh: Any = rebuild(expr, lambda child: done[id(child)])
        if isinstance(fresh, Let):
            fresh = substitute(fresh.body, {fresh.var: fresh.value})
        elif isinstance(fresh, Call):
            target = _target(fresh, module)
            if target is not None:
                binding = dict(zip(target.params, fresh.args, strict=True))
                fresh = substitute(target.body, binding)
        done[id(expr)] = fresh
    return done[id(function)]  # type: ignore[return-value]


def _target(call: Call, module: IRModule | None) -> Function | None:
    """The function that `call` names, if it is to be inlined."""
    target: Any = call.op
    if isinstance(target, GlobalVar) and module is not None:
        target = module[target.name]
    if not isinstance(target, Function) or is_primitive(target) or target.attr("Compiler"):
        return None
    return target
