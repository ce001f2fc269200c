"""Layers that sample images: resizes, crops of the middle, pools to a size."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.conv import data_layout, per_axis, rank_of, spatial_shape

METHODS = {"bilinear": "linear", "nearest": "nearest_neighbor"}
ADAPTIVE = {
    "Average": {
        1: relay.nn.adaptive_avg_pool1d, 2: relay.nn.adaptive_avg_pool2d,
        3: relay.nn.adaptive_avg_pool3d,
    },
    "Max": {
        1: relay.nn.adaptive_max_pool1d, 2: relay.nn.adaptive_max_pool2d,
        3: relay.nn.adaptive_max_pool3d,
    },
}  # fmt: skip


@converter(*(f"Adaptive{kind}Pooling{n}D" for kind in ADAPTIVE for n in (1, 2, 3)))
def _adaptive(view: LayerView) -> Any:
    rank = rank_of(view)
    kind = "Max" if "Max" in type(view.layer).__name__ else "Average"
    size = tuple(per_axis(view.option("output_size"), rank))
    first = relay.transpose(view.data, [0, rank + 1, *range(1, rank + 1)])
    x = first if view.channels_last else view.data
    made = ADAPTIVE[kind][rank](x, size, layout=data_layout(view, rank)[:1] + "C" + "DHW"[-rank:])
    return relay.transpose(made, [0, *range(2, rank + 2), 1]) if view.channels_last else made


@converter("Resizing")
def _resizing(view: LayerView) -> Any:
    """To a size, from the middles of pixels."""
    method = METHODS.get(str(view.option("interpolation")))
    odd = [n for n in ("crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias")
           if view.option(n, False)]  # fmt: skip
    if method is None or odd:
        raise view.unsupported(f"{odd or view.option('interpolation')}; bilinear, nearest are")
    height, width = int(view.option("height")), int(view.option("width"))
    rank = len(view.shape)
    size = [int(d) for d in view.shape]
    at = rank - 3 if view.channels_last else rank - 2
    scales = [1.0] * rank
    for axis, extent in ((at, height), (at + 1, width)):
        scales[axis], size[axis] = extent / size[axis], extent
    return relay.image.resize(
        view.data, size, scales, method, "half_pixel",
        "round_prefer_ceil" if "nearest" in method else "",
    )  # fmt: skip


@converter("CenterCrop")
def _center_crop(view: LayerView) -> Any:
    wanted = [int(view.option("height")), int(view.option("width"))]
    extents = spatial_shape(view, view.data)
    if any(extent < size for extent, size in zip(extents, wanted, strict=True)):
        raise view.unsupported(f"{extents} is smaller than {wanted}, to which Keras resizes it")
    begin = [(extent - size) // 2 for extent, size in zip(extents, wanted, strict=True)]
    end = [b + size for b, size in zip(begin, wanted, strict=True)]
    axes = [1, 2] if view.channels_last else [2, 3]
    return relay.strided_slice(view.data, begin, end, axes=axes)
