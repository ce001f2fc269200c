"""Expansions of what a target lacks, from expressions to expressions.

Both code generators call these where they meet the construct, so that LLVM and C compute the same
thing.  Each function here is exact: the result is that of the original, bit for bit.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir.buffer import Buffer
from slipway.ir.intrin import of_matrix_unit
from slipway.ir.node import Node
from slipway.ir.ops import cast, const
from slipway.target.capability import Capability

if TYPE_CHECKING:
    pass


def call(op: str, *args: E.PrimExpr, dtype: str | None = None) -> E.PrimExpr:
    """Return a Call with the first argument's dtype, or `dtype`."""
    return E.Call(dtype or args[0].dtype, op, args)


def like(value: float | int, other: E.PrimExpr) -> E.PrimExpr:
    """Return the constant `value` in the dtype and lanes of `other`."""
    return const(value, other.dtype)


def reinterpret(value: E.PrimExpr, scalar: str) -> E.PrimExpr:
    """Return the bits of `value` as another dtype of the same size."""
    return E.Call(dtypes.with_lanes(scalar, value.lanes), "reinterpret", (value,))


def changes_lanes(node: Node) -> bool:
    """Return whether a node takes the bits of a vector as one of more or fewer lanes.

    Raises CodegenError for a `reinterpret` to another number of bits.
    """
    if not isinstance(node, E.Call) or node.op != "reinterpret":
        return False
    source = node.args[0].dtype
    have, want = dtypes.bits_of(source), dtypes.bits_of(node.dtype)
    total, wanted = have * dtypes.lanes_of(source), want * node.lanes
    bytes_only = min(have, want) >= 8
    if total != wanted and (bytes_only or node.lanes != dtypes.lanes_of(source)):
        raise CodegenError(
            f"reinterpret gives as many bits as it takes: {source} is not {node.dtype} ({node})"
        )
    return node.lanes != dtypes.lanes_of(source)


def reinterpreted_lane(node: E.Call, lane: int) -> E.PrimExpr:
    """Return one lane of a `reinterpret` that changes the number of lanes, in scalars.

    The first lane of several has the lowest bits, as in the memory of little-endian processors.
    """
    (source,) = node.args
    have, want = dtypes.scalar_of(source.dtype), dtypes.scalar_of(node.dtype)
    narrow, wide = sorted((dtypes.bits_of(have), dtypes.bits_of(want)))
    if narrow < 8:
        raise CodegenError(
            f"reinterpret regroups whole bytes: {source.dtype} is not {node.dtype} ({node})"
        )

    def picked(number: int) -> E.PrimExpr:
        return source if source.lanes == 1 else E.Shuffle((source,), (number,))

    count = wide // narrow
    if dtypes.bits_of(have) == wide:
        word = reinterpret(picked(lane // count), f"uint{wide}")
        shifted = call("shift_right", word, like(lane % count * narrow, word))
        return reinterpret(E.Cast(f"uint{narrow}", shifted), want)
    parts = [
        E.Cast(f"uint{wide}", reinterpret(picked(lane * count + n), f"uint{narrow}"))
        for n in range(count)
    ]
    total: E.PrimExpr = parts[0]
    for number, part in enumerate(parts[1:], 1):
        total = call("bitwise_or", total, call("shift_left", part, like(number * narrow, part)))
    return reinterpret(total, want)


def share(value: E.PrimExpr, body: Any, name: str = "t") -> E.PrimExpr:
    """Return ``body(v)`` with v a variable that holds `value`: it is computed once."""
    if isinstance(_scalar(value), (E.Var, E.IntImm, E.FloatImm)):
        return body(value)  # type: ignore[no-any-return]
    var = E.Var(name, value.dtype)
    return E.Let(var, value, body(var))


def flatten_index(buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> E.PrimExpr:
    """Return the position, in elements from the data pointer, of a multi-dimensional index."""
    total: E.PrimExpr | None = None
    for axis, index in enumerate(indices):
        if buffer.strides:
            stride = buffer.strides[axis]
            if stride.dtype != index.dtype:
                stride, index = cast(stride, "int64"), cast(index, "int64")
            term = _times(index, stride)
            total = term if total is None else _plus(total, term)
        elif total is None:
            total = index
        else:
            total = _plus(_times(total, buffer.shape[axis]), index)
    if total is None:
        total = const(0, "int32")
    if buffer.elem_offset is not None:
        total = _plus(total, buffer.elem_offset)
    return total


def wide_index(buffer: Buffer, index: E.PrimExpr) -> E.PrimExpr:
    """Return a position in elements in int64 where the buffer may have 2^31 of them or more.

    It may where it has several extents, or an expression of them, that are not known.  (A single
    one is an int32 itself; what 32-bit addresses do not need of it, compilers leave out.)
    """
    if len(buffer.shape) == 1 and isinstance(buffer.shape[0], E.Var):
        return index
    known = [extent.value for extent in buffer.shape if isinstance(extent, E.IntImm)]
    is_small = len(known) == len(buffer.shape) and prod(known) < 1 << 31
    return index if is_small else _widened(index)


def _widened(index: E.PrimExpr) -> E.PrimExpr:
    """Return an index in int64: its parts are in int32, and their sums and products may not be."""
    if index.dtype == "int64":
        return index
    if isinstance(index, E.IntImm):
        return const(index.value, "int64")
    if isinstance(index, (E.Add, E.Sub, E.Mul)):
        return type(index)(_widened(index.a), _widened(index.b))
    return cast(index, "int64")


def _plus(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if a.dtype != b.dtype:
        a, b = cast(a, "int64"), cast(b, "int64")
    return a + b


def _times(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if a.dtype != b.dtype:
        a, b = cast(a, "int64"), cast(b, "int64")
    return a * b


def as_ramp(index: E.PrimExpr) -> tuple[E.PrimExpr, int] | None:
    """Return (base, stride) of a vector index whose lanes are base + lane * stride, else None.

    Sees through sums of broadcasts and ramps, and products with constants.
    """
    if isinstance(index, E.Ramp):
        return (index.base, index.stride.value) if isinstance(index.stride, E.IntImm) else None
    if isinstance(index, E.Broadcast):
        return (index.value, 0) if index.value.lanes == 1 else None
    if isinstance(index, (E.Add, E.Sub)):
        a, b = as_ramp(index.a), as_ramp(index.b)
        if a is None or b is None:
            return None
        sign = 1 if isinstance(index, E.Add) else -1
        return type(index)(a[0], b[0]), a[1] + sign * b[1]
    if isinstance(index, E.Mul):
        a, b = as_ramp(index.a), as_ramp(index.b)
        if a is None or b is None:
            return None
        if a[1] and b[1] == 0 and isinstance(b[0], E.IntImm):
            return E.Mul(a[0], b[0]), a[1] * b[0].value
        if b[1] and a[1] == 0 and isinstance(a[0], E.IntImm):
            return E.Mul(a[0], b[0]), b[1] * a[0].value
        return (E.Mul(a[0], b[0]), 0) if a[1] == 0 and b[1] == 0 else None
    if (
        isinstance(index, E.Cast)
        and dtypes.is_int(index.dtype)
        and dtypes.is_int(index.value.dtype)
    ):
        inner = as_ramp(index.value)
        wider = dtypes.bits_of(index.dtype) >= dtypes.bits_of(index.value.dtype)
        if inner is not None and wider:
            return E.Cast(dtypes.scalar_of(index.dtype), inner[0]), inner[1]
    return None


# -- types that are only stored -------------------------------------------------------------------

_MOVES = (E.BufferLoad, E.Var, E.IntImm, E.Let, E.Select, E.Broadcast, E.Shuffle)
_MOVING_CALLS = ("reinterpret", "if_then_else", "address_of", "access_ptr", "tensor_view")


def refuse_matrix_unit(op: str) -> None:
    """Raise CodegenError for a call of a GPU's matrix unit by its classic name."""
    if of_matrix_unit(op):
        raise CodegenError(
            f"{op} is of a GPU's matrix unit, which code is not made for by hand: schedule plain "
            "loops, or build the model, whose products use the unit where there is one"
        )


def refuse_carried(node: E.PrimExpr) -> None:
    """Raise CodegenError where `node` computes with a dtype that can only be moved."""
    match node:
        case E.CmpOp():
            operands: tuple[E.PrimExpr, ...] = (node.a,)
        case E.Cast():
            operands = (node, node.value)
        case E.Call():
            operands = () if node.op in _MOVING_CALLS else (node, *node.args)
        case _:
            operands = () if isinstance(node, _MOVES) else (node,)
    for operand in operands:
        if operand.dtype and dtypes.is_carried(operand.dtype):  # "": nothing is returned
            raise CodegenError(
                f"{operand.dtype} cannot be computed with directly: convert it first, as the "
                f"operator cast does ({node})"
            )


# -- half precision --------------------------------------------------------------------------------


def in_float32(node: Any) -> E.PrimExpr:
    """Compute a binary node on float16 or bfloat16 in float32 and round the result.

    float32 has more than twice their precision plus two bits, so this equals rounding once.
    """
    lanes = node.a.lanes
    wide = dtypes.with_lanes("float32", lanes)
    result = type(node)(E.Cast(wide, node.a), E.Cast(wide, node.b))
    return result if isinstance(node, E.CmpOp) else E.Cast(node.dtype, result)


def intrinsic_in_float32(node: E.Call) -> E.PrimExpr:
    """Compute an intrinsic on float16 or bfloat16 in float32 and round the result."""
    wide = dtypes.with_lanes("float32", dtypes.lanes_of(node.dtype))
    args = tuple(
        E.Cast(dtypes.with_lanes("float32", a.lanes), a) if dtypes.is_float(a.dtype) else a
        for a in node.args
    )
    if dtypes.is_float(node.dtype):
        return E.Cast(node.dtype, E.Call(wide, node.op, args))
    return E.Call(node.dtype, node.op, args)


def cast_of_half(node: E.Cast, capability: Capability) -> E.PrimExpr | None:
    """Expand a conversion from or to float16 / bfloat16; None where LLVM does it itself."""
    source, target = dtypes.scalar_of(node.value.dtype), dtypes.scalar_of(node.dtype)
    halves = ("float16", "bfloat16")
    if source not in halves and target not in halves:
        return None
    lanes = node.lanes
    wide = dtypes.with_lanes("float32", lanes)
    if source in halves and target != "float32":
        return E.Cast(node.dtype, E.Cast(wide, node.value))
    if source == "float16":
        return None if capability.half != "soft" else _half_to_float(node.value)
    if source == "bfloat16":
        bits = E.Cast(dtypes.with_lanes("uint32", lanes), reinterpret(node.value, "uint16"))
        return reinterpret(call("shift_left", bits, like(16, bits)), "float32")
    if source == "float64":
        return E.Cast(node.dtype, _to_odd_float32(node.value))
    if source != "float32":
        if target == "float16" and dtypes.bits_of(source) > 16:
            return E.Cast(node.dtype, _as_exact_float32(node.value))
        if dtypes.bits_of(source) > 16:  # a long integer: to float64, which then rounds once
            double = dtypes.with_lanes("float64", lanes)
            return E.Cast(node.dtype, E.Cast(double, node.value))
        return E.Cast(node.dtype, E.Cast(wide, node.value))
    if target == "bfloat16":
        return _float_to_bfloat(node.value)
    return None if capability.half != "soft" else _float_to_half(node.value)


def _as_exact_float32(value: E.PrimExpr) -> E.PrimExpr:
    """Return integers as float32, those beyond a half's range as one that is beyond it too.

    Nothing is rounded: a conversion to a half rounds once.
    """
    beyond = like(1 << 17, value)
    value = E.Min(value, beyond)
    if dtypes.is_int(dtypes.scalar_of(value.dtype)):
        value = E.Max(value, like(-(1 << 17), value))
    narrow = E.Cast(dtypes.with_lanes("int32", value.lanes), value)
    return E.Cast(dtypes.with_lanes("float32", value.lanes), narrow)


def _half_to_float(value: E.PrimExpr) -> E.PrimExpr:
    lanes = value.lanes
    word = dtypes.with_lanes("uint32", lanes)

    def expand(h: E.PrimExpr) -> E.PrimExpr:
        sign = call("shift_left", call("bitwise_and", h, like(0x8000, h)), like(16, h))
        magnitude = call("bitwise_and", h, like(0x7FFF, h))

        def finish(m: E.PrimExpr) -> E.PrimExpr:
            shifted = call("shift_left", m, like(13, m))
            normal = E.Add(shifted, like(112 << 23, m))
            special = E.Add(shifted, like(224 << 23, m))
            small = E.Mul(
                E.Cast(dtypes.with_lanes("float32", lanes), reinterpret(m, "int32")),
                const(2.0**-24, dtypes.with_lanes("float32", lanes)),
            )
            bits = E.Select(E.GE(m, like(0x7C00, m)), special, normal)
            bits = E.Select(E.LT(m, like(0x400, m)), reinterpret(small, "uint32"), bits)
            return reinterpret(call("bitwise_or", bits, sign), "float32")

        return share(magnitude, finish)

    return share(E.Cast(word, reinterpret(value, "uint16")), expand, "h")


def _float_to_half(value: E.PrimExpr) -> E.PrimExpr:
    def expand(u: E.PrimExpr) -> E.PrimExpr:
        sign = call("bitwise_and", call("shift_right", u, like(16, u)), like(0x8000, u))

        def finish(a: E.PrimExpr) -> E.PrimExpr:
            odd = call("bitwise_and", call("shift_right", a, like(13, a)), like(1, a))
            rounded = E.Add(E.Add(a, like(0xC8000FFF, a)), odd)  # 0xC8000000 = (15 - 127) << 23
            normal = call("shift_right", rounded, like(13, a))
            # Adding 0.5 puts the last bit of a small half at the last bit of the sum.
            half = const(0.5, dtypes.with_lanes("float32", a.lanes))
            small = E.Sub(
                reinterpret(E.Add(reinterpret(a, "float32"), half), "uint32"), like(0x3F000000, a)
            )
            special = E.Select(E.GT(a, like(0x7F800000, a)), like(0x7E00, a), like(0x7C00, a))
            bits = E.Select(E.LT(a, like(0x38800000, a)), small, normal)
            bits = E.Select(E.GE(a, like(0x47800000, a)), special, bits)
            word = E.Cast(dtypes.with_lanes("uint16", a.lanes), call("bitwise_or", bits, sign))
            return reinterpret(word, "float16")

        return share(call("bitwise_and", u, like(0x7FFFFFFF, u)), finish)

    return share(reinterpret(value, "uint32"), expand, "u")


def _float_to_bfloat(value: E.PrimExpr) -> E.PrimExpr:
    def expand(u: E.PrimExpr) -> E.PrimExpr:
        high = call("shift_right", u, like(16, u))
        odd = call("bitwise_and", high, like(1, u))
        rounded = call("shift_right", E.Add(E.Add(u, like(0x7FFF, u)), odd), like(16, u))
        quiet = call("bitwise_or", high, like(0x40, u))
        magnitude = call("bitwise_and", u, like(0x7FFFFFFF, u))
        bits = E.Select(E.GT(magnitude, like(0x7F800000, u)), quiet, rounded)
        return reinterpret(E.Cast(dtypes.with_lanes("uint16", u.lanes), bits), "bfloat16")

    return share(reinterpret(value, "uint32"), expand, "u")


def _to_odd_float32(value: E.PrimExpr) -> E.PrimExpr:
    """Round float64 to float32 toward zero, with the last bit set where inexact.

    A second rounding, to a half, then gives what one rounding would have given.
    """
    lanes = value.lanes
    single, double = (dtypes.with_lanes(f"float{bits}", lanes) for bits in (32, 64))

    def expand(x: E.PrimExpr) -> E.PrimExpr:
        def fix(f: E.PrimExpr) -> E.PrimExpr:
            back = E.Cast(double, f)
            bits = reinterpret(f, "uint32")
            above = E.GT(call("fabs", back), call("fabs", x))
            toward_zero = E.Sub(bits, E.Select(above, like(1, bits), like(0, bits)))
            inexact = E.And(E.NE(back, x), E.EQ(x, x))
            odd = call("bitwise_or", toward_zero, like(1, bits))
            return reinterpret(E.Select(inexact, odd, bits), "float32")

        return share(E.Cast(single, x), fix, "f")

    return share(value, expand, "x")


# -- rounding to integers --------------------------------------------------------------------------


def nearbyint(value: E.PrimExpr) -> E.PrimExpr:
    """Round to the nearest integer, halves to even: adding 2^23 (2^52) leaves no fraction."""
    big = 2.0**23 if dtypes.bits_of(value.dtype) == 32 else 2.0**52

    def expand(x: E.PrimExpr) -> E.PrimExpr:
        magnitude = call("fabs", x)
        rounded = E.Sub(E.Add(magnitude, like(big, x)), like(big, x))
        small = E.LT(magnitude, like(big, x))
        return E.Select(small, call("copysign", rounded, x), x)

    return share(value, expand, "x")


def floor(value: E.PrimExpr) -> E.PrimExpr:
    """The largest integer not above."""
    return _step(value, lambda x, r: E.Sub(r, E.Select(E.GT(r, x), like(1.0, x), like(0.0, x))))


def ceil(value: E.PrimExpr) -> E.PrimExpr:
    """The smallest integer not below."""
    return _step(value, lambda x, r: E.Add(r, E.Select(E.LT(r, x), like(1.0, x), like(0.0, x))))


def _step(value: E.PrimExpr, correct: Any) -> E.PrimExpr:
    """Round to nearest, then correct(x, rounded); the sign of zero is that of x."""

    def expand(x: E.PrimExpr) -> E.PrimExpr:
        return share(nearbyint(x), lambda r: call("copysign", correct(x, r), x))

    return share(value, expand, "x")


def trunc(value: E.PrimExpr) -> E.PrimExpr:
    """The integer part."""

    def expand(x: E.PrimExpr) -> E.PrimExpr:
        magnitude = call("fabs", x)
        return share(nearbyint(magnitude), lambda r: call("copysign", E.Sub(
            r, E.Select(E.GT(r, magnitude), like(1.0, x), like(0.0, x))), x))  # fmt: skip

    return share(value, expand, "x")


def round_away(value: E.PrimExpr) -> E.PrimExpr:
    """Round to the nearest integer, halves away from zero."""

    def expand(x: E.PrimExpr) -> E.PrimExpr:
        magnitude = call("fabs", x)

        def finish(t: E.PrimExpr) -> E.PrimExpr:
            up = E.GE(E.Sub(magnitude, t), like(0.5, x))
            return call("copysign", E.Add(t, E.Select(up, like(1.0, x), like(0.0, x))), x)

        return share(call("trunc", magnitude), finish)

    return share(value, expand, "x")


def fmod(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    """The remainder of a / b with the sign of a, exactly: a function of glue/support.c."""
    if dtypes.scalar_of(a.dtype) in ("float16", "bfloat16"):
        return intrinsic_in_float32(E.Call(a.dtype, "fmod", (a, b)))
    return E.Call(a.dtype, f"slw_fmod{dtypes.bits_of(a.dtype)}", (a, b))


FMOD = ("slw_fmod32", "slw_fmod64")
SUPPORT = (*FMOD, "slw_fma32", "slw_fma64")  # scalar functions there


# -- integers --------------------------------------------------------------------------------------


def multiply_high(x: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    """The upper half of an int32 product, through 64 bits."""
    wide = dtypes.with_lanes("int64", x.lanes)
    product = E.Mul(cast(x, wide), cast(y, wide))
    return cast(call("shift_right", product, const(32, wide)), x.dtype)


def q_multiply_shift(x: E.PrimExpr, y: E.PrimExpr, q: E.PrimExpr, s: E.PrimExpr) -> E.PrimExpr:
    """(x * y * 2^(s - q)), rounded half up, through 64 bits."""
    lanes = x.lanes
    wide = dtypes.with_lanes("int64", lanes)
    product = E.Mul(cast(x, wide), cast(y, wide))
    if isinstance(_scalar(q), E.IntImm) and isinstance(_scalar(s), E.IntImm):
        shift = _scalar(q).value - _scalar(s).value  # type: ignore[attr-defined]
        if shift > 0:
            rounded = E.Add(product, const(1 << (shift - 1), wide))
            result = call("shift_right", rounded, const(shift, wide))
        else:
            result = call("shift_left", product, const(-shift, wide))
        return cast(result, dtypes.with_lanes("int32", lanes))

    def expand(shift: E.PrimExpr) -> E.PrimExpr:
        zero, one = const(0, wide), const(1, wide)
        down = E.Max(shift, zero)
        half = E.Select(
            E.GT(shift, zero), call("shift_left", one, E.Max(E.Sub(shift, one), zero)), zero
        )
        right = call("shift_right", E.Add(product, half), down)
        left = call("shift_left", product, E.Max(E.Sub(zero, shift), zero))
        chosen = E.Select(E.GE(shift, zero), right, left)
        return cast(chosen, dtypes.with_lanes("int32", lanes))

    return share(E.Sub(cast(q, wide), cast(s, wide)), expand, "shift")


def _scalar(value: E.PrimExpr) -> E.PrimExpr:
    return value.value if isinstance(value, E.Broadcast) else value


def held_float(node: E.Select) -> E.PrimExpr | None:
    """Return the float that `node` converts as `te.to_integer` does; None for another choice.

    isnan(x) ? 0 : x >= 2^31 ? largest : x < -2^31 ? smallest : cast(x)
    """
    test, above = node.condition, node.false_value
    if not (isinstance(test, E.Call) and test.op == "isnan" and isinstance(above, E.Select)):
        return None
    below, x = above.false_value, test.args[0]
    if not (isinstance(below, E.Select) and isinstance(below.false_value, E.Cast)):
        return None
    limit = 1 << (dtypes.bits_of(node.dtype) - 1)
    over, under, cast = above.condition, below.condition, below.false_value
    is_held = (
        isinstance(over, E.GE)
        and isinstance(under, E.LT)
        and over.a is under.a is cast.value is x
        and [_number(over.b), _number(under.b)] == [limit, -limit]
        and [_number(v) for v in (node.true_value, above.true_value, below.true_value)]
        == [0, limit - 1, -limit]
        and dtypes.is_int(node.dtype)
    )
    return x if is_held else None


def _number(value: E.PrimExpr) -> int | float | None:
    if isinstance(value, E.Broadcast):
        value = value.value
    return value.value if isinstance(value, (E.IntImm, E.FloatImm)) else None
