"""The same real values for two models, of which one may be quantised: as each takes and gives them.

A metadata entry with ``scale`` and ``zero_point`` stands for scale * (integer - zero_point).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.deploy.reference import random_inputs
from slipway.deploy.tensors import Array, specs_of

Port = Mapping[str, Any]


def shared_inputs(a: Sequence[Port], b: Sequence[Port]) -> tuple[dict[str, Array], ...] | None:
    """Return inputs for both, by the names of each; None where the two take different things.

    Inputs belong together by name, else by position.  What one model says of its values
    holds for the other, too.
    """
    if len(a) != len(b):
        return None
    named = {port["name"]: port for port in b}
    pairs = [(p, named[p["name"]]) for p in a] if {p["name"] for p in a} == set(named) else None
    left: dict[str, Array] = {}
    right: dict[str, Array] = {}
    for number, (one, other) in enumerate(pairs or zip(a, b, strict=True)):
        if one["shape"] != other["shape"] or _kind(one) != _kind(other):
            return None
        drawn_for, second = (one, other) if "scale" in one or "scale" not in other else (other, one)
        first, spare = specs_of([drawn_for, second])
        first = replace(first, values=first.values or spare.values)
        value = random_inputs([first], seed=number)[first.name]
        again = value if _same(one, other) else quantized(real(value, drawn_for), second)
        left[one["name"]], right[other["name"]] = (
            (value, again) if drawn_for is one else (again, value)
        )
    return left, right


def _kind(port: Port) -> str:
    """Return what values a port takes: real numbers, or those of its dtype."""
    return "real" if "scale" in port or port["dtype"].startswith("float") else port["dtype"]


def _same(one: Port, other: Port) -> bool:
    return all(one.get(key) == other.get(key) for key in ("dtype", "scale", "zero_point"))


def real(value: Array, port: Port) -> Array:
    """Return the real numbers that a tensor of a port stands for."""
    if "scale" not in port:
        return value
    shifted = value.astype(np.float64) - port["zero_point"]
    return np.asarray(shifted * port["scale"], np.float32)


def quantized(value: Array, port: Port) -> Array:
    """Return real numbers as a port takes them."""
    dtype = port["dtype"]
    if "scale" not in port:
        return value.astype("float32" if dtype == "bfloat16" else dtype)
    low, high = dtypes.int_range(dtype)
    steps = np.round(value.astype(np.float64) / port["scale"]) + port["zero_point"]
    return np.asarray(np.clip(steps, low, high), dtype)


def real_outputs(
    a: Sequence[Array], b: Sequence[Array], ports: tuple[Sequence[Port], Sequence[Port]]
) -> tuple[list[Array], list[Array]]:
    """Return the outputs of both in the same numbers: as they are, or as what they stand for."""
    left, right = [], []
    for one, other, first, second in zip(a, b, *ports, strict=True):
        alike = _same(first, second) or _kind(first) != _kind(second)
        left.append(one if alike else real(one, first))
        right.append(other if alike else real(other, second))
    return left, right
