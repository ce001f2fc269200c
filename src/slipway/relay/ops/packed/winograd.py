"""3x3 convolution by Winograd's minimal filtering F(m x m, 3x3), on blocked channels.

A tile of 4x4 results takes 36 products for each pair of channels in place of 144, one of 2x2 takes
16 in place of 36.  Data and kernel are transformed, multiplied element by element (a matrix product
over the channels for each element of the transformed tile), and transformed back::

    Y = A^T [ (G g G^T) * (B^T d B) ] A

with the matrices of `winograd_transforms`.  The result differs from the direct sum by rounding:
about twice that sum's own for m = 4 (docs/numerics.md has the measurement).

    kernel  (OC/oc, m + 2, m + 2, IC/ic, ic, oc), made by nn.contrib_winograd_weight
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import is_open
from slipway.relay.expr import Call
from slipway.relay.layout import transform_array
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank, need_shape, need_window, pad_amounts
from slipway.relay.ops.packed.blocked_conv import BlockedConvAttrs, padded
from slipway.relay.ops.packed.winograd_transforms import FILTERINGS, row_of
from slipway.relay.ops.tensor.tensors import shape_of, te, value_of
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents


@node
class WinogradWeightAttrs(Attrs):
    """Attributes of nn.contrib_winograd_weight."""

    tile_size: int = 4  # the m of F(m x m, 3x3)


WEIGHT = register_op(
    "nn.contrib_winograd_weight", "kernel", pattern=OpPattern.OPAQUE,
    attrs=WinogradWeightAttrs,
    doc="G g G^T of each filter: (OC/oc, IC/ic, 3, 3, ic, oc) to (OC/oc, m+2, m+2, IC/ic, ic, oc).",
)  # fmt: skip


@WEIGHT.type_relation
def weight_type(attrs: WinogradWeightAttrs, kernel: TensorType) -> Type:
    """The kernel must be 3x3."""
    need_rank("kernel", kernel, 6)
    outer, inner, _, _, ic, oc = kernel.shape
    need_shape("kernel", kernel, (outer, inner, 3, 3, ic, oc), "Winograd's algorithm")
    if attrs.tile_size not in FILTERINGS:
        raise BadArgument(
            "kernel", f"cannot be transformed for tile_size {attrs.tile_size}: 2 or 4"
        )
    side = attrs.tile_size + 2
    return TensorType((outer, side, side, inner, ic, oc), kernel.dtype)


@WEIGHT.reference
def weight_reference(attrs: WinogradWeightAttrs, kernel: Array) -> Any:
    """Both products with G as one, in float64, one pair of blocks after the other.

    So small that BLAS takes one thread: on a busy machine the others cost fifty times the products.
    """
    matrix = FILTERINGS[attrs.tile_size].kernel
    side = len(matrix)
    outer, inner, _, _, ic, oc = kernel.shape
    both = np.kron(matrix, matrix)  # of 9 elements
    out = np.empty((outer, side * side, inner, ic * oc), kernel.dtype)
    windows = kernel.reshape(outer, inner, 9, ic * oc)
    for o, i in np.ndindex(outer, inner):
        out[o, :, i] = both @ windows[o, i].astype(np.float64)
    return out.reshape(outer, side, side, inner, ic, oc)


@WEIGHT.compute
def weight_compute(
    attrs: WinogradWeightAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """The same, as one sum over the window; kernels are constants, so this is rarely compiled."""
    (kernel,) = inputs
    a, b = (te().reduce_axis((0, 3), name=n) for n in "ab")

    def matrix(row: PrimExpr, column: PrimExpr) -> Any:
        value = te().const(0.0, kernel.dtype)
        for i, line in enumerate(FILTERINGS[attrs.tile_size].kernel):
            for j, number in enumerate(line):
                here = te().all(row == i, column == j)
                value = te().Select(here, te().const(number, kernel.dtype), value)
        return value

    return [
        te().compute(
            out_types[0].shape,
            lambda o, x, y, i, ci, co: te().sum(
                kernel(o, i, a, b, ci, co) * matrix(x, a) * matrix(y, b), axis=[a, b]
            ),
            name="winograd_weight",
        )
    ]


@WEIGHT.make
def contrib_winograd_weight(kernel: ExprLike, tile_size: int = 4) -> Call:
    """Transform the kernel of a 3x3 convolution for `contrib_conv2d_winograd_nchwc`.

    `tile_size` is the m of F(m x m, 3x3): 2 or 4.
    """
    return WEIGHT(kernel, attrs=WinogradWeightAttrs(tile_size))


WEIGHT.sample_case((2, 1, 3, 3, 4, 4), attrs=WinogradWeightAttrs())
WEIGHT.sample_case((1, 2, 3, 3, 4, 4), attrs=WinogradWeightAttrs(2))


@node
class WinogradAttrs(Attrs):
    """Attributes of nn.contrib_conv2d_winograd_nchwc."""

    padding: tuple[int, ...] = (1, 1, 1, 1)  # top, left, bottom, right
    data_layout: str = "NCHW4c"
    out_layout: str = "NCHW4c"


CONV = register_op(
    "nn.contrib_conv2d_winograd_nchwc", "data", "kernel", attrs=WinogradAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="3x3 convolution of stride 1 with a transformed kernel, channels in blocks.",
)  # fmt: skip


@CONV.type_relation
def conv_type(attrs: WinogradAttrs, data: TensorType, kernel: TensorType) -> Type:
    """Channels of data and kernel must agree block by block."""
    need_window(attrs, 2)
    need_rank("data", data, 5)
    need_rank("kernel", kernel, 6)
    need_dtype("kernel", kernel, data.dtype, "data")
    outer, side, oc = kernel.shape[0], kernel.shape[1], kernel.shape[5]
    if side - 2 not in FILTERINGS:
        raise BadArgument("kernel", f"of shape {kernel.shape} is no transformed 3x3 kernel")
    wanted = (outer, side, side, data.shape[1], data.shape[4], oc)
    need_shape("kernel", kernel, wanted, "input channels as in data")
    top, left, bottom, right = attrs.padding
    height, width = data.shape[2] + top + bottom - 2, data.shape[3] + left + right - 2
    if height < 1 or width < 1:
        raise BadArgument("data", f"of shape {data.shape} is smaller than the 3x3 window")
    return TensorType((data.shape[0], outer, height, width, oc), data.dtype)


@CONV.reference
def conv_reference(attrs: WinogradAttrs, data: Array, kernel: Array) -> Any:
    """Transform, multiply and transform back, in float64."""
    plain = transform_array(data, attrs.data_layout, "NCHW").astype(np.float64)
    top, left, bottom, right = attrs.padding
    n, channels, h, w = plain.shape
    height, width = h + top + bottom - 2, w + left + right - 2
    filtering = FILTERINGS[kernel.shape[1] - 2]
    m, side = filtering.tile, filtering.side
    rows, columns = -(-height // m), -(-width // m)
    full = np.zeros((n, channels, rows * m + 2, columns * m + 2))
    full[:, :, top : top + h, left : left + w] = plain
    u = kernel.astype(np.float64).transpose(1, 2, 0, 5, 3, 4)
    u = u.reshape(side, side, kernel.shape[0] * kernel.shape[5], channels)
    b, a = np.asarray(filtering.input, np.float64), np.asarray(filtering.output, np.float64)
    result = np.zeros((n, u.shape[2], rows * m, columns * m))
    for y, x in np.ndindex(rows, columns):
        piece = full[:, :, y * m : y * m + side, x * m : x * m + side]
        v = np.einsum("xa,yb,ncab->xync", b, b, piece)
        product = np.einsum("xyoc,xync->xyno", u, v)
        result[:, :, y * m : y * m + m, x * m : x * m + m] = np.einsum(
            "hx,wy,xyno->nohw", a, a, product
        )
    cut = np.asarray(result[:, :, :height, :width], order="C").astype(data.dtype)
    return transform_array(cut, "NCHW", attrs.out_layout)


FEW_ROWS = 8  # of tiles in a block: where one begins is compared


@dataclass(frozen=True)
class TileBlocks:
    """Tiles are worked on in blocks of `rows` rows of tiles, padded to a multiple of `multiple`."""

    rows: int = 1
    multiple: int = 1

    def of_image(self, height: int, m: int) -> tuple[TileBlocks, int]:
        """Return the blocks of an image in tiles of m by m, and their number.

        A block that is always the whole image has as many rows as that, which may be open.
        """
        parts = (height + self.rows * m - 1) // (self.rows * m)
        whole = is_open(height) and parts == 1
        return (TileBlocks((height + m - 1) // m, self.multiple) if whole else self), parts

    def tiles(self, columns: int) -> int:
        """Return how many tiles a block has, `columns` in a row, with its padding."""
        return (self.rows * columns + self.multiple - 1) // self.multiple * self.multiple

    def position(self, q: Any, columns: int) -> tuple[Any, Any]:
        """Return the row and the column of a tile; of one of the padding those of another."""
        tiles = self.rows * columns
        tile = q if self.tiles(columns) == tiles else te().min(q, value_of(tiles - 1))
        if self.rows == 1:
            return 0, tile
        if is_open(columns) and isinstance(self.rows, int) and self.rows <= FEW_ROWS:
            # A division by what is no constant takes as long as a third of the transform.
            ends = [value_of(columns * row) for row in range(1, self.rows)]
            row = sum(
                ((tile >= end).astype("int32") for end in ends[1:]),
                (tile >= ends[0]).astype("int32"),
            )
            column = te().min(tile - row * value_of(columns), value_of(columns - 1))
            return row, te().max(column, 0)
        row, column = (divide(tile, value_of(columns)) for divide in (te().floordiv, te().floormod))
        # That it is one of a block's rows is not proved for an open length.
        return te().min(row, value_of(self.rows - 1)) if is_open(columns) else row, column


def winograd_stages(
    attrs: WinogradAttrs, inputs: list[Any], out: TensorType, blocks_of: TileBlocks
) -> Any:
    """Six stages: pad, two input transforms, products, two output transforms.  Of open sizes seven.

    Between the transforms a tile is (n, y, q): image, block of rows of tiles, place in the block.
    """
    data, kernel = inputs
    batch, blocks, height, width, lanes = out.shape
    filtering = FILTERINGS[shape_of(kernel)[1] - 2]
    m, side = filtering.tile, filtering.side
    columns = (width + m - 1) // m
    blocks_of, parts = blocks_of.of_image(height, m)
    step = blocks_of.rows * m  # rows of results in a block
    padded_tiles = blocks_of.tiles(columns)
    top, left, _, _ = attrs.padding
    _, chunks, h, w, ic = shape_of(data)
    fill = BlockedConvAttrs(
        padding=(top, left, parts * step + 2 - h - top, columns * m + 2 - w - left)
    )
    source = padded(data, fill)

    def first(
        n: PrimExpr, part: PrimExpr, c: PrimExpr, q: PrimExpr, x: PrimExpr, b: PrimExpr, i: PrimExpr
    ) -> Any:
        row, column = blocks_of.position(q, columns)
        y, left_edge = part * step + row * m, column * m
        return row_of(
            x, filtering.input_rows([source(n, c, y + a, left_edge + b, i) for a in range(side)])
        )

    half = te().compute(
        (batch, parts, chunks, padded_tiles, side, side, ic), first, name="half",
        tag="winograd_half",
    )  # fmt: skip
    v = te().compute(
        (batch, parts, chunks, side, side, padded_tiles, ic),
        lambda n, part, c, x, y, q, i: row_of(
            y, filtering.input_rows([half(n, part, c, q, x, b, i) for b in range(side)])
        ),
        name="data_transform",
        tag="winograd_data",
    )
    chunk = te().reduce_axis((0, chunks), name="ic_chunk")
    lane = te().reduce_axis((0, ic), name="ic")
    products = te().compute(
        (batch, parts, blocks, side, side, padded_tiles, lanes),
        lambda n, part, o, x, y, q, ob: te().sum(
            v(n, part, chunk, x, y, q, lane) * kernel(o, x, y, chunk, lane, ob), axis=[chunk, lane]
        ),
        name="products",
        tag="winograd_products",
    )

    def back(
        n: PrimExpr, o: PrimExpr, yy: PrimExpr, tx: PrimExpr, j: PrimExpr, ob: PrimExpr
    ) -> Any:
        part, inside = (0, yy) if parts == 1 else (te().floordiv(yy, step), te().floormod(yy, step))
        tile = te().floordiv(inside, m) * columns + tx
        values = [products(n, part, o, i, j, tile, ob) for i in range(side)]
        return row_of(te().floormod(inside, m), filtering.output_rows(values))

    output_half = te().compute(
        (batch, blocks, parts * step, columns, side, lanes), back, name="output_half",
        tag="winograd_output_half",
    )  # fmt: skip

    result = _last_transform(output_half, filtering, m)
    if is_open(height) or is_open(width):  # whole tiles, some of which the image may end in
        tiles = (batch, blocks, parts * step, columns * m, lanes)
        result = te().compute(tiles, result, name="results", tag="winograd_results")
    return te().compute(
        out.shape,
        lambda *position: result(*position),
        name="conv2d_winograd_NCHWc",
        tag="winograd_output",
    )


def _last_transform(half: Any, filtering: Any, m: int) -> Any:
    """Return what gives an element of the results from their half transform."""

    def result(n: PrimExpr, o: PrimExpr, y: PrimExpr, x: PrimExpr, ob: PrimExpr) -> Any:
        values = [half(n, o, y, te().floordiv(x, m), j, ob) for j in range(filtering.side)]
        return row_of(te().floormod(x, m), filtering.output_rows(values))

    return result


@CONV.compute
def conv_compute(attrs: WinogradAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """The stages for one row of tiles at a time."""
    return [winograd_stages(attrs, inputs, out_types[0], TileBlocks())]


@CONV.flops
def conv_flops(attrs: WinogradAttrs, in_types: Sequence[TensorType], out_type: TensorType) -> float:
    """Two for each multiply-add of the direct convolution, so that speeds compare."""
    kernel = in_types[1].shape
    return float(2 * out_type.size * 9 * kernel[3] * kernel[4])


@CONV.work
def conv_work(attrs: WinogradAttrs, in_types: Sequence[TensorType], out_type: TensorType) -> float:
    """The products of all elements of transformed tiles, and the transforms along both sides."""
    data, kernel = in_types[0].shape, in_types[1].shape
    side = kernel[1]
    filtering = FILTERINGS[side - 2]
    n, _, height, width, _ = out_type.shape
    tiles = n * -(-height // filtering.tile) * -(-width // filtering.tile)
    inputs, outputs = data[1] * data[4], kernel[0] * kernel[5]
    there = 2 * side * filtering.input_steps * inputs
    back = (side + filtering.tile) * filtering.output_steps * outputs
    return float(2 * tiles * (side * side * kernel[3] * kernel[4] * outputs + there + back))


@CONV.make
def contrib_conv2d_winograd_nchwc(
    data: ExprLike,
    kernel: ExprLike,
    padding: Extents = 1,
    data_layout: str = "NCHW8c",
    out_layout: str = "",
) -> Call:
    """3x3 convolution of stride 1; `kernel` is transformed by `contrib_winograd_weight`."""
    attrs = WinogradAttrs(pad_amounts(padding, 2), data_layout, out_layout or data_layout)
    return CONV(data, kernel, attrs=attrs)


# Small values: transforms amplify, and rounding errors go with the largest terms.
CONV.sample_case((1, 2, 9, 8, 4), (2, 6, 6, 2, 4, 4), low=-0.2, high=0.2)
CONV.sample_case((1, 2, 5, 4, 4), (1, 4, 4, 2, 4, 4), low=-0.2, high=0.2)
CONV.sample_case(
    (2, 1, 6, 5, 4), (1, 6, 6, 1, 4, 4), attrs=WinogradAttrs(padding=(0, 0, 0, 0)), low=-0.2,
    high=0.2,
)  # fmt: skip
