"""What classic converters ask of the graph they build: its types, sizes, and known values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.errors import ModelError
from slipway.ir.function import IRModule
from slipway.relay.construct import bind
from slipway.relay.construct import var as new_var
from slipway.relay.expr import Constant, Expr, Function, Var
from slipway.relay.interpret import interpret
from slipway.runtime.ndarray import NDArray, array
from slipway.transform.graph.fold_constant import fold_constant as folded
from slipway.transform.graph.infer_type import infer_types

__all__ = [
    "fold_constant", "get_name", "infer_channels", "infer_shape", "infer_type", "infer_value",
    "new_var",
]  # fmt: skip


def infer_type(node: Expr, mod: IRModule | None = None) -> Expr:
    """Return an expression with its types; `mod` has the functions that it calls."""
    if isinstance(node, Var) or node.type is not None:
        return node
    main = node if isinstance(node, Function) else node.as_function()
    around = dict(mod.items()) if mod is not None else {}
    typed = infer_types(IRModule.from_functions({**around, "main": main}))["main"]
    assert isinstance(typed, Function)
    return typed if isinstance(node, Function) else typed.body


def infer_shape(inputs: Expr, mod: IRModule | None = None) -> tuple[Any, ...]:
    """Return the shape of an expression."""
    return infer_type(inputs, mod).tensor_type.shape


def infer_channels(inputs: Expr, transpose: bool = False) -> Any:
    """Return the output channels of a convolution with these weights (OIHW, or IOHW)."""
    return infer_shape(inputs)[1 if transpose else 0]


def infer_value(input_val: Expr, params: Mapping[str, Any], mod: IRModule | None = None) -> NDArray:
    """Return what an expression of known parameters gives.

    Raises ModelError naming what it depends on beside them.
    """
    main = bind(input_val.as_function(), params)
    if main.params:
        names = ", ".join(repr(p.name) for p in main.params)
        raise ModelError(f"the value depends on {names}, which params does not give")
    return array(interpret(IRModule.from_functions({**dict(mod.items() if mod else ()),
                                                    "main": main})))  # fmt: skip


def fold_constant(node: Expr, mod: IRModule | None = None) -> Expr:
    """Return an expression with what depends on constants only computed."""
    found = folded(infer_type(node.as_function(), mod))  # type: ignore[arg-type]
    return found.body


def get_name(node: Any) -> str:
    """Return the name of a variable.  Raises ModelError for other expressions."""
    if not isinstance(node, Var):
        what = "a constant" if isinstance(node, Constant) else type(node).__name__
        raise ModelError(f"get_name takes a variable, not {what}")
    return node.name
