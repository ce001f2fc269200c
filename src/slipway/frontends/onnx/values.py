"""What flows along the edges of an ONNX graph besides tensors: sequences, optionals, counted ones.

They exist while a model is read, not in the compiled one.  A sequence is a list of expressions
whose length is known, and an optional is there or not; so every operator on them is done by the
importer.  At the model's boundary a sequence is that many tensors, named ``x.0``, ``x.1``, ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slipway.relay.expr import Expr


@dataclass(frozen=True)
class Sequence:
    """Tensors in order; `dtype` is that of the elements, "" where it is not known."""

    items: tuple[Expr, ...]
    dtype: str = ""

    def position(self, index: int) -> int:
        """Return an index counted from the front.  Raises IndexError beyond the ends."""
        size = len(self.items)
        if not -size <= index < size:
            raise IndexError(f"the sequence has {size} elements; there is no element {index}")
        return index % size


@dataclass(frozen=True)
class Optional:
    """A tensor or sequence that may be missing (`value` None)."""

    value: Expr | Sequence | None


@dataclass(frozen=True)
class Counted:
    """A tensor with room for more than there is along `axis`; `count` (1,) tells how much is used.

    What operators make whose result's size depends on the data.  At the model's boundary it is two
    outputs, ``x`` and ``x.count``.
    """

    data: Expr
    count: Expr
    axis: int


Value = Any  # an Expr, Sequence, Optional or Counted, or None for an input that is left out


def tensors_of(value: Value) -> list[Expr]:
    """Return the tensors inside a value, in order."""
    if isinstance(value, Sequence):
        return list(value.items)
    if isinstance(value, Optional):
        return [] if value.value is None else tensors_of(value.value)
    if isinstance(value, Counted):
        return [value.data, value.count]
    return [value]


def names_of(name: str, value: Value) -> list[str]:
    """Return the names of the tensors inside a value of the model's boundary."""
    if isinstance(value, Sequence):
        return [f"{name}.{i}" for i in range(len(value.items))]
    if isinstance(value, Optional):
        return [] if value.value is None else names_of(name, value.value)
    if isinstance(value, Counted):
        return [name, f"{name}.count"]
    return [name]


def mapped(value: Value, function: Callable[[Any], Expr]) -> Value:
    """Return the value with `function` applied to each tensor inside."""
    if isinstance(value, Sequence):
        return Sequence(tuple(function(item) for item in value.items), value.dtype)
    if isinstance(value, Optional):
        return value if value.value is None else Optional(mapped(value.value, function))
    if isinstance(value, Counted):
        return Counted(function(value.data), function(value.count), value.axis)
    return function(value)
