"""Checks that type relations share; each raises `BadArgument` naming the argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from slipway import dtypes
from slipway.relay.dims import is_open
from slipway.relay.expr import Constant
from slipway.relay.op_registry import BadArgument
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Extents


def along_axis(attrs: Any, data: TensorType, *types: Type | None) -> Sequence[Type | None]:
    """What an operator implies whose other arguments are vectors along ``attrs.axis``."""
    if not -data.rank <= attrs.axis < data.rank:
        return (data, *types)
    vector = TensorType((data.shape[attrs.axis],), data.dtype)
    return (data, *(vector if t is None else t for t in types))


def weight_of(data: TensorType, weight: Type | None, shape: Sequence[Any]) -> list[Type | None]:
    """What an operator implies that says the shape of its weight, the second argument."""
    return [data, TensorType(tuple(shape), data.dtype) if weight is None else weight]


def of_elements(relation: Callable[..., TensorType]) -> Callable[..., TensorType]:
    """Decorator of the type relation of an operator whose results are all read from its data.

    Where the data has no elements, the result must have none either: a kernel would read beside it.
    """

    @wraps(relation)
    def checked(attrs: Any, data: TensorType, *others: TensorType) -> TensorType:
        found = relation(attrs, data, *others)
        if 0 in data.shape and 0 not in found.shape:
            raise BadArgument("data", f"is {data}: it has no elements, and {found} needs some")
        return found

    return checked


def need_rank(argument: str, given: TensorType, *ranks: int) -> None:
    """The tensor must have one of the given numbers of axes."""
    if given.rank not in ranks:
        wanted = " or ".join(str(r) for r in ranks)
        raise BadArgument(argument, f"must have {wanted} axes, got {given}")


def need_steps(argument: str, values: Sequence[Any], count: int) -> None:
    """There must be a number from 1 on for each of `count` axes."""
    if len(values) != count or any(v < 1 for v in values):
        raise BadArgument(argument, f"is {values}; it must be {count} numbers from 1 on")


def need_count(argument: str, values: Sequence[Any], count: int) -> None:
    """There must be so many numbers."""
    if len(values) != count:
        raise BadArgument(argument, f"is {values}; it must be {count} numbers")


def need_window(attrs: Any, count: int) -> None:
    """What says how a window moves over `count` axes must have a number for each, or two."""
    for name in ("pool_size", "kernel_size", "strides", "dilation"):
        values = getattr(attrs, name, None)
        if values is not None:
            need_steps(name, values, count)
    for name, needed in (("padding", 2 * count), ("output_padding", count)):
        values = getattr(attrs, name, None)
        if values is not None:
            need_count(name, values, needed)
    if getattr(attrs, "groups", 1) < 1:
        raise BadArgument("groups", f"is {attrs.groups}; there is at least one")


def need_float(argument: str, given: TensorType) -> None:
    """The elements must be floating point."""
    if not dtypes.is_float(given.dtype):
        raise BadArgument(argument, f"must be floating point, got {given}; cast it first")


def need_integral(argument: str, given: TensorType) -> None:
    """The elements must be integers."""
    if not dtypes.is_integral(given.dtype):
        raise BadArgument(argument, f"must hold integers, got {given}")


def need_words(argument: str, dtype: str) -> None:
    """The dtype must be one that bits of many numbers are packed into."""
    if dtype not in ("uint8", "uint16", "uint32", "uint64"):
        raise BadArgument(argument, f"is {dtype!r}; use uint8, uint16, uint32 or uint64")


def need_number(argument: str, given: TensorType) -> None:
    """The elements must not be truth values."""
    if dtypes.is_bool(given.dtype):
        raise BadArgument(argument, "must hold numbers, got bool; cast it first")


def need_dtype(argument: str, given: TensorType, dtype: str, because: str) -> None:
    """The elements must have exactly `dtype`."""
    if given.dtype != dtype:
        raise BadArgument(argument, f"must be {dtype} like {because}, got {given}")


def need_shape(argument: str, given: TensorType, shape: Sequence[int], because: str) -> None:
    """The shape must be exactly `shape`."""
    if given.shape != tuple(shape):
        raise BadArgument(argument, f"must have shape {tuple(shape)} ({because}), got {given}")


def whole(argument: str, value: SupportsIndex, lowest: int, highest: int) -> int:
    """Return an integer from `lowest` to `highest`.  Raises BadArgument for anything else."""
    try:
        found = _integer(value)
    except (TypeError, ValueError):
        raise BadArgument(argument, f"must be an integer, got {value!r}") from None
    if not lowest <= found <= highest:
        end = str(highest) if highest < 2**63 else f"2**{highest.bit_length()} - 1"
        raise BadArgument(argument, f"must be {lowest} to {end}, is {found}")
    return found


def normal_axis(axis: SupportsIndex, rank: int, argument: str = "axis") -> int:
    """Return `axis` counted from the front; a negative one counts from the back."""
    try:
        axis = index(axis)
    except TypeError:
        raise BadArgument(argument, f"must be an integer, got {axis!r}") from None
    if not -rank <= axis < rank:
        raise BadArgument(argument, f"is {axis}, but the tensor has {rank} axes")
    return axis % rank


def normal_axes(axes: Sequence[int], rank: int, argument: str = "axis") -> tuple[int, ...]:
    """Return all `axes` counted from the front, in the given order, without repetition."""
    normal = tuple(normal_axis(a, rank, argument) for a in axes)
    if len(set(normal)) != len(normal):
        raise BadArgument(argument, f"names an axis twice: {tuple(axes)}")
    return normal


def broadcast_shapes(lhs: Sequence[int], rhs: Sequence[int], argument: str) -> tuple[int, ...]:
    """Return the NumPy broadcast of two shapes; `argument` is blamed when they do not fit."""
    rank = max(len(lhs), len(rhs))
    left = (1,) * (rank - len(lhs)) + tuple(lhs)
    right = (1,) * (rank - len(rhs)) + tuple(rhs)
    out = []
    for a, b in zip(left, right, strict=True):
        if a != b and 1 not in (a, b):
            raise BadArgument(
                argument, f"has shape {tuple(rhs)}, which does not broadcast with {tuple(lhs)}"
            )
        out.append(b if a == 1 else a)
    return tuple(out)


def one_integer(value: Extents) -> int | None:
    """Return an integer of whatever kind as an int, or None where it is no single one."""
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def integers(argument: str, value: Extents) -> tuple[int, ...]:
    """Return one integer or several, of whatever kind, as a tuple.  Raises BadArgument.

    A constant of the graph, as `relay.const([2, 3])`, is its elements.
    """
    if isinstance(value, Constant) and value.array.dtype.kind in "iu" and value.array.ndim < 2:
        return tuple(int(v) for v in np.atleast_1d(value.array))
    one = one_integer(value)
    if one is not None:
        return (one,)
    try:
        return tuple(map(_integer, value))  # type: ignore[arg-type]
    except TypeError:
        raise BadArgument(argument, f"must be integers, got {value!r}") from None


def extents(argument: str, value: Extents) -> tuple[Any, ...]:
    """Return a shape, as `integers`; its dimensions may be open."""
    if isinstance(value, Sequence) and any(map(is_open, value)):
        return tuple(d if is_open(d) else _integer(d) for d in value)
    return integers(argument, value)


def _integer(value: SupportsIndex) -> int:
    return int(value) if isinstance(value, float) and value.is_integer() else index(value)


def as_tuple(value: Extents, count: int, what: str) -> tuple[int, ...]:
    """Return an int or a sequence of ints as a tuple of `count` ints."""
    found = integers(what, value)
    if len(found) == 1:
        return found * count
    if len(found) != count:
        raise BadArgument(what, f"must be one integer or {count}, got {found}")
    return found


def as_extents(value: Extents, count: int, what: str) -> tuple[int, ...]:
    """Return what `as_tuple` does; formulas of open sizes may be among the integers."""
    found = extents(what, value)
    return found if len(found) == count else as_tuple(found, count, what)


def pad_amounts(value: Extents, spatial: int, what: str = "padding") -> tuple[int, ...]:
    """Return padding as (before of each axis..., after of each axis...); classic spellings.

    One number pads every side, `spatial` numbers pad both sides of each axis, twice that many
    are taken as they are.
    """
    found = integers(what, value)
    if len(found) == 1:
        return found * (2 * spatial)
    if len(found) == spatial:
        return found + found
    if len(found) == 2 * spatial:
        return found
    raise BadArgument(what, f"must be 1, {spatial} or {2 * spatial} integers, got {found}")
