"""Products with sparse matrices that are known when the code runs: CSR, and BSR in blocks.

A matrix is (data, indices, indptr): row i has the elements (blocks, of 3-dimensional data) number
indptr[i] to indptr[i + 1], in the columns that indices says.
"""

from __future__ import annotations

from typing import Any

from slipway.errors import InvalidShapeError
from slipway.ir import builder, ops
from slipway.te.declare import compute, extern
from slipway.te.tensor import Tensor
from slipway.topi.utils import need_rank


def _block(data: Tensor) -> tuple[Any, Any]:
    if data.ndim not in (1, 3):
        raise InvalidShapeError(
            f"a sparse matrix has data of 1 dimension (CSR) or 3 (BSR), got {data.shape}"
        )
    return (data.shape[1], data.shape[2]) if data.ndim == 3 else (1, 1)


def _blocks_of_rows(
    ib: Any, data: Any, indices: Any, indptr: Any, is_blocked: bool, rows: Any, visit: Any
) -> None:
    """Loop over block rows; ``visit(row, walk)`` may call ``walk(f)`` for f(column, element)."""
    with ib.for_range(0, rows, "row", kind="parallel") as row:

        def walk(use: Any) -> None:
            first = ops.cast(indptr[row], "int32")
            last = ops.cast(indptr[row + 1], "int32")
            with ib.for_range(0, last - first, "k") as k:
                position = first + k
                column = ops.cast(indices[position], "int32")
                use(column, lambda r, c: data[position, r, c] if is_blocked else data[position])

        visit(row, walk)


def sparse_times_dense_transposed(
    data: Tensor, indices: Tensor, indptr: Tensor, dense: Tensor, sparse_first: bool
) -> Tensor:
    """Return S @ dense.T (`sparse_first`), or its transpose, dense @ S.T."""
    high, wide = _block(data)
    block_rows, count = ops.sub(indptr.shape[0], 1), dense.shape[0]
    rows = ops.mul(block_rows, high)
    shape = (rows, count) if sparse_first else (count, rows)

    def body(ins: Any, outs: Any) -> Any:
        ib = builder.create()
        elements, columns, starts, x = (ib.buffer_ptr(b) for b in ins)
        out = ib.buffer_ptr(outs[0])

        def visit(row: Any, walk: Any) -> None:
            with ib.for_range(0, count, "n") as n, ib.for_range(0, high, "r") as r:
                at = (row * high + r, n) if sparse_first else (n, row * high + r)
                total = ib.allocate(data.dtype, (1,), "total", scope="local")
                total[0] = ops.const(0, data.dtype)

                def use(column: Any, element: Any) -> None:
                    with ib.for_range(0, wide, "c") as c:
                        total[0] = total[0] + element(r, c) * x[n, column * wide + c]

                walk(use)
                out[at] = total[0]

        _blocks_of_rows(ib, elements, columns, starts, data.ndim == 3, block_rows, visit)
        return ib.get()

    return extern(  # type: ignore[no-any-return]
        [shape], [data, indices, indptr, dense], body, dtype=[data.dtype], name="sparse_dense",
        tag="sparse_dense",
    )  # fmt: skip


def sparse_times_dense(data: Tensor, indices: Tensor, indptr: Tensor, dense: Tensor) -> Tensor:
    """Return S @ dense, for S in CSR."""
    if data.ndim != 1:
        raise InvalidShapeError("csrmm takes a matrix in CSR, whose data has 1 dimension")
    rows, count = ops.sub(indptr.shape[0], 1), dense.shape[1]

    def body(ins: Any, outs: Any) -> Any:
        ib = builder.create()
        elements, columns, starts, x = (ib.buffer_ptr(b) for b in ins)
        out = ib.buffer_ptr(outs[0])

        def visit(row: Any, walk: Any) -> None:
            with ib.for_range(0, count, "n") as n:
                out[row, n] = ops.const(0, data.dtype)

            def use(column: Any, element: Any) -> None:
                with ib.for_range(0, count, "n") as n:
                    out[row, n] = out[row, n] + element(0, 0) * x[column, n]

            walk(use)

        _blocks_of_rows(ib, elements, columns, starts, False, rows, visit)
        return ib.get()

    return extern(  # type: ignore[no-any-return]
        [(rows, count)], [data, indices, indptr, dense], body, dtype=[data.dtype], name="csrmm",
        tag="csrmm",
    )  # fmt: skip


def sparse_dense_sp_rhs(
    data: Tensor, weight_data: Tensor, weight_indices: Tensor, weight_indptr: Tensor
) -> Tensor:
    """Return data @ weight.T; the weight is sparse."""
    return sparse_times_dense_transposed(weight_data, weight_indices, weight_indptr, data, False)


def sparse_dense_sp_lhs(
    data_data: Tensor, data_indices: Tensor, data_indptr: Tensor, weight: Tensor
) -> Tensor:
    """Return data @ weight.T; the data is sparse."""
    return sparse_times_dense_transposed(data_data, data_indices, data_indptr, weight, True)


def sparse_dense(
    dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor,
    sparse_lhs: bool = False,
) -> Tensor:  # fmt: skip
    """Return dense @ sparse.T; with `sparse_lhs`, sparse @ dense.T."""
    product = sparse_times_dense_transposed
    return product(sparse_data, sparse_indices, sparse_indptr, dense_data, sparse_lhs)


def sparse_add(
    dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor
) -> Tensor:
    """Return the sum of a dense matrix and one in CSR."""
    need_rank("the dense matrix of sparse_add", dense_data, 2)
    rows, columns = dense_data.shape

    def body(ins: Any, outs: Any) -> Any:
        ib = builder.create()
        x, elements, positions, starts = (ib.buffer_ptr(b) for b in ins)
        out = ib.buffer_ptr(outs[0])

        def visit(row: Any, walk: Any) -> None:
            with ib.for_range(0, columns, "c") as c:
                out[row, c] = x[row, c]

            def use(column: Any, element: Any) -> None:
                out[row, column] = out[row, column] + element(0, 0)

            walk(use)

        _blocks_of_rows(ib, elements, positions, starts, False, rows, visit)
        return ib.get()

    return extern(  # type: ignore[no-any-return]
        [dense_data.shape], [dense_data, sparse_data, sparse_indices, sparse_indptr], body,
        dtype=[dense_data.dtype], name="sparse_add", tag="sparse_add",
    )  # fmt: skip


def sparse_transpose(
    sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor
) -> list[Tensor]:
    """Return the CSR triple of the transpose of a square matrix."""
    if sparse_data.ndim != 1:
        raise InvalidShapeError("sparse_transpose takes a matrix in CSR")
    size = ops.sub(sparse_indptr.shape[0], 1)

    def body(ins: Any, outs: Any) -> Any:
        ib = builder.create()
        elements, columns, starts = (ib.buffer_ptr(b) for b in ins)
        made, rows, begins = (ib.buffer_ptr(b) for b in outs)
        kind, pointer = sparse_indices.dtype, sparse_indptr.dtype
        with ib.for_range(0, size + 1, "i") as i:
            begins[i] = ops.const(0, pointer)
        with ib.for_range(0, ops.cast(starts[size], "int32"), "k") as k:
            at = ops.cast(columns[k], "int32") + 1
            begins[at] = begins[at] + ops.const(1, pointer)
        with ib.for_range(0, size, "i") as i:
            begins[i + 1] = begins[i + 1] + begins[i]
        # Each row's beginning moves on while it is filled, and is set back at last.
        with ib.for_range(0, size, "row") as row:
            first = ops.cast(starts[row], "int32")
            with ib.for_range(0, ops.cast(starts[row + 1], "int32") - first, "k") as k:
                column = ops.cast(columns[first + k], "int32")
                position = ib.allocate("int32", (1,), "place", scope="local")
                position[0] = ops.cast(begins[column], "int32")
                made[position[0]] = elements[first + k]
                rows[position[0]] = ops.cast(row, kind)
                begins[column] = begins[column] + ops.const(1, pointer)
        with ib.for_range(0, size, "i") as i:
            begins[size - i] = begins[size - i - 1]
        begins[0] = ops.const(0, pointer)
        return ib.get()

    triple = (sparse_data, sparse_indices, sparse_indptr)
    return list(
        extern(
            [t.shape for t in triple], list(triple), body, dtype=[t.dtype for t in triple],
            name="sparse_transpose", tag="sparse_transpose",
        )
    )  # fmt: skip


def with_bias(product: Tensor, bias: Tensor | None) -> Tensor:
    """Return the product with one number added to each column; as it is without."""
    if bias is None:
        return product
    return compute(product.shape, lambda i, j: product[i, j] + bias[j], name="bias")  # type: ignore[no-any-return]
