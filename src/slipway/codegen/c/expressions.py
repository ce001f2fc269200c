"""Expressions to C, one lane at a time.

A vector expression is spelled for one `lane`: a constant, or the name of the lane loop's
variable.  Values used more than once become ``const`` temporaries in front of the statement.
Signed arithmetic that must wrap goes through unsigned types, except in buffer indices.
"""

from __future__ import annotations

import re
from typing import Any

from slipway import dtypes
from slipway.codegen import divide, legalize
from slipway.codegen.bounds import ValueBounds
from slipway.codegen.c import spelling
from slipway.codegen.extremes import number_first
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir.buffer import Buffer
from slipway.ir.ops import const
from slipway.target.capability import Capability

Lane = int | str | None
OPERATORS = {E.Add: "+", E.Sub: "-", E.Mul: "*"}
COMPARISONS = {E.EQ: "==", E.NE: "!=", E.LT: "<", E.LE: "<=", E.GT: ">", E.GE: ">="}
_SIMPLE = re.compile(r"\w+|\(-?[\w.]+\)")
_HALVES = ("float16", "bfloat16")


class CExpressions:
    """Spells expressions; temporaries are appended to `lines` at the current depth."""

    def __init__(self, capability: Capability) -> None:
        self.capability = capability
        self.bounds = ValueBounds()
        self.lines: list[str] = []
        self.depth = 1
        self.helpers: set[str] = set()
        self.externs: dict[str, str] = {}
        self.names: dict[int, str] = {}  # id(Var) -> C name
        self.vectors: set[int] = set()  # Vars held as arrays, one element per lane
        self.pointer_types: dict[int, str] = {}  # id(data Var) -> element type it is declared with
        self.taken: set[str] = set()
        self.indexing = False
        self.temporaries: list[str] = []  # which may turn out unused
        self.keep: list[Any] = []

    # -- names and lines -----------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("  " * self.depth + text)

    def fresh(self, hint: str) -> str:
        """Return an unused C identifier like `hint`."""
        base = re.sub(r"\W", "_", hint) or "v"
        if base[0].isdigit() or base in _KEYWORDS or base.startswith("slw_"):
            base = "v_" + base
        name, number = base, 0
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    def define(self, var: E.Var, name: str) -> str:
        """Let `var` be spelled `name`."""
        self.names[id(var)] = name
        self.keep.append(var)
        return name

    def temporary(self, dtype: str, text: str, hint: str = "t") -> str:
        """Store `text` in a new constant; return its name."""
        name = self.fresh(hint)
        ty = spelling.c_type(dtype)
        self.line(f"const {ty} {name} = {text};")
        return name

    def simple(self, node: E.PrimExpr, lane: Lane) -> str:
        """Return the value of `node` as text that may be repeated."""
        text = self.expr(node, lane)
        if _SIMPLE.fullmatch(text):
            return text
        return self.temporary(node.dtype, text)

    # -- entry ---------------------------------------------------------------------------------

    def expr(self, node: E.PrimExpr, lane: Lane = None) -> str:
        """Return the C spelling of (one lane of) `node`."""
        method = getattr(self, "_c_" + type(node).__name__, None)
        legalize.refuse_carried(node)
        if method is None:
            raise CodegenError(
                f"a {type(node).__name__} cannot be compiled: lower it first ({node})"
            )
        return method(node, lane)  # type: ignore[no-any-return]

    def index(self, node: E.PrimExpr) -> str:
        """Return the spelling of a scalar index: arithmetic in it does not wrap."""
        before, self.indexing = self.indexing, True
        text = self.expr(node)
        self.indexing = before
        return text

    # -- leaves --------------------------------------------------------------------------------

    def _c_Var(self, node: E.Var, lane: Lane) -> str:
        name = self.names.get(id(node))
        if name is None:
            raise CodegenError(
                f"variable {node.name!r} is used where it is not defined: it is neither a "
                "parameter, nor a size of one, nor a loop or let variable around its use"
            )
        return f"{name}[{lane}]" if id(node) in self.vectors else name

    _c_SizeVar = _c_Var

    def _c_IntImm(self, node: E.IntImm, lane: Lane) -> str:
        return spelling.int_text(node.value, node.dtype)

    def _c_FloatImm(self, node: E.FloatImm, lane: Lane) -> str:
        return spelling.float_text(node.value, node.dtype, self.helpers)

    # -- arithmetic ----------------------------------------------------------------------------

    def _binary(self, node: E.BinaryOp, lane: Lane) -> str:
        scalar = dtypes.scalar_of(node.dtype)
        sign = OPERATORS[type(node)]
        if scalar in _HALVES:
            return self.expr(legalize.in_float32(node), lane)
        a, b = self.expr(node.a, lane), self.expr(node.b, lane)
        if dtypes.is_float(scalar):
            return f"({a} {sign} {b})"
        if scalar == "bool":
            return f"({a} {dict(zip('+-*', '|^&', strict=True))[sign]} {b})"
        bits = dtypes.bits_of(scalar)
        if bits < 32:
            return f"({spelling.c_type(scalar)})((uint32_t){a} {sign} (uint32_t){b})"
        if self.indexing or not dtypes.is_int(scalar):
            return f"({a} {sign} {b})"
        return f"(int{bits}_t)((uint{bits}_t){a} {sign} (uint{bits}_t){b})"

    _c_Add = _c_Sub = _c_Mul = _binary

    def _c_Div(self, node: E.Div, lane: Lane) -> str:
        if dtypes.scalar_of(node.dtype) in _HALVES:
            return self.expr(legalize.in_float32(node), lane)
        if dtypes.is_integral(node.dtype):
            return self.expr(divide.truncated(node, self.bounds), lane)
        return f"({self.expr(node.a, lane)} / {self.expr(node.b, lane)})"

    def _c_Mod(self, node: E.Mod, lane: Lane) -> str:
        if dtypes.is_float(node.dtype):
            return self.expr(legalize.fmod(node.a, node.b), lane)
        return self.expr(divide.truncated(node, self.bounds), lane)

    def _c_FloorDiv(self, node: E.FloorDiv, lane: Lane) -> str:
        return self.expr(divide.floor_div(node, self.bounds), lane)

    def _c_FloorMod(self, node: E.FloorMod, lane: Lane) -> str:
        return self.expr(divide.floor_mod(node, self.bounds), lane)

    def _choose(self, node: E.BinaryOp, lane: Lane) -> str:
        if dtypes.scalar_of(node.dtype) in _HALVES:
            return self.expr(legalize.in_float32(node), lane)
        sign = "<" if type(node) is E.Min else ">"
        if not dtypes.is_float(node.dtype):
            a, b = self.simple(node.a, lane), self.simple(node.b, lane)
            return f"({a} {sign} {b} ? {a} : {b})"
        first, second, is_number = number_first(node)
        b, a = self.simple(second, lane), self.simple(first, lane)
        no_number = "" if is_number else f" || {a} != {a}"
        return f"({a} {sign} {b}{no_number} ? {a} : {b})"  # b where only b is a NaN

    _c_Min = _c_Max = _choose

    def _compare(self, node: Any, lane: Lane) -> str:
        if dtypes.scalar_of(node.a.dtype) in _HALVES:
            return self.expr(legalize.in_float32(node), lane)
        return f"({self.expr(node.a, lane)} {COMPARISONS[type(node)]} {self.expr(node.b, lane)})"

    _c_EQ = _c_NE = _c_LT = _c_LE = _c_GT = _c_GE = _compare

    def _c_And(self, node: E.And, lane: Lane) -> str:
        return f"({self.expr(node.a, lane)} && {self.expr(node.b, lane)})"

    def _c_Or(self, node: E.Or, lane: Lane) -> str:
        return f"({self.expr(node.a, lane)} || {self.expr(node.b, lane)})"

    def _c_Not(self, node: E.Not, lane: Lane) -> str:
        return f"(!{self.expr(node.a, lane)})"

    def _c_Select(self, node: E.Select, lane: Lane) -> str:
        test = self.expr(node.condition, lane if node.condition.lanes > 1 else None)
        yes, no = self.expr(node.true_value, lane), self.expr(node.false_value, lane)
        return f"({test} ? {yes} : {no})"

    def _c_Let(self, node: E.Let, lane: Lane) -> str:
        self.let(node.var, node.value, lane)
        return self.expr(node.body, lane)

    def let(self, var: E.Var, value: E.PrimExpr, lane: Lane = None) -> None:
        """Store `value` in a new constant that `var` stands for."""
        self.bounds.bind_value(var, value)
        text = self.expr(value, lane)
        name = self.fresh(var.name)
        if var.dtype == "handle":
            self.line(f"void* const {name} = {text};")
        else:
            self.line(f"const {spelling.c_type(var.dtype)} {name} = {text};")
        self.temporaries.append(name)
        self.define(var, name)

    # -- conversion ----------------------------------------------------------------------------

    def _c_Cast(self, node: E.Cast, lane: Lane) -> str:
        source, target = dtypes.scalar_of(node.value.dtype), dtypes.scalar_of(node.dtype)
        if source == target:
            return self.expr(node.value, lane)
        expanded = legalize.cast_of_half(node, self.capability)
        if expanded is not None:
            return self.expr(expanded, lane)
        value = self.expr(node.value, lane)
        if target == "bool":
            return f"({value} != 0)"
        ty = spelling.c_type(target)
        if dtypes.is_float(source) and dtypes.is_integral(target) and dtypes.bits_of(target) < 32:
            return f"({ty})(int32_t){value}"
        return f"({ty}){value}"

    # -- vectors -------------------------------------------------------------------------------

    def _c_Broadcast(self, node: E.Broadcast, lane: Lane) -> str:
        inner = node.value.lanes
        if inner == 1:
            return self.expr(node.value)
        if isinstance(lane, int):
            return self.expr(node.value, lane % inner)
        return self.expr(node.value, f"({lane} % {inner})")

    def _c_Ramp(self, node: E.Ramp, lane: Lane) -> str:
        base = self.expr(node.base)
        if isinstance(lane, int) and isinstance(node.stride, E.IntImm):
            step = lane * node.stride.value
            return base if step == 0 else f"({base} + {step})"
        stride = node.stride.value if isinstance(node.stride, E.IntImm) else 0
        if stride == -1:
            return f"({'' if base == '0' else base + ' '}- {lane})"
        offset = f"{lane}" if stride == 1 else f"{self.expr(node.stride)} * {lane}"
        return f"({offset})" if base == "0" else f"({base} + {offset})"

    def _c_Shuffle(self, node: E.Shuffle, lane: Lane) -> str:
        if lane is None:
            lane = 0
        if isinstance(lane, str):
            raise CodegenError("internal: a Shuffle needs its lanes spelled out")
        position = node.indices[lane]
        for vector in node.vectors:
            if position < vector.lanes:
                return self.expr(vector, position if vector.lanes > 1 else None)
            position -= vector.lanes
        raise CodegenError(f"a Shuffle picks lane {node.indices[lane]}, which does not exist")

    # -- memory --------------------------------------------------------------------------------

    def element(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...], lane: Lane) -> str:
        """Return the lvalue of (one lane of) an access."""
        data = self.pointer(buffer)
        inner = dtypes.lanes_of(buffer.dtype)
        last = indices[-1] if indices else const(0, "int32")
        offset = ""
        if last.lanes > 1:
            ramp = legalize.as_ramp(last)
            if ramp is not None and not isinstance(last, E.Ramp):
                last = E.Ramp(ramp[0], const(ramp[1], ramp[0].dtype), last.lanes)
            if not isinstance(last, E.Ramp):
                before, self.indexing = self.indexing, True
                at = self.expr(last, lane)
                self.indexing = before
                return f"{data}[{at}]"
            step: E.PrimExpr = last.stride
            if buffer.strides:
                step = step * buffer.strides[-1]
            times = self.index(step)
            offset = f" + {lane}" if times == "1" else f" + {times} * {lane}"
            if isinstance(lane, int) and isinstance(step, E.IntImm):
                offset = f" + {lane * step.value}" if lane and step.value else ""
            last = last.base
        flat = legalize.flatten_index(buffer, (*indices[:-1], last) if indices else ())
        text = self.index(legalize.wide_index(buffer, flat))
        if inner > 1:
            text = f"({text}) * {inner}"
            offset = f" + {lane}"
        if offset and text == "0":
            return f"{data}[{offset.removeprefix(' + ')}]"
        if text.startswith("(") and text.endswith(")") and not offset and _balanced(text[1:-1]):
            text = text[1:-1]
        return f"{data}[{text}{offset}]"

    def pointer(self, buffer: Buffer) -> str:
        """Return the data pointer of a buffer, as a pointer to its elements."""
        name = self._c_Var(buffer.data, None)
        ty = spelling.c_type(buffer.dtype)
        if self.pointer_types.get(id(buffer.data)) == ty:
            return name
        return f"(({ty}*){name})"

    def _c_BufferLoad(self, node: E.BufferLoad, lane: Lane) -> str:
        return self.element(node.buffer, node.indices, lane)


def _balanced(text: str) -> bool:
    """Return whether every bracket in `text` closes inside it."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


_RESERVED = """
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union unsigned
void volatile while main asm bool true false NULL errno stdin stdout
values symbols bound args result self spec status
"""
_KEYWORDS = frozenset(_RESERVED.split())
