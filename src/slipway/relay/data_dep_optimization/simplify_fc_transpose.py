"""Weights of matrix products that are transposed in the graph, transposed once and for all."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from slipway.errors import ArgumentTypeError
from slipway.ir.function import IRModule
from slipway.relay.expr import Call, Expr, Function, Op, Var
from slipway.relay.visit import post_order, rewrite
from slipway.runtime.ndarray import array


def convert(func: Function | IRModule, params: dict[str, Any]) -> tuple[Function, dict[str, Any]]:
    """Turn ``nn.dense(x, transpose(w))`` into ``nn.dense(x, w.T)`` for the parameters `params`.

    Returns the new function, and the parameters with "<w>.T" in place of each such w; `params`
    itself changes, as in classic TVM.  A weight that something else reads too stays as it is.
    """
    given = func["main"] if isinstance(func, IRModule) else func
    if not isinstance(given, Function):
        raise ArgumentTypeError(
            f"convert takes a relay function or a module, not {type(given).__name__}."
        )
    reads = Counter(id(arg) for e in post_order(given) if isinstance(e, Call) for arg in e.args)
    transposed: dict[int, Var] = {}
    for expr in post_order(given):
        weight = _transposed_weight(expr)
        if weight is None or weight.name_hint not in params or reads[id(weight)] != 1:
            continue
        values = np.asarray(np.asarray(_numbers(params.pop(weight.name_hint))).T, order="C")
        name = f"{weight.name_hint}.T"
        params[name] = array(values)
        transposed[id(weight)] = Var(name, weight.tensor_type.replace(shape=values.shape))

    def rule(expr: Any) -> Expr | None:
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "transpose":
            return transposed.get(id(expr.args[0]))
        return None

    body = rewrite(given.body, rule)
    variables = tuple(transposed.get(id(p), p) for p in given.params)
    return Function(variables, body, None, given.attrs), params


def _transposed_weight(expr: Any) -> Var | None:
    """Return w of nn.dense(x, transpose(w)) whose transposition swaps the two axes."""
    if not (isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "nn.dense"):
        return None
    weight = expr.args[1]
    if not (isinstance(weight, Call) and isinstance(weight.op, Op)):
        return None
    if weight.op.name != "transpose" or not isinstance(weight.args[0], Var):
        return None
    axes = getattr(weight.attrs, "axes", None) or (1, 0)
    return weight.args[0] if tuple(int(a) % 2 for a in axes) == (1, 0) else None


def _numbers(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value
