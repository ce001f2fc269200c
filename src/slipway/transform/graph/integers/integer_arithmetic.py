"""FakeQuantizationToInteger: what stands between dequantize and quantize runs on integers.

    quantize(relu(conv2d(dequantize(x), dequantize(w)) + dequantize(b)))
        ->  cast(clip(rescale(qnn.conv2d_nhwc(x, w) + b)))

Formats like ONNX store a quantised model as real operators between pairs of quantize and
dequantize.  This pass follows the integers through the graph (`affine_rules` says what operators
do to them), and where the result is quantised again it computes with integers alone: sums
exactly, then one rounding.  Convolutions run channels last.  A function of one tensor of bytes
becomes a table (`affine_table`).  What has no rule stays in real numbers; sums that meet it are
dequantised.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slipway.ir.visit import post_order_by
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import children, post_order, rebuild
from slipway.transform.graph.integers.affine import Affine, call_of, to_second
from slipway.transform.graph.integers.affine_rules import RULES
from slipway.transform.graph.integers.affine_table import table_of


def integer_arithmetic(function: Function) -> Function:
    """Return `function` with its quantised parts on integers; the same object if it has none."""
    exprs = post_order(function.body, into_functions=False)
    if not any(is_call_of(e, "qnn.dequantize") for e in exprs):
        return function
    body = _Rewrite().run(exprs)
    return Function(function.params, body, None, function.attrs)


class _Rewrite:
    def __init__(self) -> None:
        self.known: dict[int, Affine] = {}  # of rewritten real expressions, by id
        self.last: dict[int, Expr] = {}  # integers by id -> the same, channels last
        self.splits: dict[int, Expr] = {}  # of real numbers, by id -> of their integers
        self.keep: list[Expr] = []

    def run(self, exprs: list[Expr]) -> Expr:
        done: dict[int, Expr] = {}
        for expr in exprs:
            fresh = rebuild(expr, lambda child: done[id(child)])
            with op_registry.span(getattr(expr, "span", "")):
                result = self._one(fresh)
            self.keep += [fresh, result]
            done[id(expr)] = result
        return self._with_real_sums(done[id(exprs[-1])])

    def _one(self, expr: Expr) -> Expr:
        if isinstance(expr, TupleGetItem) and is_call_of(expr.tuple_value, "split"):
            self._part(expr)
            return expr
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return expr
        if is_call_of(expr, "qnn.dequantize"):
            self._dequantize(expr)
            return expr
        if is_call_of(expr, "qnn.quantize"):
            return self._quantize(expr) or expr
        apply = RULES.get(expr.op.name)
        if apply is not None and not any(isinstance(a, Tuple) for a in expr.args):
            found = apply(expr, [self.known.get(id(a)) for a in expr.args])
            if found is not None:
                self.known[id(expr)] = found
        return expr

    def _part(self, field: TupleGetItem) -> None:
        """Split the integers where real numbers are split; channels stay where they are."""
        call: Any = field.tuple_value
        source = self.known.get(id(call.args[0]))
        if source is None or not source.uniform or isinstance(source.value, Constant):
            return
        if id(call) not in self.splits:
            axis = source.axis_of(call.attrs.axis)
            attrs = call.attrs.replace(axis=axis)
            self.splits[id(call)] = Call(call.op, (source.value,), attrs, call.span)
        value = TupleGetItem(self.splits[id(call)], field.index)
        self.known[id(field)] = replace(source, value=value)

    def _dequantize(self, call: Call) -> None:
        data, scale, zero = call.args
        if call.attrs.out_dtype != "float32":
            return
        if not isinstance(scale, Constant) or not isinstance(zero, Constant):
            return
        axis = call.attrs.axis % max(data.tensor_type.rank, 1)
        found = Affine(data, scale.array.astype(np.float64), zero.array, axis)
        wide = self.last.get(id(data))
        self.known[id(call)] = found if wide is None else replace(found, value=wide, last=True)

    def _quantize(self, call: Call) -> Expr | None:
        data, scale, zero = call.args
        if not isinstance(scale, Constant) or not isinstance(zero, Constant):
            return None
        if scale.array.ndim or zero.array.ndim or call.attrs.out_dtype == "int32":
            return None
        target = (float(scale.array), int(zero.array))
        source: Affine | None = self.known.get(id(data))
        if source is not None:
            if not isinstance(source.value, Constant):
                return self._result(source.stored(*target, call.attrs.out_dtype), source.last)
        elif is_call_of(data, "concatenate"):
            return self._joined(call, target)
        found = table_of(call, self.known, *target)
        return None if found is None else self._result(found[1], found[0].last)

    def _joined(self, call: Call, target: tuple[float, int]) -> Expr | None:
        """Concatenate parts that are brought to the scale of the result."""
        joined: Any = call.args[0]
        if not isinstance(joined.args[0], Tuple):
            return None
        parts = [self.known.get(id(f)) for f in joined.args[0].fields]
        found = [p for p in parts if p is not None]
        if len(found) != len(parts):
            return None
        axis = joined.attrs.axis % found[0].rank
        last = any(p.last for p in found)
        if last:
            found = [p.channels_last() for p in found]
            axis = found[0].axis_of(axis)
        values = [p.stored(*target, call.attrs.out_dtype) for p in found]
        return self._result(call_of("concatenate", values, axis), last)

    def _result(self, value: Expr, last: bool) -> Expr:
        if not last:
            return value
        plain = to_second(value)
        self.last[id(plain)] = value
        self.keep.append(plain)
        return plain  # type: ignore[no-any-return]

    def _with_real_sums(self, root: Expr) -> Expr:
        """Turn sums that real operators or results read into real numbers themselves."""
        done: dict[int, Expr] = {}
        chosen: dict[int, Expr] = {}

        def below(expr: Expr) -> tuple[Expr, ...]:
            found = self.known.get(id(expr))
            chosen[id(expr)] = expr if found is None or not found.sums else found.real()
            return children(chosen[id(expr)])

        for expr in post_order_by([root], below):
            done[id(expr)] = rebuild(chosen[id(expr)], lambda child: done[id(child)])
        return done[id(root)]
