"""Passes of ``relay.transform`` that a backend holds; see `transform.graph.classic`."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.backends.cpu.lowering.alter_layout import alter_layout
from slipway.ir.function import IRModule
from slipway.relay import op_rules
from slipway.relay.expr import Call, Expr, Function
from slipway.transform.graph.attention.fuse_attention import fuse_attention
from slipway.transform.graph.classic import on_functions
from slipway.transform.graph.convert_layout import change_layouts
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.manager import Pass


def AlterOpLayout(lanes: int = 16) -> Pass:
    """Apply the rules of `relay.op.register_alter_op_layout`.

    Where nobody has registered one, carry channels in blocks of `lanes` through the graph.
    """

    def run(function: Function, module: IRModule) -> Function:
        typed = infer_type(function)
        if op_rules.has_rules("FTVMAlterOpLayout"):
            return change_layouts(typed, _alter_rule)
        return alter_layout(typed, lanes)

    return on_functions("AlterOpLayout", run)


def _alter_rule(call: Call, operands: Sequence[Expr]) -> Expr | None:
    types = [a.type for a in call.args]
    return op_rules.apply("FTVMAlterOpLayout", call, operands, [types, call.type])


def FuseAttention(min_rows: int = 4) -> Pass:
    """Make one nn.attention of two products with a softmax between them."""

    def serves(rows: int, value_size: int) -> bool:
        return rows >= min_rows and value_size > 0

    return on_functions("FuseAttention", lambda f, m: fuse_attention(f, serves))
