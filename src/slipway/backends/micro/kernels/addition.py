"""The kernel for sums of two quantised tensors on cores with vectors (addition.c).

The pattern is what importers make of them, with `scaled(p) = rescale((cast(p) - zero) << left)`::

    cast(clip(rescale(scaled(p0) + scaled(p1)) + zero, low, high))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slipway.backends.in_place import Overlap
from slipway.backends.micro.kernels.layer import number_of, op_name, type_of
from slipway.backends.micro.kernels.library import LibraryKernel
from slipway.relay.expr import Call, Expr, Function


@dataclass(frozen=True)
class _Operand:
    """One side of the sum: which parameter, its zero point, shift to the left, and scale."""

    param: int
    zero: int
    left: int
    multiplier: int
    shift: int


def match_addition(name: str, function: Function) -> LibraryKernel | None:
    """Return the kernel of a fused function that adds two tensors of one shape."""
    chain = down(function.body, "cast", "clip", "add", "qnn.rescale", "add")
    if chain is None:
        return None
    cast, clip, add_zero, rescale, add = chain
    zero = number_of(add_zero.args[1])
    scale = scale_of(rescale)
    sides = [_operand(arg, function) for arg in add.args]
    a, b = sides
    if a is None or b is None or zero is None or scale is None or a.left != b.left:
        return None
    shape = type_of(cast)
    if any(type_of(p) != shape for p in (function.params[a.param], function.params[b.param])):
        return None
    # Every intermediate value must be below 2^30: |x - zero| <= 255, and multipliers are below 1.
    low, high = int(clip.attrs.a_min), int(clip.attrs.a_max)
    shifts_right = scale[1] < 0 and a.shift <= 0 and b.shift <= 0
    if a.left > 20 or not shifts_right or low < -128 or high > 127 or shape.dtype != "int8":
        return None
    numbers = ", ".join(
        f"{{{multiplier}, {shift}}}"
        for multiplier, shift in ((a.multiplier, a.shift), (b.multiplier, b.shift), scale)
    )
    parameters = ", ".join(f"const int8_t *p{i}" for i in range(len(function.params)))
    text = "\n".join(
        [
            f"SLW_KERNEL int32_t {name}({parameters}, int8_t *out) {{",
            "  static const struct slw_addition layer = {",
            f"    {numbers}, {a.zero}, {b.zero}, {zero}, {low}, {high}, {a.left}, {shape.size}u}};",
            f"  slw_add_int8(&layer, p{a.param}, p{b.param}, out);",
            "  return 0;",
            "}",
            "",
        ]
    )
    # Elements are read in the order in which they are written, and before.
    overlaps = tuple(Overlap(i, 0, 0, False) for i in range(len(function.params)))
    return LibraryKernel("addition", text, 0, overlaps, None, None)


def down(expr: Expr, *names: str) -> list[Call] | None:
    """Follow first arguments through calls of these operators."""
    found = []
    for name in names:
        if op_name(expr) != name:
            return None
        assert isinstance(expr, Call)
        found.append(expr)
        expr = expr.args[0]
    return found


def scale_of(rescale: Call) -> tuple[int, int] | None:
    """Return the multiplier and shift of a requantisation by one scale, rounded twice."""
    multiplier, shift = number_of(rescale.args[1]), number_of(rescale.args[2])
    if multiplier is None or shift is None or rescale.attrs.once:
        return None
    return multiplier, shift


def _operand(expr: Expr, function: Function) -> _Operand | None:
    chain = down(expr, "qnn.rescale", "left_shift")
    scale = None if chain is None else scale_of(chain[0])
    if chain is None or scale is None:
        return None
    left, inner, zero = number_of(chain[1].args[1]), chain[1].args[0], 0
    if op_name(inner) == "subtract":
        assert isinstance(inner, Call)
        found = number_of(inner.args[1])
        if found is None:
            return None
        zero, inner = found, inner.args[0]
    params: dict[int, Any] = {id(p): i for i, p in enumerate(function.params)}
    if op_name(inner) != "cast" or left is None or not -128 <= zero <= 127:
        return None
    assert isinstance(inner, Call)
    if id(inner.args[0]) not in params or type_of(inner).dtype != "int32":
        return None
    return _Operand(params[id(inner.args[0])], zero, left, *scale)
