"""3x3 convolution of several frames each, summed over frames: Winograd's algorithm in volumes.

A window of KD x 3 x 3 is KD windows of 3 x 3, each on a frame of its own.  Frames are transformed
once, and what is summed over the channels is summed over the KD frames too, before the transform
back.  So a product takes (m + 2)^2 / m^2 multiply-adds in place of nine, whatever KD is::

    data    (N, IC/ic, D, H, W, ic)
    kernel  (OC/oc, m + 2, m + 2, KD * IC/ic, ic, oc), the channels of the first frame first
    result  (N, OC/oc, OD, OH, OW, oc)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.layout import transform_array
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank, need_shape, need_window, pad_amounts
from slipway.relay.ops.packed.blocked_conv import BlockedConvAttrs, padded
from slipway.relay.ops.packed.winograd_transforms import FILTERINGS, row_of
from slipway.relay.ops.tensor.tensors import shape_of, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents


@node
class FramesAttrs(Attrs):
    """Attributes of nn.contrib_conv3d_winograd_nchwc."""

    padding: tuple[int, ...] = (0, 1, 1, 0, 1, 1)  # front, top, left, back, bottom, right
    data_layout: str = "NCDHW4c"
    out_layout: str = "NCDHW4c"


CONV = register_op(
    "nn.contrib_conv3d_winograd_nchwc", "data", "kernel", attrs=FramesAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="KDx3x3 convolution of stride 1 with a transformed kernel, channels in blocks.",
)  # fmt: skip


def frames_of(kernel: Any, data: Any) -> int:
    """Return the frames of a window: so many times the channels of the data has a kernel."""
    found: int = kernel.shape[3] // data.shape[1]
    return found


@CONV.type_relation
def conv_type(attrs: FramesAttrs, data: TensorType, kernel: TensorType) -> Type:
    """The kernel has whole frames of the data's channels, block by block."""
    need_window(attrs, 3)
    need_rank("data", data, 6)
    need_rank("kernel", kernel, 6)
    need_dtype("kernel", kernel, data.dtype, "data")
    outer, side, _, chunks, _, oc = kernel.shape
    if side - 2 not in FILTERINGS:
        raise BadArgument("kernel", f"of shape {kernel.shape} is no transformed 3x3 kernel")
    count, remainder = divmod(chunks, data.shape[1])
    if remainder or not count:
        raise BadArgument(
            "kernel", f"has {chunks} blocks of channels, not {data.shape[1]} for each frame"
        )
    wanted = (outer, side, side, chunks, data.shape[5], oc)
    need_shape("kernel", kernel, wanted, "input channels as in data")
    window = (count, 3, 3)
    sides = zip(data.shape[2:5], attrs.padding[:3], attrs.padding[3:], window, strict=True)
    size = [n + before + after - taps + 1 for n, before, after, taps in sides]
    if min(size) < 1:
        raise BadArgument("data", f"of shape {data.shape} is smaller than the {window} window")
    return TensorType((data.shape[0], outer, *size, oc), data.dtype)


@CONV.reference
def conv_reference(attrs: FramesAttrs, data: Array, kernel: Array) -> Any:
    """Transform, multiply and sum over frames, and transform back, in float64."""
    plain = transform_array(data, attrs.data_layout, "NCDHW").astype(np.float64)
    front, top, left, back, bottom, right = attrs.padding
    n, channels, depth, h, w = plain.shape
    count = frames_of(kernel, data)
    frames = depth + front + back - count + 1
    height, width = h + top + bottom - 2, w + left + right - 2
    filtering = FILTERINGS[kernel.shape[1] - 2]
    m, side = filtering.tile, filtering.side
    rows, columns = -(-height // m), -(-width // m)
    full = np.zeros((n, channels, depth + front + back, rows * m + 2, columns * m + 2))
    full[:, :, front : front + depth, top : top + h, left : left + w] = plain
    u = kernel.astype(np.float64).transpose(1, 2, 0, 5, 3, 4)
    u = u.reshape(side, side, kernel.shape[0] * kernel.shape[5], count, channels)
    b, a = np.asarray(filtering.input, np.float64), np.asarray(filtering.output, np.float64)
    result = np.zeros((n, u.shape[2], frames, rows * m, columns * m))
    for y, x in np.ndindex(rows, columns):
        piece = full[:, :, :, y * m : y * m + side, x * m : x * m + side]
        v = np.einsum("xa,yb,ncfab->xyncf", b, b, piece)
        parts = [
            np.einsum("xyoc,xyncf->xynof", u[:, :, :, t], v[..., t : t + frames])
            for t in range(count)
        ]
        result[:, :, :, y * m : y * m + m, x * m : x * m + m] = np.einsum(
            "hx,wy,xynof->nofhw", a, a, sum(parts)
        )
    cut = np.asarray(result[..., :height, :width], order="C").astype(data.dtype)
    return transform_array(cut, "NCDHW", attrs.out_layout)


@dataclass(frozen=True)
class FrameBlocks:
    """Tiles are worked on in blocks of `rows` rows of tiles of `frames` frames.

    Their number is padded to a multiple of `multiple`.
    """

    frames: int = 1
    rows: int = 1
    multiple: int = 1

    def tiles(self, columns: int) -> int:
        """Return how many tiles of results a block has, `columns` in a row, with its padding."""
        return -(-self.frames * self.rows * columns // self.multiple) * self.multiple


def frame_stages(
    attrs: FramesAttrs, inputs: list[Any], out: TensorType, blocks_of: FrameBlocks
) -> Any:
    """Six stages: pad, two input transforms, products, two output transforms.

    Between the transforms a tile is (n, part, q): volume, block of frames and rows, place in it.
    The tile of the next frame in the same place is one frame's tiles behind a tile.
    """
    data, kernel = inputs
    batch, blocks, depth, height, width, lanes = out.shape
    filtering = FILTERINGS[shape_of(kernel)[1] - 2]
    m, side = filtering.tile, filtering.side
    taps = frames_of(kernel, data)
    frames, step = blocks_of.frames, blocks_of.rows * m
    deep, high, columns = -(-depth // frames), -(-height // step), -(-width // m)
    each = blocks_of.rows * columns  # tiles of a frame in a block
    tiles = blocks_of.tiles(columns)
    held = tiles + (taps - 1) * each
    front, top, left, *_ = attrs.padding
    _, chunks, d, h, w, ic = shape_of(data)
    back = deep * frames + taps - 1 - d - front
    after = (back, high * step + 2 - h - top, columns * m + 2 - w - left)
    source = padded(data, BlockedConvAttrs(padding=(front, top, left, *after)))
    floordiv, floormod = te().floordiv, te().floormod

    def first(*axes: PrimExpr) -> Any:
        n, part, c, q, x, b, i = axes
        tile = te().min(q, (frames + taps - 1) * each - 1)
        position = floormod(tile, each)
        z = floordiv(part, high) * frames + floordiv(tile, each)
        y = floormod(part, high) * step + floordiv(position, columns) * m
        edge = floormod(position, columns) * m
        rows = [source(n, c, z, y + a, edge + b, i) for a in range(side)]
        return row_of(x, filtering.input_rows(rows))

    half = te().compute(
        (batch, deep * high, chunks, held, side, side, ic), first, name="half", tag="winograd_half"
    )
    v = te().compute(
        (batch, deep * high, chunks, side, side, held, ic),
        lambda n, part, c, x, y, q, i: row_of(
            y, filtering.input_rows([half(n, part, c, q, x, b, i) for b in range(side)])
        ),
        name="data_transform",
        tag="winograd_data",
    )
    frame = te().reduce_axis((0, taps), name="frame")
    chunk = te().reduce_axis((0, chunks), name="ic_chunk")
    lane = te().reduce_axis((0, ic), name="ic")
    products = te().compute(
        (batch, deep * high, blocks, side, side, tiles, lanes),
        lambda n, part, o, x, y, q, ob: te().sum(
            v(n, part, chunk, x, y, q + frame * each, lane)
            * kernel(o, x, y, frame * chunks + chunk, lane, ob),
            axis=[frame, chunk, lane],
        ),
        name="products",
        tag="winograd_products",
    )

    def back_half(*position: PrimExpr) -> Any:
        n, o, z, yy, tx, j, ob = position
        part = floordiv(z, frames) * high + floordiv(yy, step)
        line = floormod(z, frames) * blocks_of.rows + floordiv(floormod(yy, step), m)
        values = [products(n, part, o, i, j, line * columns + tx, ob) for i in range(side)]
        return row_of(floormod(yy, m), filtering.output_rows(values))

    output_half = te().compute(
        (batch, blocks, deep * frames, high * step, columns, side, lanes), back_half,
        name="output_half", tag="winograd_output_half",
    )  # fmt: skip

    def result(*position: PrimExpr) -> Any:
        n, o, z, y, x, ob = position
        values = [output_half(n, o, z, y, floordiv(x, m), j, ob) for j in range(side)]
        return row_of(floormod(x, m), filtering.output_rows(values))

    return te().compute(out.shape, result, name="conv3d_winograd_NCDHWc", tag="winograd_output")


@CONV.compute
def conv_compute(attrs: FramesAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """The stages for one row of tiles of one frame at a time."""
    return [frame_stages(attrs, inputs, out_types[0], FrameBlocks())]


@CONV.flops
def conv_flops(attrs: FramesAttrs, in_types: Sequence[TensorType], out_type: TensorType) -> float:
    """Two for each multiply-add of the direct convolution, so that speeds compare."""
    kernel = in_types[1].shape
    return float(2 * out_type.size * 9 * kernel[3] * kernel[4])


@CONV.work
def conv_work(attrs: FramesAttrs, in_types: Sequence[TensorType], out_type: TensorType) -> float:
    """The products of all elements of transformed tiles, and the transforms along both sides."""
    data, kernel = in_types[0].shape, in_types[1].shape
    side = kernel[1]
    filtering = FILTERINGS[side - 2]
    n, _, frames, height, width, _ = out_type.shape
    tiles = n * -(-height // filtering.tile) * -(-width // filtering.tile)
    inputs, outputs = data[1] * data[5], kernel[0] * kernel[5]
    there = 2 * side * filtering.input_steps * inputs * (frames + kernel[3] // data[1] - 1)
    back = (side + filtering.tile) * filtering.output_steps * outputs * frames
    return float(
        2 * tiles * (side * side * kernel[3] * kernel[4] * outputs * frames + there + back)
    )


@CONV.make
def contrib_conv3d_winograd_nchwc(
    data: ExprLike,
    kernel: ExprLike,
    padding: Extents = (0, 1, 1),
    data_layout: str = "NCDHW8c",
    out_layout: str = "",
) -> Call:
    """KDx3x3 convolution of stride 1; `contrib_winograd_weight` transforms frames of `kernel`."""
    attrs = FramesAttrs(pad_amounts(padding, 3), data_layout, out_layout or data_layout)
    return CONV(data, kernel, attrs=attrs)


# Small values: transforms amplify, and rounding errors go with the largest terms.
CONV.sample_case((1, 2, 3, 5, 6, 4), (1, 6, 6, 2, 4, 8), attrs=FramesAttrs(out_layout="NCDHW8c"))
CONV.sample_case((2, 1, 4, 4, 5, 4), (2, 4, 4, 3, 4, 4), attrs=FramesAttrs((1, 1, 1, 1, 0, 1)))
