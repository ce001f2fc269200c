"""Constants that a TFLite file stores as sparse tensors, made dense while it is read.

The layout is that of "Format abstraction for sparse tensor algebra compilers" (Chou et al., 2018):
the axes in the order of traversal, those of blocks behind the others, each dense or with the
indices that are there (compressed sparse rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from slipway.errors import ModelError
from slipway.frontends.tflite.flatbuffer import Table

Array = np.ndarray[Any, Any]

DENSE, SPARSE_CSR = 0, 1
MAX_DENSE = 1 << 26  # elements of a tensor that few stored ones may stand for
_INDEX_KINDS = {1: "int", 2: "ushort", 3: "ubyte"}


@dataclass(frozen=True)
class TraversedAxis:
    """One axis in the order of traversal: its extent, or where the indices of each parent lie."""

    extent: int
    segments: Array | None = None  # compressed: indices[segments[p]:segments[p + 1]] of parent p
    indices: Array | None = None


def dense_array(sparsity: Table, values: Array, shape: tuple[int, ...], name: str) -> Array:
    """Return the dense form of the stored `values` of a tensor of this shape.

    Raises ModelError when the description contradicts itself, the shape or the number of values.
    """

    def damaged(why: str) -> ModelError:
        return ModelError(f"the sparse tensor {name!r} is damaged: {why}")

    order = _numbers(sparsity, 0)
    blocked = _numbers(sparsity, 1)
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocked))) or any(
        (a < rank) != (k < rank) for k, a in enumerate(order)
    ):
        raise damaged(f"it goes through its axes in the order {order}")
    levels = [_level(table, damaged) for table in sparsity.tables(2)]
    if len(levels) != len(order) or any(not 0 <= axis < rank for axis in blocked):
        raise damaged(f"it describes {len(levels)} axes of {len(order)}, blocks of {blocked}")
    extents = _extents(levels, order, blocked, shape, damaged)
    if prod(shape) > max(MAX_DENSE, 64 * values.size):
        raise ModelError(
            f"the sparse tensor {name!r} of shape {shape} would take {prod(shape)} elements, of "
            f"which {values.size} are stored; at most {MAX_DENSE} are expanded"
        )
    positions = _positions(levels, extents, values.size, damaged)
    position = [np.zeros(values.size, np.int64) for _ in range(rank)]
    for k, axis in enumerate(order):
        if axis < rank:
            position[axis] = positions[k]
        else:
            own = blocked[axis - rank]
            position[own] = position[own] * extents[k] + positions[k]
    made = np.zeros(shape, values.dtype)
    made[tuple(position)] = values
    return made


def _numbers(table: Table, column: int) -> list[int]:
    found = table.numbers(column, "int")
    return [] if found is None else [int(v) for v in found]


def _level(table: Table, damaged: Any) -> TraversedAxis:
    if table.scalar(0, "byte") == DENSE:
        return TraversedAxis(table.scalar(1, "int"))
    if table.scalar(0, "byte") != SPARSE_CSR:
        raise damaged(f"an axis has the format {table.scalar(0, 'byte')}")
    found = []
    for column in (2, 4):
        kind, held = _INDEX_KINDS.get(table.scalar(column, "ubyte")), table.table(column + 1)
        numbers = held.numbers(0, kind) if kind is not None and held is not None else None
        if numbers is None:
            raise damaged("an axis has no indices")
        found.append(numbers.astype(np.int64))
    segments, indices = found
    if (
        not segments.size or segments[0] != 0 or segments[-1] != indices.size
        or (np.diff(segments) < 0).any()
    ):  # fmt: skip
        raise damaged("the segments of an axis do not divide its indices")
    return TraversedAxis(0, segments, indices)


def _extents(
    levels: list[TraversedAxis],
    order: list[int],
    blocked: list[int],
    shape: tuple[int, ...],
    damaged: Any,
) -> list[int]:
    """Return the extent of each level: of a blocked axis the number of its blocks."""
    rank = len(shape)
    whole = list(shape)
    extents = [0] * len(order)
    for k, axis in enumerate(order):  # those of blocks are dense and come last
        if axis < rank:
            continue
        size, own = levels[k].extent, blocked[axis - rank]
        if levels[k].segments is not None or size < 1 or whole[own] % size:
            raise damaged(f"blocks of {size} along an axis of {whole[own]}")
        extents[k] = size
        whole[own] //= size
    for k, axis in enumerate(order):
        if axis >= rank:
            continue
        extents[k] = whole[axis]
        indices = levels[k].indices
        if indices is None and levels[k].extent != whole[axis]:
            raise damaged(f"axis {axis} has {levels[k].extent} places of {whole[axis]}")
        if indices is not None and ((indices < 0) | (indices >= whole[axis])).any():
            raise damaged(f"an index of axis {axis} lies outside its {whole[axis]} places")
    return extents


def _positions(
    levels: list[TraversedAxis], extents: list[int], count: int, damaged: Any
) -> list[Array]:
    """Return the index along each level of every stored value, in the order they are stored."""
    positions: list[Array] = []
    total = 1
    for level, extent in zip(levels, extents, strict=True):
        if level.segments is None or level.indices is None:
            if total * extent > MAX_DENSE and total * extent > count:
                raise damaged(f"it holds {count} values of more than {MAX_DENSE}")
            chosen = np.repeat(np.arange(total), extent)
            index = np.tile(np.arange(extent), total)
        else:
            if level.segments.size != total + 1:
                raise damaged(f"{level.segments.size - 1} segments for {total} rows")
            lengths = np.diff(level.segments)
            chosen = np.repeat(np.arange(total), lengths)
            index = level.indices
        positions = [p[chosen] for p in positions] + [index]
        total = index.size
    if total != count:
        raise damaged(f"it describes {total} values, but {count} are stored")
    return positions
