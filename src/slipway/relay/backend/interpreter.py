"""``relay.backend.interpreter``: values of models, which are arrays and tuples here (classic).

References and constructors of data types, RefValue and ConstructorValue, can be imported, and not
be made: models are functions of tensors.
"""

from __future__ import annotations

from typing import Any

from slipway.classic.placeholders import placeholder_of
from slipway.runtime.container import ADT, tuple_object
from slipway.runtime.ndarray import NDArray, array
from slipway.runtime.ndarray import array as TensorValue


def TupleValue(*fields: Any) -> ADT:
    """Return a tuple of values."""
    return tuple_object(fields)


class Value:
    """What makes values of numbers."""

    @staticmethod
    def from_scalar(value: bool | int | float, dtype: str | None = None) -> NDArray:
        """Return an array without dimensions."""
        if dtype is None and isinstance(value, bool):
            dtype = "bool"
        return array(value, dtype=dtype)


def __getattr__(name: str) -> Any:
    if name not in ("RefValue", "ConstructorValue"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return placeholder_of(__name__, name, "models are functions of tensors and tuples")


__all__ = ["TensorValue", "TupleValue", "Value"]
