"""Sizes that values decide: what brings one, and the order that follows from it.

`relay.sized` makes an axis as long as a value of the run says.  What speaks of the size comes after
it, also where no data says so (zeros of that many).  The executor of a graph sets such a size when
the operator that computes the value has run; in the body of a loop the kernel does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.relay.dims import SymbolDim, range_text
from slipway.relay.expr import Call, Expr, Function, Op
from slipway.relay.op_registry import Attrs, is_call_of, is_primitive
from slipway.relay.ops.checks import normal_axis
from slipway.relay.types import TensorType, TupleType, flatten
from slipway.relay.visit import children, post_order


def is_prefix(call: Call) -> bool:
    """Return whether what `sized` makes lies at the beginning of its data, all of it."""
    body, _ = _sized(call)
    if body is None:
        return False
    data = body.args[0].tensor_type.shape
    axis = normal_axis(body.attrs.axis, len(data))
    reaches = upper_end(body.attrs.size), upper_end(data[axis])
    return all(d == 1 for d in data[:axis]) and None not in reaches and reaches[0] <= reaches[1]


def upper_end(extent: Any) -> Any:
    """Return the largest that an extent can be, None where nothing bounds it."""
    return extent.high if isinstance(extent, SymbolDim) else extent


def told_size(call: Call) -> tuple[SymbolDim, int] | None:
    """Return the size that a kernel's call brings, and which of its arguments is the value.

    None for a call that brings none.
    """
    body, at = _sized(call)
    if body is None or not isinstance(body.attrs.size, SymbolDim):
        return None
    if at is None:
        raise LoweringError(
            f"relay.sized(...) has a constant for the size {body.attrs.size}: take a slice of so "
            "many entries"
        )
    return body.attrs.size, at


def exact_size(call: Call) -> tuple[str, int, int, int] | None:
    """Return the name, number and axis of a size that is one number, and the argument it is.

    None for a call without one.
    """
    body, at = _sized(call)
    if body is None or isinstance(body.attrs.size, SymbolDim) or at is None:
        return None
    axis = normal_axis(body.attrs.axis, len(flatten(body.checked_type)[0].shape))
    return body.attrs.name or "size", int(body.attrs.size), axis, at


def _sized(call: Call) -> tuple[Call | None, int | None]:
    """Return the `sized` that a kernel's call computes, and which argument its count is."""
    body = call.op.body if is_primitive(call.op) and isinstance(call.op, Function) else call
    if not isinstance(body, Call) or not is_call_of(body, "sized"):
        return None, None
    params = call.op.params if isinstance(call.op, Function) else call.args
    numbers = [i for i, param in enumerate(params) if param is body.args[1]]
    return body, numbers[0] if numbers else None


def two_values(size: str) -> LoweringError:
    """Return the error for a size that several values decide."""
    return LoweringError(
        f"the size {size} is that of two values: give each relay.Dim of a relay.sized(...) a name "
        "of its own"
    )


def brings_inside(function: Function) -> bool:
    """Return whether a branch in a kernel brings a size, which none that is not taken can tell."""
    for call in post_order(function.body):
        if not isinstance(call, Call):
            continue
        regions = _regions(call)
        if is_call_of(call, "branch") and any(map(_brings, regions)):
            return True
        if any(map(brings_inside, regions)):
            return True
    return False


def _brings(region: Function) -> bool:
    calls = (e for e in post_order(region.body) if isinstance(e, Call))
    return any(is_call_of(e, "sized") and isinstance(e.attrs.size, SymbolDim) for e in calls)


def in_order_of_sizes(order: Sequence[Expr]) -> list[Expr]:
    """Return expressions in their order, but what speaks of a size after what brings it."""
    bringing: dict[E.Var, Expr] = {}
    for expr in order:
        found = told_size(expr) if isinstance(expr, Call) and is_primitive(expr.op) else None
        if found is not None:
            bringing.setdefault(found[0].variables[0], expr)
    if not bringing:
        return list(order)
    made: dict[int, Expr] = {}
    for expr in order:
        pending = [(expr, False)]
        open_now: set[int] = set()
        while pending:
            one, is_ready = pending.pop()
            if id(one) in made:
                continue
            if is_ready:
                made[id(one)] = one
                continue
            if id(one) in open_now:
                raise LoweringError(
                    "the size of a relay.sized(...) depends on values of that size themselves"
                )
            open_now.add(id(one))
            pending.append((one, True))
            pending += [(before, False) for before in _before(one, bringing)]
    return list(made.values())


def _before(expr: Expr, bringing: dict[E.Var, Expr]) -> Iterable[Expr]:
    """Yield what must be computed before an expression."""
    if isinstance(expr, Function | Op):
        return
    yield from (e for e in children(expr) if not isinstance(e, Function | Op))
    for variable in spoken_of(expr):
        teller = bringing.get(variable)
        if teller is not None and teller is not expr:
            yield teller


def spoken_of(expr: Expr) -> list[E.Var]:
    """Return the variables in the type of an expression, and in those inside of a kernel."""
    types = [
        t
        for e in (expr, *_inside(expr))
        if isinstance(e.type, TensorType | TupleType)
        for t in flatten(e.type)
    ]
    dims: list[Any] = [d for t in types for d in t.shape if isinstance(d, SymbolDim)]
    return list(dict.fromkeys(v for d in dims for v in d.variables))


def sizes_of_attributes(expr: Expr) -> list[SymbolDim]:
    """Return the sizes that the attributes of a call speak of: where a slice begins, say."""
    if not isinstance(expr, Call) or not isinstance(expr.attrs, Attrs):
        return []
    return _sizes_in(tuple(getattr(expr.attrs, name) for name in expr.attrs.FIELDS))


def _sizes_in(value: Any) -> list[SymbolDim]:
    if isinstance(value, tuple):
        return [size for part in value for size in _sizes_in(part)]
    return [value] if isinstance(value, SymbolDim) else []


def ranges_in(function: Function) -> tuple[str, ...]:
    """Return the sizes that a kernel speaks of, regions inside included, with their ranges."""
    found = dict.fromkeys(v for e in post_order(function) for v in spoken_of(e))
    return tuple(range_text(SymbolDim(v)) for v in found)


def told_inside(expr: Expr) -> set[E.Var]:
    """Return the sizes that the regions of a loop tell themselves."""
    found: set[E.Var] = set()
    for call in (expr, *_inside(expr)):
        if not isinstance(call, Call):
            continue
        size = None
        if is_call_of(call, "while_loop"):
            size = call.attrs.iteration
        elif call is not expr and is_call_of(call, "sized"):
            size = call.attrs.size
        if isinstance(size, SymbolDim):
            found.update(size.variables)
    return found


def _inside(expr: Expr) -> list[Expr]:
    """Return what a kernel computes inside, and a loop or branch in its regions."""
    if not isinstance(expr, Call):
        return []
    regions = _regions(expr)
    if isinstance(expr.op, Function):
        regions.append(expr.op)
    return [
        inner
        for region in regions
        for e in post_order(region.body, into_functions=False)
        for inner in (e, *_inside(e))
    ]


def _regions(call: Call) -> list[Function]:
    if not isinstance(call.attrs, Attrs):
        return []
    values = (getattr(call.attrs, name) for name in call.attrs.FIELDS)
    return [value for value in values if isinstance(value, Function)]
