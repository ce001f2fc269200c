"""Operations: the nodes of a tensor-expression graph.

::

    op = PlaceholderOp | ComputeOp | ExternOp | ScanOp

An operation is immutable; schedules and lowering keep what they decide beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slipway.ir.buffer import Buffer
from slipway.ir.expr import IterVar, Let, PrimExpr, ProducerLoad, Reduce
from slipway.ir.node import Node, node
from slipway.ir.stmt import Stmt
from slipway.ir.visit import walk
from slipway.te.attributes import OperationAttrs
from slipway.te.tensor import Tensor


class Operation(Node):
    """Base of all operations."""

    __slots__ = ("_inputs", "_outputs")
    _inputs: tuple[Tensor, ...]
    _outputs: tuple[Tensor, ...]
    name: str
    tag: str

    def __post_init__(self) -> None:
        pairs = getattr(self, "attrs", None)
        if pairs is not None and not isinstance(pairs, OperationAttrs):  # read from JSON
            object.__setattr__(self, "attrs", OperationAttrs(pairs))

    @property
    def num_outputs(self) -> int:
        """The number of tensors it produces."""
        return 1

    def output(self, index: int) -> Tensor:
        """Return output `index`; always the same object."""
        return self.outputs[index]

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """All outputs."""
        try:
            return self._outputs
        except AttributeError:
            made = tuple(Tensor(self, i) for i in range(self.num_outputs))
            object.__setattr__(self, "_outputs", made)
            return made

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors it reads, each once, in order of first use."""
        try:
            return self._inputs
        except AttributeError:
            found: dict[int, Tensor] = {}
            for tensor in self._find_inputs():
                found.setdefault(id(tensor), tensor)
            made = tuple(found.values())
            object.__setattr__(self, "_inputs", made)
            return made

    def _find_inputs(self) -> Iterator[Tensor]:
        return iter(())

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The data axes."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The reduction axes."""
        return ()

    @property
    def root_iter_vars(self) -> tuple[IterVar, ...]:
        """All axes a schedule starts from."""
        return (*self.axis, *self.reduce_axis)

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """Return the shape of output `index`."""
        raise NotImplementedError

    def output_dtype(self, index: int) -> str:
        """Return the element type of output `index`."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.name})"


def _parts(expr: Node) -> Iterator[Node]:
    """Yield what a formula is made of, each before what is inside it, each once."""
    stack: list[Node] = [expr]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner: list[Node]
        if isinstance(current, ProducerLoad):
            inner = list(current.indices)
        elif isinstance(current, Reduce):
            inner = [*current.init, *current.source, current.condition]
        elif isinstance(current, Tensor):
            continue
        else:
            inner = [
                item
                for name in current.FIELDS
                for value in (getattr(current, name),)
                for item in (value if type(value) is tuple else (value,))
                if isinstance(item, Node)
            ]
        stack.extend(reversed(inner))


def loads_in(expr: Node) -> Iterator[ProducerLoad]:
    """Yield every tensor element read by `expr`, in order of appearance."""
    return (part for part in _parts(expr) if isinstance(part, ProducerLoad))


def lets_in(expr: Node) -> Iterator[Let]:
    """Yield every Let of `expr`, outer ones first."""
    return (part for part in _parts(expr) if isinstance(part, Let))


@node
class PlaceholderOp(Operation):
    """An input of the program."""

    name: str
    shape: tuple[PrimExpr, ...]
    dtype: str
    tag: str = ""

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """Return the declared shape."""
        return self.shape

    def output_dtype(self, index: int) -> str:
        """Return the declared dtype."""
        return self.dtype


@node
class ComputeOp(Operation):
    """``result[axis] = body(axis)`` for every point; several bodies make several outputs.

    `axes` are the data axes; a reducing operation has `Reduce` nodes as its bodies, all over the
    same `reduce_axis`.  An `intrinsic` (te.decl_tensor_intrin) computes the innermost axes.
    """

    name: str
    axes: tuple[IterVar, ...]
    body: tuple[PrimExpr, ...]
    tag: str = ""
    attrs: tuple[tuple[str, Any], ...] = ()
    intrinsic: Any = None

    @property
    def num_outputs(self) -> int:
        """One per body."""
        return len(self.body)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The data axes."""
        return self.axes

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes of the reduction, none when the body does not reduce."""
        first = self.body[0]
        return first.axis if isinstance(first, Reduce) else ()

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """Return the extents of the data axes."""
        return tuple(a.extent for a in self.axes)

    def output_dtype(self, index: int) -> str:
        """Return the dtype of body `index`."""
        return self.body[index].dtype

    def _find_inputs(self) -> Iterator[Tensor]:
        for expr in self.body:
            for load in loads_in(expr):
                yield load.producer


@node
class ExternOp(Operation):
    """Tensors computed by statements over buffers: calls of packed or C functions, usually."""

    name: str
    inputs: tuple[Tensor, ...]
    input_placeholders: tuple[Buffer, ...]
    output_placeholders: tuple[Buffer, ...]
    body: Stmt
    tag: str = ""
    attrs: tuple[tuple[str, Any], ...] = ()

    @property
    def num_outputs(self) -> int:
        """One per output buffer."""
        return len(self.output_placeholders)

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """Return the shape of the output buffer."""
        return self.output_placeholders[index].shape

    def output_dtype(self, index: int) -> str:
        """Return the dtype of the output buffer."""
        return self.output_placeholders[index].dtype

    def _find_inputs(self) -> Iterator[Tensor]:
        return iter(self.inputs)


@node
class ScanOp(Operation):
    """A recurrence along the first axis.

    ``state[0:init_steps] = init``; ``state[t] = update[t]`` for t in `scan_axis`, where update may
    read the state placeholders at earlier steps.  `spatial` are the other axes of each state.
    """

    name: str
    scan_axis: IterVar
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state_placeholder: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    spatial: tuple[IterVar, ...]
    tag: str = ""
    attrs: tuple[tuple[str, Any], ...] = ()

    @property
    def num_outputs(self) -> int:
        """One per state."""
        return len(self.update)

    @property
    def spatial_axis(self) -> tuple[IterVar, ...]:
        """The axes of the states after the first, in order of states (the classic name)."""
        return self.spatial

    @property
    def root_iter_vars(self) -> tuple[IterVar, ...]:
        """The scan axis and the spatial axes."""
        return (self.scan_axis, *self.spatial)

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """Return the shape of the state."""
        return self.state_placeholder[index].shape

    def output_dtype(self, index: int) -> str:
        """Return the dtype of the state."""
        return self.update[index].dtype

    def _find_inputs(self) -> Iterator[Tensor]:
        yield from self.init
        yield from self.update


__all__ = [
    "ComputeOp",
    "ExternOp",
    "Operation",
    "PlaceholderOp",
    "ScanOp",
    "Tensor",
    "loads_in",
    "walk",
]
