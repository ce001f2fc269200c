"""Double buffering: fill one copy of a temporary while the other is read.

before::

    for i in range(n):
        allocate T: float32[8]  # {'double_buffer': True}
        T = load(i)
        use(T, i)

after::

    allocate T: float32[16]
    T[0:8] = load(0)
    for i in range(n):
        if i + 1 < n: T[(i + 1) % 2 * 8 : +8] = load(i + 1)
        use(T[i % 2 * 8 : +8], i)
"""

from __future__ import annotations

from typing import Any

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children, substitute, walk
from slipway.transform.context import PassContext


def inject_double_buffer(func: PrimFunc) -> PrimFunc:
    """Return `func` with the temporaries marked "double_buffer" doubled and filled ahead."""
    if not any(isinstance(n, S.Allocate) and _marked(n) for n in S.statements(func.body)):
        return func
    return func.replace(body=_visit(func.body))  # type: ignore[no-any-return]


def _marked(node: S.Allocate) -> bool:
    return any(key == "double_buffer" for key, _ in node.annotations)


def _visit(node: Any) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.For) and node.kind == S.ForKind.SERIAL:
        body = node.body
        if isinstance(body, S.Allocate) and _marked(body):
            return _pipelined(node, body)
    if isinstance(node, S.Allocate) and _marked(node):
        node = S.Allocate(node.buffer, node.body)  # not inside a loop: nothing to overlap
    return map_children(node, _visit)


def _pipelined(loop: S.For, allocate: S.Allocate) -> S.Stmt:
    buffer = allocate.buffer
    steps = allocate.body.stmts if isinstance(allocate.body, S.SeqStmt) else (allocate.body,)
    split = 0
    while split < len(steps) and _writes(steps[split], buffer):
        split += 1
    fill, use = S.seq(steps[:split]), S.seq(_visit(s) for s in steps[split:])
    size = buffer.shape[0]
    double = buffer.replace(shape=(ops.mul(size, 2),))
    here, after = loop.loop_var, ops.add(loop.loop_var, 1)
    last = ops.add(loop.min, loop.extent)
    first_copy = _moved(substitute(fill, {here: loop.min}), buffer, double, ops.const(0), loop)
    next_copy = _moved(substitute(fill, {here: after}), buffer, double, after, loop)
    reading = _moved(use, buffer, double, here, loop)
    ahead = S.IfThenElse(ops.less(after, last), next_copy)
    body = S.seq((ahead, reading))
    return S.Allocate(double, S.seq((first_copy, _split(loop.replace(body=body)))))


def _split(loop: S.For) -> S.Stmt:
    """Write "split_loop" steps of the loop out at a time, then the steps that are left."""
    options = PassContext.current().option("tir.InjectDoubleBuffer") or {}
    factor, extent = int(options.get("split_loop", 1)), ops.as_int(loop.extent)
    if factor < 2 or extent is None or extent < factor:
        return loop
    whole = extent // factor
    outer, inner = E.Var(f"{loop.loop_var.name}.outer"), E.Var(f"{loop.loop_var.name}.inner")
    step = ops.add(loop.min, ops.add(ops.mul(outer, factor), inner))
    body = substitute(loop.body, {loop.loop_var: step})
    zero = ops.const(0)
    several = S.For(inner, zero, ops.const(factor), S.ForKind.UNROLLED, body)
    main = S.For(outer, zero, ops.const(whole), loop.kind, several, None, loop.annotations)
    tail = loop.replace(
        min=ops.add(loop.min, whole * factor), extent=ops.const(extent - whole * factor)
    )
    return S.seq((main, tail)) if extent % factor else main


def _writes(stmt: S.Stmt, buffer: Buffer) -> bool:
    return any(isinstance(n, S.BufferStore) and n.buffer is buffer for n in walk(stmt))


def _moved(stmt: S.Stmt, buffer: Buffer, double: Buffer, step: Any, loop: S.For) -> S.Stmt:
    """Let `stmt` use the copy of `buffer` that belongs to step `step` of the loop."""
    size = buffer.shape[0]
    offset: Any = ops.const(0)
    if not (isinstance(step, E.IntImm) and step.value == 0):
        offset = ops.mul(ops.floormod(ops.sub(step, loop.min), 2), size)

    def visit(node: Any) -> Any:
        node = map_children(node, lambda c: visit(c) if isinstance(c, (S.Stmt, E.PrimExpr)) else c)
        if isinstance(node, (S.BufferStore, E.BufferLoad)) and node.buffer is buffer:
            return node.replace(buffer=double, indices=(ops.add(node.indices[0], offset),))
        return node

    return visit(stmt)  # type: ignore[no-any-return]
