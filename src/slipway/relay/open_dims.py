"""Types with open dimensions: found by example, and fixed again.

An open dimension (`relay.Any()`) has a size that is known only when the model runs.  Type rules
compute with numbers, so the rule of an operator is asked at several sizes: what stays the same is
fixed, what changes is open.  An operator whose rule fails at these sizes does not allow the
dimension to be open (a reshape to fixed sizes, say), and the error says so.

Dimensions of different variables (``te.var``) are asked at different sizes; what has a variable's
size in every answer is that variable.  Where the rule refuses that, and where dimensions have no
names, all open ones of a call stand for one size: two inputs that are open in different ways and
are added, say, must have equal sizes when the model runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from math import prod
from typing import Any

from slipway.arguments import table_of
from slipway.errors import LoweringError, TypeInferenceError
from slipway.ir.expr import SizeVar
from slipway.ir.node import Node
from slipway.relay.dims import KnownDim, OpenDim, SymbolDim, lower_bound, odd, usual
from slipway.relay.expr import Expr, Function, Var
from slipway.relay.types import ANY, FuncType, TensorType, TupleType, Type, flatten, is_open
from slipway.relay.visit import substitute

SIZES = (211, 307)  # primes: a rule that divides or splits a size by a number refuses them
PRIMES = ((211, 223, 227, 229, 233, 239, 241, 251), (307, 311, 313, 317, 331, 337, 347, 349))
MOST_UNIFIED = 4  # unknown dimensions, and known ones that these may be
SMALL = 2  # asked too, if the rule takes it: `min(size, 100)` is no fixed 100

_KNOWN = {KnownDim}

Rule = Callable[[Sequence[Type]], Type]


def has_open(type_: Type | None) -> bool:
    """Return whether a type has an open dimension."""
    if isinstance(type_, TensorType):
        return any(issubclass(kind, OpenDim) for kind in {*map(type, type_.shape)} - _KNOWN)
    if isinstance(type_, TupleType):
        return any(has_open(f) for f in type_.fields)
    if isinstance(type_, FuncType):
        return any(has_open(t) for t in (*type_.arg_types, type_.ret_type))
    return False


def infer_open(rule: Rule, types: Sequence[Type], attrs: Node | None = None) -> Type:
    """Return the result type of a rule for types of which some have open dimensions.

    Raises TypeInferenceError where the rule does not allow them.
    """
    symbols = _open_of(types)
    named = ANY not in symbols
    direct: TypeInferenceError | None = None
    if named:
        try:
            return rule(types)
        except TypeInferenceError as error:
            direct = error
    ranged = named and all(isinstance(v, SizeVar) for d in symbols for v in d.variables)
    if 1 < len(symbols) <= len(PRIMES[0]):
        with suppress(TypeInferenceError):
            found = _type_at_sizes(
                rule, types, [dict(zip(symbols, sizes, strict=False)) for sizes in PRIMES]
            )
            if direct is None or not ranged or not _forgets(found):
                return found
    if direct is not None and ranged:
        raise direct  # sizes that only have to agree when the model runs have no names
    try:
        return _type_at_sizes(rule, types, [dict.fromkeys(symbols, size) for size in SIZES])
    except TypeInferenceError as error:
        try:
            factor = _divisor(attrs)
            return _type_at_sizes(rule, types, [dict.fromkeys(symbols, s * factor) for s in SIZES])
        except TypeInferenceError:
            unified = _unified(rule, types)
            if unified is not None:
                return unified
            given = ", ".join(str(t) for t in types)
            raise TypeInferenceError(
                f"it does not allow the open dimension of {given}: with {SIZES[0]} for it, {error}"
            ) from None


def _forgets(type_: Type) -> bool:
    """Return whether nothing is known of a size, though all that it depends on have ranges.

    The rule has said why (a window larger than its data at the range's lower end, say).
    """
    return any(d is ANY for leaf in flatten(type_) for d in leaf.shape)


def _unified(rule: Rule, types: Sequence[Type]) -> Type | None:
    """Return the result where some dimensions that nothing is known of are as long as known ones.

    A product of (?, ?) and (5, 12) has 12 for the second, and the sum of (?,) and (4,) four
    elements, as in classic Relay: other lengths are refused when the sizes are known.  As few as
    can be are fixed.
    """
    leaves = _all_flat(types)
    unknown = sum(d is ANY for leaf in leaves for d in leaf.shape)
    known = sorted({d for leaf in leaves for d in leaf.shape if isinstance(d, int) and d > 0})
    if not 1 <= unknown <= MOST_UNIFIED or not 1 <= len(known) <= MOST_UNIFIED:
        return None
    choices = product(range(len(known) + 1), repeat=unknown)
    for choice in sorted(choices, key=lambda c: sum(map(bool, c))):
        found = []
        with suppress(TypeInferenceError):
            for primes in PRIMES:
                extents = iter(
                    [known[c - 1] if c else p for c, p in zip(choice, primes, strict=False)]
                )
                found.append(rule([_filled(t, extents) for t in types]))
            return _common(found, [{}, {}])
    return None


def _filled(type_: Type, extents: Iterator[int]) -> Type:
    """Return a type with the next extents for its unknown dimensions."""
    if isinstance(type_, TensorType):
        return TensorType(tuple(next(extents) if d is ANY else d for d in type_.shape), type_.dtype)
    if isinstance(type_, TupleType):
        return TupleType(tuple(_filled(f, extents) for f in type_.fields))
    return type_


def _open_of(types: Sequence[Type]) -> list[Any]:
    """Return the different open dimensions of types; those with names first."""
    found: list[Any] = []
    for leaf in _all_flat(types):
        found += [d for d in leaf.shape if is_open(d) and d not in found]
    return sorted(found, key=lambda d: d is ANY)


def _type_at_sizes(rule: Rule, types: Sequence[Type], sizes: list[dict[Any, int]]) -> Type:
    """Return the type that holds what the rule gives at these sizes, and at small ones."""
    found = [rule([_at(t, known) for t in types]) for known in sizes]
    lower = {d: d.low if isinstance(d, SymbolDim) else SMALL for d in sizes[0]}
    for small in (dict.fromkeys(sizes[0], SMALL), lower):
        with suppress(TypeInferenceError):  # a window may be larger than its data
            found.append(rule([_at(t, small) for t in types]))
            sizes = [*sizes, small]
    return _common(found, sizes)


def _divisor(attrs: Node | None) -> int:
    """Return what the data of a reshape with a -1 must be a multiple of.

    Whether it is, is seen when the shape is fixed: axes that were joined (of which one is open) and
    are taken apart again have that factor, which an open dimension does not tell.
    """
    newshape = getattr(attrs, "newshape", ())
    return prod(d for d in newshape if d > 0) if -1 in newshape else 1


def _at(type_: Type, sizes: Mapping[Any, int]) -> Type:
    """Return a type with sizes for its open dimensions; those that have none stay open."""
    if isinstance(type_, TensorType):
        return TensorType(tuple(sizes.get(d, d) for d in type_.shape), type_.dtype)
    if isinstance(type_, TupleType):
        return TupleType(tuple(_at(f, sizes) for f in type_.fields))
    return type_


def usual_type(type_: Type) -> Type:
    """Return a type with the sizes that choices are made for (`dims.usual`) for its open ones."""
    return _fixed(type_, usual)


def smallest_type(type_: Type) -> Type:
    """Return a type with the lower ends of their ranges for its open dimensions."""
    return _fixed(type_, lower_bound)


def odd_type(type_: Type) -> Type:
    """Return a type with sizes that few numbers divide (`dims.odd`) for its open dimensions."""
    return _fixed(type_, odd)


def _fixed(type_: Type, size: Callable[[Any], int]) -> Type:
    if isinstance(type_, TensorType):
        return TensorType(tuple(map(size, type_.shape)), type_.dtype)
    if isinstance(type_, TupleType):
        return TupleType(tuple(_fixed(field, size) for field in type_.fields))
    return type_


def _common(types: Sequence[Type], sizes: Sequence[Mapping[Any, int]]) -> Type:
    """Return the type that holds all of these, found at `sizes`: what differs is open."""
    first = types[0]
    if isinstance(first, TensorType):
        shapes = [t.shape for t in types if isinstance(t, TensorType)]
        if len({len(s) for s in shapes}) == 1 == len({t.dtype for t in _all_flat(types)}):
            dims = tuple(_common_dim(d, sizes) for d in zip(*shapes, strict=True))
            return TensorType(dims, first.dtype)
    elif isinstance(first, TupleType):
        parts = [t.fields for t in types if isinstance(t, TupleType)]
        if len({len(p) for p in parts}) == 1:
            return TupleType(tuple(_common(p, sizes) for p in zip(*parts, strict=True)))
    raise TypeInferenceError("the number of its results or axes depends on an open dimension")


def _common_dim(extents: Sequence[int], sizes: Sequence[Mapping[Any, int]]) -> Any:
    if len(set(extents)) == 1:
        return extents[0]
    for symbol in sizes[0]:
        if all(e == known[symbol] for e, known in zip(extents, sizes, strict=True)):
            return symbol
    return ANY


def _all_flat(types: Sequence[Type]) -> list[TensorType]:
    """Return the tensor types inside all `types`."""
    return [leaf for type_ in types for leaf in flatten(type_)]


def open_inputs(function: Function) -> list[Var]:
    """Return the parameters that have open dimensions."""
    return [p for p in function.params if has_open(p.type)]


def fix_shapes(function: Function, shapes: Mapping[str, Sequence[int]]) -> Function:
    """Return `function` with the given shapes for its inputs, and every type found anew.

    Raises TypeInferenceError for an unknown input, a shape that does not fit, and a graph that does
    not bear these sizes.
    """
    named = {p.name: p for p in function.params}
    table: dict[Var, Expr] = {}
    sizes: dict[Any, int] = {}  # of the dimensions that have names
    for name, shape in table_of(shapes, "the shapes of inputs", "{'x': (1, 3)}").items():
        param = named.get(name)
        if param is None:
            raise TypeInferenceError(
                f"the function has no input {name!r}; it has {', '.join(named)}"
            )
        old = param.checked_type
        if not isinstance(old, TensorType):
            raise TypeInferenceError(f"the input {name!r} is {old}, which has no shape")
        if not isinstance(shape, Iterable) or isinstance(shape, str):
            raise TypeInferenceError(f"the shape of {name!r} is {shape!r}; write a tuple of sizes")
        new = TensorType(tuple(shape), old.dtype)
        fits = len(new.shape) == len(old.shape) and all(
            is_open(d) or d == n for d, n in zip(old.shape, new.shape, strict=True)
        )
        if not fits:
            raise TypeInferenceError(f"the input {name!r} is {old}; it cannot become {new}")
        for extent, size in zip(old.shape, new.shape, strict=True):
            if is_open(extent) and extent is not ANY and sizes.setdefault(extent, size) != size:
                raise TypeInferenceError(
                    f"the input {name!r} is {old}; it cannot become {new}: {extent} is "
                    f"{sizes[extent]} elsewhere"
                )
        table[param] = Var(name, new)
    for param in function.params:
        if param not in table and param.type is not None and sizes and has_open(param.type):
            table[param] = Var(param.name, _at(param.type, sizes))
    params = tuple(table.get(p, p) for p in function.params)
    return Function(params, substitute(function.body, table), None, function.attrs)  # type: ignore[arg-type]


def _is_named(type_: Type) -> bool:
    """Return whether the open dimensions of a type are sizes with a range."""
    dims = [d for leaf in flatten(type_) for d in leaf.shape if is_open(d)]
    return all(
        d is not ANY and all(isinstance(v, SizeVar) for v in d.variables)  # type: ignore[attr-defined]
        for d in dims
    )


def need_fixed(function: Function) -> None:
    """Raise LoweringError, with the ways out, if an input has an open dimension without a name."""
    found = [p for p in open_inputs(function) if not _is_named(p.checked_type)]
    if not found:
        return
    shapes = {p.name: p.checked_type.shape for p in found}  # type: ignore[attr-defined]
    example = {n: tuple(1 if is_open(d) else d for d in shape) for n, shape in shapes.items()}
    listed = ", ".join(f"{p.name!r} is {p.checked_type}" for p in found)
    raise LoweringError(
        f"a library has fixed sizes, or sizes with a name and a range, but the input {listed}. Use "
        f'relay.Dim("n", 1, 8) for the dimension, or fix it, as in '
        f"relay.transform.FixShapes({example})(mod), or run the module with "
        'relay.create_executor("vm"), which compiles it for each size that it meets.'
    )
