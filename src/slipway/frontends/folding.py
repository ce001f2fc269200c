"""Constant folding while a model is read, so that shapes computed from shapes are known at once."""

from __future__ import annotations

from typing import Any

from slipway.errors import SlipwayError
from slipway.frontends.budget import take_bytes
from slipway.ir.visit import post_order_by
from slipway.relay.expr import Expr, TupleWrapper
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import children, rebuild
from slipway.transform.graph.fold_constant import fold_one

# Weights stay integers: `integer_arithmetic` and `keep_blocks` want them as they are stored.
STORED = ("qnn.dequantize", "nn.block_take")


class ConstantFolder:
    """Folds constants in newly made expressions; each expression is looked at once."""

    def __init__(self) -> None:
        self.done: dict[int, Expr] = {}
        self.keep: list[Expr] = []  # ids stay valid while the objects live

    def fold(self, root: Any) -> Expr:
        """Return what a converter made with its constant parts computed.

        Raises SlipwayError when it is no expression.
        """
        if isinstance(root, TupleWrapper):
            root = root.astuple()
        if not isinstance(root, Expr):
            raise SlipwayError(f"a converter made a {type(root).__name__}, not an expression")
        done = self.done
        for expr in post_order_by([root], children, known=done):
            fresh = rebuild(expr, lambda child: done[id(child)])
            result = None if is_call_of(fresh, *STORED) else fold_one(fresh, take_bytes)
            result = fresh if result is None else result
            done[id(expr)] = done[id(result)] = result
            self.keep += [expr, result]
        return done[id(root)]
