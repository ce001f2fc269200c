"""From one fused relay function to a te schedule: evaluate the operators, pick the schedule.

The operator of the largest `OpPattern` in the function is its anchor: its implementation decides
the loops, and the operators around it are inlined into them or attached at their end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slipway import te
from slipway.backends.choices import forced_for
from slipway.backends.cpu.schedules.generic import schedule_injective
from slipway.backends.cpu.schedules.reduction import schedule_opaque
from slipway.backends.stages import inline_injective
from slipway.backends.strategy import Choice, Knobs, Problem, choose, choose_plain
from slipway.backends.ways import ways_of
from slipway.errors import LoweringError, TypeInferenceError
from slipway.ir import ops as ir_ops
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import OpPattern
from slipway.relay.open_dims import has_open
from slipway.relay.types import flatten
from slipway.relay.visit import post_order

if TYPE_CHECKING:
    from slipway.target import Target


@dataclass(frozen=True)
class ScheduledKernel:
    """A kernel ready to lower: the schedule, and its arguments (inputs, then outputs)."""

    schedule: te.Schedule
    args: tuple[te.Tensor, ...]
    anchor: str
    implementation: str
    choice: Choice | None = None


@dataclass(frozen=True)
class _Anchor:
    op: str
    pattern: OpPattern
    tensor: te.Tensor
    choice: Choice | None


def schedule_primitive(
    function: Function, target: Target, knobs: Knobs | None = None
) -> ScheduledKernel:
    """Return the schedule of a function made by FuseOps.

    `knobs` stand for those that the strategy of their kind would choose.

    Tuple parameters are taken apart into one tensor argument per field, in order; so is a tuple
    result.  With open dimensions a strategy that needs their sizes is passed over; without any
    that does not, loops stay as they are written.  Of an operator with two ways it is that of the
    second.  Raises LoweringError for what cannot stand in a fused function.
    """
    ways = ways_of(function)
    if ways is not None:
        function = ways.other
    if not has_open(function.checked_type):
        return _scheduled(function, target, (), knobs)
    passed_over: set[str] = set()
    while True:
        try:
            return _scheduled(function, target, passed_over, knobs)
        except _NeedsSize as found:
            if found.strategy in passed_over:
                raise LoweringError(str(found)) from found
            passed_over.add(found.strategy)


class _NeedsSize(Exception):
    """A strategy, by name, needs the size of an open dimension; "" for the plain loops."""

    def __init__(self, strategy: str, reason: str) -> None:
        super().__init__(reason)
        self.strategy = strategy


def _scheduled(
    function: Function,
    target: Target,
    passed_over: Collection[str] = (),
    knobs: Knobs | None = None,
) -> ScheduledKernel:
    values: dict[int, list[te.Tensor]] = {}
    inputs: list[te.Tensor] = []
    for param in function.params:
        fields = [
            te.placeholder(t.shape, dtype=t.dtype, name=f"p{len(inputs) + i}")
            for i, t in enumerate(flatten(param.checked_type))
        ]
        values[id(param)] = fields
        inputs += fields
    anchor: _Anchor | None = None
    for expr in post_order(function.body, into_functions=False):
        match expr:
            case Var() | Op():
                pass
            case Constant():
                values[id(expr)] = [_immediate(expr)]
            case Tuple():
                values[id(expr)] = [t for f in expr.fields for t in values[id(f)]]
            case TupleGetItem():
                values[id(expr)] = [values[id(expr.tuple_value)][expr.index]]
            case Call():
                found = _evaluate(expr, values, target, passed_over, knobs)
                if anchor is None or found.pattern >= anchor.pattern:
                    anchor = found
            case _:
                raise LoweringError(f"a fused function cannot hold a {type(expr).__name__}")
    outputs = [_own_output(t, inputs) for t in values[id(function.body)]]
    if anchor is None:
        copied = Problem("copy", None, (), [function.body.checked_type], target)
        anchor = _Anchor("copy", OpPattern.INJECTIVE, outputs[0], choose_plain(copied))
    choice = anchor.choice
    name = choice.strategy.name if choice is not None else anchor.pattern.name.lower()
    try:
        schedule = _schedule(anchor, outputs, target, bool(passed_over))
    except TypeInferenceError as error:
        raise _NeedsSize(name, str(error)) from error
    return ScheduledKernel(schedule, (*inputs, *outputs), anchor.op, name, choice)


def _evaluate(
    call: Call,
    values: dict[int, list[te.Tensor]],
    target: Target,
    passed_over: Collection[str] = (),
    knobs: Knobs | None = None,
) -> _Anchor:
    if not isinstance(call.op, Op):
        raise LoweringError("a fused function cannot call another function")
    definition = op_registry.get(call.op.name)
    in_types = [argument.checked_type for argument in call.args]
    tensors = [t for argument in call.args for t in values[id(argument)]]
    out_types = flatten(call.checked_type)
    computed = tuple(not isinstance(t.op, te.PlaceholderOp) for t in tensors)
    problem = Problem(call.op.name, call.attrs, in_types, out_types, target, computed)
    chosen = choose(problem, forced_for(problem), passed_over)
    if chosen is not None and knobs is not None and type(chosen.knobs) is type(knobs):
        chosen = replace(chosen, knobs=knobs)
    try:
        found = chosen.compute(tensors) if chosen is not None else None
    except TypeInferenceError as error:
        assert chosen is not None
        raise _NeedsSize(chosen.strategy.name, str(error)) from error
    if found is None:
        assert definition.compute_function is not None
        try:
            found = list(definition.compute_function(call.attrs, tensors, out_types))
        except TypeInferenceError as error:
            if not problem.is_open:
                raise
            given = ", ".join(map(str, in_types))
            raise LoweringError(
                f"{call.op.name} is computed for sizes that are known when it is compiled, and it "
                f"is given {given}: fix its open dimensions, as with relay.transform.FixShapes"
            ) from error
    results = found
    values[id(call)] = results
    return _Anchor(call.op.name, definition.pattern, results[0], chosen)


def _immediate(expr: Constant) -> te.Tensor:
    """A one-element constant inside a kernel; larger ones are parameters of the function."""
    if expr.array.size != 1:
        raise LoweringError(
            f"a constant of shape {expr.array.shape} stands inside a fused function; it must be a "
            "parameter of it"
        )
    value = ir_ops.const(expr.array.reshape(()).item(), expr.array.dtype.name)
    made: te.Tensor = te.compute(
        expr.array.shape, lambda *_: value, name="constant", tag="broadcast"
    )
    return made


def _own_output(tensor: te.Tensor, inputs: Sequence[te.Tensor]) -> te.Tensor:
    """An output has memory of its own: an input returned as it is gets copied."""
    if any(tensor is known for known in inputs):
        copy: te.Tensor = te.compute(
            tensor.shape, lambda *i: tensor(*i), name="copy", tag="injective"
        )
        return copy
    return tensor


def _schedule(
    anchor: _Anchor, outputs: list[te.Tensor], target: Target, plain: bool = False
) -> te.Schedule:
    if anchor.choice is not None:
        return anchor.choice.schedule(outputs, anchor.tensor)
    if plain:
        schedule = te.create_schedule([t.op for t in outputs])
        inline_injective(schedule, outputs)
        return schedule
    if anchor.pattern <= OpPattern.INJECTIVE:
        return schedule_injective(target, outputs)
    return schedule_opaque(target, outputs)
