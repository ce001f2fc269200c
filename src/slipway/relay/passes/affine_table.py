"""A function of one 8-bit tensor as a table: sigmoid, hard swish, GELU, whatever it consists of."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import OpPattern, is_call_of
from slipway.relay.passes.affine import Affine, Array, constant_of, face
from slipway.relay.types import TensorType
from slipway.relay.visit import children, rebuild

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
    least, most = dtypes.int_range(out)
    with np.errstate(all="ignore"):
        whole = np.clip(np.round(values / np.float32(scale)) + zero, least, most)
    table = np.nan_to_num(whole, nan=float(zero)).astype(out)
    return given, face("qnn.lookup", given.value, Constant(table))


def _region(root: Expr, known: dict[int, Affine]) -> tuple[Expr, list[Expr]] | None:
    """Return the one source of bytes and the elementwise calls from it to `root`, in order."""
    shape = root.tensor_type.shape
    order: list[Expr] = []
    source: Expr | None = None
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        expr, ready = stack.pop()
        if ready:
            order.append(expr)
            continue
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        constant = constant_of(expr)
        if constant is not None and constant.size == 1:
            order.append(expr)
            continue
        if not isinstance(expr.type, TensorType) or expr.type.shape != shape:
            return None
        if len(seen) > MAX_OPERATORS:
            return None
        if not _is_elementwise(expr):
            given = known.get(id(expr))
            bytes_only = given is not None and given.uniform and given.dtype in ("int8", "uint8")
            if not bytes_only or source not in (None, expr):
                return None
            source = expr
            continue
        stack.append((expr, True))
        stack.extend((child, False) for child in children(expr))
    return None if source is None else (source, order)


NOT_OF_ONE = (
    "qnn.quantize", "qnn.dequantize", "nn.prelu", "nn.bias_add", "nn.batch_norm", "expand_dims",
    "broadcast_to",
)  # fmt: skip


def _is_elementwise(expr: Expr) -> bool:
    if not isinstance(expr, Call) or not isinstance(expr.op, Op):
        return False
    pattern = op_registry.get(expr.op.name).pattern
    return pattern <= OpPattern.BROADCAST and not is_call_of(expr, *NOT_OF_ONE)


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
