"""Whether two tensors that should be one are one, and where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TOLERANCE = 1e-4  # of the largest value of a tensor of floats; integers must be the same


@dataclass(frozen=True)
class Difference:
    """Two tensors that should be one: the largest error, where it is, and both values there.

    `error` is relative to the largest value wanted for floats, and absolute for integers.
    """

    error: float
    index: tuple[int, ...]
    got: float
    wanted: float


def difference(got: Array, wanted: Array, tolerance: float = TOLERANCE) -> Difference | None:
    """Return how two tensors differ, or None when they agree.

    A NaN agrees with a NaN, and an infinity with the same infinity.
    """
    if got.shape != wanted.shape or not wanted.size:
        return None if got.shape == wanted.shape else Difference(np.inf, (), np.nan, np.nan)
    one, two = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where(one == two, 0.0, np.abs(one - two))
    apart = np.where(np.isnan(one) & np.isnan(two), 0.0, apart)
    apart = np.where(np.isnan(apart), np.inf, apart)
    scale, allowed = 1.0, 0.0
    if wanted.dtype.kind == "f":
        finite = np.abs(two[np.isfinite(two)])
        scale, allowed = max(float(finite.max(initial=0.0)), 1e-30), tolerance
    position = np.unravel_index(int(np.argmax(apart)), apart.shape)
    error = float(apart[position]) / scale
    if error <= allowed:
        return None
    return Difference(error, tuple(map(int, position)), float(one[position]), float(two[position]))


def first_difference(
    got: Sequence[Array], wanted: Sequence[Array], tolerance: float
) -> Difference | None:
    """Return how the first two results that differ do so."""
    found = (difference(a, b, tolerance) for a, b in zip(got, wanted, strict=True))
    return next((d for d in found if d is not None), None)
