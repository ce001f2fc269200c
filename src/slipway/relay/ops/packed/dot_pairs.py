"""Products of bfloat16 whose weights are packed in pairs, or fours, summed in float32.

A step multiplies d neighbouring elements of the data, 2 or 4, by as many of the weights of each of
o output channels, and adds the products to their sums; a backend chooses d and o.  With c the
channels of a block of data, w the window::

    conv     data (N, C/c, ..., c)   kernel (O/o, I/i, w..., i/d, o, d)   result (N, O/o, ..., o)
    dense    data (M, K)             weight (N/o, K/d, o, d)              result (M, N)

i divides c, and d divides i; a kernel may leave out channels that pad the last block of data.
I are the input channels of one group, whose filters are whole blocks.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import as_tuple, need_dtype, need_rank, pad_amounts
from slipway.relay.ops.nn.windows import SPATIAL, conv_extents
from slipway.relay.ops.packed.blocked_conv import (
    BlockedConvAttrs,
    chunk_of,
    conv_reference,
    padded,
    read_at,
)
from slipway.relay.ops.tensor.tensors import flat_index, shape_of, te, unflatten
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents

PAIR = 2
SUMS = "float32"


def conv_type(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> Type:
    """Channels of data and kernel must agree block by block."""
    count = len(attrs.strides)
    need_rank("data", data, count + 3)
    need_rank("kernel", kernel, count + 5)
    need_dtype("kernel", kernel, data.dtype, "data")
    blocks, chunks, *window, pairs, lanes, depth = kernel.shape
    wide, block = data.shape[-1], pairs * depth
    read = -(-chunks * attrs.groups * block // wide)
    if wide % block or read != data.shape[1] or blocks % attrs.groups:
        raise BadArgument(
            "kernel",
            f"is {kernel}: its pairs of input channels, in {attrs.groups} groups, are not those "
            f"of data, {data}",
        )
    extents = conv_extents(data.shape[2:-1], window, attrs.strides, attrs.padding, attrs.dilation)
    return TensorType((data.shape[0], blocks, *extents, lanes), SUMS)


def conv_compute(
    attrs: BlockedConvAttrs, inputs: list[Any], out_types: list[TensorType], grouped: bool = False
) -> list[Any]:
    """Sums over positions as one axis, brought to their places.

    With `grouped` they read the data through a stage of its own, (N, C/i, w..., positions, i);
    that is for a single group of channels.
    """
    data, kernel = padded(inputs[0], attrs), inputs[1]
    (out,) = out_types
    n, blocks, *size, lanes = out.shape
    _, chunks, *window, pairs, _, depth = shape_of(kernel)
    wide, letters = shape_of(data)[-1], SPATIAL[len(window)].lower()
    chunk = te().reduce_axis((0, chunks), name="ic_chunk")
    taps = [te().reduce_axis((0, k), name=f"k{x}") for k, x in zip(window, letters, strict=True)]
    pair = te().reduce_axis((0, pairs), name="ic_pair")
    part = te().reduce_axis((0, depth), name="ic")

    def datum(b: PrimExpr, c: Any, *rest: Any) -> Any:
        """What position p is multiplied by at a tap of the window, channel i of chunk c."""
        *at, p, i = rest
        block = c
        if pairs * depth != wide:
            first = c * (pairs * depth)
            block, i = te().floordiv(first, wide), te().floormod(first, wide) + i
        return data(b, block, *read_at(unflatten(p, size), at, attrs), i)

    read: Any = datum
    if grouped:
        extents = (n, chunks, *window, prod(size), pairs * depth)
        read = te().compute(extents, datum, name="groups", tag="paired_groups")

    def element(b: PrimExpr, o: PrimExpr, p: PrimExpr, ob: PrimExpr) -> Any:
        of_group = chunk_of(kernel, attrs.groups, o, chunk)
        left = read(b, of_group, *taps, p, pair * depth + part).astype(out.dtype)
        right = kernel(o, chunk, *taps, pair, ob, part).astype(out.dtype)
        return te().sum(left * right, axis=[chunk, *taps, pair, part])

    flat = te().compute((n, blocks, prod(size), lanes), element, name="sums", tag="paired")

    def spread(b: PrimExpr, o: PrimExpr, *rest: PrimExpr) -> Any:
        *at, ob = rest
        return flat(b, o, flat_index(size, at), ob)

    return [te().compute(out.shape, spread, name="conv_pairs", tag="injective")]


def _register_conv(count: int) -> OpDefinition:
    letters = SPATIAL[count]
    definition = register_op(
        f"nn.contrib_conv{count}d_pairs", "data", "kernel", attrs=BlockedConvAttrs,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        doc=f"{count}-D convolution of channels in blocks, the kernel packed in pairs of them.",
    )  # fmt: skip
    definition.type_relation(conv_type)
    definition.reference(
        lambda attrs, data, kernel: conv_reference(attrs.replace(out_dtype=SUMS), data, kernel)
    )
    definition.compute(conv_compute)

    @definition.flops
    def flops(
        attrs: BlockedConvAttrs, in_types: Sequence[TensorType], out_type: TensorType
    ) -> float:
        _, chunks, *window, pairs, _, depth = in_types[1].shape
        return float(2 * out_type.size * chunks * prod(window) * pairs * depth)

    definition.work(lambda attrs, ins, out: flops(attrs, ins, out) / ins[1].shape[-1])

    @definition.make
    def make(
        data: ExprLike, kernel: Any, strides: Any = 1, padding: Any = 0, dilation: Extents = 1,
        groups: int = 1, data_layout: str = f"NC{letters}16c",
        kernel_layout: str = f"OI{letters}8i16o2i", out_layout: str = "",
    ) -> Call:  # fmt: skip
        attrs = BlockedConvAttrs(
            as_tuple(strides, count, "strides"), pad_amounts(padding, count),
            as_tuple(dilation, count, "dilation"), groups, data_layout, kernel_layout,
            out_layout or data_layout,
        )  # fmt: skip
        return definition(data, kernel, attrs=attrs)

    make.__name__, make.__doc__ = definition.name.removeprefix("nn."), definition.doc
    return definition


CONV1D_PAIRS, CONV2D_PAIRS, CONV3D_PAIRS = (_register_conv(n) for n in (1, 2, 3))
contrib_conv1d_pairs: Any = CONV1D_PAIRS.make_function
contrib_conv2d_pairs: Any = CONV2D_PAIRS.make_function
contrib_conv3d_pairs: Any = CONV3D_PAIRS.make_function

DENSE_PAIRS = register_op(
    "nn.contrib_dense_pairs", "data", "weight", pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="data @ weight.T, the weight in pairs: (M, K) with (N/n, K/2, n, 2) gives (M, N).",
)  # fmt: skip


@DENSE_PAIRS.type_relation
def dense_type(attrs: None, data: TensorType, weight: TensorType) -> Type:
    """The depth of data and weight must agree."""
    need_rank("data", data, 2)
    need_rank("weight", weight, 4)
    need_dtype("weight", weight, data.dtype, "data")
    blocks, pairs, lanes, depth = weight.shape
    if pairs * depth != data.shape[1]:
        raise BadArgument("weight", f"is {weight}: its pairs are not those of data, {data}")
    return TensorType((data.shape[0], blocks * lanes), SUMS)


@DENSE_PAIRS.reference
def dense_reference(attrs: None, data: Array, weight: Array) -> Any:
    """The plain product with the plain weight."""
    blocks, pairs, lanes, depth = weight.shape
    plain = weight.transpose(0, 2, 1, 3).reshape(blocks * lanes, pairs * depth)
    return data.astype(SUMS) @ plain.T.astype(SUMS)


@DENSE_PAIRS.compute
def dense_compute(
    attrs: None, inputs: list[Any], out_types: list[TensorType], grouped: bool = False
) -> list[Any]:
    """Sums in blocks of units, brought to their places.

    With `grouped` they read the data through a stage of its own.
    """
    data, weight = inputs
    (out,) = out_types
    blocks, pairs, lanes, depth = shape_of(weight)
    pair = te().reduce_axis((0, pairs), name="k_pair")
    part = te().reduce_axis((0, depth), name="k")
    read: Any = data
    if grouped:
        read = te().compute(
            shape_of(data), lambda m, k: data(m, k), name="groups", tag="paired_groups"
        )

    def element(m: PrimExpr, o: PrimExpr, ob: PrimExpr) -> Any:
        left = read(m, pair * depth + part).astype(out.dtype)
        right = weight(o, pair, ob, part).astype(out.dtype)
        return te().sum(left * right, axis=[pair, part])

    sums = te().compute((out.shape[0], blocks, lanes), element, name="sums", tag="paired")

    def spread(m: PrimExpr, n: PrimExpr) -> Any:
        return sums(m, te().floordiv(n, lanes), te().floormod(n, lanes))

    return [te().compute(out.shape, spread, name="dense_pairs", tag="injective")]


@DENSE_PAIRS.flops
def dense_flops(attrs: None, in_types: Sequence[TensorType], out_type: TensorType) -> float:
    """Two for each multiply-add."""
    return float(2 * out_type.size * in_types[0].shape[1])


DENSE_PAIRS.work(lambda attrs, ins, out: dense_flops(attrs, ins, out) / ins[1].shape[-1])


@DENSE_PAIRS.make
def contrib_dense_pairs(data: ExprLike, weight: ExprLike) -> Call:
    """Matrix product with a weight in pairs of its depth."""
    return DENSE_PAIRS(data, weight)


def _case(definition: OpDefinition, data: Any, kernel: Any, **more: Any) -> None:
    count = len(data) - 3
    letters, zeros = SPATIAL[count], (0,) * count
    attrs = BlockedConvAttrs(
        more.get("strides", (1,) * count), more.get("padding", zeros * 2), (1,) * count,
        more.get("groups", 1),
        f"NC{letters}{data[-1]}c", f"OI{letters}{kernel[-3]}i{kernel[-2]}o{kernel[-1]}i",
        f"NC{letters}{kernel[-2]}c",
    )  # fmt: skip
    definition.sample_case(data, kernel, attrs=attrs)


_case(CONV1D_PAIRS, (1, 2, 9, 4), (3, 2, 3, 2, 4, 2), padding=(2, 0))
_case(CONV2D_PAIRS, (1, 2, 6, 7, 16), (3, 2, 3, 3, 8, 16, 2), padding=(1, 1, 1, 1), strides=(2, 1))
_case(CONV2D_PAIRS, (2, 2, 5, 5, 8), (2, 3, 1, 1, 2, 16, 2))
_case(CONV2D_PAIRS, (1, 3, 4, 5, 16), (4, 3, 3, 3, 4, 16, 2), groups=2)
_case(CONV3D_PAIRS, (1, 2, 4, 5, 5, 4), (2, 2, 2, 3, 3, 2, 4, 2), padding=(1, 1, 1, 0, 1, 1))
DENSE_PAIRS.sample_case((3, 8), (2, 4, 16, 2))
DENSE_PAIRS.sample_case((19, 6), (2, 3, 16, 2))
DENSE_PAIRS.sample_case((5, 12), (2, 3, 8, 4))
