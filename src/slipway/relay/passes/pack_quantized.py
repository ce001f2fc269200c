"""PackQuantizedWeights: integer products in the form of the target's multiply-add instruction.

    qnn.conv2d_nhwc(%x, w)   ->  qnn.contrib_conv2d_packed(%x, w packed)
    qnn.dense_packed(%x, w)  ->  the same, of a 1x1 window over rows

for constant weights, one group, and output channels that fill whole vectors.  The sums are the
same integers.  An instruction that takes unsigned data gets x + 128, and 128 times the sum of the
weights is taken from its result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.ops.qnn_conv import IntegerConvAttrs
from slipway.relay.ops.qnn_packed import data_kind, pack_weights
from slipway.relay.visit import rewrite

Array = np.ndarray[Any, Any]

# Instructions in order of preference; the data is copied to the dtype of their operands.
INSTRUCTIONS = ("neon.sdot", "x86.vnni", "x86.vnni.256", "x86.avxvnni", "x86.pmaddwd")
OFFSET = 128  # between signed and unsigned bytes


def packing_instructions(target: Any) -> list[HardwareIntrinsic]:
    """Return the instructions that integer products use on `target`, the best first."""
    if target is None or target.kind.name != "llvm":
        return []
    return [HARDWARE[n] for n in INSTRUCTIONS if not HARDWARE[n].missing(target)]


def prefers_unsigned(instructions: list[HardwareIntrinsic]) -> bool:
    """Tell whether the best instruction takes unsigned data."""
    return bool(instructions) and instructions[0].a_dtype == "uint8"


def pack_quantized(function: Function, instructions: list[HardwareIntrinsic]) -> Function:
    """Return `function` with the weights of its integer products packed for `instructions`."""

    def one(expr: Any) -> Expr | None:
        if is_call_of(expr, "qnn.conv2d_nhwc"):
            return _convolution(expr, instructions)
        return _dense(expr, instructions) if is_call_of(expr, "qnn.dense_packed") else None

    return rewrite(function, one)  # type: ignore[no-any-return]


def _convolution(call: Call, instructions: list[HardwareIntrinsic]) -> Expr | None:
    data, weight = call.args
    attrs: Any = call.attrs
    if not isinstance(weight, Constant) or attrs.groups != 1:
        return None
    return _packed(data, weight.array, attrs, instructions, call.span)


def _dense(call: Call, instructions: list[HardwareIntrinsic]) -> Expr | None:
    """Rows of the data as positions of an image."""
    data, weight = call.args
    attrs: Any = call.attrs
    if not isinstance(weight, Constant):
        return None
    shape = data.tensor_type.shape
    depth, units = weight.array.shape
    rows = data.tensor_type.size // max(depth, 1)
    face: Any = op_registry.face("reshape")
    image = face(data, (1, rows, 1, depth))
    made = _packed(
        image, weight.array[None, None], IntegerConvAttrs(out_dtype=attrs.out_dtype),
        instructions, call.span,
    )  # fmt: skip
    return made and face(made, (*shape[:-1], units))


def _packed(
    data: Any, weight: Array, attrs: Any, instructions: list[HardwareIntrinsic], span: Any
) -> Expr | None:
    if data.tensor_type.dtype not in ("int8", "uint8"):
        return None
    entry = next((i for i in instructions if _suits(i, data, weight, attrs)), None)
    if entry is None:
        return None
    packed = Constant(pack_weights(weight, entry.columns, entry.depth, entry.b_dtype))
    make = op_registry.get("qnn.contrib_conv2d_packed")
    if data_kind(data.tensor_type.dtype, entry.b_dtype) == entry.a_dtype:
        return make(data, packed, attrs=attrs, span=span)
    cast, add = (op_registry.face(n) for n in ("cast", "add"))
    moved = cast(add(cast(data, "int16"), const(OFFSET, "int16")), "uint8")
    attrs = attrs.replace(pad_value=attrs.pad_value + OFFSET)
    sums = make(moved, packed, attrs=attrs, span=span)
    excess = OFFSET * weight.astype(np.int64).sum(axis=(0, 1, 2))
    return op_registry.face("subtract")(sums, const(excess.astype(np.int32)))  # type: ignore[no-any-return]


def _suits(entry: HardwareIntrinsic, data: Any, weight: Array, attrs: Any) -> bool:
    """Tell whether an instruction can sum these products."""
    given = data.tensor_type.dtype
    kind = data_kind(given, entry.b_dtype)
    moved = 0
    if (given, kind, entry.a_dtype) == ("int8", "int8", "uint8"):
        kind, moved = "uint8", OFFSET
    bounds = np.iinfo(kind)
    return (
        kind == entry.a_dtype
        and attrs.out_dtype == entry.c_dtype
        and weight.shape[3] % entry.columns == 0
        and np.can_cast(weight.dtype, entry.b_dtype)
        and bounds.min <= attrs.pad_value + moved <= bounds.max
    )
