"""Which function expands an intrinsic, and the error bound it keeps."""

from __future__ import annotations

from slipway.ir import expr as E


def expand(op: str, args: tuple[E.PrimExpr, ...]) -> E.PrimExpr | None:
    """Return the arithmetic that computes `op` of `args`, or None when it has no expansion."""
    return None


def exact_fma(a: E.PrimExpr, b: E.PrimExpr, c: E.PrimExpr) -> E.PrimExpr:
    """A * b + c."""
    return E.Add(E.Mul(a, b), c)


def ulp_bound(op: str, dtype: str) -> float:
    """Return the greatest error of `op`, in units in the last place."""
    return 0.0
