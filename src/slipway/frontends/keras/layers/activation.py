"""Activations: as layers, and by the names that other layers give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter, function_name
from slipway.relay.expr import Constant, Expr

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def number(value: Any, x: Expr) -> Constant:
    """Return a number as a constant of the type of `x`."""
    return Constant(np.asarray(value, x.tensor_type.dtype))


def elu(x: Expr, alpha: float = 1.0) -> Any:
    """Return x where it is positive, else alpha * (exp(x) - 1)."""
    below = relay.subtract(relay.exp(relay.minimum(x, number(0, x))), number(1, x))
    return relay.add(relay.nn.relu(x), relay.multiply(number(alpha, x), below))


def _hard_sigmoid(x: Any) -> Any:
    return relay.multiply(relay.clip(relay.add(x, number(3, x)), 0.0, 6.0), number(1 / 6, x))


def _softplus(x: Any) -> Any:
    """log(1 + exp(x)), where exp stays small."""
    tail = relay.log(relay.add(relay.exp(relay.negative(relay.abs(x))), number(1, x)))
    return relay.add(relay.nn.relu(x), tail)


def _gelu(x: Any, approximate: bool = False) -> Any:
    if approximate:
        cubic = relay.multiply(number(0.044715, x), relay.multiply(x, relay.multiply(x, x)))
        inner = relay.tanh(relay.multiply(number(np.sqrt(2 / np.pi), x), relay.add(x, cubic)))
    else:
        inner = relay.erf(relay.multiply(x, number(np.sqrt(0.5), x)))
    half = relay.multiply(number(0.5, x), x)
    return relay.multiply(half, relay.add(inner, number(1, x)))


def _log_sigmoid(x: Any) -> Any:
    return relay.negative(_softplus(relay.negative(x)))


def _hard_shrink(x: Any) -> Any:
    return relay.where(relay.greater(relay.abs(x), number(0.5, x)), x, number(0, x))


def _soft_shrink(x: Any) -> Any:
    """X less 0.5, towards zero; NaN stays."""
    return relay.subtract(x, relay.clip(x, -0.5, 0.5))


def _sparse_sigmoid(x: Any) -> Any:
    return relay.multiply(relay.add(relay.clip(x, -1.0, 1.0), number(1, x)), number(0.5, x))


def _sparse_plus(x: Any) -> Any:
    """0 up to -1, x from 1 on, a parabola between."""
    part = _sparse_sigmoid(x)
    return relay.add(relay.multiply(part, part), relay.nn.relu(relay.subtract(x, number(1, x))))


def _square_plus(x: Any) -> Any:
    root = relay.sqrt(relay.add(relay.multiply(x, x), number(4, x)))
    return relay.multiply(relay.add(x, root), number(0.5, x))


def _glu(x: Any) -> Any:
    first, second = relay.split(x, 2, axis=-1)
    return relay.multiply(first, relay.sigmoid(second))


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda x: x,
    "relu": relay.nn.relu,
    "relu6": lambda x: relay.clip(x, 0.0, 6.0),
    "sigmoid": relay.sigmoid,
    "tanh": relay.tanh,
    "softmax": lambda x: relay.nn.softmax(x, axis=-1),
    "log_softmax": lambda x: relay.nn.log_softmax(x, axis=-1),
    "exponential": relay.exp,
    "elu": elu,
    "selu": lambda x: relay.multiply(number(SELU_SCALE, x), elu(x, SELU_ALPHA)),
    "softplus": _softplus,
    "softsign": lambda x: relay.divide(x, relay.add(relay.abs(x), number(1, x))),
    "silu": lambda x: relay.multiply(x, relay.sigmoid(x)),
    "hard_sigmoid": _hard_sigmoid,
    "hard_silu": lambda x: relay.multiply(x, _hard_sigmoid(x)),
    "leaky_relu": lambda x: relay.nn.leaky_relu(x, 0.2),
    "gelu": _gelu,
    "mish": lambda x: relay.multiply(x, relay.tanh(_softplus(x))),
    "celu": elu,
    "glu": _glu,
    "hard_tanh": lambda x: relay.clip(x, -1.0, 1.0),
    "hard_shrink": _hard_shrink,
    "soft_shrink": _soft_shrink,
    "log_sigmoid": _log_sigmoid,
    "sparse_plus": _sparse_plus,
    "sparse_sigmoid": _sparse_sigmoid,
    "squareplus": _square_plus,
    "tanh_shrink": lambda x: relay.subtract(x, relay.tanh(x)),
}
ACTIVATIONS["swish"], ACTIVATIONS["hard_swish"] = ACTIVATIONS["silu"], ACTIVATIONS["hard_silu"]


def activated(view: LayerView, x: Expr, function: Any = ...) -> Any:
    """Return what a layer's activation makes of `x`."""
    chosen = view.option("activation") if function is ... else function
    if hasattr(chosen, "get_config"):  # a layer
        return view.convert(chosen, [x], f"{view.name}.")
    name = function_name(chosen)
    if name not in ACTIVATIONS:
        raise view.unsupported(f"its activation {name!r} has no converter")
    return ACTIVATIONS[name](x)


@converter("Activation")
def _activation(view: LayerView) -> Any:
    return activated(view, view.data)


@converter("ReLU")
def _relu(view: LayerView) -> Any:
    """With a slope below `threshold`, and a largest value."""
    x = view.data
    threshold, slope = float(view.option("threshold", 0)), float(view.option("negative_slope", 0))
    if threshold:
        above = relay.greater_equal(x, number(threshold, x))
        below = relay.multiply(number(slope, x), relay.subtract(x, number(threshold, x)))
        made = relay.where(above, x, below)
    else:
        made = relay.nn.leaky_relu(x, slope) if slope else relay.nn.relu(x)
    limit = view.option("max_value")
    return made if limit is None else relay.minimum(made, number(float(limit), x))


@converter("LeakyReLU")
def _leaky_relu(view: LayerView) -> Any:
    return relay.nn.leaky_relu(view.data, float(view.option("negative_slope", 0.3)))


@converter("ELU")
def _elu(view: LayerView) -> Any:
    return elu(view.data, float(view.option("alpha", 1.0)))


@converter("PReLU")
def _prelu(view: LayerView) -> Any:
    """A slope for each element, or for those of some axes together."""
    x = view.data
    slope = view.weight("alpha", view.need("alpha"))
    below = relay.multiply(slope, relay.minimum(x, number(0, x)))
    return relay.add(relay.nn.relu(x), below)


@converter("Softmax")
def _softmax(view: LayerView) -> Any:
    axis = view.option("axis", -1)
    if not isinstance(axis, int):
        raise view.unsupported(f"its axis is {axis!r}, and one is supported")
    return relay.nn.softmax(view.data, axis=axis)
