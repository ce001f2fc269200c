"""PackQuantizedWeights: integer convolutions in the form of the target's multiply-add instruction.

    qnn.conv2d_nhwc(%x, w)  ->  qnn.contrib_conv2d_packed(%x, w packed)

for constant weights, one group, and output channels that fill whole vectors.  The sums are the
same integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.qnn_packed import pack_weights
from slipway.relay.visit import rewrite

# Instructions in order of preference; the data is copied to the dtype of their operands.
INSTRUCTIONS = ("neon.sdot", "x86.pmaddwd")


def packing_instruction(target: Any) -> HardwareIntrinsic | None:
    """Return the instruction that integer convolutions use on `target`, or None."""
    if target is None or target.kind.name != "llvm":
        return None
    return next((HARDWARE[n] for n in INSTRUCTIONS if not HARDWARE[n].missing(target)), None)


def pack_quantized(function: Function, instruction: HardwareIntrinsic) -> Function:
    """Return `function` with the weights of its integer convolutions packed for `instruction`."""

    def one(expr: Any) -> Expr | None:
        return _packed(expr, instruction) if is_call_of(expr, "qnn.conv2d_nhwc") else None

    return rewrite(function, one)  # type: ignore[no-any-return]


def _packed(call: Call, instruction: HardwareIntrinsic) -> Expr | None:
    data, weight = call.args
    attrs: Any = call.attrs
    kind = instruction.a_dtype
    if (
        not isinstance(weight, Constant)
        or attrs.groups != 1
        or attrs.out_dtype != instruction.c_dtype
        or weight.array.shape[3] % instruction.columns
        or any(not np.can_cast(x, kind) for x in (data.tensor_type.dtype, weight.array.dtype))
        or not np.iinfo(kind).min <= attrs.pad_value <= np.iinfo(kind).max
        or data.tensor_type.dtype not in ("int8", "uint8")
    ):
        return None
    packed = pack_weights(weight.array, instruction.columns, instruction.depth, kind)
    make = op_registry.get("qnn.contrib_conv2d_packed")
    return make(data, Constant(packed), attrs=attrs, span=call.span)
