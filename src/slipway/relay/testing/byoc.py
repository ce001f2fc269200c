"""An annotator for examples of code generators of one's own (classic)."""

from __future__ import annotations

from slipway.relay.expr import Call, Expr, Op
from slipway.relay.expr_functor import ExprMutator
from slipway.relay.ops.annotation import compiler_begin, compiler_end

_CHAIN = ("multiply", "subtract", "add")  # from the result to the first operand
_COMPILER = "ccompiler"


class CcompilerAnnotator(ExprMutator):
    """Marks each ``multiply(subtract(add(a, b), c), d)`` as one part for the example's compiler."""

    def visit_call(self, call: Call) -> Expr:
        """Mark the chain that ends in `call`, if one does."""
        chain: list[Call] = []
        link: Expr = call
        for name in _CHAIN:
            if not (isinstance(link, Call) and isinstance(link.op, Op) and link.op.name == name):
                return super().visit_call(call)  # type: ignore[no-any-return]
            chain.append(link)
            link = link.args[0]
        result = compiler_begin(self.visit(link), _COMPILER)
        for each in reversed(chain):
            other = compiler_begin(self.visit(each.args[1]), _COMPILER)
            result = Call(each.op, (result, other), each.attrs)
        return compiler_end(result, _COMPILER)  # type: ignore[no-any-return]
