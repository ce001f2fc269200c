"""qnn.lookup: a function of 8-bit integers as a table of its 256 values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_shape
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike

LOOKUP = register_op(
    "qnn.lookup", "data", "table", pattern=OpPattern.BROADCAST, flops_per_element=1,
    doc="table[data - lowest value of data's dtype], for int8 or uint8 data and 256 entries.",
)  # fmt: skip


def _lowest(dtype: str) -> int:
    return -128 if dtype == "int8" else 0


@LOOKUP.type_relation
def _lookup_type(attrs: None, data: TensorType, table: TensorType) -> Type:
    if data.dtype not in ("int8", "uint8"):
        raise BadArgument("data", f"must be int8 or uint8, got {data}")
    need_shape("table", table, (256,), "one entry for each value of the data")
    return TensorType(data.shape, table.dtype)


@LOOKUP.reference
def _lookup_reference(attrs: None, data: Array, table: Array) -> Any:
    return table[data.astype(np.int32) - _lowest(data.dtype.name)]


@LOOKUP.compute
def _lookup_compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, table = inputs
    low = te().const(_lowest(data.dtype), "int32")

    def element(*i: PrimExpr) -> Any:
        return table(data(*i).astype("int32") - low)

    return [te().compute(out_types[0].shape, element, name="T_lookup", tag="broadcast")]


@LOOKUP.make
def lookup(data: ExprLike, table: ExprLike) -> Call:
    """Replace each 8-bit element by its entry in `table`, lowest value first."""
    return LOOKUP(data, table)


LOOKUP.sample_case((4, 30), (256,), dtypes=("int8", "int8"), low=-128, high=127)
LOOKUP.sample_case((4, 30), (256,), dtypes=("uint8", "int32"), low=0, high=255)
