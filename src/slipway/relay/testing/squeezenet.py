"""SqueezeNet (Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters")."""

from __future__ import annotations

from typing import Any

from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import BadArgument
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import conv2d, make
from slipway.relay.types import TensorType

_FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
# version -> (channels and window of the first convolution, the fires before which a pool stands)
_VERSIONS = {"1.0": (96, 7, (0, 3, 7)), "1.1": (64, 3, (0, 2, 4))}


def _conv(x: Any, channels: int, kernel: int, name: str, stride: int = 1, pad: int = 0) -> Any:
    x = conv2d(
        x, channels=channels, kernel_size=(kernel, kernel), strides=(stride, stride),
        padding=(pad, pad), name=name,
    )  # fmt: skip
    bias = Var(f"{name}_bias", TensorType((channels,), x.tensor_type.dtype))
    return make("nn.relu")(make("nn.bias_add")(x, bias))


def get_net(
    batch_size: int, image_shape: tuple[int, ...], num_classes: int, version: str, dtype: str
) -> Function:
    """Return SqueezeNet 1.0 or 1.1."""
    if version not in _VERSIONS:
        raise BadArgument("version", f"is {version!r}; use '1.0' or '1.1'")
    channels, window, pools = _VERSIONS[version]
    x: Any = Var("data", TensorType((batch_size, *image_shape), dtype))
    x = _conv(x, channels, window, "conv1", stride=2)
    for number, (narrow, wide) in enumerate(_FIRES):
        if number in pools:
            x = make("nn.max_pool2d")(x, pool_size=(3, 3), strides=(2, 2))
        name = f"fire{number + 2}"
        x = _conv(x, narrow, 1, f"{name}_squeeze")
        left = _conv(x, wide, 1, f"{name}_expand1x1")
        right = _conv(x, wide, 3, f"{name}_expand3x3", pad=1)
        x = make("concatenate")((left, right), 1)
    x = make("nn.dropout")(x, rate=0.5)
    x = make("nn.global_avg_pool2d")(_conv(x, num_classes, 1, "conv_final"))
    return make("nn.softmax")(make("nn.batch_flatten")(x)).as_function()  # type: ignore[no-any-return]


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> Any:
    """Return (module, parameters) of `get_net`."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
