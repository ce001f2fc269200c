"""``relay.analysis.get_calibration_data``: what functions for another compiler take and return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slipway.compiler.create_executor import create_executor
from slipway.errors import LoweringError
from slipway.relay.construct import bind
from slipway.relay.expr import Call, Expr, Function, Tuple, TupleGetItem
from slipway.relay.expr_functor import ExprMutator
from slipway.relay.transform import InferType
from slipway.relay.types import TupleType

if TYPE_CHECKING:
    from slipway.ir.function import GlobalVar, IRModule
    from slipway.runtime.ndarray import NDArray


class _Calls(ExprMutator):
    """Puts the bodies of functions with an attribute "Compiler" in place of their calls."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.mod = mod
        self.made: dict[str, tuple[list[Expr], list[Expr]]] = {}  # by name: arguments, results

    def visit_call(self, call: Call) -> Any:
        """Return a call, or the body of what it calls."""
        made = super().visit_call(call)
        name = getattr(call.op, "name_hint", None)
        func = self.mod[name] if name is not None and name in self.mod else None
        if not isinstance(func, Function) or not func.attr("Compiler"):
            return made
        if name in self.made:
            raise LoweringError(f"get_calibration_data: {name!r} is called twice; it has one entry")
        body = bind(func, dict(zip(func.params, made.args, strict=True))).body
        kind = func.ret_type if func.ret_type is not None else func.body.type
        many = len(kind.fields) if isinstance(kind, TupleType) else 0
        self.made[name] = list(made.args), [TupleGetItem(body, n) for n in range(many)] or [body]
        return body


def get_calibration_data(
    mod: IRModule, data: Mapping[str, Any]
) -> dict[GlobalVar, dict[str, list[NDArray]]]:
    """Return the inputs and outputs, over `data`, of each function with an attribute "Compiler".

    The module is run here, such functions as any others; "main" calls each of them once.
    """
    mod = InferType()(mod)
    main = mod["main"]
    calls = _Calls(mod)
    calls.visit(main.body)
    if not calls.made:
        return {}
    values = [v for ins, outs in calls.made.values() for v in (*ins, *outs)]
    func = Function(main.params, Tuple(tuple(values)))
    result = list(create_executor("graph", type(mod).from_expr(func)).evaluate()(**data))
    found = {}
    for name, (ins, outs) in calls.made.items():
        parts = [result.pop(0) for _ in (*ins, *outs)]
        inputs, outputs = parts[: len(ins)], parts[len(ins) :]
        found[mod.get_global_var(name)] = {"inputs": inputs, "outputs": outputs}
    return found
