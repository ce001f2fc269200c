"""What converters of floating point operators share: layouts, activations, stored weights.

TFLite holds images channels-last; the compiler's convolutions want them channels-first.  A
converter takes its input through `channels_first` and gives its result through `channels_last`;
between two such operators both transpositions vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView
from slipway.frontends.tflite.file_model import Array
from slipway.relay.expr import Call, Expr
from slipway.relay.op_registry import is_call_of

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def is_transposed(value: Expr) -> bool:
    """Return whether `value` is channels-first data made channels-last."""
    return (
        isinstance(value, Call)
        and is_call_of(value, "transpose")
        and tuple(value.attrs.axes or ()) == TO_LAST
    )


def channels_first(value: Expr) -> Any:
    """Return (N, H, W, C) as (N, C, H, W)."""
    if is_transposed(value):
        assert isinstance(value, Call)
        return value.args[0]
    return relay.transpose(value, TO_FIRST)


def channels_last(value: Expr) -> Any:
    """Return (N, C, H, W) as (N, H, W, C)."""
    return relay.transpose(value, TO_LAST)


def elementwise(function: Callable[..., Expr], *values: Expr) -> Any:
    """Apply an elementwise function, inside the transposition where all its inputs have one."""
    if values and all(is_transposed(v) for v in values):
        shapes = {v.tensor_type.shape for v in values}
        if len(shapes) == 1:
            return channels_last(function(*(channels_first(v) for v in values)))
    return function(*values)


def activated(value: Expr, activation: str) -> Any:
    """Apply a fused activation to floating point data."""
    match activation:
        case "relu":
            return relay.nn.relu(value)
        case "relu6":
            return relay.clip(value, 0.0, 6.0)
        case "relu_n1_to_1":
            return relay.clip(value, -1.0, 1.0)
        case "tanh":
            return relay.tanh(value)
        case _:
            return value


def float_weights(node: NodeView, position: int) -> Array:
    """Return a constant input as float32, dequantised if it is stored as integers."""
    array = node.constant(position)
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    quantization = node.tensor(position).quantization
    if quantization is None:
        raise node.unsupported(f"the weights {node.tensor(position).name!r} have no scale")
    shape = [1] * array.ndim
    if quantization.scales.size > 1:
        shape[quantization.axis] = -1
    centered = array.astype(np.float32) - quantization.zero_points.reshape(shape).astype(np.float32)
    return centered * quantization.scales.reshape(shape)
