"""Choices between loads of several memories, as joined tensors are read."""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir.visit import walk

FEW = 3  # so many are made in loops of their own, which LLVM unrolls
# All that conditions may hold: comparisons of indices, which are harmless where they are not asked.
_HARMLESS = (
    E.Var, E.IntImm, E.Add, E.Sub, E.Mul, E.Min, E.Max, E.LT, E.LE, E.GT, E.GE, E.EQ, E.NE, E.And,
    E.Or, E.Not,
)  # fmt: skip


def chosen_loads(node: E.Call) -> tuple[list[E.BufferLoad], list[E.Call]] | None:
    """Return the loads that an if_then_else chooses from, and its choices, itself first.

    None where it is something else, has but a few loads, or conditions that must not be evaluated
    where they are not asked.
    """
    loads: list[E.BufferLoad] = []
    choices: list[E.Call] = []
    waiting: list[Any] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, E.Call) and part.op == "if_then_else":
            if not all(isinstance(n, _HARMLESS) for n in walk(part.args[0])):
                return None
            choices.append(part)
            waiting += part.args[1:]
        elif isinstance(part, E.BufferLoad) and part.buffer.dtype == dtypes.scalar_of(node.dtype):
            loads.append(part)
        else:
            return None
    return (loads, choices) if len(loads) > FEW else None
