"""ResNet over images; see `residual`."""

from __future__ import annotations

from typing import Any

from slipway.relay.expr import Function
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.residual import build as resnet
from slipway.relay.testing.residual import plan, residual_unit

__all__ = ["get_net", "get_workload", "residual_unit", "resnet"]


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """Return ResNet with `num_layers` layers.

    `image_shape` is channels first, or for layout NHWC as the layout has it.
    """
    if layout == "NHWC" and image_shape[-1] < image_shape[0]:
        image_shape = (image_shape[-1], *image_shape[:-1])
    units, filters, bottle_neck = plan(num_layers, image_shape[-1])
    return resnet(
        units, len(units), filters, num_classes, (batch_size, *image_shape), bottle_neck, layout,
        dtype,
    )  # fmt: skip


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> Any:
    """Return (module, parameters) of `get_net`."""
    return create_workload(
        get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs)
    )
