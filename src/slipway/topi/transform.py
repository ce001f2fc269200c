"""Elements moved: other shapes, other orders, tensors joined."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import declare
from slipway.te.tensor import Tensor
from slipway.topi.elementwise import broadcast_shape, element_of
from slipway.topi.tag import INJECTIVE
from slipway.topi.utils import get_const_int, normalize_axis, ravel_index, unravel_index

compute = functools.partial(declare.compute, tag=INJECTIVE)

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Return `a` with its dimensions in the order `axes` (reversed without it)."""
    order = [normalize_axis(x, a.ndim) for x in (axes or range(a.ndim - 1, -1, -1))]
    if sorted(order) != list(range(a.ndim)):
        raise InvalidShapeError(f"transpose of {a.ndim} dimensions by {tuple(axes or ())}")

    def element(*i: PrimExpr) -> Any:
        position: list[Any] = [None] * a.ndim
        for index, axis in zip(i, order, strict=True):
            position[axis] = index
        return a(*position)

    return compute(tuple(a.shape[x] for x in order), element, "transpose")  # type: ignore[no-any-return]


def reshape(a: Tensor, newshape: Sequence[Any]) -> Tensor:
    """Return the elements of `a` in row-major order as a tensor of `newshape`."""
    sizes = [[ops.as_int(n) for n in s] for s in (a.shape, newshape)]
    counts = []
    for size in sizes:
        product = 1
        for n in size:
            product = product * n if n is not None and product else 0
        counts.append(product)
    if all(None not in s for s in sizes) and counts[0] != counts[1]:
        raise InvalidShapeError(f"reshape of {a.shape} to {tuple(newshape)}: the sizes differ")
    element = lambda *i: a(*unravel_index(ravel_index(i, newshape), a.shape))  # noqa: E731
    return compute(tuple(newshape), element, "reshape")  # type: ignore[no-any-return]


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """Return `a` with `num_newaxis` dimensions of 1 put in front of dimension `axis`."""
    at = normalize_axis(axis, a.ndim + 1)
    shape: Sequence[PrimExprLike] = (*a.shape[:at], *[1] * num_newaxis, *a.shape[at:])
    element = lambda *i: a(*i[:at], *i[at + num_newaxis :])  # noqa: E731
    return compute(shape, element, "expand_dims")  # type: ignore[no-any-return]


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """Return `a` without the dimensions `axis`, which are 1 (all such ones without it)."""
    ones = [x for x in range(a.ndim) if ops.as_int(a.shape[x]) == 1]
    given = ones if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
    gone = {normalize_axis(x, a.ndim) for x in given}
    if not gone <= set(ones):
        raise InvalidShapeError(f"squeeze of {a.shape} along {sorted(gone)}: an extent is not 1")
    kept = [x for x in range(a.ndim) if x not in gone]

    def element(*i: PrimExpr) -> Any:
        position: list[Any] = [0] * a.ndim
        for index, x in zip(i, kept, strict=False):
            position[x] = index
        return a(*position)

    shape = tuple(a.shape[x] for x in kept) or (1,)
    return compute(shape, element, "squeeze")  # type: ignore[no-any-return]


def broadcast_to(a: Tensor, shape: Sequence[Any]) -> Tensor:
    """Return `a` repeated to `shape`."""
    if [str(n) for n in broadcast_shape(a.shape, tuple(shape))] != [str(n) for n in shape]:
        raise InvalidShapeError(f"{a.shape} does not broadcast to {tuple(shape)}")
    return compute(tuple(shape), lambda *i: element_of(a, i), "broadcast_to")  # type: ignore[no-any-return]


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """Return `a` with the elements along `axis` in reverse order."""
    at = normalize_axis(axis, a.ndim)
    element = lambda *i: a(*i[:at], a.shape[at] - 1 - i[at], *i[at + 1 :])  # noqa: E731
    return compute(a.shape, element, "flip")  # type: ignore[no-any-return]


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Return the tensors joined along `axis`."""
    parts = list(a_tuple)
    if not parts:
        raise InvalidShapeError("concatenate got no tensor; pass one or more")
    at = normalize_axis(axis, parts[0].ndim)
    starts: list[Any] = [ops.const(0)]
    for part in parts:
        starts.append(ops.add(starts[-1], part.shape[at]))

    def element(*i: PrimExpr) -> Any:
        value = parts[-1](*i[:at], ops.sub(i[at], starts[-2]), *i[at + 1 :])
        for number in range(len(parts) - 2, -1, -1):
            mine = parts[number](*i[:at], ops.sub(i[at], starts[number]), *i[at + 1 :])
            value = ops.if_then_else(ops.less(i[at], starts[number + 1]), mine, value)
        return value

    shape = (*parts[0].shape[:at], starts[-1], *parts[0].shape[at + 1 :])
    return compute(shape, element, "concatenate")  # type: ignore[no-any-return]


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Return the tensors joined along a new dimension `axis`."""
    return concatenate([expand_dims(t, axis) for t in list(tensors)], axis)


def expand_like(a: Tensor, shape_like: Tensor, axis: Any) -> Tensor:
    """Return `a` repeated along the dimensions `axis` of `shape_like`, which `a` does not have."""
    given = axis if isinstance(axis, (list, tuple)) else (axis,)
    if a.ndim == 1 and ops.as_int(a.shape[0]) == 1 and len(given) == shape_like.ndim:
        return broadcast_to(a, shape_like.shape)
    new = {normalize_axis(x, shape_like.ndim) for x in given}
    if a.ndim + len(new) != shape_like.ndim:
        raise InvalidShapeError(
            f"expand_like of {a.shape} to {shape_like.shape}: {a.ndim} dimensions and "
            f"{len(new)} new ones are not {shape_like.ndim}"
        )
    element = lambda *i: a(*(n for x, n in enumerate(i) if x not in new))  # noqa: E731
    return compute(shape_like.shape, element, "expand_like")  # type: ignore[no-any-return]


def repeat(a: Tensor, repeats: int, axis: int = 0) -> Tensor:
    """Return `a` with every element `repeats` times in a row along `axis`."""
    at = normalize_axis(axis, a.ndim)
    shape = (*a.shape[:at], ops.mul(a.shape[at], repeats), *a.shape[at + 1 :])
    element = lambda *i: a(*i[:at], ops.floordiv(i[at], repeats), *i[at + 1 :])  # noqa: E731
    return compute(shape, element, "repeat")  # type: ignore[no-any-return]


def tile(a: Tensor, reps: Sequence[int]) -> Tensor:
    """Return `a` beside itself `reps` times along each dimension, as NumPy's tile."""
    counts = (1,) * (a.ndim - len(reps)) + tuple(reps)
    sizes = (1,) * (len(reps) - a.ndim) + tuple(a.shape)
    new = len(sizes) - a.ndim
    shape = tuple(ops.mul(n, count) for n, count in zip(sizes, counts, strict=True))

    def element(*i: PrimExpr) -> Any:
        return a(*(ops.floormod(x, n) for x, n in zip(i[new:], a.shape, strict=True)))

    return compute(shape, element, "tile")  # type: ignore[no-any-return]


def split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Return the parts of `ary` along `axis`: so many equal ones, or cut at the indices given."""
    at = normalize_axis(axis, ary.ndim)
    extent = ary.shape[at]
    cuts: list[Any]
    if isinstance(indices_or_sections, (list, tuple)):
        cuts = list(indices_or_sections)
    else:
        count, size = get_const_int(indices_or_sections), ops.as_int(extent)
        if count < 1 or (size is not None and size % count):
            raise InvalidShapeError(f"split of {ary.shape} along {at} into {count} equal parts")
        cuts = [ops.floordiv(ops.mul(extent, n), count) for n in range(1, count)]
    bounds = [ops.const(0), *cuts, extent]

    def part(begin: Any, end: Any) -> Tensor:
        shape = (*ary.shape[:at], ops.sub(end, begin), *ary.shape[at + 1 :])
        element = lambda *i: ary(*i[:at], ops.add(i[at], begin), *i[at + 1 :])  # noqa: E731
        return compute(shape, element, "split")  # type: ignore[no-any-return]

    return [part(b, e) for b, e in itertools.pairwise(bounds)]


def strided_slice(
    a: Tensor, begin: Sequence[Any], end: Sequence[Any], strides: Sequence[Any] | None = None,
    axes: Sequence[int] | None = None, slice_mode: str = "end",
) -> Tensor:  # fmt: skip
    """Return the elements from `begin` to `end` (or `end` many, in mode "size") by `strides`.

    Constants count from the end where negative, and those outside are cut to the shape, as in
    NumPy; a size of -1 is everything to the end.  `axes` says which dimensions are meant.
    """
    if slice_mode not in ("end", "size"):
        raise InvalidShapeError(f"slice_mode is 'end' or 'size', not {slice_mode!r}")
    meant = [normalize_axis(int(x), a.ndim) for x in axes] if axes else list(range(len(begin)))
    starts: list[Any] = [0] * a.ndim
    steps, shape = [1] * a.ndim, list(a.shape)
    given = list(strides or ()) if slice_mode == "end" else []
    for position, axis in enumerate(meant):
        if axis >= a.ndim:
            raise InvalidShapeError(f"strided_slice of {a.shape} names dimension {axis}")
        step = get_const_int(given[position]) if position < len(given) else 1
        extent = get_const_int(a.shape[axis])
        low = get_const_int(begin[position]) if begin[position] is not None else None
        high = (
            get_const_int(end[position])
            if position < len(end) and end[position] is not None
            else None
        )
        if slice_mode == "size" and high is not None:
            first = slice(low, None).indices(extent)[0]
            high = None if high < 0 else first + high
        if step == 0:
            raise InvalidShapeError(f"strided_slice along {axis} by a stride of 0")
        found = range(*slice(low, high, step).indices(extent))
        starts[axis], steps[axis], shape[axis] = found.start, step, ops.const(len(found))

    def element(*i: PrimExpr) -> Any:
        at = zip(i, steps, starts, strict=True)
        return a(*(ops.add(ops.mul(x, step), start) for x, step, start in at))

    return compute(tuple(shape), element, "strided_slice")  # type: ignore[no-any-return]
