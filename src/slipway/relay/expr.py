"""Expressions of the graph language: dataflow over tensors.

The whole grammar::

    e = Var(name, type) | Constant(array)
      | Call(op, (e, ...), attrs, span)        op: Op, Function, GlobalVar, or e of function type
      | Tuple((e, ...)) | TupleGetItem(e, index)
      | Function((Var, ...), body, ret_type, attrs)
      | Let(Var, value, body) | If(cond, e, e)

A graph is a DAG: an expression used twice is computed once.  Every expression gets its type when
it is built, if the types of what it is built from are known; so a wrong operator argument is
reported where it was written.  Only a Var without annotation (and what uses it) stays untyped
until `InferType`.  `span` names the model's node, for error messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, SupportsIndex, TypeAlias

import numpy as np

from slipway.errors import TypeInferenceError
from slipway.ir.function import BaseFunc, FunctionAttrs, GlobalVar
from slipway.ir.node import Node, node
from slipway.lazy import Late, MissingName
from slipway.relay.types import FuncType, TensorType, TupleType, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = [
    "Call", "Constant", "Expr", "Function", "GlobalVar", "If", "Let", "Op", "Tuple",
    "TupleGetItem", "TupleWrapper", "Var",
]  # fmt: skip


class Language(Late, package="slipway.relay"):
    """What expressions ask of the modules that are written in terms of them."""

    astext: Callable[[Expr], str]
    make: Callable[[str], Callable[..., Any]]
    free_vars: Callable[[Expr], list[Var]]
    get: Callable[[str], Any]
    infer_call: Callable[[Call], Type | None]
    const: Callable[..., Constant]
    var: Callable[..., Var]
    bind: Callable[..., Function]


LANGUAGE = Language()


def __getattr__(name: str) -> Any:
    if name in ("const", "var", "bind"):  # where classic scripts look for them
        return getattr(LANGUAGE, name)
    raise MissingName(__name__, name, list(globals()))


class Expr(Node):
    """Base of all relay expressions; Python operators on them build calls."""

    __slots__ = ("_type",)
    _type: Type | None

    @property
    def type(self) -> Type | None:
        """The type, or None while it is not known."""
        return self._type

    @property
    def checked_type(self) -> Type:
        """The type.  Raises TypeInferenceError while it is not known: run `InferType` first."""
        if self._type is None:
            raise TypeInferenceError(
                f"the type of {_brief(self)} is not known yet: give every relay.var a shape, "
                "or run relay.transform.InferType() on the module"
            )
        return self._type

    @property
    def tensor_type(self) -> TensorType:
        """The type, which must be a tensor's."""
        found = self.checked_type
        if not isinstance(found, TensorType):
            raise TypeInferenceError(f"{_brief(self)} is not a tensor but has type {found}")
        return found

    def __str__(self) -> str:
        return LANGUAGE.astext(self)

    def as_function(self) -> Function:
        """Return the function over the free variables, in order of first use."""
        return Function(tuple(LANGUAGE.free_vars(self)), self)

    def astype(self, dtype: str) -> Call:
        """Return this tensor converted to `dtype`."""
        return _call("cast", self, dtype)

    def __add__(self, other: ExprLike) -> Call:
        return _call("add", self, other)

    def __radd__(self, other: ExprLike) -> Call:
        return _call("add", other, self)

    def __sub__(self, other: ExprLike) -> Call:
        return _call("subtract", self, other)

    def __rsub__(self, other: ExprLike) -> Call:
        return _call("subtract", other, self)

    def __mul__(self, other: ExprLike) -> Call:
        return _call("multiply", self, other)

    def __rmul__(self, other: ExprLike) -> Call:
        return _call("multiply", other, self)

    def __truediv__(self, other: ExprLike) -> Call:
        return _call("divide", self, other)

    def __rtruediv__(self, other: ExprLike) -> Call:
        return _call("divide", other, self)

    def __neg__(self) -> Call:
        return _call("negative", self)

    def __lt__(self, other: ExprLike) -> Call:
        return _call("less", self, other)

    def __le__(self, other: ExprLike) -> Call:
        return _call("less_equal", self, other)

    def __gt__(self, other: ExprLike) -> Call:
        return _call("greater", self, other)

    def __ge__(self, other: ExprLike) -> Call:
        return _call("greater_equal", self, other)


def _call(name: str, *arguments: Any) -> Call:
    made = LANGUAGE.make(name)(*arguments)
    assert isinstance(made, Call)
    return made


def _brief(expr: Expr) -> str:
    match expr:
        case Var():
            return f"variable %{expr.name}"
        case Call():
            where = f" (node {expr.span!r})" if expr.span else ""
            return f"the call of {_callee_name(expr.op)}{where}"
        case _:
            return f"a {type(expr).__name__}"


def _callee_name(op: Any) -> str:
    return str(getattr(op, "name", type(op).__name__))


_set_type = Expr.__dict__["_type"].__set__


@dataclass(frozen=True)
class OpArgument:
    """An argument of an operator."""

    name: str
    type_info: str = "Tensor"
    description: str = ""


@node
class Op(Expr):
    """A named operator of the registry."""

    KIND: ClassVar[str] = "relay.Op"
    name: str

    def __post_init__(self) -> None:
        _set_type(self, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def definition(self) -> Any:
        """The operator's entry in the registry."""
        return LANGUAGE.get(self.name)

    @property
    def arguments(self) -> list[OpArgument]:
        """What it is called with, in order; a name that ends in "..." takes a tuple."""
        return [OpArgument(name) for name in self.definition.arguments]

    @property
    def num_inputs(self) -> int:
        """How many arguments it has."""
        return len(self.definition.arguments)

    @property
    def description(self) -> str:
        """What it computes."""
        return str(self.definition.doc)

    def get_attr(self, attr_name: str) -> int | None:
        """Return its pattern for "TOpPattern"; None for what else TVM keeps with operators."""
        return int(self.definition.pattern) if attr_name == "TOpPattern" else None

    def has_attr(self, attr_name: str) -> bool:
        """Return whether `get_attr` has something for a name."""
        return self.get_attr(attr_name) is not None

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        """Call the operator through its Python function: ``relay.op.get("nn.relu")(x)``."""
        return LANGUAGE.make(self.name)(*args, **attrs)


@node
class Var(Expr):
    """A parameter of a function or the name of a Let.  Unique by identity."""

    KIND: ClassVar[str] = "relay.Var"
    name: str
    type_annotation: Type | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):  # a damaged file's, which is no UTF-8
            raise TypeInferenceError(f"the variable {self.name!r} has a name that is no text")
        if "\0" in self.name:
            raise TypeInferenceError(
                f"the variable {self.name!r} cannot have this name: devices know inputs by C "
                "strings, which a NUL character ends"
            )
        _set_type(self, self.type_annotation)

    def take_type(self, implied: Type) -> None:
        """Become a variable of the type that its first use implies, where none was given."""
        if self.type is None:
            object.__setattr__(self, "type_annotation", implied)
            _set_type(self, implied)

    @property
    def name_hint(self) -> str:
        """The name (the classic spelling)."""
        return self.name


@node
class Constant(Expr):
    """A tensor known at compile time.  `array` must not be written to."""

    KIND: ClassVar[str] = "relay.Constant"
    array: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.array, np.ndarray):  # an NDArray, or numbers
            given: Any = self.array
            values = np.asarray(given.numpy() if hasattr(given, "numpy") else given)
            object.__setattr__(self, "array", values)
        _set_type(self, TensorType(self.array.shape, self.array.dtype.name))

    @property
    def data(self) -> Any:
        """The value as an NDArray (the classic attribute); it shares memory with `array`."""
        from slipway.runtime import ndarray

        return ndarray.array(self.array)


@node
class Call(Expr):
    """`op` applied to `args`; `attrs` is the operator's own record, None for functions."""

    KIND: ClassVar[str] = "relay.Call"
    op: Any
    args: tuple[Expr, ...]
    attrs: Any = None
    span: str = ""

    def __post_init__(self) -> None:
        if type(self.args) is not tuple:
            object.__setattr__(self, "args", tuple(self.args))
        if type(self.span) is not str:  # type arguments, which classic Relay has in this place
            object.__setattr__(self, "span", "")
        _set_type(self, LANGUAGE.infer_call(self))

    @property
    def type_args(self) -> tuple[Any, ...]:
        """Always empty: types here have no parameters."""
        return ()

    def with_args(self, args: tuple[Expr, ...]) -> Call:
        """Return the same call on other arguments."""
        if all(a is b for a, b in zip(args, self.args, strict=True)):
            return self
        return Call(self.op, args, self.attrs, self.span)


@node
class Tuple(Expr):
    """Several expressions as one."""

    KIND: ClassVar[str] = "relay.Tuple"
    fields: tuple[Expr, ...]

    def __post_init__(self) -> None:
        if type(self.fields) is not tuple:
            object.__setattr__(self, "fields", tuple(self.fields))
        types = tuple(f._type for f in self.fields)
        _set_type(self, None if None in types else TupleType(types))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]


@node
class TupleGetItem(Expr):
    """The field at `index` of a tuple-valued expression."""

    KIND: ClassVar[str] = "relay.TupleGetItem"
    tuple_value: Expr
    index: int

    def __post_init__(self) -> None:
        if not isinstance(self.tuple_value, Expr) or type(self.index) is bool:
            raise TypeInferenceError(
                f"TupleGetItem takes an expression and an index, not {self.tuple_value!r}"
            )
        known = self.tuple_value._type
        if known is not None:
            if not isinstance(known, TupleType):
                raise TypeInferenceError(
                    f"cannot take field {self.index} of {_brief(self.tuple_value)}: "
                    f"it has type {known}"
                )
            if not 0 <= self.index < len(known.fields):
                raise TypeInferenceError(
                    f"there is no field {self.index} in {_brief(self.tuple_value)}: "
                    f"it has {len(known.fields)} fields"
                )
            known = known.fields[self.index]
        _set_type(self, known)


@node
class Function(Expr, BaseFunc):
    """A function of `params`.  Attribute "Primitive" = 1 marks one kernel made by FuseOps."""

    KIND: ClassVar[str] = "relay.Function"
    IS_PROGRAM: ClassVar[bool] = True  # callable, but an argument to functions as it is
    params: tuple[Var, ...]
    body: Expr
    ret_type: Type | None = None
    attrs: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if type(self.params) is not tuple:
            given_params: Any = self.params
            if not isinstance(given_params, Iterable):
                raise TypeInferenceError(
                    f"relay.Function takes a list of variables and a body, not {given_params!r}"
                )
            object.__setattr__(self, "params", tuple(given_params))
        if isinstance(self.body, TupleWrapper):
            object.__setattr__(self, "body", self.body.astuple())
        if not isinstance(self.body, Expr):
            raise TypeInferenceError(
                f"the body of a function is an expression, not {self.body!r}; a list of results is "
                "relay.Tuple([...]), a number relay.const(...)"
            )
        if type(self.attrs) is not FunctionAttrs:
            given: Any = self.attrs or ()
            pairs = given.items() if isinstance(given, Mapping) else given
            object.__setattr__(self, "attrs", FunctionAttrs(pairs))
        result = self.body._type
        if result is not None:
            if self.ret_type is None:
                object.__setattr__(self, "ret_type", result)
            elif self.ret_type != result:
                raise TypeInferenceError(
                    f"the function is declared to return {self.ret_type} but its body is {result}"
                )
        types = tuple(p._type for p in self.params)
        known = None
        if self.ret_type is not None and None not in types:
            known = FuncType(types, self.ret_type)  # type: ignore[arg-type]
        _set_type(self, known)

    def __call__(self, *args: Expr) -> Call:
        """Return the call of this function."""
        return Call(self, args)

    @property
    def type_params(self) -> tuple[Any, ...]:
        """Always empty: types here have no parameters."""
        return ()


def _accept_type_parameters(cls: Any, position: int) -> None:
    """Let the constructor of `cls` take classic Relay's type parameters before field `position`.

    Scripts that rebuild expressions pass them on: ``Call(op, args, attrs, type_args, span)``.
    """
    construct = cls.__init__
    keyword = "type_args" if cls is Call else "type_params"
    fields = len(cls.FIELDS)

    def init(self: Any, *args: Any, **named: Any) -> None:
        if named:
            named.pop(keyword, None)
        if len(args) > fields:
            args = (*args[:position], *args[position + 1 :])
        construct(self, *args, **named)

    cls.__init__ = init


_accept_type_parameters(Call, 3)
_accept_type_parameters(Function, 3)


@node
class Let(Expr):
    """`body`, in which `var` stands for `value`, computed once."""

    KIND: ClassVar[str] = "relay.Let"
    var: Var
    value: Expr
    body: Expr

    def __post_init__(self) -> None:
        _set_type(self, self.body._type)


@node
class If(Expr):
    """`true_branch` where the rank-0 bool `cond` holds, else `false_branch`; one is evaluated."""

    KIND: ClassVar[str] = "relay.If"
    cond: Expr
    true_branch: Expr
    false_branch: Expr

    def __post_init__(self) -> None:
        condition, known = self.cond._type, self.true_branch._type
        if condition is not None and condition != TensorType((), "bool"):
            raise TypeInferenceError(f"the condition of If must be a rank-0 bool, got {condition}")
        other = self.false_branch._type
        if known is not None and other is not None and known != other:
            raise TypeInferenceError(f"the branches of If differ: {known} and {other}")
        _set_type(self, known if known is not None else other)


class TupleWrapper:
    """A tuple-valued call seen from Python: indexable, iterable, with a length."""

    def __init__(self, tuple_value: Expr | TupleWrapper, size: int) -> None:
        if isinstance(tuple_value, TupleWrapper):
            tuple_value = tuple_value.astuple()
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Expr:
        """Return the tuple-valued expression."""
        return self.tuple_value

    def astext(self, show_meta_data: bool = True) -> str:
        """Return the readable text form of the tuple."""
        return self.astuple().astext(show_meta_data)

    def as_function(self) -> Function:
        """Return the function that gives all fields."""
        return self.tuple_value.as_function()

    @property
    def checked_type(self) -> Type:
        """The tuple's type."""
        return self.tuple_value.checked_type

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[index] for index in range(self.size))

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError(f"the operator has {self.size} results; there is no result {index}")
        return TupleGetItem(self.tuple_value, index % self.size)


Array: TypeAlias = np.ndarray[Any, Any]
# What `op_registry.as_expr` takes: whatever may stand where a tensor is asked for.
ExprLike: TypeAlias = (
    "Expr | TupleWrapper | SupportsNumpy | npt.ArrayLike | Sequence[Expr | TupleWrapper]"
)
Extents: TypeAlias = (  # one for all axes, or one for each; tir's and NumPy's integers too
    "SupportsIndex | Sequence[SupportsIndex]"
)
Axes: TypeAlias = "SupportsIndex | Sequence[SupportsIndex] | None"  # of a reduction; None: all


class SupportsNumpy(Protocol):
    """A tensor of somebody's: an NDArray, one of PyTorch."""

    def numpy(self) -> Array:
        """Return the values."""
        ...
