"""Buffers: typed multi-dimensional views of memory that loops load from and store to."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar

from slipway import dtypes
from slipway.arguments import items_of
from slipway.errors import ArgumentValueError
from slipway.ir.expr import BufferLoad, Call, IntImm, PrimExpr, Ramp, Var
from slipway.ir.node import Node, node
from slipway.ir.operators import BUILDERS
from slipway.ir.ops import as_expr, as_int, const

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import PrimExprLike, ShapeLike


@node
class Buffer(Node):
    """Memory at `data` seen as an array of `shape` elements of `dtype`.  Unique by identity.

    `strides` (elements) is empty for a compact row-major buffer; `elem_offset` (elements) is where
    element 0 lies behind `data`.  `scope` is "global" (memory), "local" (registers or stack),
    "shared", ... `data_alignment` is in bytes; `offset_factor` divides elem_offset.
    `axis_separators` say at which axes another dimension of memory begins, for devices whose memory
    has several; that of the targets here has one, so that they only stay with the buffer.
    """

    name: str
    data: Var
    dtype: str
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...] = ()
    elem_offset: PrimExpr | None = None
    scope: str = "global"
    data_alignment: int = 64
    offset_factor: int = 1
    axis_separators: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.axis_separators:
            return
        found = [as_int(at) for at in self.axis_separators]
        rising = (0, *(-1 if at is None else at for at in found), self.ndim)
        if any(low > high for low, high in itertools.pairwise(rising)):
            raise ArgumentValueError(
                f"axis_separators of {self.name!r} are positions from 0 to {self.ndim} that rise, "
                f"not {list(self.axis_separators)}"
            )

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def constant_shape(self) -> tuple[int, ...] | None:
        """Return the shape as Python ints, or None where a dimension is symbolic."""
        if all(isinstance(s, IntImm) for s in self.shape):
            return tuple(s.value for s in self.shape)  # type: ignore[attr-defined]
        return None

    def size_bytes(self) -> int | None:
        """Return the bytes of a compact buffer of this shape, or None where it is symbolic."""
        shape = self.constant_shape()
        if shape is None:
            return None
        total = dtypes.bytes_of(self.dtype)
        for extent in shape:
            total *= extent
        return total

    __iter__: ClassVar[None] = None  # else Python counts indices without end

    def __getitem__(self, indices: Any) -> BufferLoad:
        picked = indices if isinstance(indices, tuple) else (indices,)
        return BufferLoad(self, tuple(as_expr(i) for i in picked))

    def vload(self, begin: ShapeLike, dtype: str | None = None) -> BufferLoad:
        """Return the load of a vector of `dtype` that starts at `begin` along the last axis."""
        picked = tuple(
            as_expr(i) for i in (begin if isinstance(begin, (tuple, list)) else (begin,))
        )
        lanes = dtypes.lanes_of(dtype or self.dtype) // dtypes.lanes_of(self.dtype)
        if lanes > 1:  # elements, each of which may be a vector itself
            last = picked[-1]
            picked = (*picked[:-1], Ramp(last, const(1, last.dtype), lanes))
        return BufferLoad(self, picked)

    def vstore(self, begin: ShapeLike, value: PrimExprLike) -> Any:
        """Return the store of a value, a vector too, that starts at `begin` along the last axis."""
        stored = as_expr(value)
        load = self.vload(begin, dtypes.with_lanes(self.dtype, dtypes.lanes_of(stored.dtype)))
        return BUILDERS.BufferStore(self, stored, load.indices)

    def access_ptr(
        self,
        mode: str | int = "rw",
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: PrimExprLike = 0,
        extent: PrimExprLike | None = None,
    ) -> PrimExpr:
        """Return a pointer to the element `offset` elements after the start, for an extern call.

        `mode` is any of "r", "w", "rw" (the classic bit mask 1, 2, 3 works too).  The other
        arguments are classic's, and say of how many vectors of which kind the pointer is: what is
        called knows.
        """
        del content_lanes, extent
        if dtypes.canonical(ptr_type) != "handle":
            raise ArgumentValueError(f"access_ptr: ptr_type is {ptr_type!r}, not 'handle'")
        mask = {"r": 1, "w": 2, "rw": 3, "wr": 3}.get(mode, mode) if isinstance(mode, str) else mode
        start = as_expr(offset)
        if self.elem_offset is not None:
            start = self.elem_offset + start
        return Call("handle", "access_ptr", (self.data, start, const(mask, "int32")))


def decl_buffer(
    shape: ShapeLike,
    dtype: str = "float32",
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[PrimExprLike] | None = (),
    elem_offset: PrimExpr | None = None,
    scope: str = "global",
    data_alignment: int = 64,
    offset_factor: int = 1,
    axis_separators: Sequence[int] | None = (),
) -> Buffer:
    """Make a new Buffer with a new data pointer (or `data`); the shape may hold ints and Vars."""
    dims = shape if isinstance(shape, (tuple, list)) else (shape,)
    steps = () if strides is None else items_of(strides, f"strides of {name!r}", "[64, 1]")
    return Buffer(
        name,
        data if data is not None else Var(name, "handle"),
        dtypes.canonical(dtype),
        tuple(as_expr(s) for s in dims),
        tuple(as_expr(s) for s in steps),
        elem_offset,
        scope,
        data_alignment,
        offset_factor,
        tuple(axis_separators or ()),
    )
