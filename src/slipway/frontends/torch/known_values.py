"""Operators without a converter whose arguments are constants: torch computes their results.

So are the weights of a parametrization: the exponential of a matrix, a Householder product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from slipway.frontends.budget import take_bytes
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.torch.complex import Complex, complex_constant
from slipway.relay.expr import Constant
from slipway.runtime.ndarray import array_of_tensor


def known_results(node: Any, given: Sequence[Any], values: Mapping[Any, Any]) -> list[Any]:
    """Return the results of a node as constants.

    Raises UnsupportedNode where an input is no constant, or the operator draws or writes.
    """
    import torch

    schema, found = node.target._schema, node.meta.get("val")
    several = list(found) if isinstance(found, (list, tuple)) else [found]
    is_pure = schema.name.startswith("aten::") and not schema.is_mutable
    is_pure = is_pure and torch.Tag.nondeterministic_seeded not in node.target.tags
    is_window = schema.name.endswith("_window")  # of numbers alone
    if not (
        (given or is_window)
        and is_pure
        and all(map(_is_constant, given))
        and all(map(_is_fixed, several))
    ):
        raise UnsupportedNode("there is no converter for it")
    for one in several:
        take_bytes(prod(one.shape) * one.element_size())
    with torch.no_grad():
        made = node.target(*_tensors(node.args, values), **_tensors(node.kwargs, values))
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    return [_constant(tensor) for tensor in made]


def _is_constant(value: Any) -> bool:
    if isinstance(value, Complex):
        return isinstance(value.real, Constant) and isinstance(value.imag, Constant)
    return isinstance(value, Constant)


def _is_fixed(fake: Any) -> bool:
    """Return whether a result is a tensor whose sizes are numbers."""
    return hasattr(fake, "element_size") and all(type(size) is int for size in fake.shape)


def _tensors(value: Any, values: Mapping[Any, Any]) -> Any:
    """Return an argument with torch's tensors in the places of constants."""
    import torch

    if isinstance(value, (list, tuple)):
        return [_tensors(v, values) for v in value]
    if isinstance(value, dict):
        return {key: _tensors(v, values) for key, v in value.items()}
    if not hasattr(value, "users"):
        return value
    known: Any = values[value]
    if isinstance(known, Complex):
        real, imag = (part.array for part in (known.real, known.imag) if isinstance(part, Constant))
        array = real + 1j * imag
        array = array.astype("complex64" if real.dtype == np.float32 else "complex128")
    else:
        array = known.array
    return torch.tensor(array).to(value.meta["val"].dtype)


def _constant(tensor: Any) -> Any:
    array = array_of_tensor(tensor.contiguous())
    return complex_constant(array) if array.dtype.kind == "c" else Constant(array)
