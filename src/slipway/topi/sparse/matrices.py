"""Products with matrices given as one object, as `contrib.sparse` makes."""

from __future__ import annotations

from typing import Any

from slipway.errors import InvalidShapeError
from slipway.te.declare import compute
from slipway.te.tensor import Tensor
from slipway.topi.sparse.products import (
    sparse_times_dense,
    sparse_times_dense_transposed,
    with_bias,
)


def _parts(matrix: Any) -> tuple[Tensor, Tensor, Tensor]:
    try:
        return matrix.data, matrix.indices, matrix.indptr
    except AttributeError:
        raise InvalidShapeError(
            f"{matrix!r} is no sparse matrix: it has data, indices and indptr, as that of "
            "contrib.sparse.placeholder"
        ) from None


def csrmv(a: Any, x: Tensor, y: Tensor | None = None) -> Tensor:
    """Return a @ x + y for a sparse matrix a, a column x (N, 1) and one number y."""
    product = sparse_times_dense(*_parts(a), x)
    if y is None:
        return product
    return compute(product.shape, lambda i, j: product[i, j] + y[0], name="csrmv")  # type: ignore[no-any-return]


def csrmm(a: Any, b: Tensor, c: Tensor | None = None) -> Tensor:
    """Return a @ b + c for a sparse matrix a; c has one number for each row."""
    product = sparse_times_dense(*_parts(a), b)
    if c is None:
        return product
    return compute(product.shape, lambda i, j: product[i, j] + c[i], name="csrmm")  # type: ignore[no-any-return]


def dense(data: Any, weight: Any, bias: Tensor | None = None) -> Tensor:
    """Return data @ weight.T + bias, where one of both is sparse."""
    if isinstance(data, Tensor) == isinstance(weight, Tensor):
        raise InvalidShapeError("sparse.dense takes one dense matrix and one sparse")
    if isinstance(weight, Tensor):
        return with_bias(sparse_times_dense_transposed(*_parts(data), weight, True), bias)
    return with_bias(sparse_times_dense_transposed(*_parts(weight), data, False), bias)
