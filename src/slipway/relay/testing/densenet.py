"""DenseNet (Huang et al., "Densely Connected Convolutional Networks")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import BadArgument
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import batch_norm_infer, conv2d, dense_add_bias, make
from slipway.relay.types import TensorType

# size -> channels of the first convolution, channels that a layer adds, layers of each block
_SIZES = {
    121: (64, 32, (6, 12, 24, 16)), 161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)), 201: (64, 32, (6, 12, 48, 32)),
}  # fmt: skip


def _normed(x: Any, name: str) -> Any:
    return make("nn.relu")(batch_norm_infer(x, name=name))


def _block(x: Any, count: int, growth: int, bottleneck: int, index: int) -> Any:
    """Return layers that each read what all layers before them gave."""
    for number in range(count):
        name = f"{index}_{number}"
        y = _normed(x, f"batch_1_{name}")
        y = conv2d(y, channels=bottleneck * growth, kernel_size=(1, 1), name=f"conv2d_1_{name}")
        y = _normed(y, f"batch_2_{name}")
        y = conv2d(
            y, channels=growth, kernel_size=(3, 3), padding=(1, 1), name=f"conv2d_2_{name}"
        )  # fmt: skip
        x = make("concatenate")([x, y], 1)
    return x


def get_net(
    num_init_features: int,
    growth_rate: int,
    block_config: Sequence[int],
    data_shape: tuple[int, ...],
    data_dtype: str,
    bn_size: int = 4,
    classes: int = 1000,
) -> Function:
    """Return the network with ``block_config[i]`` layers in block i."""
    x: Any = Var("data", TensorType(data_shape, data_dtype))
    x = conv2d(
        x, channels=num_init_features, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3),
        name="conv1",
    )  # fmt: skip
    x = _normed(x, "batch1")
    x = make("nn.max_pool2d")(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for index, count in enumerate(block_config):
        x = _block(x, count, growth_rate, bn_size, index)
        if index != len(block_config) - 1:
            half = x.tensor_type.shape[1] // 2
            x = _normed(x, f"batch_t_{index}")
            x = conv2d(x, channels=half, kernel_size=(1, 1), name=f"conv_t_{index}")
            x = make("nn.avg_pool2d")(x, pool_size=(2, 2), strides=(2, 2))
    x = make("nn.avg_pool2d")(_normed(x, "batch2"), pool_size=(7, 7))
    x = dense_add_bias(make("nn.batch_flatten")(x), units=classes, name="dense")
    return x.as_function()  # type: ignore[no-any-return]


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> Any:
    """Return (module, parameters) of DenseNet 121, 161, 169 or 201."""
    if densenet_size not in _SIZES:
        raise BadArgument("densenet_size", f"is {densenet_size}; use 121, 161, 169 or 201")
    first, growth, blocks = _SIZES[densenet_size]
    shape = (batch_size, *image_shape)
    return create_workload(get_net(first, growth, blocks, shape, dtype, classes=classes))
