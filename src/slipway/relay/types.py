"""Types of relay expressions.

The whole grammar::

    type = TensorType((d0, d1, ...), dtype) | TupleType((type, ...)) | FuncType((type, ...), type)

Dimensions are Python ints, or open: known only when the model runs.  An open one is `Any` (written
``?``), or has the name of a ``te.var``; dimensions of one variable have one size.  Types compare
and hash by value, unlike other nodes, because two equal types are the same type.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, ClassVar, NoReturn
from weakref import WeakValueDictionary

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.errors import TypeInferenceError
from slipway.ir.expr import PrimExpr, Var
from slipway.ir.node import Node, node
from slipway.ir.visit import walk

MAX_EXTENT = 1 << 47  # elements along one axis, and of one tensor
MAX_RANK = 32  # axes: what NumPy has at least
MAX_NESTING = 64  # tuples inside tuples: walks over types recurse


class OpenDim:
    """A dimension whose size is known only when the model runs; there is one object of it.

    It equals itself and nothing else.  Computing with it raises TypeInferenceError: whoever needs
    the number cannot have the dimension open.
    """

    __slots__ = ("__weakref__",)
    _only: ClassVar[OpenDim | None] = None

    def __new__(cls) -> OpenDim:
        """Return the one object."""
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __str__(self) -> str:
        return "?"

    def __repr__(self) -> str:
        return "Any()"

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenDim, ()

    def _unknown(self, *other: Any) -> NoReturn:
        raise TypeInferenceError(
            "the size of an open dimension is needed here: give the input a fixed shape"
        )

    __int__ = __index__ = __float__ = __neg__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = _unknown
    __mod__ = __rmod__ = __pow__ = __rpow__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = _unknown


class SymbolDim(OpenDim):
    """An open dimension of a variable, as ``te.var("n")``; one object for each variable."""

    __slots__ = ("variable",)
    variable: Var
    _known: ClassVar[WeakValueDictionary[Var, SymbolDim]] = WeakValueDictionary()

    def __new__(cls, variable: Var) -> SymbolDim:
        """Return the object of a variable."""
        found = cls._known.get(variable)
        if found is None:
            found = cls._known[variable] = object.__new__(cls)
            found.variable = variable
        return found

    def __str__(self) -> str:
        return self.variable.name

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return SymbolDim, (self.variable,)


ANY: Any = OpenDim()  # where dimensions are ints, it is one of them


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
        if type(self.shape) is not tuple or any(
            type(d) is not int or not 0 <= d <= MAX_EXTENT for d in self.shape
        ):
            object.__setattr__(self, "shape", _shape(self.shape))
        if len(self.shape) > MAX_RANK:
            raise TypeInferenceError(
                f"a tensor of {len(self.shape)} axes: at most {MAX_RANK} are possible"
            )
        if prod(d for d in self.shape if not is_open(d)) > MAX_EXTENT:
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
    return dims  # type: ignore[no-any-return]


def _extent(given: Any) -> Any:
    """Return a number, or an open dimension for a formula of variables, one for each formula."""
    if not isinstance(given, PrimExpr):
        return int(given)
    simple = Analyzer().simplify(given)
    variables = [n for n in walk(simple) if isinstance(n, Var)]
    if not variables:
        return int(simple)
    key = (str(simple), *map(id, variables))
    if key not in _FORMULAS:
        _FORMULAS[key] = (Var(str(simple), simple.dtype), simple)
    return SymbolDim(_FORMULAS[key][0])


# What a formula is, with the formula, so that its variables live as long as their numbers count.
_FORMULAS: dict[tuple[Any, ...], tuple[Var, PrimExpr]] = {}


def is_open(extent: object) -> bool:
    """Return whether a dimension is known only when the model runs."""
    return isinstance(extent, OpenDim)


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
