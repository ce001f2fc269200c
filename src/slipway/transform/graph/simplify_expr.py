"""SimplifyExpr: local rules that make a graph smaller and more regular.

    bias_add(x, b)                  ->  add(x, expand_dims(b))
    reshape(reshape(x))             ->  reshape(x)
    reshape, transpose, cast, broadcast_to, pad, slice to the same thing  ->  x
    transpose(transpose(x))         ->  transpose(x)
    x + 0, x - 0, x * 1, x / 1      ->  x
    x - c                           ->  x + (-c)            float constants
    product(x, transpose(y))        ->  product with transpose_b    of computed matrices
    clip(relu(x), 0, 6)             ->  clip(x, 0, 6)
    softmax over (n, 1000, 1, 1)    ->  over (n, 1000), reshaped: rows lie along memory
    where(c, x, y)                  ->  x or y, where c is the same constant everywhere
    what has no element             ->  a constant

Every rule keeps the values bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite
from slipway.transform.graph.fold_constant import empty_result

RESHAPES = ("reshape", "squeeze", "expand_dims", "nn.batch_flatten")


def simplify_expr(function: Function) -> Function:
    """Return `function` with the rules applied bottom up."""
    return rewrite(function, simplify_one)  # type: ignore[no-any-return]


def simplify_one(expr: Expr) -> Expr | None:
    """Apply the first rule that fits, or return None."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.type is None:
        return None
    nothing = empty_result(expr)
    if nothing is not None:
        return nothing  # loops of no steps are not scheduled, at any opt_level
    rule = RULES.get(expr.op.name)
    return rule(expr) if rule is not None else None


def _bias_add(call: Call) -> Expr | None:
    data, bias = call.args
    rank = data.tensor_type.rank
    trailing = rank - 1 - call.attrs.axis % rank
    with op_registry.span(call.span):
        if trailing:
            bias = op_registry.make("expand_dims")(bias, 1, trailing)
        return op_registry.make("add")(data, bias)  # type: ignore[no-any-return]


def _reshape(call: Call) -> Expr | None:
    data = call.args[0]
    if call.type == data.type:
        return data
    inner = data
    while isinstance(inner, Call) and is_call_of(inner, *RESHAPES):
        inner = inner.args[0]
    if inner is data:
        return None
    if inner.type == call.type:
        return inner
    with op_registry.span(call.span):
        return op_registry.make("reshape")(inner, call.tensor_type.shape, True)  # type: ignore[no-any-return]


def _same_type(call: Call) -> Expr | None:
    return call.args[0] if call.type == call.args[0].type else None


def _slice(call: Call) -> Expr | None:
    # The same shape with positive steps leaves nothing out.
    rising = all(s > 0 for s in call.attrs.strides)
    return call.args[0] if rising and call.type == call.args[0].type else None


def _pad(call: Call) -> Expr | None:
    return None if any(w for pair in call.attrs.pad_width for w in pair) else call.args[0]


def _concatenate(call: Call) -> Expr | None:
    (joined,) = call.args
    if not isinstance(joined, Tuple):
        return None
    kept = tuple(f for f in joined.fields if f.tensor_type.size)
    if len(kept) == 1:
        return kept[0]
    if not kept or len(kept) == len(joined.fields):
        return None
    return call.with_args((Tuple(kept),))


def _axes(call: Call) -> tuple[int, ...]:
    rank = call.tensor_type.rank
    return tuple(a % rank for a in call.attrs.axes) if call.attrs.axes else tuple(range(rank))[::-1]


def _transpose(call: Call) -> Expr | None:
    data, axes = call.args[0], _axes(call)
    if axes == tuple(range(len(axes))):
        return data
    if isinstance(data, Call) and is_call_of(data, "transpose"):
        inner = _axes(data)
        with op_registry.span(call.span):
            joined = op_registry.make("transpose")(data.args[0], [inner[a] for a in axes])
        return _transpose(joined) or joined
    moved = [a for a in axes if call.args[0].tensor_type.shape[a] != 1]
    if moved == sorted(moved):  # only axes of extent 1 change places
        with op_registry.span(call.span):
            return op_registry.make("reshape")(data, call.tensor_type.shape, True)  # type: ignore[no-any-return]
    return None


def _is_all(expr: Expr, value: float) -> bool:
    return isinstance(expr, Constant) and expr.array.size > 0 and bool((expr.array == value).all())


def _neutral(value: float, both_sides: bool) -> Callable[[Call], Expr | None]:
    def rule(call: Call) -> Expr | None:
        lhs, rhs = call.args
        if _is_all(rhs, value) and call.type == lhs.type:
            return lhs
        if both_sides and _is_all(lhs, value) and call.type == rhs.type:
            return rhs
        return None

    return rule


def _subtract(call: Call) -> Expr | None:
    lhs, rhs = call.args
    if isinstance(rhs, Constant) and dtypes.is_float(rhs.array.dtype.name):
        if _is_all(rhs, 0.0) and call.type == lhs.type:
            return lhs
        with op_registry.span(call.span):
            return op_registry.make("add")(lhs, Constant(np.negative(rhs.array)))  # type: ignore[no-any-return]
    return None


def _clip(call: Call) -> Expr | None:
    data, attrs = call.args[0], call.attrs
    if isinstance(data, Call) and is_call_of(data, "nn.relu") and attrs.a_min >= 0:
        return call.with_args(data.args)
    return None


def _is_transposed(expr: Expr) -> bool:
    """Return whether `expr` is a computed matrix, or batch of them, with its last axes swapped."""
    if not is_call_of(expr, "transpose"):
        return False
    rank = expr.tensor_type.rank
    order = tuple(a % rank for a in expr.attrs.axes or range(rank)[::-1])
    wanted = (*range(rank - 2), rank - 1, rank - 2)
    return order == wanted and not isinstance(expr.args[0], Constant)


def _product(call: Call) -> Expr | None:
    """A product reads its operands either way: no transposed copy is needed."""
    a, b = call.args
    dense = call.op.name == "nn.dense"
    if not dtypes.is_float(a.tensor_type.dtype) or (dense and a.tensor_type.rank != 2):
        return None
    transposed_a, transposed_b = _is_transposed(a) and not dense, _is_transposed(b)
    if not transposed_a and not transposed_b:
        return None
    attrs = call.attrs
    with op_registry.span(call.span):
        make: Any = op_registry.make("nn.matmul" if dense else call.op.name)
        return make(  # type: ignore[no-any-return]
            a.args[0] if transposed_a else a,  # type: ignore[attr-defined]
            b.args[0] if transposed_b else b,  # type: ignore[attr-defined]
            out_dtype=attrs.out_dtype,
            transpose_a=not dense and attrs.transpose_a != transposed_a,
            transpose_b=(dense or attrs.transpose_b) != transposed_b,
        )


def _where(call: Call) -> Expr | None:
    condition, *branches = call.args
    if not isinstance(condition, Constant) or not condition.array.size:
        return None
    truth = condition.array.astype(bool)
    if truth.all() == truth.any():
        chosen = branches[0] if truth.all() else branches[1]
        return chosen if chosen.type == call.type else None
    return None


def _along_the_last(call: Call) -> Expr | None:
    """Leave out the axes of one behind that of a softmax."""
    data, shape = call.args[0], call.tensor_type.shape
    axis = call.attrs.axis % len(shape)
    if axis == len(shape) - 1 or any(n != 1 for n in shape[axis + 1 :]):
        return None
    if any(map(is_open, shape)):
        return None
    reshape = op_registry.make("reshape")
    with op_registry.span(call.span):
        rows = op_registry.make(call.op.name)(reshape(data, shape[: axis + 1]), axis=axis)
        return reshape(rows, shape)  # type: ignore[no-any-return]


RULES: dict[str, Callable[[Call], Expr | None]] = {
    "nn.bias_add": _bias_add,
    **dict.fromkeys(RESHAPES, _reshape),
    "transpose": _transpose,
    "cast": _same_type,
    "copy": _same_type,
    "broadcast_to": _same_type,
    "tile": _same_type,
    "strided_slice": _slice,
    "nn.pad": _pad,
    "concatenate": _concatenate,
    "add": _neutral(0, both_sides=True),
    "multiply": _neutral(1, both_sides=True),
    "divide": _neutral(1, both_sides=False),
    "subtract": _subtract,
    "clip": _clip,
    "nn.dense": _product,
    "nn.matmul": _product,
    "nn.batch_matmul": _product,
    "where": _where,
    "nn.softmax": _along_the_last,
    "nn.log_softmax": _along_the_last,
}
