"""RoundOnce: arithmetic between two tensors of bfloat16 or float16 is float32, rounded at its end.

    nn.relu(add(%x, %b))  ->  cast(nn.relu(add(cast(%x, float32), cast(%b, float32))), bfloat16)

Each operator computes in float32 anyway; what it hands to others is not rounded in between, if all
of them compute in float32 too.  A value that a product reads in bfloat16 is rounded for all.
"""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op
from slipway.relay.op_registry import MOVES, OpPattern, is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import children, post_order, rebuild

NARROW, WIDE = ("bfloat16", "float16"), "float32"
_MOVES = MOVES - {"cast", "concatenate", "split", "stack"}  # one tensor in, one out
# They are of several values, and have their best kernels in float32.
_SUMS = frozenset([
    "image.resize", "nn.softmax", "nn.log_softmax", "nn.layer_norm", "nn.instance_norm",
    "max", "mean", "min", "sum",
    *(f"nn.{kind}avg_pool{n}d" for kind in ("", "global_", "adaptive_") for n in (1, 2, 3)),
])  # fmt: skip


def round_once(function: Function) -> Function:
    """Return `function` with chains of operators on 16-bit floats rounded at their ends."""
    return _RoundOnce(function).run()


class _RoundOnce:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.order = [e for e in post_order(function, into_functions=False) if e is not function]
        self.readers: dict[int, list[Expr]] = {}
        for expr in (*self.order, function):
            for child in children(expr):
                self.readers.setdefault(id(child), []).append(expr)
        self.done: dict[int, Expr] = {}
        self.widens: dict[int, bool] = {}

    def run(self) -> Function:
        if not any(_is_narrow(e) for e in self.order):
            return self.function
        for expr in reversed(self.order):
            self.widens[id(expr)] = self.computes_wide(expr)
        for expr in self.order:
            self.done[id(expr)] = self.visit(expr)
        body = self.done[id(self.function.body)]
        return Function(self.function.params, body, None, self.function.attrs)

    def computes_wide(self, expr: Expr) -> bool:
        """Return whether an operator takes and gives float32 in the new graph."""
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return False
        if is_call_of(expr, "cast"):
            return _is_narrow(expr.args[0]) and expr.tensor_type.dtype == WIDE
        if not _is_narrow(expr) or any(_other_float(a, expr) for a in expr.args):
            return False
        name = expr.op.name
        if name in _MOVES:
            readers = self.readers.get(id(expr), [])
            return len(readers) == 1 and self.widens.get(id(readers[0]), False)
        return name in _SUMS or op_registry.get(name).pattern <= OpPattern.BROADCAST

    def visit(self, expr: Any) -> Expr:
        if isinstance(expr, Function):  # a kernel that the module already has
            return expr
        if not self.widens[id(expr)]:
            return rebuild(expr, lambda child: self.done[id(child)])  # type: ignore[no-any-return]
        if is_call_of(expr, "cast"):
            return self.wide(expr.args[0])
        made: Expr = expr.with_args(tuple(self.wide(a) for a in expr.args))
        return _cast(made, expr.tensor_type.dtype)

    def wide(self, old: Expr) -> Expr:
        """The new value of `old` in float32: before its rounding, if nobody needs that."""
        new = self.done[id(old)]
        if not _is_narrow(new):
            return new
        if isinstance(new, Constant):
            return Constant(new.array.astype(WIDE))
        all_wide = all(self.widens.get(id(r), False) for r in self.readers[id(old)])
        if all_wide and is_call_of(new, "cast"):
            before: Expr = new.args[0]
            if before.tensor_type.dtype == WIDE:
                return before
        return _cast(new, WIDE)


def _cast(expr: Expr, dtype: str) -> Expr:
    make: Any = op_registry.make("cast")
    return make(expr, dtype)  # type: ignore[no-any-return]


def _is_narrow(expr: Expr) -> bool:
    return isinstance(expr.type, TensorType) and expr.type.dtype in NARROW


def _other_float(argument: Expr, expr: Expr) -> bool:
    """Return whether an argument is no tensor, or of another floating point type than `expr`."""
    type_ = argument.checked_type
    if not isinstance(type_, TensorType):
        return True
    return dtypes.is_float(type_.dtype) and type_.dtype != expr.tensor_type.dtype
