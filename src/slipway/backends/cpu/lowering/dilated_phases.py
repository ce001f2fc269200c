"""Dilated 3x3 convolutions as ones without dilation, which Winograd's algorithm may compute.

Results whose positions have the same remainders modulo the dilation, a phase, read pixels of one
phase only.  So the phases of an image are put beside and below each other, each with its padding,
and the results are put back in order; what windows across two phases give is left out::

    nn.conv2d(%x: (1, 64, 28, 28), %w: (64, 64, 3, 3), padding 2, dilation 2)
        ->  %p = reshape(transpose(reshape(nn.pad(%x)))): (1, 64, 32, 32)
            %y = nn.conv2d(%p, %w): (1, 64, 30, 30)
            strided_slice(reshape(transpose(reshape(nn.pad(%y))))): (1, 64, 28, 28)

where what Winograd's algorithm saves is more than what is moved.  Moves join the layout transforms
and the epilogue around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from slipway.backends.cpu.lowering.winograd_choice import winograd_costs
from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.open_dims import has_open
from slipway.relay.ops.nn.windows import taps_inside
from slipway.relay.visit import rewrite
from slipway.target.cores import Core, core_of


def dilated_phases(function: Function, lanes: int, core: Core | None = None) -> Function:
    """Return `function`, whose dilated convolutions are computed by phases where that is faster.

    The arguments are those of `winograd_costs`.
    """
    core = core or core_of("", 32 * lanes, {})
    return rewrite(function, lambda call: _rule(call, lanes, core))  # type: ignore[no-any-return]


def _rule(call: Expr, lanes: int, core: Core) -> Expr | None:
    if not is_call_of(call, "nn.conv2d") or has_open(call.type):
        return None
    attrs, (data, kernel) = call.attrs, (a.tensor_type for a in call.args)
    layouts = attrs.data_layout, attrs.kernel_layout
    if max(attrs.dilation) == 1 or attrs.groups != 1 or layouts != ("NCHW", "OIHW"):
        return None
    kinds = {data.dtype, kernel.dtype, call.tensor_type.dtype}
    if kinds != {"float32"} or kernel.shape[2:] != (3, 3) or set(attrs.strides) != {1}:
        return None
    with op_registry.span(call.span):
        inner = _inner(call)
        return _in_order(call, inner) if _pays(call, inner, lanes, core) else None


def _inner(call: Call) -> Call:
    """The convolution without dilation of the phases of the padded data."""
    attrs, (data, kernel) = call.attrs, call.args
    make: Any = op_registry.make
    around = []
    for a, (extent, step) in enumerate(
        zip(data.tensor_type.shape[2:], attrs.dilation, strict=True)
    ):
        before, after = attrs.padding[a], attrs.padding[a + 2]
        around.append((before, after + -(extent + before + after) % step))
    if any(map(any, around)):
        data = make("nn.pad")(data, ((0, 0), (0, 0), *around))
    plain = attrs.replace(dilation=(1, 1), padding=(0, 0, 0, 0))
    phases = _exchanged(data, attrs.dilation)
    inner: Call = op_registry.get("nn.conv2d")(phases, kernel, attrs=plain)
    return inner


def _in_order(call: Call, inner: Call) -> Expr:
    """The results of all phases, each pixel where it belongs."""
    make: Any = op_registry.make
    whole = make("nn.pad")(inner, ((0, 0), (0, 0), (0, 2), (0, 2)))
    extents = [
        s // d for s, d in zip(whole.tensor_type.shape[2:], call.attrs.dilation, strict=True)
    ]
    cut: Expr = make("strided_slice")(
        _exchanged(whole, extents), (0, 0, 0, 0), call.tensor_type.shape
    )
    return cut


def _exchanged(image: Expr, steps: Sequence[int]) -> Expr:
    """Return an image whose row ``y * step + r`` is row ``r * (rows / step) + y``; so columns."""
    make: Any = op_registry.make
    shape = image.tensor_type.shape
    (down, across), (rows, columns) = steps, shape[2:]
    parts = (*shape[:2], rows // down, down, columns // across, across)
    apart = make("transpose")(make("reshape")(image, parts), (0, 1, 3, 2, 5, 4))
    whole: Expr = make("reshape")(apart, shape)
    return whole


def _pays(call: Call, inner: Call, lanes: int, core: Core) -> bool:
    """Return whether tiles of all phases, and the moves, take less than the taps inside the image.

    Both in products of one position's vector, as `WinogradCosts`; a move takes as long as the
    transforms of an element.
    """
    costs = winograd_costs(inner, lanes, core=core)
    if costs is None:
        return False
    attrs, (data, kernel) = call.attrs, (a.tensor_type for a in call.args)
    filters, channels = kernel.shape[:2]
    images, _, rows, columns = inner.tensor_type.shape
    moved = prod(inner.args[0].tensor_type.shape) / channels / filters
    moved += images * rows * columns / channels
    tiles = min(costs.of_tiles(m, images, rows, columns) for m in (2, 4))
    axes = zip(
        call.tensor_type.shape[2:], data.shape[2:], kernel.shape[2:], attrs.strides,
        attrs.dilation, attrs.padding[:2], strict=True,
    )  # fmt: skip
    inside = prod(sum(map(len, taps_inside(*axis))) for axis in axes)
    direct = data.shape[0] * inside + costs.reading(9)
    return tiles + core.costs.transform_products * moved <= costs.gain * direct
