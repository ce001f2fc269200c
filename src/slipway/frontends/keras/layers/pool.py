"""Pooling over windows, and over everything."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.conv import data_layout, padding_of, per_axis, rank_of

MAX = {1: relay.nn.max_pool1d, 2: relay.nn.max_pool2d, 3: relay.nn.max_pool3d}
AVERAGE = {1: relay.nn.avg_pool1d, 2: relay.nn.avg_pool2d, 3: relay.nn.avg_pool3d}


@converter(
    *(f"{kind}Pooling{n}D" for kind in ("Max", "Average") for n in (1, 2, 3)),
)
def _windows(view: LayerView) -> Any:
    rank = rank_of(view)
    sizes = per_axis(view.option("pool_size"), rank)
    strides = per_axis(view.option("strides") or sizes, rank)
    options = {
        "pool_size": tuple(sizes), "strides": tuple(strides),
        "padding": tuple(padding_of(view, view.data, strides, sizes)),
        "layout": data_layout(view, rank),
    }  # fmt: skip
    if type(view.layer).__name__.startswith("Max"):
        return MAX[rank](view.data, **options)
    return AVERAGE[rank](view.data, count_include_pad=False, **options)


@converter(*(f"Global{kind}Pooling{n}D" for kind in ("Max", "Average") for n in (1, 2, 3)))
def _whole(view: LayerView) -> Any:
    rank = rank_of(view)
    axes = list(range(1, rank + 1) if view.channels_last else range(2, rank + 2))
    mask = view.given.get("mask")
    if mask is not None:  # of GlobalAveragePooling1D: the mean of the steps that count
        weights = relay.expand_dims(relay.cast(mask, view.data.tensor_type.dtype), -1)
        total = relay.sum(relay.multiply(view.data, weights), axes, view.option("keepdims", False))
        return relay.divide(total, relay.sum(weights, axes, view.option("keepdims", False)))
    reduce = relay.max if "Max" in type(view.layer).__name__ else relay.mean
    return reduce(view.data, axis=axes, keepdims=bool(view.option("keepdims", False)))
