"""``topi.random``: random numbers by keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay.ops import random
from slipway.relay.over_tensors import over_tensors

if TYPE_CHECKING:
    from slipway.relay.expr import Extents
    from slipway.te.tensor import Tensor

__all__ = [
    "multinomial", "normal", "threefry_generate", "threefry_split", "threefry_test_wrapping",
    "uniform",
]  # fmt: skip


def _plain(value: Any) -> Any:
    """Return a number of a constant, a tensor as it is."""
    return float(value) if hasattr(value, "value") else value


def threefry_generate(gen: Tensor, out_shape: Extents) -> Any:
    """Return the key to go on with, and random words (uint64) of a shape."""
    return over_tensors(random.threefry_generate)(gen, out_shape)


def threefry_split(gen: Tensor) -> Any:
    """Return two keys that are to be used in place of one."""
    return over_tensors(random.threefry_split)(gen)


def threefry_test_wrapping(target: object, device: object) -> bool:
    """Return whether unsigned sums wrap, as they do in all code that is generated here."""
    del target, device
    return True


def uniform(gen: Tensor, low: Any, high: Any, out_shape: Extents, out_dtype: str) -> Any:
    """Return the key to go on with, and numbers from `low` on to below `high`."""
    return over_tensors(random.uniform)(gen, out_shape, out_dtype, _plain(low), _plain(high))


def normal(gen: Tensor, mean: Any, scale: Any, out_shape: Extents, out_dtype: str) -> Any:
    """Return the key to go on with, and numbers of a normal distribution."""
    return over_tensors(random.normal)(gen, out_shape, out_dtype, _plain(mean), _plain(scale))


def multinomial(gen: Tensor, probs: Tensor, num_samples: int) -> Any:
    """Return the key to go on with, and positions drawn with what stands there in a row."""
    return over_tensors(random.multinomial)(gen, probs, num_samples)
