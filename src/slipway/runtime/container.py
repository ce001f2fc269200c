"""Containers of classic TVM's runtime: texts, shapes and tuples are Python's own here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import numpy as np

from slipway import dtypes
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


class DataTypeCode(IntEnum):
    """The kinds of elements, by their numbers in a DLTensor."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4


_CODES = {"int": DataTypeCode.INT, "uint": DataTypeCode.UINT, "bool": DataTypeCode.UINT,
          "float": DataTypeCode.FLOAT, "bfloat": DataTypeCode.BFLOAT}  # fmt: skip


class DataType(str):
    """A dtype, the string that it is everywhere, with its parts: ``DataType("int8x4").lanes``."""

    __slots__ = ()

    def __new__(cls, type_str: object) -> DataType:
        """Take a dtype's name, NumPy's dtype or its class."""
        if isinstance(type_str, np.dtype) or (
            isinstance(type_str, type) and issubclass(type_str, np.generic)
        ):
            type_str = np.dtype(type_str).name
        if not isinstance(type_str, str):
            raise ArgumentValueError(
                f"DataType takes the name of a dtype, as 'float32x4', or NumPy's, not {type_str!r}"
            )
        return super().__new__(cls, dtypes.canonical(type_str))

    @property
    def bits(self) -> int:
        """The bits of one lane; a truth value has one."""
        return 1 if dtypes.is_bool(self) else dtypes.parse(self).bits

    @property
    def lanes(self) -> int:
        """How many elements a value has."""
        return dtypes.lanes_of(self)

    @property
    def type_code(self) -> DataTypeCode:
        """The kind of the elements; a pointer's for what no number is."""
        return _CODES.get(dtypes.parse(self).code, DataTypeCode.HANDLE)


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
