"""The intrinsics that `Call.op` may name: arity, effect and meaning, one row each.

`reference` is the NumPy meaning on arrays or scalars of the result's dtype; the interpreter,
constant folding and the numeric tests of every code generator use it.  A `Call` whose op is not
in the table is a call of the C symbol with that name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike


# The first of this task's steps of a parallel loop over [0, n), and the one after the last.
SHARE = ("share_begin", "share_end")


@dataclass(frozen=True)
class Intrinsic:
    """One intrinsic. `arity` -1 means any number; `pure` calls may be moved, merged and dropped."""

    name: str
    arity: int
    pure: bool = True
    reference: Callable[..., Any] | None = None


_vector_erf = np.vectorize(math.erf, otypes=[np.float64])


def _erf(x: PrimExprLike) -> Any:
    return np.asarray(_vector_erf(x)).astype(np.asarray(x).dtype)[()]


def _sigmoid(x: PrimExprLike) -> Any:
    dtype = np.asarray(x).dtype
    wide = np.asarray(x, dtype=np.float64)
    with np.errstate(over="ignore"):
        return (1.0 / (1.0 + np.exp(-wide))).astype(dtype)[()]


def _round_away(x: Any) -> Any:
    whole = np.trunc(x)
    return whole + np.copysign(np.abs(x - whole) >= 0.5, x).astype(np.asarray(x).dtype)


def _popcount(x: PrimExprLike) -> Any:
    array = np.asarray(x)  # as unsigned: NumPy counts the bits of the absolute value
    return np.bitwise_count(array.view(f"u{array.itemsize}")).astype(array.dtype)


def _clz(x: PrimExprLike) -> Any:
    array = np.asarray(x)
    bits = array.dtype.itemsize * 8
    unsigned = array.astype(f"uint{bits}")
    lengths = np.vectorize(lambda v: bits - int(v).bit_length(), otypes=[np.int64])(unsigned)
    return lengths.astype(array.dtype)[()]


def _q_multiply_shift(x: PrimExprLike, y: PrimExprLike, q: PrimExprLike, s: PrimExprLike) -> Any:
    """Round half up of x * y * 2^(s - q), computed in 64 bits (classic tir.q_multiply_shift)."""
    product = np.asarray(x, np.int64) * np.asarray(y, np.int64)
    shift = np.asarray(q, np.int64) - np.asarray(s, np.int64)
    rounding = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    right = (product + rounding) >> np.maximum(shift, 0)
    return np.where(shift >= 0, right, product << np.maximum(-shift, 0)).astype(np.int32)[()]


def _dot4(kinds: str, a: Any, b: Any, c: Any) -> Any:
    """Four products of the bytes of words, "s" or "u" for each of both; the sum wraps around."""

    def numbers(words: Any, kind: str) -> Any:
        four = np.asarray(words, "int32", order="C")[..., None]
        return four.view("int8" if kind == "s" else "uint8").astype("int64")

    total = (numbers(a, kinds[0]) * numbers(b, kinds[1])).sum(-1) + np.asarray(c, "int64")
    return (total & 0xFFFFFFFF).astype("uint32").view("int32")[()]


def _multiply_high(x: PrimExprLike, y: PrimExprLike) -> Any:
    product = np.asarray(x, np.int64) * np.asarray(y, np.int64)
    return (product >> 32).astype(np.int32)[()]


def _scale_by_power(x: Any, n: Any, i: Any) -> Any:
    """Return x * 2^n for a whole n, which comes as a float and as an integer."""
    return np.ldexp(x, np.asarray(i, np.int64))


_TABLE = [
    # Elementary functions on floats.  The stated ulp bounds live with the code generators.
    Intrinsic("exp", 1, reference=np.exp),
    Intrinsic("exp2", 1, reference=np.exp2),
    Intrinsic("exp10", 1, reference=lambda x: np.power(np.asarray(10, np.asarray(x).dtype), x)),
    Intrinsic("log", 1, reference=np.log),
    Intrinsic("log2", 1, reference=np.log2),
    Intrinsic("log10", 1, reference=np.log10),
    Intrinsic("log1p", 1, reference=np.log1p),
    Intrinsic("expm1", 1, reference=np.expm1),
    Intrinsic("sqrt", 1, reference=np.sqrt),
    Intrinsic("rsqrt", 1, reference=lambda x: np.asarray(1, np.asarray(x).dtype) / np.sqrt(x)),
    Intrinsic("pow", 2, reference=np.power),
    Intrinsic("sin", 1, reference=np.sin),
    Intrinsic("cos", 1, reference=np.cos),
    Intrinsic("tan", 1, reference=np.tan),
    Intrinsic("asin", 1, reference=np.arcsin),
    Intrinsic("acos", 1, reference=np.arccos),
    Intrinsic("atan", 1, reference=np.arctan),
    Intrinsic("atan2", 2, reference=np.arctan2),
    Intrinsic("sinh", 1, reference=np.sinh),
    Intrinsic("cosh", 1, reference=np.cosh),
    Intrinsic("tanh", 1, reference=np.tanh),
    Intrinsic("asinh", 1, reference=np.arcsinh),
    Intrinsic("acosh", 1, reference=np.arccosh),
    Intrinsic("atanh", 1, reference=np.arctanh),
    Intrinsic("erf", 1, reference=_erf),
    Intrinsic("sigmoid", 1, reference=_sigmoid),
    Intrinsic("fmod", 2, reference=np.fmod),
    Intrinsic("fma", 3, reference=lambda a, b, c: a * b + c),
    # Exact functions.
    Intrinsic("scale_by_power", 3, reference=_scale_by_power),
    Intrinsic("scale_down_by_power", 3, reference=_scale_by_power),  # n <= 0
    Intrinsic("floor", 1, reference=np.floor),
    Intrinsic("ceil", 1, reference=np.ceil),
    Intrinsic("trunc", 1, reference=np.trunc),
    Intrinsic("round", 1, reference=_round_away),  # halves away from zero, as C round()
    Intrinsic("nearbyint", 1, reference=np.rint),  # halves to even
    Intrinsic("fabs", 1, reference=np.abs),
    Intrinsic("copysign", 2, reference=np.copysign),
    Intrinsic("max_of_numbers", 2, reference=np.fmax),  # of a NaN and a number: either
    Intrinsic("isnan", 1, reference=np.isnan),
    Intrinsic("isinf", 1, reference=np.isinf),
    Intrinsic("isfinite", 1, reference=np.isfinite),
    Intrinsic("abs", 1, reference=np.abs),
    Intrinsic("popcount", 1, reference=_popcount),
    Intrinsic("clz", 1, reference=_clz),
    Intrinsic("bitwise_and", 2, reference=np.bitwise_and),
    Intrinsic("bitwise_or", 2, reference=np.bitwise_or),
    Intrinsic("bitwise_xor", 2, reference=np.bitwise_xor),
    Intrinsic("bitwise_not", 1, reference=np.invert),
    Intrinsic("shift_left", 2, reference=np.left_shift),
    Intrinsic("shift_right", 2, reference=np.right_shift),  # arithmetic on signed types
    Intrinsic("reinterpret", 1),  # the same bits as another dtype of the same size
    Intrinsic("q_multiply_shift", 4, reference=_q_multiply_shift),  # x, y, q, s (int32)
    Intrinsic("multiply_high", 2, reference=_multiply_high),  # upper half of an int32 product
    *(  # four products of bytes: ir/instructions/dot4.py
        Intrinsic(f"dot4_{a}{b}", 3, reference=partial(_dot4, a + b)) for a in "su" for b in "su"
    ),
    # Control.
    Intrinsic("if_then_else", 3),  # only the chosen side is evaluated
    Intrinsic("likely", 1, reference=lambda x: x),  # a hint that the condition mostly holds
    Intrinsic("share_begin", 1, reference=lambda n: 0 * n),
    Intrinsic("share_end", 1, reference=lambda n: n),
    # Memory and calls.
    Intrinsic("address_of", 1),  # pointer to the element of a BufferLoad
    Intrinsic("access_ptr", 3, pure=False),  # data, offset in elements, mode mask 1 read 2 write
    Intrinsic("prefetch", -1, pure=False),  # address, rw, locality, kind
    Intrinsic("call_packed", -1, pure=False),  # StringImm name, then arguments
    Intrinsic("call_extern", -1, pure=False),  # StringImm symbol, then arguments
    Intrinsic("call_pure_extern", -1),  # the same, without side effects
    Intrinsic("call_llvm_intrin", -1, pure=False),  # StringImm LLVM name, then arguments
    Intrinsic("call_llvm_pure_intrin", -1),
    Intrinsic("hardware", -1),  # StringImm name of ir.hardware, a (or its rows), b, c
    Intrinsic("warp_product", -1, pure=False),  # name, addresses: ir/instructions/warp_products.py
    # The same of matrices that nobody has elements of: ir/instructions/cooperative_products.py.
    Intrinsic("warp_zero", 2, pure=False),
    Intrinsic("warp_store", 3, pure=False),
    *(  # mask, value, place, width, warp: ir/instructions/warp_shuffles.py
        Intrinsic(f"warp_shuffle{where}", 5, pure=False) for where in ("", "_up", "_down")
    ),
    Intrinsic("async_copy", 3, pure=False),  # to, from, bytes: ir/instructions/async_copies.py
    Intrinsic("async_commit", 0, pure=False),
    Intrinsic("async_wait", 1, pure=False),
    Intrinsic("warp_activemask", 0, pure=False),  # a bit for each thread of the warp that is here
    Intrinsic("tensor_view", -1),  # Buffer made a DLTensor for call_packed: data, shape...
    Intrinsic("ret", 1, pure=False),  # return a value from the function
    Intrinsic("storage_sync", -1, pure=False),  # StringImm scope: a barrier
    *(  # of matrix units: ir/instructions/tiles.py
        Intrinsic(f"tile_{name}", arity, pure=False)
        for name, arity in (("config", -1), ("zero", 1), ("load", 3), ("dot", 4), ("store", 3))
    ),
]

INTRINSICS: dict[str, Intrinsic] = {entry.name: entry for entry in _TABLE}


_MATRIX_UNIT = re.compile(r"tvm_(fill_fragment|(load|store)_matrix_sync|b?mma_sync)|(ptx|mma)_\w+")


def of_matrix_unit(op: object) -> bool:
    """Return whether a call is of a GPU's matrix unit, which programs are read with."""
    return isinstance(op, str) and _MATRIX_UNIT.fullmatch(op) is not None


def is_pure(op: str) -> bool:
    """Return whether a call of `op` has no effect; unknown symbols are assumed to have one."""
    entry = INTRINSICS.get(op)
    return entry is not None and entry.pure
