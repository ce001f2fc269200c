"""ToMixedPrecision: a float32 graph with its products in float16 or bfloat16.

    nn.dense(%x, %w)  ->  cast(nn.dense(cast(%x, bfloat16), cast(%w, bfloat16),
                                        out_dtype=float32), bfloat16)

Operators are of three kinds, the classic system's.  Products (ALWAYS) take the low type and sum in
float32.  What moves values, and arithmetic of one step (FOLLOW), takes the type that its arguments
have by then; variables and constants are cast, as that is safe.  What sums many values or grows
fast (NEVER) stays in the type it had.  A second run changes nothing.
"""

from __future__ import annotations

import warnings
from typing import Any

from slipway import dtypes
from slipway.errors import LoweringError
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.ops.recurrence import body_of
from slipway.relay.types import TensorType, TupleType, Type, flatten
from slipway.relay.visit import post_order, rebuild

LOW_TYPES = ("float16", "bfloat16")
WIDE = "float32"
ALWAYS = frozenset([
    *(f"nn.conv{n}d{kind}" for n in SPATIAL for kind in ("", "_transpose")),
    "nn.dense", "nn.matmul", "nn.batch_matmul",
])  # fmt: skip
FOLLOW = frozenset([
    "nn.pad", "nn.batch_flatten", "concatenate", "split", "squeeze", "stack", "transpose",
    "expand_dims", "reshape", "repeat", "reverse", "broadcast_to", "strided_slice", "take",
    "gather", "gather_nd", "where", "tile", "full", "copy", "layout_transform", "image.resize",
    "less", "greater", "less_equal", "greater_equal", "equal", "not_equal",
    "add", "subtract", "multiply", "divide", "negative", "abs", "sqrt", "nn.bias_add",
    "nn.batch_norm", "nn.dropout", "max", "min", "maximum", "minimum", "argmax", "argmin", "clip",
    "nn.relu", "nn.leaky_relu", "nn.prelu", "sigmoid", "tanh",
    *(f"nn.{kind}_pool{n}d" for n in SPATIAL
      for kind in ("max", "avg", "global_max", "adaptive_max")),
])  # fmt: skip
NEVER = frozenset([
    "exp", "log", "power", "rsqrt", "erf", "arange", "sum", "mean", "prod", "cumsum", "cumprod",
    "nn.softmax", "nn.log_softmax", "nn.layer_norm", "nn.instance_norm", "nn.lrn", "nn.attention",
    "nn.attention_bias", "vision.select_boxes", "vision.suppress_boxes", "vision.roi_align",
    "vision.roi_align_adaptive",
    "one_hot", "shape_of",
    *(f"nn.{kind}_pool{n}d" for n in SPATIAL for kind in ("global_avg", "adaptive_avg")),
])  # fmt: skip
# What to do about an operator of no kind; it is treated as one that stays.
MISSING_ERROR, MISSING_WARN, MISSING_IGNORE = 0, 1, 2


def to_mixed_precision(
    function: Function,
    low: str = "float16",
    missing_op_mode: int = MISSING_WARN,
    keep_output_dtype: bool = False,
    sums: str = WIDE,
) -> Function:
    """Return typed `function` with as many operators as is safe in the type `low`.

    With `keep_output_dtype` it returns what it did, else perhaps values of the low type.  An
    operator of no known kind stays as it is: `missing_op_mode` 0 raises LoweringError, 1 warns,
    2 is silent.  `sums` is what products are summed in: float32, or `low`.  Also raises
    LoweringError for a `low` that is no 16-bit float.
    """
    if low not in LOW_TYPES:
        raise LoweringError(
            f"ToMixedPrecision cannot use {low!r}: choose {' or '.join(map(repr, LOW_TYPES))}"
        )
    if missing_op_mode not in (MISSING_ERROR, MISSING_WARN, MISSING_IGNORE):
        raise LoweringError(
            f"missing_op_mode is {missing_op_mode!r}: 0 raises an error, 1 warns, 2 is silent"
        )
    if sums not in (WIDE, low):
        raise LoweringError(f"products of {low} are summed in {WIDE} or {low}, not in {sums!r}")
    return _Converter(low, missing_op_mode, sums).run(function, keep_output_dtype)


class _Converter:
    def __init__(self, low: str, missing_op_mode: int, sums: str) -> None:
        self.low, self.sums = low, sums
        self.missing_op_mode = missing_op_mode
        self.done: dict[int, Expr] = {}
        self.casts: dict[tuple[int, str], Expr] = {}
        self.kept: list[Expr] = []  # new expressions: `casts` knows them by identity

    def run(self, function: Function, keep_output_dtype: bool) -> Function:
        for expr in post_order(function, into_functions=False):
            if expr is function:
                break
            fresh = self.visit(expr)
            self.done[id(expr)] = fresh
            self.kept.append(fresh)
        body = self.done[id(function.body)]
        if keep_output_dtype:
            body = self.restore(body, function.body.checked_type)
        if body is function.body:
            return function
        return Function(function.params, body, None, function.attrs)

    def visit(self, expr: Expr) -> Expr:
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            return self.call(expr)
        if isinstance(expr, Function):
            return expr
        if isinstance(expr, (Tuple, TupleGetItem)):
            return rebuild(expr, lambda child: self.done[id(child)])  # type: ignore[no-any-return]
        return rebuild(expr, self.as_it_was)  # type: ignore[no-any-return]

    def call(self, call: Call) -> Expr:
        name = call.op.name
        args = [self.done[id(a)] for a in call.args]
        if name == "cast":
            return self.explicit_cast(call, args[0])
        if (body := body_of(call)) is not None:  # its states keep their type from step to step
            converted = _Converter(self.low, self.missing_op_mode, self.sums).run(body, True)
            given = tuple(self.as_it_was(a) for a in call.args)
            return Call(call.op, given, call.attrs.replace(body=converted), call.span)
        floats = {t.dtype for a in args for t in leaves(a) if dtypes.is_float(t.dtype)}
        if floats and floats <= {WIDE, self.low}:
            if name in ALWAYS:
                return self.product(call, args)
            if name in FOLLOW and all(self.can_be_low(a) for a in args):
                return call.with_args(tuple(self.as_type(a, self.low) for a in args))
            if name not in FOLLOW | NEVER:
                self.report_missing(call)
        return rebuild(call, self.as_it_was)  # type: ignore[no-any-return]

    def product(self, call: Call, args: list[Expr]) -> Expr:
        """In the low type, with sums in `sums` where the operator has a choice."""
        if all(a.tensor_type.dtype == self.low for a in call.args):  # chosen by the model
            return rebuild(call, self.as_it_was)  # type: ignore[no-any-return]
        low = tuple(self.as_type(a, self.low) for a in args)
        attrs: Any = call.attrs
        if hasattr(attrs, "out_dtype"):
            attrs = attrs.replace(out_dtype=self.sums)
        made = Call(call.op, low, attrs, call.span)
        self.kept.append(made)
        return self.as_type(made, self.low)

    def explicit_cast(self, call: Call, value: Expr) -> Expr:
        attrs: Any = call.attrs
        if value.tensor_type.dtype == attrs.dtype or attrs.dtype == self.low:
            return self.as_type(value, attrs.dtype)
        return call.with_args((value,))

    def can_be_low(self, expr: Expr) -> bool:
        """Return whether a value has the low type, or a cast to it loses nothing computed."""
        if isinstance(expr, Tuple):
            return all(self.can_be_low(f) for f in expr.fields)
        if isinstance(expr, (Var, Constant)):
            return True
        return all(t.dtype == self.low for t in leaves(expr) if dtypes.is_float(t.dtype))

    def report_missing(self, call: Call) -> None:
        text = (
            f"ToMixedPrecision does not know whether {call.op.name} may be computed in "
            f"{self.low}; it keeps its type"
        )
        if self.missing_op_mode == MISSING_ERROR:
            raise LoweringError(f"{text} with missing_op_mode 1 or 2")
        if self.missing_op_mode == MISSING_WARN:
            warnings.warn(text, stacklevel=2)

    # -- types ---------------------------------------------------------------------------------

    def as_it_was(self, old: Expr) -> Expr:
        """Return the new value of `old` in the type that `old` had."""
        return self.restore(self.done[id(old)], old.checked_type)

    def restore(self, value: Expr, type_: Type) -> Expr:
        if value.checked_type == type_:
            return value
        if isinstance(type_, TupleType):
            fields = [self.restore(item(value, i), t) for i, t in enumerate(type_.fields)]
            return Tuple(tuple(fields))
        assert isinstance(type_, TensorType)
        return self.as_type(value, type_.dtype)

    def as_type(self, value: Expr, dtype: str) -> Expr:
        """Return a floating point value, or tuple of them, in `dtype`; others as they are."""
        if isinstance(value.checked_type, TupleType):
            count = len(value.checked_type.fields)
            fields = [self.as_type(item(value, i), dtype) for i in range(count)]
            return Tuple(tuple(fields))
        given = value.tensor_type.dtype
        if given == dtype or not dtypes.is_float(given):
            return value
        if is_call_of(value, "cast") and value.args[0].tensor_type.dtype == self.low == dtype:
            return value.args[0]
        key = id(value), dtype
        if key not in self.casts:
            make: Any = op_registry.make("cast")
            self.casts[key] = make(value, dtype)
            self.kept += [value, self.casts[key]]
        return self.casts[key]


def item(value: Expr, index: int) -> Expr:
    """Return one value of a tuple."""
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)


def leaves(expr: Expr) -> list[TensorType]:
    """Return the types of the tensors in a value."""
    return [t for t in flatten(expr.checked_type) if isinstance(t, TensorType)]
