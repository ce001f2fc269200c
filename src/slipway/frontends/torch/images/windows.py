"""Views that read elements more than once, or every so many: windows, strides, diagonals."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.columns import image_of_columns
from slipway.frontends.torch.converters import NodeView, converter
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const


@converter("unfold", "unfold_copy")
def unfold(node: NodeView) -> Any:
    """Windows along an axis; what lies in each is a new last axis."""
    axis, rank = node.axis("dimension"), max(node.rank(), 1)
    x = node.input() if node.rank() else relay.reshape(node.input(), (1,))
    last = [a for a in range(rank) if a != axis] + [axis]
    moved = x if axis == rank - 1 else relay.transpose(x, last)
    size, step = int(node.arg("size")), int(node.arg("step"))
    if not size:
        raise node.unsupported("windows of no element")
    found = relay.sliding_window(moved, rank - 1, [size], [step])
    if not node.rank():
        return relay.reshape(found, node.out.shape)
    back = [last.index(a) for a in range(rank)] + [rank]
    return found if axis == rank - 1 else relay.transpose(found, back)


@converter("as_strided", "as_strided_copy")
def as_strided(node: NodeView) -> Any:
    """Elements at places counted in steps of each axis, from those of a contiguous tensor."""
    given = node.fakes["self"]
    if not given.is_contiguous() or given.storage_offset():
        raise node.unsupported("it reads the storage behind a view: call x.contiguous() before")
    size, stride = node.ints("size"), node.ints("stride")
    take_table(prod(size))
    positions = np.full(size, int(node.arg("storage_offset", 0)), np.int64)
    for axis, (extent, step) in enumerate(zip(size, stride, strict=True)):
        view = [1] * len(size)
        view[axis] = extent
        positions = positions + (np.arange(extent) * step).reshape(view)
    flat = relay.reshape(node.input(), (-1,))
    count = flat.tensor_type.shape[0]
    if positions.size and int(positions.max()) >= count:
        raise node.unsupported(
            f"it reads element {int(positions.max())} of the storage behind a tensor of {count}"
        )
    if positions.size == count and (positions.reshape(-1) == np.arange(count)).all():
        return relay.reshape(flat, size)
    return relay.take(flat, const(positions), 0, mode="fast")


def _matrices(node: NodeView) -> tuple[Any, tuple[int, ...], int, int]:
    """Return matrices of two axes in rows, the order of axes, where a diagonal begins, its step.

    The last axis of the first has the elements of a matrix one after another.
    """
    rank = node.rank()
    one, two = node.axis("dim1", 0), node.axis("dim2", 1)
    order = (*(a for a in range(rank) if a not in (one, two)), one, two)
    x = relay.transpose(node.input(), order)
    *lead, rows, columns = x.tensor_type.shape
    offset = int(node.arg("offset", 0))
    first = offset if offset >= 0 else -offset * columns
    return relay.reshape(x, (*lead, rows * columns)), order, first, columns + 1


@converter("diagonal", "diagonal_copy")
def diagonal(node: NodeView) -> Any:
    """The diagonal of two axes, as a new last axis."""
    count = node.out.shape[-1]
    if not count:
        return const(np.zeros(node.out.shape, node.out.dtype))
    flat, _, first, step = _matrices(node)
    if is_open(step):
        steps = relay.multiply(relay.arange(0, count, dtype="int64"), node.as_tensor(step, "int64"))
        positions = relay.add(steps, node.as_tensor(first, "int64"))
        return relay.take(flat, positions, node.rank() - 2, mode="clip")
    end = first + (count - 1) * step + 1
    return relay.strided_slice(flat, [first], [end], [step], axes=[node.rank() - 2])


@converter("diagonal_scatter")
def put_diagonal(node: NodeView) -> Any:
    """The tensor with a diagonal replaced."""
    flat, order, first, step = _matrices(node)
    new = node.input("src")
    positions = first + np.arange(new.tensor_type.shape[-1], dtype=np.int64) * step
    index = relay.broadcast_to(const(positions), new.tensor_type.shape)
    found = relay.scatter_elements(flat, index, new, node.rank() - 2, "update")
    back = relay.reshape(found, tuple(node.shape()[a] for a in order))
    return relay.transpose(back, [order.index(a) for a in range(node.rank())])


@converter("col2im")
def col2im(node: NodeView) -> Any:
    """Columns summed back into an image."""
    x = node.input()
    single = x.tensor_type.rank == 2
    found = image_of_columns(
        relay.expand_dims(x, 0) if single else x,
        node.ints("output_size", 2), node.ints("kernel_size", 2), node.ints("stride", 2, 1),
        node.ints("dilation", 2, 1), node.ints("padding", 2, 0) * 2,
    )  # fmt: skip
    return relay.reshape(found, node.out.shape)
