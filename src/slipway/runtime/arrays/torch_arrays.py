"""PyTorch's tensors as NumPy arrays and back, bfloat16 included, which torch gives to no array."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.runtime.ndarray import numpy_dtype

Array = np.ndarray[Any, Any]


def array_of_tensor(tensor: Any) -> Array:
    """Return the values of a tensor, which may ask for gradients, lie elsewhere, or be a view."""
    held = tensor.detach().cpu().resolve_conj().resolve_neg()
    if str(held.dtype) != "torch.bfloat16":
        return np.asarray(held.numpy(), order="C")
    import torch

    bits: Array = held.contiguous().view(torch.int16).numpy()
    return bits.view(numpy_dtype("bfloat16"))


def tensor_of_array(array: Array) -> Any:
    """Return a tensor with a copy of an array's values."""
    import torch

    copied = np.array(array)
    if copied.dtype.name != "bfloat16":
        return torch.from_numpy(copied)
    return torch.from_numpy(copied.view(np.int16)).view(torch.bfloat16)
