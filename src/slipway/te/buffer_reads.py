"""Expressions over tensors and axes become expressions over buffers and loop variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.arith.linear import Atom, Linear
from slipway.errors import LoweringError, ScheduleError
from slipway.ir import expr as E
from slipway.ir.expr import PrimExpr
from slipway.ir.visit import map_children
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.ir.node import Node
    from slipway.te.lowering import Lowering


class Converter:
    """Turns a te expression into loads from buffers, with axes replaced by loop expressions."""

    def __init__(self, lowering: Lowering, values: dict[Atom, Linear]) -> None:
        self.lowering = lowering
        self.an = lowering.an
        self.values = values
        self.memo: dict[int, tuple[Any, Any]] = {}

    def convert(self, node: Node) -> Any:
        """Return the expression over buffers and loop variables."""
        known = self.memo.get(id(node))
        if known is not None:
            return known[1]
        result = self._convert(node)
        self.memo[id(node)] = (node, result)
        return result

    def _convert(self, node: Any) -> Any:
        if isinstance(node, (E.IntImm, E.FloatImm, E.StringImm)):
            return node
        if isinstance(node, E.ProducerLoad):
            return self._load(node)
        if node.dtype in ("int32", "int64"):
            linear = self.an.linear(node)
            if all(a.pure for a in linear.terms):
                return self.an.to_expr(self.an.substitute(linear, self.values))
        if isinstance(node, E.Reduce):
            raise LoweringError(f"a reduction may only be the whole body of a compute: {node}")
        if isinstance(node, E.Var):
            return node
        result = map_children(
            node, lambda child: self.convert(child) if isinstance(child, PrimExpr) else child
        )
        if isinstance(result, (E.CmpOp, E.Select, E.Not)) or (
            isinstance(result, E.Call) and result.op in ("if_then_else", "likely")
        ):
            return self.an.simplify(result)
        return result

    def _load(self, node: E.ProducerLoad) -> PrimExpr:
        tensor: Tensor = node.producer
        storage = self.lowering.storage.get(tensor)
        if storage is None:
            raise ScheduleError(
                f"tensor {tensor.name!r} is read, but is neither computed by the schedule nor "
                "among the arguments"
            )
        indices = []
        for position, index in enumerate(node.indices):
            linear = self.an.linear(index)
            if all(a.pure for a in linear.terms):
                value = self.an.substitute(linear, self.values)
            else:
                value = self.an.linear(self.convert(index))
            if storage.mins is not None:
                value = self.an.recombine(value.minus(storage.mins[position]))
            indices.append(self.an.to_expr(value))
        return E.BufferLoad(storage.buffer, tuple(indices))
