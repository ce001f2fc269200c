"""Normalisation, and scales that are fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter, numbers
from slipway.frontends.keras.layers.activation import number


def _axes(view: LayerView) -> list[int]:
    axis = view.option("axis", -1)
    rank = len(view.shape)
    return sorted(a % rank for a in (axis if isinstance(axis, list | tuple) else [axis]))


@converter("BatchNormalization")
def _batch(view: LayerView) -> Any:
    """With the averages of the training; a scale or an offset that is left out is 1 or 0."""
    (axis,) = _axes(view)
    mean, variance = view.need("moving_mean"), view.need("moving_variance")
    gamma, beta = view.array("gamma"), view.array("beta")
    made = relay.nn.batch_norm(
        view.data,
        view.weight("gamma", np.ones_like(mean) if gamma is None else gamma),
        view.weight("beta", np.zeros_like(mean) if beta is None else beta),
        view.weight("moving_mean", mean),
        view.weight("moving_variance", variance),
        axis=axis,
        epsilon=float(view.option("epsilon")),
    )
    return made[0]


def _scaled(view: LayerView, x: Any, axes: list[int]) -> Any:
    """Return x * gamma + beta along `axes`."""
    for attribute, join in (("gamma", relay.multiply), ("beta", relay.add)):
        values = view.array(attribute)
        if values is not None:
            shape = [int(d) if i in axes else 1 for i, d in enumerate(view.shape)]
            x = join(x, view.weight(attribute, values.reshape(shape)))
    return x


def _normal(view: LayerView, x: Any, axes: list[int]) -> Any:
    """Return x with the mean 0 and the variance 1 along `axes`."""
    centred = relay.subtract(x, relay.mean(x, axis=axes, keepdims=True))
    variance = relay.mean(relay.multiply(centred, centred), axis=axes, keepdims=True)
    epsilon = number(float(view.option("epsilon")), x)
    return relay.multiply(centred, relay.rsqrt(relay.add(variance, epsilon)))


@converter("LayerNormalization")
def _layer(view: LayerView) -> Any:
    if view.option("rms_scaling", False):
        raise view.unsupported("its rms_scaling is not supported")
    axes = _axes(view)
    return _scaled(view, _normal(view, view.data, axes), axes)


@converter("RMSNormalization")
def _root_mean_square(view: LayerView) -> Any:
    """The scale has the shape of all axes, or of the last where one is named."""
    x, axes = view.data, _axes(view)
    given = view.option("axis", -1)
    if isinstance(given, list | tuple) and [a % len(view.shape) for a in given] != axes:
        raise view.unsupported(f"its axes {list(given)} do not rise")
    mean = relay.mean(relay.multiply(x, x), axis=axes, keepdims=True)
    made = relay.multiply(x, relay.rsqrt(relay.add(mean, number(float(view.option("epsilon")), x))))
    scale = view.array("scale")
    if scale is None:
        return made
    shape = [int(d) if i in axes else 1 for i, d in enumerate(view.shape)]
    return relay.multiply(made, view.weight("scale", scale.reshape(shape)))


@converter("GroupNormalization")
def _group(view: LayerView) -> Any:
    (axis,) = _axes(view)
    shape, groups = [int(d) for d in view.shape], int(view.option("groups"))
    groups = shape[axis] if groups == -1 else groups
    split = [*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]]
    axes = [i for i in range(1, len(split)) if i != axis]
    made = _normal(view, relay.reshape(view.data, split), axes)
    return _scaled(view, relay.reshape(made, shape), [axis])


@converter("UnitNormalization")
def _unit(view: LayerView) -> Any:
    squares = relay.sum(relay.multiply(view.data, view.data), axis=_axes(view), keepdims=True)
    length = relay.maximum(squares, number(1e-12, view.data))
    return relay.multiply(view.data, relay.rsqrt(length))


@converter("Normalization")
def _fixed(view: LayerView) -> Any:
    """(x - mean) / max(deviation, 1e-7), or its inverse."""
    x = view.data
    mean, variance = (numbers(view.option(name)) for name in ("mean", "variance"))
    deviation = np.maximum(np.sqrt(variance), 1e-7).astype(x.tensor_type.dtype)
    offset = view.weight("mean", mean.astype(x.tensor_type.dtype))
    scale = view.weight("deviation", deviation)
    if view.option("invert", False):
        return relay.add(offset, relay.multiply(x, scale))
    return relay.divide(relay.subtract(x, offset), scale)


@converter("Rescaling")
def _rescaling(view: LayerView) -> Any:
    x, dtype = view.data, str(view.option("compute_dtype", "float32"))
    if x.tensor_type.dtype != dtype:
        x = relay.cast(x, dtype)
    scale, offset = (np.asarray(view.option(n), dtype) for n in ("scale", "offset"))
    return relay.add(relay.multiply(x, relay.const(scale)), relay.const(offset))
