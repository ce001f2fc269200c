"""A small network of no use but that many kinds of layers meet in it."""

from __future__ import annotations

from typing import Any

from slipway.relay.expr import Function, Var
from slipway.relay.testing.init import Constant, create_workload
from slipway.relay.testing.layers import batch_norm_infer, make
from slipway.relay.types import TensorType


def get_net(
    input_shape: tuple[int, ...] = (1, 3, 24, 12),
    dtype: str = "float32",
    wtype: str | None = None,
) -> Function:
    """Return a sum of a dense and a convolution, twice, with a batch norm between."""
    kind = wtype or dtype
    channels, width = input_shape[1], input_shape[3]

    def half(x: Any, dense: str, conv: str) -> Any:
        rows = make("reshape")(x, (-1, width))
        weight = Var(dense, TensorType((width, width), kind))
        left = make("nn.relu")(make("nn.dense")(rows, weight))
        left = make("reshape")(left, input_shape)
        kernel = Var(conv, TensorType((channels, channels, 3, 3), kind))
        right = make("nn.softmax")(make("nn.conv2d")(x, kernel, padding=1, kernel_size=3))
        return make("add")(left, right)

    data = Var("data", TensorType(input_shape, dtype))
    x = half(data, "dense_weight", "conv_weight")
    x = make("nn.bias_add")(x, Var("bias", TensorType((channels,), kind)))
    x = batch_norm_infer(x, name="batch_norm")
    return half(x, "dense2_weight", "conv2_weight").as_function()  # type: ignore[no-any-return]


def get_workload(
    input_shape: tuple[int, ...] = (1, 3, 24, 12),
    dtype: str = "float32",
    wtype: str | None = None,
) -> Any:
    """Return (module, parameters); the weights are all one."""
    return create_workload(get_net(input_shape, dtype, wtype), Constant(1.0))
