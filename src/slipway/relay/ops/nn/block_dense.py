"""Products with block-quantised weights: nn.block_dense, and nn.block_take of their rows.

The weight is the bytes of its rows as `packed.block_formats` says, which stay so in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank
from slipway.relay.ops.packed.block_element import element
from slipway.relay.ops.packed.block_formats import FORMATS, decode
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike


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


# The byte and the number of float16 scales that lie behind the integers.
_SCALES_AT = {"q6_k": (208, 1), "q2_k": (80, 2), "q3_k": (108, 1), "tq1_0": (52, 1),
              "tq2_0": (64, 1)}  # fmt: skip


def random_rows(rng: np.random.Generator, name: str, rows: int, blocks: int) -> Array:
    """Return random bytes whose scales are small numbers."""
    kind = FORMATS[name]
    made = rng.integers(0, 256, (rows, blocks, kind.bytes)).astype(np.uint8)

    def numbers(at: int, count: int, dtype: str) -> None:
        scales = rng.uniform(-0.1, 0.1, (rows, blocks, count)).astype(dtype).view(np.uint8)
        made[..., at : at + scales.shape[-1]] = scales

    if name in ("u4", "u8"):
        numbers(0, 4, "<f4")
    elif name in _SCALES_AT:
        numbers(*_SCALES_AT[name], "<f2")
    elif name == "mxfp4":
        made[..., 0] = rng.integers(120, 125, (rows, blocks))
    elif name == "nvfp4":
        made[..., :4] = rng.integers(0, 50, (rows, blocks, 4))
    else:
        numbers(0, 1 if kind.offset or kind.bits == 8 else 2, "<f2")
    return made.reshape(rows, -1)


def _cases() -> None:
    for name, units, blocks in (
        ("q8_0", 5, 2), ("q4_0", 48, 3), ("q4_1", 7, 1), ("q5_0", 3, 2), ("q5_1", 4, 1),
        ("q4_k", 6, 1), ("q5_k", 3, 1), ("q6_k", 5, 1), ("u4", 3, 2), ("u8", 4, 1),
        ("q2_k", 3, 1), ("q3_k", 4, 1), ("iq4_nl", 3, 2), ("iq4_xs", 3, 1), ("mxfp4", 4, 2),
        ("nvfp4", 3, 1), ("tq1_0", 3, 1), ("tq2_0", 4, 1),
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
