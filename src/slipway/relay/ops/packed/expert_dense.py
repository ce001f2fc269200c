"""nn.contrib_expert_dense: rows times the block-quantised matrices of their experts, packed.

The weights of all experts lie one after the other as nn.contrib_block_dense has those of one, each
padded to whole tiles; data is rounded as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpPattern, register_op
from slipway.relay.ops.nn.block_dense import random_rows
from slipway.relay.ops.nn.expert_dense import chosen, need_experts
from slipway.relay.ops.packed.block_dense import (
    PACKED,
    PackedBlockAttrs,
    packed_parts,
    packed_sums,
)
from slipway.relay.ops.packed.block_formats import FORMATS
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike


@node
class PackedExpertAttrs(PackedBlockAttrs):
    """How many `matrices` there are."""

    matrices: int = 1


PACKED_EXPERTS = register_op(
    "nn.contrib_expert_dense", "data", "weight", "scale", "minimum", "experts",
    attrs=PackedExpertAttrs, pattern=OpPattern.OPAQUE,
    doc="data (S, J or 1, K) times the matrices `experts` (S, J) of packed block-quantised ones.",
)  # fmt: skip


@PACKED_EXPERTS.type_relation
def _type(
    attrs: PackedExpertAttrs,
    data: TensorType,
    weight: TensorType,
    scale: TensorType,
    minimum: TensorType,
    experts: TensorType,
) -> Type:
    need_experts(data, experts)
    rows = TensorType((1, data.shape[2]), data.dtype)
    made = PACKED.infer(attrs, [rows, weight, scale, minimum])
    assert isinstance(made, TensorType)
    units = int(made.shape[1])
    if attrs.matrices < 1 or units % attrs.matrices:
        raise BadArgument(
            "matrices",
            f"is {attrs.matrices}, which is no number of matrices of {units} rows in all",
        )
    return TensorType((*experts.shape, units // attrs.matrices), "float32")


@PACKED_EXPERTS.reference
def _reference(
    attrs: PackedExpertAttrs,
    data: Array,
    weight: Array,
    scale: Array,
    minimum: Array,
    experts: Array,
) -> Any:
    wide = np.broadcast_to(data, (*experts.shape, data.shape[2])).reshape(-1, data.shape[2])
    all_of = np.asarray(PACKED.evaluate(attrs, np.asarray(wide, order="C"), weight, scale, minimum))
    of_each = all_of.reshape(len(wide), attrs.matrices, -1)
    picked = of_each[np.arange(len(wide)), chosen(experts, attrs.matrices).reshape(-1)]
    return picked.reshape(*experts.shape, -1)


@PACKED_EXPERTS.compute
def _compute(attrs: PackedExpertAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, *weights, experts = inputs
    tokens, each, units = out_types[0].shape
    rows = size_of(data.shape[1])
    flat = te().compute(
        (tokens * rows, data.shape[2]), lambda r, k: data(r // rows, r % rows, k), "T_expert_rows"
    )

    def output_of(p: Any, j: Any) -> Any:
        expert = te().max(0, te().min(experts(p // each, p % each), attrs.matrices - 1))
        return expert * units + j

    made = packed_sums(
        attrs, [flat, *weights], (tokens * each, units),
        (lambda p: p // each) if rows == 1 else (lambda p: p), output_of,
    )  # fmt: skip
    return [
        te().compute(
            out_types[0].shape, lambda s, j, u: made(s * each + j, u), "T_expert_dense",
            tag="injective",
        )
    ]  # fmt: skip


@PACKED_EXPERTS.flops
def _flops(attrs: PackedExpertAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[0].shape[-1]


@PACKED_EXPERTS.make
def contrib_expert_dense(
    data: ExprLike,
    weight: ExprLike,
    scale: ExprLike,
    minimum: ExprLike,
    experts: ExprLike,
    matrices: int = 1,
    bits: int = 8,
    offset: int = 0,
    minima: bool = False,
    parts: int = 1,
    signed: bool = False,
) -> Call:
    """The products of packed block-quantised weights with the rows of their experts."""
    attrs = PackedExpertAttrs(bits, offset, minima, parts, signed, False, matrices)
    return PACKED_EXPERTS(data, weight, scale, minimum, experts, attrs=attrs)


def _cases() -> None:
    for name, shared in (("q8_0", True), ("q4_0", False), ("q4_1", True)):
        depth, each = FORMATS[name].size * 2, 1 if shared else 2
        width = FORMATS[name].bytes * 2
        some = np.broadcast_to(np.arange(width, dtype=np.uint8) % 3 + 1, (3 * 8, width))
        how, arrays = packed_parts(name, some, 4, 2, True)

        def make(
            rng: np.random.Generator, name: str = name, depth: int = depth, each: int = each
        ) -> list[Any]:
            _, arrays = packed_parts(name, random_rows(rng, name, 3 * 8, 2), 4, 2, True)
            data = rng.standard_normal((3, each, depth)).astype("float32")
            return [data, *arrays, rng.integers(0, 3, (3, 2)).astype("int32")]

        PACKED_EXPERTS.sample_case(
            (3, each, depth), *(a.shape for a in arrays), (3, 2),
            attrs=PackedExpertAttrs(**how, matrices=3),
            dtypes=("float32", *(str(a.dtype) for a in arrays), "int32"), make=make,
        )  # fmt: skip


_cases()
