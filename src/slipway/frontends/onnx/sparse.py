"""Sparse tensors of a model, expanded: no operator here reads less than all of a tensor."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from slipway.errors import ModelError
from slipway.frontends.budget import take_bytes
from slipway.frontends.onnx.reader import array_of


def dense_array(tensor: Any, name: str = "") -> np.ndarray[Any, Any]:
    """Return the NumPy array of a SparseTensorProto, whose rest is zeros.

    `name` is that of the node that holds it; an initializer has one of its own.  The indices are
    positions among all elements, or one for each axis, ascending and once each.
    """
    name = tensor.values.name or name
    shape = tuple(tensor.dims)
    values, indices = array_of(tensor.values), array_of(tensor.indices)
    count = values.size
    if not shape or min(shape) < 0 or values.ndim != 1:
        raise _damaged(name, f"its shape is {shape}, of its values {values.shape}")
    if indices.dtype != np.int64 or indices.shape not in ((count,), (count, len(shape))):
        raise _damaged(
            name, f"its indices are {indices.dtype} of shape {indices.shape}, for {count} values"
        )
    take_bytes(prod(shape) * values.itemsize)
    bounds = (prod(shape),) if indices.ndim == 1 else shape
    positions = indices.reshape(count, len(bounds))
    if np.any(positions < 0) or np.any(positions >= np.array(bounds)):
        raise _damaged(name, f"an index is outside of its shape {shape}")
    at = np.ravel_multi_index(tuple(positions.T), bounds) if count else positions.reshape(0)
    if np.any(at[1:] <= at[:-1]):
        raise _damaged(name, "its indices do not ascend")
    made = np.zeros(prod(shape), values.dtype)
    made[at] = values
    return made.reshape(shape)


def _damaged(name: str, what: str) -> ModelError:
    return ModelError(f"the sparse tensor {name!r} is damaged: {what}")
