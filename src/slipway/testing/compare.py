"""Comparing results with what they should be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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


def check_numerical_grads(
    function: Callable[..., Any],
    input_values: Mapping[str, Any] | Sequence[Any],
    grad_values: Mapping[str, Any] | Sequence[Any],
    function_value: Any = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Raise AssertionError where derivatives of a function's sum differ from those of small steps.

    Inputs and their derivatives are lists, or go by name; `function` takes the inputs so, those
    with a derivative as floats.
    """
    del function_value  # steps are taken to both sides
    by_name = isinstance(input_values, Mapping)
    pairs = input_values.items() if isinstance(input_values, Mapping) else enumerate(input_values)
    inputs: dict[Any, Any] = {key: np.asarray(value) for key, value in pairs}
    by_key = grad_values.items() if isinstance(grad_values, Mapping) else enumerate(grad_values)
    given = list(by_key)
    for key, _ in given:  # steps of a thousandth would be none among integers
        if not np.issubdtype(inputs[key].dtype, np.inexact):
            inputs[key] = inputs[key].astype(np.float64)

    def moved_by(key: Any, position: int, step: float) -> tuple[float, float]:
        """Return where an element is after a step, as its type rounds it, and the sum there."""
        moved = dict(inputs)
        moved[key] = inputs[key].copy()
        moved[key].reshape(-1)[position] += step
        result = function(**moved) if by_name else function(*moved.values())
        return float(moved[key].reshape(-1)[position]), float(np.sum(np.asarray(result, float)))

    for key, found in given:
        grad = np.asarray(found)
        if grad.shape != inputs[key].shape:
            raise AssertionError(
                f"Gradient wrt '{key}' has unexpected shape {grad.shape}, expected "
                f"{inputs[key].shape}"
            )

        def slope(key: Any, position: int, step: float) -> float:
            size = abs(float(inputs[key].reshape(-1)[position]))
            step = max(step, size * math.sqrt(np.finfo(inputs[key].dtype).eps))
            right, above = moved_by(key, position, step)
            left, below = moved_by(key, position, -step)
            return (above - below) / (right - left)

        differences = np.zeros(grad.size)
        for position, own in enumerate(grad.reshape(-1)):
            differences[position] = slope(key, position, delta)
            if abs(differences[position] - own) >= atol + rtol * abs(differences[position]):
                differences[position] = (
                    4 * slope(key, position, delta / 2) - differences[position]
                ) / 3  # five points
        apart = np.abs(differences - grad.reshape(-1))
        limit = atol * math.sqrt(grad.size) + rtol * float(np.linalg.norm(grad))
        if not float(np.linalg.norm(apart)) <= limit:
            worst = int(np.argmax(apart))
            raise AssertionError(
                f"the gradient by '{key}' differs from small steps by {np.linalg.norm(apart):g} in "
                f"all, most at {tuple(map(int, np.unravel_index(worst, grad.shape)))}: "
                f"{grad.reshape(-1)[worst]} and {differences[worst]}"
            )
