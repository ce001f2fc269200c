"""Comparing results with what they should be."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.arith.analyzer import Analyzer
from slipway.ir import ops


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Raise AssertionError unless two arrays have one shape and near values.

    They are near where ``|actual - desired| <= atol + rtol * |desired|``.
    """
    found, wanted = np.asanyarray(actual), np.asanyarray(desired)
    np.testing.assert_equal(found.shape, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, verbose=True)


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Raise AssertionError unless two expressions can be proved to be equal."""
    difference = Analyzer().simplify(ops.sub(ops.as_expr(lhs), ops.as_expr(rhs)))
    if ops.const_value(difference) != 0:
        raise AssertionError(f"{lhs} is not {rhs}: they differ by {difference}")
