"""Convolutions with weights of many zeros: they stay dense here."""

from __future__ import annotations

from typing import Any

from slipway.relay.data_dep_optimization import bsr_dense
from slipway.relay.expr import Function


def convert(
    func: Function,
    params: dict[str, Any],
    blocksize: tuple[int, int],
    sparsity_threshold: float,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> tuple[Function, dict[str, Any]]:
    """Return the model as it is, with a warning; see `bsr_dense.convert`."""
    del layout, kernel_size
    return bsr_dense.convert(func, params, blocksize, sparsity_threshold)
