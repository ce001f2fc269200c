"""Tensors that a library's packed functions compute: matrix products, random numbers.

The functions are those of `slipway.runtime.libraries.library_functions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.ir.calls import call_packed
from slipway.runtime.libraries.library_functions import PREFIX, register
from slipway.runtime.packed_func import register_func
from slipway.te.declare import extern
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.ir.expr import ShapeLike


def matmul(
    lhs: Tensor, rhs: Tensor, transa: bool = False, transb: bool = False, **options: Any
) -> Tensor:
    """Return the product of two matrices, either of them transposed first, as a BLAS computes it.

    `options` are those of ``te.extern``.
    """
    return _product("cblas.matmul", (), lhs, rhs, transa, transb, options)


def batch_matmul(
    lhs: Tensor,
    rhs: Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **options: Any,
) -> Tensor:
    """Return the products of two stacks of matrices; `iterative` makes no difference here."""
    return _product("cblas.batch_matmul", (lhs.shape[0],), lhs, rhs, transa, transb, options)


def _product(
    function: str,
    batch: tuple[Any, ...],
    lhs: Tensor,
    rhs: Tensor,
    transa: bool,
    transb: bool,
    options: dict[str, Any],
) -> Tensor:
    register(register_func)
    rows = lhs.shape[-1] if transa else lhs.shape[-2]
    columns = rhs.shape[-2] if transb else rhs.shape[-1]
    made: Tensor = extern(
        (*batch, rows, columns),
        [lhs, rhs],
        lambda ins, outs: call_packed(
            PREFIX + function, ins[0], ins[1], outs[0], bool(transa), bool(transb)
        ),
        **{"name": "C", **options},
    )
    return made


def randint(low: int, high: int, size: ShapeLike, dtype: str = "int32") -> Tensor:
    """Return random integers of [low, high), new ones at every run."""
    return _drawn("randint", int(low), int(high), size, dtype)


def uniform(low: float, high: float, size: ShapeLike) -> Tensor:
    """Return random numbers spread evenly over [low, high)."""
    return _drawn("uniform", float(low), float(high), size, "float32")


def normal(loc: float, scale: float, size: ShapeLike) -> Tensor:
    """Return random numbers of the normal distribution around `loc`."""
    return _drawn("normal", float(loc), float(scale), size, "float32")


def _drawn(function: str, first: Any, second: Any, size: Any, dtype: str) -> Tensor:
    register(register_func)
    made: Tensor = extern(
        size,
        [],
        lambda ins, outs: call_packed(f"{PREFIX}random.{function}", first, second, outs[0]),
        name=function,
        dtype=dtype,
    )
    return made
