"""Types of relay expressions.

The whole grammar::

    type = TensorType((d0, d1, ...), dtype) | TupleType((type, ...)) | FuncType((type, ...), type)

Dimensions are Python ints, or open: known only when the model runs (`slipway.relay.dims`).  Types
compare and hash by value, unlike other nodes, because two equal types are the same type.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

from slipway import dtypes
from slipway.errors import TypeInferenceError
from slipway.ir.expr import PrimExpr, Var
from slipway.ir.node import Node, node
from slipway.relay.dims import ANY as ANY
from slipway.relay.dims import MAX_EXTENT, KnownDim, dim_of
from slipway.relay.dims import OpenDim as OpenDim
from slipway.relay.dims import SymbolDim as SymbolDim
from slipway.relay.dims import is_open as is_open

MAX_RANK = 32  # axes: what NumPy has at least
MAX_NESTING = 64  # tuples inside tuples: walks over types recurse
_SIZES: set[type] = {int, KnownDim}
_known_dim = lru_cache(maxsize=4096)(KnownDim)


class Type(Node):
    """Base of the types; equality is by value."""

    __slots__ = ("_nesting",)
    _nesting: int

    def _count_nesting(self, inner: Iterable[Type]) -> None:
        depth = 1 + max((getattr(t, "_nesting", 0) for t in inner), default=0)
        if depth > MAX_NESTING:
            raise TypeInferenceError(f"tuples are nested more than {MAX_NESTING} deep")
        object.__setattr__(self, "_nesting", depth)

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.FIELDS)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash((self.KIND, self._key()))


@node
class IncompleteType(Type):
    """A type that is to follow from use: what relay.var takes for one that is left out."""


@node
class TensorType(Type):
    """A dense tensor: its shape (elements along each axis) and dtype."""

    KIND: ClassVar[str] = "relay.TensorType"
    shape: tuple[int, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        # Passes make many types, most of plain numbers: their sizes are looked at all at once.
        shape = self.shape
        kinds = set(map(type, shape)) if type(shape) is tuple else {type(None)}
        if kinds <= _SIZES and (not shape or (min(shape) >= 0 and max(shape) <= MAX_EXTENT)):
            if int in kinds:
                object.__setattr__(self, "shape", tuple(map(_known_dim, shape)))
            sizes: Iterable[int] = shape
        else:
            object.__setattr__(self, "shape", _shape(shape))
            sizes = (d for d in self.shape if not is_open(d))
        if len(self.shape) > MAX_RANK:
            raise TypeInferenceError(
                f"a tensor of {len(self.shape)} axes: at most {MAX_RANK} are possible"
            )
        if prod(sizes) > MAX_EXTENT:
            raise TypeInferenceError(
                f"{self.shape} is not a shape: it has more elements than any memory"
            )
        try:
            object.__setattr__(self, "dtype", dtypes.canonical(self.dtype))
        except (ValueError, TypeError) as error:
            raise TypeInferenceError(
                f"a tensor cannot be of type {self.dtype!r}: {error}"
            ) from error

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as Python ints (the classic name)."""
        return self.shape

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def takes(self, value: TensorType) -> bool:
        """Return whether a value of that type may stand where this type is asked for."""
        return (
            self.dtype == value.dtype
            and len(self.shape) == len(value.shape)
            and all(is_open(d) or d == v for d, v in zip(self.shape, value.shape, strict=True))
        )

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def is_empty(self) -> bool:
        """Whether it is known to have no elements."""
        return 0 in self.shape and not any(map(is_open, self.shape))

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements, densely packed."""
        return self.size * dtypes.bytes_of(self.dtype)

    def __str__(self) -> str:
        inner = ", ".join(str(d) for d in self.shape)
        return f"Tensor[({inner}{',' if len(self.shape) == 1 else ''}), {self.dtype}]"


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        given = (shape,) if isinstance(shape, int | Var) else shape
        dims: Any = tuple(
            SymbolDim(d) if isinstance(d, Var) else d if is_open(d) else _extent(d) for d in given
        )
    except (TypeError, ValueError) as error:
        raise TypeInferenceError(
            f"{shape!r} is not a shape: dimensions are integers, or relay.Any() or a te.var "
            "where they are open"
        ) from error
    sizes = [d for d in dims if not is_open(d)]
    if any(d > MAX_EXTENT for d in sizes):
        raise TypeInferenceError(f"{shape!r} is not a shape: it has more elements than any memory")
    if any(d < 0 for d in sizes):
        raise TypeInferenceError(f"{shape!r} is not a shape: a dimension cannot be negative")
    return tuple(d if is_open(d) else KnownDim(d) for d in dims)


def _extent(given: Any) -> Any:
    """Return a number, or the open dimension of a formula of variables."""
    return dim_of(given) if isinstance(given, PrimExpr) else int(given)


@node
class TupleType(Type):
    """Several values in a fixed order."""

    KIND: ClassVar[str] = "relay.TupleType"
    fields: tuple[Type, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        self._count_nesting(self.fields)

    def __str__(self) -> str:
        inner = ", ".join(str(f) for f in self.fields)
        return f"({inner}{',' if len(self.fields) == 1 else ''})"


@node
class FuncType(Type):
    """A function from arguments to one result."""

    KIND: ClassVar[str] = "relay.FuncType"
    arg_types: tuple[Type, ...]
    ret_type: Type

    def __post_init__(self) -> None:
        object.__setattr__(self, "arg_types", tuple(self.arg_types))
        self._count_nesting((*self.arg_types, self.ret_type))

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
