"""Functions of topi as users call them; see `slipway.arguments.explained`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway import arguments
from slipway.ir.expr import PrimExpr
from slipway.te.tensor import Tensor


def explained(function: Any) -> Any:
    """Return `function` with arguments of a wrong kind as errors that name them."""
    return arguments.explained(function, KINDS)


def explain_all(names: dict[str, Any], listed: Sequence[str]) -> None:
    """Do so with the functions of a facade."""
    names.update({name: explained(names[name]) for name in listed})


def _is_scalar(value: object) -> bool:
    return isinstance(value, PrimExpr) or arguments.is_number(value)


def _is_extent(value: object) -> bool:
    return isinstance(value, PrimExpr) or arguments.is_whole(value)


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


TENSOR = "a tensor: te.placeholder, or what te.compute returned"
KINDS = {
    **arguments.kinds_of(_is_extent),
    "Tensor": (_is_tensor, TENSOR),
    "Sequence[Tensor]": (arguments.are(_is_tensor), "a list of tensors"),
    "Sequence[Any]": (arguments.are(lambda value: True), "a list"),
    "PrimExpr": (_is_scalar, "a number"),
    "PrimExprLike": (_is_scalar, "a number or an expression"),
    "Sequence[PrimExprLike]": (arguments.are(_is_scalar), "a list of numbers or expressions"),
    "ShapeLike": (
        lambda value: _is_extent(value) or arguments.are(_is_extent)(value), "a shape: numbers"
    ),
}  # fmt: skip
