"""ForwardFoldScaleAxis: factors per input channel move into the weights behind them.

    conv(x * s, W)   ->  conv(x, W * s)        dense(x * s, W)  ->  dense(x, W * s)

W and s are constants, s one number per input channel (or one for all), and x * s has no other
reader.  Padding with zeros is the same before and after a factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order, rebuild, use_counts
from slipway.runtime.arrays.array_file import in_file
from slipway.transform.graph.conv.fold_scale_axis import CONVS


def forward_scale_axis(function: Function) -> Function:
    """Return `function` with factors folded forwards into weights."""
    counts = use_counts(function)
    done: dict[int, Expr] = {}
    single: set[int] = set()  # ids of new values with one reader
    keep: list[Expr] = []
    for expr in post_order(function, into_functions=False):
        fresh: Expr = expr
        if expr is function or not isinstance(expr, Function):
            fresh = rebuild(expr, lambda child: done[id(child)])
        fresh = _folded(fresh, single) or fresh
        done[id(expr)] = fresh
        keep.append(fresh)
        if counts.get(id(expr)) == 1:
            single.add(id(fresh))
    return done[id(function)]  # type: ignore[return-value]


def _folded(call: Expr, single: set[int]) -> Expr | None:
    """Return a product that reads the values before a factor, or None."""
    if not isinstance(call, Call) or not is_call_of(call, *CONVS, "nn.dense"):
        return None
    scaled, weight = call.args[:2]
    if not isinstance(scaled, Call) or not is_call_of(scaled, "multiply"):
        return None
    if not isinstance(weight, Constant) or not dtypes.is_float(weight.array.dtype.name):
        return None
    if id(scaled) not in single:
        return None
    for value, factor in (scaled.args, scaled.args[::-1]):
        if isinstance(factor, Constant) and value.checked_type == scaled.checked_type:
            shaped = _per_input(call, factor.array, weight.array)
            if shaped is not None:
                array = (weight.array * shaped).astype(weight.array.dtype, copy=False)
                return call.with_args((value, Constant(in_file(array))))
    return None


def _per_input(
    call: Call, factor: np.ndarray[Any, Any], weight: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any] | None:
    """Return `factor` shaped to multiply the weight by input channel, or None."""
    given = call.args[0].tensor_type
    if factor.size == 1:
        return factor.reshape(())
    if is_call_of(call, "nn.dense"):
        channel, kernel, groups = given.rank - 1, "OI", 1
    else:
        channel = call.attrs.data_layout.find("C")
        kernel, groups = call.attrs.kernel_layout, call.attrs.groups
    outs, ins = kernel.find("O"), kernel.find("I")
    full = (1,) * (given.rank - factor.ndim) + factor.shape
    if any(d != (given.shape[a] if a == channel else 1) for a, d in enumerate(full)):
        return None
    if not all(letter.isupper() for letter in kernel) or weight.shape[outs] % groups:
        return None
    if weight.shape[ins] * groups != factor.size:
        return None
    of_weights = np.repeat(factor.reshape(groups, -1), weight.shape[outs] // groups, axis=0)
    shape = [1] * len(kernel)
    shape[outs], shape[ins] = of_weights.shape
    return (of_weights if outs < ins else of_weights.T).reshape(shape)
