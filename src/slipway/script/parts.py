"""Parts of buffers: ``T.match_buffer(B[vi : vi + 4, vj], (4,))`` inside of a block.

Loads and stores of a part are those of its buffer, so that a schedule sees one memory; what a call
is given of it (`data`, `strides`, `elem_offset`, `access_ptr`) speaks of the part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.errors import ModelError
from slipway.ir import ops
from slipway.ir.buffer import Buffer
from slipway.ir.expr import BufferLoad, PrimExpr, PrimExprLike


class Part:
    """A region of a buffer under a name of its own; its last dimensions are the part's."""

    def __init__(self, buffer: Buffer, begins: Sequence[PrimExpr], seen: Buffer) -> None:
        self.buffer, self.begins = buffer, tuple(begins)
        self.seen = seen  # the part as a view of the memory

    @property
    def data(self) -> PrimExpr:
        """The pointer to the whole buffer's memory."""
        return self.seen.data

    @property
    def dtype(self) -> str:
        """The type of the elements."""
        return self.seen.dtype

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The extents of the part."""
        return self.seen.shape

    @property
    def strides(self) -> tuple[PrimExpr, ...]:
        """The elements between neighbours along each dimension."""
        return self.seen.strides

    @property
    def elem_offset(self) -> PrimExpr | None:
        """The elements before the part's first one."""
        return self.seen.elem_offset

    def access_ptr(self, mode: str | int = "rw", **options: Any) -> PrimExpr:
        """Return a pointer to the part's first element, for a call."""
        return self.seen.access_ptr(mode, **options)

    def indices_of(self, indices: Sequence[PrimExprLike]) -> tuple[PrimExpr, ...]:
        """Return where an element of the part is in its buffer."""
        picked = [ops.as_expr(i) for i in indices]
        if len(picked) != self.seen.ndim:
            raise ModelError(
                f"the part {self.seen.name!r} of {self.buffer.name!r} has {self.seen.ndim} "
                f"dimensions, but is indexed with {len(picked)}"
            )
        outer = len(self.begins) - len(picked)
        inner = zip(self.begins[outer:], picked, strict=True)
        return (*self.begins[:outer], *(ops.add(b, i) for b, i in inner))

    def __getitem__(self, indices: Any) -> BufferLoad:
        picked = indices if isinstance(indices, tuple) else (indices,)
        return BufferLoad(self.buffer, self.indices_of(picked))


def part_of(
    buffer: Buffer, region: Sequence[Any], declared: Buffer, name: str
) -> tuple[Part, list[tuple[PrimExpr, PrimExpr]]]:
    """Return a region of `buffer` as `declared`, and what the declaration's variables are.

    `region` has an index or a slice for each dimension of the buffer.  Raises ModelError.
    """
    if len(region) != buffer.ndim:
        raise ModelError(
            f"T.match_buffer: buffer {buffer.name!r} has {buffer.ndim} dimensions, but the region "
            f"says {len(region)}"
        )
    if declared.ndim > buffer.ndim:
        raise ModelError(
            f"T.match_buffer: a part of {declared.ndim} dimensions cannot be one of "
            f"{buffer.name!r}, which has {buffer.ndim}"
        )
    begins, extents = [], []
    for index, whole in zip(region, buffer.shape, strict=True):
        if isinstance(index, slice):
            begin = ops.as_expr(0 if index.start is None else index.start)
            extents.append(ops.sub(whole if index.stop is None else index.stop, begin))
        else:
            begin = ops.as_expr(index)
            extents.append(ops.as_expr(1))
        begins.append(begin)
    outer = buffer.ndim - declared.ndim
    for axis, (wanted, found) in enumerate(zip(declared.shape, extents[outer:], strict=True)):
        known = ops.as_int(wanted), ops.as_int(found)
        if None not in known and known[0] != known[1]:
            raise ModelError(
                f"T.match_buffer: dimension {axis} of {name!r} has {known[0]} elements, but the "
                f"region of {buffer.name!r} {known[1]}"
            )
    strides = buffer.strides or _compact(buffer.shape)
    offset = buffer.elem_offset if buffer.elem_offset is not None else ops.as_expr(0)
    for begin, stride in zip(begins, strides, strict=True):
        offset = ops.add(offset, ops.mul(begin, stride))
    own = tuple(strides[outer:])
    seen = buffer.replace(name=name, shape=declared.shape, strides=own, elem_offset=offset)
    meant = list(zip(declared.strides, own, strict=False))
    if declared.elem_offset is not None:
        meant.append((declared.elem_offset, offset))
    return Part(buffer, begins, seen), meant


def _compact(shape: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """Return the row-major strides of a shape, in elements."""
    strides: list[PrimExpr] = [ops.as_expr(1)]
    for extent in reversed(shape[1:]):
        strides.insert(0, ops.mul(strides[0], extent))
    return tuple(strides[: len(shape)])
