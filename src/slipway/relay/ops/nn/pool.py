"""Pooling: windows (max_pool*d, avg_pool*d), global and adaptive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import TypeInferenceError
from slipway.ir.node import node
from slipway.relay.dims import is_open, size_of
from slipway.relay.expr import Call
from slipway.relay.layout import parse_layout
from slipway.relay.op_registry import (
    Attrs,
    BadArgument,
    OpDefinition,
    OpPattern,
    register_op,
)
from slipway.relay.ops.checks import as_tuple, need_number, need_window, pad_amounts
from slipway.relay.ops.nn.windows import SPATIAL, pad_array, pad_stage, window_extent, windows
from slipway.relay.ops.tensor.tensors import number, te, wide
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    import numpy.typing as npt

    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, Extents


@node
class PoolAttrs(Attrs):
    """Geometry of window pooling; `padding` lists all before, then all after.

    With `ceil_mode` a last window that starts inside the data (or the padding before it) counts,
    though it reaches beyond; what lies beyond the padding is never counted by an average.
    """

    pool_size: tuple[int, ...] = (2, 2)
    strides: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    layout: str = "NCHW"
    ceil_mode: bool = False
    count_include_pad: bool = False


def _out_extents(attrs: PoolAttrs, size: Sequence[int]) -> tuple[int, ...]:
    count = len(size)
    out = []
    for a in range(count):
        before, after = attrs.padding[a], attrs.padding[a + count]
        span = window_extent(attrs.pool_size[a], attrs.dilation[a])
        room = size[a] + before + after - span
        if room < 0 and not attrs.ceil_mode:
            raise BadArgument(
                "data",
                f"has {size[a]} elements along spatial axis {a} ({size[a] + before + after} with "
                f"padding), but the window spans {span}",
            )
        stride = attrs.strides[a]
        extent = (-(-room // stride) if attrs.ceil_mode else room // stride) + 1
        if attrs.ceil_mode and (extent - 1) * stride >= size[a] + before:
            extent -= 1
        out.append(max(extent, 1))
    return tuple(out)


def padding_reached(attrs: PoolAttrs, size: Sequence[int], out: Sequence[int]) -> tuple[int, ...]:
    """The padding with what `ceil_mode` adds after; a cut-off tail gives no negative amount."""
    count = len(size)
    if not attrs.ceil_mode:
        return attrs.padding  # where no window reaches beyond it
    after = []
    for a in range(count):
        span = window_extent(attrs.pool_size[a], attrs.dilation[a])
        needed = (out[a] - 1) * attrs.strides[a] + span - size[a] - attrs.padding[a]
        after.append(max(needed, attrs.padding[a + count]))
    return (*attrs.padding[:count], *after)


def spatial_axes(layout: str, given: TensorType | None, count: int) -> list[int]:
    """Return the indices of the spatial axes; others may be of any number (NCHW16c, say)."""
    try:
        axes = [axis.letter if not axis.block else "" for axis in parse_layout(layout).axes]
        spatial = [axes.index(letter) for letter in SPATIAL[count]]
    except ValueError as error:
        raise BadArgument(
            "layout",
            f"is {layout!r}, which is no order of N, C, {', '.join(SPATIAL[count])}: {error}",
        ) from None
    if given is not None and given.rank != len(axes):
        raise BadArgument("data", f"must have {len(axes)} axes for layout {layout}, got {given}")
    return spatial


def pool_relation(attrs: PoolAttrs, data: TensorType) -> Type:
    """Return the type of a pool's result."""
    if len(attrs.pool_size) not in SPATIAL:
        raise BadArgument("pool_size", f"is {attrs.pool_size}; it must be 1, 2 or 3 numbers")
    need_window(attrs, len(attrs.pool_size))
    spatial = spatial_axes(attrs.layout, data, len(attrs.pool_size))
    need_number("data", data)
    shape = list(data.shape)
    extents = _out_extents(attrs, [shape[p] for p in spatial])
    for axis, extent in zip(spatial, extents, strict=True):
        shape[axis] = extent
    return TensorType(tuple(shape), data.dtype)


def _lowest(dtype: npt.DTypeLike) -> Any:
    kind = np.dtype(dtype)
    return -np.inf if dtypes.is_float(kind.name) else np.iinfo(kind).min


def _pool_reference(attrs: PoolAttrs, data: Array, average: bool) -> Any:
    count = len(attrs.pool_size)
    spatial = spatial_axes(attrs.layout, None, count)
    ends = list(range(-count, 0))
    plain = np.moveaxis(data, spatial, ends)
    size = plain.shape[-count:]
    out = _out_extents(attrs, size)
    padding = padding_reached(attrs, size, out)
    taps = tuple(ends)
    crop = (..., *(slice(0, e) for e in out), *(slice(None),) * count)

    def over(array: Array, fill: Any) -> Any:
        padded = pad_array(array, padding, fill)
        return windows(padded, attrs.pool_size, attrs.strides, attrs.dilation)[crop]

    if not average:
        found = over(plain, _lowest(data.dtype)).max(axis=taps)
    else:
        # What counts is pooled like the data: ones inside (and on counted padding), zeros beyond.
        ones = np.ones(size, np.int64)
        if attrs.count_include_pad:
            ones = pad_array(ones, attrs.padding, 1)
            beyond = [padding[a + count] - attrs.padding[a + count] for a in range(count)]
            ones = pad_array(ones, (*(0,) * count, *beyond), 0)
            counted = windows(ones, attrs.pool_size, attrs.strides, attrs.dilation)[crop]
        else:
            counted = over(ones, 0)
        exact = np.float64 if dtypes.is_float(data.dtype.name) else np.int64
        total = over(plain.astype(exact), 0).sum(axis=taps)
        number = np.maximum(counted.sum(axis=taps), 1)
        found = total / number if exact is np.float64 else np.trunc(total / number)
    return np.asarray(np.moveaxis(found.astype(data.dtype), ends, spatial), order="C")


def pool_compute(
    attrs: PoolAttrs, inputs: Sequence[Any], out: TensorType, average: bool, padded: bool = True
) -> list[Any]:
    """Reduce each window of the data with its padding, or with `padded` False, its part inside."""
    (data,) = inputs
    count = len(attrs.pool_size)
    spatial = spatial_axes(attrs.layout, None, count)
    size = [size_of(data.shape[p]) for p in spatial]
    extents = [out.shape[p] for p in spatial]
    padding = padding_reached(attrs, size, extents)
    before, after = [0] * out.rank, [0] * out.rank
    for a, axis in enumerate(spatial):
        before[axis], after[axis] = padding[a], padding[a + count]
    fill = 0 if average else te().lowest(data.dtype)
    given = pad_stage(data, before, after, fill) if padded else data
    summed = sum_dtype(data.dtype, prod(attrs.pool_size))
    taps = [
        te().reduce_axis((0, k), name=f"r{s.lower()}")
        for k, s in zip(attrs.pool_size, SPATIAL[count], strict=True)
    ]

    def window(*indices: PrimExpr) -> Any:
        source, inside = list(indices), []
        for a, axis in enumerate(spatial):
            base = source[axis] if attrs.strides[a] == 1 else source[axis] * attrs.strides[a]
            step = attrs.dilation[a]
            source[axis] = base + (taps[a] if step == 1 else taps[a] * step)
            if not padded:
                source[axis] = source[axis] - before[axis]
                inside += [source[axis] >= 0] if before[axis] else []
                inside += [source[axis] < size[a]] if after[axis] else []
        where = te().all(*inside) if inside else None
        if not average:
            return te().max(given(*source), axis=taps, where=where)
        return te().sum(given(*source).astype(summed), axis=taps, where=where)

    if not average:
        return [te().compute(out.shape, window, name="pool_max", tag="pool_max")]
    total = te().compute(out.shape, window, name="pool_sum", tag="pool_sum")
    return [mean_of_windows(attrs, total, size, out)]


def mean_of_windows(attrs: PoolAttrs, total: Any, size: Sequence[Any], out: TensorType) -> Any:
    """Return the averages of windows of which `total` are the sums; `size` is the data's."""
    spatial = spatial_axes(attrs.layout, None, len(attrs.pool_size))
    extents = [out.shape[p] for p in spatial]
    summed = total.dtype

    def mean(*indices: PrimExpr) -> Any:
        taken: Any = 1
        for a, axis in enumerate(spatial):
            taken = taken * _taps_inside(attrs, a, indices[axis], size[a], extents[a])
        value = total(*indices)
        if isinstance(taken, int):
            if dtypes.is_float(out.dtype):
                found = value * te().const(1.0 / taken, summed)
            else:
                found = te().div(value, te().const(taken, summed))
        elif dtypes.is_float(out.dtype):  # one division for a vector of channels
            found = value * te().div(te().const(1.0, summed), taken.astype(summed))
        else:
            found = te().div(value, taken.astype(summed))
        return found.astype(out.dtype)

    return te().compute(out.shape, mean, name="pool_avg", tag="elemwise")


def sum_dtype(dtype: str, terms: int) -> str:
    """Return what an average of `terms` elements of `dtype` sums in, so that nothing overflows.

    float32 for the halves; int32 for short integers where it holds their sum, else 64 bits.
    """
    if dtypes.is_float(dtype):
        return wide(dtype)
    most = getattr(terms, "high", terms)  # an open size has an upper end, or none
    if most is not None and dtypes.bits_of(dtype) + (most - 1).bit_length() < 32:
        return "int32"
    return "uint64" if dtype == "uint64" else "int64"


def _taps_inside(attrs: PoolAttrs, a: int, index: PrimExpr, size: int, extent: int) -> Any:
    """How many taps of a window along one axis are counted: an int when all windows agree."""
    count = len(attrs.pool_size)
    kernel, stride, step = attrs.pool_size[a], attrs.strides[a], attrs.dilation[a]
    low, high = 0, size
    if attrs.count_include_pad:
        low, high = -attrs.padding[a], size + attrs.padding[a + count]
    start = index * stride - attrs.padding[a]
    last_start = (extent - 1) * stride - attrs.padding[a]
    starts_inside = -attrs.padding[a] >= low
    if starts_inside and _is_known(lambda: last_start + (kernel - 1) * step < high):
        return kernel
    first = te().max(te().floordiv(low - start + step - 1, step), 0)
    last = te().min(te().floordiv(high - 1 - start, step), kernel - 1)
    return te().max(last - first + 1, 1)


def _is_known(decide: Callable[[], bool]) -> bool:
    """Return whether something holds for all sizes that an open dimension may have."""
    try:
        return decide()
    except TypeInferenceError:
        return False


def pool_attrs(
    count: int,
    pool_size: Extents,
    strides: Extents,
    dilation: Extents,
    padding: Extents,
    layout: str,
    ceil_mode: bool,
    count_include_pad: bool = False,
) -> PoolAttrs:
    """Return the attributes in normal form from the classic spellings."""
    return PoolAttrs(
        as_tuple(pool_size, count, "pool_size"),
        as_tuple(strides, count, "strides"),
        as_tuple(dilation, count, "dilation"),
        pad_amounts(padding, count),
        layout,
        bool(ceil_mode),
        bool(count_include_pad),
    )


def _register_pool(count: int, average: bool) -> Any:
    kind = "avg" if average else "max"
    name = f"nn.{kind}_pool{count}d"
    definition = register_op(
        name, "data", attrs=PoolAttrs, pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        doc=f"The {'mean' if average else 'largest'} of each window over {count} spatial axes.",
    )  # fmt: skip
    definition.type_relation(pool_relation)
    definition.reference(lambda attrs, data: _pool_reference(attrs, data, average))
    definition.compute(
        lambda attrs, inputs, out_types: pool_compute(attrs, inputs, out_types[0], average)
    )
    definition.flops(lambda attrs, ins, out: float(out.size * prod(attrs.pool_size)))

    @definition.make
    def make(
        data: Any,
        pool_size: Any = 1,
        strides: Any = 1,
        dilation: Any = 1,
        padding: Any = 0,
        layout: str = "NC" + SPATIAL[count],
        out_layout: str = "",
        ceil_mode: bool = False,
        count_include_pad: bool = False,
    ) -> Call:
        same_layout(layout, out_layout)
        attrs = pool_attrs(
            count, pool_size, strides, dilation, padding, layout, ceil_mode, count_include_pad
        )
        return definition(data, attrs=attrs)

    make.__name__, make.__doc__ = name.removeprefix("nn."), definition.doc
    shape, layout = (2, 3, 9, 8, 7)[: count + 2], "NC" + SPATIAL[count]
    definition.sample_case(shape, attrs=pool_attrs(count, 2, 2, 1, 0, layout, False))
    definition.sample_case(shape, attrs=pool_attrs(count, 3, 2, 1, 1, layout, True))
    definition.sample_case(shape, attrs=pool_attrs(count, 2, 1, 2, 1, layout, False))
    definition.sample_case(shape, attrs=pool_attrs(count, 3, 2, 1, 1, layout, True, True))
    definition.sample_case(shape, attrs=pool_attrs(count, 3, 3, 1, 0, layout, True))
    blocked = pool_attrs(count, 2, 2, 1, 0, layout + "4c", False)
    definition.sample_case((1, 2, *shape[2:], 4), attrs=blocked)
    return make


max_pool1d, max_pool2d, max_pool3d = (_register_pool(n, average=False) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_register_pool(n, average=True) for n in (1, 2, 3))


@node
class AdaptivePoolAttrs(Attrs):
    """The wanted spatial extents; empty keeps the data's own."""

    output_size: tuple[int, ...] = ()
    layout: str = "NCHW"


def _bins(size: int, out: int) -> list[tuple[int, int]]:
    """The half-open input interval of each output element (PyTorch's rule)."""
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def _longest_bin(size: Any, out: Any) -> Any:
    """Return how many elements a bin has at most; of an open size, one more than it may be."""
    if not is_open(size):
        return max(high - low for low, high in _bins(size, out))
    return size // out if size % out == 0 else (size + out - 1) // out + 1


def _adaptive_axes(attrs: AdaptivePoolAttrs, given: TensorType | None) -> list[int]:
    return spatial_axes(attrs.layout, given, _spatial_count(attrs.layout))


def _spatial_count(layout: str) -> int:
    count = sum(letter in "DHW" for letter in layout)
    if count not in SPATIAL:
        raise BadArgument("layout", f"is {layout!r}; it has no axes W, HW or DHW to pool over")
    return count


def _adaptive_relation(attrs: AdaptivePoolAttrs, data: TensorType) -> Type:
    spatial = _adaptive_axes(attrs, data)
    shape = list(data.shape)
    if attrs.output_size:
        wanted = as_tuple(attrs.output_size, len(spatial), "output_size")
        for axis, extent in zip(spatial, wanted, strict=True):
            shape[axis] = extent
    return TensorType(tuple(shape), data.dtype)


def _adaptive_reference(attrs: AdaptivePoolAttrs, data: Array, average: bool) -> Any:
    result = data.astype(np.float64) if average else data
    spatial = _adaptive_axes(attrs, None)
    sizes = attrs.output_size or tuple(data.shape[p] for p in spatial)
    for axis, out in zip(spatial, sizes, strict=True):
        pieces = []
        for low, high in _bins(data.shape[axis], out):
            piece = result.take(range(low, high), axis)
            if low == high:  # of no elements
                kind = result.dtype
                minimum = np.iinfo(kind).min if kind.kind in "iu" else -np.inf
                rest = np.delete(result.shape, axis)
                pieces.append(np.full(rest, np.nan if average else minimum, kind))
            else:
                pieces.append(piece.mean(axis) if average else piece.max(axis))
        result = np.stack(pieces, axis)
    return np.asarray(result.astype(data.dtype), order="C")


def _adaptive_compute(
    attrs: AdaptivePoolAttrs, inputs: list[Any], out: TensorType, average: bool
) -> list[Any]:
    (data,) = inputs
    spatial = _adaptive_axes(attrs, None)
    size = [size_of(data.shape[i]) for i in spatial]
    extents = [out.shape[i] for i in spatial]
    even = all(s % e == 0 for s, e in zip(size, extents, strict=True))
    # Uneven bins differ in length; the longest is walked, and the taps beyond a bin are masked.
    longest = [_longest_bin(s, e) for s, e in zip(size, extents, strict=True)]
    taps = [te().reduce_axis((0, k), name=f"r{a}") for a, k in enumerate(longest)]
    summed = sum_dtype(data.dtype, prod(longest))

    def interval(a: int, index: PrimExpr) -> tuple[Any, Any]:
        low = te().floordiv(index * size[a], extents[a])
        high = te().floordiv((index + 1) * size[a] + extents[a] - 1, extents[a])
        return low, high

    def window(*indices: PrimExpr) -> Any:
        source, inside = list(indices), []
        for a, axis in enumerate(spatial):
            if even:
                source[axis] = indices[axis] * (size[a] // extents[a]) + taps[a]
                if extents[a] == 1:
                    source[axis] = taps[a]
            else:
                low, high = interval(a, indices[axis])
                source[axis] = low + taps[a]
                inside.append(low + taps[a] < high)
        value = data(*source)
        if inside:
            fill = te().const(0, data.dtype) if average else te().lowest(data.dtype)
            value = te().if_then_else(te().all(*inside), value, fill)
        if not average:
            return te().max(value, axis=taps)
        return te().sum(value.astype(summed), axis=taps)

    if not average:
        return [te().compute(out.shape, window, name="adaptive_pool_max", tag="adaptive_pool_max")]
    total = te().compute(out.shape, window, name="adaptive_pool_sum", tag="adaptive_pool_sum")

    def mean(*indices: PrimExpr) -> Any:
        if even:
            each = prod(s // e for s, e in zip(size, extents, strict=True))
            return te().div(total(*indices), number(each, summed)).astype(out.dtype)
        many: Any = 1
        for a, axis in enumerate(spatial):
            low, high = interval(a, indices[axis])
            many = many * (high - low)
        return te().div(total(*indices), many.astype(summed)).astype(out.dtype)

    return [te().compute(out.shape, mean, name="adaptive_pool_avg", tag="elemwise")]


def _register_adaptive(prefix: str, count: int, average: bool) -> OpDefinition:
    kind = "avg" if average else "max"
    definition = register_op(
        f"nn.{prefix}_{kind}_pool{count}d", "data", attrs=AdaptivePoolAttrs,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        doc=f"The {'mean' if average else 'largest'} of each of output_size equal parts"
        + (" (one part: the whole)." if prefix == "global" else "."),
    )  # fmt: skip
    definition.type_relation(_adaptive_relation)
    definition.reference(lambda attrs, data: _adaptive_reference(attrs, data, average))
    definition.compute(
        lambda attrs, inputs, out_types: _adaptive_compute(attrs, inputs, out_types[0], average)
    )
    definition.flops(lambda attrs, ins, out: float(ins[0].size))
    shape, layout = (2, 3, 7, 6, 5)[: count + 2], "NC" + SPATIAL[count]
    definition.sample_case(shape, attrs=AdaptivePoolAttrs((1,) * count, layout))
    if prefix == "adaptive":
        definition.sample_case(shape, attrs=AdaptivePoolAttrs((3,) * count, layout))
    return definition


def same_layout(layout: str, out_layout: str) -> None:
    """The result must be wanted in the data's layout, or in none."""
    if out_layout not in ("", layout):
        raise BadArgument(
            "out_layout",
            f"is {out_layout!r}, but a pool keeps its data's layout, {layout!r}: use "
            "layout_transform after it",
        )


def _global_pool(count: int, average: bool) -> Any:
    definition = _register_adaptive("global", count, average)

    @definition.make
    def make(data: Any, layout: str = "NC" + SPATIAL[count], out_layout: str = "") -> Call:
        same_layout(layout, out_layout)
        return definition(data, attrs=AdaptivePoolAttrs((1,) * count, layout))

    make.__name__, make.__doc__ = definition.name.removeprefix("nn."), definition.doc
    return make


def _adaptive_pool(count: int, average: bool) -> Any:
    definition = _register_adaptive("adaptive", count, average)

    @definition.make
    def make(
        data: Any,
        output_size: Any = None,
        layout: str = "NC" + SPATIAL[count],
        out_layout: str = "",
    ) -> Call:
        same_layout(layout, out_layout)
        size = () if output_size is None else as_tuple(output_size, count, "output_size")
        return definition(data, attrs=AdaptivePoolAttrs(size, layout))

    make.__name__, make.__doc__ = definition.name.removeprefix("nn."), definition.doc
    return make


global_max_pool1d, global_max_pool2d, global_max_pool3d = (
    _global_pool(n, average=False) for n in (1, 2, 3)
)
global_avg_pool1d, global_avg_pool2d, global_avg_pool3d = (
    _global_pool(n, average=True) for n in (1, 2, 3)
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_pool(n, average=False) for n in (1, 2, 3)
)
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _adaptive_pool(n, average=True) for n in (1, 2, 3)
)
