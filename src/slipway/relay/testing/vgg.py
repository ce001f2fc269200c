"""VGG (Simonyan and Zisserman, "Very Deep Convolutional Networks ...")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import BadArgument
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import batch_norm_infer, conv2d, dense_add_bias, make
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

_LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_FILTERS = (64, 128, 256, 512, 512)


def get_feature(
    internal_layer: Expr,
    layers: Sequence[int],
    filters: Sequence[int],
    batch_norm: bool = False,
) -> Any:
    """Return the convolutions: ``layers[i]`` of ``filters[i]`` channels, then half the image."""
    x = internal_layer
    for stage, (count, channels) in enumerate(zip(layers, filters, strict=True), 1):
        for number in range(1, count + 1):
            name = f"conv{stage}_{number}"
            x = conv2d(x, kernel_size=(3, 3), padding=(1, 1), channels=channels, name=name)
            bias = Var(f"{name}_bias", TensorType((channels,), x.tensor_type.dtype))
            x = make("nn.bias_add")(x, bias)
            if batch_norm:
                x = batch_norm_infer(x, name=f"bn{stage}_{number}")
            x = make("nn.relu")(x)
        x = make("nn.max_pool2d")(x, pool_size=(2, 2), strides=(2, 2))
    return x


def get_classifier(input_data: Expr, num_classes: int) -> Any:
    """Return the three dense layers."""
    x = make("nn.batch_flatten")(input_data)
    for name in ("fc6", "fc7"):
        x = make("nn.relu")(dense_add_bias(x, units=4096, name=name))
        x = make("nn.dropout")(x, rate=0.5)
    return dense_add_bias(x, units=num_classes, name="fc8")


def get_net(
    batch_size: int,
    image_shape: tuple[int, ...],
    num_classes: int,
    dtype: str,
    num_layers: int = 11,
    batch_norm: bool = False,
) -> Function:
    """Return VGG with 11, 13, 16 or 19 layers.  Raises BadArgument for another number."""
    if num_layers not in _LAYERS:
        raise BadArgument("num_layers", f"is {num_layers}; use 11, 13, 16 or 19")
    data = Var("data", TensorType((batch_size, *image_shape), dtype))
    x = get_classifier(get_feature(data, _LAYERS[num_layers], _FILTERS, batch_norm), num_classes)
    return make("nn.softmax")(x).as_function()  # type: ignore[no-any-return]


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> Any:
    """Return (module, parameters) of `get_net`."""
    return create_workload(
        get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm)
    )
