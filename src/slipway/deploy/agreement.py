"""How far a model's outputs are from those of a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slipway.deploy.tensors import Array
from slipway.inspect.difference import TOLERANCE, difference

QUANTISED = (
    "A value of a quantised model that lies between two steps goes either way, and the layers "
    "after it spread the difference: judge by SQNR, or say what is allowed, tolerance=0.05"
)
GRID = 256  # steps of 8 bits; a reference whose values take fewer than eight of them shows no grid

__all__ = ["TOLERANCE", "Agreement", "OutputAgreement", "agreement_of"]


@dataclass(frozen=True)
class OutputAgreement:
    """One output: the largest error, as a share of the reference's largest value for floats.

    `sqnr_db` is the ratio of the reference's power to the error's, in decibels, `cosine` that of
    the angle between the two; both are None for integers.  `steps` says of values on the grid of a
    quantisation how many steps they are apart, where they differ, and `shapes` are the output's and
    the reference's where those do.
    """

    name: str
    error: float
    sqnr_db: float | None
    cosine: float | None
    agrees: bool
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    steps: int | None = None

    def __str__(self) -> str:
        verdict = "agrees" if self.agrees else "DIFFERS"
        more = ""
        if self.shapes is not None:
            return f"{self.name}: {verdict}, its shape is {self.shapes[0]} and not {self.shapes[1]}"
        if self.steps is not None:
            more = f", {self.steps} step{'s' * (self.steps != 1)} of its quantisation"
        if self.sqnr_db is not None:
            more += f", SQNR {self.sqnr_db:.1f} dB, cosine {self.cosine:.6f}"
        return f"{self.name}: {verdict}, largest error {self.error:.2g}{more}"


@dataclass(frozen=True)
class Agreement:
    """All outputs of a model beside those of `reference`; true when every one agrees."""

    reference: str
    outputs: tuple[OutputAgreement, ...]
    tolerance: float

    def __bool__(self) -> bool:
        return all(output.agrees for output in self.outputs)

    def __str__(self) -> str:
        lines = [f"beside {self.reference}, tolerance {self.tolerance:g} of the largest value"]
        lines += [f"  {output}" for output in self.outputs]
        if any(output.steps is not None for output in self.outputs):
            lines.append(f"  {QUANTISED}")
        return "\n".join(lines)

    __repr__ = __str__


def agreement_of(
    got: Mapping[str, Array], wanted: Mapping[str, Array], reference: str, tolerance: float
) -> Agreement:
    """Return how `got` agrees with `wanted`, output by output."""
    return Agreement(
        reference,
        tuple(_output(name, got[name], wanted[name], tolerance) for name in got),
        tolerance,
    )


def _output(name: str, got: Array, wanted: Array, tolerance: float) -> OutputAgreement:
    found = difference(got, wanted, tolerance=0.0)
    error = 0.0 if found is None else found.error
    if got.shape != wanted.shape:
        shapes = (got.shape, wanted.shape)
        return OutputAgreement(name, error, None, None, agrees=False, shapes=shapes)
    if wanted.dtype.kind in "iub":
        return OutputAgreement(name, error, None, None, agrees=error == 0)
    one, two = got.astype(np.float64).ravel(), wanted.astype(np.float64).ravel()
    finite = np.isfinite(one) & np.isfinite(two)
    one, two = one[finite], two[finite]
    noise, signal = float(np.square(one - two).sum()), float(np.square(two).sum())
    sqnr = float("inf") if noise == 0 else 10 * float(np.log10(max(signal, 1e-300) / noise))
    norms = float(np.linalg.norm(one) * np.linalg.norm(two))
    cosine = float(one @ two) / norms if norms else 1.0
    agrees = error <= tolerance
    steps = None if agrees else _steps_apart(one, two)
    return OutputAgreement(name, error, sqnr, cosine, agrees, steps=steps)


def _steps_apart(one: Array, two: Array) -> int | None:
    """Return how many steps of the reference's grid the values are apart; None without a grid."""
    taken = np.unique(two)
    if not 8 <= len(taken) <= GRID:
        return None
    step = float(np.diff(taken).min())
    positions = taken / step
    if np.abs(positions - np.rint(positions)).max() > 1e-2 or np.ptp(positions) > GRID:
        return None
    return int(np.rint(np.abs(one - two).max() / step))
