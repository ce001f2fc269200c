"""Graphs for a part of the range of their open sizes.

narrowed(fn(x: (n, 4)), {n: m})  ->  fn(x: (m, 4)),  m an integer or a size of a smaller range
with_own_sizes(fn(x: (n - 2, 2 * n)))  ->  fn(x: (m, 2 * m + 4))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from slipway.errors import TypeInferenceError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.visit import substitute
from slipway.relay.analysis.told_sizes import sizes_of_attributes, spoken_of, told_inside
from slipway.relay.dims import SymbolDim, at, dim_of, lower_bound, told_by, usual
from slipway.relay.expr import Call, Expr, Function, Op, Var
from slipway.relay.op_registry import Attrs, is_call_of
from slipway.relay.types import TensorType, TupleType, Type, flatten
from slipway.relay.visit import post_order, rebuild

Sizes = Mapping[E.Var, "E.Var | int"]


def narrowed(function: Function, sizes: Sizes) -> Function:
    """Return `function` with other sizes for its variables, and every type found anew.

    Raises TypeInferenceError where the graph does not bear them.
    """
    return _with_sizes(function, _in_terms_of(sizes))


def attrs_with_sizes(attrs: Any, sizes: Sizes) -> Any:
    """Return the attributes of a call with other sizes for the variables in them."""
    return _attrs_of(attrs, _in_terms_of(sizes)) if isinstance(attrs, Attrs) else attrs


def _in_terms_of(sizes: Sizes) -> Callable[[Any], Any]:
    def fresh(extent: Any) -> Any:
        if not isinstance(extent, SymbolDim):
            return extent
        values = {v: ops.as_expr(sizes[v], v.dtype) for v in extent.variables if v in sizes}
        return dim_of(substitute(extent.formula, values)) if values else extent

    return fresh


def with_own_sizes(function: Function) -> Function:
    """Return `function` with an axis of its own for each size that its shapes speak of.

    A kernel reads the sizes from the shapes of its tensors, and cannot read n from an axis of n - 2
    elements: that axis becomes a size itself, and others what they are of it.  Where that cannot be
    and each size is told by an axis of some times as many, the function stays as it is.  Raises
    TypeInferenceError where the graph does not bear any of this.
    """
    try:
        made = _own_sizes(function)
    except TypeInferenceError:
        if _untold(function, told_by):
            raise
        return function
    return function if _untold(made, _itself) and not _untold(function, told_by) else made


def divided_sizes(function: Function) -> bool:
    """Return whether a kernel divides a size out of an axis of some times as many elements."""
    return bool(_untold(function, _itself))


def _own_sizes(function: Function) -> Function:
    every = _outer_extents(function)
    dims = list(dict.fromkeys(d for d in every if isinstance(d, SymbolDim)))
    own = {d.formula for d in dims if isinstance(d.formula, E.Var)}
    table: dict[SymbolDim, Any] = {}
    bases: list[tuple[SymbolDim, SymbolDim]] = []
    for dim in sorted(dims, key=lambda d: len(d.variables)):
        if not own.issuperset(dim.variables):
            table[dim] = _of_bases(dim, bases)
            if table[dim] is None:
                high = -1 if dim.high is None else dim.high
                size = E.SizeVar(f"size{len(bases)}", "int32", dim.low, high)
                table[dim] = SymbolDim(size)
                bases.append((dim, table[dim]))
    if not table:
        return function

    def fresh(extent: Any) -> Any:
        if not isinstance(extent, SymbolDim) or own.issuperset(extent.variables):
            return extent
        known = table.get(extent)
        made = _of_bases(extent, bases) if known is None else known
        return extent if made is None else made

    return _with_sizes(function, fresh)


def _outer_extents(function: Function) -> list[Any]:
    """Return the extents of what a function takes and gives."""
    types = [t for p in function.params for t in flatten(p.checked_type)]
    types += flatten(function.body.checked_type)
    return [d for t in types for d in t.shape]


def _itself(extent: Any) -> E.Var | None:
    """Return the variable that an extent is."""
    found = isinstance(extent, SymbolDim) and isinstance(extent.formula, E.Var)
    return extent.formula if found else None


def _untold(function: Function, told: Callable[[Any], E.Var | None]) -> list[E.Var]:
    """Return the sizes a function speaks of that no axis at its border tells.

    They stand in the shapes of its tensors, inner ones too, and in what its operators are told: a
    slice from n on speaks of n, and has n in no shape.  `told` says which size an axis tells.
    """
    known = {told(extent) for extent in _outer_extents(function)}
    inner: list[Any] = [
        extent
        for expr in post_order(function.body, into_functions=False)
        if not isinstance(expr, (Function, Op)) and expr.type is not None
        for type_ in _flat(expr.type)
        for extent in type_.shape
    ]
    for expr in post_order(function.body, into_functions=False):
        if is_call_of(expr, "branch", "scan", "while_loop"):
            own = told_inside(expr)
            inner += [SymbolDim(v) for v in spoken_of(expr) if v not in own]
        else:
            inner += sizes_of_attributes(expr)
    variables = dict.fromkeys(
        v
        for d in (*_outer_extents(function), *inner)
        if isinstance(d, SymbolDim)
        for v in d.variables
    )
    return [v for v in variables if v not in known]


def _flat(type_: Type) -> list[TensorType]:
    return flatten(type_) if isinstance(type_, TensorType | TupleType) else []


def unread_sizes(function: Function) -> list[E.Var]:
    """Return the sizes that a kernel needs a tensor more for: no axis of its own gives them.

    None where `with_own_sizes` finds others that do.
    """
    missing = _untold(function, _itself)
    if not missing:
        return []
    try:
        return missing if _untold(_own_sizes(function), _itself) else []
    except TypeInferenceError:
        return missing


def _of_bases(dim: SymbolDim, bases: list[tuple[SymbolDim, SymbolDim]]) -> Any:
    """Return a dimension as a multiple of a base and a number, with the base's size; or None."""
    for base, size in bases:
        if set(base.variables) != set(dim.variables):
            continue
        ends = [{v: end(SymbolDim(v)) for v in dim.variables} for end in (lower_bound, usual)]
        (b0, d0), (b1, d1) = ((at(base, sizes), at(dim, sizes)) for sizes in ends)
        if b0 == b1 or (d1 - d0) % (b1 - b0):
            continue
        factor = (d1 - d0) // (b1 - b0)
        if base * factor + (d0 - factor * b0) is dim:
            return size * factor + (d0 - factor * b0)
    return None


def _with_sizes(function: Function, fresh: Callable[[Any], Any]) -> Function:
    done: dict[int, Any] = {}
    for expr in post_order(function):
        done[id(expr)] = _rebuilt(expr, lambda child: done[id(child)], fresh)
    return done[id(function)]  # type: ignore[no-any-return]


def _rebuilt(expr: Expr, child: Callable[[Expr], Any], fresh: Callable[[Any], Any]) -> Any:
    if isinstance(expr, Var) and expr.type is not None:
        type_ = _type_of(expr.type, fresh)
        return expr if type_ == expr.type else Var(expr.name, type_)
    if not isinstance(expr, Call):
        return rebuild(expr, child)
    attrs = _attrs_of(expr.attrs, fresh) if isinstance(expr.attrs, Attrs) else expr.attrs
    op = child(expr.op) if isinstance(expr.op, Function) else expr.op
    args = tuple(map(child, expr.args))
    kept = all(a is b for a, b in zip(args, expr.args, strict=True))
    if kept and op is expr.op and attrs is expr.attrs:
        return expr
    return Call(op, args, attrs, expr.span)


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
        if isinstance(value, Function):
            return _with_sizes(value, fresh)
        return fresh(value)

    changed = {}
    for name in attrs.FIELDS:
        old = getattr(attrs, name)
        new = value_of(old)
        if new is not old and new != old:
            changed[name] = new
    return attrs.replace(**changed) if changed else attrs
