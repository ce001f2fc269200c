"""nn.expert_dense: each row of the data times the matrix of the expert that it is given to.

    out[s, j] = data[s, j] @ weight[experts[s, j]].T

The layers of a mixture of experts are such products: a token has J experts.  With data (S, 1, K)
all of a token's experts read the same row.  The weight is float32, or the bytes of rows in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_rank
from slipway.relay.ops.nn.block_dense import BlockAttrs, need_rows, random_rows
from slipway.relay.ops.packed.block_element import element
from slipway.relay.ops.packed.block_formats import FORMATS, decode
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike


@node
class ExpertAttrs(BlockAttrs):
    """`format` of the weight's rows, one of `packed.block_formats`; "" for float32."""

    format: str = ""


EXPERT_DENSE = register_op(
    "nn.expert_dense", "data", "weight", "experts", attrs=ExpertAttrs, pattern=OpPattern.OPAQUE,
    doc="data (S, J, K) or (S, 1, K) times the matrices `experts` (S, J) of weight (E, units, K).",
)  # fmt: skip


def need_experts(data: TensorType, experts: TensorType) -> None:
    """Data must be rows for the experts of each token, or one row for all of them."""
    need_rank("data", data, 3)
    need_dtype("data", data, "float32", "the sums")
    need_rank("experts", experts, 2)
    need_dtype("experts", experts, "int32", "other indices")
    if data.shape[0] != experts.shape[0] or data.shape[1] not in (1, experts.shape[1]):
        raise BadArgument(
            "data", f"is {data}: its first axes must be those of the experts, {experts}, or 1"
        )


@EXPERT_DENSE.type_relation
def _type(attrs: ExpertAttrs, data: TensorType, weight: TensorType, experts: TensorType) -> Type:
    need_experts(data, experts)
    need_rank("weight", weight, 3)
    depth = weight.shape[2]
    if attrs.format:
        depth = need_rows(attrs, TensorType(weight.shape[1:], weight.dtype))
    else:
        need_dtype("weight", weight, "float32", "the data")
    if data.shape[2] != depth:
        raise BadArgument("data", f"is {data}: its last axis must be the weight's {depth} columns")
    return TensorType((*experts.shape, weight.shape[1]), "float32")


def chosen(experts: Array, count: int) -> Array:
    """Return the numbers of experts as the products take them: within those that there are."""
    return np.clip(experts, 0, count - 1)


@EXPERT_DENSE.reference
def _reference(attrs: ExpertAttrs, data: Array, weight: Array, experts: Array) -> Any:
    count, units, _ = weight.shape
    if attrs.format:
        rows = weight.reshape(count * units, -1)
        weight = decode(attrs.format, rows, np.float64).reshape(count, units, -1)
    wide = np.broadcast_to(data, (*experts.shape, data.shape[2])).astype(np.float64)
    taken = weight.astype(np.float64)[chosen(experts, count)]
    return np.einsum("sjk,sjuk->sju", wide, taken).astype(np.float32)


@EXPERT_DENSE.compute
def _compute(attrs: ExpertAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, weight, experts = inputs
    count, units = (size_of(d) for d in weight.shape[:2])
    k = te().reduce_axis((0, size_of(data.shape[2])), name="k")
    shared = size_of(data.shape[1]) == 1

    def rows(row: Any, at: Any) -> Any:
        return weight(te().floordiv(row, units), te().floormod(row, units), at)

    def weighted(s: Any, j: Any, u: Any) -> Any:
        expert = te().max(0, te().min(experts(s, j), count - 1))
        if attrs.format:
            value = element(attrs.format, rows, expert * units + u, k)
        else:
            value = weight(expert, u, k)
        return te().sum(data(s, 0 if shared else j, k) * value, axis=[k])

    return [te().compute(out_types[0].shape, weighted, name="T_expert_dense", tag="expert_dense")]


@EXPERT_DENSE.flops
def _flops(attrs: ExpertAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[0].shape[-1]


@EXPERT_DENSE.make
def expert_dense(data: ExprLike, weight: ExprLike, experts: ExprLike, format: str = "") -> Call:
    """Data (S, J, K) or (S, 1, K) times the transposes of weight (E, units, K) that experts names.

    With a `format` the weight has the bytes of block-quantised rows, as nn.block_dense takes them.
    """
    return EXPERT_DENSE(data, weight, experts, attrs=ExpertAttrs(format))


def _cases() -> None:
    for name, rows, shared, units, depth in (
        ("", 3, True, 5, 19), ("", 2, False, 8, 32), ("q8_0", 3, True, 5, 64),
        ("q4_0", 2, False, 6, 32), ("q6_k", 2, True, 3, 256),
    ):  # fmt: skip
        each = 1 if shared else 2
        width = depth if not name else depth // FORMATS[name].size * FORMATS[name].bytes

        def make(
            rng: np.random.Generator, name: str = name, rows: int = rows, each: int = each,
            units: int = units, depth: int = depth,
        ) -> list[Any]:  # fmt: skip
            data = rng.standard_normal((rows, each, depth)).astype("float32")
            if name:
                made = random_rows(rng, name, 4 * units, depth // FORMATS[name].size)
                weight = made.reshape(4, units, -1)
            else:
                weight = rng.standard_normal((4, units, depth)).astype("float32")
            return [data, weight, rng.integers(0, 4, (rows, 2)).astype("int32")]

        EXPERT_DENSE.sample_case(
            (rows, each, depth), (4, units, width), (rows, 2), attrs=ExpertAttrs(name),
            dtypes=("float32", "uint8" if name else "float32", "int32"), make=make,
        )  # fmt: skip


_cases()
