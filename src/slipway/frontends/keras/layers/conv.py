"""Products and convolutions, plain, depthwise, separable and transposed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.activation import activated

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
CONV = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}
TRANSPOSED = {
    1: relay.nn.conv1d_transpose, 2: relay.nn.conv2d_transpose, 3: relay.nn.conv3d_transpose,
}  # fmt: skip


def data_layout(view: LayerView, rank: int) -> str:
    """Return the layout of a layer's data, as "NHWC"."""
    return f"N{SPATIAL[rank]}C" if view.channels_last else f"NC{SPATIAL[rank]}"


def spatial_shape(view: LayerView, x: Any) -> list[int]:
    """Return the extents between batch and channels."""
    shape = [int(d) for d in x.tensor_type.shape]
    return shape[1:-1] if view.channels_last else shape[2:]


def rank_of(view: LayerView) -> int:
    """Return the number of spatial dimensions, which a layer's class is named after."""
    found = re.search(r"(\d)D", type(view.layer).__name__)
    assert found is not None
    return int(found[1])


def per_axis(value: Any, rank: int) -> list[int]:
    """Return a number for each spatial dimension."""
    return [int(v) for v in value] if isinstance(value, list | tuple) else [int(value)] * rank


def same_padding(extents: Sequence[int], strides: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return (before..., after...) so that the result has ceil(extent / stride) elements."""
    total = [
        max((-(-n // s) - 1) * s + k - n, 0)
        for n, s, k in zip(extents, strides, sizes, strict=True)
    ]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


def padding_of(view: LayerView, x: Any, strides: list[int], sizes: list[int]) -> list[int]:
    """Return the padding of a window layer; `sizes` with the gaps of a dilation."""
    kind = str(view.option("padding", "valid"))
    if kind == "valid":
        return [0] * (2 * len(sizes))
    if kind == "same":
        return same_padding(spatial_shape(view, x), strides, sizes)
    if kind == "causal":
        return [sizes[0] - 1, 0]
    raise view.unsupported(f"its padding is {kind!r}")


def biased(view: LayerView, x: Any, attribute: str = "bias") -> Any:
    """Return x plus the layer's bias, where it has one."""
    bias = view.array(attribute)
    if bias is None:
        return x
    axis = -1 if view.channels_last else 1
    return relay.nn.bias_add(x, view.weight(attribute, bias), axis=axis)


def conv_of(view: LayerView, x: Any, name: str, kernel: np.ndarray[Any, Any], groups: int,
          window: tuple[list[int], ...]) -> Any:  # fmt: skip
    """Convolve with a kernel (O, I, spatial...); `window` is what `window_of` gives."""
    rank = kernel.ndim - 2
    strides, dilation, padding = window
    return CONV[rank](
        x,
        view.weight(name, kernel),
        strides=tuple(strides),
        padding=tuple(padding),
        dilation=tuple(dilation),
        groups=groups,
        channels=kernel.shape[0],
        kernel_size=kernel.shape[2:],
        data_layout=data_layout(view, rank),
        kernel_layout=f"OI{SPATIAL[rank]}",
    )


def first_channels(kernel: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Keras' (spatial..., I, O) as (O, I, spatial...)."""
    rank = kernel.ndim - 2
    return kernel.transpose(rank + 1, rank, *range(rank))


def _depthwise(kernel: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Keras' (spatial..., channels, multiplier) as (channels * multiplier, 1, spatial...)."""
    rank = kernel.ndim - 2
    moved = kernel.transpose(rank, rank + 1, *range(rank))
    return moved.reshape(-1, 1, *kernel.shape[:rank])


def window_of(view: LayerView, x: Any, sizes: Sequence[int]) -> tuple[list[int], ...]:
    """Return the strides, the dilation and the padding of a layer."""
    rank = len(sizes)
    strides = per_axis(view.option("strides"), rank)
    dilation = per_axis(view.option("dilation_rate", 1), rank)
    spread = [(k - 1) * d + 1 for k, d in zip(sizes, dilation, strict=True)]
    return strides, dilation, padding_of(view, x, strides, spread)


@converter("Conv1D", "Conv2D", "Conv3D")
def _plain(view: LayerView) -> Any:
    kernel = first_channels(view.need("kernel"))
    window = window_of(view, view.data, kernel.shape[2:])
    made = conv_of(view, view.data, "kernel", kernel, int(view.option("groups", 1)), window)
    return activated(view, biased(view, made))


@converter("DepthwiseConv1D", "DepthwiseConv2D")
def _each_channel(view: LayerView) -> Any:
    own = view.need("kernel")
    kernel = _depthwise(own)
    window = window_of(view, view.data, kernel.shape[2:])
    made = conv_of(view, view.data, "kernel", kernel, own.shape[-2], window)
    return activated(view, biased(view, made))


@converter("SeparableConv1D", "SeparableConv2D")
def _separable(view: LayerView) -> Any:
    """Each channel for itself, then all of a point."""
    own, point = view.need("depthwise_kernel"), first_channels(view.need("pointwise_kernel"))
    kernel, rank = _depthwise(own), own.ndim - 2
    window = window_of(view, view.data, kernel.shape[2:])
    deep = conv_of(view, view.data, "depthwise_kernel", kernel, own.shape[-2], window)
    ones = [1] * rank
    made = conv_of(view, deep, "pointwise_kernel", point, 1, (ones, ones, [0, 0] * rank))
    return activated(view, biased(view, made))


@converter("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def _transposed(view: LayerView) -> Any:
    """Keras' kernel is (spatial..., O, I); the channels go first around the product."""
    own = view.need("kernel")
    rank = own.ndim - 2
    kernel = own.transpose(rank + 1, rank, *range(rank))
    strides = per_axis(view.option("strides"), rank)
    if any(d != 1 for d in per_axis(view.option("dilation_rate", 1), rank)):
        raise view.unsupported("its dilation is not 1")
    if view.option("output_padding") is not None:
        raise view.unsupported("it has an output_padding")
    # What a stride leaves over at the end is padded; under "same" what is too much is cut.
    excess = [k - s for k, s in zip(own.shape[:rank], strides, strict=True)]
    beyond = [max(-e, 0) for e in excess]
    cut = [max(e, 0) if view.option("padding") == "same" else 0 for e in excess]
    padding = [c // 2 for c in cut] + [c - c // 2 for c in cut]
    x = view.data
    if view.channels_last:
        x = relay.transpose(x, [0, rank + 1, *range(1, rank + 1)])
    made = TRANSPOSED[rank](
        x,
        view.weight("kernel", kernel),
        strides=tuple(strides),
        padding=tuple(padding),
        output_padding=tuple(beyond),
        channels=own.shape[rank],
        kernel_size=own.shape[:rank],
    )
    if view.channels_last:
        made = relay.transpose(made, [0, *range(2, rank + 2), 1])
    return activated(view, biased(view, made))


def dense(view: LayerView, x: Any, name: str, kernel: np.ndarray[Any, Any]) -> Any:
    """Return x by a kernel (inputs, units), along the last axis of x."""
    shape = list(x.tensor_type.shape)
    flat = x if len(shape) == 2 else relay.reshape(x, (-1, shape[-1]))
    made = relay.nn.dense(flat, view.weight(name, kernel.T))
    return made if len(shape) == 2 else relay.reshape(made, (*shape[:-1], kernel.shape[1]))


@converter("Dense")
def _dense(view: LayerView) -> Any:
    made = dense(view, view.data, "kernel", view.need("kernel"))
    bias = view.array("bias")
    if bias is not None:
        made = relay.nn.bias_add(made, view.weight("bias", bias), axis=-1)
    return activated(view, made)


@converter("EinsumDense")
def _einsum_dense(view: LayerView) -> Any:
    """A product by an equation, "abc,cd->abd"; dots stand for the axes that only the data has."""
    left, _, right = str(view.option("equation")).replace(" ", "").partition("->")
    data, _, weights = left.partition(",")
    if "..." in data:
        used = set(left + right)
        spare = [c for c in "zyxwvutsrqponm" if c not in used]
        filled = "".join(spare[: len(view.shape) - len(data.replace("...", ""))])
        data, right = data.replace("...", filled), right.replace("...", filled)
    kernel = view.weight("kernel", view.need("kernel"))
    made = relay.einsum([view.data, kernel], f"{data},{weights}->{right}")
    bias = view.array("bias")
    if bias is not None:
        made = relay.add(made, view.weight("bias", bias))
    return activated(view, made)
