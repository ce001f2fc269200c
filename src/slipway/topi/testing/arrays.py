"""NumPy references of products, losses, selections and parts of arrays, under classic names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


def batch_matmul(
    x: Array, y: Array, out_dtype: str | None = None, trans_x: bool = False, trans_y: bool = True
) -> Any:
    """Return the product of each pair of matrices; one batch of size 1 goes with any other."""
    left = x.swapaxes(1, 2) if trans_x else x
    right = y.swapaxes(1, 2) if trans_y else y
    kind = out_dtype or x.dtype
    wide = "float64" if np.dtype(kind).kind == "f" else "int64"
    return np.matmul(left.astype(wide), right.astype(wide)).astype(kind)


def dense(
    x: Array,
    y: Array,
    bias: Array,
    use_bias: bool = False,
    use_relu: bool = False,
    out_dtype: str | None = None,
) -> Any:
    """Return ``x @ y.T``, with a bias and a ReLU where asked for."""
    kind = out_dtype or x.dtype
    made = np.dot(x.astype(kind), y.T.astype(kind))
    made = made + bias if use_bias else made
    return np.maximum(made, 0) if use_relu else made


def batch_norm(
    x: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array, axis: int,
    epsilon: float, center: bool, scale: bool,
) -> Any:  # fmt: skip
    """Return [normalised x, mean, variance] for given mean and variance."""
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    made = (x - moving_mean.reshape(shape)) / np.sqrt(moving_var.reshape(shape) + epsilon)
    made = made * gamma.reshape(shape) if scale else made
    made = made + beta.reshape(shape) if center else made
    return [made, moving_mean, moving_var]


def l2_normalize_python(a_np: Array, eps: float, axis: Any = None) -> Any:
    """Return the data over the root of its sum of squares along `axis`, at least `eps`."""
    axes = tuple(axis) if isinstance(axis, list) else axis
    return a_np / np.sqrt(np.maximum(np.square(a_np).sum(axes, keepdims=True), eps))


def lrn_python(a_np: Array, size: int, axis: int, bias: float, alpha: float, beta: float) -> Any:
    """Return the data over ``(bias + alpha / size * sum of squares) ** beta`` of its window."""
    radius, length = size // 2, a_np.shape[axis]
    squares = np.moveaxis(np.square(a_np), axis, 0)
    sums = [squares[max(0, i - radius) : i + radius + 1].sum(0) for i in range(length)]
    return a_np / (bias + alpha / size * np.moveaxis(np.stack(sums), 0, axis)) ** beta


def one_hot(
    indices: Array, on_value: float, off_value: float, depth: int, axis: int, dtype: str
) -> Any:
    """Return `on_value` at each index along a new axis of size `depth`, `off_value` elsewhere."""
    position = indices.ndim if axis == -1 else axis
    numbers = np.arange(depth).reshape([-1] + [1] * (indices.ndim - position))
    hit = np.expand_dims(indices, position) == numbers
    return np.where(hit, on_value, off_value).astype(dtype)


def sequence_mask(data: Array, valid_length: Array, mask_value: float, axis: int) -> Any:
    """Return the data with `mask_value` beyond each sequence's length.

    Of the axes 0 and 1 one is the batch, and `axis` the place in a sequence.
    """
    length = np.expand_dims(valid_length, axis).reshape(
        [valid_length.size if n == 1 - axis else 1 for n in range(data.ndim)]
    )
    positions = np.arange(data.shape[axis]).reshape(
        [data.shape[axis] if n == axis else 1 for n in range(data.ndim)]
    )
    return np.where(positions < length, data, np.asarray(mask_value, data.dtype))


def searchsorted_ref(sorted_sequence: Array, values: Array, right: bool, out_dtype: str) -> Any:
    """Return where each value goes in the sorted row beside it."""
    rows = values.reshape(-1, values.shape[-1])
    base = np.broadcast_to(sorted_sequence, (*values.shape[:-1], sorted_sequence.shape[-1]))
    found = [
        np.searchsorted(one, row, side="right" if right else "left")
        for one, row in zip(base.reshape(-1, base.shape[-1]), rows, strict=True)
    ]
    return np.stack(found).astype(out_dtype).reshape(values.shape)


def gather_python(data: Array, axis: int, indices: Array) -> Any:
    """Return the element at each index along `axis`."""
    return np.take_along_axis(data, indices, axis)


def gather_nd_python(a_np: Array, indices_np: Array) -> Any:
    """Return the parts at indices whose first axis runs over the axes of the data."""
    return a_np[tuple(indices_np.astype("int64"))]


def matrix_set_diag(input_np: Array, diagonal: Array, k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """Return the matrices with diagonals number k (or k[0] to k[1]) replaced.

    `align` says for diagonals above and below the main one at which end short ones are filled.
    """
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    made = input_np.copy()
    rows, columns = input_np.shape[-2:]
    several = low != high
    widest = diagonal.shape[-1]
    for offset in range(low, high + 1):
        length = min(rows + min(offset, 0), columns - max(offset, 0))
        side = align.split("_")[0 if offset >= 0 else 1]
        begin = widest - length if side == "RIGHT" and several else 0
        source = diagonal[..., high - offset, :] if several else diagonal
        positions = np.arange(length)
        row, column = positions + max(-offset, 0), positions + max(offset, 0)
        made[..., row, column] = source[..., begin : begin + length]
    return made


def nll_loss(
    predictions: Array, targets: Array, weights: Array, reduction: str = "mean",
    ignore_index: int = -100,
) -> Any:  # fmt: skip
    """Return minus the weighted prediction of each target's class, or their mean or sum."""
    kept = targets != ignore_index
    safe = np.where(kept, targets, 0)
    weight = np.where(kept, weights[safe], 0).astype(predictions.dtype)
    loss = -np.take_along_axis(predictions, np.expand_dims(safe, 1), 1).squeeze(1) * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return loss.sum() if reduction == "sum" else loss


def slice_axis_python(data: Array, axis: int, begin: int, end: int | None = None) -> Any:
    """Return the part from `begin` to `end` of one axis."""
    return data[tuple(slice(begin, end) if n == axis % data.ndim else slice(None)
                      for n in range(data.ndim))]  # fmt: skip


def strided_slice_python(
    data: Array,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None,
    slice_mode: str = "end",
    axes: Sequence[int] | None = None,
) -> Any:
    """Return a part of the data; in `slice_mode` "size", `end` holds sizes, -1 for all."""
    parts = [slice(None)] * data.ndim
    for number, axis in enumerate(range(len(begin)) if axes is None else axes):
        first = begin[number]
        last = end[number] if number < len(end) else None
        step = strides[number] if strides and number < len(strides) else None
        if slice_mode == "size":
            step, last = None, None if last is None or last < 0 else first + last
        parts[axis] = slice(first, last, step)
    return data[tuple(parts)]


def strided_set_python(
    data: Array, v: Array, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None
) -> Any:
    """Return the data with `v` in a part of it."""
    made = data.copy()
    strided_slice_python(made, begin, end, strides)[...] = v
    return made
