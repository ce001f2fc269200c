"""Data with its channels last, as onnxruntime's operators may have it."""

from __future__ import annotations

from typing import Any

from slipway import relay


def channels_first(value: Any) -> Any:
    """Return a value whose last axis comes second."""
    rank = value.tensor_type.rank
    return relay.transpose(value, (0, rank - 1, *range(1, rank - 1)))


def channels_last(value: Any) -> Any:
    """Return a value whose second axis comes last."""
    return relay.transpose(value, (0, *range(2, value.tensor_type.rank), 1))
