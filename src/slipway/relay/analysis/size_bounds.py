"""Between which ends numbers lie that a model computes from sizes in floats, as detectors do.

    h' = floor(h * min(800 / min(h, w), 1333 / max(h, w)))

is no formula of h and w, but lies in an interval where they do.  A float operation widens its
interval by more than its rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from slipway.dtypes import is_float
from slipway.ir.expr import SizeVar, Var
from slipway.ir.visit import post_order_by, substitute
from slipway.relay.analysis.size_values import MOVES, SizeValues, is_small
from slipway.relay.dims import SymbolDim, dim_of
from slipway.relay.expr import Call, Expr, Op, Tuple, TupleGetItem
from slipway.relay.visit import children

Ends = Any  # a pair of float64 arrays, or a list of such pairs for a tuple; None: not known
WIDENING = {"float64": 2.0**-50, "float32": 2.0**-22}  # of a float operation, to either side
COARSE = 2.0**-6  # of the narrower types


PARTS = {1: 64, 2: 12, 3: 5}  # of each range, by how many there are: a side that is small in
# one place is so in another


def bounds_of_values(
    expr: Expr, sizes: SizeValues, ends: Mapping[int, Any] | None = None
) -> tuple[Any, Any] | None:
    """Return the least and the largest that each element of a small tensor can be, as float64.

    None where nothing is known of one.  Each part of the sizes' ranges has an interval of its own.
    `ends` has those of variables, by id.
    """
    order = post_order_by([expr], _below)
    told = {id(e): sizes.of(e) for e in order if is_small(e)}
    dims = dict.fromkeys(d for known in told.values() if known is not None for d in known.flat)
    variables = dict.fromkeys(v for d in dims if isinstance(d, SymbolDim) for v in d.variables)
    lows, highs = [], []
    for box in product(*(_parts(v, PARTS.get(len(variables), 1)) for v in variables)):
        ranges = dict(zip(variables, box, strict=True))
        known: dict[int, Ends] = dict(ends or {})
        for each in order:
            if id(each) not in (ends or {}):
                known[id(each)] = _ends(each, told.get(id(each)), ranges, known)
        if known[id(expr)] is None:
            return None
        low, high = known[id(expr)]
        lows.append(low)
        highs.append(high)
    return np.minimum.reduce(lows), np.maximum.reduce(highs)


def _parts(variable: Var, count: int) -> list[Var]:
    """Return variables over parts of the range of one."""
    whole = SymbolDim(variable)
    if whole.high is None:
        return [variable]
    ends = np.unique(np.linspace(whole.low, whole.high + 1, count + 1).astype(int))
    pairs = pairwise(ends.tolist())
    return [SizeVar(variable.name, "int32", low, end - 1) for low, end in pairs]


def _below(expr: Expr) -> Sequence[Expr]:
    if isinstance(expr, Tuple | TupleGetItem):
        return children(expr)
    if isinstance(expr, Call) and isinstance(expr.op, Op) and _rule(expr.op.name) is not None:
        return [a for a in expr.args if isinstance(a, Tuple) or is_small(a)]
    return ()


def _rule(name: str) -> Callable[..., Ends] | None:
    return _RULES.get(name) or (_moved if name in MOVES else None)


def _ends(expr: Expr, told: Any, ranges: dict[Var, Var], known: dict[int, Ends]) -> Ends:
    if isinstance(expr, Tuple):
        parts = [known.get(id(f)) for f in expr.fields]
        return None if any(p is None for p in parts) else parts
    if isinstance(expr, TupleGetItem):
        whole = known.get(id(expr.tuple_value))
        return None if whole is None else whole[expr.index]
    if told is not None:
        pairs = [_of_size(v, ranges) for v in told.flat]
        ends = np.array(pairs, np.float64).reshape(*told.shape, 2)
        return ends[..., 0], ends[..., 1]
    if not isinstance(expr, Call) or not isinstance(expr.op, Op):
        return None
    given: list[Ends] = [known.get(id(a)) for a in expr.args]
    rule = _rule(expr.op.name)
    if expr.op.name == "where":  # either of both, whatever the condition is
        given[0] = ()
    if rule is None or any(g is None for g in given):
        return None
    if expr.op.name == "split":
        lows, highs = (MOVES["split"](expr, end) for end in given[0] or ())
        return list(zip(lows, highs, strict=True))
    with np.errstate(all="ignore"):
        low, high = rule(expr, *given)
    if np.isnan(low).any() or np.isnan(high).any():
        return None
    return _widened(low, high, expr.tensor_type.dtype)


def _of_size(value: Any, ranges: dict[Var, Var]) -> tuple[float, float]:
    if not isinstance(value, SymbolDim):
        return float(value), float(value)
    part = dim_of(substitute(value.formula, {v: ranges[v] for v in value.variables}))
    if not isinstance(part, SymbolDim):
        return float(part), float(part)
    return part.low, np.inf if part.high is None else part.high


def _widened(low: Any, high: Any, dtype: str) -> tuple[Any, Any]:
    if not is_float(dtype):
        return low, high
    by = WIDENING.get(dtype, COARSE)
    return low - by * np.abs(low), high + by * np.abs(high)


def _moved(call: Call, *given: Ends) -> Ends:
    """What moves elements moves both ends of them; positions are known."""
    rule = MOVES[call.op.name]
    if call.op.name == "take":
        if (given[1][0] != given[1][1]).any():
            return np.full(call.tensor_type.shape, -np.inf), np.full(call.tensor_type.shape, np.inf)
        return tuple(rule(call, end, given[1][0].astype(object)) for end in given[0])
    if isinstance(given[0], list):
        return tuple(rule(call, [part[side] for part in given[0]]) for side in (0, 1))
    return tuple(rule(call, end) for end in given[0])


def _each_end(function: Any) -> Callable[..., Ends]:
    """A rule for what never falls where an argument rises."""
    return lambda call, *given: tuple(function(*ends) for ends in zip(*given, strict=True))


def _corners(function: Any) -> Callable[..., Ends]:
    """A rule for what has its extremes where both arguments have theirs."""

    def rule(call: Call, a: Ends, b: Ends) -> Ends:
        found = [function(x, y) for x in a for y in b]
        return np.minimum.reduce(found), np.maximum.reduce(found)

    return rule


def _quotient(call: Call, a: Ends, b: Ends) -> Ends:
    free = np.broadcast_to((b[0] <= 0) & (b[1] >= 0), call.tensor_type.shape)
    low, high = _corners(np.divide)(call, a, b)
    if not is_float(call.tensor_type.dtype):
        low, high = np.floor(low), np.ceil(high)
    return np.where(free, -np.inf, low), np.where(free, np.inf, high)


def _reduced(function: Any) -> Callable[..., Ends]:
    def rule(call: Call, data: Ends) -> Ends:
        axes = call.attrs.axis
        along = tuple(axes) if axes else None
        return tuple(function(end, axis=along, keepdims=bool(call.attrs.keepdims)) for end in data)

    return rule


def _cast(call: Call, data: Ends) -> Ends:
    if is_float(call.tensor_type.dtype):
        return data
    return tuple(np.trunc(end) for end in data)


_RULES: dict[str, Callable[..., Ends]] = {
    "add": _each_end(np.add), "minimum": _each_end(np.minimum), "maximum": _each_end(np.maximum),
    "floor": _each_end(np.floor), "ceil": _each_end(np.ceil), "round": _each_end(np.round),
    "subtract": lambda call, a, b: (a[0] - b[1], a[1] - b[0]),
    "negative": lambda call, a: (-a[1], -a[0]),
    "multiply": _corners(np.multiply), "divide": _quotient, "floor_divide": _quotient,
    "cast": _cast, "min": _reduced(np.min), "max": _reduced(np.max), "sum": _reduced(np.sum),
    "sqrt": _each_end(np.sqrt),
    "clip": lambda call, a: tuple(np.clip(end, call.attrs.a_min, call.attrs.a_max) for end in a),
    "where": lambda call, c, a, b: (np.minimum(a[0], b[0]), np.maximum(a[1], b[1])),
}  # fmt: skip
