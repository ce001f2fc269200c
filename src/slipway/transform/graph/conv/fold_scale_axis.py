"""FoldScaleAxis: per-channel factors and shifts move into the weights and the bias before them.

    conv(x, W) * s            ->  conv(x, W * s)
    (conv(x, W) + b) * s      ->  conv(x, W * s) + b * s
    (y + b1) + b2             ->  y + (b1 + b2)
    (y * s1) * s2             ->  y * (s1 * s2)

W, b, s are constants, s one number per output channel (or one for all).  Only values with no
other reader are changed.  This is how a BatchNorm after a convolution vanishes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order, rebuild, use_counts
from slipway.runtime.arrays.array_file import in_file, release

CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


def fold_scale_axis(function: Function) -> Function:
    """Return `function` with factors and shifts folded backwards into weights and biases."""
    return _FoldScaleAxis(function).run()


class _FoldScaleAxis:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.counts = use_counts(function)
        self.done: dict[int, Expr] = {}
        self.single: set[int] = set()  # ids of new values with one reader
        self.keep: list[Expr] = []

    def run(self) -> Function:
        for expr in post_order(self.function, into_functions=False):
            if isinstance(expr, Function) and expr is not self.function:
                fresh: Any = expr
            else:
                fresh = rebuild(expr, lambda child: self.done[id(child)])
                fresh = self._rule(fresh)
            self.done[id(expr)] = fresh
            self.keep.append(fresh)
            if self.counts.get(id(expr), 0) == 1:
                self.single.add(id(fresh))
        return self.done[id(self.function)]  # type: ignore[return-value]

    def _own(self, made: Expr) -> Any:
        """Note an expression made here: its only reader is the one being built."""
        self.keep.append(made)
        self.single.add(id(made))
        return made

    def _rule(self, expr: Expr) -> Expr:
        for name, combine in (("multiply", np.multiply), ("add", np.add)):
            if not is_call_of(expr, name):
                continue
            value, constant = _split(expr)
            if (
                constant is None
                or not dtypes.is_float(constant.array.dtype.name)
                or value.type != expr.type
            ):
                return expr
            if name == "multiply":
                scaled = self._scaled(value, constant.array, expr.span)
                if scaled is not None:
                    return scaled
            inner_value, inner = _split(value) if is_call_of(value, name) else (value, None)
            if inner is not None and id(value) in self.single and inner_value.type == value.type:
                both = combine(inner.array, constant.array)
                return self._call(name, inner_value, both, expr.span)
        return expr

    def _call(self, name: str, value: Expr, array: Any, span: str) -> Expr:
        with op_registry.span(span):
            return self._own(op_registry.make(name)(value, Constant(array)))  # type: ignore[no-any-return]

    def _scaled(self, value: Expr, factor: np.ndarray[Any, Any], span: str) -> Expr | None:
        """Return `value * factor` with the factor moved into weights, or None."""
        if id(value) not in self.single:
            return None
        if is_call_of(value, "add"):
            inner, shift = _split(value)
            if shift is None or inner.type != value.type:
                return None
            scaled = self._scaled(inner, factor, span)
            if scaled is None:
                return None
            return self._call("add", scaled, np.multiply(shift.array, factor), value.span)
        if not isinstance(value, Call) or not is_call_of(value, *CONVS, "nn.dense"):
            return None
        weight = value.args[1]
        if not isinstance(weight, Constant) or not dtypes.is_float(weight.array.dtype.name):
            return None
        if weight.tensor_type.dtype != value.tensor_type.dtype:  # it would be rounded once more
            return None
        shaped = _per_output(value, factor)
        if shaped is None:
            return None
        array = np.multiply(weight.array, shaped).astype(weight.array.dtype, copy=False)
        scaled_weight = Constant(in_file(array))
        release(weight.array)
        return self._own(value.with_args((value.args[0], scaled_weight)))  # type: ignore[no-any-return]


def _split(call: Any) -> tuple[Expr, Constant | None]:
    """Return (value, constant) of a commutative call with one constant operand."""
    lhs, rhs = call.args
    if isinstance(rhs, Constant):
        return lhs, rhs
    if isinstance(lhs, Constant):
        return rhs, lhs
    return lhs, None


def _per_output(call: Call, factor: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return `factor` shaped to multiply the weight by output channel, or None."""
    out = call.tensor_type
    if factor.size == 1:
        return factor.reshape(())
    if is_call_of(call, "nn.dense"):
        channel, weight_axis, weight_rank = out.rank - 1, 0, 2
    else:
        layout = call.attrs.out_layout or call.attrs.data_layout
        channel = layout.index("C")
        weight_axis, weight_rank = (
            call.attrs.kernel_layout.index("O"),
            len(call.attrs.kernel_layout),
        )
    full = (1,) * (out.rank - factor.ndim) + factor.shape
    if any(d != (out.shape[a] if a == channel else 1) for a, d in enumerate(full)):
        return None
    shape = [1] * weight_rank
    shape[weight_axis] = -1
    return factor.reshape(shape)
