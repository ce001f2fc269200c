"""3x3 convolution of bytes by Winograd's F(2x2, 3x3), in integers and therefore exact.

Four results take 16 products for each pair of channels in place of 36, of 16 bits each.  With the
matrices of `winograd_transforms`, G doubled so that it is whole::

    4 Y = A^T [ (2G g 2G^T) * (B^T d B) ] A

Transformed bytes are at most 4 * 255, transformed weights 9 * 128, so both fit int16.  What the
sums over the channels may overflow in between comes back, as int32 counts modulo 2^32, and 4 Y
itself fits with at most `MOST_CHANNELS`.

    data    (N, H, W, C)
    weight  (O/o, 4, 4, C/d, o, d)     transformed, packed as those of qnn.contrib_conv2d_packed
    result  (N, OH, OW, O)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_integral, need_rank
from slipway.relay.ops.nn.windows import conv_extents, pad_stage
from slipway.relay.ops.packed.winograd import TileBlocks
from slipway.relay.ops.packed.winograd_transforms import FILTERINGS, row_of
from slipway.relay.ops.qnn.conv import IntegerConvAttrs, conv_attrs
from slipway.relay.ops.tensor.tensors import shape_of, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import ExprLike, Extents

Array = np.ndarray[Any, Any]

FILTERING = FILTERINGS[2]
SCALE_BITS = 2  # the sums are 4 times the convolution's
MOST_CHANNELS = (1 << 31) // (4 * 9 * 255 * 128)

WINOGRAD = register_op(
    "qnn.contrib_conv2d_winograd", "data", "weight", attrs=IntegerConvAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="qnn.conv2d_nhwc, 3x3 of stride 1, with weight (O / o, 4, 4, C / d, o, d): transformed.",
)  # fmt: skip


def transform_weights(weight: Array) -> Array:
    """Return 2G g 2G^T of integer weights (3, 3, C, O), as int16 (4, 4, C, O)."""
    double = (2 * np.asarray(FILTERING.kernel)).astype(np.int64)
    made = np.einsum("xa,yb,abco->xyco", double, double, weight.astype(np.int64))
    return np.asarray(made, np.int16)


@WINOGRAD.type_relation
def winograd_type(attrs: IntegerConvAttrs, data: TensorType, weight: TensorType) -> Type:
    """The data's channels must be those of the weight."""
    need_integral("data", data)
    need_rank("data", data, 4)
    need_dtype("weight", weight, "int16", "its transform")
    need_rank("weight", weight, 6)
    blocks, kh, kw, chunks, lanes, depth = weight.shape
    if (kh, kw, chunks * depth) != (FILTERING.side, FILTERING.side, data.shape[3]):
        raise BadArgument("weight", f"is {weight}: it does not fit the data's channels, {data}")
    if (*attrs.strides, *attrs.dilation) != (1, 1, 1, 1):
        raise BadArgument("data", "is read with strides or dilation, which tiles do not have")
    height, width = conv_extents(data.shape[1:3], (3, 3), (1, 1), attrs.padding, (1, 1))
    return TensorType((data.shape[0], height, width, blocks * lanes), attrs.out_dtype)


@WINOGRAD.reference
def winograd_reference(attrs: IntegerConvAttrs, data: Array, weight: Array) -> Any:
    """Transform, multiply and transform back."""
    blocks, side, _, chunks, lanes, depth = weight.shape
    top, left, bottom, right = attrs.padding
    n, h, w, channels = data.shape
    height, width = h + top + bottom - 2, w + left + right - 2
    m, rows, columns = FILTERING.tile, -(-height // 2), -(-width // 2)
    full = np.full((n, rows * m + 2, columns * m + 2, channels), attrs.pad_value, np.int64)
    full[:, top : top + h, left : left + w] = data
    u = weight.astype(np.int64).transpose(1, 2, 3, 5, 0, 4)
    u = u.reshape(side, side, chunks * depth, blocks * lanes)
    b, a = np.asarray(FILTERING.input), np.asarray(FILTERING.output)
    result = np.zeros((n, rows * m, columns * m, blocks * lanes), np.int64)
    for y, x in np.ndindex(rows, columns):
        piece = full[:, y * m : y * m + side, x * m : x * m + side]
        v = np.einsum("xa,yb,nabc->nxyc", b, b, piece)
        product = np.einsum("nxyc,xyco->nxyo", v, u)
        tile = np.einsum("hx,wy,nxyo->nhwo", a, a, product)
        result[:, y * m : y * m + m, x * m : x * m + m] = tile
    return (result[:, :height, :width] >> SCALE_BITS).astype(attrs.out_dtype)


def winograd_stages(
    attrs: IntegerConvAttrs, inputs: Sequence[Any], out: TensorType, blocks_of: TileBlocks
) -> Any:
    """Five stages and a padding: two input transforms, products, two output transforms.

    Between the transforms a tile is (n, part, q): image, block of rows of tiles, place in there.
    """
    data, weight = inputs
    batch, height, width, outputs = out.shape
    blocks, side, _, chunks, lanes, depth = shape_of(weight)
    m, columns = FILTERING.tile, -(-width // FILTERING.tile)
    step = blocks_of.rows * m  # rows of results in a block
    parts, padded_tiles = -(-height // step), blocks_of.tiles(columns)
    top, left, _, _ = attrs.padding
    _, h, w, channels = shape_of(data)
    below, beside = parts * step + 2 - h - top, columns * m + 2 - w - left
    source = pad_stage(data, (0, top, left, 0), (0, below, beside, 0), attrs.pad_value)

    def first(
        n: PrimExpr, part: PrimExpr, q: PrimExpr, x: PrimExpr, b: PrimExpr, c: PrimExpr
    ) -> Any:
        row, column = blocks_of.position(q, columns)
        y, left_edge = part * step + row * m, column * m
        lines = [source(n, y + a, left_edge + b, c).astype("int16") for a in range(side)]
        return row_of(x, FILTERING.input_rows(lines))

    half = te().compute(
        (batch, parts, padded_tiles, side, side, channels), first, name="half", tag="winograd_half"
    )
    v = te().compute(
        (batch, parts, side, side, padded_tiles, channels),
        lambda n, part, x, y, q, c: row_of(
            y, FILTERING.input_rows([half(n, part, q, x, b, c) for b in range(side)])
        ),
        name="data_transform",
        tag="winograd_data",
    )
    chunk = te().reduce_axis((0, chunks), name="kc")
    element = te().reduce_axis((0, depth), name="k")

    def product(
        n: PrimExpr,
        part: PrimExpr,
        o: PrimExpr,
        x: PrimExpr,
        y: PrimExpr,
        q: PrimExpr,
        lane: PrimExpr,
    ) -> Any:
        datum = v(n, part, x, y, q, chunk * depth + element).astype(out.dtype)
        factor = weight(o, x, y, chunk, lane, element).astype(out.dtype)
        return te().sum(datum * factor, axis=[chunk, element])

    products = te().compute(
        (batch, parts, blocks, side, side, padded_tiles, lanes), product, name="products",
        tag="winograd_products",
    )  # fmt: skip

    def back(n: PrimExpr, yy: PrimExpr, tx: PrimExpr, j: PrimExpr, c: PrimExpr) -> Any:
        part, inside = te().floordiv(yy, step), te().floormod(yy, step)
        tile = te().floordiv(inside, m) * columns + tx
        o, lane = te().floordiv(c, lanes), te().floormod(c, lanes)
        values = [products(n, part, o, i, j, tile, lane) for i in range(side)]
        return row_of(te().floormod(inside, m), FILTERING.output_rows(values))

    output_half = te().compute(
        (batch, parts * step, columns, side, outputs),
        back,
        name="output_half",
        tag="winograd_output_half",
    )

    def result(n: PrimExpr, y: PrimExpr, x: PrimExpr, c: PrimExpr) -> Any:
        values = [output_half(n, y, te().floordiv(x, m), j, c) for j in range(side)]
        return row_of(te().floormod(x, m), FILTERING.output_rows(values)) >> SCALE_BITS

    return te().compute(out.shape, result, name="conv2d_winograd", tag="winograd_output")


@WINOGRAD.compute
def winograd_compute(
    attrs: IntegerConvAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """The stages for one row of tiles at a time."""
    return [winograd_stages(attrs, inputs, out_types[0], TileBlocks())]


@WINOGRAD.flops
def winograd_flops(attrs: IntegerConvAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    """Two for each multiply-add of the direct convolution, so that speeds compare."""
    return 2.0 * out.size * 9 * ins[0].shape[3]


@WINOGRAD.work
def winograd_work(attrs: IntegerConvAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    """Products of pairs; 16 of 36 are left."""
    return winograd_flops(attrs, ins, out) * 16 / 36 / 2


@WINOGRAD.make
def contrib_conv2d_winograd(
    data: ExprLike, weight: ExprLike, padding: Extents = (0, 0, 0, 0), pad_value: int = 0,
    out_dtype: str = "int32",
) -> Call:  # fmt: skip
    """Convolve data (N, H, W, C) with weights that `transform_weights` has made, and packed."""
    attrs = conv_attrs((1, 1), padding, (1, 1), 1, pad_value, out_dtype)
    return WINOGRAD(data, weight, attrs=attrs)


_PADDED = IntegerConvAttrs((1, 1), (1, 1, 1, 1), pad_value=9)
for _data, _weight, _kind in (
    ((1, 7, 6, 16), (2, 4, 4, 8, 8, 2), "uint8"),
    ((2, 5, 8, 8), (1, 4, 4, 4, 4, 2), "int8"),
):
    WINOGRAD.sample_case(_data, _weight, attrs=_PADDED, dtypes=(_kind, "int16"), low=-128, high=127)
