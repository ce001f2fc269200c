"""MobileNet (Howard et al., "MobileNets: Efficient Convolutional Neural Networks ...")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay.expr import Function, Var
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import (
    batch_norm_infer,
    conv2d,
    conv_kernel_layout,
    dense_add_bias,
    make,
)
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import Expr, Extents


def _normed(x: Any, name: str, epsilon: float, layout: str) -> Any:
    x = batch_norm_infer(x, epsilon=epsilon, axis=layout.index("C"), name=name)
    return make("nn.relu")(x)


def conv_block(
    data: Expr,
    name: str,
    channels: int,
    kernel_size: Extents = (3, 3),
    strides: Extents = (1, 1),
    padding: Extents = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
) -> Any:
    """Return convolution, batch norm and relu."""
    x = conv2d(
        data, channels=channels, kernel_size=kernel_size, strides=strides, padding=padding,
        data_layout=layout, kernel_layout=conv_kernel_layout(layout), name=f"{name}_conv",
    )  # fmt: skip
    return _normed(x, f"{name}_bn", epsilon, layout)


def separable_conv_block(
    data: Expr,
    name: str,
    depthwise_channels: int,
    pointwise_channels: int,
    kernel_size: Extents = (3, 3),
    downsample: bool = False,
    padding: Extents = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Any:
    """Return a depthwise convolution and a 1x1 convolution, each with batch norm and relu."""
    x = conv2d(
        data, channels=depthwise_channels, groups=depthwise_channels, kernel_size=kernel_size,
        strides=(2, 2) if downsample else (1, 1), padding=padding, data_layout=layout,
        kernel_layout=conv_kernel_layout(layout, True), name=f"{name}_depthwise_conv1",
    )  # fmt: skip
    x = _normed(x, f"{name}_bn1", epsilon, layout)
    x = conv2d(
        x, channels=pointwise_channels, kernel_size=(1, 1), strides=(1, 1), padding=(0, 0),
        data_layout=layout, kernel_layout=conv_kernel_layout(layout), name=f"{name}_conv2",
    )  # fmt: skip
    return _normed(x, f"{name}_bn2", epsilon, layout)


def mobile_net(
    num_classes: int = 1000,
    data_shape: tuple[int, ...] = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> Function:
    """Return MobileNet with `alpha` times its channels; `data_shape` is in `layout`."""
    x: Any = Var("data", TensorType(data_shape, dtype))
    x = conv_block(x, "conv_block_1", int(32 * alpha), strides=(2, 2), layout=layout)
    # (channels in, channels out, halves the image)
    blocks = [(32, 64, False), (64, 128, True), (128, 128, False), (128, 256, True),
              (256, 256, False), (256, 512, True)]  # fmt: skip
    if not is_shallow:
        blocks += [(512, 512, False)] * 5
    blocks += [(512, 1024, True), (1024, 1024, False)]
    for number, (inside, outside, halves) in enumerate(blocks, 1):
        x = separable_conv_block(
            x, f"separable_conv_block_{number}", int(inside * alpha), int(outside * alpha),
            downsample=halves, layout=layout, dtype=dtype,
        )  # fmt: skip
    x = make("nn.batch_flatten")(make("nn.global_avg_pool2d")(x, layout=layout))
    x = dense_add_bias(x, units=num_classes, name="fc")
    return make("nn.softmax")(x).as_function()  # type: ignore[no-any-return]


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Any:
    """Return (module, parameters).

    `image_shape` is channels first, or for layout NHWC as the layout has it.
    """
    if layout == "NHWC" and image_shape[-1] < image_shape[0]:
        image_shape = (image_shape[-1], *image_shape[:-1])
    extents = dict(zip("NCHW", (batch_size, *image_shape), strict=True))
    shape = tuple(extents[letter] for letter in layout)
    return create_workload(mobile_net(num_classes, shape, dtype, layout=layout))
