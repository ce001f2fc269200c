"""Containers of classic TVM's runtime: texts, shapes and tuples are Python's own here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slipway.errors import ArgumentValueError


class String(str):
    """A text that goes to and comes from functions."""

    __slots__ = ()


class ShapeTuple(tuple[int, ...]):
    """A shape, made of any numbers that are whole."""

    __slots__ = ()

    def __new__(cls, shape: Iterable[Any] = ()) -> ShapeTuple:
        """Make a shape of numbers, which are checked."""
        values = tuple(shape)
        for value in values:
            if int(value) != value:
                raise ArgumentValueError(f"a shape is made of whole numbers, got {value!r}")
        return super().__new__(cls, (int(v) for v in values))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, list) else other)

    __hash__ = tuple.__hash__


class ADT(tuple[Any, ...]):
    """A tagged tuple: `tag` and the fields.  What models return for tuples has tag 0."""

    tag: int

    def __new__(cls, tag: int, fields: Iterable[Any]) -> ADT:
        """Make a tuple of fields with a tag."""
        made = super().__new__(cls, fields)
        made.tag = int(tag)
        return made


def tuple_object(fields: Iterable[Any] | None = None) -> ADT:
    """Return a tuple with tag 0."""
    return ADT(0, fields or ())


# What nodes hold is Python's: a test of ``isinstance(x, Array)`` asks for a tuple.
Array, Map = tuple, dict
