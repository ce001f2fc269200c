"""Convolutions, pools, and what resamples images."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.frontends.onnx.export.writer import Given, Unwritten, Write, Writer, kind_of, shape_of
from slipway.relay.expr import Call

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _name(call: Call) -> str:
    return str(call.op.name)


def _channels_first(call: Call, layout: str, letters: str = "NC") -> None:
    """ONNX knows data with channels first."""
    rank = len(shape_of(call.args[0]))
    if layout != letters + SPATIAL.get(rank - 2, ""):
        raise Unwritten(f"{_name(call)} (layout {layout})")


def _conv(w: Writer, call: Call, given: Given) -> str:
    a = call.attrs
    _channels_first(call, a.data_layout)
    _channels_first(call, a.kernel_layout, "OI")
    if kind_of(call).dtype != kind_of(call.args[0]).dtype:
        raise Unwritten(f"{_name(call)} (of {kind_of(call.args[0]).dtype})")
    return w.node("Conv", given, kernel_shape=shape_of(call.args[1])[2:], strides=list(a.strides),
                  pads=list(a.padding), dilations=list(a.dilation), group=a.groups)  # fmt: skip


def _conv_transpose(w: Writer, call: Call, given: Given) -> str:
    a = call.attrs
    return w.node(
        "ConvTranspose", given, kernel_shape=shape_of(call.args[1])[2:], strides=list(a.strides),
        pads=list(a.padding), dilations=list(a.dilation), group=a.groups,
        output_padding=list(a.output_padding),
    )  # fmt: skip


def _pool(kind: str) -> Write:
    def write(w: Writer, call: Call, given: Given) -> str:
        a = call.attrs
        _channels_first(call, a.layout)
        more: dict[str, Any] = {}
        if kind == "MaxPool":
            more["dilations"] = list(a.dilation)
        elif any(d != 1 for d in a.dilation):
            raise Unwritten(f"{_name(call)} (dilation {a.dilation})")
        else:
            more["count_include_pad"] = int(a.count_include_pad)
        return w.node(kind, given, kernel_shape=list(a.pool_size), strides=list(a.strides),
                      pads=list(a.padding), ceil_mode=int(a.ceil_mode), **more)  # fmt: skip

    return write


def _adaptive(kind: str) -> Write:
    """Pools to a size that divides the data's have windows of one size."""

    def write(w: Writer, call: Call, given: Given) -> str:
        _channels_first(call, call.attrs.layout)
        before, after = shape_of(call.args[0])[2:], shape_of(call)[2:]
        if any(a % b for a, b in zip(before, after, strict=True)):
            raise Unwritten(f"{_name(call)} ({before} to {after})")
        window = [a // b for a, b in zip(before, after, strict=True)]
        return w.node(kind, given, kernel_shape=window, strides=window)

    return write


def _resize(w: Writer, call: Call, given: Given) -> str:
    a, dtype = call.attrs, kind_of(call).dtype
    mode = a.coordinate_transformation_mode
    if mode == "half_pixel_symmetric":
        raise Unwritten(f"{_name(call)} ({mode})")
    method = "nearest" if a.method == "nearest_neighbor" else a.method
    more: dict[str, Any] = {}
    if method == "nearest":
        more["nearest_mode"] = a.rounding_method
    elif method == "cubic":
        more = {"cubic_coeff_a": a.cubic_alpha, "exclude_outside": int(a.cubic_exclude)}
    if a.scales:
        scales = [float(v) if size else 1.0 for v, size in zip(a.scales, a.size, strict=True)]
        sized = [w.constant(np.array(scales, "float32"))]
    else:
        sized = ["", w.whole(*shape_of(call))]
    made = w.node("Resize", [given[0], "", *sized], mode=method,
                  coordinate_transformation_mode=mode, **more)  # fmt: skip
    return made if kind_of(call.args[0]).dtype == dtype else w.cast(made, dtype)


def _grid_sample(w: Writer, call: Call, given: Given) -> str:
    a = call.attrs
    if w.opset < 16:
        raise Unwritten("image.grid_sample (before opset 16)")
    return w.node("GridSample", given, mode=a.method, padding_mode=a.padding_mode,
                  align_corners=int(a.align_corners))  # fmt: skip


def _roi_align(w: Writer, call: Call, given: Given) -> str:
    """The number of a region's sample is a vector of its own."""
    a = call.attrs
    if w.opset < 16:
        raise Unwritten("vision.roi_align (before opset 16)")
    number, boxes = w.several("Split", [given[1], w.whole(1, 4)], 2, axis=1)
    sample = w.cast(w.reshape(number, [-1]), "int64")
    return w.node(
        "RoiAlign", [given[0], boxes, sample], mode=a.mode, output_height=a.pooled_size[0],
        output_width=a.pooled_size[1], sampling_ratio=a.sample_ratio,
        spatial_scale=a.spatial_scale,
        coordinate_transformation_mode="half_pixel" if a.aligned else "output_half_pixel",
    )  # fmt: skip


def _global(kind: str) -> Write:
    def write(w: Writer, call: Call, given: Given) -> str:
        _channels_first(call, call.attrs.layout)
        return w.node(kind, given)

    return write


WRITERS: dict[str, Write] = {
    **{f"nn.conv{n}d": _conv for n in SPATIAL},
    **{f"nn.conv{n}d_transpose": _conv_transpose for n in SPATIAL},
    **{f"nn.max_pool{n}d": _pool("MaxPool") for n in SPATIAL},
    **{f"nn.avg_pool{n}d": _pool("AveragePool") for n in SPATIAL},
    **{f"nn.global_max_pool{n}d": _global("GlobalMaxPool") for n in SPATIAL},
    **{f"nn.global_avg_pool{n}d": _global("GlobalAveragePool") for n in SPATIAL},
    **{f"nn.adaptive_max_pool{n}d": _adaptive("MaxPool") for n in SPATIAL},
    **{f"nn.adaptive_avg_pool{n}d": _adaptive("AveragePool") for n in SPATIAL},
    "image.resize": _resize, "image.grid_sample": _grid_sample, "vision.roi_align": _roi_align,
}  # fmt: skip
