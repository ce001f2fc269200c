"""Layers that move values: other shapes, borders, repetitions, look-ups."""

from __future__ import annotations

import math
from typing import Any

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.conv import data_layout, per_axis, rank_of


@converter("Flatten")
def _flatten(view: LayerView) -> Any:
    """In the order of channels last, whatever the layer's format."""
    x, rank = view.data, len(view.shape)
    if not view.channels_last and rank > 2:
        x = relay.transpose(x, [0, *range(2, rank), 1])
    if rank == 1:
        return relay.expand_dims(x, 1)
    return relay.reshape(x, (view.shape[0], math.prod(int(d) for d in view.shape[1:])))


@converter("Reshape")
def _reshape(view: LayerView) -> Any:
    shape = view.option("target_shape")
    if shape is None:
        shape = view.option("newshape")[1:]  # keras.ops.reshape, whose shape has the batch
    return relay.reshape(view.data, (view.shape[0], *(int(d) for d in shape)))


@converter("Permute")
def _permute(view: LayerView) -> Any:
    return relay.transpose(view.data, [0, *(int(d) for d in view.option("dims"))])


@converter("RepeatVector")
def _repeat(view: LayerView) -> Any:
    return relay.repeat(relay.expand_dims(view.data, 1), int(view.option("n")), 1)


def _sides(value: Any, rank: int) -> list[tuple[int, int]]:
    """Return (before, after) of each spatial dimension."""
    if isinstance(value, int):
        return [(value, value)] * rank
    listed = list(value)
    if rank == 1 and len(listed) == 2 and isinstance(listed[0], int):
        return [(listed[0], listed[1])]
    return [(v, v) if isinstance(v, int) else (int(v[0]), int(v[1])) for v in listed]


@converter("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def _zero_padding(view: LayerView) -> Any:
    sides = _sides(view.option("padding"), rank_of(view))
    whole = [(0, 0), *sides, (0, 0)] if view.channels_last else [(0, 0), (0, 0), *sides]
    return relay.nn.pad(view.data, whole)


@converter("Cropping1D", "Cropping2D", "Cropping3D")
def _cropping(view: LayerView) -> Any:
    sides = _sides(view.option("cropping"), rank_of(view))
    begin, end = [0] * len(view.shape), [int(d) for d in view.shape]
    for position, (before, after) in enumerate(sides, 1 if view.channels_last else 2):
        begin[position], end[position] = before, end[position] - after
    return relay.strided_slice(view.data, begin, end)


@converter("UpSampling1D", "UpSampling2D", "UpSampling3D")
def _upsampling(view: LayerView) -> Any:
    rank = rank_of(view)
    factors = per_axis(view.option("size"), rank)
    kind = str(view.option("interpolation", "nearest"))
    if kind == "nearest":
        made = view.data
        for position, factor in enumerate(factors, 1 if view.channels_last else 2):
            made = relay.repeat(made, factor, position)
        return made
    if kind != "bilinear" or rank != 2:
        raise view.unsupported(f"its interpolation is {kind!r}")
    first = 1 if view.channels_last else 2
    size = [int(d) * f for d, f in zip(view.shape[first : first + 2], factors, strict=True)]
    return relay.image.resize2d(
        view.data, tuple(size), layout=data_layout(view, 2), method="linear",
        coordinate_transformation_mode="half_pixel",
    )  # fmt: skip


@converter("Embedding")
def _embedding(view: LayerView) -> Any:
    table = view.weight("embeddings", view.need("embeddings"))
    indices = view.data
    if indices.tensor_type.dtype not in ("int32", "int64"):
        indices = relay.cast(indices, "int32")
    return relay.take(table, indices, axis=0)
