"""The steps of a recurrent layer, written once: a loop, or the step itself where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slipway import relay
from slipway.relay.expr import Expr, Tuple, Var
from slipway.relay.types import TensorType
from slipway.transform.graph.loop_invariants import closed

# f(states, one step of each sequence) -> (new states, what the step gives)
Step = Callable[[list[Any], list[Any]], tuple[Sequence[Any], Sequence[Any]]]


def run_steps(
    step: Step, states: Sequence[Any], sequences: Sequence[Any], reverse: bool = False
) -> tuple[list[Any], list[Any]]:
    """Run `step` along the first axis of `sequences`; return the last states and the outputs.

    What one step gives is stacked along a new first axis.  `step` may use any other expression.
    """
    count = sequences[0].tensor_type.shape[0]
    if count == 1:
        final, given = step(list(states), [relay.squeeze(s, [0]) for s in sequences])
        return list(final), [relay.expand_dims(g, 0) for g in given]
    kept = [Var(f"state{i}", s.checked_type) for i, s in enumerate(states)]
    slices = [Var(f"step{i}", _one(s.tensor_type)) for i, s in enumerate(sequences)]
    final, given = step(list(kept), list(slices))
    result: Expr = Tuple((*final, *given))
    body, others = closed([*kept, *slices], result)
    made = relay.scan(body, states, sequences, others.fields, reverse)
    values = list(made)
    return values[: len(kept)], values[len(kept) :]


def _one(sequence: TensorType) -> TensorType:
    return TensorType(sequence.shape[1:], sequence.dtype)
