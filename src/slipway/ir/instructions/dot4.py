"""Sums of four products of bytes: ``c + sum over j of byte j of a * byte j of b``, words of int32.

``Call("int32", "dot4_su", (a, b, c))`` takes the bytes of `a` as signed and those of `b` as
unsigned numbers.  Processors and GPUs have an instruction (NVIDIA's ``dp4a``, from sm_61 on);
elsewhere it is `expanded`.  The sum wraps around, as int32 does.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from slipway.ir import expr as E
from slipway.ir import ops

DOTS = {f"dot4_{a}{b}": (a == "s", b == "s") for a in "su" for b in "su"}
BYTES = 4


def dot_name(a_dtype: str, b_dtype: str) -> str | None:
    """Return the intrinsic for products of these types, or None."""
    letters = {"int8": "s", "uint8": "u"}
    if a_dtype not in letters or b_dtype not in letters:
        return None
    return f"dot4_{letters[a_dtype]}{letters[b_dtype]}"


def expanded(name: str, a: E.PrimExpr, b: E.PrimExpr, c: E.PrimExpr) -> E.PrimExpr:
    """Return the sum by shifts and products."""
    x, y = E.Var("x", "int32"), E.Var("y", "int32")

    def byte(word: E.PrimExpr, j: int, signed: bool) -> E.PrimExpr:
        if signed:
            high = 8 * (BYTES - 1)
            moved = ops.shift_left(word, high - 8 * j) if j < BYTES - 1 else word
            return ops.shift_right(moved, high)
        return ops.bitwise_and(ops.shift_right(word, 8 * j) if j else word, 255)

    first, second = DOTS[name]
    total = c
    for j in range(BYTES):
        total = E.Add(total, E.Mul(byte(x, j, first), byte(y, j, second)))
    return E.Let(x, a, E.Let(y, b, total))


EXPANDED = {name: partial(expanded, name) for name in DOTS}


def packed(elements: list[Any]) -> E.PrimExpr:
    """Return four bytes as a word, the first of them the lowest."""
    total: E.PrimExpr | None = None
    for j, element in enumerate(elements):
        word = ops.bitwise_and(ops.cast(element, "int32"), 255)
        word = ops.shift_left(word, 8 * j) if j else word
        total = word if total is None else ops.bitwise_or(total, word)
    assert total is not None
    return total
