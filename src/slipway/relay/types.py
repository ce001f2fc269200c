"""Types of relay expressions.

The whole grammar::

    type = TensorType((d0, d1, ...), dtype) | TupleType((type, ...)) | FuncType((type, ...), type)

Dimensions are Python ints; a symbolic dimension may later be an `ir.SizeVar`.  Types compare
and hash by value, unlike other nodes, because two equal types are the same type.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from slipway import dtypes
from slipway.errors import TypeInferenceError
from slipway.ir.node import Node, node
from slipway.ir.printer import register_printer

MAX_EXTENT = 1 << 47  # elements along one axis


class Type(Node):
    """Base of the types; equality is by value."""

    __slots__ = ()

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.FIELDS)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash((self.KIND, self._key()))


@node
class TensorType(Type):
    """A dense tensor: its shape (elements along each axis) and dtype."""

    KIND: ClassVar[str] = "relay.TensorType"
    shape: tuple[int, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if type(self.shape) is not tuple or any(
            type(d) is not int or not 0 <= d <= MAX_EXTENT for d in self.shape
        ):
            object.__setattr__(self, "shape", _shape(self.shape))
        object.__setattr__(self, "dtype", dtypes.canonical(self.dtype))

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as Python ints (the classic name)."""
        return self.shape

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements, densely packed."""
        return self.size * dtypes.bytes_of(self.dtype)

    def __str__(self) -> str:
        inner = ", ".join(str(d) for d in self.shape)
        return f"Tensor[({inner}{',' if len(self.shape) == 1 else ''}), {self.dtype}]"


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        dims = tuple(int(d) for d in ((shape,) if isinstance(shape, int) else shape))
    except (TypeError, ValueError) as error:
        raise TypeInferenceError(
            f"{shape!r} is not a shape: dimensions are integers; give symbolic ones a size"
        ) from error
    if any(d > MAX_EXTENT for d in dims):
        raise TypeInferenceError(f"{shape!r} is not a shape: it has more elements than any memory")
    if any(d < 0 for d in dims):
        raise TypeInferenceError(f"{shape!r} is not a shape: a dimension cannot be negative")
    return dims


@node
class TupleType(Type):
    """Several values in a fixed order."""

    KIND: ClassVar[str] = "relay.TupleType"
    fields: tuple[Type, ...]

    def __str__(self) -> str:
        inner = ", ".join(str(f) for f in self.fields)
        return f"({inner}{',' if len(self.fields) == 1 else ''})"


@node
class FuncType(Type):
    """A function from arguments to one result."""

    KIND: ClassVar[str] = "relay.FuncType"
    arg_types: tuple[Type, ...]
    ret_type: Type

    def __str__(self) -> str:
        return f"fn ({', '.join(str(a) for a in self.arg_types)}) -> {self.ret_type}"


def scalar_type(dtype: str) -> TensorType:
    """The type of a rank-0 tensor."""
    return TensorType((), dtype)


def flatten(type_: Type) -> list[TensorType]:
    """Return the tensor types inside `type_`, tuples taken apart in order."""
    if isinstance(type_, TensorType):
        return [type_]
    if isinstance(type_, TupleType):
        return [leaf for field in type_.fields for leaf in flatten(field)]
    raise TypeInferenceError(f"{type_} is not a tensor or a tuple of tensors")


register_printer(Type, str)
