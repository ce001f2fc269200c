"""``topi``: elements put where other tensors say, and views of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay import op_registry
from slipway.relay.ops.tensor import arithmetic, indexing, sets, sparse_tensors, spectral
from slipway.relay.ops.tensor import einsum as by_labels
from slipway.relay.over_tensors import over_tensors
from slipway.topi.utils import get_const_int

if TYPE_CHECKING:
    from slipway.relay.expr import Extents
    from slipway.te.tensor import Tensor

__all__ = [
    "argwhere", "einsum", "fixed_point_multiply", "invert_permutation", "layout_transform",
    "matrix_set_diag", "reinterpret", "scatter", "scatter_add", "scatter_nd", "searchsorted",
    "sliding_window", "sparse_reshape", "sparse_to_dense", "stft",
    "strided_set", "unique",
]  # fmt: skip


def einsum(subscripts: str, *operand: Tensor) -> Any:
    """Return the sums of products that numpy.einsum gives."""
    return over_tensors(by_labels.einsum)(list(operand), subscripts)


def argwhere(output_shape: Tensor, condition: Tensor) -> Any:
    """Return the positions of elements that are not zero, as many as `output_shape` has rows."""
    count = get_const_int(output_shape.shape[0])
    return over_tensors(sets.positions_of)(condition, count)


def unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> Any:
    """Return the different elements of a vector, where the first of each is, and their number.

    The results are (elements, positions, the place of each element of the data among them, their
    number, and with `return_counts` how often each is there), as long as the data.
    """
    return over_tensors(sets.unique)(data, is_sorted, return_counts)


def sparse_reshape(
    sparse_indices: Tensor, prev_shape: Tensor, new_shape: Tensor,
    new_sparse_indices_shape: Extents, new_shape_shape: Extents,
) -> Any:  # fmt: skip
    """Return the positions of elements in another shape, and that shape; one -1 is what remains."""
    return over_tensors(sparse_tensors.sparse_reshape)(sparse_indices, prev_shape, new_shape)


def stft(
    data: Tensor, n_fft: int, hop_length: int, win_length: int, window: Tensor, normalized: bool,
    onesided: bool, output_shape: Extents,
) -> Any:  # fmt: skip
    """Return the Fourier transforms of windows over a signal: (batch, frequency, frame, 2)."""
    return over_tensors(spectral.stft)(
        data, n_fft, hop_length, win_length, window, normalized, onesided
    )


def scatter(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Any:
    """Return `data` with elements along `axis` replaced."""
    return over_tensors(indexing.scatter)(data, indices, updates, axis)


def scatter_add(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Any:
    """Return `data` with numbers added to elements along `axis`."""
    return over_tensors(indexing.scatter_add)(data, indices, updates, axis)


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Any:
    """Return `data` with slices replaced ("update") or added to ("add")."""
    return over_tensors(op_registry.make("scatter_nd"))(data, indices, updates, mode)


def searchsorted(
    sorted_sequence: Tensor, values: Any, right: bool = False, out_dtype: str = "int64"
) -> Any:
    """Return where values would be inserted into rows that rise."""
    return over_tensors(indexing.searchsorted)(sorted_sequence, values, right, out_dtype)


def sliding_window(data: Tensor, axis: int, window_shape: Extents, strides: Extents) -> Any:
    """Return the windows of the axes from `axis` on."""
    return over_tensors(indexing.sliding_window)(data, axis, window_shape, strides)


def strided_set(a: Any, v: Any, begin: Any, end: Any, strides: Any = None) -> Any:
    """Return `a` with a strided slice replaced by `v`."""
    return over_tensors(indexing.strided_set)(a, v, begin, end, strides)


def sparse_to_dense(
    sparse_indices: Any, output_shape: Extents, sparse_values: Any, default_value: Any = 0
) -> Any:
    """Return a tensor of `default_value` with values at some places."""
    return over_tensors(indexing.sparse_to_dense)(
        sparse_indices, output_shape, sparse_values, default_value
    )


def matrix_set_diag(data: Tensor, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """Return matrices with diagonals replaced."""
    return over_tensors(indexing.matrix_set_diag)(data, diagonal, k, align)


def invert_permutation(data: Tensor) -> Any:
    """Return where each number is in a permutation."""
    return over_tensors(indexing.invert_permutation)(data)


def layout_transform(array: Any, src_layout: str, dst_layout: str) -> Any:
    """Return a tensor in another layout, NCHW in NCHW16c say."""
    return over_tensors(op_registry.make("layout_transform"))(array, src_layout, dst_layout)


def reinterpret(x: Tensor, dtype: str) -> Any:
    """Return the bits of `x` as another dtype of that size."""
    return over_tensors(op_registry.make("reinterpret"))(x, dtype)


def fixed_point_multiply(x: Tensor, multiplier: int, shift: int) -> Any:
    """Return x * multiplier * 2**(shift - 31), rounded."""
    return over_tensors(arithmetic.fixed_point_multiply)(x, multiplier, shift)
