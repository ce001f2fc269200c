"""The table of ATen operators, and what a converter sees of a node.

A converter is a function ``f(node: NodeView) -> Expr | TupleWrapper | list[Expr | None]`` decorated
with `converter`; families of converters live in one file each.  One converter serves all
overloads of an operator: it reads arguments by the names of the operator's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.converter_table import ConverterTable, UnsupportedNode
from slipway.relay.dims import SymbolDim, is_open
from slipway.relay.expr import Constant, Expr
from slipway.relay.op_registry import const
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

Converter = Callable[["NodeView"], Any]
REFUSED: dict[str, str] = {}  # operators known and never served, and why

TABLE: ConverterTable[NodeView] = ConverterTable(
    "slipway.frontends.torch",
    (
        "activation", "arithmetic", "attention", "complex", "conv", "create", "found", "fourier",
        "functions.complex_numbers", "functions.order", "functions.special", "images.antialias",
        "images.pool", "images.resize", "images.windows", "index", "linear_algebra", "norm",
        "quant", "recurrent", "reduce", "shape",
    ),
)  # fmt: skip
converter = TABLE.converter  # for ATen operators, or for others as namespace::name
load_converters = TABLE.load


def refuse(*names: str, why: str) -> None:
    """Enter operators that are never served, with the reason that a report gives."""

    def refused(node: NodeView) -> Any:
        raise node.unsupported(why)

    for name in names:
        TABLE.entries[name], REFUSED[name] = refused, why


class NodeView:
    """One node as its converter sees it: arguments by name, and the types that torch found.

    `arguments` has every argument of the schema with defaults filled in; tensors are expressions.
    `fakes` has the same with torch's own stand-ins for tensors; `outputs` the types of the results,
    `read` the places of those among several that something reads.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        arguments: Mapping[str, Any],
        fakes: Mapping[str, Any],
        outputs: Sequence[TensorType | None],
        read: Collection[int] = (),
    ) -> None:
        self.kind = kind
        self.name = name
        self.arguments = dict(arguments)
        self.fakes = dict(fakes)
        self.outputs = list(outputs)
        self.read = read
        self.found: dict[int, tuple[Expr, list[Expr]]] = {}  # where masks hold, by the mask's id
        self.numbers: Mapping[Any, Expr] = {}  # the tensors that sizes were read from
        self.brought: frozenset[Any] = frozenset()  # sizes that this node's values decide

    # -- arguments -----------------------------------------------------------------------------

    def arg(self, name: str, default: Any = None) -> Any:
        """Return an argument, or `default` where this overload has none or it is None."""
        found = self.arguments.get(name)
        return default if found is None else found

    def input(self, name: str = "self") -> Expr:
        """Return a tensor argument.  Raises UnsupportedNode when it is left out."""
        found = self.arguments.get(name)
        if not isinstance(found, Expr):
            raise self.unsupported(f"its argument {name!r} is no tensor")
        return found

    def optional(self, name: str) -> Expr | None:
        """Return a tensor argument, or None when it is left out."""
        found = self.arguments.get(name)
        return found if isinstance(found, Expr) else None

    def type(self, name: str = "self") -> TensorType:
        """Return the type of a tensor argument."""
        return self.input(name).tensor_type

    def shape(self, name: str = "self") -> tuple[int, ...]:
        """Return the shape of a tensor argument."""
        return self.type(name).shape

    def rank(self, name: str = "self") -> int:
        """Return the number of axes of a tensor argument."""
        return self.type(name).rank

    def ints(self, name: str, count: int = 0, default: Any = ()) -> tuple[int, ...]:
        """Return an argument as ints; one number stands for `count` equal ones."""
        found = self.arguments.get(name)
        if found is None:
            found = default
        listed = (found,) if isinstance(found, int) or is_open(found) else found
        values = tuple(v if is_open(v) else int(v) for v in listed)
        return values * count if len(values) == 1 and count > 1 else values

    def axis(self, name: str = "dim", default: int = 0, rank: int | None = None) -> int:
        """Return an axis argument counted from the front."""
        found = int(self.arg(name, default))
        return found % max(self.rank() if rank is None else rank, 1)

    def axes(self, name: str = "dim") -> tuple[int, ...]:
        """Return axes counted from the front; all of them where none are named."""
        found = self.ints(name)
        rank = self.rank()
        return tuple(a % max(rank, 1) for a in found) if found else tuple(range(rank))

    # -- results -------------------------------------------------------------------------------

    @property
    def out(self) -> TensorType:
        """The type of the (first) result."""
        found = self.outputs[0] if self.outputs else None
        if found is None:
            raise self.unsupported("its result is no tensor")
        return found

    def is_read(self, position: int) -> bool:
        """Return whether something reads a result."""
        return position in self.read

    def unsupported(self, why: str) -> UnsupportedNode:
        """Return the error to raise for a feature that is not supported."""
        return UnsupportedNode(why)

    def refuse(self, name: str, allowed: Any) -> None:
        """Raise UnsupportedNode unless an argument has its `allowed` value (or none)."""
        found = self.arguments.get(name)
        if found is not None and found != allowed:
            raise self.unsupported(f"{name}={found!r}; only {allowed!r} is served")

    # -- numbers -------------------------------------------------------------------------------

    def as_tensor(self, value: Any, dtype: str) -> Expr:
        """Return a tensor, a Python number or an open size with the dtype."""
        if is_open(value):
            return self._size(value, dtype)
        if not isinstance(value, Expr):
            return number(value, dtype)
        return cast(value, dtype)

    def _size(self, size: SymbolDim, dtype: str) -> Expr:
        """Return what an open size is when the model runs: read from the shape of a tensor."""
        if size in self.numbers:
            return cast(self.numbers[size], dtype)
        sources: list[tuple[Expr, int]] = []
        for value in self.arguments.values():
            shape: tuple[Any, ...] = value.tensor_type.shape if isinstance(value, Expr) else ()
            if size in shape:
                sources.append((value, shape.index(size)))
        tensor, axis = sources[0] if sources else (relay.zeros((size,), "bool"), 0)
        found = relay.strided_slice(relay.shape_of(tensor, "int64"), [axis], [axis + 1])
        return cast(relay.reshape(found, ()), dtype)

    def pair(self, dtype: str, first: str = "self", second: str = "other") -> tuple[Expr, Expr]:
        """Return two operands with the dtype."""
        return (
            self.as_tensor(self.arguments[first], dtype),
            self.as_tensor(self.arguments[second], dtype),
        )

    def promoted(self, *names: str) -> str:
        """Return the dtype that torch computes in with these operands."""
        import torch

        kind = torch.result_type(*(self.fakes[name] for name in names))
        return str(kind).removeprefix("torch.")

    def wide(self, name: str = "self") -> str:
        """Return the dtype to accumulate products in: float32 for halves, "" for the data's own."""
        return "float32" if self.type(name).dtype == "float16" else ""

    def narrow(self, value: Expr) -> Expr:
        """Return a value accumulated in `wide` with the dtype of the result."""
        return cast(value, self.out.dtype)


def cast(value: Expr, dtype: str) -> Expr:
    """Return the tensor with the dtype."""
    return value if value.tensor_type.dtype == dtype else relay.cast(value, dtype)


def number(value: Any, dtype: str) -> Constant:
    """Return a rank-0 constant."""
    made: Constant = const(np.asarray(value).astype(dtype))
    return made


def like(value: ExprLike, tensor: Expr) -> Constant:
    """Return a rank-0 constant with the dtype of the tensor."""
    return number(value, tensor.tensor_type.dtype)
