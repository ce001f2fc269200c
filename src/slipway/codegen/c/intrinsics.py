"""Calls to C: one method per intrinsic that C spells itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import dtypes
from slipway.codegen import legalize, math
from slipway.codegen.c import spelling
from slipway.codegen.c.expressions import CExpressions, Lane
from slipway.codegen.names import is_symbol
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir.instructions.dot4 import EXPANDED

_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_EXPANDED: dict[str, Callable[..., E.PrimExpr]] = {
    "floor": legalize.floor,
    "ceil": legalize.ceil,
    "trunc": legalize.trunc,
    "round": legalize.round_away,
    "nearbyint": legalize.nearbyint,
    "multiply_high": legalize.multiply_high,
    **EXPANDED,
    "q_multiply_shift": legalize.q_multiply_shift,
    "fmod": legalize.fmod,
}
_ANY_TYPE = {"if_then_else", "likely", "reinterpret", "address_of", "access_ptr", "prefetch",
             "call_packed", "call_extern", "call_pure_extern", "call_llvm_intrin",
             "call_llvm_pure_intrin", "tensor_view", "hardware",
             "storage_sync"}  # fmt: skip


class CIntrinsics(CExpressions):
    """Adds calls to the expressions."""

    def _c_Call(self, node: E.Call, lane: Lane) -> str:
        op = node.op
        method = getattr(self, "_call_" + op, None)
        if op in _ANY_TYPE:
            if method is None:
                raise CodegenError(f"the c code generator has no {op!r}: {node}")
            return method(node, lane)  # type: ignore[no-any-return]
        if node.args and dtypes.scalar_of(node.args[0].dtype) in ("float16", "bfloat16"):
            return self.expr(legalize.intrinsic_in_float32(node), lane)
        if op in _EXPANDED:
            return self.expr(_EXPANDED[op](*node.args), lane)
        if op in legalize.SUPPORT:
            self.helpers.add(op)
            return f"{op}({', '.join(self.expr(a, lane) for a in node.args)})"
        if op in _BITWISE:
            a, b = (self.expr(a, lane) for a in node.args)
            narrow = dtypes.bits_of(node.dtype) < 32
            text = f"({a} {_BITWISE[op]} {b})"
            return f"({spelling.c_type(node.dtype)}){text}" if narrow else text
        if method is not None:
            return method(node, lane)  # type: ignore[no-any-return]
        expansion = math.expand(op, node.args)
        if expansion is not None:
            return self.expr(expansion, lane)
        return self._extern(node, op, node.args, lane)

    def _helper(self, name: str, node: E.Call, lane: Lane) -> str:
        width = dtypes.bits_of(node.args[0].dtype)
        self.helpers.add(f"{name}{width}")
        return f"{name}{width}({', '.join(self.expr(a, lane) for a in node.args)})"

    def _call_quotient(self, node: E.Call, lane: Lane) -> str:
        return self._divide(node, "/", lane)

    def _call_remainder(self, node: E.Call, lane: Lane) -> str:
        return self._divide(node, "%", lane)

    def _divide(self, node: E.Call, sign: str, lane: Lane) -> str:
        a, b = (self.expr(x, lane) for x in node.args)
        text = f"({a} {sign} {b})"
        narrow = dtypes.bits_of(node.dtype) < 32
        return f"({spelling.c_type(node.dtype)}){text}" if narrow else text

    def _call_max_of_numbers(self, node: E.Call, lane: Lane) -> str:
        a, b = (self.simple(x, lane) for x in node.args)
        return f"({a} > {b} ? {a} : {b})"

    def _call_sqrt(self, node: E.Call, lane: Lane) -> str:
        return self._helper("slw_sqrt", node, lane)

    def _call_fabs(self, node: E.Call, lane: Lane) -> str:
        return self._helper("slw_fabs", node, lane)

    def _call_copysign(self, node: E.Call, lane: Lane) -> str:
        return self._helper("slw_copysign", node, lane)

    def _call_fma(self, node: E.Call, lane: Lane) -> str:
        return self.expr(math.exact_fma(*node.args), lane)

    def _call_isnan(self, node: E.Call, lane: Lane) -> str:
        value = self.simple(node.args[0], lane)
        return f"({value} != {value})"

    def _call_isinf(self, node: E.Call, lane: Lane) -> str:
        x = node.args[0]
        return self.expr(E.EQ(legalize.call("fabs", x), legalize.like(float("inf"), x)), lane)

    def _call_isfinite(self, node: E.Call, lane: Lane) -> str:
        x = node.args[0]
        return self.expr(E.LT(legalize.call("fabs", x), legalize.like(float("inf"), x)), lane)

    def _call_abs(self, node: E.Call, lane: Lane) -> str:
        if dtypes.is_float(node.dtype):
            return self._call_fabs(node, lane)
        if not dtypes.is_int(node.dtype):
            return self.expr(node.args[0], lane)
        x = node.args[0]
        return self.expr(
            legalize.share(x, lambda v: E.Select(
                E.LT(v, legalize.like(0, v)), E.Sub(legalize.like(0, v), v), v)), lane
        )  # fmt: skip

    def _call_popcount(self, node: E.Call, lane: Lane) -> str:
        self.helpers.add("slw_popcount")
        ty = spelling.c_type(dtypes.make("uint", dtypes.bits_of(node.args[0].dtype)))
        value = self.expr(node.args[0], lane)
        return f"({spelling.c_type(node.dtype)})slw_popcount(({ty}){value})"

    def _call_clz(self, node: E.Call, lane: Lane) -> str:
        self.helpers.add("slw_clz")
        bits = dtypes.bits_of(node.args[0].dtype)
        value = self.expr(node.args[0], lane)
        return f"({spelling.c_type(node.dtype)})slw_clz((uint{bits}_t){value}, {bits}u)"

    def _call_bitwise_not(self, node: E.Call, lane: Lane) -> str:
        return f"({spelling.c_type(node.dtype)})(~{self.expr(node.args[0], lane)})"

    def _call_shift_left(self, node: E.Call, lane: Lane) -> str:
        a, b = (self.expr(a, lane) for a in node.args)
        bits = max(32, dtypes.bits_of(node.dtype))
        return f"({spelling.c_type(node.dtype)})((uint{bits}_t){a} << {b})"

    def _call_shift_right(self, node: E.Call, lane: Lane) -> str:
        a, b = (self.expr(a, lane) for a in node.args)
        text = f"({a} >> {b})"
        narrow = dtypes.bits_of(node.dtype) < 32
        return f"({spelling.c_type(node.dtype)}){text}" if narrow else text

    def _call_reinterpret(self, node: E.Call, lane: Lane) -> str:
        if legalize.changes_lanes(node):
            assert not isinstance(lane, str)
            return self.expr(legalize.reinterpreted_lane(node, lane or 0))
        have, want = dtypes.scalar_of(node.args[0].dtype), dtypes.scalar_of(node.dtype)
        value = self.expr(node.args[0], lane)
        bits = dtypes.bits_of(have)
        float_in, float_out = (dtypes.is_float(d) and bits >= 32 for d in (have, want))
        if float_in and not float_out:
            self.helpers.add(f"slw_u{bits}_of")
            value = f"slw_u{bits}_of({value})"
        elif float_out and not float_in:
            self.helpers.add(f"slw_f{bits}_of")
            return f"slw_f{bits}_of((uint{bits}_t){value})"
        ty = spelling.c_type(want)
        return f"({ty}){value}" if ty != spelling.c_type(have) else value

    def _call_likely(self, node: E.Call, lane: Lane) -> str:
        return self.expr(node.args[0], lane)

    def _call_if_then_else(self, node: E.Call, lane: Lane) -> str:
        condition, first, second = node.args
        test = self.expr(condition, lane if condition.lanes > 1 else None)
        outer, depth = self.lines, self.depth
        sides = []
        for side in (first, second):
            self.lines, self.depth = [], depth + 1
            text = self.expr(side, lane)
            sides.append((self.lines, text))
        self.lines, self.depth = outer, depth
        if not sides[0][0] and not sides[1][0]:
            return f"({test} ? {sides[0][1]} : {sides[1][1]})"
        name = self.fresh("chosen")
        self.line(f"{spelling.c_type(node.dtype)} {name};")
        self.line(f"if ({test}) {{")
        self.lines += sides[0][0]
        self.line(f"  {name} = {sides[0][1]};")
        self.line("} else {")
        self.lines += sides[1][0]
        self.line(f"  {name} = {sides[1][1]};")
        self.line("}")
        return name

    # -- memory and calls ----------------------------------------------------------------------

    def _call_address_of(self, node: Any, lane: Lane) -> str:
        load = node.args[0]
        indices = load.indices
        if indices and isinstance(indices[-1], E.Ramp):
            indices = (*indices[:-1], indices[-1].base)
        return f"(&{self.element(load.buffer, indices, None)})"

    def _call_access_ptr(self, node: E.Call, lane: Lane) -> str:
        data = self.expr(node.args[0])
        return f"({data} + {self.index(node.args[1])})"

    def _call_prefetch(self, node: E.Call, lane: Lane) -> str:
        return "0"

    def _call_storage_sync(self, node: E.Call, lane: Lane) -> str:
        return "0"

    def _call_hardware(self, node: E.Call, lane: Lane) -> str:
        raise CodegenError(f"the c code generator has {node.args[0]} as a whole stored value only")

    def _call_call_extern(self, node: Any, lane: Lane) -> str:
        return self._extern(node, node.args[0].value, node.args[1:], lane)

    _call_call_pure_extern = _call_call_extern

    def _extern(self, node: E.PrimExpr, symbol: str, args: Any, lane: Lane) -> str:
        if not is_symbol(symbol, in_c=True):
            raise CodegenError(f"{symbol!r} cannot be the name of a C function ({node})")
        ty = "void" if node.dtype in ("", "void") else spelling.c_type(node.dtype)
        types = ", ".join(spelling.c_type(a.dtype) for a in args) or "void"
        self.externs.setdefault(symbol, f"{ty} {symbol}({types});")
        return f"{symbol}({', '.join(self.expr(a, lane) for a in args)})"
