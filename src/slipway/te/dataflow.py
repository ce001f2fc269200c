"""Primitives that change the graph of a schedule: cache_read, cache_write, rfactor.

An operation is immutable, so a consumer that must read another tensor is replaced by a copy with
the same axes.  The stage stays the same object; `Schedule.stage_map` finds it under every
operation it has had, so the user's handles keep working.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.arguments import integer_of, items_of
from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import Atom, Linear
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir.expr import (
    Call,
    CommReducer,
    IterVar,
    Max,
    Min,
    PrimExpr,
    ProducerLoad,
    Range,
    Reduce,
    Select,
    Var,
)
from slipway.te.declare import compute
from slipway.te.loop_nest import LoopNest
from slipway.te.operation import ComputeOp, ExternOp, Operation, ScanOp
from slipway.te.relayout import Relayout
from slipway.te.rewrite import replace_nodes, rewrite
from slipway.te.stage import Stage
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.ir.node import Node
    from slipway.te.schedule import Schedule


def replace_inputs(op: Operation, mapping: dict[Tensor, Tensor]) -> Operation:
    """Return `op` reading other tensors; the same object when it reads none of them."""
    if not any(t in mapping for t in op.input_tensors):
        return op
    if isinstance(op, ComputeOp):

        def rule(node: Node) -> Any:
            if isinstance(node, ProducerLoad) and node.producer in mapping:
                return ProducerLoad(mapping[node.producer], node.indices)
            return None

        return op.replace(body=tuple(rewrite(b, rule) for b in op.body))  # type: ignore[no-any-return]
    if isinstance(op, ExternOp):
        return op.replace(inputs=tuple(mapping.get(t, t) for t in op.inputs))  # type: ignore[no-any-return]
    if isinstance(op, ScanOp):
        changed = {
            name: tuple(mapping.get(t, t) for t in getattr(op, name)) for name in ("init", "update")
        }
        return op.replace(**changed)  # type: ignore[no-any-return]
    return op


def _replace_dataflow(sch: Schedule, mapping: dict[Tensor, Tensor]) -> None:
    """Let every stage read the new tensors, and the copies that this makes in turn."""
    for stage in sch.stages:
        fresh = replace_inputs(stage.op, mapping)
        if fresh is not stage.op:
            _exchange(sch, stage, fresh, mapping)


def _exchange(sch: Schedule, stage: Stage, fresh: Operation, mapping: dict[Tensor, Tensor]) -> None:
    for old, new in zip(stage.op.outputs, fresh.outputs, strict=True):
        mapping[old] = new
    sch.outputs = [fresh if op is stage.op else op for op in sch.outputs]
    stage.op = fresh
    sch.stage_map[fresh] = stage


def cache_read(
    sch: Schedule,
    tensor: Tensor,
    scope: str,
    readers: Tensor | Operation | Sequence[Tensor | Operation],
) -> Tensor:
    """See `Schedule.cache_read`."""
    stage = sch[tensor]
    source = stage.op.output(tensor.value_index)
    items = (
        [readers]
        if isinstance(readers, (Tensor, Operation))
        else items_of(readers, f"cache_read of {tensor.name!r}: readers", "[C]")
    )
    if not items:
        raise ScheduleError(f"cache_read of {tensor.name!r} needs at least one reader, got none")
    reading = [sch[r] for r in items]
    for reader in reading:
        if source not in reader.op.input_tensors:
            users = [s.name for s in sch.stages if source in s.op.input_tensors]
            raise ScheduleError(
                f"cannot cache {tensor.name!r} for stage {reader.name!r}: it does not read that "
                f"tensor. Its readers are: {', '.join(users) or 'none'}"
            )
    names = [f"ax{d}" for d in range(source.ndim)]
    name = _fresh_name(sch, source.name, scope)
    cache = compute(source.shape, lambda *i: source(*i), name, varargs_names=names)
    mapping: dict[Tensor, Tensor] = {}
    for reader in reading:
        fresh = replace_inputs(reader.op, {source: cache})
        _exchange(sch, reader, fresh, mapping)
    _replace_dataflow(sch, mapping)
    added = sch.add_stage(cache.op, sch.stages.index(stage) + 1, stage)
    added.scope = scope
    # A copy for stages that run inside a scan's loop runs there too.
    sch.log(
        None,
        "cache_read",
        (sch.tensor_key(tensor), scope, [["stage", r.number] for r in reading]),
    )
    return cache  # type: ignore[no-any-return]


def _fresh_name(sch: Schedule, name: str, scope: str) -> str:
    """Return what a copy is called: "A.shared", and "A.d.shared" where there is one already."""
    taken = {stage.op.name for stage in sch.stages}
    while f"{name}.{scope}" in taken:
        name += ".d"
    return f"{name}.{scope}"


def cache_write(sch: Schedule, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
    """See `Schedule.cache_write`."""
    many = isinstance(tensor, Sequence)
    tensors = list(tensor) if isinstance(tensor, Sequence) else [tensor]
    if not tensors:
        raise ScheduleError("cache_write got no tensor; pass the one that it shall write")
    stage = sch[tensors[0]]
    op = stage.op
    if not isinstance(op, ComputeOp):
        raise ScheduleError(
            f"cannot cache_write stage {stage.name!r}: it is a {type(op).__name__}; only a "
            "compute can be redirected. Use cache_read on it for its consumers"
        )
    if len(tensors) != op.num_outputs or any(sch[t] is not stage for t in tensors):
        raise ScheduleError(
            f"cannot cache_write stage {stage.name!r}: it computes {op.num_outputs} tensors "
            "together; pass all of them in one list"
        )
    axes = tuple(IterVar(a.dom, Var(a.name + ".c", a.dtype), a.kind, a.thread_tag) for a in op.axis)
    inside: dict[Any, Any] = dict(zip((a.var for a in op.axis), (a.var for a in axes), strict=True))
    here: tuple[PrimExpr, ...] = tuple(a.var for a in op.axis)
    if stage.relations:
        layout = Relayout(stage)
        axes, inside, here = layout.axes, layout.inside, layout.positions
    body = tuple(replace_nodes(b, inside) for b in op.body)
    intrinsic = None if stage.relations else op.intrinsic
    cache_op = ComputeOp(f"{op.name}.{scope}", axes, body, op.tag, op.attrs, intrinsic)
    copies = tuple(ProducerLoad(cache_op.output(i), here) for i in range(op.num_outputs))
    fresh = ComputeOp(op.name, op.axis, copies, op.tag, op.attrs)
    position = sch.stages.index(stage)
    attrs = stage.iter_var_attrs
    replaced: dict[Tensor, Tensor] = {}
    _exchange(sch, stage, fresh, replaced)
    stage.set_op(fresh)
    stage.iter_var_attrs.update({
        a: m for a, m in attrs.items()
        if a in fresh.axis and (op.intrinsic is None or m.tensor_intrin is not op.intrinsic)
    })  # fmt: skip
    _replace_dataflow(sch, replaced)
    added = sch.add_stage(cache_op, position, stage)
    added.scope = scope
    sch.log(None, "cache_write", ([sch.tensor_key(t) for t in tensors], scope, many))
    return list(cache_op.outputs) if many else cache_op.output(0)


def rfactor(sch: Schedule, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
    """See `Schedule.rfactor`."""
    stage = sch[tensor]
    op = stage.op
    stage._leaf(axis, "rfactor")
    if axis.kind != "reduce" or not isinstance(op, ComputeOp):
        raise ScheduleError(
            f"cannot rfactor axis {axis.name!r} of stage {stage.name!r}: it is not a reduction "
            f"axis. Its reduction loops are: "
            f"{', '.join(a.name for a in stage.leaf_iter_vars if a.kind == 'reduce') or 'none'}"
        )
    ndim = len(op.axis)
    factor_axis = integer_of(factor_axis, f"rfactor of stage {stage.name!r}: factor_axis")
    at = factor_axis if factor_axis >= 0 else ndim + 1 + factor_axis
    if not 0 <= at <= ndim:
        raise ScheduleError(
            f"rfactor of stage {stage.name!r}: factor_axis {factor_axis} is outside "
            f"[{-ndim - 1}, {ndim}]"
        )
    number = len(stage.axes_ever)
    factored, partial_axis = _factored_op(stage, op, axis, at)
    fresh = _reducing_op(op, factored, partial_axis, at)
    position = sch.stages.index(stage)
    sch.log(stage, "rfactor", (sch.tensor_key(tensor), axis, factor_axis))
    replaced: dict[Tensor, Tensor] = {}
    _exchange(sch, stage, fresh, replaced)
    stage.set_op(fresh)
    _replace_dataflow(sch, replaced)
    sch.add_stage(factored, position, stage)
    assert len(stage.axes_ever) > number
    return factored.output(0) if factored.num_outputs == 1 else list(factored.outputs)


def _factored_op(
    stage: Stage, op: ComputeOp, axis: IterVar, position: int
) -> tuple[ComputeOp, IterVar]:
    """The operation of partial results, and the data axis that stands for `axis`."""
    an = Analyzer()
    nest = LoopNest(an, stage)
    zero = {a: (an.linear(_dom(a).min), an.linear(_dom(a).extent)) for a in op.root_iter_vars}
    nest.build(zero)
    reduced = {loop.axis: loop for loop in nest.loops if loop.reduces}
    size = reduced[axis].extent
    data = [IterVar(a.dom, Var(a.name, a.dtype), "data") for a in op.axis]
    extent = an.to_expr(size)
    partial = IterVar(Range.of(extent), Var(axis.name, reduced[axis].var.dtype), "data")
    # Loop variables of the stage become the factored operation's own axes.
    values: dict[Atom, Linear] = {}
    reduce_axes: list[IterVar] = []
    for loop_axis, loop in reduced.items():
        if loop_axis is axis:
            target = partial
        else:
            target = IterVar(
                Range.of(an.to_expr(loop.extent)), Var(loop_axis.name, loop.var.dtype), "reduce"
            )
            reduce_axes.append(target)
        if loop.atom is not None:
            values[loop.atom] = Linear({an.var_atom(target.var): 1}, 0, target.dtype)
    mapping: dict[Any, PrimExpr] = {a.var: new.var for a, new in zip(op.axis, data, strict=True)}
    for a in op.reduce_axis:
        mapping[a.var] = an.to_expr(an.substitute(nest.values[an.var_atom(a.var)], values))
    first: Reduce = op.body[0]  # type: ignore[assignment]
    condition = replace_nodes(first.condition, mapping)
    data_atoms = {loop.atom for loop in nest.loops if not loop.reduces}
    for value, limit in nest.guards:
        if not any(a.variables & data_atoms for a in value.terms):
            at = an.to_expr(an.substitute(value, values))
            condition = ops.logical_and(condition, ops.less(at, an.to_expr(limit)))
    sources = tuple(replace_nodes(s, mapping) for s in first.source)
    if not _is_idempotent(first.combiner):
        for value, limit in nest.repeats:
            is_new = ops.less(an.to_expr(an.substitute(value, values)), an.to_expr(limit))
            new = Call("bool", "likely", (is_new,))
            sources = tuple(
                Select(new, s, identity)
                for s, identity in zip(sources, first.combiner.identity, strict=True)
            )
    axes = (*data[:position], partial, *data[position:])
    body: tuple[PrimExpr, ...]
    if reduce_axes:
        body = tuple(
            Reduce(first.combiner, sources, tuple(reduce_axes), condition, b.value_index)  # type: ignore[attr-defined]
            for b in op.body
        )
    else:
        body = tuple(
            ops.if_then_else(
                condition,
                sources[b.value_index],  # type: ignore[attr-defined]
                first.combiner.identity[b.value_index],  # type: ignore[attr-defined]
            )
            for b in op.body
        )
    return ComputeOp(op.name + ".rf", axes, body, op.tag, op.attrs), partial


def _is_idempotent(combiner: CommReducer) -> bool:
    """Return whether a value may be combined twice: a maximum or a minimum."""
    return all(isinstance(result, Max | Min) for result in combiner.result)


def _reducing_op(op: ComputeOp, factored: ComputeOp, partial: IterVar, position: int) -> ComputeOp:
    """The original operation, as a reduction of the partial results."""
    axis = IterVar(partial.dom, Var(partial.name + ".v", partial.dtype), "reduce")
    here = [a.var for a in op.axis]
    indices = (*here[:position], axis.var, *here[position:])
    first: Reduce = op.body[0]  # type: ignore[assignment]
    sources = tuple(ProducerLoad(t, indices) for t in factored.outputs)
    body = tuple(
        Reduce(first.combiner, sources, (axis,), ops.TRUE, b.value_index, first.init)  # type: ignore[attr-defined]
        for b in op.body
    )
    return ComputeOp(op.name, op.axis, body, op.tag, op.attrs)


def _dom(axis: IterVar) -> Range:
    assert axis.dom is not None
    return axis.dom
