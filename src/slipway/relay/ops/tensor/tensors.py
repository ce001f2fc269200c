"""Helpers for te computes: broadcasting reads, row-major index arithmetic.

Everything here imports te on use only, so that types and references work without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway.ir import expr as E
from slipway.relay.dims import SymbolDim, is_open, size_of

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike
    from slipway.relay.types import TensorType

Tensor = Any  # a te.Tensor
Index = Any  # an index expression or int


def te() -> Any:
    """Return the te package."""
    import slipway.te

    return slipway.te


class NamedSteps:
    """Names of values with several uses: without one each use spells the value out again."""

    def __init__(self) -> None:
        self._named: list[tuple[E.Var, Any]] = []

    def name(self, value: Any) -> E.Var:
        """Return a variable that has the value."""
        variable = E.Var(f"step{len(self._named)}", value.dtype)
        self._named.append((variable, value))
        return variable

    def around(self, value: Any) -> Any:
        """Return a value in which the variables have their meaning; others begin anew."""
        for variable, meaning in reversed(self._named):
            value = E.Let(variable, meaning, value)
        self._named.clear()
        return value


def wide(dtype: str) -> str:
    """Return the dtype to sum values of `dtype` in: float32 for the halves, else its own."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """Return a te tensor's shape as Python ints."""
    return tuple(size_of(d) for d in tensor.shape)


def value_of(extent: int) -> Any:
    """Return an extent as te computes with it: a number, or the formula of an open one."""
    return extent.formula if isinstance(extent, SymbolDim) else extent


def read_broadcast(tensor: Tensor, out_indices: Sequence[Index]) -> Any:
    """Return the element of `tensor` that meets `out_indices` under NumPy broadcasting."""
    shape = shape_of(tensor)
    tail = out_indices[len(out_indices) - len(shape) :]
    return tensor(*(0 if d == 1 else i for d, i in zip(shape, tail, strict=True)))


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return row-major strides in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def flat_index(shape: Sequence[int], indices: Sequence[Index]) -> Index:
    """Return the row-major position of `indices` in `shape`."""
    position: Index = 0
    for extent, index in zip(shape, indices, strict=True):
        position = (
            index if isinstance(position, int) and position == 0 else position * extent + index
        )
    return position


def number(value: Any, dtype: str) -> Any:
    """Return a count of elements as a te value of `dtype`: a constant, or what it is when open."""
    return value.formula.astype(dtype) if is_open(value) else te().const(value, dtype)


def unflatten(position: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """Return the indices in `shape` of a row-major position."""
    indices: list[Index] = []
    for axis, (extent, stride) in enumerate(zip(shape, strides_of(shape), strict=True)):
        if extent == 1:
            indices.append(0)
            continue
        index = position if stride == 1 else position // stride
        outermost = all(d == 1 for d in shape[:axis])
        indices.append(index if outermost else index % extent)
    return tuple(indices)


def _equal_products(
    out_shape: Sequence[int], i: int, in_shape: Sequence[int], j: int
) -> tuple[list[int], list[int]]:
    """Return the fewest axes from i and j on whose products are equal: open sizes have no order."""
    outs, ins = len(out_shape) - i, len(in_shape) - j
    for count in range(2, outs + ins):
        for taken in range(max(1, count - ins), min(outs, count - 1) + 1):
            end = i + taken, j + count - taken
            if prod(out_shape[i : end[0]]) == prod(in_shape[j : end[1]]):
                return list(range(i, end[0])), list(range(j, end[1]))
    return list(range(i, i + outs)), list(range(j, j + ins))


def reshape_indices(
    out_shape: Sequence[int], out_indices: Sequence[Index], in_shape: Sequence[int]
) -> tuple[Index, ...]:
    """Return where a reshaped tensor finds its element, keeping unchanged axes free of division.

    The two shapes are cut into the shortest groups of axes with equal products; a group with one
    axis on both sides passes its index through.
    """
    result: list[Index] = []
    i = j = 0
    while i < len(out_shape) or j < len(in_shape):
        outs, ins = [i], [j]
        if i >= len(out_shape):
            result.append(0)  # a trailing input axis of extent 1
            j += 1
            continue
        if j >= len(in_shape):
            break  # trailing output axes of extent 1
        left, right = out_shape[i], in_shape[j]
        if any(map(is_open, (*out_shape, *in_shape))):
            outs, ins = _equal_products(out_shape, i, in_shape, j)
            left = right
        while left != right:
            if left < right:
                outs.append(outs[-1] + 1)
                left *= out_shape[outs[-1]]
            else:
                ins.append(ins[-1] + 1)
                right *= in_shape[ins[-1]]
        i, j = outs[-1] + 1, ins[-1] + 1
        if len(outs) == len(ins) == 1:
            result.append(out_indices[outs[0]])
        else:
            position = flat_index([out_shape[a] for a in outs], [out_indices[a] for a in outs])
            result.extend(unflatten(position, [in_shape[a] for a in ins]))
    return tuple(result)


def elementwise(
    name: str, shape: Sequence[PrimExprLike], function: Callable[..., Any], tag: str = "elemwise"
) -> Tensor:
    """Return ``te.compute`` of `function` over `shape`; `tag` is the classic stage tag."""
    return te().compute(tuple(shape), function, name=name, tag=tag)


def injective(name: str, out: TensorType, function: Callable[..., Any]) -> list[Tensor]:
    """Return the one te stage of an injective operator with the result type `out`."""
    return [te().compute(out.shape, function, name=f"T_{name}", tag="injective")]
