"""Real tensors known as integers, and what moves them: the words of `integer_arithmetic`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.ops.qnn.affine import along
from slipway.relay.ops.qnn.rescale import rescale_by
from slipway.transform.graph.fold_constant import fold_one

Array = np.ndarray[Any, Any]


def call_of(name: str, *args: Any, **options: Any) -> Any:
    """Call an operator; constants are computed at once."""
    made = op_registry.make(name)(*args, **options)
    return fold_one(made) or made


@dataclass(frozen=True)
class Affine:
    """The real numbers ``clip(scale * (value - zero), low, high)``.

    `value` has the axes of the real tensor; with `last`, axis 1 (the channels) has moved to the
    end.  `scale` and `zero` are of rank 0, or vectors along `axis` of the real tensor.  `sums`
    marks sums of products, which have more digits than what is stored.
    """

    value: Expr
    scale: Array
    zero: Array
    axis: int = 0
    last: bool = False
    low: float = -np.inf
    high: float = np.inf
    sums: bool = False

    @property
    def dtype(self) -> str:
        """The dtype of the integers."""
        return self.value.tensor_type.dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.value.tensor_type.rank

    @property
    def uniform(self) -> bool:
        """Return whether there is one scale and one zero point for all elements."""
        return self.scale.ndim == 0 and self.zero.ndim == 0

    @property
    def clipped(self) -> bool:
        """Return whether a clip is still to be applied."""
        return self.low > -np.inf or self.high < np.inf

    def axis_of(self, axis: int) -> int:
        """Return which axis of `value` an axis of the real tensor is."""
        axis %= self.rank
        if not self.last or axis == 0:
            return axis
        return self.rank - 1 if axis == 1 else axis - 1

    def shaped(self, vector: Array) -> Array:
        """Return scales or zero points shaped to broadcast against `value`."""
        if vector.ndim == 0:
            return vector
        shaped: Array = along(vector, self.rank, self.axis_of(self.axis))
        return shaped

    def centered(self, dtype: str = "int32") -> Any:
        """Return the integers less their zero points, in `dtype`."""
        wide = self.value if self.dtype == dtype else call_of("cast", self.value, dtype)
        if not self.zero.any():
            return wide
        return call_of("subtract", wide, const(self.shaped(self.zero), dtype))

    def channels_last(self) -> Affine:
        """Return the same with channels at the end."""
        if self.last:
            return self
        order = [0, *range(2, self.rank), 1]
        return replace(self, value=call_of("transpose", self.value, order), last=True)

    def channels_second(self) -> Affine:
        """Return the same with the axes of the real tensor."""
        return replace(self, value=to_second(self.value), last=False) if self.last else self

    def settled(self) -> Affine | None:
        """Return the same without a pending clip, or None where integers would round its bounds."""
        if not self.clipped:
            return self
        if not self.uniform:
            return None
        bounds = []
        for bound in (self.low, self.high):
            position = bound / float(self.scale) + int(self.zero)
            if np.isfinite(bound) and not self.sums and abs(position - round(position)) > 1e-6:
                return None
            bounds.append(position)
        low, high = dtypes.int_range(self.dtype)
        first = max(low, round(bounds[0])) if np.isfinite(bounds[0]) else low
        final = min(high, round(bounds[1])) if np.isfinite(bounds[1]) else high
        clipped = _clip(self.value, first, final)
        return replace(self, value=clipped, low=-np.inf, high=np.inf)

    def real(self) -> Any:
        """Return the real numbers as float32."""
        plain = self.channels_second()
        whole = call_of(
            "cast", plain.centered("int64" if self.dtype == "int64" else "int32"), "float32"
        )
        scaled = call_of("multiply", whole, const(plain.shaped(self.scale), "float32"))
        return call_of("clip", scaled, self.low, self.high) if self.clipped else scaled

    def stored(self, scale: float, zero: int, dtype: str) -> Any:
        """Return integers of another scale and zero point, in `value`'s layout.

        Sums are rounded once, halves up; the bounds of a pending clip to the nearest integer.
        """
        low_end, most = dtypes.int_range(dtype)
        low, high = (
            int(np.clip(np.round(bound / scale) + zero, low_end, most))
            for bound in (self.low, self.high)
        )
        same = self.dtype == dtype and self.uniform
        if same and float(self.scale) == scale and int(self.zero) == zero:
            whole = (low, high) == (low_end, most)
            return self.value if whole else _clip(self.value, low, high)
        total = self.centered("int64" if self.dtype == "int64" else "int32")
        factor = self.shaped(self.scale) / scale
        moved = rescale_by(total, factor, once=True)
        if zero:
            moved = call_of("add", moved, const(zero, "int32"))
        return call_of("cast", call_of("clip", moved, low, high), dtype)


def to_second(value: Expr) -> Any:
    """Move the last axis to place 1."""
    rank = value.tensor_type.rank
    return call_of("transpose", value, [0, rank - 1, *range(1, rank - 1)])


def _clip(value: Expr, low: int, high: int) -> Any:
    return call_of("clip", value, low, high)


def same_scale(values: list[Affine]) -> bool:
    """Return whether all are uniform with one scale, zero point and dtype."""
    first = values[0]
    return all(
        v.uniform and v.scale == first.scale and v.zero == first.zero and v.dtype == first.dtype
        for v in values
    )


def constant_of(expr: Expr) -> Array | None:
    """Return the real numbers of a constant, whether it is stored as floats or as integers."""
    if isinstance(expr, Constant):
        return expr.array
    if not is_call_of(expr, "qnn.dequantize"):
        return None
    known = [a.array for a in expr.args if isinstance(a, Constant)]
    if len(known) < len(expr.args):
        return None
    return op_registry.get("qnn.dequantize").evaluate(expr.attrs, *known)  # type: ignore[no-any-return]
