"""Graphs for a part of the range of their open sizes.

narrowed(fn(x: (n, 4)), {n: m})  ->  fn(x: (m, 4)),  m an integer or a size of a smaller range
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.visit import substitute
from slipway.relay.dims import SymbolDim, dim_of
from slipway.relay.expr import Call, Expr, Function, Var
from slipway.relay.op_registry import Attrs
from slipway.relay.types import TensorType, TupleType, Type
from slipway.relay.visit import post_order, rebuild

Sizes = Mapping[E.Var, "E.Var | int"]


def narrowed(function: Function, sizes: Sizes) -> Function:
    """Return `function` with other sizes for its variables, and every type found anew.

    Raises TypeInferenceError where the graph does not bear them.
    """

    def fresh(extent: Any) -> Any:
        if not isinstance(extent, SymbolDim):
            return extent
        values = {v: ops.as_expr(sizes[v], v.dtype) for v in extent.variables if v in sizes}
        return dim_of(substitute(extent.formula, values)) if values else extent

    done: dict[int, Any] = {}
    for expr in post_order(function):
        done[id(expr)] = _rebuilt(expr, lambda child: done[id(child)], fresh)
    return done[id(function)]  # type: ignore[no-any-return]


def _rebuilt(expr: Expr, child: Callable[[Expr], Any], fresh: Callable[[Any], Any]) -> Any:
    if isinstance(expr, Var) and expr.type is not None:
        type_ = _type_of(expr.type, fresh)
        return expr if type_ == expr.type else Var(expr.name, type_)
    made = rebuild(expr, child)
    if isinstance(made, Call) and isinstance(made.attrs, Attrs):
        attrs = _attrs_of(made.attrs, fresh)
        if attrs is not made.attrs:
            return Call(made.op, made.args, attrs, made.span)
    return made


def _type_of(type_: Type, fresh: Callable[[Any], Any]) -> Type:
    if isinstance(type_, TensorType):
        return TensorType(tuple(map(fresh, type_.shape)), type_.dtype)
    if isinstance(type_, TupleType):
        return TupleType(tuple(_type_of(f, fresh) for f in type_.fields))
    return type_


def _attrs_of(attrs: Attrs, fresh: Callable[[Any], Any]) -> Attrs:
    """Return attributes with the sizes in them, those of a shape for example, made anew."""

    def value_of(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(value_of, value))
        return fresh(value)

    changed = {}
    for name in attrs.FIELDS:
        old = getattr(attrs, name)
        new = value_of(old)
        if new != old:
            changed[name] = new
    return attrs.replace(**changed) if changed else attrs
