"""Calls to LLVM IR: one method per intrinsic of ir.intrin that LLVM has itself.

Elementary functions are not here: `slipway.codegen.math` expands them into arithmetic.
"""

from __future__ import annotations

from math import inf
from typing import Any

from slipway import dtypes
from slipway.codegen import legalize, math
from slipway.codegen.hardware import hardware
from slipway.codegen.llvm.chosen_load import chosen_load
from slipway.codegen.llvm.expressions import mangle
from slipway.codegen.llvm.memory import MemoryEmitter
from slipway.codegen.names import is_symbol
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir.hardware import HardwareIntrinsic
from slipway.ir.instructions.dot4 import EXPANDED
from slipway.ir.intrin import INTRINSICS
from slipway.ir.ops import const

_BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "shift_left": "shl"}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "nearbyint": "nearbyint"}
_EXPANDED_ROUNDING = {
    "floor": legalize.floor,
    "ceil": legalize.ceil,
    "trunc": legalize.trunc,
    "nearbyint": legalize.nearbyint,
}
# Intrinsics that work on the bits of a value of any type.
_ANY_TYPE = {"if_then_else", "likely", "reinterpret", "address_of", "access_ptr", "ret",
             "prefetch", "call_packed", "call_extern", "call_pure_extern", "call_llvm_intrin",
             "call_llvm_pure_intrin", "tensor_view", "hardware", "storage_sync",
             *(op for op in INTRINSICS if op.startswith(("tile_", "warp_", "async_")))}  # fmt: skip


class IntrinsicEmitter(MemoryEmitter):
    """Adds calls to the expressions."""

    def _emit_Call(self, node: E.Call) -> str:
        op = node.op
        method = getattr(self, "_call_" + op, None)
        if op in _ANY_TYPE:
            if method is None:
                raise CodegenError(f"the llvm code generator has no {op!r} yet: {node}")
            return method(node)  # type: ignore[no-any-return]
        if node.args and dtypes.scalar_of(node.args[0].dtype) in ("float16", "bfloat16"):
            return self.value(legalize.intrinsic_in_float32(node))
        if op in legalize.SUPPORT:
            quick = op in legalize.FMOD and self._has_fma(node) and self._rounds(node)
            return self._remainder(node) if quick else self._lane_by_lane(node)
        if op in _BITWISE:
            a, b = (self.value(a) for a in node.args)
            return self.w.put(f"{_BITWISE[op]} {self.ty(node.dtype)} {a}, {b}")
        if op in _ROUNDING:
            return self._round(node)
        if op in EXPANDED:
            return self._dot(node)
        if method is not None:
            return method(node)  # type: ignore[no-any-return]
        expansion = math.expand(op, node.args)
        if expansion is not None:
            return self.value(expansion)
        return self._extern(node, op, node.args)

    def native(self, name: str, dtype: str, *operands: str) -> str:
        """Call the overloaded LLVM intrinsic ``llvm.<name>`` on operands of one dtype."""
        ty = self.ty(dtype)
        symbol = f"@llvm.{name}.{mangle(ty)}"
        self.helpers.add(f"declare {ty} {symbol}({', '.join([ty] * len(operands))})")
        args = ", ".join(f"{ty} {o}" for o in operands)
        return self.w.put(f"call {ty} {symbol}({args})")

    def _rounds(self, node: E.Call) -> bool:
        double = dtypes.bits_of(node.dtype) == 64
        return self.capability.rounding64 if double else self.capability.rounding

    def _round(self, node: E.Call) -> str:
        if self._rounds(node):
            return self.native(_ROUNDING[node.op], node.dtype, self.value(node.args[0]))
        return self.value(_EXPANDED_ROUNDING[node.op](node.args[0]))

    def _call_round(self, node: E.Call) -> str:
        return self.value(legalize.round_away(node.args[0]))

    def _call_quotient(self, node: E.Call) -> str:
        return self._divide(node, "div")

    def _call_remainder(self, node: E.Call) -> str:
        return self._divide(node, "rem")

    def _divide(self, node: E.Call, opcode: str) -> str:
        signed = dtypes.is_int(node.dtype) and not all(map(self.bounds.is_nonnegative, node.args))
        a, b = (self.value(x) for x in node.args)
        fits = dtypes.is_int(node.dtype) and dtypes.bits_of(node.dtype) <= 32
        if fits and node.lanes > 1 and self.capability.divides_as_floats:
            return self._divide_as_doubles(node, opcode, a, b)
        return self.w.put(f"{'s' if signed else 'u'}{opcode} {self.ty(node.dtype)} {a}, {b}")

    def _divide_as_doubles(self, node: E.Call, opcode: str, a: str, b: str) -> str:
        """The quotient, or what is left, of vectors of 32 bits: x86 divides only floats in vectors.

        A quotient that is no whole number differs from all of them by 1 / |b| at least, of which
        rounding takes no more than 2^-22.
        """
        ty, wide = self.ty(node.dtype), f"<{node.lanes} x double>"
        x, y = (self.w.put(f"sitofp {ty} {v} to {wide}") for v in (a, b))
        ratio = self.w.put(f"fdiv {wide} {x}, {y}")
        quotient = self.w.put(f"fptosi {wide} {ratio} to {ty}")
        if opcode == "div":
            return quotient
        return self.w.put(f"sub {ty} {a}, {self.w.put(f'mul {ty} {quotient}, {b}')}")

    def _call_max_of_numbers(self, node: E.Call) -> str:
        ty, (a, b) = self.ty(node.dtype), (self.value(x) for x in node.args)
        bits, lanes = dtypes.bits_of(node.dtype), node.lanes
        has = self.capability.extremes(bits, lanes)
        if has and not self.capability.chooses_extremes(bits, lanes):
            return self.of_two("maximum" if "propagates" in has else "maxnum", ty, a, b)
        return self._select(node.dtype, self.w.put(f"fcmp ogt {ty} {a}, {b}"), a, b, node.lanes)

    def _call_sqrt(self, node: E.Call) -> str:
        return self.native("sqrt", node.dtype, self.value(node.args[0]))

    def _call_fabs(self, node: E.Call) -> str:
        return self.native("fabs", node.dtype, self.value(node.args[0]))

    def _call_copysign(self, node: E.Call) -> str:
        return self.native("copysign", node.dtype, *(self.value(a) for a in node.args))

    def _has_fma(self, node: E.Call) -> bool:
        double = dtypes.bits_of(node.dtype) == 64
        return self.capability.fma64 if double else self.capability.fma

    def _call_fma(self, node: E.Call) -> str:
        if self._has_fma(node):
            return self.native("fma", node.dtype, *(self.value(a) for a in node.args))
        return self.value(math.exact_fma(*node.args))

    def _call_scale_by_power(self, node: E.Call) -> str:
        value, n, _ = node.args
        bits = value.lanes * dtypes.bits_of(value.dtype)
        has = self.capability.target.features.__contains__
        wide = bits == 512 and has("avx512f")
        if not wide and not (bits in (128, 256) and has("avx512vl")):
            expansion = math.expand(node.op, node.args)
            assert expansion is not None
            return self.value(expansion)
        ty, suffix = self.ty(node.dtype), "ps" if dtypes.bits_of(value.dtype) == 32 else "pd"
        symbol, mask = f"@llvm.x86.avx512.mask.scalef.{suffix}.{bits}", f"i{max(8, value.lanes)}"
        kind, rounding = (", i32", ", i32 4") if wide else ("", "")  # 4: the one that is set
        self.helpers.add(f"declare {ty} {symbol}({ty}, {ty}, {ty}, {mask}{kind})")
        operands = f"{self.typed(value)}, {self.typed(n)}, {ty} poison, {mask} -1{rounding}"
        return self.w.put(f"call {ty} {symbol}({operands})")

    _call_scale_down_by_power = _call_scale_by_power

    def _call_fmod(self, node: E.Call) -> str:
        return self.value(legalize.fmod(*node.args))

    def _remainder(self, node: E.Call) -> str:
        """The rest x - trunc(x / y) * y, exactly: one multiply-add, where all quotients are small.

        A quotient below 2^24 (2^53) is off by half at most, so that its whole part is right,
        or one too large where rounding reached the next number.  Either way what is left is at most
        |y|, on a grid no finer than y's: the multiply-add and the correction are exact.
        """
        ty, dtype, lanes = self.ty(node.dtype), node.dtype, node.lanes
        x, y = (self.value(v) for v in node.args)
        a, b = (self.native("fabs", dtype, v) for v in (x, y))
        quotient = self.w.put(f"fdiv {ty} {a}, {b}")
        limit = 2.0 ** (24 if dtypes.bits_of(dtype) == 32 else 53)
        tests = [
            self.w.put(f"fcmp olt {ty} {value}, {self.value(legalize.like(most, node.args[0]))}")
            for value, most in ((quotient, limit), (b, inf))
        ]
        mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
        small = self.w.put(f"and {mask} {tests[0]}, {tests[1]}")
        if lanes > 1:
            symbol = f"@llvm.vector.reduce.and.v{lanes}i1"
            self.helpers.add(f"declare i1 {symbol}(<{lanes} x i1>)")
            small = self.w.put(f"call i1 {symbol}(<{lanes} x i1> {small})")
        one_step, any_size, end = (self.w.label(x) for x in ("small", "large", "end"))
        self.w.branch_if(small, one_step, any_size)
        self.w.start(one_step)
        whole = self.native("trunc", dtype, quotient)
        left = self.native("fma", dtype, self.w.put(f"fneg {ty} {whole}"), b, a)
        below = self.w.put(f"fcmp olt {ty} {left}, {self.value(legalize.like(0.0, node.args[0]))}")
        right = self._select(dtype, below, self.w.put(f"fadd {ty} {left}, {b}"), left, lanes)
        exact = self.native("copysign", dtype, right, x)
        self.w.branch(end)
        self.w.start(any_size)
        general = self._lane_by_lane(node)
        self.w.branch(end)
        self.w.start(end)
        return self.w.put(f"phi {ty} [ {exact}, %{one_step} ], [ {general}, %{any_size} ]")

    def _lane_by_lane(self, node: E.Call) -> str:
        """Call a scalar function of the support object for every lane."""
        lanes = node.lanes
        scalar = self.ty(dtypes.scalar_of(node.dtype))
        vector = self.ty(node.dtype)
        types_ = ", ".join([scalar] * len(node.args))
        self.helpers.add(f"declare hidden {scalar} @{node.op}({types_})")
        operands = [self.value(a) for a in node.args]
        if lanes == 1:
            args = ", ".join(f"{scalar} {o}" for o in operands)
            return self.w.put(f"call {scalar} @{node.op}({args})")
        result = "poison"
        for lane in range(lanes):
            each = [self.w.put(f"extractelement {vector} {o}, i64 {lane}") for o in operands]
            args = ", ".join(f"{scalar} {o}" for o in each)
            one = self.w.put(f"call {scalar} @{node.op}({args})")
            result = self.w.put(f"insertelement {vector} {result}, {scalar} {one}, i64 {lane}")
        return result

    def _call_isnan(self, node: E.Call) -> str:
        value = self.value(node.args[0])
        return self.w.put(f"fcmp uno {self.ty(node.args[0].dtype)} {value}, {value}")

    def _call_isinf(self, node: E.Call) -> str:
        x = node.args[0]
        return self.value(E.EQ(legalize.call("fabs", x), legalize.like(float("inf"), x)))

    def _call_isfinite(self, node: E.Call) -> str:
        x = node.args[0]
        return self.value(E.LT(legalize.call("fabs", x), legalize.like(float("inf"), x)))

    def _call_abs(self, node: E.Call) -> str:
        if dtypes.is_float(node.dtype):
            return self._call_fabs(node)
        if not dtypes.is_int(node.dtype):
            return self.value(node.args[0])
        ty = self.ty(node.dtype)
        symbol = f"@llvm.abs.{mangle(ty)}"
        self.helpers.add(f"declare {ty} {symbol}({ty}, i1)")
        return self.w.put(f"call {ty} {symbol}({self.typed(node.args[0])}, i1 false)")

    def _call_popcount(self, node: E.Call) -> str:
        return self.native("ctpop", node.dtype, self.value(node.args[0]))

    def _call_clz(self, node: E.Call) -> str:
        ty = self.ty(node.args[0].dtype)
        symbol = f"@llvm.ctlz.{mangle(ty)}"
        self.helpers.add(f"declare {ty} {symbol}({ty}, i1)")
        found = self.w.put(f"call {ty} {symbol}({self.typed(node.args[0])}, i1 false)")
        want = self.ty(node.dtype)
        if want == ty:
            return found
        wider = dtypes.bits_of(node.dtype) > dtypes.bits_of(node.args[0].dtype)
        return self.w.put(f"{'zext' if wider else 'trunc'} {ty} {found} to {want}")

    def _call_bitwise_not(self, node: E.Call) -> str:
        ones = "-1" if node.lanes == 1 else f"splat ({self.ty(dtypes.scalar_of(node.dtype))} -1)"
        return self.w.put(f"xor {self.typed(node.args[0])}, {ones}")

    def _call_shift_right(self, node: E.Call) -> str:
        opcode = "ashr" if dtypes.is_int(node.dtype) else "lshr"
        a, b = (self.value(a) for a in node.args)
        return self.w.put(f"{opcode} {self.ty(node.dtype)} {a}, {b}")

    def _call_reinterpret(self, node: E.Call) -> str:
        legalize.changes_lanes(node)  # or has other bits, which is an error
        have, want = self.ty(node.args[0].dtype), self.ty(node.dtype)
        value = self.value(node.args[0])
        return value if have == want else self.w.put(f"bitcast {have} {value} to {want}")

    def _call_multiply_high(self, node: E.Call) -> str:
        table = self.capability.target.parsed_triple.table
        if table == "x86" and node.lanes % 2 == 0:
            return self._multiply_high_x86(node)
        if table == "aarch64" and node.lanes in (4, 8, 16, 32, 64):
            if any(_is_above_minimum(x) for x in node.args):
                return self._multiply_high_doubled(node)
            return self._multiply_high_in_pairs(node)
        return self.value(legalize.multiply_high(*node.args))

    def _multiply_high_x86(self, node: E.Call) -> str:
        """Even and odd elements by pmuldq, put together by one shuffle.

        LLVM finds that itself, unless it first moves the extension of a factor out of a loop.  Odd
        elements are brought to even places: shifted there, AVX2 code forgets that they have a sign.
        """
        n = node.lanes
        ty, wide = f"<{n} x i32>", f"<{n // 2} x i64>"
        down = ", ".join(f"i32 {i + 1}, i32 poison" for i in range(0, n, 2))
        even = [self.value(a) for a in node.args]
        odd = [
            self.w.put(f"shufflevector {ty} {x}, {ty} poison, <{n} x i32> <{down}>") for x in even
        ]
        products = []
        for sides in (even, odd):
            wide_sides = [self.w.put(f"bitcast {ty} {x} to {wide}") for x in sides]
            wide_sides = [self.w.put(f"shl {wide} {x}, splat (i64 32)") for x in wide_sides]
            x, y = (self.w.put(f"ashr {wide} {x}, splat (i64 32)") for x in wide_sides)
            product = self.w.put(f"mul {wide} {x}, {y}")
            products.append(self.w.put(f"bitcast {wide} {product} to {ty}"))
        order = ", ".join(f"i32 {i | 1 if i % 2 == 0 else i + n}" for i in range(n))
        return self.w.put(
            f"shufflevector {ty} {products[0]}, {ty} {products[1]}, <{n} x i32> <{order}>"
        )

    def _multiply_high_doubled(self, node: E.Call) -> str:
        """Four at a time: sqdmulh doubles a product and takes the upper half.

        It saturates where both factors are the smallest number.
        """
        four, symbol = "<4 x i32>", "@llvm.aarch64.neon.sqdmulh.v4i32"
        self.helpers.add(f"declare {four} {symbol}({four}, {four})")
        parts = []
        for x, y in self._pieces(node, 4):
            doubled = self.w.put(f"call {four} {symbol}({four} {x}, {four} {y})")
            parts.append(self.w.put(f"ashr {four} {doubled}, splat (i32 1)"))
        return self._put_together(parts, list(range(8)))

    def _multiply_high_in_pairs(self, node: E.Call) -> str:
        """Pairs by smull, for the same reason as on x86."""
        pair, wide, symbol = "<2 x i32>", "<2 x i64>", "@llvm.aarch64.neon.smull.v2i64"
        self.helpers.add(f"declare {wide} {symbol}({pair}, {pair})")
        products = []
        for x, y in self._pieces(node, 2):
            product = self.w.put(f"call {wide} {symbol}({pair} {x}, {pair} {y})")
            products.append(self.w.put(f"bitcast {wide} {product} to <4 x i32>"))
        return self._put_together(products, [1, 3, 5, 7])  # the upper words of each two products

    def _pieces(self, node: E.Call, size: int) -> list[tuple[str, str]]:
        """The two operands of a call on int32, taken apart into vectors of `size` lanes."""
        ty = f"<{node.lanes} x i32>"
        a, b = (self.value(x) for x in node.args)
        found = []
        for i in range(0, node.lanes, size):
            pick = f"<{size} x i32> <{', '.join(f'i32 {i + k}' for k in range(size))}>"
            x, y = (self.w.put(f"shufflevector {ty} {v}, {ty} poison, {pick}") for v in (a, b))
            found.append((x, y))
        return found

    def _put_together(self, parts: list[str], order: list[int]) -> str:
        """Put vectors of four int32 together by twos: first the lanes in `order`, then all."""
        size = 4
        while len(parts) > 1:
            kind, text = f"<{size} x i32>", ", ".join(f"i32 {i}" for i in order)
            parts = [
                self.w.put(f"shufflevector {kind} {x}, {kind} {y}, <{len(order)} x i32> <{text}>")
                for x, y in zip(parts[::2], parts[1::2], strict=True)
            ]
            size, order = len(order), list(range(2 * len(order)))
        return parts[0]

    def _call_q_multiply_shift(self, node: E.Call) -> str:
        return self.value(legalize.q_multiply_shift(*node.args))

    def _call_likely(self, node: E.Call) -> str:
        return self.value(node.args[0])

    def _call_if_then_else(self, node: E.Call) -> str:
        condition, first, second = node.args
        if condition.lanes > 1:
            return self.value(E.Select(condition, first, second))
        chosen = chosen_load(self, node)
        if chosen is not None:
            return chosen
        test = self.value(condition)
        yes, no, end = (self.w.label(x) for x in ("then", "else", "end"))
        self.w.branch_if(test, yes, no)
        incoming = []
        for label, side in ((yes, first), (no, second)):
            self.w.start(label)
            self.w.scopes.append({})
            self.memo.append({})
            incoming.append(f"[ {self.value(side)}, %{self.w.block} ]")
            self.memo.pop()
            self.w.scopes.pop()
            self.w.branch(end)
        self.w.start(end)
        return self.w.put(f"phi {self.ty(node.dtype)} {', '.join(incoming)}")

    # -- memory and calls ----------------------------------------------------------------------

    def _call_address_of(self, node: Any) -> str:
        load = node.args[0]
        indices = load.indices
        if indices and isinstance(indices[-1], E.Ramp):
            indices = (*indices[:-1], indices[-1].base)
        form, _, _ = self.flat_index(load.buffer, indices)
        ty, size, data = self.element(load.buffer)
        return self.address.pointer(data, ty, size, form)

    def _call_access_ptr(self, node: E.Call) -> str:
        data, offset = node.args[0], node.args[1]
        size = self.element_bytes.get(id(data), 1)
        form = self.address.linear(offset)
        return self.address.pointer(self.variable(data), f"[{size} x i8]", size, form)

    @property
    def element_bytes(self) -> dict[int, int]:
        """Bytes of one element behind each data pointer, by id of its Var."""
        raise NotImplementedError

    def _call_prefetch(self, node: Any) -> str:
        at = self.value(node.args[0])
        self.helpers.add("declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)")
        rest = [int(a) for a in node.args[1:]] + [0, 3, 1][len(node.args) - 1 :]
        self.w.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 {rest[0]}, i32 {rest[1]}, i32 1)")
        return "0"

    def _dot(self, node: E.Call) -> str:
        """Emit four products of bytes."""
        return self.value(EXPANDED[node.op](*node.args))

    def _call_storage_sync(self, node: E.Call) -> str:
        return "0"

    def _call_hardware(self, node: E.Call) -> str:
        entry = hardware(node, self.capability.target)
        *rows, b, c = node.args[1:]
        if entry.llvm.startswith("llvm."):
            return self._extern(node, entry.llvm, _operands(entry, rows[0], b, c))
        names = [f"a{k}" for k in range(entry.depth)] if entry.taps else ["a"]
        operands = zip((*names, "b", "c"), (*rows, b, c), strict=True)
        known = {name: self.value(x) for name, x in operands}
        for line in entry.llvm.splitlines():
            if line.startswith("declare"):
                self.helpers.add(line)
                continue
            name, equals, text = line.partition(" = ")
            found = self.w.put((text if equals else line).format_map(known))
            known[name] = found
        return found

    def _call_call_extern(self, node: Any) -> str:
        return self._extern(node, node.args[0].value, node.args[1:])

    _call_call_pure_extern = _call_call_extern

    def _call_call_llvm_intrin(self, node: Any) -> str:
        return self._extern(node, node.args[0].value, node.args[1:])

    _call_call_llvm_pure_intrin = _call_call_llvm_intrin

    def _extern(self, node: E.PrimExpr, symbol: str, args: Any) -> str:
        """Call a C function or an LLVM intrinsic by name; its types are those of the call."""
        legalize.refuse_matrix_unit(symbol)
        if not is_symbol(symbol):
            raise CodegenError(
                f"{symbol!r} cannot be the name of a C function or an LLVM intrinsic ({node})"
            )
        ty = "void" if node.dtype in ("", "void") else self.ty(node.dtype)
        operands = [self.typed(a) for a in args]
        types_ = ", ".join(self.ty(a.dtype) for a in args)
        self.helpers.add(f"declare {ty} @{symbol}({types_})")
        text = f"call {ty} @{symbol}({', '.join(operands)})"
        if ty == "void":
            self.w.do(text)
            return "0"
        return self.w.put(text)


def _is_above_minimum(node: E.PrimExpr) -> bool:
    """Return whether `node` is an integer constant other than the smallest int32."""
    value = node.value if isinstance(node, E.Broadcast) else node
    return isinstance(value, E.IntImm) and value.value > -(1 << 31)


def _operands(entry: HardwareIntrinsic, a: Any, b: Any, c: Any) -> list[E.PrimExpr]:
    """Return the arguments of the LLVM intrinsic that `entry` names."""
    if entry.rows == 0 and entry.columns > 1:  # the same elements of a for every column
        word = dtypes.make("int", dtypes.bits_of(entry.a_dtype) * entry.depth)
        a = E.Broadcast(_reinterpret(a, word), entry.columns)
    packed = [_reinterpret(x, entry.operand or x.dtype) for x in (a, b)]
    if entry.rows == 0 and entry.a_dtype == entry.b_dtype:
        packed.reverse()  # the last operand may be a lane, or a repeated value in memory
    order = (*packed, c) if entry.sum_last else (c, *packed)
    return [*(const(f, "int32") for f in entry.flags), *order]


def _reinterpret(value: Any, dtype: str) -> Any:
    return value if value.dtype == dtype else E.Call(dtype, "reinterpret", (value,))
