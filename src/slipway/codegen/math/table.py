"""Which function expands an intrinsic, and the error bound it keeps.

The bounds are in units in the last place of the result, over all finite arguments (see the
notes on sin, cos and tan in codegen.math.trigonometric for very large ones), and hold with and
without fused multiply-add.  tests/codegen/test_math.py checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from slipway import dtypes
from slipway.codegen.math import exponential, logarithm, special, trigonometric
from slipway.codegen.math.build import num
from slipway.ir import expr as E
from slipway.ir.visit import walk


def _rsqrt(x: E.PrimExpr) -> E.PrimExpr:
    return E.Div(num(1.0, x), E.Call(x.dtype, "sqrt", (x,)))


# op: (expansion, bound for float32, bound for float64)
_TABLE: dict[str, tuple[Callable[..., E.PrimExpr], float, float]] = {
    "exp": (exponential.exp, 1.5, 1.5),
    "exp2": (exponential.exp2, 1.5, 1.5),
    "exp10": (exponential.exp10, 2.0, 2.0),
    "expm1": (exponential.expm1, 2.0, 2.0),
    "tanh": (exponential.tanh, 3.0, 3.0),
    "sigmoid": (exponential.sigmoid, 2.5, 2.5),
    "sinh": (exponential.sinh, 2.0, 2.0),
    "cosh": (exponential.cosh, 2.0, 2.0),
    "log": (logarithm.log, 1.0, 1.0),
    "log2": (logarithm.log2, 1.5, 1.5),
    "log10": (logarithm.log10, 1.5, 1.5),
    "log1p": (logarithm.log1p, 1.5, 1.5),
    "asinh": (logarithm.asinh, 3.0, 3.0),
    "acosh": (logarithm.acosh, 3.0, 3.0),
    "atanh": (logarithm.atanh, 3.0, 3.0),
    "sin": (trigonometric.sin, 2.0, 2.0),
    "cos": (trigonometric.cos, 2.0, 2.0),
    "tan": (trigonometric.tan, 4.0, 4.0),
    "asin": (trigonometric.asin, 3.0, 3.0),
    "acos": (trigonometric.acos, 2.0, 2.0),
    "atan": (trigonometric.atan, 2.0, 2.0),
    "atan2": (trigonometric.atan2, 3.0, 3.0),
    "erf": (special.erf, 2.0, 2.0),
    "pow": (special.power, 1.0, 1.5),
    "rsqrt": (_rsqrt, 1.5, 1.5),
}
# Steps of the functions above, for processors that have no instruction for them.
_STEPS: dict[str, Callable[..., E.PrimExpr]] = {
    "scale_by_power": exponential.scale_by_power,
    "scale_down_by_power": exponential.scale_down_by_power,
}


def functions() -> list[str]:
    """Return the names of all expanded functions."""
    return sorted(_TABLE)


@cache
def constants_of(op: str) -> int:
    """Return how many float constants `op` takes in float32; 0 for what is no function here."""
    entry = _TABLE.get(op)
    if entry is None:
        return 0
    two = op in ("atan2", "pow")
    body = entry[0](*(E.Var(name, "float32") for name in ("x", "y")[: 1 + two]))
    return sum(isinstance(node, E.FloatImm) for node in walk(body))


def expand(op: str, args: tuple[E.PrimExpr, ...]) -> E.PrimExpr | None:
    """Return the arithmetic that computes `op` of float32 or float64 `args`, or None."""
    if op in _STEPS:
        return _STEPS[op](*args)
    entry = _TABLE.get(op)
    if entry is None:
        return None
    if not dtypes.is_float(args[0].dtype):  # an integer argument counts as float32
        args = tuple(E.Cast(dtypes.with_lanes("float32", a.lanes), a) for a in args)
    return entry[0](*args)


def expand_sum(node: E.BinaryOp) -> E.PrimExpr | None:
    """Return the arithmetic that computes 1 + erf(x) of float32 at once; None for other sums."""
    if type(node) is not E.Add or dtypes.scalar_of(node.dtype) != "float32":
        return None
    for one, function in ((node.a, node.b), (node.b, node.a)):
        number = one.value if isinstance(one, E.Broadcast) else one
        is_one = isinstance(number, E.FloatImm) and number.value == 1.0
        if is_one and isinstance(function, E.Call) and function.op == "erf":
            return special.one_plus_erf(*function.args)
    return None


def ulp_bound(op: str, dtype: str) -> float:
    """Return the largest error of `op` in units in the last place of `dtype`."""
    _, single, double = _TABLE[op]
    return single if dtypes.bits_of(dtype) == 32 else double


def exact_fma(a: E.PrimExpr, b: E.PrimExpr, c: E.PrimExpr) -> E.PrimExpr:
    """Return a * b + c rounded once, for a CPU without such an instruction."""
    return E.Call(a.dtype, f"slw_fma{dtypes.bits_of(a.dtype)}", (a, b, c))
