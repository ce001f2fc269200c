"""Max and Min of floats as instructions: a NaN on either side is the result, as in NumPy.

One instruction is enough where the CPU's own maximum propagates a NaN, and everywhere where one
operand is a known number: ``number > x ? number : x`` gives x where x is a NaN, and x86 has just
that.  Else the second operand is tested by itself; what a reduction has so far is the first one,
so the test does not lengthen the chain from step to step.  The sign of a zero is not defined.
"""

from __future__ import annotations

from slipway import dtypes
from slipway.ir import expr as E
from slipway.target.capability import Capability


def propagating_word(node: E.BinaryOp, capability: Capability) -> str | None:
    """Return LLVM's name of the CPU's own NaN-propagating instruction for a Max or Min, if any."""
    bits, lanes = dtypes.bits_of(node.dtype), node.lanes
    if "propagates" not in capability.extremes(bits, lanes):
        return None
    if (is_number(node.a) or is_number(node.b)) and capability.chooses_extremes(bits, lanes):
        return None
    return "maximum" if isinstance(node, E.Max) else "minimum"


def number_first(node: E.BinaryOp) -> tuple[E.PrimExpr, E.PrimExpr, bool]:
    """Return the operands (a, b) of a Max or Min, and whether a is known to be a number."""
    if is_number(node.a):
        return node.a, node.b, True
    if is_number(node.b):
        return node.b, node.a, True
    return node.b, node.a, False


def compared(node: E.BinaryOp) -> tuple[list[E.PrimExpr], list[E.PrimExpr]]:
    """Return all that a nest of Max (or of Min) compares, as those to test for a NaN, and others.

    Others are numbers, and one more, the last one: compared last, it needs no test.
    """
    numbers: list[E.PrimExpr] = []
    found: list[E.PrimExpr] = []
    seen: set[int] = set()
    left: list[E.PrimExpr] = [node]
    while left:
        operand = left.pop()
        if id(operand) in seen:
            continue
        seen.add(id(operand))
        if isinstance(operand, type(node)):
            left += [operand.b, operand.a]
        else:
            (numbers if is_number(operand) else found).append(operand)
    return found[1:], numbers + found[:1]


def is_number(node: E.PrimExpr) -> bool:
    """Return whether a float is known not to be a NaN: a constant, or made of an integer."""
    match node:
        case E.Broadcast(value=value):
            return is_number(value)
        case E.FloatImm(value=number):
            return number == number
        case E.Cast(value=value):
            return not dtypes.is_float(value.dtype) or is_number(value)
        case E.Select(true_value=yes, false_value=no):
            return is_number(yes) and is_number(no)
    return False
