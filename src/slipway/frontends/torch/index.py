"""Operators that read and write at positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.torch.converters import NodeView, cast, converter, number, refuse
from slipway.frontends.torch.found import columns_of, found_columns
from slipway.relay.dims import SymbolDim, is_open
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
    """Return the axes that are indexed, and their indices."""
    axes: list[int] = []
    indices: list[Expr] = []
    at = 0
    for index in node.arguments["indices"]:
        if index is None:
            at += 1
            continue
        columns = _columns(node, index) if _is_mask(index) else [cast(index, "int64")]
        axes += range(at, at + len(columns))
        indices += columns
        at += len(columns)
    if not axes:
        raise node.unsupported("it has no index")
    return axes, indices


def _columns(node: NodeView, mask: Expr) -> list[Expr]:
    """Return the positions where a mask holds, along each of its axes."""
    if node.kind in ("index", "_unsafe_index"):
        known = node.found.get(id(mask))
        if known is not None:
            return known[1]
        new = [d for d in node.out.shape if isinstance(d, SymbolDim) and d in node.brought]
        if len(new) == 1:
            return found_columns(node, mask, new[0])
    else:
        put = columns_of(node, mask, node.shape("values"))
        if put is not None:
            return put
    raise node.unsupported("a mask as index gives a shape that depends on its values")


def _is_mask(index: Expr) -> bool:
    return index.tensor_type.dtype in ("bool", "uint8")


def _order(axes: list[int], rank: int) -> tuple[int, ...]:
    """Return the axes of a tensor with the indexed ones in front."""
    return (*axes, *(a for a in range(rank) if a not in axes))


def _result_order(axes: list[int], rank: int, positions: int) -> tuple[int, ...]:
    """Return where the axes of (positions..., others...) stand in the result of an index.

    The positions stand where the indexed axes were, or in front where those are not adjacent.
    """
    total = positions + rank - len(axes)
    if axes != list(range(axes[0], axes[-1] + 1)):
        return tuple(range(total))
    first = axes[0]
    return (
        *range(positions, positions + first),
        *range(positions),
        *range(positions + first, total),
    )


def _transposed(x: Expr, order: tuple[int, ...]) -> Expr:
    made: Expr = x if order == tuple(range(len(order))) else relay.transpose(x, order)
    return made


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
    """Elements at positions of one axis, or of several."""
    axes, indices = _positions(node)
    x, rank = node.input(), node.rank()
    if len(axes) == 1:
        return relay.take(x, _wrapped(indices[0], node.shape()[axes[0]]), axes[0], mode="fast")
    positions, count = _index_tensor(node, axes, indices)
    found = relay.gather_nd(_transposed(x, _order(axes, rank)), positions)
    return _transposed(found, _result_order(axes, rank, count))


@converter("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(node: NodeView) -> Any:
    """Values written, or added, at positions or where a mask holds."""
    given = [index for index in node.arguments["indices"] if index is not None]
    if any(_is_mask(i) and not _has_found(node, i) for i in given):
        return _put_masked(node)
    axes, indices = _positions(node)
    rank = node.rank()
    positions, count = _index_tensor(node, axes, indices)
    order, moved = _order(axes, rank), _result_order(axes, rank, count)
    front = (*positions.tensor_type.shape[1:], *(node.shape()[a] for a in order[len(axes) :]))
    values = cast(node.input("values"), node.out.dtype)
    shape = tuple(front[a] for a in moved)
    if values.tensor_type.shape != shape:
        values = relay.broadcast_to(values, shape)
    values = _transposed(values, tuple(moved.index(a) for a in range(len(moved))))
    mode = "add" if node.arg("accumulate", False) else "update"
    found = relay.scatter_nd(_transposed(node.input(), order), positions, values, mode)
    return _transposed(found, tuple(order.index(a) for a in range(rank)))


def _has_found(node: NodeView, mask: Expr) -> bool:
    """Return whether the values are as many as a mask's places, which are known."""
    return columns_of(node, mask, node.shape("values")) is not None


def _put_masked(node: NodeView) -> Any:
    """One value, or one for each place behind the mask's axes, written where the mask holds."""
    indices = node.arguments["indices"]
    axes = [a for a, given in enumerate(indices) if given is not None]
    mask, values, shape = indices[axes[0]], node.input("values"), node.shape()
    covered = mask.tensor_type.rank
    trailing = len(shape) - axes[0] - covered
    own = values.tensor_type.shape
    if len(axes) > 1:
        raise node.unsupported("a mask beside other indices")
    if len(own) > trailing and any(extent != 1 for extent in own[: len(own) - trailing]):
        raise node.unsupported("as many values as a mask has places, whose number is not known")
    if axes[0] and own and len(own) > trailing:
        raise node.unsupported("values before the axes of a mask")
    flat: Any = relay.reshape(values, own[max(len(own) - trailing, 0) :])
    view = (*(1 for _ in range(axes[0])), *mask.tensor_type.shape, *(1 for _ in range(trailing)))
    flat = cast(flat, node.out.dtype)
    if node.arg("accumulate", False):
        flat = relay.add(node.input(), flat)
    return relay.where(relay.reshape(cast(mask, "bool"), view), flat, node.input())


@converter("masked_scatter")
def masked_scatter(node: NodeView) -> Any:
    """The elements of a source one after another where the mask holds."""
    x, shape = node.input(), node.out.shape
    mask = cast(node.input("mask"), "bool")
    x, mask = (v if v.tensor_type.shape == shape else relay.broadcast_to(v, shape)
               for v in (x, mask))  # fmt: skip
    source = relay.reshape(node.input("source"), (-1,))
    number_of = relay.cumsum(cast(relay.reshape(mask, (-1,)), "int64"), 0)
    positions = relay.maximum(relay.subtract(number_of, number(1, "int64")), number(0, "int64"))
    found = relay.reshape(relay.take(source, positions, 0, mode="clip"), shape)
    return relay.where(mask, found, x)


REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add",
              "multiply": "mul"}  # fmt: skip


@converter("scatter", "scatter_add", "scatter_reduce")
def scatter(node: NodeView) -> Any:
    """Values written or gathered at one position per element along an axis."""
    x: Expr = node.input()
    index, axis = node.input("index"), node.axis()
    source = node.arguments.get("src", node.arguments.get("value"))
    shape = index.tensor_type.shape
    updates: Expr = node.as_tensor(source, node.out.dtype)
    if updates.tensor_type.rank == 0:
        updates = relay.broadcast_to(updates, shape)
    elif updates.tensor_type.shape != shape:
        updates = relay.strided_slice(updates, [0] * len(shape), list(shape))
    if not node.arg("reduce"):
        mode = "add" if node.kind == "scatter_add" else "update"
        return relay.scatter_elements(x, index, updates, axis, mode)
    return _reduced(node, index, updates)


def _reduced(node: NodeView, index: Expr, updates: Expr) -> Any:
    """Return the data with updates reduced into it, in the ways that scatter_reduce knows."""
    x: Expr = node.input()
    kind, axis, shape = str(node.arg("reduce")), node.axis(), index.tensor_type.shape
    mode = "add" if kind == "mean" else REDUCTIONS.get(kind, "")
    if not mode:
        raise node.unsupported(f"reduce={kind!r}")
    own = bool(node.arg("include_self", True))
    if not own:  # places that are written begin with what leaves the others as they are
        first = relay.broadcast_to(number(_neutral(mode, node.out.dtype), node.out.dtype), shape)
        x = relay.scatter_elements(x, index, first, axis, "update")
    found = relay.scatter_elements(x, index, updates, axis, mode)
    if kind != "mean":
        return found
    ones = relay.ones(shape, "int64")
    counted: Expr = relay.zeros(node.shape(), "int64")
    counted = relay.scatter_elements(counted, index, ones, axis, "add")
    if own:
        counted = relay.add(counted, number(1, "int64"))
    counted = cast(relay.maximum(counted, number(1, "int64")), node.out.dtype)
    return (relay.divide if dtypes.is_float(node.out.dtype) else relay.floor_divide)(found, counted)


def _neutral(mode: str, dtype: str) -> Any:
    """Return the value that a reduction leaves as it is."""
    if mode in ("add", "mul"):
        return 0 if mode == "add" else 1
    if dtypes.is_float(dtype):
        return -np.inf if mode == "max" else np.inf
    return dtypes.int_range(dtype)[0 if mode == "max" else 1]


@converter("index_copy", "index_add", "index_reduce")
def index_copy(node: NodeView) -> Any:
    """Slices written, added or reduced at positions of an axis."""
    x, axis, rank = node.input(), node.axis(), node.rank()
    source, index = node.input("source"), cast(node.input("index"), "int64")
    view = [1] * rank
    view[axis] = index.tensor_type.size
    positions = relay.broadcast_to(relay.reshape(index, view), source.tensor_type.shape)
    if node.kind == "index_reduce":
        return _reduced(node, positions, source)
    alpha = node.arg("alpha", 1)
    if alpha != 1:
        source = relay.multiply(source, number(alpha, node.out.dtype))
    return relay.scatter_elements(
        x, positions, source, axis, "add" if node.kind == "index_add" else "update"
    )


@converter("one_hot")
def one_hot(node: NodeView) -> Any:
    """Classes as vectors."""
    depth = node.out.shape[-1]
    return relay.one_hot(cast(node.input(), "int64"), 1, 0, depth, -1, node.out.dtype)


refuse(
    "nonzero_static",
    why="the shape of its result depends on values of whole slices",
)
