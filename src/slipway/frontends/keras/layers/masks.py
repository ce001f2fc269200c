"""Masks: which steps of a sequence count, and what they are computed from."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.activation import number
from slipway.frontends.keras.layers.merge import operands

COMPARISONS = {
    "Equal": relay.equal, "NotEqual": relay.not_equal, "Greater": relay.greater,
    "GreaterEqual": relay.greater_equal, "Less": relay.less, "LessEqual": relay.less_equal,
}  # fmt: skip
LOGICAL = {"LogicalAnd": relay.logical_and, "LogicalOr": relay.logical_or}


@converter(*COMPARISONS)
def _compare(view: LayerView) -> Any:
    return COMPARISONS[type(view.layer).__name__](*operands(view))


@converter(*LOGICAL)
def _both(view: LayerView) -> Any:
    return LOGICAL[type(view.layer).__name__](*(relay.cast(x, "bool") for x in operands(view)))


@converter("LogicalNot")
def _opposite(view: LayerView) -> Any:
    return relay.logical_not(relay.cast(view.data, "bool"))


@converter("Any", "All")
def _truth(view: LayerView) -> Any:
    axis = view.option("axis")
    axes = list(axis) if isinstance(axis, list | tuple) else None if axis is None else [axis]
    function = relay.any if type(view.layer).__name__ == "Any" else relay.all
    return function(view.data, axes, bool(view.option("keepdims", False)))


@converter("Where")
def _choice(view: LayerView) -> Any:
    condition, *sides = view.given["args"][:3]
    like = next(x for x in view.inputs if x is not condition)
    return relay.where(
        relay.cast(condition, "bool"),
        *(x if hasattr(x, "tensor_type") else number(x, like) for x in sides),
    )


@converter("Masking")
def _masking(view: LayerView) -> Any:
    """Steps of nothing but the mask's value are zero, and left out by what is told of them."""
    value = number(view.option("mask_value", 0.0), view.data)
    kept = relay.any(relay.not_equal(view.data, value), [-1], True)
    return relay.where(kept, view.data, number(0, view.data))
