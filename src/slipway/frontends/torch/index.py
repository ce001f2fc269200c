"""Operators that read and write at positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.torch.converters import NodeView, cast, converter, number, refuse
from slipway.relay.dims import is_open
from slipway.relay.expr import Constant, Expr
from slipway.relay.op_registry import const
from slipway.relay.ops.checks import broadcast_shapes


@converter("embedding")
def embedding(node: NodeView) -> Any:
    """Rows of a table."""
    return relay.take(node.input("weight"), node.input("indices"), 0, mode="fast")


@converter("index_select")
def index_select(node: NodeView) -> Any:
    """Slices along an axis."""
    if not node.rank():
        return node.input()
    return relay.take(node.input(), node.input("index"), node.axis(), mode="fast")


@converter("gather")
def gather(node: NodeView) -> Any:
    """One position per element along an axis."""
    x, index, axis = node.input(), node.input("index"), node.axis()
    end = list(index.tensor_type.shape)  # the positions may cover less than the data
    end[axis] = node.shape()[axis]
    if tuple(end) != node.shape():
        x = relay.strided_slice(x, [0] * len(end), end)
    return relay.gather(x, axis, index)


def _positions(node: NodeView) -> tuple[list[int], list[Expr]]:
    """Return the axes that are indexed, and their indices; they must be adjacent."""
    given = node.arguments["indices"]
    axes = [a for a, index in enumerate(given) if index is not None]
    if not axes:
        raise node.unsupported("it has no index")
    indices = [given[a] for a in axes]
    if any(i.tensor_type.dtype in ("bool", "uint8") for i in indices):
        raise node.unsupported("a mask as index gives a shape that depends on its values")
    if axes != list(range(axes[0], axes[-1] + 1)):
        raise node.unsupported("indices of axes that are not adjacent")
    return axes, [cast(i, "int64") for i in indices]


def _wrapped(index: Expr, extent: int) -> Expr:
    """Return an index with negative positions counted from the end.

    Those of an open extent stay: the operators count them so themselves.
    """
    if is_open(extent):
        return index
    if isinstance(index, Constant):
        moved: Expr = const(np.where(index.array < 0, index.array + extent, index.array))
        return moved
    from_end = relay.add(index, number(extent, "int64"))
    made: Expr = relay.where(relay.less(index, number(0, "int64")), from_end, index)
    return made


def _index_tensor(node: NodeView, axes: list[int], indices: list[Expr]) -> tuple[Expr, int]:
    """Return the indices of several axes in one tensor, along its first axis, and their rank."""
    shape: tuple[int, ...] = ()
    for given in indices:
        shape = broadcast_shapes(shape, given.tensor_type.shape, "indices")
    full = [
        _wrapped(i if i.tensor_type.shape == shape else relay.broadcast_to(i, shape), n)
        for i, n in zip(indices, (node.shape()[a] for a in axes), strict=True)
    ]
    return relay.stack(full, 0), len(shape)


@converter("index", "_unsafe_index")
def index(node: NodeView) -> Any:
    """Elements at positions of one axis, or of several adjacent ones."""
    axes, indices = _positions(node)
    x, first = node.input(), axes[0]
    if len(axes) == 1:
        return relay.take(x, _wrapped(indices[0], node.shape()[first]), first, mode="fast")
    places, rank = _index_tensor(node, axes, indices)
    if first == 0:
        return relay.gather_nd(x, places)
    own = node.rank()
    front = relay.transpose(x, (*axes, *range(first), *range(axes[-1] + 1, own)))
    found = relay.gather_nd(front, places)
    order = (*range(rank, rank + first), *range(rank), *range(rank + first, own - len(axes) + rank))
    return relay.transpose(found, order)


@converter("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(node: NodeView) -> Any:
    """Values written, or added, at positions of the leading axes."""
    axes, indices = _positions(node)
    if axes[0] != 0:
        raise node.unsupported("it writes at positions of an axis that is not the first")
    places, _ = _index_tensor(node, axes, indices)
    shape = (*places.tensor_type.shape[1:], *node.shape()[len(axes) :])
    values = cast(node.input("values"), node.out.dtype)
    if values.tensor_type.shape != shape:
        values = relay.broadcast_to(values, shape)
    mode = "add" if node.arg("accumulate", False) else "update"
    return relay.scatter_nd(node.input(), places, values, mode)


REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add",
              "multiply": "mul"}  # fmt: skip


@converter("scatter", "scatter_add", "scatter_reduce")
def scatter(node: NodeView) -> Any:
    """Values written or gathered at one position per element along an axis."""
    x, index, axis = node.input(), node.input("index"), node.axis()
    source = node.arguments.get("src", node.arguments.get("value"))
    shape = index.tensor_type.shape
    updates = node.as_tensor(source, node.out.dtype)
    if updates.tensor_type.rank == 0:
        updates = relay.broadcast_to(updates, shape)
    elif updates.tensor_type.shape != shape:
        updates = relay.strided_slice(updates, [0] * len(shape), list(shape))
    mode = "add" if node.kind == "scatter_add" else "update"
    if node.arg("reduce"):
        mode = REDUCTIONS.get(node.arg("reduce"), "")
        if not mode or not node.arg("include_self", True):
            raise node.unsupported(f"reduce={node.arg('reduce')!r} without the tensor itself")
    return relay.scatter_elements(x, index, updates, axis, mode)


@converter("index_copy", "index_add")
def index_copy(node: NodeView) -> Any:
    """Slices written or added at positions of an axis."""
    x, axis, rank = node.input(), node.axis(), node.rank()
    source, index = node.input("source"), cast(node.input("index"), "int64")
    view = [1] * rank
    view[axis] = index.tensor_type.size
    places = relay.broadcast_to(relay.reshape(index, view), source.tensor_type.shape)
    alpha = node.arg("alpha", 1)
    if alpha != 1:
        source = relay.multiply(source, number(alpha, node.out.dtype))
    return relay.scatter_elements(
        x, places, source, axis, "add" if node.kind == "index_add" else "update"
    )


@converter("one_hot")
def one_hot(node: NodeView) -> Any:
    """Classes as vectors."""
    depth = node.out.shape[-1]
    return relay.one_hot(cast(node.input(), "int64"), 1, 0, depth, -1, node.out.dtype)


refuse(
    "nonzero",
    "masked_select",
    "unique_dim",
    "_unique2",
    "nonzero_static",
    why="the shape of its result depends on values; shapes are static",
)
