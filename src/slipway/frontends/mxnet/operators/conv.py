"""Convolutions, plain and transposed, and those whose taps move."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, dtype_of, shape_of

CONV = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}
TRANSPOSED = {
    1: relay.nn.conv1d_transpose, 2: relay.nn.conv2d_transpose, 3: relay.nn.conv3d_transpose,
}  # fmt: skip
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def layout_of(node: NodeView, rank: int) -> str:
    """Return the layout of a node's data, checked; without one the channels are first."""
    first, last = f"NC{SPATIAL[rank]}", f"N{SPATIAL[rank]}C"
    found = node.text("layout", first)
    if found not in (first, last):
        raise node.unsupported(f"its layout is {found}")
    return found


def _window(node: NodeView) -> tuple[int, dict[str, Any]]:
    kernel = node.ints("kernel")
    rank = len(kernel)
    if rank not in CONV:
        raise node.unsupported(f"its kernel is {tuple(kernel)}")
    return rank, {
        "kernel_size": tuple(kernel),
        "strides": tuple(node.ints("stride") or [1] * rank),
        "padding": tuple(node.ints("pad") or [0] * rank),
        "dilation": tuple(node.ints("dilate") or [1] * rank),
        "groups": node.integer("num_group", 1),
        "channels": node.integer("num_filter"),
    }


def _biased(node: NodeView, made: Any, position: int, axis: int, bare: bool = False) -> Any:
    if node.flag("no_bias", bare):
        return made
    return relay.nn.bias_add(made, node[position], axis=axis)


@converter("Convolution", "Convolution_v1")
def _convolution(node: NodeView) -> Any:
    rank, options = _window(node)
    layout = layout_of(node, rank)
    weight, order = node[1], f"OI{SPATIAL[rank]}"
    if layout[1] != "C":  # its weights are (O, spatial..., I)
        weight = relay.transpose(weight, [0, rank + 1, *range(1, rank + 1)])
    made = CONV[rank](node.data, weight, data_layout=layout, kernel_layout=order, **options)
    return _biased(node, made, 2, layout.index("C"))


@converter("Deconvolution")
def _deconvolution(node: NodeView) -> Any:
    rank, options = _window(node)
    layout = layout_of(node, rank)
    if layout[1] != "C":
        raise node.unsupported(f"its layout is {layout}")
    extra = node.ints("adj") or [0] * rank
    if target := [t for t in node.ints("target_shape") if t]:
        pads = []
        for i, extent in enumerate(target):
            reach = options["dilation"][i] * (options["kernel_size"][i] - 1) + 1
            total = options["strides"][i] * (node.shape[2 + i] - 1) + reach - extent
            if total < 0:
                raise node.unsupported(f"its target_shape {tuple(target)} is beyond its reach")
            extra[i] = total % 2
            pads.append((total + 1) // 2)
        options["padding"] = tuple(pads)
    made = TRANSPOSED[rank](
        node.data, node[1], data_layout=layout, kernel_layout=f"IO{SPATIAL[rank]}",
        output_padding=tuple(extra), **options,
    )  # fmt: skip
    return _biased(node, made, 2, 1, bare=True)


@converter("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution",
           "_npx_deformable_convolution", "_npx_modulated_deformable_convolution")  # fmt: skip
def _deformable(node: NodeView) -> Any:
    rank, options = _window(node)
    if rank != 2:
        raise node.unsupported(f"its kernel has {rank} dimensions")
    modulated = "odulated" in node.op
    at = 3 if modulated else 2
    made = relay.nn.deformable_conv2d(
        node.data,
        _held(node, options),
        node[at],
        deformable_groups=node.integer("num_deformable_group", 1),
        mask=node[2] if modulated else None,
        **options,
    )
    return _biased(node, made, at + 1, 1)


def _held(node: NodeView, options: dict[str, Any]) -> Any:
    """Return offsets that hold positions less than one beyond the last element at that element.

    Relay's operator weighs the last element less there, MXNet's takes it whole.
    """
    moves = node[1]
    _, count, *out = shape_of(moves)
    _, width = options["kernel_size"]
    positions = np.arange(count) // 2 % (options["kernel_size"][0] * width)
    base = np.zeros((1, count, *out), "float32")
    last = np.zeros((1, count, 1, 1), "float32")
    for axis, tap in enumerate((positions // width, positions % width)):
        starts = np.arange(out[axis]) * options["strides"][axis] - options["padding"][axis]
        grid = starts[:, None] if axis == 0 else starts[None, :]
        taps = (tap * options["dilation"][axis])[axis::2]
        base[0, axis::2] = taps[:, None, None] + grid
        last[0, axis::2] = node.shape[2 + axis] - 1
    dtype = dtype_of(moves)
    here = relay.add(relay.const(base, dtype), moves)
    end = relay.const(last, dtype)
    inside = relay.less(here, relay.const(last + 1, dtype))
    back = relay.subtract(relay.minimum(here, end), relay.const(base, dtype))
    return relay.where(inside, back, moves)


@converter("UpSampling")
def _upsampling(node: NodeView) -> Any:
    scale = node.integer("scale", 1)
    if node.text("sample_type") == "nearest":
        sizes = [shape_of(v)[2] for v in node.inputs]
        made = [
            relay.nn.upsampling(v, scale_h=sizes[0] * scale / s, scale_w=sizes[0] * scale / s)
            for v, s in zip(node.inputs, sizes, strict=True)
        ]
        if len(made) == 1:
            return made[0]
        if node.text("multi_input_mode", "concat") == "sum":
            total = made[0]
            for other in made[1:]:
                total = relay.add(total, other)
            return total
        return relay.concatenate(made, axis=1)
    channels = node.shape[1]  # bilinear: a transposed convolution with the weights it is given
    pad = (scale - 1 + 1) // 2 if scale % 2 == 0 else (scale - 1) // 2
    return relay.nn.conv2d_transpose(
        node.data, node[1], strides=(scale, scale), padding=(pad, pad), groups=channels,
        channels=channels, kernel_size=shape_of(node[1])[2:],
        output_padding=(0, 0), kernel_layout="IOHW",
    )  # fmt: skip
