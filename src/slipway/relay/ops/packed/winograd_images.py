"""Winograd's minimal filtering of plain images, as three operators that many threads can share.

``nn.contrib_conv2d_winograd_nchwc`` (`winograd.py`) works on one block of tiles at a time, which
stays in a processor's cache.  Here each step is done for all tiles of an image before the next::

    V = contrib_winograd_tiles(data)              (s * s, C, tiles) or (s * s, tiles, C)
    M = batch_matmul(weights, V)                  one product for each element of a tile, s = m + 2
    Y = contrib_winograd_image(M)                 (N, O, H, W) or (N, H, W, O)

so the products are those that a backend has schedules for.  Tiles are counted image by image, row
by row; there is a multiple of four of them, the last one again if need be, so that products of four
of them at a time are whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import is_open
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import as_tuple, need_rank, need_steps, need_window, pad_amounts
from slipway.relay.ops.nn.windows import pad_stage
from slipway.relay.ops.packed.winograd_transforms import FILTERINGS, Filtering, row_of
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents

LAYOUTS = ("NCHW", "NHWC")
_TOGETHER = 4


@node
class TilesAttrs(Attrs):
    """Attributes of nn.contrib_winograd_tiles."""

    padding: tuple[int, ...] = (1, 1, 1, 1)  # top, left, bottom, right
    tile_size: int = 4  # the m of F(m x m, 3x3)
    data_layout: str = "NCHW"
    out_dtype: str = ""  # data of a narrower type is read as it is


@node
class ImageAttrs(Attrs):
    """Attributes of nn.contrib_winograd_image."""

    size: tuple[int, ...] = (1, 4, 4)  # images, and the height and width of each
    tile_size: int = 4
    out_layout: str = "NCHW"


def _filtering(name: str, tile: int, layout: str) -> Filtering:
    if tile not in FILTERINGS:
        raise BadArgument(name, f"cannot be transformed for tile_size {tile}: 2 or 4")
    if layout not in LAYOUTS:
        raise BadArgument(name, f"of layout {layout!r}: {' or '.join(LAYOUTS)}")
    return FILTERINGS[tile]


def _extents(attrs: TilesAttrs, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return images, channels, and the height and width of the convolution's result."""
    n, *rest = shape
    c, h, w = rest if attrs.data_layout == "NCHW" else (rest[2], *rest[:2])
    top, left, bottom, right = attrs.padding
    return n, c, h + top + bottom - 2, w + left + right - 2


def _tiles(height: int, width: int, m: int) -> tuple[int, int]:
    return -(-height // m), -(-width // m)


def padded_tiles(tiles: int) -> int:
    """Return how many tiles the matrices hold for so many of the images."""
    return -(-tiles // _TOGETHER) * _TOGETHER if tiles > _TOGETHER else tiles


TILES = register_op(
    "nn.contrib_winograd_tiles", "data", attrs=TilesAttrs, pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="B^T d B of each tile d of an image: a matrix of channels and tiles for each element.",
)  # fmt: skip


@TILES.type_relation
def tiles_type(attrs: TilesAttrs, data: TensorType) -> Type:
    """The image must have a window of 3x3."""
    side = _filtering("data", attrs.tile_size, attrs.data_layout).side
    need_window(attrs, 2)
    need_rank("data", data, 4)
    if any(map(is_open, data.shape)):
        raise BadArgument("data", f"of shape {data.shape} has an open dimension")
    n, c, height, width = _extents(attrs, data.shape)
    if height < 1 or width < 1:
        raise BadArgument("data", f"of shape {data.shape} is smaller than the 3x3 window")
    rows, columns = _tiles(height, width, attrs.tile_size)
    tiles = padded_tiles(n * rows * columns)
    matrix = (c, tiles) if attrs.data_layout == "NCHW" else (tiles, c)
    return TensorType((side * side, *matrix), attrs.out_dtype or data.dtype)


@TILES.reference
def tiles_reference(attrs: TilesAttrs, data: Array) -> Any:
    """Both products with B, in float64."""
    filtering = FILTERINGS[attrs.tile_size]
    n, c, height, width = _extents(attrs, data.shape)
    m, side = filtering.tile, filtering.side
    rows, columns = _tiles(height, width, m)
    plain = data if attrs.data_layout == "NCHW" else data.transpose(0, 3, 1, 2)
    top, left, _, _ = attrs.padding
    full = np.zeros((n, c, rows * m + 2, columns * m + 2))
    part = plain[:, :, : rows * m + 2 - top, : columns * m + 2 - left]
    full[:, :, top : top + part.shape[2], left : left + part.shape[3]] = part
    windows = np.lib.stride_tricks.sliding_window_view(full, (side, side), axis=(2, 3))
    b = np.asarray(filtering.input, np.float64)
    made = np.einsum("xa,yb,ncrqab->xycnrq", b, b, windows[:, :, ::m, ::m])
    tiles = n * rows * columns
    made = made.reshape(side * side, c, tiles)
    more = padded_tiles(tiles) - tiles
    made = np.concatenate([made, np.repeat(made[:, :, -1:], more, axis=2)], axis=2)
    made = made if attrs.data_layout == "NCHW" else made.transpose(0, 2, 1)
    return np.asarray(made, order="C").astype(attrs.out_dtype or data.dtype)


@TILES.compute
def tiles_compute(attrs: TilesAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """Three stages: pad, transform along the rows, and along the columns."""
    (data,) = inputs
    filtering = FILTERINGS[attrs.tile_size]
    m, side = filtering.tile, filtering.side
    first = attrs.data_layout == "NCHW"
    shape = tuple(int(n) for n in data.shape)
    n, _, height, width = _extents(attrs, shape)
    rows, columns = _tiles(height, width, m)
    h, w = shape[2:] if first else shape[1:3]
    top, left, _, _ = attrs.padding
    bottom, right = (max(0, k * m + 2 - e - b) for k, e, b in
                     ((rows, h, top), (columns, w, left)))  # fmt: skip
    before, after = ((0, 0, top, left), (0, 0, bottom, right))
    if not first:
        before, after = (0, top, left, 0), (0, bottom, right, 0)
    source = pad_stage(data, before, after, 0)

    tiles = n * rows * columns

    def pixel(p: PrimExpr, c: PrimExpr, a: PrimExpr | int, b: PrimExpr | int) -> Any:
        if padded_tiles(tiles) != tiles:
            p = te().min(p, te().const(tiles - 1, p.dtype))
        y = te().floormod(te().floordiv(p, columns), rows) * m + a
        x = te().floormod(p, columns) * m + b
        image = te().floordiv(p, rows * columns)
        value = source(image, c, y, x) if first else source(image, y, x, c)
        return value.astype(attrs.out_dtype) if attrs.out_dtype else value

    _, *matrix = (int(k) for k in out_types[0].shape)

    def half_of(i: PrimExpr, j: PrimExpr, x: PrimExpr, b: PrimExpr) -> Any:
        p, c = (j, i) if first else (i, j)
        return row_of(x, filtering.input_rows([pixel(p, c, a, b) for a in range(side)]))

    half = te().compute((*matrix, side, side), half_of, name="half", tag="winograd_half")

    def both_of(xy: PrimExpr, i: PrimExpr, j: PrimExpr) -> Any:
        x, y = te().floordiv(xy, side), te().floormod(xy, side)
        return row_of(y, filtering.input_rows([half(i, j, x, b) for b in range(side)]))

    return [te().compute((side * side, *matrix), both_of, name="tiles", tag="winograd_tiles")]


@TILES.make
def contrib_winograd_tiles(
    data: ExprLike, padding: Extents = 1, tile_size: int = 4, data_layout: str = "NCHW",
    out_dtype: str = "",
) -> Call:  # fmt: skip
    """Transform the tiles of an image for a 3x3 convolution of stride 1."""
    attrs = TilesAttrs(pad_amounts(padding, 2), tile_size, data_layout, out_dtype)
    return TILES(data, attrs=attrs)


TILES.sample_case((1, 3, 9, 8))
TILES.sample_case((1, 2, 4, 5), attrs=TilesAttrs(out_dtype="float32"), dtypes=("float16",))
TILES.sample_case((2, 5, 6, 2), attrs=TilesAttrs((0, 1, 1, 0), 2, "NHWC"))


IMAGE = register_op(
    "nn.contrib_winograd_image", "products", attrs=ImageAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="A^T m A of each transformed tile m, put together to images.",
)  # fmt: skip


@IMAGE.type_relation
def image_type(attrs: ImageAttrs, products: TensorType) -> Type:
    """There must be as many tiles as the images have."""
    side = _filtering("products", attrs.tile_size, attrs.out_layout).side
    need_rank("products", products, 3)
    need_steps("size", attrs.size, 3)
    n, height, width = attrs.size
    rows, columns = _tiles(height, width, attrs.tile_size)
    first = attrs.out_layout == "NCHW"
    elements, *matrix = products.shape
    filters, tiles = matrix if first else matrix[::-1]
    wanted = padded_tiles(n * rows * columns)
    if elements != side * side or tiles != wanted:
        raise BadArgument(
            "products",
            f"of shape {products.shape} is no {wanted} tiles of {side}x{side} elements",
        )
    shape = (n, filters, height, width) if first else (n, height, width, filters)
    return TensorType(shape, products.dtype)


@IMAGE.reference
def image_reference(attrs: ImageAttrs, products: Array) -> Any:
    """Both products with A, in float64."""
    filtering = FILTERINGS[attrs.tile_size]
    m, side = filtering.tile, filtering.side
    n, height, width = attrs.size
    rows, columns = _tiles(height, width, m)
    first = attrs.out_layout == "NCHW"
    whole = products.astype(np.float64)
    whole = whole if first else whole.transpose(0, 2, 1)
    whole = whole[:, :, : n * rows * columns].reshape(side, side, -1, n, rows, columns)
    a = np.asarray(filtering.output, np.float64)
    made = np.einsum("hx,wy,xyonrq->norhqw", a, a, whole)
    made = made.reshape(n, -1, rows * m, columns * m)[:, :, :height, :width]
    made = made if first else made.transpose(0, 2, 3, 1)
    return np.asarray(made, order="C").astype(products.dtype)


@IMAGE.compute
def image_compute(attrs: ImageAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """Two stages: transform along the rows, and along the columns."""
    (products,) = inputs
    filtering = FILTERINGS[attrs.tile_size]
    m, side = filtering.tile, filtering.side
    _, height, width = attrs.size
    rows, columns = _tiles(height, width, m)
    first = attrs.out_layout == "NCHW"
    _, *matrix = (int(k) for k in products.shape)

    def half_of(i: PrimExpr, j: PrimExpr, row: PrimExpr, y: PrimExpr) -> Any:
        values = [products(x * side + y, i, j) for x in range(side)]
        return row_of(row, filtering.output_rows(values))

    output_half = te().compute(
        (*matrix, m, side), half_of, name="output_half", tag="winograd_output_half"
    )

    def element(*position: PrimExpr) -> Any:
        n, o, y, x = position if first else (position[0], position[3], *position[1:3])
        tile = (n * rows + te().floordiv(y, m)) * columns + te().floordiv(x, m)
        i, j = (o, tile) if first else (tile, o)
        row, column = te().floormod(y, m), te().floormod(x, m)
        return row_of(
            column, filtering.output_rows([output_half(i, j, row, k) for k in range(side)])
        )

    return [te().compute(out_types[0].shape, element, name="image", tag="winograd_image")]


@IMAGE.make
def contrib_winograd_image(
    products: ExprLike, size: Extents, tile_size: int = 4, out_layout: str = "NCHW"
) -> Call:
    """Transform products of tiles back; `size` is (images, height, width)."""
    return IMAGE(products, attrs=ImageAttrs(as_tuple(size, 3, "size"), tile_size, out_layout))


IMAGE.sample_case((36, 3, 8), attrs=ImageAttrs((1, 9, 7)))
IMAGE.sample_case((16, 4, 5), attrs=ImageAttrs((2, 1, 4), 2, "NHWC"))
