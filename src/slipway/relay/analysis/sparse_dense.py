"""Weights of matrix products with many zeros, as blocks (BSR) in place of dense arrays."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, NamedTuple

import numpy as np

from slipway.errors import ArgumentValueError
from slipway.ir.function import IRModule
from slipway.relay.expr import Expr, Function, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order
from slipway.runtime.ndarray import array

Array = np.ndarray[Any, Any]


class SparseAnalysisResult(NamedTuple):
    """The weights that became sparse: their names, and the shapes of data, indices and indptr."""

    weight_name: list[str]
    weight_shape: list[list[int]]


def process_params(
    expr: Expr | IRModule,
    params: MutableMapping[str, Any],
    block_size: tuple[int, int],
    sparsity_threshold: float,
) -> SparseAnalysisResult:
    """Store the weights of nn.dense that are zeros mostly as blocks, in `params` itself.

    Where at least the part `sparsity_threshold` of the weight w is zero, "w" gives way to "w.data",
    "w.indices" and "w.indptr".  `relay.transform.DenseToSparse` makes a graph that takes these.
    Raises ArgumentValueError where blocks do not divide such a weight.
    """
    given = expr["main"] if isinstance(expr, IRModule) else expr
    root = given.body if isinstance(given, Function) else given
    found = SparseAnalysisResult([], [])
    assert isinstance(root, Expr)
    for call in post_order(root):
        weight = call.args[1] if is_call_of(call, "nn.dense") else None
        if not isinstance(weight, Var) or weight.name_hint not in params:
            continue
        name = weight.name_hint
        held = params[name]
        dense = np.asarray(held.numpy() if hasattr(held, "numpy") else held)
        if 1 - np.count_nonzero(dense) / max(dense.size, 1) < sparsity_threshold:
            continue
        parts = _blocks(name, dense, block_size)
        del params[name]
        params.update(
            (f"{name}.{part}", array(value))
            for part, value in zip(("data", "indices", "indptr"), parts, strict=True)
        )
        found.weight_name.append(name)
        found.weight_shape.append([n for value in parts for n in value.shape])
    return found


def _blocks(name: str, dense: Array, block: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Return (data, indices, indptr) of the blocks that are not zero, row by row."""
    rows, columns = dense.shape
    if rows % block[0] or columns % block[1]:
        raise ArgumentValueError(
            f"the weight {name!r} of {rows} x {columns} has no blocks of {block[0]} x {block[1]}: "
            "block_size must divide it"
        )
    tiles = dense.reshape(rows // block[0], block[0], columns // block[1], block[1])
    tiles = tiles.transpose(0, 2, 1, 3)
    row, column = np.nonzero(tiles.any((2, 3)))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(tiles)))])
    return tiles[row, column].copy(), column.astype("int32"), starts.astype("int32")
