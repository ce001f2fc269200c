"""How windows lie on a padded tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.topi.nn.padding import pad
from slipway.topi.utils import get_const_int

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike, ShapeLike
    from slipway.te.tensor import Tensor


def spread(value: ShapeLike, count: int, what: str) -> list[int]:
    """Return one number per spatial dimension, given one for all or a list."""
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(items) not in (1, count):
        raise InvalidShapeError(f"{what} is one number or {count}, got {value}")
    return [get_const_int(x) for x in items] * (count // len(items))


def sides(padding: ShapeLike, kernel: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the padding before and after each spatial dimension.

    Given "VALID" (none), "SAME" (as large as the kernel needs), one number, one for each dimension,
    or those before all dimensions and then those after; `kernel` is as dilated.
    """
    count = len(kernel)
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise InvalidShapeError(f"padding is 'SAME', 'VALID' or numbers, not {padding!r}")
        whole = [n - 1 if padding.upper() == "SAME" else 0 for n in kernel]
        return [(n + 1) // 2 for n in whole], [n // 2 for n in whole]
    items: list[Any] = list(padding) if isinstance(padding, (list, tuple)) else [padding]
    if len(items) == 2 * count:
        return [get_const_int(x) for x in items[:count]], [get_const_int(x) for x in items[count:]]
    before = spread(padding, count, "padding")
    return before, list(before)


def windows(extent: PrimExprLike, window: int, stride: int, ceil_mode: bool = False) -> Any:
    """Return how many windows lie within `extent` (and, in `ceil_mode`, begin within it)."""
    room = ops.sub(extent, window)
    if ceil_mode:
        room = ops.add(room, stride - 1)
    size = ops.as_int(room)
    if stride < 1 or (size is not None and size < 0):
        raise InvalidShapeError(f"windows of {window} by steps of {stride} over {extent}")
    return ops.add(ops.floordiv(room, stride), 1)


@dataclass(frozen=True)
class PoolWindows:
    """How the windows of a pool lie: a number of each field for each spatial axis.

    `axes` are those axes, H and W say, `extents` the data's, `counts` how many windows there are,
    and `first` and `last` the padding before and after.
    """

    axes: tuple[int, ...]
    extents: tuple[Any, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    gaps: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    counts: tuple[Any, ...]

    @classmethod
    def on(
        cls, data: Tensor, kernel: ShapeLike, stride: ShapeLike, dilation: ShapeLike,
        padding: ShapeLike, ceil_mode: bool, layout: str, name: str, over: str = "HW",
    ) -> PoolWindows:  # fmt: skip
        """Return those of a pool's arguments; an error is told as one of the function `name`."""
        if len(layout) != data.ndim or not set(over) <= set(layout):
            raise InvalidShapeError(f"{name} of {data.shape} in layout {layout!r}")
        axes = [layout.index(c) for c in over]
        sizes, steps = spread(kernel, len(over), "kernel"), spread(stride, len(over), "stride")
        gaps = spread(dilation, len(over), "dilation")
        reach = [(n - 1) * gap + 1 for n, gap in zip(sizes, gaps, strict=True)]
        first, last = sides(padding, reach)
        extents = [data.shape[axis] for axis in axes]
        counts = [
            windows(ops.add(extents[n], first[n] + last[n]), reach[n], steps[n], ceil_mode)
            for n in range(len(over))
        ]
        fields = (axes, extents, sizes, steps, gaps, first, last, counts)
        return cls(*(tuple(field) for field in fields))

    def of(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """Return the shape of the pool's result for data of some shape."""
        made = list(shape)
        for axis, count in zip(self.axes, self.counts, strict=True):
            made[axis] = count
        return tuple(made)

    def padded(self, data: Tensor, after: Sequence[int], value: Any) -> Tensor:
        """Return the data with its padding before, and `after` elements following."""
        before, following = [0] * data.ndim, [0] * data.ndim
        for n, axis in enumerate(self.axes):
            before[axis], following[axis] = self.first[n], after[n]
        return pad(data, before, following, value) if any(before + following) else data

    def positions(self, index: Sequence[Any], taps: Sequence[Any]) -> list[Any]:
        """Return where in the padded data an element of a window lies."""
        position = list(index)
        for axis, step, gap, tap in zip(self.axes, self.steps, self.gaps, taps, strict=True):
            position[axis] = ops.add(ops.mul(index[axis], step), ops.mul(tap, gap))
        return position

    def counted(self, n: int, index: PrimExpr, count_include_pad: bool) -> Any:
        """Return by how many elements along spatial axis `n` the mean of a window divides."""
        low, high = 0, self.extents[n]
        if count_include_pad:
            low, high = -self.first[n], ops.add(high, self.last[n])
        start = ops.sub(ops.mul(index, self.steps[n]), self.first[n])
        gap = self.gaps[n]
        first = ops.floordiv(ops.sub(low + gap - 1, start), gap)
        last = ops.floordiv(ops.sub(ops.sub(high, 1), start), gap)
        taps = ops.sub(ops.minimum(last, self.sizes[n] - 1), ops.maximum(first, 0))
        return ops.maximum(ops.add(taps, 1), 1)
