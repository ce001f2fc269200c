"""FoldConstant: what depends on constants only is computed now, by the NumPy references.

``add(Constant(1), Constant(2))  ->  Constant(3)``; a tuple-valued call becomes a Tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slipway.dtypes import is_custom
from slipway.relay.analysis.told_sizes import sizes_of_attributes
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem
from slipway.relay.interpret import evaluate_call
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType, flatten, is_open
from slipway.relay.visit import post_order, rewrite
from slipway.runtime.arrays.array_file import in_file, release

# A result larger than this stays a computation unless its inputs are as large: a broadcast
# constant belongs into the kernel, not into the parameter file.
GROWTH_LIMIT_BYTES = 1 << 16
TOTAL_BYTES = 1 << 28  # of all that one run folds, and beside it so many times what is there:
TOTAL_FACTOR = 8
GROWTH_LIMIT_FACTOR = 4  # a 3x3 kernel transformed for F(4x4, 3x3) has four times the elements


def fold_constant(function: Function) -> Function:
    """Return `function` with constant expressions evaluated.

    A chain that doubles a constant again and again stays a computation where all that was folded
    would be more than `TOTAL_FACTOR` times the constants of the function.
    """
    held = {id(e.array): e.array.nbytes for e in post_order(function) if isinstance(e, Constant)}
    left = TOTAL_BYTES + TOTAL_FACTOR * sum(held.values())

    def take(count: int) -> bool:
        nonlocal left
        if count > left:
            return False
        left -= count
        return True

    return rewrite(function, lambda expr: fold_one(expr, take))  # type: ignore[no-any-return]


def fold_one(expr: Expr, take: Callable[[int], Any] | None = None) -> Expr | None:
    """Return the Constant (or Tuple of them) that `expr` is, or None when it is not known.

    `take` is asked for the bytes of a result before it is made; False leaves the computation.
    """
    if isinstance(expr, TupleGetItem) and isinstance(expr.tuple_value, Tuple):
        return expr.tuple_value.fields[expr.index]
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.type is None:
        return None
    if is_call_of(expr, "while_loop"):
        return None  # which may not end
    nothing = empty_result(expr)
    if nothing is not None:
        return nothing
    leaves = flatten(expr.type)
    if any(is_open(extent) for leaf in leaves for extent in leaf.shape):
        return None  # constants repeated or cut to a size that is known later
    if sizes_of_attributes(expr):
        return None  # or from a place
    taken = (leaf for argument in expr.args for leaf in flatten(argument.checked_type))
    if any(is_custom(leaf.dtype) for leaf in (*leaves, *taken)):
        return None  # only what was registered for the target computes with these
    values = [_constant_value(argument) for argument in expr.args]
    if any(value is None for value in values):
        return None
    out_bytes = sum(leaf.size_bytes for leaf in leaves)
    in_bytes = sum(t.size_bytes for a in expr.args for t in flatten(a.checked_type))
    if out_bytes > max(GROWTH_LIMIT_BYTES, GROWTH_LIMIT_FACTOR * in_bytes):
        return None
    if take is not None and take(out_bytes) is False:
        return None
    result = evaluate_call(expr, values)
    made = (
        Tuple(tuple(Constant(in_file(r)) for r in result))
        if isinstance(result, tuple)
        else Constant(in_file(result))
    )
    for value in values:
        if isinstance(value, np.ndarray):
            release(value)
    return made


def empty_result(call: Call) -> Expr | None:
    """Return what a call gives when none of its results has an element; else None."""
    leaves = flatten(call.checked_type)
    if not all(leaf.is_empty for leaf in leaves):
        return None
    empty = [Constant(np.zeros(leaf.shape, leaf.dtype)) for leaf in leaves]
    return empty[0] if isinstance(call.type, TensorType) else Tuple(tuple(empty))


def _constant_value(argument: Expr) -> Any:
    """The array (or tuple of arrays) of a constant argument, or None."""
    if isinstance(argument, Constant):
        return argument.array
    if isinstance(argument.type, TensorType) and argument.type.is_empty:
        return np.zeros(argument.type.shape, argument.type.dtype)  # its values are known: none
    if isinstance(argument, Tuple):
        values = [_constant_value(f) for f in argument.fields]
        return None if any(v is None for v in values) else tuple(values)
    return None
