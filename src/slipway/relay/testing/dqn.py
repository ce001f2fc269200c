"""The Q network of Mnih et al., "Human-level control through deep reinforcement learning"."""

from __future__ import annotations

from typing import Any

from slipway.relay.expr import Function, Var
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import conv2d, conv_kernel_layout, dense_add_bias, make
from slipway.relay.types import TensorType


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Function:
    """Return the network; `image_shape` is in `layout` without its N."""
    axis = layout.index("C")
    x: Any = Var("data", TensorType((batch_size, *image_shape), dtype))
    for number, (channels, window, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        x = conv2d(
            x, channels=channels, kernel_size=(window, window), strides=(stride, stride),
            padding=(0, 0), data_layout=layout, kernel_layout=conv_kernel_layout(layout),
            name=f"conv{number}",
        )  # fmt: skip
        bias = Var(f"conv{number}_bias", TensorType((channels,), dtype))
        x = make("nn.relu")(make("nn.bias_add")(x, bias, axis))
    x = dense_add_bias(make("nn.batch_flatten")(x), units=512, name="dense1")
    x = dense_add_bias(make("nn.relu")(x), units=num_actions, name="dense2")
    return x.as_function()  # type: ignore[no-any-return]


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Any:
    """Return (module, parameters) of `get_net`."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
