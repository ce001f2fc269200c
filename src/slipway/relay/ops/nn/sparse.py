"""Products with sparse matrices that are known when the graph is built.

The matrix is in CSR (data, indices, indptr), or an object with these attributes, as SciPy's.
It becomes a dense constant: what is saved is the file's size, not multiplications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Tuple, TupleWrapper
from slipway.relay.op_registry import BadArgument, const
from slipway.relay.ops.build import call, known, typed
from slipway.relay.ops.checks import need_rank

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

Array = np.ndarray[Any, Any]


def _parts(sparse_mat: Any) -> tuple[Array, Array, Array]:
    if hasattr(sparse_mat, "indptr"):
        sparse_mat = (sparse_mat.data, sparse_mat.indices, sparse_mat.indptr)
    if not isinstance(sparse_mat, Tuple | tuple | list):
        raise BadArgument("sparse_mat", f"is {sparse_mat!r}; write (data, indices, indptr)")
    fields = sparse_mat.fields if isinstance(sparse_mat, Tuple) else tuple(sparse_mat)
    if len(fields) != 3:
        raise BadArgument("sparse_mat", f"has {len(fields)} parts; CSR has data, indices, indptr")
    data, indices, indptr = (known("sparse_mat", f) for f in fields)
    if data.ndim not in (1, 3) or indices.ndim != 1 or indptr.ndim != 1:
        raise BadArgument("sparse_mat", "is neither CSR (data of 1 axis) nor BSR (of 3)")
    if len(indices) != len(data) or indptr[0] != 0 or indptr[-1] != len(data):
        raise BadArgument("sparse_mat", "is damaged: indptr does not count its elements")
    return data, indices, indptr


def _dense(sparse_mat: Any, columns: int) -> Array:
    data, indices, indptr = _parts(sparse_mat)
    block = data.shape[1:] or (1, 1)
    if columns % block[1] or (
        len(indices) and not 0 <= indices.min() <= indices.max() < columns // block[1]
    ):
        raise BadArgument("sparse_mat", f"has columns beyond the {columns} that there are")
    rows = len(indptr) - 1
    made = np.zeros((rows, columns // block[1], *block), data.dtype)
    made[np.repeat(np.arange(rows), np.diff(indptr)), indices] = data.reshape(-1, *block)
    return made.transpose(0, 2, 1, 3).reshape(rows * block[0], columns)


def sparse_dense(dense_mat: ExprLike, sparse_mat: Any, sparse_lhs: bool = False) -> Any:
    """Return dense_mat @ sparse_mat.T; with `sparse_lhs`, sparse_mat @ dense_mat.T."""
    x, own = typed(dense_mat)
    _parts(sparse_mat)  # what is wrong with it is said first
    need_rank("dense_mat", own, 2)
    matrix = const(_dense(sparse_mat, own.shape[1]))
    return call("nn.dense", matrix, x) if sparse_lhs else call("nn.dense", x, matrix)


def sparse_add(dense_mat: ExprLike, sparse_mat: Any) -> Any:
    """Return the sum."""
    x, own = typed(dense_mat)
    need_rank("dense_mat", own, 2)
    return call("add", x, const(_dense(sparse_mat, own.shape[1])))


def sparse_transpose(x: ExprLike) -> TupleWrapper:
    """Return (data, indices, indptr) of the transpose of a square matrix."""
    data, indices, indptr = _parts(x)
    if data.ndim != 1:
        raise BadArgument("x", "is blocked; only CSR has a transpose here")
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    counts = np.bincount(indices, minlength=len(indptr) - 1)
    starts = np.concatenate([[0], np.cumsum(counts)])
    made = (
        data[order], rows[order].astype(indices.dtype), starts.astype(indptr.dtype),
    )  # fmt: skip
    return TupleWrapper(Tuple(tuple(const(part) for part in made)), 3)
