"""Products with block-quantised weights: nn.block_dense, and nn.block_take of their rows.

The weight is the bytes of its rows as `packed.block_formats` says, which stay so in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import expr as E
from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank
from slipway.relay.ops.packed.block_formats import FORMATS, GROUP, decode
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike
    from slipway.te.tensor import Tensor


@node
class BlockAttrs(Attrs):
    """The weight's format, one of `packed.block_formats`."""

    format: str = "q8_0"


@node
class BlockDenseAttrs(BlockAttrs):
    """`exact`: the data must stay float."""

    exact: bool = False


BLOCK_DENSE = register_op(
    "nn.block_dense", "data", "weight", attrs=BlockDenseAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="data @ weight.T of data (..., K) with block-quantised rows (units, bytes of K elements).",
)  # fmt: skip


def need_rows(attrs: BlockAttrs, weight: TensorType) -> int:
    """The weight must be rows of whole blocks; return the elements of one."""
    need_rank("weight", weight, 2)
    need_dtype("weight", weight, "uint8", "the bytes of blocks")
    kind = FORMATS.get(attrs.format)
    if kind is None:
        raise BadArgument("format", f"is {attrs.format!r}: it must be one of {', '.join(FORMATS)}")
    if weight.shape[1] % kind.bytes:
        raise BadArgument(
            "weight", f"is {weight}: its rows are no whole {kind.name} blocks of {kind.bytes} bytes"
        )
    return int(weight.shape[1]) // kind.bytes * kind.size


@BLOCK_DENSE.type_relation
def _dense_type(attrs: BlockDenseAttrs, data: TensorType, weight: TensorType) -> Type:
    need_dtype("data", data, "float32", "the sums")
    depth = need_rows(attrs, weight)
    if data.rank < 1 or data.shape[-1] != depth:
        raise BadArgument("data", f"is {data}: its last axis must be the weight's {depth} columns")
    return TensorType((*data.shape[:-1], weight.shape[0]), "float32")


@BLOCK_DENSE.reference
def _dense_reference(attrs: BlockDenseAttrs, data: Array, weight: Array) -> Any:
    product = data.astype(np.float64) @ decode(attrs.format, weight, np.float64).T
    return product.astype(np.float32)


def _same_bits(dtype: str, value: Any) -> Any:
    return E.Call(dtype, "reinterpret", (value,))


def _half(low: Any, high: Any) -> Any:
    word = low.astype("uint16") | (high.astype("uint16") << te().const(8, "uint16"))
    return _same_bits("float16", word).astype("float32")


def element(name: str, weight: Tensor, row: PrimExpr, k: PrimExpr) -> Any:
    """Return element `k` of row `row` as a te expression."""
    kind, m = FORMATS[name], te()
    start, at = k // kind.size * kind.bytes, k % kind.size

    def byte(position: Any) -> Any:
        return weight(row, start + position)

    def integer(position: Any) -> Any:
        return byte(position).astype("int32")

    def half(position: int) -> Any:
        return _half(byte(position), byte(position + 1))

    def number(position: Any) -> Any:
        word = byte(position).astype("uint32")
        for i in range(1, 4):
            word = word | (byte(position + i).astype("uint32") << m.const(8 * i, "uint32"))
        return _same_bits("float32", word)

    def nibble(head: int) -> Any:
        return (integer(head + at % 16) >> (at // 16 * 4)) & 15

    def scaled(value: Any, scale: Any, offset: int = kind.offset) -> Any:
        return (value - offset if offset else value).astype("float32") * scale

    if name == "q8_0":
        return scaled(_same_bits("int8", byte(2 + at)), half(0))
    if name in ("q4_0", "q4_1"):
        made = scaled(nibble(kind.bytes - 16), half(0))
        return made + half(2) if name == "q4_1" else made
    if name in ("q5_0", "q5_1"):
        fifth = (integer(kind.bytes - 20 + at // 8) >> (at % 8)) & 1
        made = scaled(nibble(kind.bytes - 16) + fifth * 16, half(0))
        return made + half(2) if name == "q5_1" else made
    if name in ("u4", "u8"):
        value = nibble(16) if name == "u4" else integer(16 + at)
        return scaled(value, number(at // 16 * 4)) - number(8 + at // 16 * 4)
    if name == "q6_k":
        quarter = at // 32 % 4
        value = (integer(at // 128 * 64 + at % 64) >> (quarter // 2 * 4)) & 15
        high = (integer(128 + at // 128 * 32 + at % 32) >> (quarter * 2)) & 3
        factor = _same_bits("int8", byte(192 + at // 16)).astype("float32")
        return scaled(value + high * 16, half(208) * factor)
    value = (integer(kind.bytes - 128 + at // 64 * 32 + at % 32) >> (at // 32 % 2 * 4)) & 15
    if name == "q5_k":
        value = value + ((integer(16 + at % 32) >> (at // 32)) & 1) * 16
    group = at // GROUP
    low, mid, high = (integer(4 + 4 * i + group % 4) for i in range(3))
    factor = m.Select(group < 4, low & 63, (high & 15) | (low >> 6 << 4))
    minimum = m.Select(group < 4, mid & 63, (high >> 4) | (mid >> 6 << 4))
    return scaled(value, half(0) * factor.astype("float32")) - half(2) * minimum.astype("float32")


@BLOCK_DENSE.compute
def _dense_compute(
    attrs: BlockDenseAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, weight = inputs
    k = te().reduce_axis((0, size_of(data.shape[-1])), name="k")

    def sums(*i: Any) -> Any:
        return te().sum(data(*i[:-1], k) * element(attrs.format, weight, i[-1], k), axis=[k])

    return [te().compute(out_types[0].shape, sums, name="T_block_dense", tag="block_dense")]


@BLOCK_DENSE.flops
def _dense_flops(attrs: BlockDenseAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[0].shape[-1]


@BLOCK_DENSE.make
def block_dense(
    data: ExprLike, weight: ExprLike, format: str = "q8_0", exact: bool = False
) -> Call:
    """Data (..., K) times the transpose of block-quantised weights (units, bytes).

    Without `exact` a target may round the data to int8, by groups of 32 elements.
    """
    return BLOCK_DENSE(data, weight, attrs=BlockDenseAttrs(format, exact))


BLOCK_TAKE = register_op(
    "nn.block_take", "weight", "indices", attrs=BlockAttrs, pattern=OpPattern.INJECTIVE,
    doc="Rows `indices` of block-quantised weights, as float32.",
)  # fmt: skip


@BLOCK_TAKE.type_relation
def _take_type(attrs: BlockAttrs, weight: TensorType, indices: TensorType) -> Type:
    depth = need_rows(attrs, weight)
    need_dtype("indices", indices, "int32", "other indices")
    return TensorType((*indices.shape, depth), "float32")


@BLOCK_TAKE.reference
def _take_reference(attrs: BlockAttrs, weight: Array, indices: Array) -> Any:
    rows = decode(attrs.format, weight[indices.reshape(-1)])
    return rows.reshape(*indices.shape, -1)


@BLOCK_TAKE.compute
def _take_compute(attrs: BlockAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    weight, indices = inputs

    def value(*i: Any) -> Any:
        row = te().max(0, te().min(indices(*i[:-1]), weight.shape[0] - 1))
        return element(attrs.format, weight, row, i[-1])

    return [te().compute(out_types[0].shape, value, name="T_block_take", tag="injective")]


@BLOCK_TAKE.make
def block_take(weight: ExprLike, indices: ExprLike, format: str = "q8_0") -> Call:
    """The rows `indices` of block-quantised weights (units, bytes), as float32."""
    return BLOCK_TAKE(weight, indices, attrs=BlockAttrs(format))


def random_rows(rng: np.random.Generator, name: str, rows: int, blocks: int) -> Array:
    """Return random bytes whose scales are small numbers."""
    kind = FORMATS[name]
    made = rng.integers(0, 256, (rows, blocks, kind.bytes)).astype(np.uint8)

    def numbers(at: int, count: int, dtype: str) -> None:
        scales = rng.uniform(-0.1, 0.1, (rows, blocks, count)).astype(dtype).view(np.uint8)
        made[..., at : at + scales.shape[-1]] = scales

    if name in ("u4", "u8"):
        numbers(0, 4, "<f4")
    elif name == "q6_k":
        numbers(208, 1, "<f2")
    else:
        numbers(0, 1 if kind.offset or name == "q8_0" else 2, "<f2")
    return made.reshape(rows, -1)


def _cases() -> None:
    for name, units, blocks in (
        ("q8_0", 5, 2), ("q4_0", 48, 3), ("q4_1", 7, 1), ("q5_0", 3, 2), ("q5_1", 4, 1),
        ("q4_k", 6, 1), ("q5_k", 3, 1), ("q6_k", 5, 1), ("u4", 3, 2), ("u8", 4, 1),
    ):  # fmt: skip
        depth = FORMATS[name].size * blocks
        width = FORMATS[name].bytes * blocks

        def product(
            rng: np.random.Generator, name: str = name, units: int = units, blocks: int = blocks,
            depth: int = depth,
        ) -> list[Any]:  # fmt: skip
            data = rng.standard_normal((3, depth)).astype("float32")
            return [data, random_rows(rng, name, units, blocks)]

        def rows(
            rng: np.random.Generator, name: str = name, units: int = units, blocks: int = blocks
        ) -> list[Any]:
            picked = rng.integers(0, units, (2, 3)).astype("int32")
            return [random_rows(rng, name, units, blocks), picked]

        BLOCK_DENSE.sample_case(
            (3, depth), (units, width), attrs=BlockDenseAttrs(name), dtypes=("float32", "uint8"),
            make=product,
        )  # fmt: skip
        BLOCK_TAKE.sample_case(
            (units, width), (2, 3), attrs=BlockAttrs(name), dtypes=("uint8", "int32"), make=rows
        )


_cases()
