"""Calls to values: one method per intrinsic, or an expansion."""

from __future__ import annotations

from collections.abc import Callable

from slipway import dtypes
from slipway.codegen import legalize, math
from slipway.codegen.ssa.expressions import Lane, SsaExpressions
from slipway.codegen.ssa.sink import Memory, Value, register_dtype
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir.instructions.dot4 import EXPANDED
from slipway.ir.instructions.warp_shuffles import EVERY_THREAD, in_words, is_shuffle, width_of
from slipway.ir.visit import walk

_EXPANDED: dict[str, Callable[..., E.PrimExpr]] = {
    "floor": legalize.floor,
    "ceil": legalize.ceil,
    "trunc": legalize.trunc,
    "round": legalize.round_away,
    "nearbyint": legalize.nearbyint,
    "multiply_high": legalize.multiply_high,
    **EXPANDED,
    "q_multiply_shift": legalize.q_multiply_shift,
}
_MATH = {"sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
         "nearbyint": "rint", "fma": "fma", "slw_fma32": "fma", "slw_fma64": "fma"}  # fmt: skip
_BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
            "shift_left": "shl", "shift_right": "shr"}  # fmt: skip
_FMOD = ("fmod", "slw_fmod32", "slw_fmod64")
_FOREIGN = ("call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin",
            "hardware", "call_packed", "tensor_view", "address_of", "access_ptr",
            "ret")  # fmt: skip


class SsaIntrinsics(SsaExpressions):
    """Adds calls to the expressions."""

    def _s_Call(self, node: E.Call, lane: Lane) -> Value:
        op = node.op
        if op in _FOREIGN:
            raise CodegenError(f"{self.name}: a kernel cannot {op}: {node}")
        method = getattr(self, "_call_" + op, None)
        if is_shuffle(node):
            return self._shuffle(node, lane)
        if op in ("if_then_else", "likely", "reinterpret", "prefetch"):
            return method(node, lane)  # type: ignore[misc,no-any-return]
        scalar = dtypes.scalar_of(node.args[0].dtype) if node.args else ""
        if scalar in ("float16", "bfloat16"):
            return self.expr(legalize.intrinsic_in_float32(node), lane)
        if scalar in ("float32", "float64"):
            if op in _MATH:
                return self.sink.math(_MATH[op], *(self.expr(a, lane) for a in node.args))
            if op in _FMOD:
                return self.remainder(*(self.expr(a, lane) for a in node.args))
        if op in _BITWISE:
            return self.sink.binary(_BITWISE[op], *(self.expr(a, lane) for a in node.args))
        if op in _EXPANDED:
            return self.expr(_EXPANDED[op](*node.args), lane)
        if method is not None:
            return method(node, lane)  # type: ignore[no-any-return]
        expansion = math.expand(op, node.args)
        if expansion is None:
            raise CodegenError(f"{self.name}: a kernel has no function {op}: {node}")
        return self.expr(expansion, lane)

    def _shuffle(self, node: E.Call, lane: Lane) -> Value:
        single = in_words(node)
        if single is not node:
            return self.expr(single, lane)
        value, position = (self.expr(a, lane) for a in node.args[1:3])
        return self.sink.shuffle(node.op, value, position, width_of(node))

    def _call_warp_activemask(self, node: E.Call, lane: Lane) -> Value:
        return self.sink.constant("uint32", EVERY_THREAD)

    # -- choice ------------------------------------------------------------------------------------

    def _call_if_then_else(self, node: E.Call, lane: Lane) -> Value:
        condition, first, second = node.args
        test = self.expr(condition, lane if condition.lanes > 1 else None)
        if self.in_lanes and isinstance(second, (E.FloatImm, E.IntImm)):
            read = self._global_position(first, lane)
            if read is not None:
                memory, index = read
                none = self.sink.constant(index.dtype, 0)
                loaded = self.sink.load(memory, self.sink.select(test, index, none))
                other = self.expr(second, lane)
                return self.sink.select(test, loaded, self.number(other, loaded.dtype))
        return self.chosen(test, lambda: self.expr(first, lane), lambda: self.expr(second, lane))

    def _global_position(self, node: E.PrimExpr, lane: Lane) -> tuple[Memory, Value] | None:
        """Return what a plain load of a tensor reads; its index may be computed at any time."""
        if not isinstance(node, E.BufferLoad) or node.lanes > 1 or node.dtype == "bool":
            return None
        memory = self.memories.get(id(node.buffer.data))
        if memory is None or memory.scope != "global" or node.dtype != memory.dtype:
            return None
        if id(node.buffer.data) in self.stored:
            return None
        if any(isinstance(n, (E.BufferLoad, E.Call)) for i in node.indices for n in walk(i)):
            return None
        return self.element(node.buffer, node.indices, lane)

    def _call_likely(self, node: E.Call, lane: Lane) -> Value:
        return self.expr(node.args[0], lane)

    def _call_prefetch(self, node: E.Call, lane: Lane) -> Value:
        return self.sink.constant("int32", 0)

    # -- floats ------------------------------------------------------------------------------------

    def _call_isnan(self, node: E.Call, lane: Lane) -> Value:
        return self.sink.math("isnan", self.expr(node.args[0], lane))

    def _call_isinf(self, node: E.Call, lane: Lane) -> Value:
        return self._against_infinity("==", node, lane)

    def _call_isfinite(self, node: E.Call, lane: Lane) -> Value:
        return self._against_infinity("<", node, lane)

    def _against_infinity(self, sign: str, node: E.Call, lane: Lane) -> Value:
        value = self.expr(node.args[0], lane)
        infinity = self.sink.constant(value.dtype, float("inf"))
        return self.sink.compare(sign, self.sink.math("fabs", value), infinity)

    def _call_max_of_numbers(self, node: E.Call, lane: Lane) -> Value:
        a, b = (self.expr(x, lane) for x in node.args)
        return self.sink.select(self.sink.compare(">", a, b), a, b)

    def _call_copysign(self, node: E.Call, lane: Lane) -> Value:
        size, sign = (self.expr(a, lane) for a in node.args)
        bits = dtypes.bits_of(size.dtype)
        word = f"uint{bits}"
        top = self.sink.constant(word, 1 << (bits - 1))
        low = self.sink.constant(word, (1 << (bits - 1)) - 1)
        kept = self.sink.binary("and", self.sink.bitcast(size, word), low)
        given = self.sink.binary("and", self.sink.bitcast(sign, word), top)
        return self.sink.bitcast(self.sink.binary("or", kept, given), size.dtype)

    def remainder(self, a: Value, b: Value) -> Value:
        """Return the remainder of a / b with the sign of a: exact, a step for each bit of a / b.

        Each step takes the largest b * 2^n that is not above what is left of a.  That is exact, as
        is doubling and halving.
        """
        sink, dtype = self.sink, a.dtype
        x, y = sink.math("fabs", a), sink.math("fabs", b)
        half, two, zero = (sink.constant(dtype, n) for n in (0.5, 2.0, 0.0))
        left = self.scratch(dtype, x)
        step = self.scratch(dtype, y)
        largest = 3.0e38 if dtype == "float32" else 1.7e308
        finite = sink.compare("<=", x, sink.constant(dtype, largest))
        defined = sink.binary("and", finite, sink.compare(">", y, zero))

        def divide() -> None:
            def grows() -> Value:
                return sink.compare("<=", self.read(step), sink.binary("mul", x, half))

            sink.repeat(grows, lambda: self.write(step, sink.binary("mul", self.read(step), two)))
            sink.repeat(
                lambda: sink.compare(">=", self.read(step), y), lambda: self._take(left, step, half)
            )

        sink.branch(defined, divide, None)
        nan = sink.constant(dtype, float("nan"))
        found = sink.select(defined, self.read(left), nan)
        found = sink.select(sink.math("isnan", sink.binary("add", x, y)), nan, found)
        return sink.select(sink.compare("<", a, zero), sink.negate(found), found)

    def _take(self, left: Memory, step: Memory, half: Value) -> None:
        sink = self.sink
        now, size = self.read(left), self.read(step)
        less = sink.binary("sub", now, size)
        self.write(left, sink.select(sink.compare(">=", now, size), less, now))
        self.write(step, sink.binary("mul", size, half))

    def scratch(self, dtype: str, value: Value) -> Memory:
        """Return a variable of this thread that holds `value`."""
        raise NotImplementedError

    def read(self, variable: Memory) -> Value:
        """Return what a variable holds."""
        raise NotImplementedError

    def write(self, variable: Memory, value: Value) -> None:
        """Let a variable hold another value."""
        raise NotImplementedError

    # -- integers and bits -------------------------------------------------------------------------

    def _call_quotient(self, node: E.Call, lane: Lane) -> Value:
        return self.sink.binary("div", *(self.expr(a, lane) for a in node.args))

    def _call_remainder(self, node: E.Call, lane: Lane) -> Value:
        """The remainder by way of the quotient: Vulkan leaves that of negative numbers open."""
        a, b = (self.expr(x, lane) for x in node.args)
        whole = self.sink.binary("mul", self.sink.binary("div", a, b), b)
        return self.sink.binary("sub", a, whole)

    def _call_abs(self, node: E.Call, lane: Lane) -> Value:
        value = self.expr(node.args[0], lane)
        if dtypes.is_float(value.dtype):
            return self.sink.math("fabs", value)
        if not dtypes.is_int(value.dtype):
            return value
        zero = self.sink.constant(value.dtype, 0)
        opposite = self.sink.binary("sub", zero, value)
        return self.sink.select(self.sink.compare("<", value, zero), opposite, value)

    def _call_bitwise_not(self, node: E.Call, lane: Lane) -> Value:
        value = self.expr(node.args[0], lane)
        if value.dtype == "bool":
            return self.sink.negate(value)
        return self.sink.binary("xor", value, self.sink.constant(value.dtype, -1))

    def _words(self, value: Value) -> list[Value]:
        """Return an integer's bits as uint32, high ones first."""
        bits = dtypes.bits_of(value.dtype)
        value = self.number(value, f"uint{bits}")
        if bits < 64:
            return [self.number(value, "uint32")]
        high = self.sink.binary("shr", value, self.sink.constant("uint64", 32))
        return [self.sink.convert(part, "uint32") for part in (high, value)]

    def _call_popcount(self, node: E.Call, lane: Lane) -> Value:
        counts = [self.sink.math("popcount", w) for w in self._words(self.expr(node.args[0], lane))]
        total = counts[0] if len(counts) == 1 else self.sink.binary("add", *counts)
        return self.number(total, register_dtype(node.dtype))

    def _call_clz(self, node: E.Call, lane: Lane) -> Value:
        value = self.expr(node.args[0], lane)
        bits = dtypes.bits_of(value.dtype)
        words = self._words(value)
        zeros = self.sink.math("clz", words[0])
        if len(words) == 2:
            full = self.sink.constant("uint32", 32)
            low = self.sink.binary("add", self.sink.math("clz", words[1]), full)
            zeros = self.sink.select(self.sink.compare("==", zeros, full), low, zeros)
        elif bits < 32:
            zeros = self.sink.binary("sub", zeros, self.sink.constant("uint32", 32 - bits))
        return self.number(zeros, register_dtype(node.dtype))

    def _call_reinterpret(self, node: E.Call, lane: Lane) -> Value:
        if legalize.changes_lanes(node):
            return self.expr(legalize.reinterpreted_lane(node, lane or 0))
        value = self.expr(node.args[0], lane)
        want = register_dtype(node.dtype)
        if want == value.dtype:
            return value
        if want == "bool":
            return self.truth(value)
        if value.dtype == "bool":
            return self.number(value, want)
        return self.sink.bitcast(value, want)
