"""scan: a loop over the steps of sequences, with states that each step replaces.

    for t in range(steps):  states, outputs[t] = body(states, [s[t] for s in sequences], others)

A recurrent layer is one: its body is the graph of a single step, so that neither the size of the
code nor the time to compile it depends on the number of steps.  The whole loop becomes one kernel
(`backends/cpu/schedules/scan.py`), whose inside is the body's own kernels, each with the schedule
it would have in the graph.  `others` are values that all steps share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call, Expr, Function, Tuple, TupleWrapper, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import (
    Attrs,
    BadArgument,
    OpDefinition,
    OpPattern,
    as_expr,
    call_definition,
    register_op,
)
from slipway.relay.open_dims import usual_type
from slipway.relay.ops.unrolled import unrolled_steps
from slipway.relay.types import FuncType, TensorType, TupleType, Type
from slipway.relay.visit import post_order

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike


@node
class LoopAttrs(Attrs):
    """The body: a function of states, one step of each sequence, and others, in this order.

    It returns a tuple: the new states, then what the step gives.  `states` and `sequences` say how
    many there are.  `reverse` begins with the last step; an output stands where its step stands in
    the sequences.  `steps` counts where there is no sequence.
    """

    body: Any
    states: int = 1
    sequences: int = 1
    reverse: bool = False
    steps: int | None = None


SCAN = register_op(
    "scan", "states...", "sequences...", "others...", attrs=LoopAttrs, pattern=OpPattern.OPAQUE,
    doc="A loop over the steps of sequences: a body that turns states into new states and outputs.",
)  # fmt: skip


def steps_of(attrs: LoopAttrs, sequences: Type) -> int:
    """Return how often the body runs."""
    assert isinstance(sequences, TupleType)
    if not sequences.fields:
        if attrs.steps is None:
            raise BadArgument("sequences", "is empty: give the number of steps")
        return attrs.steps
    first = sequences.fields[0]
    assert isinstance(first, TensorType)
    return first.shape[0]


def _tensors(name: str, given: TupleType) -> list[TensorType]:
    found = [t for t in given.fields if isinstance(t, TensorType)]
    if len(found) != len(given.fields):
        raise BadArgument(name, f"must be a tuple of tensors, got {given}")
    return found


def _need_steps(attrs: LoopAttrs, sequences: Sequence[TensorType]) -> None:
    for number, sequence in enumerate(sequences):
        if not sequence.rank:
            raise BadArgument("sequences", f"has the scalar {sequence}: it has no steps")
        if sequence.shape[0] != sequences[0].shape[0]:
            raise BadArgument(
                "sequences",
                f"number {number} has {sequence.shape[0]} steps, the first {sequences[0].shape[0]}",
            )
    if sequences and attrs.steps not in (None, sequences[0].shape[0]):
        raise BadArgument("sequences", f"has {sequences[0].shape[0]} steps, not {attrs.steps}")
    if attrs.steps is not None and attrs.steps < 0:
        raise BadArgument("sequences", f"cannot have {attrs.steps} steps")


@SCAN.type_relation
def _relation(attrs: LoopAttrs, states: TupleType, sequences: TupleType, others: TupleType) -> Type:
    kept, run, shared = (
        _tensors(name, given)
        for name, given in (("states", states), ("sequences", sequences), ("others", others))
    )
    if (attrs.states, attrs.sequences) != (len(kept), len(run)):
        raise BadArgument(
            "states",
            f"and sequences are {len(kept)} and {len(run)} tensors, not {attrs.states} and "
            f"{attrs.sequences}",
        )
    _need_steps(attrs, run)
    body = attrs.body
    if not isinstance(body, Function) or not isinstance(body.type, FuncType):
        raise BadArgument("states", "has no body that is a function with typed parameters")
    slices = [TensorType(t.shape[1:], t.dtype) for t in run]
    given = (*kept, *slices, *shared)
    if body.type.arg_types != given:
        wanted, found = (", ".join(map(str, ts)) for ts in (body.type.arg_types, given))
        raise BadArgument("states", f"and the rest do not fit the body: it takes {wanted}: {found}")
    result = body.type.ret_type
    if not isinstance(result, TupleType) or result.fields[: len(kept)] != tuple(kept):
        wanted = ", ".join(map(str, kept))
        raise BadArgument(
            "states", f"({wanted}) must come first in what the body returns: {result}"
        )
    steps = steps_of(attrs, sequences)
    outputs = _tensors("outputs", TupleType(result.fields[len(kept) :]))
    return TupleType((*kept, *(TensorType((steps, *t.shape), t.dtype) for t in outputs)))


@SCAN.reference
def _reference(
    attrs: LoopAttrs,
    states: tuple[Array, ...],
    sequences: tuple[Array, ...],
    others: tuple[Array, ...],
) -> Any:
    body = attrs.body
    steps = len(sequences[0]) if len(sequences) else int(attrs.steps or 0)
    leaves = body.checked_type.ret_type.fields[len(states) :]
    outputs = [np.zeros((steps, *t.shape), t.dtype) for t in leaves]
    current = [np.asarray(state) for state in states]
    order = range(steps)
    for t in reversed(order) if attrs.reverse else order:
        given = interpret(body, *current, *(np.asarray(s[t]) for s in sequences), *others)
        current = list(given[: len(current)])
        for output, value in zip(outputs, given[len(current) :], strict=True):
            output[t] = value
    return (*current, *outputs)


@SCAN.compute
def _compute(attrs: LoopAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """Unroll the steps: the definition, for a backend that has no loop of its own."""
    return unrolled_steps(attrs, inputs, out_types)


def _count(name: str) -> Callable[..., float]:
    def count(attrs: LoopAttrs, in_types: Sequence[TupleType], out_type: Type) -> float:
        total = 0.0
        for expr in post_order(attrs.body):
            definition = call_definition(expr)
            if definition is not None and isinstance(expr, Call):
                types = [usual_type(a.checked_type) for a in expr.args]
                out_type = usual_type(expr.checked_type)
                total += getattr(definition, name)(expr.attrs, types, out_type)
        return total * steps_of(attrs, in_types[1])

    return count


SCAN.flops(_count("count_flops"))
SCAN.work(_count("count_work"))


def body_of(expr: Expr) -> Function | None:
    """Return the body of a call of scan; None for any other expression."""
    definition: OpDefinition | None = call_definition(expr)
    return expr.attrs.body if isinstance(expr, Call) and definition is SCAN else None


@SCAN.make
def scan(
    body: Function,
    states: ExprLike,
    sequences: ExprLike = (),
    others: ExprLike = (),
    reverse: bool = False,
    steps: int | None = None,
) -> TupleWrapper:
    """Run `body` once for each step of `sequences`; see `LoopAttrs`.

    Returns the last states, then one tensor (steps, ...) for each output of the body.
    """
    named = {"states": states, "sequences": sequences, "others": others}
    given = [_tuple(argument, values) for argument, values in named.items()]
    counts = len(given[0].fields), len(given[1].fields)
    call = SCAN(*given, attrs=LoopAttrs(body, *counts, bool(reverse), steps))
    result = call.checked_type
    assert isinstance(result, TupleType)
    return TupleWrapper(call, len(result.fields))


def _tuple(argument: str, values: Any) -> Tuple:
    if not isinstance(values, Tuple | tuple | list):
        raise BadArgument(argument, f"is {values!r}; write a list of tensors")
    fields = values.fields if isinstance(values, Tuple) else values
    return Tuple(tuple(as_expr(v) for v in fields))


def _sample_body() -> Function:
    """A step keeps what it reads, and gives what the step before has kept."""
    h, x, w = (Var(name, TensorType((2, 3))) for name in "hxw")
    return Function((h, x, w), Tuple((x, h, w)))


for attrs in (LoopAttrs(_sample_body()), LoopAttrs(_sample_body(), reverse=True)):
    SCAN.sample_case([(2, 3)], [(5, 2, 3)], [(2, 3)], attrs=attrs)
