"""Tensors of the oracle: what is exact, and how far from it a right result may be.

Real numbers are computed in float64.  Beside each stands a bound on the distance of any right
result, whichever way it was computed: the errors of the arguments, carried through the operator,
and the roundings of the operator itself.  Integers are exact, in their own dtype, until a
real number is made an integer; then the distance counts steps.  A bound of infinity says that
anything may come out: the sign of a number that rounding may have moved past zero, say.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes  # noqa: F401  NumPy knows bfloat16 by name then
import numpy as np

UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-51}
LARGEST = {
    "float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4028234e38,
    "float64": 1.7976931348623157e308,
}  # fmt: skip
# What a denormal number may be flushed to: NEON of ARMv7 keeps none, softmax makes none.
MIN_NORMAL = {
    "float16": 2.0**-24,
    "bfloat16": 2.0**-125,
    "float32": 2.0**-125,
    "float64": 2.0**-1020,
}
ULPS = 4.0  # of one operator's own arithmetic, in units of the last place


class Unfit(Exception):
    """The operator cannot take these arguments, or nothing could be said of the result."""


@dataclass
class Value:
    """A tensor: `exact` in float64 or its own integer dtype, `error` in float64, its dtype."""

    exact: np.ndarray
    error: np.ndarray
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.exact.shape

    @property
    def real(self) -> bool:
        return self.dtype in UNIT

    @property
    def certain(self) -> bool:
        """Whether there is one right result."""
        return not self.error.any()

    def stored(self) -> np.ndarray:
        """The tensor in its own dtype."""
        return self.exact.astype(self.dtype)


def leaf(array: np.ndarray) -> Value:
    """An input of the graph: exact as it is."""
    dtype = array.dtype.name
    exact = array.astype(np.float64) if dtype in UNIT else array
    return Value(exact, np.zeros(array.shape), dtype)


def result(exact, error, dtype: str, ulps: float = ULPS, size=None) -> Value:
    """Round to `dtype`: `ulps` units in the last place of `size` (of the result itself)."""
    exact = np.asarray(exact)
    if dtype in UNIT:
        exact = exact.astype(np.float64)
        size = np.abs(exact) if size is None else size
        error = np.asarray(error, np.float64) + ulps * UNIT[dtype] * size
        if ulps:
            error = error + MIN_NORMAL[dtype]
        error = np.where(np.abs(exact) + error > LARGEST[dtype], np.inf, error)
        error = np.where(np.isfinite(exact), error, np.inf)
    else:
        exact = exact.astype(dtype)
        error = np.asarray(error, np.float64)
        if error.any() and dtype != "bool":
            info = np.iinfo(dtype)
            whole = exact.astype(np.float64)
            wraps = (whole + error > info.max) | (whole - error < info.min)
            error = np.where(wraps & (error > 0), np.inf, error)
        if dtype == "bool":
            error = np.where(error > 0, np.inf, 0.0)
    error = np.broadcast_to(np.where(np.isnan(error), np.inf, error), exact.shape)
    return Value(exact, np.array(error), dtype)


def moved(value: Value, function) -> Value:
    """Elements put elsewhere by `function`, and their errors with them."""
    return Value(np.asarray(function(value.exact)), np.asarray(function(value.error)), value.dtype)


def need(fits: bool, why: str = "") -> None:
    """Raise Unfit unless it fits."""
    if not fits:
        raise Unfit(why)


def linear(function, dtype: str, terms: int, *values: Value, roundings: float = 4.0) -> Value:
    """A sum of products of one factor from each value: `function` of their arrays, multilinear.

    Any order of the sum, and any way to round its products, is within ``terms + roundings``
    roundings of the sum of their magnitudes.
    """
    if dtype not in UNIT:
        wide = [v.exact.astype(np.int64) for v in values]
        exact = function(*wide).astype(np.int64)
        errors = _spread(function, values) if any(v.error.any() for v in values) else 0.0
        return result(exact, np.broadcast_to(errors, exact.shape), dtype)
    exact = function(*(v.exact.astype(np.float64) for v in values))
    size = function(*(np.abs(v.exact.astype(np.float64)) for v in values))
    return result(exact, _spread(function, values), dtype, terms + roundings, size)


def _spread(function, values):
    """What the errors of the factors make of the sum: all terms of (|x| + e) beyond |x|."""
    sizes = [np.abs(v.exact.astype(np.float64)) for v in values]
    most = [np.minimum(s + v.error, 1e300) for s, v in zip(sizes, values, strict=True)]
    with np.errstate(all="ignore"):
        spread = function(*most) - function(*sizes)
        # The difference of two sums loses digits; what is lost is far below the roundings.
        spread = np.maximum(spread, 0.0)
        return np.where(np.isfinite(spread) & (spread < 1e100), spread, np.inf)


def monotone(function, value: Value, ulps: float = ULPS, low=-np.inf, high=np.inf) -> Value:
    """A monotone function of each element, defined between `low` and `high`."""
    with np.errstate(all="ignore"):
        exact = function(value.exact)
        minimum = function(np.clip(value.exact - value.error, low, high))
        most = function(np.clip(value.exact + value.error, low, high))
        error = np.maximum(np.abs(exact - minimum), np.abs(exact - most))
    return result(exact, error, value.dtype, ulps)


def stepped(function, value: Value, dtype: str = "") -> Value:
    """A monotone function with jumps, without rounding of its own."""
    with np.errstate(all="ignore"):
        exact = function(value.exact)
        minimum = function(value.exact.astype(np.float64) - value.error)
        most = function(value.exact.astype(np.float64) + value.error)
        error = np.maximum(np.abs(exact - minimum), np.abs(most - exact))
        error = np.where(np.isfinite(value.error), error, np.inf)
    return result(exact, error, dtype or value.dtype, 0)


def add(a: Value, b: Value, sign: int = 1) -> Value:
    """a + b, or a - b with sign -1."""
    exact = a.exact + b.exact if sign > 0 else a.exact - b.exact
    return result(exact, a.error + b.error, a.dtype)


def multiply(a: Value, b: Value) -> Value:
    """a * b."""
    x, y = np.abs(a.exact.astype(np.float64)), np.abs(b.exact.astype(np.float64))
    with np.errstate(all="ignore"):
        error = x * b.error + y * a.error + a.error * b.error
    return result(a.exact * b.exact, error, a.dtype)


def divide(a: Value, b: Value) -> Value:
    """a / b of real numbers."""
    with np.errstate(all="ignore"):
        nearest = np.abs(b.exact) - b.error
        exact = a.exact / b.exact
        error = (a.error + np.abs(exact) * b.error) / nearest
        return result(exact, np.where(nearest > 0, error, np.inf), a.dtype)


def constant(number: float, like: Value) -> Value:
    """A number of the dtype of `like`."""
    return Value(np.float64(number) * np.ones(()), np.zeros(()), like.dtype)


def differs(got: np.ndarray, value: Value) -> str:
    """Say how `got` is wrong; an empty text when it is right."""
    if got.dtype.name != value.dtype or got.shape != value.shape:
        return f"is {got.dtype.name}{got.shape}, want {value.dtype}{value.shape}"
    if value.real:
        with np.errstate(all="ignore"):
            wrong = ~(np.abs(got.astype(np.float64) - value.exact) <= value.error)
            wrong &= np.isfinite(value.error)
    else:
        wrong = got != value.exact
        if value.error.any():
            distance = np.abs(got.astype(np.float64) - value.exact.astype(np.float64))
            wrong &= ~(distance <= value.error)
    wrong = np.asarray(wrong)
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ; at {list(at)} got {got[at]!r}, want "
        f"{value.exact[at]!r} within {value.error[at]:.3g}"
    )
