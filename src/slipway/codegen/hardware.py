"""Calls of hardware intrinsics, checked against what a target has."""

from __future__ import annotations

from slipway.errors import CodegenError
from slipway.ir.expr import Call, StringImm
from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.target import Target


def hardware(node: Call, target: Target) -> HardwareIntrinsic:
    """Return the declaration that a "hardware" call names.

    Raises CodegenError when the target lacks what it needs.
    """
    name = node.args[0]
    assert isinstance(name, StringImm)
    entry = HARDWARE[name.value]
    lacking = entry.missing(target)
    if lacking:
        raise CodegenError(
            f"the intrinsic {entry.name!r} needs {', '.join(lacking)}, which the target {target} "
            f"has not. Add -mattr=+{lacking[0]} if the processor has it"
        )
    return entry
