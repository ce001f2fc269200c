"""Operators on blocked layouts: layout_transform, and products with a weight in blocks of units.

The layout pass puts them in; a blocked axis makes the innermost loop one vector long on every
target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.layout import source_index, transform_array, transform_shape
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank, need_shape
from slipway.relay.ops.tensor.tensors import shape_of, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.relay.expr import Array, ExprLike


@node
class LayoutTransformAttrs(Attrs):
    """Attributes of layout_transform."""

    src_layout: str
    dst_layout: str


LAYOUT_TRANSFORM = register_op(
    "layout_transform", "data", attrs=LayoutTransformAttrs, pattern=OpPattern.INJECTIVE,
    doc="Move a tensor from one layout to another, NCHW to NCHW16c say.",
)  # fmt: skip


@LAYOUT_TRANSFORM.type_relation
def layout_transform_type(attrs: LayoutTransformAttrs, data: TensorType) -> Type:
    """The same elements in the shape of the new layout."""
    try:
        shape = transform_shape(data.shape, attrs.src_layout, attrs.dst_layout)
    except (ValueError, KeyError) as error:
        raise BadArgument(
            "data",
            f"of shape {data.shape} cannot go from {attrs.src_layout} to "
            f"{attrs.dst_layout}: {error}",
        ) from None
    return TensorType(shape, data.dtype)


@LAYOUT_TRANSFORM.reference
def layout_transform_reference(attrs: LayoutTransformAttrs, data: Array) -> Any:
    """Split, transpose and join axes."""
    return transform_array(data, attrs.src_layout, attrs.dst_layout)


@LAYOUT_TRANSFORM.compute
def layout_transform_compute(
    attrs: LayoutTransformAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Read each element where the old layout has it."""
    (data,) = inputs
    index = source_index(
        attrs.src_layout, attrs.dst_layout, lambda a, b: te().floordiv(a, b),
        lambda a, b: te().floormod(a, b),
    )  # fmt: skip
    shape = out_types[0].shape
    return [
        te().compute(shape, lambda *i: data(*index(*i)), name="T_layout_trans", tag="injective")
    ]


@LAYOUT_TRANSFORM.make
def layout_transform(data: ExprLike, src_layout: str, dst_layout: str) -> Call:
    """Move `data` from `src_layout` to `dst_layout`."""
    return LAYOUT_TRANSFORM(data, attrs=LayoutTransformAttrs(src_layout, dst_layout))


LAYOUT_TRANSFORM.sample_case((1, 8, 3, 5), attrs=LayoutTransformAttrs("NCHW", "NCHW4c"))
LAYOUT_TRANSFORM.sample_case((2, 2, 3, 5, 4), attrs=LayoutTransformAttrs("NCHW4c", "NHWC"))


@node
class DensePackAttrs(Attrs):
    """`units` 0 are those of all blocks; fewer are cut off the last one."""

    out_dtype: str = ""
    units: int = 0


DENSE_PACK = register_op(
    "nn.contrib_dense_pack", "data", "weight", attrs=DensePackAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="data @ weight.T, the weight in blocks of units: (M, K) with (N/n, K, n) gives (M, N).",
)  # fmt: skip


@DENSE_PACK.type_relation
def dense_pack_type(attrs: DensePackAttrs, data: TensorType, weight: TensorType) -> Type:
    """The depth of data and weight must agree."""
    need_rank("data", data, 2)
    need_rank("weight", weight, 3)
    need_dtype("weight", weight, data.dtype, "data")
    blocks, _, block = weight.shape
    need_shape("weight", weight, (blocks, data.shape[1], block), "depth as in data")
    if not blocks * block - block < (attrs.units or blocks * block) <= blocks * block:
        raise BadArgument("units", f"is {attrs.units}, but weight has {blocks} blocks of {block}")
    units = attrs.units or blocks * block
    return TensorType((data.shape[0], units), attrs.out_dtype or data.dtype)


@DENSE_PACK.reference
def dense_pack_reference(attrs: DensePackAttrs, data: Array, weight: Array) -> Any:
    """The plain product with the plain weight."""
    plain = weight.transpose(0, 2, 1).reshape(-1, weight.shape[1])
    plain = plain[: attrs.units or None]
    dtype = attrs.out_dtype or data.dtype
    return data.astype(dtype) @ plain.T.astype(dtype)


@DENSE_PACK.compute
def dense_pack_compute(
    attrs: DensePackAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Sum over the depth."""
    data, weight = inputs
    out = out_types[0]
    _, depth, block = shape_of(weight)
    k = te().reduce_axis((0, depth), name="k")
    return [
        te().compute(
            out.shape,
            lambda m, n: te().sum(
                data(m, k).astype(out.dtype)
                * weight(te().floordiv(n, block), k, te().floormod(n, block)).astype(out.dtype),
                axis=[k],
            ),
            name="T_dense_pack",
            tag="dense_pack",
        )
    ]


@DENSE_PACK.flops
def dense_pack_flops(
    attrs: DensePackAttrs, in_types: Sequence[TensorType], out_type: TensorType
) -> float:
    """Two for each multiply-add."""
    return float(2 * out_type.size * in_types[0].shape[1])


@DENSE_PACK.make
def contrib_dense_pack(
    data: ExprLike, weight: ExprLike, out_dtype: str = "", units: int = 0
) -> Call:
    """Matrix product with a weight in blocks of units, of which the first `units` count."""
    return DENSE_PACK(data, weight, attrs=DensePackAttrs(out_dtype, units))


DENSE_PACK.sample_case((3, 7), (2, 7, 4))
DENSE_PACK.sample_case((3, 7), (2, 7, 4), attrs=DensePackAttrs(units=5))
