"""How much of its inputs a tile of a product reads: what shared memory has to have room for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.ir.expr import IntImm, PrimExpr, ProducerLoad, Var
from slipway.ir.visit import walk
from slipway.te.operation import ComputeOp
from slipway.te.tensor import Tensor


@dataclass(frozen=True)
class PartRead:
    """An input, the steps of each of its indices for a step of each loop, and its lengths."""

    steps: tuple[Mapping[Var, int], ...]
    shape: tuple[int, ...]
    itemsize: int

    def bytes(self, lengths: Mapping[Var, int]) -> int:
        """Return how many bytes a tile reads whose loops are so long."""
        found = self.itemsize
        for each, length in zip(self.steps, self.shape, strict=True):
            spanned = 1 + sum(step * (lengths.get(var, 1) - 1) for var, step in each.items())
            found *= min(spanned, length)
        return found


def parts_read(op: ComputeOp) -> list[PartRead]:
    """Return what a product reads of each of its inputs, of one that it reads twice the most.

    Indices that are not sums of multiples of loops are taken to be, as near zero.
    """
    loops = [axis.var for axis in op.root_iter_vars]
    found: dict[Tensor, PartRead] = {}
    for body in op.body:
        for node in walk(body):
            if isinstance(node, ProducerLoad):
                part = _part(node, loops)
                known = found.get(node.producer)
                if known is None or _reach(part) > _reach(known):
                    found[node.producer] = part
    return list(found.values())


def _part(load: ProducerLoad, loops: list[Var]) -> PartRead:
    shape = tuple(int(n) if isinstance(n, int | IntImm) else 1 for n in load.producer.shape)
    steps = tuple({var: _step(index, var, loops) for var in loops} for index in load.indices)
    bits = dtypes.bits_of(load.producer.dtype)
    return PartRead(steps, shape, max(1, bits // 8))


def _step(index: PrimExpr, var: Var, loops: list[Var]) -> int:
    """Return how far an index moves from the first step of a loop to the second."""
    an = Analyzer()
    for loop in loops:
        an.bind(loop, 0, 1 if loop is var else 0)
    low, high = an.bounds(index)
    return 0 if math.inf in (-low, high) else int(high - low)


def _reach(part: PartRead) -> int:
    return math.prod(1 + sum(each.values()) for each in part.steps)
