"""Compiled functions that take another framework's tensors (classic ``contrib.dlpack``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.runtime.ndarray import from_dlpack


def convert_func(
    tvm_func: Callable[..., Any],
    tensor_type: type,
    to_dlpack_func: Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:
    """Return `tvm_func` as a function that also takes tensors of `tensor_type`, without a copy.

    `to_dlpack_func` makes a DLPack capsule of a tensor; without it, ``__dlpack__`` is asked.
    """

    def taken(value: Any) -> Any:
        if not isinstance(value, tensor_type):
            return value
        return from_dlpack(value if to_dlpack_func is None else to_dlpack_func(value))

    return lambda *args: tvm_func(*(taken(arg) for arg in args))


def to_pytorch_func(tvm_func: Callable[..., Any]) -> Callable[..., Any]:
    """Return `tvm_func` as a function that also takes PyTorch tensors, without a copy.

    Tensors that are not contiguous are refused: a copy would take the results with it.
    """
    import torch

    def capsule(tensor: Any) -> Any:
        return torch.utils.dlpack.to_dlpack(tensor)

    return convert_func(tvm_func, torch.Tensor, capsule)
