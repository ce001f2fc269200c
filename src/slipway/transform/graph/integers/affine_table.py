"""A function of one 8-bit tensor as a table: sigmoid, hard swish, GELU, whatever it consists of."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes
from slipway.ir.visit import post_order_by
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import children, rebuild
from slipway.transform.graph.integers.affine import Affine, Array, call_of, constant_of

MAX_OPERATORS = 64
ALL = 256


def table_of(
    quantize: Call, known: dict[int, Affine], scale: float, zero: int
) -> tuple[Affine, Any] | None:
    """Return (the source, the integers as a lookup in its layout) of a quantised function.

    None when what is quantised is no elementwise function of one tensor of bytes.
    """
    root = quantize.args[0]
    found = _region(root, known)
    if found is None:
        return None
    source, region = found
    given = known[id(source)]
    low, high = dtypes.int_range(given.dtype)
    reals = (np.arange(low, high + 1) - int(given.zero)) * float(given.scale)
    reals = np.clip(reals, given.low, given.high).astype(np.float32)
    values = _evaluate(root, source, region, reals)
    out = quantize.attrs.out_dtype
    low_end, most = dtypes.int_range(out)
    with np.errstate(all="ignore"):
        whole = np.clip(np.round(values / np.float32(scale)) + zero, low_end, most)
    table = np.nan_to_num(whole, nan=float(zero)).astype(out)
    return given, call_of("qnn.lookup", given.value, Constant(table))


class _NoRegion(Exception):
    """What is quantised is no elementwise function of one tensor of bytes."""


def _region(root: Expr, known: dict[int, Affine]) -> tuple[Expr, list[Expr]] | None:
    """Return the one source of bytes and the elementwise calls from it to `root`, in order."""
    shape = root.tensor_type.shape
    sources: list[Expr] = []
    inside = 0

    def below(expr: Expr) -> tuple[Expr, ...]:
        nonlocal inside
        inside += 1
        constant = constant_of(expr)
        if constant is not None and constant.size == 1:
            return ()
        if not isinstance(expr.type, TensorType) or expr.type.shape != shape:
            raise _NoRegion
        if inside > MAX_OPERATORS:
            raise _NoRegion
        if _is_elementwise(expr):
            return children(expr)
        given = known.get(id(expr))
        if sources or given is None or not given.uniform or given.dtype not in ("int8", "uint8"):
            raise _NoRegion
        sources.append(expr)
        return ()

    try:
        order = post_order_by([root], below)
    except _NoRegion:
        return None
    if not sources:
        return None
    return sources[0], [expr for expr in order if expr is not sources[0]]


def _is_elementwise(expr: Expr) -> bool:
    if not isinstance(expr, Call) or not isinstance(expr.op, Op):
        return False
    if is_call_of(expr, "qnn.quantize", "qnn.dequantize"):
        return False
    return op_registry.is_pointwise(expr)


def _evaluate(root: Expr, source: Expr, region: list[Expr], reals: Array) -> Array:
    """Compute the region on a vector of numbers."""
    variable = Var("x", TensorType((ALL,), "float32"))
    done: dict[int, Any] = {id(source): variable}
    for expr in region:
        constant = constant_of(expr)
        if constant is not None:
            done[id(expr)] = Constant(constant.reshape(()))
        else:
            done[id(expr)] = rebuild(expr, lambda child: done[id(child)])
    result = interpret(Function((variable,), done[id(root)]), reals)
    return np.broadcast_to(result, (ALL,))
