"""A 3x3 convolution on blocked channels: of small images directly, of large ones by tiles.

Winograd's algorithm takes fewer products and reads more weights; where the image has an open size,
which of the two is faster is known only when the model runs.  The operator has the kernel in both
forms::

    direct  (OC/oc, IC/ic, 3, 3, ic, oc)              as nn.contrib_conv2d_nchwc reads it
    tiles   (OC/oc, m + 2, m + 2, IC/ic, ic, oc)      made by nn.contrib_winograd_weight
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.ir import ops
from slipway.ir.node import node
from slipway.relay.op_registry import Attrs, OpPattern, Ways, get, register_op
from slipway.relay.ops.checks import pad_amounts
from slipway.relay.ops.packed.blocked_conv import BlockedConvAttrs
from slipway.relay.ops.packed.winograd import WinogradAttrs
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.relay.expr import Array, Call, Expr, ExprLike, Extents

DIRECT, TILES = "nn.contrib_conv2d_nchwc", "nn.contrib_conv2d_winograd_nchwc"


@node
class ConvBySizeAttrs(Attrs):
    """Those of both ways, and what each takes, in any unit of time.

    The direct one is taken where ``tiles * tile_cost + kernel_cost > positions * position_cost``.
    """

    padding: tuple[int, ...] = (1, 1, 1, 1)  # top, left, bottom, right
    data_layout: str = "NCHW4c"
    kernel_layout: str = "OIHW4i4o"
    out_layout: str = "NCHW4c"
    tile_cost: int = 36
    kernel_cost: int = 0
    position_cost: int = 9


CONV = register_op(
    "nn.contrib_conv2d_nchwc_by_size", "data", "direct", "tiles", attrs=ConvBySizeAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="3x3 convolution of stride 1, channels in blocks: directly, or if large by tiles.",
)  # fmt: skip


def direct_attrs(attrs: ConvBySizeAttrs) -> BlockedConvAttrs:
    """Return the attributes of the direct convolution."""
    return BlockedConvAttrs(
        padding=attrs.padding, data_layout=attrs.data_layout, kernel_layout=attrs.kernel_layout,
        out_layout=attrs.out_layout,
    )  # fmt: skip


def tiles_attrs(attrs: ConvBySizeAttrs) -> WinogradAttrs:
    """Return the attributes of the convolution by tiles."""
    return WinogradAttrs(attrs.padding, attrs.data_layout, attrs.out_layout)


@CONV.type_relation
def conv_type(
    attrs: ConvBySizeAttrs, data: TensorType, direct: TensorType, tiles: TensorType
) -> Type:
    """What each of both ways says; they agree."""
    get(DIRECT).infer(direct_attrs(attrs), (data, direct))
    return get(TILES).infer(tiles_attrs(attrs), (data, tiles))


@CONV.reference
def conv_reference(attrs: ConvBySizeAttrs, data: Array, direct: Array, tiles: Array) -> Any:
    """By tiles; `direct` is the same kernel."""
    return get(TILES).evaluate(tiles_attrs(attrs), data, tiles)


@CONV.compute
def conv_compute(
    attrs: ConvBySizeAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """By tiles, which serves all sizes."""
    data, _, tiles = inputs
    compute: Any = get(TILES).compute_function
    return compute(tiles_attrs(attrs), [data, tiles], out_types)  # type: ignore[no-any-return]


@CONV.ways
def conv_ways(attrs: ConvBySizeAttrs, args: Sequence[Expr], out: TensorType) -> Ways:
    """By tiles where the image is large enough for what the longer kernel takes."""
    data, direct, tiles = args
    m = tiles.tensor_type.shape[1] - 2
    images, _, height, width, _ = map(_extent, out.shape)
    rows, columns = (ops.floordiv(e + (m - 1), ops.const(m, "int64")) for e in (height, width))
    by_tiles = images * rows * columns * attrs.tile_cost + attrs.kernel_cost
    directly = images * height * width * attrs.position_cost
    return Ways(
        ops.less(directly, by_tiles),
        get(DIRECT)(data, direct, attrs=direct_attrs(attrs)),
        get(TILES)(data, tiles, attrs=tiles_attrs(attrs)),
    )


def _extent(extent: Any) -> Any:
    """Return an extent in as many bits as costs take."""
    return ops.cast(ops.as_expr(getattr(extent, "formula", extent), "int32"), "int64")


@CONV.flops
def conv_flops(
    attrs: ConvBySizeAttrs, in_types: Sequence[TensorType], out_type: TensorType
) -> float:
    """Those of the direct convolution."""
    return get(DIRECT).count_flops(direct_attrs(attrs), in_types[:2], out_type)


@CONV.work
def conv_work(
    attrs: ConvBySizeAttrs, in_types: Sequence[TensorType], out_type: TensorType
) -> float:
    """Those of the tiles."""
    return get(TILES).count_work(tiles_attrs(attrs), [in_types[0], in_types[2]], out_type)


@CONV.make
def contrib_conv2d_nchwc_by_size(
    data: ExprLike,
    direct: ExprLike,
    tiles: ExprLike,
    padding: Extents = 1,
    data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW8i8o",
    out_layout: str = "",
    costs: tuple[int, int, int] = (36, 0, 9),
) -> Call:
    """3x3 convolution of stride 1 with its kernel as it is, and transformed.

    `costs` are those of a tile, of reading the transformed kernel and of a position: see
    `ConvBySizeAttrs`.
    """
    attrs = ConvBySizeAttrs(
        pad_amounts(padding, 2), data_layout, kernel_layout, out_layout or data_layout, *costs
    )
    return CONV(data, direct, tiles, attrs=attrs)


# Small values: see nn.contrib_conv2d_winograd_nchwc.  These costs choose the tiles for both.
CONV.sample_case((1, 2, 9, 8, 4), (2, 2, 3, 3, 4, 4), (2, 6, 6, 2, 4, 4), low=-0.2, high=0.2)
CONV.sample_case(
    (1, 2, 5, 4, 4), (1, 2, 3, 3, 4, 4), (1, 4, 4, 2, 4, 4), attrs=ConvBySizeAttrs(tile_cost=16),
    low=-0.2, high=0.2,
)  # fmt: skip
