"""A transposed convolution becomes one convolution whose channels are then spread over pixels.

Result pixels that have the same remainder modulo the stride see the same taps of the kernel.  So
the kernel is cut into stride x stride kernels, one for each remainder; one ordinary convolution
computes them all as channels, and a transpose puts each at its pixels::

    nn.conv2d_transpose(%x, %w, stride s)
        ->  strided_slice(reshape(transpose(reshape(nn.conv2d(%x, %v)))))

The work is a convolution's, which has fast schedules.  Where the rests see different numbers of
taps, the shorter kernels are padded with zeros; if that, and the pixels that `padding` cuts
off, make much more work, each remainder gets a convolution of its own, and `nn.contrib_interleave`
puts their pixels in order; so do depthwise ones, as a channel that several filters read would have
to be repeated.

Dilated kernels are cut the same way: pixels of one remainder see taps as far apart as the stride
over what stride and dilation have in common, and their convolution is dilated by the rest.  What
they have in common keeps pixels apart that no tap touches: zeros, put in afterwards.

Where no two taps meet at a pixel, one convolution multiplies each pixel with all taps, and whole
vectors of channels go to their places.

The others multiply zeros: of shorter kernels, around the data, in vectors that few filters do
not fill.  Where that is much, the data is multiplied with all taps at once, as a convolution whose
window is one pixel, and `nn.contrib_column_sum` adds up what meets at a pixel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from slipway.errors import TypeInferenceError
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Tuple
from slipway.relay.op_registry import is_call_of
from slipway.relay.open_dims import has_open
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.visit import rewrite
from slipway.target.costs import ANY_CORE, Costs
from slipway.transform.graph.conv.subpixel_axis import SubpixelAxis

MOST_TAPS = 64  # of columns: what a pixel may get is unrolled
COLUMN_STEPS = 0.5  # what one of them takes, in multiply-adds of vectors


def subpixel_conv(function: Function, lanes: int = 1, costs: Costs = ANY_CORE) -> Function:
    """Return `function` with its transposed convolutions rewritten.

    Those with constant kernels; others stay.  Filters are computed in vectors of `lanes`.
    """
    return rewrite(function, lambda call: _rule(call, lanes, costs))  # type: ignore[no-any-return]


def _rule(call: Expr, lanes: int, costs: Costs) -> Expr | None:
    if not is_call_of(call, *(f"nn.conv{n}d_transpose" for n in SPATIAL)):
        return None
    if not has_open(call.args[0].tensor_type):
        return _as_convolutions(call, lanes, costs)
    with suppress(TypeInferenceError):  # where it depends on the size, it stays as it is
        return _as_convolutions(call, lanes, costs)
    return None


def _as_convolutions(call: Call, lanes: int, costs: Costs) -> Expr | None:
    attrs, kernel = call.attrs, call.args[1]
    if not isinstance(kernel, Constant):
        return None
    strides, window = attrs.strides, kernel.array.shape[2:]
    common = [math.gcd(s, d) for s, d in zip(strides, attrs.dilation, strict=True)]
    rests = [s // g for s, g in zip(strides, common, strict=True)]
    full = prod(-(-k // s) * s for k, s in zip(window, rests, strict=True))
    if full > costs.subpixel_filling * prod(window):
        return None
    geometry = [
        SubpixelAxis(*numbers)
        for numbers in zip(
            call.args[0].tensor_type.shape[2:], call.tensor_type.shape[2:], window, strides,
            attrs.padding, attrs.dilation, strict=False,
        )
    ]  # fmt: skip
    with op_registry.span(call.span):
        if max(common) > 1:
            return _spread_apart(call, geometry, common, lanes, costs)
        if _columns_pay(call, geometry, lanes, costs):
            return _columns(call)
        if set(strides) == {1}:
            return _as_convolution(call, kernel.array)
        if set(attrs.dilation) != {1}:
            return _split(call, geometry)
        if lanes > 1 and _is_apart(attrs, window):
            return _pixels(call, lanes) or _split(call, geometry)
        gain = math.inf if attrs.groups == kernel.array.shape[0] else costs.subpixel_gain
        filters = kernel.array.shape[1]
        vectors = [-(-count // max(1, lanes)) for count in (filters, filters * prod(strides))]
        if _worth_splitting(geometry, gain * vectors[1] / (vectors[0] * prod(strides))):
            return _split(call, geometry)
        return _joined(call, kernel.array)


def _is_apart(attrs: Any, window: Sequence[int]) -> bool:
    """Return whether no two taps meet at a pixel: each pixel of the data has some for itself."""
    return set(attrs.dilation) == {1} and all(
        k <= s for k, s in zip(window, attrs.strides, strict=True)
    )


def _fill_vectors(call: Call, lanes: int) -> bool:
    return call.attrs.groups == 1 and call.args[1].tensor_type.shape[1] % max(lanes, 1) == 0


def _pixels(call: Call, lanes: int) -> Expr | None:
    """Products with all taps of which none meet, those of a tap in whole blocks of channels.

    They are put at their pixels as vectors.  None where a tap's channels are no such blocks.
    """
    attrs, (data, weight) = call.attrs, call.args
    assert isinstance(weight, Constant)
    inputs, filters, *window = weight.array.shape
    if not _fill_vectors(call, lanes):
        return None
    count, taps = len(window), prod(window)
    kernel = np.moveaxis(weight.array, (0, 1), (-1, -2)).reshape(taps * filters, inputs)
    products: Expr = op_registry.make(f"nn.conv{count}d")(
        data, Constant(np.asarray(kernel, order="C").reshape(*kernel.shape, *(1,) * count)),
        channels=taps * filters, kernel_size=(1,) * count, out_dtype=attrs.out_dtype,
    )  # fmt: skip
    order = np.full(attrs.strides, -1)
    order[tuple(map(slice, window))] = np.arange(taps).reshape(window)
    first, size = attrs.padding[:count], call.tensor_type.shape[2:]
    ends = [begin + extent for begin, extent in zip(first, size, strict=True)]
    made: Expr = op_registry.make("nn.contrib_interleave")(
        Tuple((products,)), attrs.strides, ends, order.ravel().tolist(), taps
    )
    if any(first):
        made = op_registry.make("strided_slice")(made, first, ends, axes=range(2, 2 + count))
    return made


def _as_convolution(call: Call, kernel: np.ndarray[Any, Any]) -> Expr | None:
    """Return the convolution, of the same dilation, that one of stride 1 is."""
    attrs, count = call.attrs, len(call.attrs.strides)
    reach = [d * (k - 1) for d, k in zip(attrs.dilation, kernel.shape[2:], strict=True)]
    before = [r - p for r, p in zip(reach, attrs.padding[:count], strict=True)]
    sizes = zip(call.args[0].tensor_type.shape[2:], call.tensor_type.shape[2:], strict=True)
    after = [w - d + r - b for (d, w), r, b in zip(sizes, reach, before, strict=True)]
    groups = np.split(kernel, attrs.groups)
    weight = np.concatenate([np.moveaxis(group, 0, 1) for group in groups])
    weight = np.flip(weight, tuple(range(2, 2 + count)))
    return _conv(call, weight, [*before, *after], attrs.dilation)


def _spread_apart(
    call: Call, geometry: Sequence[SubpixelAxis], common: Sequence[int], lanes: int, costs: Costs
) -> Expr | None:
    """Compute the pixels that taps touch, `common` apart, and put zeros between them."""
    attrs = call.attrs
    axes = [axis.thinned(step) for axis, step in zip(geometry, common, strict=True)]
    firsts = [a.cut * step - b.cut for a, step, b in zip(axes, common, geometry, strict=True)]
    if any(axis.wanted < 1 for axis in axes):
        return None
    ends = [axis.data_end() for axis in axes]
    dense = op_registry.get(call.op.name)(
        *call.args,
        attrs=attrs.replace(
            strides=tuple(axis.stride for axis in axes),
            dilation=tuple(axis.dilation for axis in axes),
            padding=(*(axis.cut for axis in axes), *(max(0, end) for end in ends)),
            output_padding=tuple(max(0, -end) for end in ends),
        ),
    )
    made = _as_convolutions(dense, lanes, costs)
    if made is None:
        return None
    sources = [0 if rests == tuple(firsts) else -1 for rests in np.ndindex(*common)]
    whole: Expr = op_registry.make("nn.contrib_interleave")(
        Tuple((made,)), common, call.tensor_type.shape[2:], sources
    )
    return whole


def _joined(call: Call, kernel: np.ndarray[Any, Any]) -> Expr | None:
    """One convolution for all rests, whose kernels have the taps of the longest."""
    attrs, strides = call.attrs, call.attrs.strides
    batch, channels, *size = call.tensor_type.shape
    count = len(strides)
    weight = np.concatenate([phases(g, strides) for g in np.split(kernel, call.attrs.groups)])
    taps = weight.shape[2:]
    make = op_registry.make
    many: Any = _conv(call, weight, tuple(t - 1 for t in taps) * 2)
    positions = many.tensor_type.shape[2:]
    spread = make("reshape")(many, (batch, channels, *strides, *positions))
    order = [axis for a in range(count) for axis in (2 + count + a, 2 + a)]
    spread = make("transpose")(spread, (0, 1, *order))
    extents = [position * stride for position, stride in zip(positions, strides, strict=True)]
    whole = make("reshape")(spread, (batch, channels, *extents))
    first = attrs.padding[:count]
    ends = [begin + extent for begin, extent in zip(first, size, strict=True)]
    if any(end > extent for end, extent in zip(ends, extents, strict=True)):
        return None  # output_padding reaches beyond the last pixel that any tap touches
    if ends == extents and not any(first):
        return whole  # type: ignore[no-any-return]
    cut: Expr = make("strided_slice")(whole, (0, 0, *first), (batch, channels, *ends))
    return cut


def _conv(
    call: Call,
    weight: np.ndarray[Any, Any],
    padding: Sequence[int],
    dilation: Sequence[int] | int = 1,
) -> Expr | None:
    """The convolution of the data of `call` with a kernel (O, C, ...).

    Of the data less what a negative padding cuts off; None where that is all.
    """
    data, count = call.args[0], len(call.attrs.strides)
    if min(padding) < 0:
        shape = data.tensor_type.shape
        first, last = ([max(0, -p) for p in half] for half in (padding[:count], padding[count:]))
        end = [n - cut for n, cut in zip(shape[2:], last, strict=True)]
        if any(n <= begin for n, begin in zip(end, first, strict=True)):
            return None
        data = op_registry.make("strided_slice")(data, (0, 0, *first), (*shape[:2], *end))
        padding = [max(0, p) for p in padding]
    made: Expr = op_registry.make(f"nn.conv{count}d")(
        data,
        Constant(np.asarray(weight, order="C")),
        padding=tuple(padding),
        dilation=dilation,
        channels=weight.shape[0],
        kernel_size=weight.shape[2:],
        groups=call.attrs.groups,
        out_dtype=call.attrs.out_dtype,
    )
    return made


def _worth_splitting(geometry: Sequence[SubpixelAxis], gain: float) -> bool:
    """Return whether convolutions for one remainder each have much less to do than one for all."""
    if not all(axis.shares() for axis in geometry):
        return False
    pairs = [axis.products() for axis in geometry]
    return prod(one for one, _ in pairs) <= gain * prod(joint for _, joint in pairs)


def _columns_pay(call: Call, geometry: Sequence[SubpixelAxis], lanes: int, costs: Costs) -> bool:
    """Return whether products with all taps are much fewer vectors than convolutions' are."""
    attrs, (data, kernel) = call.attrs, call.args
    kinds = {data.tensor_type.dtype, kernel.tensor_type.dtype, call.tensor_type.dtype}
    depth = data.tensor_type.shape[1] // attrs.groups
    if kinds != {"float32"} or lanes < 2 or has_open(data.tensor_type):
        return False
    _, filters, *window = kernel.tensor_type.shape
    is_apart = _is_apart(attrs, window)
    if depth == 1:  # what is written takes the time: pixels three apart are no transpose of a pair
        few = prod(window) <= MOST_TAPS and set(attrs.dilation) == {1}
        return few and is_apart and attrs.groups == 1 and attrs.strides[-1] > 2
    if is_apart and _fill_vectors(call, lanes):
        return False  # the same products, and vectors of pixels
    # Kernels of three taps have Winograd's algorithm.
    if prod(window) > MOST_TAPS or (set(attrs.strides) == {1} and set(window) == {3}):
        return False
    counts = (1, prod(attrs.strides), prod(window))
    vectors = [float(-(-filters * n // lanes)) for n in counts]
    row = geometry[-1].positions
    # Where two taps meet along an axis at most, their sums are a part of what else is written.
    few_meet = all(k <= 2 * s for k, s in zip(window, attrs.strides, strict=True))
    few_meet = few_meet and set(attrs.dilation) == {1}
    if len(window) == 2 and not few_meet:  # whose positions may be the lanes
        filled = -(-row // lanes) / row
        vectors[0] = min(vectors[0], filters * filled)
        vectors[1] = min(vectors[1], filters * counts[1] * filled)
    pairs = [axis.products() for axis in geometry]
    apart, joint = (prod(each) for each in zip(*pairs, strict=True))
    ways = [] if is_apart else [vectors[1] * joint / prod(attrs.strides)]
    if is_apart or all(axis.shares() for axis in geometry):
        ways.append(vectors[0] * apart)
    whole = vectors[2] * prod(axis.data for axis in geometry)
    # Of more taps each is read across memory, element by element.
    meeting = (
        0 if few_meet else prod(-(-k // s) for k, s in zip(window, attrs.strides, strict=True))
    )
    sums = COLUMN_STEPS * filters * meeting * prod(axis.wanted for axis in geometry) / depth
    return bool(whole + sums <= costs.subpixel_gain * min(ways))


def _columns(call: Call) -> Expr:
    """Products of each pixel of the data with all taps, and their sums."""
    attrs, (data, weight) = call.attrs, call.args
    assert isinstance(weight, Constant)
    inputs, filters, *window = weight.array.shape
    count, rows = len(window), attrs.groups * filters * prod(window)
    kernels = [np.moveaxis(group, 0, -1) for group in np.split(weight.array, attrs.groups)]
    kernel = np.concatenate(kernels).reshape(rows, inputs // attrs.groups, *(1,) * count)
    products: Expr = op_registry.make(f"nn.conv{count}d")(
        data, Constant(np.asarray(kernel, order="C")), channels=rows, kernel_size=(1,) * count,
        groups=attrs.groups, out_dtype=attrs.out_dtype,
    )  # fmt: skip
    made: Expr = op_registry.make("nn.contrib_column_sum")(
        products, window, attrs.strides, attrs.dilation, attrs.padding[:count],
        call.tensor_type.shape[2:],
    )  # fmt: skip
    return made


def _split(call: Any, geometry: Sequence[SubpixelAxis]) -> Expr | None:
    """A convolution for each remainder, with the taps and at the positions that it needs.

    None where no tap reaches, and zeros in place of it.
    """
    strides = call.attrs.strides
    count = len(strides)
    groups = np.split(call.args[1].array, call.attrs.groups)
    kernel = np.concatenate([np.moveaxis(group, 0, 1) for group in groups])
    parts: list[Any] = []
    sources = []
    for rests in np.ndindex(*strides):
        pairs = list(zip(geometry, rests, strict=True))
        taps = tuple(slice(axis.taps(r).start, None, axis.stride) for axis, r in pairs)
        weight = np.flip(kernel[(slice(None), slice(None), *taps)], tuple(range(2, 2 + count)))
        if 0 in weight.shape:
            sources.append(-1)
            continue
        around = [axis.padding(r) for axis, r in pairs]
        padding = [p[0] for p in around] + [p[1] for p in around]
        sources.append(len(parts))
        parts.append(_conv(call, weight, padding, [axis.dilation for axis in geometry]))
    if any(part is None for part in parts):
        return None
    made: Expr = op_registry.make("nn.contrib_interleave")(
        Tuple(tuple(parts)), strides, call.tensor_type.shape[2:], sources
    )
    return made


def phases(kernel: np.ndarray[Any, Any], strides: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the kernel (C, O, ...) of a transposed convolution as (O * strides, C, taps).

    Tap t of phase r is tap r + stride * t of the whole kernel, in reverse order; taps beyond the
    kernel are zero.
    """
    inputs, outputs, *window = kernel.shape
    count = len(window)
    taps = [-(-k // s) for k, s in zip(window, strides, strict=True)]
    extents = [t * s for t, s in zip(taps, strides, strict=True)]
    full = np.zeros((inputs, outputs, *extents), kernel.dtype)
    full[(slice(None), slice(None), *(slice(k) for k in window))] = kernel
    pairs = [n for pair in zip(taps, strides, strict=True) for n in pair]
    cut = np.flip(full.reshape(inputs, outputs, *pairs), tuple(2 + 2 * a for a in range(count)))
    phase, tap = ([2 + 2 * a + b for a in range(count)] for b in (1, 0))
    done = cut.transpose(1, *phase, 0, *tap)
    return np.asarray(done.reshape(outputs * prod(strides), inputs, *taps), order="C")
