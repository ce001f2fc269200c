"""Operations on numbers of the user's own become what was registered for them.

before: ``C[i] = A[i] + B[i]``                                    of custom[posites2]16
after:  ``C[i] = reinterpret(Posit16es2Add(uint16(A[i]), uint16(B[i])))``

What only moves numbers (loads, stores, choices, bindings) stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import dtypes
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.visit import rewrite_bottom_up, walk
from slipway.target.datatype import (
    LOWERINGS,
    CFunctions,
    Lowering,
    LoweringKey,
    stored_dtype,
    type_name_of,
)

_MOVING = frozenset(["if_then_else", "reinterpret", "tensor_view", "address_of"])


def lower_custom_datatypes(func: PrimFunc) -> PrimFunc:
    """Return `func` with what was registered in place of operations on the user's own types."""
    target = func.attr("target")
    if target is None or not dtypes.any_custom():
        return func
    if not any(_is_custom(node) for node in walk(func.body)):
        return func
    kind = target.kind.name

    def rule(node: Node) -> Node | None:
        if isinstance(node, E.PrimExpr) and _computes(node):
            return _lowered(node, kind)
        return None

    changed: PrimFunc = func.replace(body=rewrite_bottom_up(func.body, rule))
    return changed


def _is_custom(node: Node) -> bool:
    return isinstance(node, E.PrimExpr) and node.dtype != "" and dtypes.is_custom(node.dtype)


def _computes(node: E.PrimExpr) -> bool:
    """Return whether `node` computes with numbers of the user's own."""
    match node:
        case E.Call():
            return node.op not in _MOVING and any(map(_is_custom, (node, *node.args)))
        case E.CmpOp():
            return _is_custom(node.a)
        case E.Cast():
            return _is_custom(node) or _is_custom(node.value)
    return isinstance(node, E.BinaryOp | E.FloatImm) and _is_custom(node)


def _lowered(node: E.PrimExpr, kind: str) -> E.PrimExpr:
    lower = LOWERINGS.get(_key(node, kind))
    others = None if lower is not None else _by_others(node)
    if others is not None:
        return _lowered_parts(others, kind)
    if lower is not None:
        made = _made(lower, node)
    elif isinstance(node, E.FloatImm):
        made = _converted_number(node, kind)
    elif isinstance(node, E.Call) and node.op in ("call_pure_extern", "call_extern"):
        made = node.replace(dtype=stored_dtype(node.dtype))
    else:
        made = None
    if made is None:
        raise LoweringError(_missing(node, kind))
    wanted = stored_dtype(node.dtype)
    if not isinstance(made, E.PrimExpr) or made.dtype not in (node.dtype, wanted):
        raise LoweringError(
            f"the function registered for {_said(node)} on {kind} must return an expression of "
            f"type {wanted}, got {made!r}"
        )
    return _of_type(_on_integers(made), node.dtype)


def _by_others(node: E.PrimExpr) -> E.PrimExpr | None:
    """Return other operations for one that is not registered; None if there are none."""
    if isinstance(node, E.Call) and node.op in _BY_OTHERS:
        return _BY_OTHERS[node.op](*node.args)
    if isinstance(node, E.Cast) and node.value.dtype != (real := _real_beside(node)):
        if _is_custom(node) and not _is_custom(node.value):
            return E.Cast(node.dtype, E.Cast(real, node.value))
        if not _is_custom(node) and node.dtype != real:
            return E.Cast(node.dtype, E.Cast(real, node.value))
    return None


def _real_beside(node: E.Cast) -> str:
    """Return the floats through which integers are converted from and to the user's own type."""
    return dtypes.with_lanes("float32", node.lanes)


def _lowered_parts(node: E.PrimExpr, kind: str) -> E.PrimExpr:
    """Lower an operation whose operands may be operations that are not lowered yet."""
    match node:
        case E.BinaryOp():
            node = node.replace(a=_lowered_parts(node.a, kind), b=_lowered_parts(node.b, kind))
        case E.Call():
            node = node.replace(args=tuple(_lowered_parts(a, kind) for a in node.args))
        case E.Cast():
            node = node.replace(value=_lowered_parts(node.value, kind))
    return _lowered(node, kind) if _computes(node) else node


def _key(node: E.PrimExpr, kind: str) -> LoweringKey:
    name = type(node).__name__
    match node:
        case E.Cast():
            return kind, name, "", type_name_of(node.dtype), type_name_of(node.value.dtype)
        case E.CmpOp():
            return kind, name, "", type_name_of(node.a.dtype), ""
        case E.Call():
            own = node if _is_custom(node) else next(a for a in node.args if _is_custom(a))
            return kind, name, node.op.removeprefix("tir."), type_name_of(own.dtype), ""
    return kind, name, "", type_name_of(node.dtype), ""


def _made(lower: Lowering, node: E.PrimExpr) -> Any:
    """Return what was registered for an operation: a call of a C function, or the user's own."""
    if not isinstance(lower, CFunctions):
        return lower(node)
    key: Any = dtypes.bits_of(node.a.dtype if isinstance(node, E.CmpOp) else node.dtype)
    args: tuple[Any, ...]
    match node:
        case E.Cast():
            key, args = (dtypes.bits_of(node.value.dtype), key), (node.value,)
        case E.FloatImm():
            args = (E.FloatImm("float32", node.value),)
        case E.Call():
            args = node.args
        case E.BinaryOp() | E.CmpOp():
            args = (node.a, node.b)
        case _:
            return None
    name = lower.name_for(key, _said(node))
    return E.Call(stored_dtype(node.dtype), "call_pure_extern", (E.StringImm(name), *args))


def _converted_number(node: E.FloatImm, kind: str) -> Any:
    """Return a constant as the conversion of a float32; None where that is not registered."""
    conversion = E.Cast(node.dtype, E.FloatImm("float32", node.value))
    lower = LOWERINGS.get(_key(conversion, kind))
    return None if lower is None else _made(lower, conversion)


def _on_integers(made: E.PrimExpr) -> E.PrimExpr:
    """Return what a function made with the integers of its operands in place of the numbers."""
    if not isinstance(made, E.Call) or made.op == "reinterpret":
        return made
    name, args = made.args[:1], made.args[1:]
    if made.op not in ("call_pure_extern", "call_extern"):
        name, args = (), made.args
    integers = tuple(_of_type(a, stored_dtype(a.dtype)) for a in args)
    own = _CLASSIC_EXAMPLE.get(name[0].value) if name and isinstance(name[0], E.StringImm) else None
    if own is not None:
        return own(made.dtype, *integers)
    changed: E.PrimExpr = made.replace(args=name + integers)
    return changed


def _of_type(value: E.PrimExpr, dtype: str) -> E.PrimExpr:
    """Return the bits of `value` as `dtype`."""
    if value.dtype == dtype:
        return value
    if isinstance(value, E.Call) and value.op == "reinterpret" and value.args[0].dtype == dtype:
        return value.args[0]
    return E.Call(dtype, "reinterpret", (value,))


def _said(node: E.PrimExpr) -> str:
    match node:
        case E.Cast():
            return f"Cast from {node.value.dtype} to {node.dtype}"
        case E.CmpOp():
            return f"{type(node).__name__} of {node.a.dtype}"
        case E.Call():
            return f"Call of tir.{node.op} of {node.dtype}"
    return f"{type(node).__name__} of {node.dtype}"


def _missing(node: E.PrimExpr, kind: str) -> str:
    name = type(node).__name__
    types = f'"{type_name_of(node.a.dtype if isinstance(node, E.CmpOp) else node.dtype)}"'
    if isinstance(node, E.Cast):
        types = f'"{type_name_of(node.value.dtype)}", "{type_name_of(node.dtype)}"'
    if isinstance(node, E.Call):
        types += f', intrinsic_name="tir.{node.op}"'
    return (
        f"{name} lowering function for target {kind} not found: nothing computes {_said(node)}. "
        f'Register it: tvm.target.datatype.register_op(function, "{name}", "{kind}", {types})'
    )


# -- intrinsics that others stand for, where nothing is registered ---------------------------------


def _inverse_root(x: E.PrimExpr) -> E.PrimExpr:
    return E.Div(ops.const(1.0, x.dtype), E.Call(x.dtype, "sqrt", (x,)))


def _sigmoid(x: E.PrimExpr) -> E.PrimExpr:
    one = ops.const(1.0, x.dtype)
    minus = E.Sub(ops.const(0.0, x.dtype), x)
    return E.Div(one, E.Add(one, E.Call(x.dtype, "exp", (minus,))))


_BY_OTHERS: dict[str, Callable[..., E.PrimExpr]] = {
    "max_of_numbers": E.Max,
    "rsqrt": _inverse_root,
    "sigmoid": _sigmoid,
}

# -- the datatype that TVM's library brings as an example: a float32 under another name ------------


def _in_float(compute: Callable[..., E.PrimExpr]) -> Callable[..., E.PrimExpr]:
    def example(dtype: str, *args: E.PrimExpr) -> E.PrimExpr:
        return _of_type(compute(*(_of_type(ops.as_expr(a), "float32") for a in args)), dtype)

    return example


def _intrinsic(name: str) -> Callable[..., E.PrimExpr]:
    return _in_float(lambda x: ops.call_intrin("float32", name, x))


_CLASSIC_EXAMPLE: dict[str, Callable[..., E.PrimExpr]] = {
    "FloatToCustom32": _in_float(lambda x: x),
    "Custom32ToFloat": _in_float(lambda x: x),
    "Custom32Add": _in_float(E.Add),
    "Custom32Sub": _in_float(E.Sub),
    "Custom32Mul": _in_float(E.Mul),
    "Custom32Div": _in_float(E.Div),
    "Custom32Max": _in_float(E.Max),
    "Custom32Sqrt": _intrinsic("sqrt"),
    "Custom32Exp": _intrinsic("exp"),
    "Custom32Log": _intrinsic("log"),
    "Custom32Sigmoid": _intrinsic("sigmoid"),
    "Custom32Tanh": _intrinsic("tanh"),
    "MinCustom32": _in_float(lambda: ops.min_value("float32")),
}
