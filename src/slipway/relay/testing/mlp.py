"""A perceptron of three layers, for digits."""

from __future__ import annotations

from typing import Any

from slipway.relay.expr import Function, Var
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import dense_add_bias, make
from slipway.relay.types import TensorType


def get_net(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> Function:
    """Return the network: 128, 64 and `num_classes` units."""
    x: Any = Var("data", TensorType((batch_size, *image_shape), dtype))
    x = make("nn.batch_flatten")(x)
    for number, units in ((1, 128), (2, 64)):
        x = make("nn.relu")(dense_add_bias(x, units=units, name=f"fc{number}"))
    x = dense_add_bias(x, units=num_classes, name="fc3")
    return make("nn.softmax")(x).as_function()  # type: ignore[no-any-return]


def get_workload(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> Any:
    """Return (module, parameters) of `get_net`."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
