"""Expressions to values, one lane at a time.

What occurs several times in an expression is computed once, where the values of the first time
can still be seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slipway import dtypes
from slipway.codegen import divide, legalize
from slipway.codegen.bounds import ValueBounds
from slipway.codegen.extremes import number_first
from slipway.codegen.llvm.types import bfloat_bits, half_bits
from slipway.codegen.multiply_add import product_of
from slipway.codegen.ssa.sink import Memory, Sink, Value, memory_dtype, register_dtype
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir.buffer import Buffer
from slipway.ir.ops import const
from slipway.ir.visit import walk
from slipway.target.capability import Capability

Lane = int | None
_HALVES = ("float16", "bfloat16")
_SIGNS = {E.Add: "add", E.Sub: "sub", E.Mul: "mul"}
_LOGICAL = {E.Add: "or", E.Sub: "xor", E.Mul: "and"}
_COMPARE = {E.EQ: "==", E.NE: "!=", E.LT: "<", E.LE: "<=", E.GT: ">", E.GE: ">="}
_MAGIC = 1.5 * 2.0**23
_LEAVES = (E.Var, E.SizeVar, E.IntImm, E.FloatImm)


class SsaExpressions:
    """Gives the value of an expression; what it takes to compute it goes to the sink."""

    def __init__(self, sink: Sink, capability: Capability, name: str) -> None:
        self.sink = sink
        self.capability = capability
        self.strict = capability.target.is_strict
        # A driver that computes on a processor runs both sides of a branch, for the lanes of each.
        self.in_lanes = capability.target.attrs.get("device_type") == "cpu"
        self.native_half = capability.half == "native"
        # To float16 by integers: a device may round its own conversion towards zero.
        self.rounding = replace(capability, half="soft")
        self.name = name
        self.bounds = ValueBounds()
        self.values: dict[int, Value | list[Value]] = {}  # of Vars, by id; a list has its lanes
        self.memories: dict[int, Memory] = {}  # by id of the data Var
        self.stored: set[int] = set()  # data Vars, by id, that the kernel writes
        self.known: list[dict[tuple[int, Lane], Value]] = [{}]  # innermost branch last
        self.keep: list[Any] = []  # what has an id above

    # -- entry -------------------------------------------------------------------------------------

    def expr(self, node: E.PrimExpr, lane: Lane = None) -> Value:
        """Return the value of (one lane of) `node`."""
        if isinstance(node, _LEAVES):
            return self._compute(node, lane)
        key = (id(node), lane)
        for level in self.known:
            if key in level:
                return level[key]
        value = self._compute(node, lane)
        self.known[-1][key] = value
        self.keep.append(node)
        return value

    def _compute(self, node: E.PrimExpr, lane: Lane) -> Value:
        method = getattr(self, "_s_" + type(node).__name__, None)
        legalize.refuse_carried(node)
        if method is None:
            raise CodegenError(
                f"a {type(node).__name__} cannot be compiled: lower it first ({node})"
            )
        return method(node, lane)  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Compute anew what memory or a variable may have changed."""
        for level in self.known:
            level.clear()
        self.keep.clear()

    def lanes_of(self, node: E.PrimExpr) -> list[Value]:
        """Return the value of each lane of `node`."""
        if node.lanes == 1:
            return [self.expr(node)]
        return [self.expr(node, lane) for lane in range(node.lanes)]

    # -- leaves ------------------------------------------------------------------------------------

    def _s_Var(self, node: E.Var, lane: Lane) -> Value:
        found = self.values.get(id(node))
        if found is None:
            raise CodegenError(
                f"{self.name}: variable {node.name!r} is used where it is not defined: it is "
                "neither a parameter, nor a size of one, nor a loop or let variable around its use"
            )
        return found[lane or 0] if isinstance(found, list) else found

    _s_SizeVar = _s_Var

    def _s_IntImm(self, node: E.IntImm, lane: Lane) -> Value:
        return self.sink.constant(register_dtype(node.dtype), node.value)

    def _s_FloatImm(self, node: E.FloatImm, lane: Lane) -> Value:
        scalar = dtypes.scalar_of(node.dtype)
        if scalar in _HALVES:
            bits = half_bits(node.value) if scalar == "float16" else bfloat_bits(node.value)
            return self.sink.constant("uint16", bits)
        return self.sink.constant(scalar, node.value)

    # -- arithmetic --------------------------------------------------------------------------------

    def _binary(self, node: E.BinaryOp, lane: Lane) -> Value:
        scalar = dtypes.scalar_of(node.dtype)
        if scalar in _HALVES and not self._computes_in_halves(scalar):
            return self.expr(legalize.in_float32(node), lane)
        if scalar == "float32" and not self.sink.keeps_sums and _is_magic(node):
            return self._whole_part(node, lane)
        if dtypes.is_float(scalar) and not self.strict:
            product = product_of(node)
            if product is not None:
                return self._fused(node, product, lane)
        a, b = self._number(node.a, lane), self._number(node.b, lane)
        table = _LOGICAL if scalar == "bool" else _SIGNS
        return self._kept(self.sink.binary(table[type(node)], a, b))

    _s_Add = _s_Sub = _s_Mul = _binary

    def _computes_in_halves(self, scalar: str) -> bool:
        return self.native_half and scalar == "float16"

    def _number(self, node: E.PrimExpr, lane: Lane) -> Value:
        """Return the value of an operand; of a float16 that is computed with, the number."""
        value = self.expr(node, lane)
        if self._computes_in_halves(dtypes.scalar_of(node.dtype)):
            return self.sink.bitcast(value, "float16")
        return value

    def _kept(self, value: Value) -> Value:
        """Return a result as it is kept: a float16 as its 16 bits."""
        return self.sink.bitcast(value, "uint16") if value.dtype == "float16" else value

    def _fused(self, node: E.BinaryOp, product: E.Mul, lane: Lane) -> Value:
        """Return a sum with a product as one instruction, as processors compute it."""
        first = product is node.a
        other = self._number(node.b if first else node.a, lane)
        x, y = self._number(product.a, lane), self._number(product.b, lane)
        if isinstance(node, E.Sub):
            if first:
                other = self.sink.negate(other)
            else:
                x = self.sink.negate(x)
        return self._kept(self.sink.math("fma", x, y, other))

    def _whole_part(self, node: E.BinaryOp, lane: Lane) -> Value:
        """Return ``t - magic``, where t = x + magic has the nearest integer of x in its bits."""
        shifted = self.sink.bitcast(self.expr(node.a, lane), "int32")
        magic = self.sink.bitcast(self.expr(node.b, lane), "int32")
        return self.sink.convert(self.sink.binary("sub", shifted, magic), "float32")

    def _s_Div(self, node: E.Div, lane: Lane) -> Value:
        if dtypes.scalar_of(node.dtype) in _HALVES:
            return self.expr(legalize.in_float32(node), lane)
        if dtypes.is_integral(node.dtype):
            return self.expr(divide.truncated(node, self.bounds), lane)
        return self.sink.binary("div", self.expr(node.a, lane), self.expr(node.b, lane))

    def _s_Mod(self, node: E.Mod, lane: Lane) -> Value:
        if dtypes.is_float(node.dtype):
            return self.expr(legalize.fmod(node.a, node.b), lane)
        return self.expr(divide.truncated(node, self.bounds), lane)

    def _s_FloorDiv(self, node: E.FloorDiv, lane: Lane) -> Value:
        return self.expr(divide.floor_div(node, self.bounds), lane)

    def _s_FloorMod(self, node: E.FloorMod, lane: Lane) -> Value:
        return self.expr(divide.floor_mod(node, self.bounds), lane)

    def _choose(self, node: E.BinaryOp, lane: Lane) -> Value:
        scalar = dtypes.scalar_of(node.dtype)
        if scalar in _HALVES and not self._computes_in_halves(scalar):
            return self.expr(legalize.in_float32(node), lane)
        sign = "<" if type(node) is E.Min else ">"
        first, second, is_number = node.a, node.b, True
        if dtypes.is_float(node.dtype):
            first, second, is_number = number_first(node)
        b, a = self._number(second, lane), self._number(first, lane)
        takes = self.sink.compare(sign, a, b)
        if not is_number:
            takes = self.sink.binary("or", takes, self.sink.math("isnan", a))
        return self._kept(self.sink.select(takes, a, b))

    _s_Min = _s_Max = _choose

    def _compare(self, node: Any, lane: Lane) -> Value:
        scalar = dtypes.scalar_of(node.a.dtype)
        if scalar in _HALVES and not self._computes_in_halves(scalar):
            return self.expr(legalize.in_float32(node), lane)
        a, b = self._number(node.a, lane), self._number(node.b, lane)
        sign = _COMPARE[type(node)]
        if a.dtype == "bool":
            if sign in ("==", "!="):
                differ = self.sink.binary("xor", a, b)
                return differ if sign == "!=" else self.sink.negate(differ)
            a, b = self.number(a, "int32"), self.number(b, "int32")
        return self.sink.compare(sign, a, b)

    _s_EQ = _s_NE = _s_LT = _s_LE = _s_GT = _s_GE = _compare

    def _s_And(self, node: E.And, lane: Lane) -> Value:
        a = self.expr(node.a, lane)
        if not _loads(node.b):
            return self.sink.binary("and", a, self.expr(node.b, lane))
        no = self.sink.constant("bool", 0)
        return self.chosen(a, lambda: self.expr(node.b, lane), lambda: no)

    def _s_Or(self, node: E.Or, lane: Lane) -> Value:
        a = self.expr(node.a, lane)
        if not _loads(node.b):
            return self.sink.binary("or", a, self.expr(node.b, lane))
        yes = self.sink.constant("bool", 1)
        return self.chosen(a, lambda: yes, lambda: self.expr(node.b, lane))

    def _s_Not(self, node: E.Not, lane: Lane) -> Value:
        return self.sink.negate(self.expr(node.a, lane))

    def _s_Select(self, node: E.Select, lane: Lane) -> Value:
        test = self.expr(node.condition, lane if node.condition.lanes > 1 else None)
        yes, no = self.expr(node.true_value, lane), self.expr(node.false_value, lane)
        return self.sink.select(test, yes, no)

    def _s_Let(self, node: E.Let, lane: Lane) -> Value:
        self.let(node.var, node.value, lane)
        return self.expr(node.body, lane)

    def let(self, var: E.Var, value: E.PrimExpr, lane: Lane = None) -> None:
        """Name a value: copies of an expression share the variable and may give it another."""
        found = self.expr(value, lane)
        self.bounds.bind_value(var, value)
        self.name_value(var, found)

    def name_value(self, var: E.Var, value: Value | list[Value]) -> None:
        """Let `var` stand for a value; what was computed of another one is forgotten."""
        if self.values.get(id(var), value) != value:
            self.forget()
        self.values[id(var)] = value

    def chosen(self, condition: Value, then: Any, otherwise: Any) -> Value:
        """Return one of two values, of which only that one is computed."""
        return self.sink.choose(
            condition, lambda: self.inside(then), lambda: self.inside(otherwise)
        )

    def inside(self, do: Any) -> Any:
        """Do something whose values cannot be seen behind it."""
        self.known.append({})
        try:
            return do()
        finally:
            self.known.pop()

    # -- conversion --------------------------------------------------------------------------------

    def _s_Cast(self, node: E.Cast, lane: Lane) -> Value:
        source, target = dtypes.scalar_of(node.value.dtype), dtypes.scalar_of(node.dtype)
        if source == target:
            return self.expr(node.value, lane)
        if self.native_half and (source, target) == ("float16", "float32"):
            return self.sink.convert(self._number(node.value, lane), "float32")
        expanded = legalize.cast_of_half(node, self.rounding)
        if expanded is not None:
            return self.expr(expanded, lane)
        value = self.expr(node.value, lane)
        return self.truth(value) if target == "bool" else self.number(value, target)

    def truth(self, value: Value) -> Value:
        """Return whether a number is not zero."""
        if value.dtype == "bool":
            return value
        return self.sink.compare("!=", value, self.sink.constant(value.dtype, 0))

    def number(self, value: Value, dtype: str) -> Value:
        """Return a value as a number of another dtype."""
        if value.dtype == dtype:
            return value
        if value.dtype == "bool":
            one, zero = (self.sink.constant(dtype, n) for n in (1, 0))
            return self.sink.select(value, one, zero)
        whole = dtypes.is_integral(dtype) and dtypes.bits_of(dtype) < 32
        if dtypes.is_float(value.dtype) and whole:
            value = self.sink.convert(value, "int32")
        return self.sink.convert(value, dtype)

    # -- vectors -----------------------------------------------------------------------------------

    def _s_Broadcast(self, node: E.Broadcast, lane: Lane) -> Value:
        inner = node.value.lanes
        return self.expr(node.value, (lane or 0) % inner if inner > 1 else None)

    def _s_Ramp(self, node: E.Ramp, lane: Lane) -> Value:
        step = E.Mul(node.stride, const(lane or 0, node.stride.dtype))
        if isinstance(node.stride, E.IntImm):
            step = const(node.stride.value * (lane or 0), node.stride.dtype)  # type: ignore[assignment]
        return self.expr(E.Add(node.base, step) if lane else node.base)

    def _s_Shuffle(self, node: E.Shuffle, lane: Lane) -> Value:
        position = node.indices[lane or 0]
        for vector in node.vectors:
            if position < vector.lanes:
                return self.expr(vector, position if vector.lanes > 1 else None)
            position -= vector.lanes
        raise CodegenError(f"a Shuffle picks lane {node.indices[lane or 0]}, which does not exist")

    # -- memory ------------------------------------------------------------------------------------

    def element(
        self, buffer: Buffer, indices: tuple[E.PrimExpr, ...], lane: Lane
    ) -> tuple[Memory, Value]:
        """Return the memory of an access, and the element of it."""
        memory = self.memories.get(id(buffer.data))
        if memory is None:
            raise CodegenError(f"{self.name}: the memory of {buffer.name!r} is not known here")
        kept = memory_dtype(buffer.dtype)
        if memory.dtype != kept:
            if memory.scope != "global":
                raise CodegenError(
                    f"{self.name}: {buffer.name!r} is memory of {memory.dtype} in a kernel, and "
                    f"is read as {kept}. Give each type memory of its own"
                )
            memory = Memory("global", memory.number, memory.name, kept)
        inner = dtypes.lanes_of(buffer.dtype)
        position = lane or 0
        last = indices[-1] if indices else const(0, "int32")
        if last.lanes > 1:
            ramp = legalize.as_ramp(last)
            if ramp is not None:
                last = E.Add(ramp[0], const(ramp[1] * (position // inner), ramp[0].dtype))
            elif position // inner or not isinstance(last, E.Broadcast):
                return memory, self.expr(last, position // inner)
        flat = legalize.flatten_index(buffer, (*indices[:-1], last) if indices else ())
        if inner > 1:
            flat = flat * inner + position % inner
        return memory, self.expr(flat)

    def _s_BufferLoad(self, node: E.BufferLoad, lane: Lane) -> Value:
        memory, index = self.element(node.buffer, node.indices, lane)
        value = self.sink.load(memory, index)
        return self.truth(value) if dtypes.scalar_of(node.dtype) == "bool" else value


def _is_magic(node: E.BinaryOp) -> bool:
    """Return whether a difference takes `codegen.math.build.round_magic` off a sum."""
    return isinstance(node, E.Sub) and isinstance(node.b, E.FloatImm) and node.b.value == _MAGIC


def _loads(node: E.PrimExpr) -> bool:
    return any(isinstance(inner, E.BufferLoad) for inner in walk(node))
