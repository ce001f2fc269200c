"""Tensors: the values that te operations produce."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.ir import ops
from slipway.ir.expr import IterVar, PrimExpr, ProducerLoad
from slipway.ir.node import Node, node
from slipway.ir.operators import BROADCASTING, ExprOperators
from slipway.lazy import Late

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike


@node
class Tensor(Node):
    """Output `value_index` of operation `op`: a read-only array of `shape` elements of `dtype`.

    ``A(i, j)`` and ``A[i, j]`` are elements; ``A[i]`` of a matrix is a partial slice that takes
    its remaining indices later.  Tensors hash by identity: one object per output.
    """

    op: Any
    value_index: int = 0

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The extents, IntImm where constant (usable as Python ints)."""
        return self.op.output_shape(self.value_index)  # type: ignore[no-any-return]

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.op.output_dtype(self.value_index)  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The operation's name; outputs of a tuple get ``.v0``, ``.v1``."""
        if self.op.num_outputs == 1:
            return str(self.op.name)
        return f"{self.op.name}.v{self.value_index}"

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the operation (classic shorthand for ``T.op.axis``)."""
        return tuple(self.op.axis)

    def __call__(self, *indices: Any) -> PrimExpr:
        """Return the element at the given indices, one per dimension."""
        flat = (
            indices[0] if len(indices) == 1 and isinstance(indices[0], (tuple, list)) else indices
        )
        if len(flat) != self.ndim:
            raise ArgumentValueError(
                f"tensor {self.name!r} has {self.ndim} dimensions, but was indexed with "
                f"{len(flat)}: {', '.join(str(i) for i in flat)}"
            )
        return ProducerLoad(self, tuple(_index(i, self) for i in flat))

    def __getitem__(self, indices: Any) -> Any:
        picked = indices if isinstance(indices, tuple) else (indices,)
        if len(picked) < self.ndim or any(isinstance(i, slice) for i in picked):
            return TensorSlice(self, picked)
        return self(*picked)

    def __iter__(self) -> Any:
        raise ArgumentTypeError(
            f"tensor {self.name!r} cannot be iterated; index it inside te.compute"
        )

    def __str__(self) -> str:
        extents = ", ".join(str(s) for s in self.shape)
        return f"Tensor(shape=[{extents}], op.name={self.name})"

    def as_prim_expr(self) -> PrimExpr:
        """Return the single element of a zero-dimensional tensor."""
        return self()

    # Arithmetic on whole tensors is topi's, which broadcasts.  Comparisons stay Python's own.

    def __add__(self, other: PrimExprLike) -> Any:
        return _topi("add", self, other)

    def __radd__(self, other: PrimExprLike) -> Any:
        return _topi("add", other, self)

    def __sub__(self, other: PrimExprLike) -> Any:
        return _topi("subtract", self, other)

    def __rsub__(self, other: PrimExprLike) -> Any:
        return _topi("subtract", other, self)

    def __mul__(self, other: PrimExprLike) -> Any:
        return _topi("multiply", self, other)

    def __rmul__(self, other: PrimExprLike) -> Any:
        return _topi("multiply", other, self)

    def __truediv__(self, other: PrimExprLike) -> Any:
        return _topi("divide", self, other)

    def __rtruediv__(self, other: PrimExprLike) -> Any:
        return _topi("divide", other, self)

    def __neg__(self) -> Any:
        return _topi("negative", self)

    def astype(self, dtype: str) -> Any:
        """Return the tensor with its elements converted to `dtype`."""
        return _topi("cast", self, dtype)


class Broadcasting(Late, package="slipway.te"):
    """What arithmetic on whole tensors is; `topi` is written in terms of tensors."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...


WHOLE = Broadcasting()


class Inside(threading.local):
    """How many functions given to `compute` this thread is in."""

    depth = 0


INSIDE = Inside()
BROADCASTING.add(Tensor)


def _topi(name: str, *operands: PrimExprLike) -> Any:
    """Whole tensors broadcast; in the function of a compute one without dimensions is a scalar."""
    if INSIDE.depth:
        operands = tuple(
            x.as_prim_expr() if isinstance(x, Tensor) and not x.ndim else x for x in operands
        )
    if not any(isinstance(x, Tensor) for x in operands):
        return getattr(ops, {"subtract": "sub", "multiply": "mul", "divide": "div",
                             "negative": "neg"}.get(name, name))(*operands)  # fmt: skip
    return getattr(WHOLE, name)(*operands)


def _index(value: PrimExprLike, tensor: Tensor) -> PrimExpr:
    index = ops.as_expr(value)
    if index.dtype.startswith(("float", "bfloat")):
        raise ArgumentTypeError(
            f"tensor {tensor.name!r} is indexed with the {index.dtype} value {index}"
        )
    return index


class TensorSlice(ExprOperators):
    """A tensor with its first few indices given; more may follow in brackets.

    One with ranges, ``A[i, 0:16]``, is a region, which a tensor intrinsic reads.
    """

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Any, ...]) -> None:
        self.tensor = tensor
        self.indices = indices

    def __getitem__(self, indices: Any) -> Any:
        more = indices if isinstance(indices, tuple) else (indices,)
        return self.tensor[self.indices + more]

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.tensor.dtype

    def as_prim_expr(self) -> PrimExpr:
        """Return the element, when every index is given."""
        if any(isinstance(index, slice) for index in self.indices):
            raise ArgumentTypeError(
                f"a region of tensor {self.tensor.name!r} is no element: index it, or give it to a "
                "tensor intrinsic"
            )
        return self.tensor(*self.indices)
