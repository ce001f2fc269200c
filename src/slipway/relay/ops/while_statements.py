"""The iterations of a while_loop as statements around its operators' own computes: what it means.

states = initial states
going = condition(states)
while going:  new = body(states); states = new; going = condition(states)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.visit import substitute
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.ops.unrolled import evaluated
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

if TYPE_CHECKING:
    from slipway.relay.expr import Function


def while_statements(
    attrs: Any, inputs: Sequence[Any], out_types: Sequence[TensorType]
) -> list[Any]:
    """Return the last states of a while_loop.  Raises LoweringError for sizes told inside."""
    if attrs.iteration is not None or any(is_call_of(e, "sized") for e in post_order(attrs.body)):
        raise LoweringError(
            "a loop in which a size changes is compiled for processors: build it for one, or for "
            "one beside the other device"
        )

    def statements(ins: Sequence[Buffer], states: Sequence[Buffer]) -> S.Stmt:
        given = (*states, *ins[len(states) :])
        going = decl_buffer((), "bool", "going")
        new = [decl_buffer(t.shape, t.dtype, "new") for t in out_types]
        asking = _computed(attrs.condition, given, [going])
        iteration = S.seq((_computed(attrs.body, given, new), _copied(new, states), asking))
        again = S.While(E.BufferLoad(going, ()), iteration)
        stmt = S.seq((_copied(ins[: len(states)], states), asking, again))
        for buffer in (*new, going):
            stmt = S.Allocate(buffer, stmt)
        return stmt

    kinds = [t.dtype for t in out_types]
    made = te().extern([t.shape for t in out_types], inputs, statements, "while_loop", kinds)
    return list(made) if isinstance(made, list) else [made]


def _computed(function: Function, given: Sequence[Buffer], results: Sequence[Buffer]) -> S.Stmt:
    """Return the loops of a function from buffers to others."""
    inputs = [te().placeholder(b.shape, dtype=b.dtype, name="given") for b in given]
    found = evaluated(function, inputs)
    outputs = [te().compute(t.shape, lambda *i, t=t: t(*i), name="result") for t in found]
    schedule = te().create_schedule([t.op for t in outputs])
    loops = te().lower(schedule, [*inputs, *outputs])
    mapping: dict[Any, Any] = {}
    for (_, old), new in zip(loops.buffer_map, (*given, *results), strict=True):
        mapping[old], mapping[old.data] = new, new.data
    return substitute(loops.body, mapping)  # type: ignore[no-any-return]


def _copied(sources: Sequence[Buffer], targets: Sequence[Buffer]) -> S.Stmt:
    return S.seq([_copy(a, b) for a, b in zip(sources, targets, strict=True)])


def _copy(source: Buffer, target: Buffer) -> S.Stmt:
    indices = tuple(E.Var(f"i{axis}", "int32") for axis in range(len(target.shape)))
    stmt: S.Stmt = S.BufferStore(target, E.BufferLoad(source, indices), indices)
    for index, extent in reversed(list(zip(indices, target.shape, strict=True))):
        stmt = S.For(index, ops.const(0, "int32"), extent, S.ForKind.SERIAL, stmt)
    return stmt
