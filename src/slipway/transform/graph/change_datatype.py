"""A model in other floats: the variables and constants of one dtype become those of another."""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.ir.function import IRModule
from slipway.relay.expr import Call, Constant, Function, Var
from slipway.relay.expr_functor import ExprMutator
from slipway.relay.ops.tensor.unary import cast
from slipway.relay.types import TensorType
from slipway.transform.graph.classic import function_pass


@function_pass(opt_level=0)
class ChangeDatatype(ExprMutator):
    """Computes in `dst` what a model computes in `src`: ``ChangeDatatype("float32", "float64")``.

    A pass, ``ChangeDatatype(src, dst)(mod)``; ``.visit(function)`` gives a function alone.  What
    an operator's attributes name (``cast(dtype="float32")``) changes too, where it is `src`.
    """

    def __init__(self, src: str, dst: str) -> None:
        super().__init__()
        self.src, self.dst = src, dst

    def transform_function(self, function: Function, module: IRModule, context: Any) -> Function:
        """Return the function in the other dtype."""
        del module, context
        changed: Function = self.visit(function)
        return changed

    def visit_constant(self, constant: Constant) -> Any:
        """Convert the numbers, those of the user's own types when the model runs."""
        values = constant.data.numpy()
        if str(values.dtype) != self.src:
            return constant
        if dtypes.is_custom(self.dst):  # which NumPy does not compute with
            return cast(constant, self.dst)
        return Constant(values.astype(self.dst))

    def visit_var(self, variable: Var) -> Any:
        """Declare the variable again; one without a type stays."""
        declared = variable.type_annotation
        if not isinstance(declared, TensorType) or declared.dtype != self.src:
            return variable
        return Var(variable.name_hint, declared.replace(dtype=self.dst))

    def visit_call(self, call: Call) -> Any:
        """Change what the attributes name."""
        made = super().visit_call(call)
        names = [
            name for name in ("dtype", "out_dtype")
            if isinstance(made, Call) and getattr(made.attrs, name, None) == self.src
        ]  # fmt: skip
        if not names:
            return made
        attrs = made.attrs.replace(**dict.fromkeys(names, self.dst))
        return Call(made.op, made.args, attrs, made.span)

    def visit_function(self, function: Function) -> Any:
        """Change variables and body; the type of the result is inferred again."""
        variables = tuple(self.visit(v) for v in function.params)
        return Function(variables, self.visit(function.body), None, function.attrs)
