"""Which instruction of a CPU is a maximum or minimum of floats, NaN and zeros considered.

Two exist beside compare and select: "maxnum" gives the number where one operand is a NaN,
"maximum" the NaN, and both order the zeros.  `Max` and `Min` give their second operand where one is
a NaN, which is either of them where one operand is a known number.  A reduction's running result
takes what there is: whether it passes a NaN over is not defined.
"""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.codegen.capability import Capability
from slipway.ir import expr as E
from slipway.ir.node import Node


def extreme_word(node: Any, capability: Capability, running: bool = False) -> str | None:
    """Return LLVM's name of the instruction for a Max or Min of floats; None: compare and select.

    `running`: the first operand is the result so far of a reduction, which the node updates.
    """
    bits = dtypes.bits_of(node.dtype)
    known = capability.extremes(bits, node.lanes)
    propagates = "propagates" in known and (
        (running and "ignores" not in known) or (_is_number(node.a) and not _is_zero(node.a))
    )
    if "ignores" in known and (running or _is_number(node.b)):
        return "maxnum" if isinstance(node, E.Max) else "minnum"
    if propagates:
        return "maximum" if isinstance(node, E.Max) else "minimum"
    return None


def updates(store: Any) -> bool:
    """Tell whether a BufferStore takes the greater or lesser of what it overwrites and a value."""
    value = store.value
    if not isinstance(value, (E.Max, E.Min)) or not dtypes.is_float(value.dtype):
        return False
    old = value.a
    return (
        isinstance(old, E.BufferLoad)
        and old.buffer is store.buffer
        and _same(old.indices, store.indices)
    )


def _same(a: Any, b: Any) -> bool:
    """Tell whether two indices (or tuples of them) are written alike, of the same variables."""
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is not type(b) or isinstance(a, E.Var):
        return False
    if isinstance(a, Node):
        return all(_same(getattr(a, name), getattr(b, name)) for name in a.FIELDS)
    return bool(a == b)


def _is_number(node: E.PrimExpr) -> bool:
    """Tell whether `node` is a float constant that is no NaN."""
    if isinstance(node, E.Broadcast):
        return _is_number(node.value)
    return isinstance(node, E.FloatImm) and node.value == node.value


def _is_zero(node: E.PrimExpr) -> bool:
    """Tell whether `node` is the float constant 0, of either sign."""
    if isinstance(node, E.Broadcast):
        return _is_zero(node.value)
    return isinstance(node, E.FloatImm) and node.value == 0.0
