"""FreeReshapes: what a kernel reshapes first or last is given that shape outside of it.

    fn(%p) { reshape(transpose(%p), [n, c]) }(%x)  ->  reshape(fn(%p) { transpose(%p) }(%x), [n, c])

Between kernels a reshape is the same memory under another shape and costs nothing.  Inside it
becomes index arithmetic: free where the kernel's loops have the finer axes, of which the coarser
ones are sums, but a division and a remainder for every element where they have the coarser ones,
and neighbours are no neighbours to the schedule any more.  Those are moved out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Function, Var
from slipway.relay.op_registry import is_call_of, is_primitive
from slipway.relay.types import TensorType
from slipway.relay.visit import children, post_order, rewrite, substitute
from slipway.transform.graph.simplify_expr import RESHAPES


def free_reshapes(function: Function) -> Function:
    """Return `function` with costly reshapes at the ends of its kernels moved between them."""
    return rewrite(function, _freed)  # type: ignore[no-any-return]


def _freed(call: Expr) -> Expr | None:
    """Return the call of a kernel with its costly reshapes outside; None where it has none."""
    if not isinstance(call, Call) or not is_primitive(call.op):
        return None
    kernel: Any = call.op
    body: Any = kernel.body
    source: Any = _source(body)
    if not isinstance(source, Call) or is_primitive(source.op):
        return None  # it reshapes and does nothing else, or has several results
    is_costly = source is not body and _is_moved(body.tensor_type.shape, source.tensor_type.shape)
    body = source if is_costly else body
    params, arguments, known = [], [], {}
    for param, argument in zip(kernel.params, call.args, strict=True):
        reshaped = None if isinstance(argument, Constant) else _first_reshape(body, param)
        if reshaped is not None:
            known[reshaped] = Var(param.name_hint, reshaped.checked_type)
            argument = _reshaped(argument, param.tensor_type, reshaped.tensor_type)
        params.append(known.get(reshaped, param))
        arguments.append(argument)
    if not is_costly and not known:
        return None
    made = Call(
        Function(tuple(params), substitute(body, known), None, kernel.attrs), tuple(arguments)
    )
    return _reshaped(made, body.tensor_type, kernel.body.tensor_type) if is_costly else made


def _source(expr: Expr) -> Expr:
    """Return what is reshaped at the end of a kernel, through a chain of reshapes."""
    while isinstance(expr, Call) and is_call_of(expr, *RESHAPES):
        expr = expr.args[0]
    return expr


def _first_reshape(body: Expr, param: Var) -> Any:
    """Return the costly reshape that is all that a kernel does with a parameter, or None."""
    users = [e for e in post_order(body) if any(child is param for child in children(e))]
    if len(users) != 1 or users[0] is body or not is_call_of(users[0], *RESHAPES):
        return None
    (user,) = users
    return user if _is_moved(user.tensor_type.shape, param.tensor_type.shape) else None


def _is_moved(loops: Sequence[Any], memory: Sequence[Any]) -> bool:
    """Return whether loops over some axes would divide to find elements of the others.

    Of open sizes only if both have one room: that is told by a formula's bounds, which for the
    product of two sizes and the sum that it is written as may be two.
    """
    return not is_finer(loops, memory) and _room(loops) == _room(memory)


def _room(shape: Sequence[Any]) -> float:
    return prod(_most(d) for d in shape)


def _reshaped(value: Expr, own: TensorType, wanted: TensorType) -> Expr:
    """Return a call of the kernel that gives `value`, of type `own`, the shape of `wanted`."""
    param = Var("p0", own)
    body = op_registry.make("reshape")(param, wanted.shape, True)
    return Call(Function((param,), body, None, (("Primitive", 1),)), (value,))


def is_finer(fine: Sequence[Any], coarse: Sequence[Any]) -> bool:
    """Return whether each axis of `coarse` is certainly some neighbouring axes of `fine`."""
    rest = list(fine)
    for extent in coarse:
        size: Any = 1
        while rest and size is not extent and size != extent:
            size = size * rest.pop(0)
        if size is not extent and size != extent:
            return False
    return all(isinstance(extent, int) and extent == 1 for extent in rest)


def _most(extent: Any) -> float:
    high = getattr(extent, "high", None) if is_open(extent) else extent
    return inf if high is None else high
