"""Which products of bfloat16 an instruction of the target sums in float32, two at a time."""

from __future__ import annotations

from math import prod
from typing import Any

from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay.expr import Call
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.paired import PAIR
from slipway.relay.ops.windows import SPATIAL
from slipway.relay.passes.winograd_choice import has_known_weight, winograd_tile

INSTRUCTIONS = ("x86.bf16",)
# Products for each pixel of an image of few channels that outweigh bringing them side by side.
_IMAGE_WORK = 900
LOW = "bfloat16"
CONVS = {f"nn.conv{n}d": "NC" + letters for n, letters in SPATIAL.items()}


def pair_instruction(target: Any) -> HardwareIntrinsic | None:
    """Return the instruction of `target` for pairs of bfloat16; None if it has none.

    Nor with the option -strict: the instruction takes denormal numbers for zero.
    """
    if target is None or target.kind.name != "llvm" or target.is_strict:
        return None
    return next((HARDWARE[n] for n in INSTRUCTIONS if not HARDWARE[n].missing(target)), None)


def is_paired(call: Call) -> bool:
    """Tell whether a product of bfloat16 has a form with its constant weights in pairs."""
    data, weight = (a.tensor_type for a in call.args[:2])
    if not has_known_weight(call):
        return False
    if is_call_of(call, "nn.dense"):
        return data.rank == 2 and data.shape[1] % PAIR == 0
    attrs: Any = call.attrs
    plain = CONVS.get(call.op.name, "")
    return (
        bool(plain)
        and attrs.groups == 1
        and attrs.data_layout == plain
        and attrs.kernel_layout == "OI" + plain[2:]
        and getattr(attrs, "out_layout", "") in ("", plain)
        and (data.shape[1] >= 4 or prod(weight.shape) >= _IMAGE_WORK * prod(attrs.strides))
    )


def takes_pairs(call: Call, lanes: int, winograd: bool) -> bool:
    """Tell whether a product of bfloat16 is best computed in pairs.

    With `winograd`, float32 convolutions on vectors of `lanes` may take fewer products instead.
    """
    if not is_paired(call):
        return False
    return not (winograd and is_call_of(call, "nn.conv2d") and winograd_tile(call, lanes, PAIR))
