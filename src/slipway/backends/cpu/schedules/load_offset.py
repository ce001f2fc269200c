"""Where in memory a stage reads, as a sum over the axes of its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway import te
from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF, Linear
from slipway.backends.stages import shape_of
from slipway.ir import ops
from slipway.ir.expr import ProducerLoad
from slipway.relay.dims import is_open, usual


def row_axis(extents: Sequence[Any]) -> int:
    """Return the axis that lies along memory: the last, or what is before axes of one."""
    last = len(extents) - 1
    return next((a for a in range(last, 0, -1) if extents[a] != 1), last)


class LoadOffset:
    """The offset of a load: `flat`, in elements, over the `variables` of axes of some `extents`."""

    def __init__(self, op: te.ComputeOp, extents: Sequence[Any], load: ProducerLoad) -> None:
        self.extents = extents
        self.variables = [axis.var for axis in op.axis]
        self.an = Analyzer()
        for variable, extent in zip(self.variables, extents, strict=True):
            high = INF if is_open(extent) and extent.high is None else usual(extent)
            self.an.bind(variable, 0, high - 1)
        flat: Any = ops.const(0)
        for index, extent in zip(load.indices, shape_of(load.producer), strict=True):
            flat = flat * extent + index
        self.flat: Linear = self.an.recombine(self.an.linear(flat))
