"""Images of open height and width whose positions have nothing to do with each other: one row.

flat_positions(fn(x: (n, c, h, w, l)) of a convolution of one tap)  ->  fn(x: (n, c, 1, p, l))

What matters to such a kernel is how many positions there are, not how they lie: its versions are
those of one size in place of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.relay import op_registry
from slipway.relay.dims import SymbolDim, is_open, lower_bound
from slipway.relay.expr import Call, Constant, Function, Op, Var
from slipway.relay.op_registry import OpPattern
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order, rebuild


@dataclass(frozen=True)
class FlatPositions:
    """A kernel of `count` positions in a row, which are `formula` of the sizes it is given."""

    function: Function
    count: E.Var
    formula: E.PrimExpr


def is_pointwise(attrs: Any, kernel: TensorType) -> bool:
    """Return whether a convolution on blocked channels has one tap, and reads where it writes."""
    one_tap = prod(kernel.shape[2:-2]) == attrs.groups == prod(attrs.strides) == 1
    return one_tap and not any(attrs.padding)


def flat_positions(function: Function) -> FlatPositions | None:
    """Return a kernel over flat positions; None where how they lie matters, or none is open."""
    size = _image_of(function)
    if size is None or not any(map(is_open, size)):
        return None
    count = _count_of(size)
    done: dict[int, Any] = {}
    for expr in post_order(function, into_functions=False):
        if isinstance(expr, Var):
            type_ = _flat_type(expr.checked_type, size, count)
            if type_ is None:
                return None
            done[id(expr)] = Var(expr.name, type_)
        else:
            done[id(expr)] = rebuild(expr, lambda child: done[id(child)])
    formula = ops.const(1, "int32")
    for extent in size:
        formula = formula * ops.as_expr(getattr(extent, "formula", extent), "int32")
    return FlatPositions(done[id(function)], count, formula)


def _image_of(function: Function) -> Sequence[Any] | None:
    """Return height and width of what a convolution of one tap and its epilogue compute."""
    size: Sequence[Any] | None = None
    for expr in post_order(function.body, into_functions=False):
        if isinstance(expr, Op | Var | Constant):
            continue
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return None
        if expr.op.name in ("nn.contrib_conv2d_nchwc", "nn.contrib_conv3d_nchwc"):
            kernel = expr.args[1].tensor_type
            if size is not None or not is_pointwise(expr.attrs, kernel):
                return None
            size = expr.tensor_type.shape[2:-1]
        elif op_registry.get(expr.op.name).pattern > OpPattern.BROADCAST:
            return None
    return size


def _count_of(size: Sequence[Any]) -> E.Var:
    highs = [d.high if isinstance(d, SymbolDim) else d for d in size]
    high = -1 if None in highs else prod(h for h in highs if isinstance(h, int))
    return E.SizeVar("positions", "int32", prod(map(lower_bound, size)), high)


def _flat_type(type_: Any, size: Sequence[Any], count: E.Var) -> TensorType | None:
    """Return the type of an argument over flat positions, or None where it is no such image."""
    if not isinstance(type_, TensorType):
        return None
    shape, rank = type_.shape, len(size)
    image = shape[-1 - rank : -1]
    if len(image) == rank and tuple(image) == tuple(size):
        flat: Any = (*shape[: -1 - rank], *(1,) * (rank - 1), SymbolDim(count), shape[-1])
        return TensorType(flat, type_.dtype)
    return type_ if all(d == 1 for d in image[:rank]) or _is_kernel(type_, rank) else None


def _is_kernel(type_: TensorType, rank: int) -> bool:
    return type_.rank == rank + 4 and not any(map(is_open, type_.shape))
