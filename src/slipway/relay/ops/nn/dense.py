"""Matrix products: nn.dense, nn.matmul, nn.batch_matmul; and nn.bias_add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.build import implied
from slipway.relay.ops.checks import along_axis, need_number, need_rank, normal_axis, weight_of
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike


@node
class DenseAttrs(Attrs):
    """`units` is the number of outputs, None to take it from the weight."""

    units: int | None = None
    out_dtype: str = ""


def _same_dtype(first: TensorType, second: TensorType, name: str) -> None:
    integers = {"int8", "uint8", "int16", "int32"}
    if first.dtype != second.dtype and not {first.dtype, second.dtype} <= integers:
        raise BadArgument(name, f"is {second}, but the other operand is {first}; cast one of them")


DENSE = register_op(
    "nn.dense", "data", "weight", attrs=DenseAttrs, pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="data @ weight.T: (..., K) with (units, K) gives (..., units).",
)  # fmt: skip


@DENSE.type_relation
def _dense_type(attrs: DenseAttrs, data: TensorType, weight: TensorType) -> Type:
    need_number("data", data)
    need_rank("weight", weight, 2)
    if data.rank < 1:
        raise BadArgument("data", f"must have at least one axis, got {data}")
    _same_dtype(data, weight, "weight")
    units, depth = weight.shape
    if depth != data.shape[-1]:
        raise BadArgument(
            "weight", f"is {weight}: its last axis must be the data's last, {data.shape[-1]}"
        )
    if attrs.units is not None and attrs.units != units:
        raise BadArgument("weight", f"is {weight}, but units is {attrs.units}")
    return TensorType((*data.shape[:-1], units), attrs.out_dtype or data.dtype)


@DENSE.implies
def _dense_implied(
    attrs: DenseAttrs, data: TensorType, weight: Type | None
) -> Sequence[Type | None]:
    if attrs.units is None or not data.rank:
        return (data, weight)
    return weight_of(data, weight, (attrs.units, data.shape[-1]))


@DENSE.reference
def _dense_reference(attrs: DenseAttrs, data: Array, weight: Array) -> Any:
    dtype = attrs.out_dtype or data.dtype
    product = data.astype(dtype) @ weight.T.astype(dtype)
    return product.astype(dtype, copy=False)  # NumPy multiplies bfloat16 to float32


@DENSE.compute
def _dense_compute(attrs: DenseAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, weight = inputs
    (out,) = out_types
    k = te().reduce_axis((0, size_of(weight.shape[1])), name="k")

    def element(*i: PrimExpr) -> Any:
        product = data(*i[:-1], k).astype(out.dtype) * weight(i[-1], k).astype(out.dtype)
        return te().sum(product, axis=[k])

    return [te().compute(out.shape, element, name="T_dense", tag="dense")]


@DENSE.flops
def _dense_flops(attrs: DenseAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[1].shape[1]


@DENSE.make
def dense(data: ExprLike, weight: ExprLike, units: int | None = None, out_dtype: str = "") -> Call:
    """Fully connected layer: data (..., K) times the transpose of weight (units, K)."""
    return DENSE(data, weight, attrs=DenseAttrs(units, out_dtype or ""))


DENSE.sample_case((3, 8), (5, 8))
DENSE.sample_case((2, 3, 4), (6, 4))
DENSE.sample_case(
    (2, 9), (4, 9), attrs=DenseAttrs(None, "int32"), dtypes=("int8", "int8"), low=-99, high=99
)


@node
class MatmulAttrs(Attrs):
    """Which operands come transposed (their last two axes swapped)."""

    transpose_a: bool = False
    transpose_b: bool = False
    out_dtype: str = ""


def _matmul_extents(
    attrs: MatmulAttrs, a: TensorType, b: TensorType, names: tuple[str, str]
) -> tuple[int, int, int]:
    rows, depth = a.shape[-2:][:: -1 if attrs.transpose_a else 1]
    other, columns = b.shape[-2:][:: -1 if attrs.transpose_b else 1]
    if depth != other:
        raise BadArgument(
            names[1], f"is {b}: its inner extent {other} does not match {names[0]!r}, {a}"
        )
    _same_dtype(a, b, names[1])
    return rows, columns, depth


def _matmul_reference(attrs: MatmulAttrs, a: Array, b: Array) -> Any:
    dtype = attrs.out_dtype or a.dtype
    a, b = a.astype(dtype), b.astype(dtype)
    a = np.swapaxes(a, -1, -2) if attrs.transpose_a else a
    b = np.swapaxes(b, -1, -2) if attrs.transpose_b else b
    return np.matmul(a, b).astype(dtype, copy=False)


def _matmul_compute(attrs: MatmulAttrs, inputs: list[Any], out: TensorType, tag: str) -> list[Any]:
    a, b = inputs
    k = te().reduce_axis((0, size_of(a.shape[-2 if attrs.transpose_a else -1])), name="k")

    def element(*i: PrimExpr) -> Any:
        *batch, row, column = i
        batch_a = [0 if size_of(d) == 1 else j for d, j in zip(a.shape[:-2], batch, strict=True)]
        batch_b = [0 if size_of(d) == 1 else j for d, j in zip(b.shape[:-2], batch, strict=True)]
        left = a(*batch_a, k, row) if attrs.transpose_a else a(*batch_a, row, k)
        right = b(*batch_b, column, k) if attrs.transpose_b else b(*batch_b, k, column)
        return te().sum(left.astype(out.dtype) * right.astype(out.dtype), axis=[k])

    return [te().compute(out.shape, element, name=f"T_{tag}", tag=tag)]


MATMUL = register_op(
    "nn.matmul", "tensor_a", "tensor_b", attrs=MatmulAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE, doc="The product of two matrices.",
)  # fmt: skip


@MATMUL.type_relation
def _matmul_type(attrs: MatmulAttrs, tensor_a: TensorType, tensor_b: TensorType) -> Type:
    need_number("tensor_a", tensor_a)
    need_rank("tensor_a", tensor_a, 2)
    need_rank("tensor_b", tensor_b, 2)
    rows, columns, _ = _matmul_extents(attrs, tensor_a, tensor_b, ("tensor_a", "tensor_b"))
    return TensorType((rows, columns), attrs.out_dtype or tensor_a.dtype)


MATMUL.reference(_matmul_reference)
MATMUL.compute(lambda attrs, inputs, outs: _matmul_compute(attrs, inputs, outs[0], "matmul"))


def _matmul_flops(attrs: MatmulAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[0].shape[-2 if attrs.transpose_a else -1]


MATMUL.flops(_matmul_flops)


@MATMUL.make
def matmul(
    tensor_a: ExprLike,
    tensor_b: ExprLike,
    units: int | None = None,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Call:
    """Multiply two matrices, either of which may come transposed."""
    given = as_expr(tensor_a).type
    if units is not None and isinstance(given, TensorType) and given.rank == 2:
        depth = given.shape[-2 if transpose_a else -1]
        implied(tensor_b, (units, depth) if transpose_b else (depth, units), given.dtype)
    tensor_b = as_expr(tensor_b)
    if tensor_b.type is not None:
        need_rank("tensor_b", tensor_b.tensor_type, 2)
    found = tensor_b.tensor_type.shape[-2 if transpose_b else -1] if tensor_b.type else units
    if units is not None and units != found:
        raise BadArgument("units", f"is {units}, but tensor_b has {found} columns to multiply by")
    return MATMUL(
        tensor_a, tensor_b, attrs=MatmulAttrs(bool(transpose_a), bool(transpose_b), out_dtype or "")
    )


MATMUL.sample_case((3, 8), (8, 5))
MATMUL.sample_case((8, 3), (5, 8), attrs=MatmulAttrs(True, True))

BATCH_MATMUL = register_op(
    "nn.batch_matmul", "tensor_a", "tensor_b", attrs=MatmulAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="One matrix product per batch: (b, M, K) with (b, K, N); a batch of 1 is broadcast.",
)  # fmt: skip


@BATCH_MATMUL.type_relation
def _batch_matmul_type(attrs: MatmulAttrs, tensor_a: TensorType, tensor_b: TensorType) -> Type:
    need_number("tensor_a", tensor_a)
    need_rank("tensor_a", tensor_a, 3)
    need_rank("tensor_b", tensor_b, 3)
    rows, columns, _ = _matmul_extents(attrs, tensor_a, tensor_b, ("tensor_a", "tensor_b"))
    batches = {tensor_a.shape[0], tensor_b.shape[0]} - {1}
    if len(batches) > 1:
        raise BadArgument(
            "tensor_b", f"is {tensor_b}: its batch does not match 'tensor_a', {tensor_a}"
        )
    batch = batches.pop() if batches else 1  # an open one beside 1, too
    return TensorType((batch, rows, columns), attrs.out_dtype or tensor_a.dtype)


BATCH_MATMUL.reference(_matmul_reference)
BATCH_MATMUL.compute(
    lambda attrs, inputs, outs: _matmul_compute(attrs, inputs, outs[0], "batch_matmul")
)
BATCH_MATMUL.flops(_matmul_flops)


@BATCH_MATMUL.make
def batch_matmul(
    tensor_a: ExprLike,
    tensor_b: ExprLike,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Call:
    """Multiply matrices batch by batch; as in classic TVM `tensor_b` is (b, N, K) by default."""
    return BATCH_MATMUL(
        tensor_a, tensor_b, attrs=MatmulAttrs(bool(transpose_a), bool(transpose_b), out_dtype or "")
    )


BATCH_MATMUL.sample_case((2, 3, 8), (2, 8, 5))
BATCH_MATMUL.sample_case((1, 3, 8), (4, 5, 8), attrs=MatmulAttrs(False, True))


@node
class BiasAddAttrs(Attrs):
    """The axis that the bias runs along."""

    axis: int = 1


BIAS_ADD = register_op(
    "nn.bias_add", "data", "bias", attrs=BiasAddAttrs, pattern=OpPattern.BROADCAST,
    flops_per_element=1, doc="data plus one bias per entry of an axis.",
)  # fmt: skip


@BIAS_ADD.type_relation
def _bias_add_type(attrs: BiasAddAttrs, data: TensorType, bias: TensorType) -> Type:
    axis = normal_axis(attrs.axis, data.rank)
    if bias != TensorType((data.shape[axis],), data.dtype):
        wanted = TensorType((data.shape[axis],), data.dtype)
        raise BadArgument("bias", f"must be {wanted} (axis {axis} of the data), got {bias}")
    return data


BIAS_ADD.implies(along_axis)


@BIAS_ADD.reference
def _bias_add_reference(attrs: BiasAddAttrs, data: Array, bias: Array) -> Any:
    shape = [1] * data.ndim
    shape[attrs.axis] = -1
    return data + bias.reshape(shape)


@BIAS_ADD.compute
def _bias_add_compute(
    attrs: BiasAddAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, bias = inputs
    axis = attrs.axis % out_types[0].rank
    return [
        te().compute(
            out_types[0].shape,
            lambda *i: data(*i) + bias(i[axis]),
            name="T_bias_add",
            tag="broadcast",
        )
    ]


@BIAS_ADD.make
def bias_add(data: ExprLike, bias: ExprLike, axis: int = 1) -> Call:
    """Add one bias per entry of `axis`."""
    return BIAS_ADD(as_expr(data), bias, attrs=BiasAddAttrs(axis))


BIAS_ADD.sample_case((2, 3, 4), (3,))
BIAS_ADD.sample_case((2, 3, 4), (4,), attrs=BiasAddAttrs(-1))
