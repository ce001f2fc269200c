"""ResNet with pre-activation (He et al., "Identity Mappings in Deep Residual Networks").

Images and volumes share the construction; `resnet` and `resnet_3d` give it its rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import BadArgument
from slipway.relay.testing.layers import (
    batch_norm_infer,
    conv2d,
    conv3d,
    conv_kernel_layout,
    dense_add_bias,
    make,
)
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

_UNITS = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3),
    200: (3, 24, 36, 3), 269: (3, 30, 48, 8),
}  # fmt: skip
_EPSILON = 2e-5


def residual_unit(
    data: Expr,
    num_filter: int,
    stride: tuple[int, ...],
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
) -> Any:
    """Return one unit: two or three convolutions beside a shortcut.

    The shortcut is a 1x1 convolution unless `dim_match` says that the shapes agree.
    """
    count = len(stride)
    convolve = conv2d if count == 2 else conv3d
    axis = data_layout.index("C")
    one, three, ones = (1,) * count, (3,) * count, (1,) * count

    def active(x: Any, number: int) -> Any:
        x = batch_norm_infer(x, epsilon=_EPSILON, axis=axis, name=f"{name}_bn{number}")
        return make("nn.relu")(x)

    def conv(x: Any, suffix: str, channels: int, kernel: Any, strides: Any) -> Any:
        return convolve(
            x, channels=channels, kernel_size=kernel, strides=strides,
            padding=tuple(k // 2 for k in kernel), data_layout=data_layout,
            kernel_layout=kernel_layout, name=f"{name}_{suffix}",
        )  # fmt: skip

    first = x = active(data, 1)
    if bottle_neck:
        narrow = num_filter // 4
        x = conv(x, "conv1", narrow, one, stride)
        x = conv(active(x, 2), "conv2", narrow, three, ones)
        x = conv(active(x, 3), "conv3", num_filter, one, ones)
    else:
        x = conv(x, "conv1", num_filter, three, stride)
        x = conv(active(x, 2), "conv2", num_filter, three, ones)
    shortcut = data if dim_match else conv(first, "sc", num_filter, one, stride)
    return make("add")(x, shortcut)


def build(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: tuple[int, ...],
    bottle_neck: bool = True,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """Return the network with ``units[i]`` units of ``filter_list[i + 1]`` channels per stage.

    `data_shape` is (N, C, spatial...) whatever the layout.
    """
    count = len(data_shape) - 2
    convolve = conv2d if count == 2 else conv3d
    kernel_layout = conv_kernel_layout(layout)
    axis = layout.index("C")
    extents = dict(zip("NC" + "DHW"[-count:], data_shape, strict=True))
    shape = tuple(extents[letter] for letter in layout)
    # Volumes keep their depth where images lose half of both sides.
    seven, two = (7, 7), (2, 2)
    if count == 3:
        seven, two = (3, 7, 7), (1, 2, 2)  # type: ignore[assignment]

    def norm(x: Any, name: str, **options: Any) -> Any:
        return batch_norm_infer(x, epsilon=_EPSILON, axis=axis, name=name, **options)

    def stem(x: Any, kernel: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        return convolve(
            x, channels=filter_list[0], kernel_size=kernel, strides=strides,
            padding=tuple(k // 2 for k in kernel), data_layout=layout,
            kernel_layout=kernel_layout, name="conv0",
        )  # fmt: skip

    x: Any = norm(Var("data", TensorType(shape, dtype)), "bn_data", scale=False)
    if data_shape[2] <= 32 and data_shape[-1] <= 32:
        x = stem(x, (3,) * count, (1,) * count)
    else:
        x = make("nn.relu")(norm(stem(x, seven, two), "bn0"))
        x = make(f"nn.max_pool{count}d")(
            x, pool_size=(3,) * count, strides=(2,) * count, padding=1, layout=layout
        )
    for stage in range(num_stages):
        for unit in range(units[stage]):
            step = 2 if unit == 0 and stage > 0 else 1
            x = residual_unit(
                x, filter_list[stage + 1], (step,) * count, unit > 0,
                f"stage{stage + 1}_unit{unit + 1}", bottle_neck, layout, kernel_layout,
            )  # fmt: skip
    x = make("nn.relu")(norm(x, "bn1"))
    x = make("nn.batch_flatten")(make(f"nn.global_avg_pool{count}d")(x, layout=layout))
    x = dense_add_bias(x, units=num_classes, name="fc1")
    return make("nn.softmax")(x).as_function()  # type: ignore[no-any-return]


def plan(num_layers: int, side: int) -> tuple[Sequence[int], Sequence[int], bool]:
    """Return (units of each stage, channels, with bottlenecks) for a depth and an image's height.

    Raises BadArgument for a depth that the paper's rule does not give.
    """
    if side > 28:
        if num_layers not in _UNITS:
            known = ", ".join(map(str, _UNITS))
            raise BadArgument("num_layers", f"is {num_layers}; of these images there are {known}")
        if num_layers >= 50:
            return _UNITS[num_layers], (64, 256, 512, 1024, 2048), True
        return _UNITS[num_layers], (64, 64, 128, 256, 512), False
    if num_layers >= 164 and (num_layers - 2) % 9 == 0:
        return ((num_layers - 2) // 9,) * 3, (64, 64, 128, 256), True
    if num_layers < 164 and (num_layers - 2) % 6 == 0:
        return ((num_layers - 2) // 6,) * 3, (16, 16, 32, 64), False
    raise BadArgument(
        "num_layers", f"is {num_layers}; small images take 6n + 2 below 164 and 9n + 2 above"
    )
