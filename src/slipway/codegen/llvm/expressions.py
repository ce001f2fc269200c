"""Expressions to LLVM IR: one method per node class, each returning an operand.

Floating point instructions carry no flag.  A product and the sum that takes it are one
``llvm.fmuladd``, rounded once where the target has the instruction (more exact, twice as fast).
The flag ``contract`` would leave that to each copy that LLVM makes of the code: the vectors of a
loop and what is left of it then round differently, and a result depends on how many threads share
the loop.  Sums keep the order that the schedule gave them, and NaN, infinities and signed zeros
keep their meaning.  In strict mode (``-strict=1``) nothing is fused.

Integer arithmetic wraps, except inside buffer indices (see llvm.address).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import zip_longest
from math import nan
from typing import Any, ClassVar

from slipway import dtypes
from slipway.codegen import divide, legalize, math
from slipway.codegen.bounds import ValueBounds
from slipway.codegen.extremes import compared, number_first, propagating_word
from slipway.codegen.llvm import types
from slipway.codegen.llvm.address import Addresses
from slipway.codegen.llvm.writer import Writer
from slipway.codegen.multiply_add import product_of
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.target.capability import Capability

_INT_OPS = {E.Add: "add", E.Sub: "sub", E.Mul: "mul"}
_FLOAT_OPS = {E.Add: "fadd", E.Sub: "fsub", E.Mul: "fmul", E.Div: "fdiv"}
# Predicates: (signed, unsigned, float).
_COMPARE = {
    E.EQ: ("eq", "eq", "oeq"), E.NE: ("ne", "ne", "une"), E.LT: ("slt", "ult", "olt"),
    E.LE: ("sle", "ule", "ole"), E.GT: ("sgt", "ugt", "ogt"), E.GE: ("sge", "uge", "oge"),
    E.Min: ("slt", "ult", "olt"), E.Max: ("sgt", "ugt", "ogt"),
}  # fmt: skip


class ExpressionEmitter:
    """Emits expressions of one function into `w`."""

    _dispatch: ClassVar[dict[str, Callable[[Any, Any], str]]] = {}  # by the name of a node's class

    def __init_subclass__(cls) -> None:
        emitters = [name for name in dir(cls) if name.startswith("_emit_")]
        cls._dispatch = {name[6:]: getattr(cls, name) for name in emitters}

    def __init__(self, capability: Capability, strict: bool) -> None:
        self.w = Writer()
        self.capability = capability
        self.soft_half = capability.half == "soft"
        self.strict = strict
        self.word = f"i{capability.pointer_bits}"
        self.address = Addresses(self)
        self.bounds = ValueBounds()
        self.values: dict[int, str] = {}  # id(Var) -> operand
        self.wide_values: dict[int, str] = {}  # id(Var) -> operand in pointer width
        self.pointers: dict[int, str] = {}  # id(data Var) -> operand
        self.memo: list[dict[int, tuple[Any, str]]] = [{}]  # values of this statement's expressions
        self.aligned: dict[int, int] = {}  # id(data Var) -> known alignment in bytes
        self.helpers: set[str] = set()  # declarations and helper functions used

    # -- entry points --------------------------------------------------------------------------

    def ty(self, dtype: str) -> str:
        """Return the LLVM type of values of `dtype`."""
        return types.llvm_type(dtype, self.soft_half)

    def new_statement(self) -> None:
        """Forget values of the last statement: its stores may have changed what loads give."""
        if self.memo[-1]:
            self.memo[-1] = {}

    def value(self, node: E.PrimExpr) -> str:
        """Emit `node`; return its operand."""
        kind = type(node).__name__
        if kind == "Var" or kind == "SizeVar":
            return self.variable(node)
        if kind == "IntImm":
            return self._integer(node)
        if kind == "FloatImm":
            return types.float_text(node.value, node.dtype, self.soft_half)  # type: ignore[attr-defined]
        for layer in reversed(self.memo):
            if id(node) in layer:
                found: str = layer[id(node)][1]
                return found
        method = self._dispatch.get(kind)
        legalize.refuse_carried(node)
        if method is None:
            raise CodegenError(f"a {kind} cannot be compiled: lower it first ({node})")
        result: str = method(self, node)
        self.memo[-1][id(node)] = (node, result)  # the node too: its id stays its own
        return result

    def wide(self, node: E.PrimExpr) -> str:
        """Emit the integer `node` in pointer width."""
        known = self.wide_values.get(id(node))
        if known is not None:
            return known
        if type(node) is E.IntImm:
            return str(node.value)
        value = self.value(node)
        bits, have = self.capability.pointer_bits, dtypes.bits_of(node.dtype)
        if have == bits:
            return value
        if have > bits:
            return self.w.put(f"trunc i{have} {value} to i{bits}")
        signed = dtypes.is_int(node.dtype) and not self.bounds.is_nonnegative(node)
        return self.w.put(f"{'sext' if signed else 'zext'} i{have} {value} to i{bits}")

    def typed(self, node: E.PrimExpr) -> str:
        """Emit `node`; return "type operand"."""
        return f"{self.ty(node.dtype)} {self.value(node)}"

    # -- leaves --------------------------------------------------------------------------------

    def variable(self, node: Any) -> str:
        """Return the operand of a variable: its value, or a pointer."""
        found = self.values.get(id(node))
        if found is None:
            found = self.pointers.get(id(node))
        if found is None:
            raise CodegenError(
                f"variable {node.name!r} is used where it is not defined: it is neither a "
                "parameter, nor a size of one, nor a loop or let variable around its use"
            )
        return found

    def _integer(self, node: Any) -> str:
        if node.dtype == "bool":
            return "true" if node.value else "false"
        if node.dtype == "handle":
            return "null" if node.value == 0 else f"inttoptr ({self.word} {node.value} to ptr)"
        return str(node.value)

    # -- arithmetic ----------------------------------------------------------------------------

    def _binary(self, node: E.BinaryOp) -> str:
        scalar = dtypes.scalar_of(node.dtype)
        if dtypes.is_float(scalar):
            if dtypes.bits_of(scalar) == 16 and not self._native_half(scalar):
                return self.value(legalize.in_float32(node))
            at_once = None if self.strict else math.expand_sum(node)
            if at_once is not None:
                return self.value(at_once)
            product = None if self.strict else product_of(node)
            if product is not None:
                return self._multiply_add(node, product)
            a, b = self.value(node.a), self.value(node.b)
            return self.w.put(f"{_FLOAT_OPS[type(node)]} {self.ty(node.dtype)} {a}, {b}")
        if scalar == "bool":
            return self._bool_arithmetic(node)
        a, b = self.value(node.a), self.value(node.b)
        return self.w.put(f"{_INT_OPS[type(node)]} {self.ty(node.dtype)} {a}, {b}")

    _emit_Add = _emit_Sub = _emit_Mul = _binary

    def _multiply_add(self, node: E.BinaryOp, product: Any) -> str:
        """Emit the sum or difference `node`, one side of which is `product`, rounded once."""
        ty = self.ty(node.dtype)
        other = self.value(node.b if product is node.a else node.a)
        x, y = self.value(product.a), self.value(product.b)
        if type(node) is E.Sub:
            if product is node.a:
                other = self.w.put(f"fneg {ty} {other}")
            else:
                x = self.w.put(f"fneg {ty} {x}")
        lanes = dtypes.lanes_of(node.dtype)
        most = self.capability.fused_lanes(dtypes.bits_of(dtypes.scalar_of(node.dtype)))
        if most and lanes > most and lanes % most == 0:
            return self._fused_in_parts(node.dtype, most, (y, x, other))
        # Tiles multiply data by weights, which the next rows need again: x86 overwrites one of the
        # three registers, and LLVM takes the second factor where the sum must stay.
        return self._fused("llvm.fmuladd", ty, (y, x, other))

    def _fused(self, name: str, ty: str, operands: Sequence[str]) -> str:
        symbol = f"{name}.{mangle(ty)}"
        self.helpers.add(f"declare {ty} @{symbol}({ty}, {ty}, {ty})")
        return self.w.put(f"call {ty} @{symbol}({', '.join(f'{ty} {o}' for o in operands)})")

    def _fused_in_parts(self, dtype: str, most: int, operands: Sequence[str]) -> str:
        """Emit a fused product and sum of vectors as those of their parts of `most` lanes.

        By the instruction's own name: LLVM would join calls of fmuladd to one of all lanes.
        """
        lanes, ty = dtypes.lanes_of(dtype), self.ty(dtype)
        part_ty = self.ty(dtypes.with_lanes(dtypes.scalar_of(dtype), most))
        whole = "poison"
        for first in range(0, lanes, most):
            own = range(first, first + most)
            parts = [self._shuffle(ty, o, "poison", own) for o in operands]
            part = self._fused("llvm.wasm.relaxed.madd", part_ty, parts)
            wide = self._shuffle(part_ty, part, "poison", [i % most for i in range(lanes)])
            put = [lanes + i if i in own else i for i in range(lanes)]
            whole = self._shuffle(ty, whole, wide, put)
        return whole

    def _bool_arithmetic(self, node: E.BinaryOp) -> str:
        opcode = {"Add": "or", "Mul": "and", "Sub": "xor"}[type(node).__name__]
        return self.w.put(
            f"{opcode} {self.ty(node.dtype)} {self.value(node.a)}, {self.value(node.b)}"
        )

    def _emit_Div(self, node: E.Div) -> str:
        if dtypes.is_float(node.dtype):
            b = node.b
            if isinstance(b, E.Broadcast) and isinstance(b.value, E.FloatImm):
                # LLVM divides by powers of two with a product, if it sees them.
                splat = f"splat ({self.ty(b.value.dtype)} {self.value(b.value)})"
                self.memo[-1][id(b)] = (b, splat)
            return self._binary(node)
        return self.value(divide.truncated(node, self.bounds))

    def _emit_Mod(self, node: E.Mod) -> str:
        if dtypes.is_float(node.dtype):
            return self.value(legalize.fmod(node.a, node.b))
        return self.value(divide.truncated(node, self.bounds))

    def _emit_FloorDiv(self, node: E.FloorDiv) -> str:
        return self.value(divide.floor_div(node, self.bounds))

    def _emit_FloorMod(self, node: E.FloorMod) -> str:
        return self.value(divide.floor_mod(node, self.bounds))

    def _choose(self, node: E.BinaryOp) -> str:
        """Min and Max: of floats, a NaN on either side is the result."""
        scalar = dtypes.scalar_of(node.dtype)
        ty = self.ty(node.dtype)
        if scalar == "bool":
            logic = "and" if type(node) is E.Min else "or"
            return self.w.put(f"{logic} {ty} {self.value(node.a)}, {self.value(node.b)}")
        if dtypes.is_float(scalar) and dtypes.bits_of(scalar) == 16 and (
            not self._native_half(scalar)
        ):  # fmt: skip
            return self.value(legalize.in_float32(node))
        if not dtypes.is_float(scalar):
            name: str | None = ("s" if dtypes.is_int(scalar) else "u") + type(node).__name__.lower()
        else:
            name = propagating_word(node, self.capability)
        if name is not None:
            return self.of_two(name, ty, self.value(node.a), self.value(node.b))
        combines = self.capability.combines_extremes(dtypes.bits_of(scalar))
        if combines and node.lanes > 1:
            return self._choose_of_many(node)
        first, second, is_number = number_first(node)
        a, b = self.value(first), self.value(second)
        if combines and not is_number:
            return self.of_two(type(node).__name__.lower() + "imum", ty, a, b, "nsz ")
        chosen = self._greater(node, a, b)
        if is_number:
            return chosen
        no_number = self.w.put(f"fcmp uno {ty} {a}, {a}")
        return self._select(node.dtype, no_number, a, chosen, node.lanes)

    def _greater(self, node: E.BinaryOp, a: str, b: str) -> str:
        """Return the Max or Min of two floats, and `b` where one is a NaN."""
        ty = self.ty(node.dtype)
        test = self.w.put(f"fcmp {_COMPARE[type(node)][2]} {ty} {a}, {b}")
        return self._select(node.dtype, test, a, b, node.lanes)

    def _choose_of_many(self, node: E.BinaryOp) -> str:
        """A nest of Max or Min on x86: what may be a NaN is tested two at a time, but for the last.

        An instruction for each comparison, one for each test and one to join it.
        """
        scalar, ty = dtypes.scalar_of(node.dtype), self.ty(node.dtype)
        bits = f"<{node.lanes} x i{dtypes.bits_of(scalar)}>"
        tested, others = compared(node)
        fills_lanes = self.capability.compares_into_vectors()
        names = [self.value(operand) for operand in tested]
        rest = [self.value(operand) for operand in others]
        if len(names) == len(rest) == 1 and not fills_lanes:
            intrinsic = f"{type(node).__name__.lower()}imum"
            return self.of_two(intrinsic, ty, names[0], rest[0], "nsz ")
        chosen, *following = [*names, *rest]
        for name in following:
            chosen = self._greater(node, chosen, name)
        mask = f"<{node.lanes} x i1>"
        tests = [
            self.w.put(f"fcmp uno {ty} {first}, {second}")
            for first, second in zip_longest(names[::2], names[1::2], fillvalue="zeroinitializer")
        ]
        if not tests:
            return chosen
        if not fills_lanes:
            is_nan = reduce(lambda a, b: self.w.put(f"or {mask} {a}, {b}"), tests)
            no_number = E.Broadcast(E.FloatImm(scalar, nan), node.lanes)
            return self._select(node.dtype, is_nan, self.value(no_number), chosen, node.lanes)
        result = self.w.put(f"bitcast {ty} {chosen} to {bits}")
        for test in tests:  # all ones are a NaN
            ones = self.w.put(f"sext {mask} {test} to {bits}")
            result = self.w.put(f"or {bits} {result}, {ones}")
        return self.w.put(f"bitcast {bits} {result} to {ty}")

    def of_two(self, name: str, ty: str, a: str, b: str, flags: str = "") -> str:
        """Call the overloaded LLVM intrinsic ``llvm.<name>`` on two operands of a type."""
        self.helpers.add(f"declare {ty} @llvm.{name}.{mangle(ty)}({ty}, {ty})")
        return self.w.put(f"call {flags}{ty} @llvm.{name}.{mangle(ty)}({ty} {a}, {ty} {b})")

    _emit_Min = _emit_Max = _choose

    def _select(self, dtype: str, test: str, a: str, b: str, lanes: int) -> str:
        ty = self.ty(dtype)
        mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
        return self.w.put(f"select {mask} {test}, {ty} {a}, {ty} {b}")

    def _compare(self, node: E.CmpOp) -> str:
        scalar = dtypes.scalar_of(node.a.dtype)
        signed, unsigned, floating = _COMPARE[type(node)]
        if dtypes.is_float(scalar):
            if dtypes.bits_of(scalar) == 16 and not self._native_half(scalar):
                return self.value(legalize.in_float32(node))
            a, b = self.value(node.a), self.value(node.b)
            return self.w.put(f"fcmp {floating} {self.ty(node.a.dtype)} {a}, {b}")
        a, b = self.value(node.a), self.value(node.b)
        predicate = signed if dtypes.is_int(scalar) else unsigned
        return self.w.put(f"icmp {predicate} {self.ty(node.a.dtype)} {a}, {b}")

    _emit_EQ = _emit_NE = _emit_LT = _emit_LE = _emit_GT = _emit_GE = _compare

    def _emit_And(self, node: E.And) -> str:
        ty = self.ty(node.dtype)
        return self.w.put(f"and {ty} {self.value(node.a)}, {self.value(node.b)}")

    def _emit_Or(self, node: E.Or) -> str:
        ty = self.ty(node.dtype)
        return self.w.put(f"or {ty} {self.value(node.a)}, {self.value(node.b)}")

    def _emit_Not(self, node: E.Not) -> str:
        ones = "true" if node.lanes == 1 else "splat (i1 true)"
        return self.w.put(f"xor {self.ty(node.dtype)} {self.value(node.a)}, {ones}")

    def _emit_Select(self, node: E.Select) -> str:
        held = legalize.held_float(node)
        if held is not None and self.capability.holds_integers(
            dtypes.bits_of(held.dtype), dtypes.bits_of(node.dtype), node.lanes
        ):
            have, want = self.ty(held.dtype), self.ty(node.dtype)
            symbol = f"@llvm.fptosi.sat.{mangle(want)}.{mangle(have)}"
            self.helpers.add(f"declare {want} {symbol}({have})")
            return self.w.put(f"call {want} {symbol}({have} {self.value(held)})")
        test = self.value(node.condition)
        a, b = self.value(node.true_value), self.value(node.false_value)
        return self._select(node.dtype, test, a, b, node.condition.lanes)

    def _emit_Let(self, node: E.Let) -> str:
        self.define(node.var, node.value)
        # Copies of an expression share the variable and the body, and may give it other values.
        self.memo.append({})
        self.w.scopes.append({})
        result = self.value(node.body)
        self.w.scopes.pop()
        self.memo.pop()
        return result

    def define(self, var: E.Var, value: E.PrimExpr) -> None:
        """Make `var` stand for `value` from here on."""
        self.bounds.bind_value(var, value)
        self.values[id(var)] = self.value(value)
        self.address.atoms[id(var)] = var

    # -- conversion ----------------------------------------------------------------------------

    def _native_half(self, scalar: str) -> bool:
        return scalar == "float16" and self.capability.half == "native"

    def _emit_Cast(self, node: E.Cast) -> str:
        source, target = dtypes.scalar_of(node.value.dtype), dtypes.scalar_of(node.dtype)
        if source == target:
            return self.value(node.value)
        if (source, target) == ("float32", "bfloat16") and self.capability.rounds_to_bfloat:
            return self._round_to_bfloat(node)
        expanded = legalize.cast_of_half(node, self.capability)
        if expanded is not None:
            return self.value(expanded)
        value = self.value(node.value)
        have, want = self.ty(node.value.dtype), self.ty(node.dtype)
        opcode = self._conversion(source, target)
        if opcode in ("icmp", "fcmp"):
            zero = "zeroinitializer" if node.lanes > 1 else ("0" if opcode == "icmp" else "0.0")
            differs = "ne" if opcode == "icmp" else "une"
            return self.w.put(f"{opcode} {differs} {have} {value}, {zero}")
        if opcode == "":
            return value
        if opcode in ("fptosi", "fptoui") and dtypes.bits_of(target) < 32:
            # Through 32 bits, so that values outside the narrow type wrap as they do in NumPy.
            middle = self.ty(dtypes.with_lanes("int32", node.lanes))
            value = self.w.put(f"fptosi {have} {value} to {middle}")
            return self.w.put(f"trunc {middle} {value} to {want}")
        return self.w.put(f"{opcode} {have} {value} to {want}")

    def _round_to_bfloat(self, node: Any) -> str:
        lanes = node.lanes
        ty = "bfloat" if lanes == 1 else f"<{lanes} x bfloat>"
        have = self.ty(node.value.dtype)
        rounded = self.w.put(f"fptrunc {have} {self.value(node.value)} to {ty}")
        return self.w.put(f"bitcast {ty} {rounded} to {self.ty(node.dtype)}")

    def _conversion(self, source: str, target: str) -> str:
        """Return the LLVM instruction that converts between two scalar dtypes."""
        float_in, float_out = dtypes.is_float(source), dtypes.is_float(target)
        bits_in, bits_out = dtypes.bits_of(source), dtypes.bits_of(target)
        if target == "bool":
            return "fcmp" if float_in else "icmp"
        if "handle" in (source, target):
            return "" if source == target else "inttoptr" if target == "handle" else "ptrtoint"
        if float_in and float_out:
            return "fpext" if bits_out > bits_in else "fptrunc"
        if float_in:
            return "fptosi" if dtypes.is_int(target) else "fptoui"
        if float_out:
            return "sitofp" if dtypes.is_int(source) else "uitofp"
        if source == "bool":
            return "zext"
        if bits_in == bits_out:
            return ""
        if bits_out < bits_in:
            return "trunc"
        return "sext" if dtypes.is_int(source) else "zext"

    # -- vectors -------------------------------------------------------------------------------

    def _emit_Broadcast(self, node: E.Broadcast) -> str:
        ty, inner = self.ty(node.dtype), self.ty(node.value.dtype)
        value = self.value(node.value)
        lanes = dtypes.lanes_of(node.value.dtype)
        if lanes == 1:
            if isinstance(node.value, (E.IntImm, E.FloatImm)):
                splat = f"splat ({inner} {value})"
                return self._wide_constant(node, splat) or splat
            first = self.w.put(f"insertelement {ty} poison, {inner} {value}, i64 0")
            total = node.num_lanes
            return self.w.put(
                f"shufflevector {ty} {first}, {ty} poison, <{total} x i32> zeroinitializer"
            )
        picks = [i % lanes for i in range(lanes * node.num_lanes)]
        return self._shuffle(inner, value, "poison", picks)

    def _wide_constant(self, node: E.Broadcast, splat: str) -> str:
        """Return a repeated number as a load of whole vectors, where that is better; else "".

        LLVM repeats what has 32 bits by an instruction of its own, which AVX2 cannot make part of
        the one that computes.  A load of the vector is part of it; zero needs neither.  Engines of
        WebAssembly make a constant anew in each round of a loop, with three instructions.
        """
        bits = dtypes.bits_of(node.value.dtype)
        whole = self.capability.wide_constant_bits
        if not (
            whole
            and isinstance(node.value, E.FloatImm)
            and bits >= 32
            and bits * node.num_lanes % whole == 0
            and node.value.value != 0
        ):
            return ""
        lanes = whole // bits
        ty = f"<{lanes} x {self.ty(node.value.dtype)}>"
        number = re.sub(r"\W", "_", splat.split()[-1].rstrip(")"))
        symbol = f"@slw.splat.{lanes}x{bits}.{number}"
        self.helpers.add(
            f"{symbol} = internal externally_initialized constant {ty} {splat}, align {whole // 8}"
        )
        loaded = self.w.put(f"load {ty}, ptr {symbol}, align {whole // 8}, !invariant.load !{{}}")
        if lanes == node.num_lanes:
            return loaded
        return self._shuffle(ty, loaded, "poison", [i % lanes for i in range(node.num_lanes)])

    def _shuffle(self, ty: str, a: str, b: str, picks: Sequence[int]) -> str:
        mask = ", ".join(f"i32 {i}" for i in picks)
        return self.w.put(f"shufflevector {ty} {a}, {ty} {b}, <{len(picks)} x i32> <{mask}>")

    def _emit_Ramp(self, node: E.Ramp) -> str:
        scalar = dtypes.scalar_of(node.dtype)
        lanes = node.num_lanes
        ramp: E.PrimExpr = E.Broadcast(node.base, lanes)
        start = self.value(ramp)
        inner, ty = self.ty(scalar), self.ty(node.dtype)
        if isinstance(node.stride, E.IntImm):
            step = node.stride.value
            steps = ", ".join(f"{inner} {i * step}" for i in range(lanes))
            return self.w.put(f"add {ty} {start}, <{steps}>")
        steps = ", ".join(f"{inner} {i}" for i in range(lanes))
        stride = self.value(E.Broadcast(node.stride, lanes))
        offset = self.w.put(f"mul {ty} {stride}, <{steps}>")
        return self.w.put(f"add {ty} {start}, {offset}")

    def _emit_Shuffle(self, node: E.Shuffle) -> str:
        parts = [(self.value(v), dtypes.lanes_of(v.dtype)) for v in node.vectors]
        scalar = dtypes.scalar_of(node.dtype)
        if len(node.indices) == 1:
            position = node.indices[0]
            for value, lanes in parts:
                if position < lanes:
                    if lanes == 1:
                        return value
                    ty = self.ty(dtypes.with_lanes(scalar, lanes))
                    return self.w.put(f"extractelement {ty} {value}, i64 {position}")
                position -= lanes
        if all(lanes == 1 for _, lanes in parts):
            ty = self.ty(node.dtype)
            result = "poison"
            for lane, pick in enumerate(node.indices):
                result = self.w.put(
                    f"insertelement {ty} {result}, {self.ty(scalar)} {parts[pick][0]}, i64 {lane}"
                )
            return result
        if len(parts) == 2 and parts[0][1] == parts[1][1] > 1:
            (a, lanes), (b, _) = parts
        else:
            (a, lanes), b = self._concatenate(parts, scalar), "poison"
        return self._shuffle(self.ty(dtypes.with_lanes(scalar, lanes)), a, b, node.indices)

    def _concatenate(self, parts: list[tuple[str, int]], scalar: str) -> tuple[str, int]:
        """Join vectors, in pairs of one width, padding the narrower one."""
        value, lanes = parts[0]
        if lanes == 1:
            one = self.ty(dtypes.make(*dtypes.parse(scalar))).join(["<1 x ", ">"])
            value = self.w.put(f"insertelement {one} poison, {self.ty(scalar)} {value}, i64 0")
        for other, width in parts[1:]:
            inner = self.ty(scalar)
            if width == 1:
                other = self.w.put(f"insertelement <1 x {inner}> poison, {inner} {other}, i64 0")
            broad = max(lanes, width)
            pieces = []
            for part, have in ((value, lanes), (other, width)):
                if have != broad:
                    picks = [i if i < have else have - 1 for i in range(broad)]
                    part = self._shuffle(f"<{have} x {inner}>", part, "poison", picks)
                pieces.append(part)
            picks = [*range(lanes), *(broad + i for i in range(width))]
            value = self._shuffle(f"<{broad} x {inner}>", pieces[0], pieces[1], picks)
            lanes += width
        return value, lanes


def mangle(ty: str) -> str:
    """Return the suffix of an overloaded LLVM intrinsic for a type: <4 x float> is v4f32."""
    names = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}
    if ty.startswith("<"):
        lanes, inner = ty[1:-1].split(" x ")
        return f"v{lanes}{names.get(inner, inner)}"
    return names.get(ty, ty)
