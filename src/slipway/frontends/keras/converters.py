"""The table of Keras' layers, and what a converter sees of one.

A converter is a function ``f(layer: LayerView) -> Expr | list[Expr]`` decorated with `converter`,
under the names of the classes that it converts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from slipway.frontends.converter_table import ConverterTable, UnsupportedNode
from slipway.relay.expr import Expr, Var
from slipway.relay.types import TensorType

Converter = Callable[["LayerView"], Any]
TABLE: ConverterTable[LayerView] = ConverterTable(
    "slipway.frontends.keras.layers",
    (
        "activation", "attention", "conv", "image", "masks", "merge", "norm", "operation", "pool",
        "recurrent", "recurrent_images", "shape",
    ),
)  # fmt: skip
converter = TABLE.converter
load_converters = TABLE.load


class LayerWeights:
    """The parameters of the model: variables of the function, by name and once each."""

    def __init__(self) -> None:
        self.values: dict[str, np.ndarray[Any, Any]] = {}
        self.variables: dict[str, Var] = {}

    def variable(self, name: str, values: np.ndarray[Any, Any]) -> Var:
        """Return the variable of a name; a layer that is used twice has its weights once."""
        if name not in self.variables:
            kept = np.asarray(values, order="C")
            self.values[name] = kept
            self.variables[name] = Var(name, TensorType(kept.shape, str(kept.dtype)))
        return self.variables[name]


class LayerView:
    """One use of a layer or an operation: `inputs` are its tensors, `given` its other arguments."""

    def __init__(
        self,
        layer: Any,
        inputs: Sequence[Expr],
        given: Mapping[str, Any],
        weights: LayerWeights,
        convert: Callable[..., Any],
        prefix: str = "",
    ) -> None:
        self.layer = layer
        self.inputs = list(inputs)
        self.given = dict(given)
        self.weights = weights
        self.convert = convert  # f(a layer inside, its inputs, prefix of its weights, arguments)
        self.prefix = prefix

    def __getitem__(self, position: int) -> Any:
        return self.inputs[position]

    @property
    def data(self) -> Any:
        """The only or first input."""
        return self.inputs[0]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the first input."""
        return tuple(self.data.tensor_type.shape)

    @property
    def name(self) -> str:
        """The layer's name, behind those of the models and wrappers it lies in."""
        return f"{self.prefix}{self.layer.name}"

    @property
    def channels_last(self) -> bool:
        """Whether the channels are the last axis."""
        return str(getattr(self.layer, "data_format", "channels_last")) == "channels_last"

    def array(self, attribute: str) -> np.ndarray[Any, Any] | None:
        """Return the numbers of a weight; None where the layer has none."""
        cell = getattr(self.layer, "cell", None)  # of a recurrent layer
        variable = getattr(self.layer, attribute, None)
        if variable is None and cell is not None:
            variable = getattr(cell, attribute, None)
        return None if variable is None else numbers(variable)

    def need(self, attribute: str) -> np.ndarray[Any, Any]:
        """Return the numbers of a weight that the layer must have."""
        found = self.array(attribute)
        if found is None:
            raise self.unsupported(f"it has no {attribute}: build the model before it is imported")
        return found

    def weight(self, attribute: str, values: np.ndarray[Any, Any]) -> Var:
        """Return a weight of the model, as these numbers."""
        return self.weights.variable(f"{self.name}.{attribute}", values)

    def option(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the layer."""
        return getattr(self.layer, name, default)

    def unsupported(self, why: str) -> UnsupportedNode:
        """Return the error that names this layer."""
        return UnsupportedNode(f"{self.name} ({type(self.layer).__name__}): {why}")


def numbers(variable: Any) -> np.ndarray[Any, Any]:
    """Return the numbers of a Keras variable of any backend, or of an array."""
    found = variable.numpy() if hasattr(variable, "numpy") else np.asarray(variable)
    return np.asarray(found)


def function_name(function: Any) -> str:
    """Return what Keras calls an activation, as "relu"; "linear" for none."""
    if function is None:
        return "linear"
    return str(getattr(function, "__name__", None) or getattr(function, "name", function))
