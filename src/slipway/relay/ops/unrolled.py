"""The steps of a scan one after another, as formulas: what the operator means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import LoweringError
from slipway.relay import op_registry
from slipway.relay.dims import is_open, size_of
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.te.tensor import Tensor

MAX_STEPS = 64


def unrolled_steps(attrs: Any, inputs: Sequence[Any], out_types: Sequence[TensorType]) -> list[Any]:
    """Return the last states and the stacked outputs of a scan.

    Raises LoweringError for more steps than formulas should be made of.
    """
    count, run = attrs.states, attrs.sequences
    states = list(inputs[:count])
    sequences, others = inputs[count : count + run], inputs[count + run :]
    steps = size_of(sequences[0].shape[0]) if sequences else int(attrs.steps or 0)
    if is_open(steps):
        raise LoweringError(
            f"a scan of {steps} steps needs a loop, which this target's backend has no strategy "
            "for; fix the size"
        )
    if steps > MAX_STEPS:
        raise LoweringError(
            f"a scan of {steps} steps needs a loop, which this target's backend has no strategy "
            f"for; without one at most {MAX_STEPS} steps are unrolled"
        )
    rows: list[list[Any]] = [[] for _ in out_types[count:]]
    order = range(steps)
    for t in reversed(order) if attrs.reverse else order:
        given = [*states, *(_row(s, t) for s in sequences), *others]
        results = evaluated(attrs.body, given)
        states = results[:count]
        for row, value in zip(rows, results[count:], strict=True):
            row.append(value)
    stacked = (row[::-1] if attrs.reverse else row for row in rows)
    outputs = [_stack(row, t) for row, t in zip(stacked, out_types[count:], strict=True)]
    return [*(_copy(state) for state in states), *outputs]


def _row(sequence: Any, step: int) -> Any:
    return te().compute(
        sequence.shape[1:], lambda *i: sequence(step, *i), name="row", tag="injective"
    )


def _copy(tensor: Tensor) -> Any:
    return te().compute(tensor.shape, lambda *i: tensor(*i), name="state", tag="injective")


def _stack(rows: Sequence[Any], out: TensorType) -> Any:
    def element(t: PrimExpr, *i: PrimExpr) -> Any:
        value = te().const(0, out.dtype)
        for number, row in enumerate(rows):
            value = te().Select(t == number, row(*i), value)
        return value

    return te().compute(out.shape, element, name="stacked", tag="injective")


def evaluated(function: Function, given: Sequence[Any]) -> list[Any]:
    """Return the results of a function on te tensors, by its operators' own computes."""
    values: dict[int, list[Any]] = {}
    left = list(given)
    for param in function.params:
        size = len(flatten(param.checked_type))
        values[id(param)], left = left[:size], left[size:]
    for expr in post_order(function.body, into_functions=False):
        if id(expr) not in values and not isinstance(expr, (Op, Function)):
            values[id(expr)] = _value(expr, values)
    return values[id(function.body)]


def _value(expr: Expr, values: dict[int, list[Any]]) -> list[Any]:
    match expr:
        case Constant() if expr.array.size == 1:
            number = te().const(expr.array.reshape(()).item(), expr.array.dtype.name)
            return [te().compute(expr.array.shape, lambda *_: number, name="constant")]
        case Tuple():
            return [t for field in expr.fields for t in values[id(field)]]
        case TupleGetItem():
            return [values[id(expr.tuple_value)][expr.index]]
        case Call():
            arguments = [t for argument in expr.args for t in values[id(argument)]]
            if isinstance(expr.op, Function):
                return evaluated(expr.op, arguments)
            compute = op_registry.get(expr.op.name).compute_function
            assert compute is not None
            return list(compute(expr.attrs, arguments, flatten(expr.checked_type)))
        case Var():
            raise LoweringError(
                f"the body of a loop or branch reads {expr.name}, which is none of its own"
            )
    raise LoweringError(f"a loop's or branch's body cannot hold a {type(expr).__name__}")
