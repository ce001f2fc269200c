"""ByteSums: what is requantised from two tensors of bytes, as one linear function.

    clip(rescale(rescale(a << 20) + rescale(b << 20)) + z)  ->  clip((a * m + b * n + c) >> s)

A function of two bytes has 65,536 values, so that whether whole m, n and c with the same integers
exist is tried, not proved: they are sought around the products of the real factors.  (A little more
than those round halves away from zero on both sides of it.)  Where there are none, it stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.visit import post_order, rewrite

Array = np.ndarray[Any, Any]

RESCALES = ("qnn.rescale", "qnn.contrib_rescale_high")
STEPS = ("add", "subtract", "left_shift", "right_shift", "cast", *RESCALES)
FEWEST = 3  # rescalings that a linear function takes less time than
REACH = 2  # how far from the real factors whole ones are sought
BITS = 31  # of a sum, without its sign
BYTES = {"int8": np.arange(-128, 128), "uint8": np.arange(256)}


def byte_sums(function: Function) -> Function:
    """Return `function` with the same integers, sums of two tensors of bytes by one shift."""
    if sum(is_call_of(e, *RESCALES) for e in post_order(function.body)) < FEWEST:
        return function
    return rewrite(function, _linear)  # type: ignore[no-any-return]


def _linear(expr: Any) -> Expr | None:
    if not is_call_of(expr, "clip") or expr.tensor_type.dtype != "int32":
        return None
    steps = _steps(expr.args[0])
    if steps is None:
        return None
    leaves: dict[int, Any] = {}
    for step in steps:
        if _is_leaf(step):
            leaves.setdefault(id(step.args[0]), step)
    if len(leaves) != 2 or sum(is_call_of(s, *RESCALES) for s in steps) < FEWEST:
        return None
    sides = list(leaves.values())
    low, high = int(expr.attrs.a_min), int(expr.attrs.a_max)
    values = [BYTES[s.args[0].tensor_type.dtype] for s in sides]
    grid = [values[0][:, None], values[1][None, :]]
    wanted = np.clip(_exact(steps, leaves, grid), low, high)
    origin = _real(steps, leaves, (0.0, 0.0))
    slopes = [_real(steps, leaves, at) - origin for at in ((1.0, 0.0), (0.0, 1.0))]
    found = _fitted(wanted, grid, slopes, low, high)
    if found is None:
        return None
    factors, offset, shift = found
    make = op_registry.make
    with op_registry.span(expr.span):
        products = [
            make("multiply")(side, const(f, "int32"))
            for side, f in zip(sides, factors, strict=True)
        ]
        total = make("add")(make("add")(products[0], const(offset, "int32")), products[1])
        whole = make("right_shift")(total, const(shift, "int32"))
        if whole.type != expr.type:
            return None
        return make("clip")(whole, expr.attrs.a_min, expr.attrs.a_max)  # type: ignore[no-any-return]


def _is_leaf(step: Any) -> bool:
    return (
        is_call_of(step, "cast")
        and step.attrs.dtype == "int32"
        and step.args[0].tensor_type.dtype in BYTES
    )


def _steps(root: Expr) -> list[Any] | None:
    """Return the calls between bytes and `root`, operands first; None with others among them."""
    found: list[Any] = []
    seen: set[int] = set()

    def visit(expr: Any) -> bool:
        if id(expr) in seen:
            return True
        seen.add(id(expr))
        if isinstance(expr, Constant):
            return bool(expr.array.size == 1) and expr.array.dtype == np.int32
        if not is_call_of(expr, *STEPS) or expr.tensor_type.dtype != "int32":
            return False
        if not _is_leaf(expr) and not all(visit(a) for a in expr.args):
            return False
        found.append(expr)
        return True

    return found if visit(root) else None


def _exact(steps: list[Any], leaves: dict[int, Any], grid: list[Array]) -> Array:
    """Return the last of `steps` for all pairs of bytes."""
    at = dict(zip(leaves, grid, strict=True))
    known: dict[int, Any] = {}
    for step in steps:
        if _is_leaf(step):
            known[id(step)] = at[id(step.args[0])].astype(np.int32)
            continue
        args = [known[id(a)] if id(a) in known else a.array.reshape(()) for a in step.args]
        known[id(step)] = op_registry.get(step.op.name).evaluate(step.attrs, *args)
    return np.asarray(known[id(steps[-1])], np.int64)


def _real(steps: list[Any], leaves: dict[int, Any], at: tuple[float, float]) -> float:
    """Return the last of `steps` in real numbers, up to what is the same for all bytes."""
    values = dict(zip(leaves, at, strict=True))
    known: dict[int, float] = {}
    for step in steps:
        if _is_leaf(step):
            known[id(step)] = values[id(step.args[0])]
            continue
        x, *others = (
            known[id(a)] if id(a) in known else int(a.array.reshape(())) for a in step.args
        )
        name = step.op.name
        if name == "qnn.rescale":
            x = x * others[0] * 2.0 ** (others[1] - 31)
        elif name == "qnn.contrib_rescale_high":
            x = (x * others[0] * 2.0**-32 + others[1]) * 2.0 ** -others[2]
        elif name in ("left_shift", "right_shift"):
            x = x * 2.0 ** (others[0] if name == "left_shift" else -others[0])
        elif name == "add":
            x = x + others[0]
        elif name == "subtract":
            x = x - others[0]
        known[id(step)] = x
    return known[id(steps[-1])]


def _fitted(
    wanted: Array, grid: list[Array], slopes: list[float], low: int, high: int
) -> tuple[list[int], int, int] | None:
    """Return whole factors, offset and shift that give `wanted` between `low` and `high`."""
    ends = [abs(s) * float(np.abs(g).max()) for s, g in zip(slopes, grid, strict=True)]
    reach = sum(ends) + abs(low) + abs(high)
    if not reach > 0 or not any(slopes):
        return None
    shift = min(int(np.floor(BITS - 1e-3 - np.log2(reach))), BITS - 1)
    if shift < 1:
        return None
    whole = [round(s * 2.0**shift) for s in slopes]
    near = range(-REACH, REACH + 1)
    for i, j in sorted(((i, j) for i in near for j in near), key=lambda p: abs(p[0]) + abs(p[1])):
        factors = [whole[0] + i, whole[1] + j]
        sums = grid[0] * factors[0] + grid[1] * factors[1]
        above, below = wanted > low, wanted < high
        if not above.any() or not below.any():
            return None
        # Every sum plus the offset lies in the step of the result; beyond the ends, anywhere.
        least = int(((wanted << shift) - sums)[above].max())
        most = int((((wanted + 1) << shift) - 1 - sums)[below].min())
        if least > most:
            continue
        offset = (least + most) // 2
        ends = [int(sums.min()) + offset, int(sums.max()) + offset, offset]
        if all(-(1 << BITS) <= e < 1 << BITS for e in ends):
            return factors, offset, shift
    return None
