"""Expressions in the reference interpreter: a closure for each kind of node."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import ExecutionError
from slipway.ir import expr as E
from slipway.ir.interpreter.calls import Closure, compile_call, plain
from slipway.ir.interpreter.values import (
    floordiv,
    floormod,
    maximum,
    minimum,
    numpy_dtype,
    round_bfloat16,
    scalar,
    truncdiv,
    truncmod,
    wrap_small,
)

if TYPE_CHECKING:
    from slipway.ir.interpreter.interpret import Machine


def _var(m: Machine, node: E.Var) -> Closure:
    values, key = m.values, id(node)

    def read() -> Any:
        try:
            return values[key]
        except KeyError:
            raise ExecutionError(f"variable {node.name} is used outside its scope") from None

    return read


def _constant(m: Machine, node: Any) -> Closure:
    value = scalar(node.dtype, node.value)
    if dtypes.code_of(node.dtype) == "bfloat":
        value = round_bfloat16(value)
    return lambda: value


def _wrapping(dtype: str, function: Callable[[Any, Any], Any], a: Closure, b: Closure) -> Closure:
    """Integer arithmetic: Python ints for scalars, NumPy arrays for vectors."""
    low, high = dtypes.int_range(dtypes.scalar_of(dtype))
    bits = dtypes.bits_of(dtype)
    mask, half = (1 << bits) - 1, high + 1

    def run_wrapping() -> Any:
        result = function(a(), b())
        if type(result) is int:
            if low <= result <= high:
                return result
            result &= mask
            return result - (mask + 1) if low < 0 and result >= half else result
        return wrap_small(result, dtype) if bits < 8 else result

    return run_wrapping


def _arithmetic(
    whole: Callable[[Any, Any], Any], real: Callable[[Any, Any], Any]
) -> Callable[[Machine, Any], Closure]:
    def make(m: Machine, node: E.BinaryOp) -> Closure:
        a, b = m.compile(node.a), m.compile(node.b)
        code = dtypes.code_of(node.dtype)
        if code in ("int", "uint"):
            return _wrapping(node.dtype, whole, a, b)
        if code == "bfloat":
            return lambda: round_bfloat16(real(a(), b()))
        return lambda: real(a(), b())

    return make


def _compare(function: Callable[[Any, Any], Any]) -> Callable[[Machine, Any], Closure]:
    def make(m: Machine, node: E.BinaryOp) -> Closure:
        a, b = m.compile(node.a), m.compile(node.b)
        return lambda: function(a(), b())

    return make


def _select(m: Machine, node: E.Select) -> Closure:
    condition = m.compile(node.condition)
    yes, no = m.compile(node.true_value), m.compile(node.false_value)
    kind = numpy_dtype(dtypes.scalar_of(node.dtype))

    def run_select() -> Any:
        test, first, second = condition(), yes(), no()
        if np.ndim(test) == 0:
            return first if test else second
        return np.where(test, first, second).astype(kind)

    return run_select


def _let(m: Machine, node: E.Let) -> Closure:
    value, body, key = m.compile(node.value), m.compile(node.body), id(node.var)

    def run_let() -> Any:
        m.values[key] = value()
        return body()

    return run_let


def _cast(m: Machine, node: E.Cast) -> Closure:
    value, dtype = m.compile(node.value), node.dtype
    want, code = numpy_dtype(dtypes.scalar_of(dtype)), dtypes.code_of(dtype)

    def run_cast() -> Any:
        given = np.asarray(value())
        if code == "bfloat":
            return round_bfloat16(given)
        if given.dtype.kind == "f" and want.kind in "iu":
            given = np.trunc(given.astype(np.float64)).astype(np.int64)
        result = given.astype(want)
        if dtypes.bits_of(dtype) < 8:
            result = np.asarray(wrap_small(result, dtype))
        if result.ndim:
            return result
        return int(result) if want.kind in "iu" else result[()]

    return run_cast


def _load(m: Machine, node: E.BufferLoad) -> Closure:
    position, buffer = m.locate(node.buffer, node.indices), node.buffer
    code = dtypes.code_of(node.dtype)
    whole = code in ("int", "uint")

    def run_load() -> Any:
        at = position()
        values = m.read(buffer, at)
        if code == "bfloat":
            return (np.asarray(values).astype(np.uint32) << 16).view(np.float32)[()]
        return int(values) if whole and type(at) is int else values

    return run_load


def _ramp(m: Machine, node: E.Ramp) -> Closure:
    base, stride = m.compile(node.base), m.compile(node.stride)
    steps = np.arange(node.num_lanes, dtype=numpy_dtype(node.base.dtype))
    return lambda: base() + stride() * steps


def _broadcast(m: Machine, node: E.Broadcast) -> Closure:
    value, kind = m.compile(node.value), numpy_dtype(dtypes.scalar_of(node.dtype))
    return lambda: np.tile(np.atleast_1d(np.asarray(value(), dtype=kind)), node.num_lanes)


def _shuffle(m: Machine, node: E.Shuffle) -> Closure:
    vectors = [m.compile(v) for v in node.vectors]
    kind, picked = numpy_dtype(dtypes.scalar_of(node.dtype)), list(node.indices)

    def run_shuffle() -> Any:
        lanes = np.concatenate([np.atleast_1d(np.asarray(v(), dtype=kind)) for v in vectors])[
            picked
        ]
        return lanes if len(picked) > 1 else plain(lanes[0:1].reshape(()))

    return run_shuffle


EXPRESSIONS: dict[type, Callable[[Machine, Any], Closure]] = {
    E.Var: _var,
    E.SizeVar: _var,
    E.IntImm: _constant,
    E.FloatImm: _constant,
    E.Cast: _cast,
    E.Add: _arithmetic(operator.add, operator.add),
    E.Sub: _arithmetic(operator.sub, operator.sub),
    E.Mul: _arithmetic(operator.mul, operator.mul),
    E.Div: _arithmetic(truncdiv, np.divide),
    E.Mod: _arithmetic(truncmod, np.fmod),
    E.FloorDiv: _arithmetic(floordiv, np.floor_divide),
    E.FloorMod: _arithmetic(floormod, np.mod),
    E.Min: _arithmetic(minimum, minimum),
    E.Max: _arithmetic(maximum, maximum),
    E.EQ: _compare(operator.eq),
    E.NE: _compare(operator.ne),
    E.LT: _compare(operator.lt),
    E.LE: _compare(operator.le),
    E.GT: _compare(operator.gt),
    E.GE: _compare(operator.ge),
    E.And: _compare(np.logical_and),
    E.Or: _compare(np.logical_or),
    E.Not: lambda m, n: (lambda a: lambda: np.logical_not(a()))(m.compile(n.a)),
    E.Select: _select,
    E.BufferLoad: _load,
    E.Let: _let,
    E.Call: compile_call,
    E.Ramp: _ramp,
    E.Broadcast: _broadcast,
    E.Shuffle: _shuffle,
}
