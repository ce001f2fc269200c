"""A tensor expression as loops around blocks: what a `tir.Schedule` starts from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import BufferLoad, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from slipway.ir.function import PrimFunc
from slipway.ir.visit import substitute
from slipway.te.operation import ComputeOp, ExternOp, Operation, PlaceholderOp
from slipway.te.rewrite import rewrite
from slipway.te.schedule import topological_order
from slipway.te.tensor import Tensor
from slipway.transform.loop.lower_blocks import ATTRIBUTE


def create_prim_func(args: Iterable[Any]) -> PrimFunc:
    """Return the computed tensors among `args` as a function of blocks, one for each operation.

    Operations that are not among `args` get memory of the function's own.  Raises ScheduleError
    where nothing is computed, an input is missing, or for a scan.
    """
    given = list(args)
    tensors = [arg for arg in given if isinstance(arg, Tensor)]
    outputs = [t.op for t in tensors if not isinstance(t.op, PlaceholderOp)]
    if not outputs:
        raise ScheduleError("create_prim_func needs at least one computed tensor among its args")
    buffers = {t: decl_buffer(t.shape, t.dtype, t.name) for t in tensors}
    params: list[Var] = []
    buffer_map: list[tuple[Var, Buffer]] = []
    for arg in given:
        if isinstance(arg, Tensor):
            handle = Var(buffers[arg].name, "handle")
            buffer_map.append((handle, buffers[arg]))
            params.append(handle)
        else:
            params.append(arg.var if isinstance(arg, IterVar) else arg)
    own: list[Buffer] = []
    parts: list[S.Stmt] = []
    names: set[str] = set()
    for op in topological_order(list(dict.fromkeys(outputs))):
        if isinstance(op, PlaceholderOp):
            if op.output(0) not in buffers:
                raise ScheduleError(
                    f"input {op.name!r} is read, but it is not among the arguments. Pass it: "
                    "create_prim_func([..., A, ...])"
                )
            continue
        for tensor in op.outputs:
            if tensor not in buffers:
                buffers[tensor] = decl_buffer(tensor.shape, tensor.dtype, tensor.name)
                own.append(buffers[tensor])
        parts.append(_block_of(op, buffers, _fresh(op.name, names)))
    body = S.seq(parts)
    for buffer in reversed(own):
        body = S.Allocate(buffer, body)
    attrs = (("global_symbol", "main"), ("noalias", True), (ATTRIBUTE, True))
    return PrimFunc(tuple(params), body, tuple(buffer_map), attrs)


def _fresh(name: str, taken: set[str]) -> str:
    number, made = 0, name
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    taken.add(made)
    return made


def _block_of(op: Operation, buffers: dict[Tensor, Buffer], name: str) -> S.Stmt:
    if isinstance(op, ExternOp):
        mapping: dict[Any, Any] = {}
        for tensor, stand in (
            *zip(op.inputs, op.input_placeholders, strict=True),
            *zip(op.outputs, op.output_placeholders, strict=True),
        ):
            mapping[stand], mapping[stand.data] = buffers[tensor], buffers[tensor].data
        return S.Block(name, (), (), ops.TRUE, substitute(op.body, mapping))
    if not isinstance(op, ComputeOp):
        raise ScheduleError(f"create_prim_func cannot make blocks of {op.name!r}: it is a scan")

    def loaded(node: Any) -> Any:
        if isinstance(node, ProducerLoad):
            return BufferLoad(buffers[node.producer], node.indices)
        return None

    axes, values = [], {}
    for axis in (*op.axis, *op.reduce_axis):
        assert axis.dom is not None
        own = IterVar(axis.dom, Var(f"v_{axis.name}", axis.dtype), axis.kind)
        axes.append(own)
        values[axis.var] = own.var
    own_of = dict(zip((*op.axis, *op.reduce_axis), axes, strict=True))
    indices = tuple(own_of[a].var for a in op.axis)
    targets = [buffers[t] for t in op.outputs]
    init: S.Stmt | None = None
    if op.reduce_axis:
        first = op.body[0]
        assert isinstance(first, Reduce)
        sources = [substitute(rewrite(s, loaded), values) for s in first.source]
        body = _update(first, targets, indices, sources, values, loaded)
        start = first.init or first.combiner.identity
        init = S.seq(
            S.BufferStore(t, substitute(rewrite(v, loaded), values), indices)
            for t, v in zip(targets, start, strict=True)
        )
    else:
        body = S.seq(
            S.BufferStore(t, substitute(rewrite(v, loaded), values), indices)
            for t, v in zip(targets, op.body, strict=True)
        )
    loops = [Var(axis.name, axis.dtype) for axis in (*op.axis, *op.reduce_axis)]
    bindings = tuple(_from(axis.dom, loop) for axis, loop in zip(axes, loops, strict=True))
    nest: S.Stmt = S.Block(name, tuple(axes), bindings, ops.TRUE, body, init)
    for axis, loop in zip(reversed(axes), reversed(loops), strict=True):
        nest = S.For(loop, ops.const(0, loop.dtype), axis.extent, S.ForKind.SERIAL, nest)
    return nest


def _from(dom: Range | None, loop: Var) -> PrimExpr:
    assert dom is not None
    return ops.add(loop, dom.min)


def _update(
    reduce: Reduce,
    targets: list[Buffer],
    indices: tuple[PrimExpr, ...],
    sources: list[PrimExpr],
    values: dict[Any, Any],
    loaded: Any,
) -> S.Stmt:
    """Return the statement that takes one step of a reduction."""
    combiner = reduce.combiner
    mapping: dict[Any, Any] = dict(zip(combiner.rhs, sources, strict=True))
    mapping.update(
        (lhs, BufferLoad(t, indices)) for lhs, t in zip(combiner.lhs, targets, strict=True)
    )
    results = [substitute(r, mapping) for r in combiner.result]
    if len(results) == 1:
        body: S.Stmt = S.BufferStore(targets[0], results[0], indices)
    else:  # all results are made of what was there before any of them
        held = [Var(f"{t.name}_next", r.dtype) for t, r in zip(targets, results, strict=True)]
        body = S.seq(S.BufferStore(t, v, indices) for t, v in zip(targets, held, strict=True))
        for var, result in zip(reversed(held), reversed(results), strict=True):
            body = S.LetStmt(var, result, body)
    condition = substitute(rewrite(reduce.condition, loaded), values)
    return body if ops.as_int(condition) else S.IfThenElse(condition, body)
