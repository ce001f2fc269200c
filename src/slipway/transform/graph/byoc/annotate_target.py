"""AnnotateTarget: calls that an accelerator takes get marks around them.

    nn.conv2d(%x, %w)  ->  compiler_end(nn.conv2d(compiler_begin(%x), compiler_begin(%w)))

An accelerator takes a composite function whose name begins with its own, and an operator whose
attribute ``target.<accelerator>`` says so.  Of several the first that takes a call gets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.ir.op_attrs import op_attr
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple
from slipway.relay.ops.annotation import compiler_begin, compiler_end
from slipway.relay.types import TensorType
from slipway.relay.visit import rewrite


def annotate_target(function: Function, targets: Sequence[str]) -> Function:
    """Return `function` with marks around what `targets` take."""

    def rule(expr: Any) -> Expr | None:
        if not isinstance(expr, Call):
            return None
        taker = next((t for t in targets if _takes(t, expr)), None)
        if taker is None:
            return None
        begun: dict[int, Expr] = {}  # an argument used twice enters once

        def begin(argument: Any) -> Any:
            if isinstance(argument, Tuple):
                return Tuple(tuple(begin(f) for f in argument.fields))
            if isinstance(argument.type, TensorType) and not isinstance(argument, Constant):
                if id(argument) not in begun:
                    begun[id(argument)] = compiler_begin(argument, taker)
                return begun[id(argument)]
            return argument

        inside = Call(expr.op, tuple(begin(a) for a in expr.args), expr.attrs, expr.span)
        return compiler_end(inside, taker)  # type: ignore[no-any-return]

    return rewrite(function, rule)  # type: ignore[no-any-return]


def _takes(target: str, call: Call) -> bool:
    if isinstance(call.op, Function):
        return str(call.op.attr("Composite", "")).startswith(f"{target}.")
    if not isinstance(call.op, Op) or call.op.name.startswith("annotation."):
        return False
    wanted = op_attr(call.op.name, f"target.{target}")
    return bool(wanted(call) if callable(wanted) else wanted)
