"""SinkReshape: reshapes after a matrix product move below the elementwise operators that follow.

    add(reshape(nn.dense(x, w)), b)            ->  reshape(add(nn.dense(x, w), b))
    add(reshape(nn.dense(x, w)), y)            ->  reshape(add(nn.dense(x, w), reshape(y)))

Importers flatten a tensor for a product and shape the result back, which would keep bias and
activation out of the product's kernel.  Where the reshape ends up between two kernels it costs
nothing: the executor reads the same memory under another shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function, Op
from slipway.relay.op_registry import OpPattern, is_call_of
from slipway.relay.visit import rewrite
from slipway.transform.graph.simplify_expr import RESHAPES

# Whose factors, where there are several, lie along some axis.
RESCALES = ("qnn.rescale", "qnn.contrib_rescale_high")


def sink_reshape(function: Function) -> Function:
    """Return `function` with reshapes of products moved after their elementwise consumers."""
    return _SinkReshape().run(function)


class _SinkReshape:
    def __init__(self) -> None:
        self.products: set[int] = set()  # ids of products and of elementwise results of them
        self.keep: list[Expr] = []

    def run(self, function: Function) -> Function:
        return rewrite(function, self.rule)  # type: ignore[no-any-return]

    def rule(self, expr: Expr) -> Expr | None:
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return None
        pattern = op_registry.get(expr.op.name).pattern
        if pattern == OpPattern.OUT_ELEMWISE_FUSABLE:
            self._note(expr)
            return None
        if not op_registry.is_pointwise(expr) and not is_call_of(expr, *RESCALES):
            return None
        if any(id(a) in self.products and a.type == expr.type for a in expr.args):
            self._note(expr)
            return None
        source = next((self._source(a) for a in expr.args if self._sinks(a, expr)), None)
        if source is None:
            return None
        with op_registry.span(expr.span):
            args = [self._operand(a, source, expr) for a in expr.args]
            if any(a is None for a in args):
                return None
            inner = Call(expr.op, tuple(a for a in args if a is not None), expr.attrs, expr.span)
            if inner.tensor_type.shape != source.tensor_type.shape:
                return None
            self._note(inner)
            return op_registry.make("reshape")(inner, expr.tensor_type.shape)  # type: ignore[no-any-return]

    def _note(self, expr: Expr) -> None:
        self.products.add(id(expr))
        self.keep.append(expr)

    def _source(self, reshaped: Any) -> Expr:
        """What is reshaped, through a chain of reshapes."""
        while is_call_of(reshaped, *RESHAPES):
            reshaped = reshaped.args[0]
        return reshaped  # type: ignore[no-any-return]

    def _sinks(self, argument: Expr, reader: Call) -> bool:
        """Return whether an operand is the reshape of a product, of the result's shape."""
        if not is_call_of(argument, *RESHAPES) or argument.type is None:
            return False
        same = argument.tensor_type.shape == reader.tensor_type.shape
        return same and id(self._source(argument)) in self.products

    def _operand(self, argument: Expr, source: Expr, reader: Call) -> Expr | None:
        """Return an operand as it meets the unreshaped `source`, or None when it cannot."""
        shape, given = source.tensor_type.shape, argument.tensor_type
        out = reader.tensor_type.shape
        if given.shape == out:
            inner = self._source(argument)
            if inner.tensor_type.shape == shape:
                return inner
            return op_registry.make("reshape")(inner, shape)  # type: ignore[no-any-return]
        if given.size == 1:
            return op_registry.make("reshape")(argument, ()) if given.rank else argument
        if (same := _among_unit_axes(given.shape, out, shape)) is not None:
            return op_registry.make("reshape")(argument, same)  # type: ignore[no-any-return]
        along_last = (
            bool(shape)
            and shape[-1] == out[-1] == given.shape[-1]
            and all(d == 1 for d in given.shape[:-1])
        )
        if not along_last:
            return None
        if given.rank == 1:
            return argument
        return op_registry.make("reshape")(argument, (given.shape[-1],))  # type: ignore[no-any-return]


def _among_unit_axes(
    given: Sequence[Any], out: Sequence[Any], shape: Sequence[Any]
) -> tuple[Any, ...] | None:
    """Return the shape in which `given`, broadcast to `out`, is broadcast to `shape`.

    None where the two differ in more than axes of one.
    """
    wide = (*[1] * (len(out) - len(given)), *given)
    kept = [extent for extent, whole in zip(wide, out, strict=True) if whole != 1]
    if [n for n in out if n != 1] != [n for n in shape if n != 1]:
        return None
    extents = iter(kept)
    return tuple(1 if n == 1 else next(extents) for n in shape)
