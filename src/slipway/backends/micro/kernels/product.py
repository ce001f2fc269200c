"""The kernel for products of quantised tensors, or of one and a value a channel (addition.c).

On cores with vectors.  The pattern is what importers make of them, where zeros may lack::

    cast(clip(rescale((cast(p0) - zero) * (cast(p1) - zero)) + zero, low, high))
"""

from __future__ import annotations

from typing import Any

from slipway.backends.in_place import Overlap
from slipway.backends.micro.kernels.addition import down, scale_of
from slipway.backends.micro.kernels.layer import number_of, op_name, type_of
from slipway.backends.micro.kernels.library import LibraryKernel
from slipway.relay.expr import Call, Expr, Function


def match_product(name: str, function: Function) -> LibraryKernel | None:
    """Return the kernel of a fused function that multiplies two tensors."""
    ends = down(function.body, "cast", "clip")
    if ends is None:
        return None
    cast, clip = ends
    inner, zero = _less_number(clip.args[0], "add")
    chain = down(inner, "qnn.rescale", "multiply")
    scale = None if chain is None else scale_of(chain[0])
    if chain is None or scale is None or zero is None:
        return None
    sides = [_operand(arg, function) for arg in chain[1].args]
    if None in sides:
        return None
    out = type_of(cast)
    sizes = [type_of(param).size for param in function.params]
    (a, zero_a), (b, zero_b) = sorted(sides, key=lambda side: -sizes[side[0]])
    full, other = (type_of(function.params[i]) for i in (a, b))
    channels = out.size if other == out else other.size
    if full != out or not channels or not out.rank or out.dtype != "int8":
        return None
    if (other != out and other.shape[-1:] != (channels,)) or out.shape[-1] != other.shape[-1]:
        return None
    low, high = int(clip.attrs.a_min), int(clip.attrs.a_max)
    if not -31 < scale[1] < 0 or low < -128 or high > 127:
        return None
    parameters = ", ".join(f"const int8_t *p{i}" for i in range(len(function.params)))
    numbers = ", ".join(map(str, (zero_a, zero_b, zero, low, high)))
    text = "\n".join(
        [
            f"SLW_KERNEL int32_t {name}({parameters}, int8_t *out) {{",
            "  static const struct slw_product layer = {",
            f"    {{{scale[0]}, {scale[1]}}}, {numbers}, {out.size // channels}u, {channels}u}};",
            f"  slw_multiply_int8(&layer, p{a}, p{b}, out);",
            "  return 0;",
            "}",
            "",
        ]
    )
    # What is as large as the output is read in the order in which that is written, and before.
    whole = [i for i, p in enumerate(function.params) if type_of(p) == out]
    return LibraryKernel(
        "product", text, 0, tuple(Overlap(i, 0, 0, False) for i in whole), None, None
    )


def _less_number(expr: Expr, name: str) -> tuple[Expr, int | None]:
    """Return what a number is added to or subtracted from, and the number, 0 where none is."""
    if op_name(expr) != name:
        return expr, 0
    assert isinstance(expr, Call)
    return expr.args[0], number_of(expr.args[1])


def _operand(expr: Expr, function: Function) -> Any:
    """Return which parameter a side of the product is, and its zero point."""
    inner, zero = _less_number(expr, "subtract")
    params = {id(p): i for i, p in enumerate(function.params)}
    if op_name(inner) != "cast" or zero is None or not -128 <= zero <= 127:
        return None
    assert isinstance(inner, Call)
    param = params.get(id(inner.args[0]))
    if param is None or type_of(inner).dtype != "int32" or type_of(inner.args[0]).dtype != "int8":
        return None
    return param, zero
