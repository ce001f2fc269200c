"""Operators whose result is as long as values say: nonzero, masks, unique, repeats by a tensor.

torch gives such a size a symbol of its own (u0), and an upper end where it knows one.  So it does
with an integer that `item()` reads from a tensor; a float stays the tensor that it is read from.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.found_positions import coordinates, distinct, positions_in_room, slices_of
from slipway.frontends.torch.converters import NodeView, cast, converter, number
from slipway.relay.dims import SymbolDim
from slipway.relay.expr import Call, Constant, Expr, Tuple
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

if TYPE_CHECKING:
    from slipway.frontends.torch.open_sizes import ProgramDims

BRINGING = (
    "nonzero", "masked_select", "index", "_unsafe_index", "repeat_interleave", "_unique2",
    "unique_consecutive", "unique_dim", "where", "bincount", "slice",
)  # fmt: skip
READING = ("_local_scalar_dense", "item")


def found_columns(node: NodeView, mask: Expr, size: Any) -> list[Expr]:
    """Return the positions along each axis where a mask holds, `size` of them.

    What was found in a mask before is not searched again.
    """
    known = node.found.get(id(mask))
    if known is None:
        flat = relay.reshape(cast(mask, "bool"), (-1,))
        positions, count = positions_in_room(flat)
        made = coordinates(_sized(positions, count, size), mask)
        known = node.found[id(mask)] = mask, made
    return known[1]


def columns_of(node: NodeView, mask: Expr, sizes: Sequence[Any]) -> list[Expr] | None:
    """Return the positions where a mask holds, one of `sizes` of them, if it was searched before.

    ``x[x > 0] = 2 * x[x > 0]`` compares twice, and both masks have as many.
    """
    for other, columns in node.found.values():
        if columns[0].tensor_type.shape[0] in sizes and _is_same(mask, other):
            return columns
    return None


def _is_same(a: Expr, b: Expr, depth: int = 4) -> bool:
    """Return whether two expressions are one, or compute the same of such in a few steps."""
    if a is b:
        return True
    if isinstance(a, Constant) and isinstance(b, Constant):
        return a.data.dtype == b.data.dtype and np.array_equal(a.data, b.data)
    if not isinstance(a, Call) or not isinstance(b, Call) or not depth:
        return False
    alike = a.op is b.op and a.attrs == b.attrs and len(a.args) == len(b.args)
    return alike and all(_is_same(x, y, depth - 1) for x, y in zip(a.args, b.args, strict=True))


def _sized(data: Expr, count: Expr, size: Any) -> Expr:
    """Return so many entries; of a mask whose number torch knows (all of one) a fixed number."""
    if isinstance(size, SymbolDim):
        made: Expr = relay.sized(data, count, size)
        return made
    cut: Expr = relay.strided_slice(data, [0], [size])
    return cut


@converter("nonzero")
def nonzero(node: NodeView) -> Any:
    """The positions of what is not zero, one a row."""
    x = node.input()
    mask = (
        x if x.tensor_type.dtype == "bool" else relay.not_equal(x, number(0, x.tensor_type.dtype))
    )
    if not node.rank():
        raise node.unsupported("a scalar has no axis to find positions along")
    return relay.stack(found_columns(node, mask, node.out.shape[0]), 1)


def found_along_axes(node: NodeView, condition: Expr) -> list[Expr]:
    """The positions where a condition holds, one tensor for each axis, as torch.where gives."""
    first = node.outputs[0]
    if first is None or not condition.tensor_type.rank:
        raise node.unsupported("a scalar has no axis to find positions along")
    return found_columns(node, condition, first.shape[0])


@converter("masked_select")
def masked_select(node: NodeView) -> Any:
    """The elements where a mask holds, one after another."""
    x, mask = node.input(), node.input("mask")
    if x.tensor_type.shape != mask.tensor_type.shape:
        raise node.unsupported("a mask of another shape than the data: expand one before")
    flat = relay.reshape(cast(mask, "bool"), (-1,))
    positions, count = positions_in_room(flat)
    where = _sized(positions, count, node.out.shape[0])
    return relay.take(relay.reshape(x, (-1,)), where, 0, mode="fast")


@converter("_unique2", "unique_consecutive", "unique_dim")
def unique(node: NodeView) -> Any:
    """The different values or slices, which of them each is, and how often each is there."""
    x = node.input()
    axis = node.arguments.get("dim")
    entries: Expr
    if axis is None:
        entries, axis = relay.reshape(x, (-1,)), 0
        inverse = x.tensor_type.shape
    else:
        axis %= x.tensor_type.rank
        entries, inverse = slices_of(x, axis), (x.tensor_type.shape[axis],)
    size = node.out.shape[axis]
    data = entries if node.arguments.get("dim") is None else x
    found = distinct(entries, node.kind != "unique_consecutive")
    made: list[Any] = [
        relay.take(data, _sized(found.positions, found.count, size), axis, mode="fast"),
        relay.reshape(found.inverse, inverse),
        _sized(found.repeats, found.count, size),
    ]
    empty = const(np.zeros(0, np.int64))  # what was not asked for
    return [
        empty if kind is not None and kind.shape == (0,) else one
        for one, kind in zip(made, node.outputs, strict=True)
    ]


def repeated(node: NodeView, times: Expr) -> Any:
    """Return each entry as often as a vector says, one after another."""
    x, axis = node.input(), node.arguments.get("dim")
    if axis is None:
        x, axis = relay.reshape(x, (-1,)), 0
    axis %= x.tensor_type.rank
    (entries,) = times.tensor_type.shape
    size = node.out.shape[axis]
    if isinstance(size, SymbolDim) and size.high is None:
        raise node.unsupported(
            f"nothing bounds how many there are ({size}): say so in the module, as in "
            "torch._check(y.shape[0] <= 512)"
        )
    most = size.high if isinstance(size, SymbolDim) else size
    ends = relay.cumsum(cast(times, "int64"), 0)
    every = relay.arange(0, most, 1, "int64")
    position = _sized(every, relay.sum(cast(times, "int64"), keepdims=True), size)
    # An entry comes after those whose repeats end at its position or before.
    passed = relay.less_equal(relay.reshape(ends, (1, entries)), relay.reshape(position, (-1, 1)))
    return relay.take(x, relay.sum(cast(passed, "int64"), 1), axis, mode="fast")


@converter("bincount")
def bincount(node: NodeView) -> Any:
    """How often each number is there, or the sum of its weights, from 0 to the largest."""
    x, size = cast(node.input(), "int64"), node.out.shape[0]
    most = size.high if isinstance(size, SymbolDim) else size
    if most is None:
        raise node.unsupported(
            f"nothing bounds the largest number ({size}): say so in the module, as in "
            "torch._check(y.shape[0] <= 512)"
        )
    weights = node.optional("weights")
    dtype = node.out.dtype
    added = relay.ones(x.tensor_type.shape, dtype) if weights is None else cast(weights, dtype)
    # One beyond the most takes what is too large, which the count then refuses.
    room = relay.zeros((most + 1,), dtype)
    sums = relay.scatter_elements(room, relay.minimum(x, const(np.int64(most))), added, 0, "add")
    smallest = const(np.array([node.arg("minlength", 0)], np.int64))
    count = relay.maximum(relay.add(relay.max(x, keepdims=True), const(np.int64(1))), smallest)
    return _sized(relay.strided_slice(sums, [0], [most]), count, size)


# -- numbers that a program reads from its tensors ---------------------------------------------


class ReadNumbers:
    """The sizes of a program that were read from tensors."""

    def __init__(self, dims: ProgramDims) -> None:
        self.dims = dims
        self.tensors: dict[Any, Expr] = {}
        self.names: dict[Any, str] = {}  # of the nodes that read

    def read(self, found: Any, tensor: Any, name: str) -> Any:
        """Return what a node reads from a tensor of one element."""
        if not isinstance(tensor, Expr):
            raise UnsupportedNode("it reads no tensor")
        scalar = relay.reshape(tensor, ())
        if type(found).__name__ != "SymInt":
            return scalar
        dim = self.dims.bring(found, None)
        if dim is None:  # torch knows the number from elsewhere
            return self.dims.of(found)
        self.tensors[dim] = scalar
        self.names[dim] = name
        return dim

    def told(self, values: list[Any], own: Sequence[Any] | None = None) -> list[Any]:
        """Return the results of a program or a branch in which the run tells every such size.

        Those of an iteration of a loop, which are its `own`, are known there alone.  Raises
        ModelError where nothing bounds one.
        """
        tensors = tuple(value for value in values if isinstance(value, Expr))
        if not self.tensors or not tensors:
            return values
        spoken, told = _variables(Tuple(tensors))
        for dim in [*self.tensors] if own is None else own:
            scalar = self.tensors[dim] if own is None else self.tensors.pop(dim)
            (variable,) = dim.variables
            if variable not in spoken or variable in told:
                continue
            if dim.high is None:
                raise ModelError(
                    f"{self.names[dim]}: a number that item() reads from a tensor is a size here, "
                    "and nothing bounds it: say so in the module, as in n = x.item(); "
                    "torch._check(n <= 512)"
                )
            values = [*values]
            first = next(i for i, value in enumerate(values) if isinstance(value, Expr))
            values[first] = _after(scalar, dim, values[first])
        return values


def _after(scalar: Expr, dim: SymbolDim, value: Expr) -> Expr:
    """Return a result that needs a size to be told, though nothing reads the tensor told of."""
    count = relay.reshape(cast(scalar, "int64"), (1,))
    room: Any = (dim.high,)
    every = relay.sized(relay.zeros(room, "bool"), count, dim)
    made: Expr = relay.where(relay.any(every, 0, False), relay.zeros_like(value), value)
    return made


def _variables(body: Expr) -> tuple[set[Any], set[Any]]:
    """Return the variables of sizes that a graph speaks of, and those that it tells."""
    spoken: set[Any] = set()
    told: set[Any] = set()
    for expr in post_order(body):
        kind = expr.checked_type if isinstance(expr, Expr) else None
        for extent in kind.shape if isinstance(kind, TensorType) else ():
            if isinstance(extent, SymbolDim):
                spoken.update(extent.variables)
        if isinstance(expr, Call) and is_call_of(expr, "sized"):
            size = expr.attrs.size
            told.update(size.variables if isinstance(size, SymbolDim) else ())
    return spoken, told


def computed(view: NodeView, function: Callable[..., Any], given: Sequence[Any]) -> Any:
    """Return what Python's operators make of numbers that were read, and of sizes.

    Floats of sizes are of 64 bits, as Python's are.  None for another function of sizes alone.
    """
    name = getattr(function, "__name__", "")
    tensors = [value for value in given if isinstance(value, Expr)]
    make = _OPERATORS.get(name) or _TESTS.get(name)
    if make is None and tensors:
        raise UnsupportedNode("it computes with a number that was read from a tensor")
    if make is None:
        return None
    whole = name in _TESTS and not any(isinstance(value, float) for value in given)
    dtype = tensors[0].tensor_type.dtype if tensors else "int64" if whole else "float64"
    return make(*(v if isinstance(v, Expr) else view.as_tensor(v, dtype) for v in given))


_OPERATORS: Mapping[str, Callable[..., Any]] = {
    operator.add.__name__: relay.add, operator.sub.__name__: relay.subtract,
    operator.mul.__name__: relay.multiply, operator.truediv.__name__: relay.divide,
    operator.neg.__name__: relay.negative, operator.pow.__name__: relay.power,
    "_sym_sqrt": relay.sqrt, "sym_max": relay.maximum, "sym_min": relay.minimum,
    "sym_float": lambda x: x, "sym_not": relay.logical_not,
    operator.and_.__name__: relay.logical_and, operator.or_.__name__: relay.logical_or,
}  # fmt: skip
_TESTS: Mapping[str, Callable[..., Any]] = {
    operator.gt.__name__: relay.greater, operator.ge.__name__: relay.greater_equal,
    operator.lt.__name__: relay.less, operator.le.__name__: relay.less_equal,
    operator.eq.__name__: relay.equal, operator.ne.__name__: relay.not_equal,
}  # fmt: skip
