"""Memory inside of loops has the elements that are used there, and no others.

before: ``for i in range(8): allocate B[64]: for j in range(8): B[i * 8 + j] = ...``
after:  ``for i in range(8): allocate B[8]: for j in range(8): B[j] = ...``

What each thread has for itself is made inside of the loops over threads that it is used in.
Of memory that the threads of a block share, all that they use counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import Interval, interval_of, union
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.visit import children, map_children, rewrite_bottom_up, walk

Region = list[tuple[E.PrimExpr, int]]  # by dimension: the first element, and how many there are


SCOPES = ("global", "shared", "local")


def compact_buffers(stmt: S.Stmt) -> S.Stmt:
    """Return statements whose allocations inside of loops are as large as what is used there."""
    made: S.Stmt = _visited(stmt, ())
    return made


def is_in_block(loop: S.For) -> bool:
    """Return whether the steps of a loop are threads of one block."""
    return loop.thread is not None and not loop.thread.thread_tag.startswith("blockIdx")


def _visited(node: Any, above: tuple[S.For, ...]) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.Allocate) and (inside := _inside_threads(node)) is not None:
        return _visited(inside, above)
    if isinstance(node, S.For):
        above = (*above, node)
    made = map_children(node, lambda child: _visited(child, above))
    return _compacted(made, above) if isinstance(made, S.Allocate) and above else made


def _inside_threads(node: S.Allocate) -> S.Stmt | None:
    """Return an allocation inside of the loops over threads that have its memory each, or None."""
    body, scope = node.body, node.buffer.scope.partition(".")[0]
    if isinstance(body, S.For) and body.thread is not None:
        if scope != "local" and not (scope == "shared" and not is_in_block(body)):
            return None
        inner = node.replace(body=body.body)
        return body.replace(body=_inside_threads(inner) or inner)  # type: ignore[no-any-return]
    if isinstance(body, S.Allocate | S.AttrStmt):
        made = _inside_threads(node.replace(body=body.body))
        return None if made is None else body.replace(body=made)
    if isinstance(body, S.SeqStmt):
        users = [one for one in body.stmts if any(n is node.buffer.data for n in walk(one))
                 or any(getattr(n, "buffer", None) is node.buffer for n in walk(one))]  # fmt: skip
        made = _inside_threads(node.replace(body=users[0])) if len(users) == 1 else None
        if made is not None:
            return S.seq(made if one is users[0] else one for one in body.stmts)
    return None


def _compacted(node: S.Allocate, above: Sequence[S.For]) -> S.Allocate:
    buffer = node.buffer
    if buffer.scope.partition(".")[0] not in SCOPES or buffer.strides:
        return node  # registers that threads share: whoever declares them knows their shape
    if any(ops.as_int(n) is None for n in buffer.shape):
        return node
    region = _region(node, above)
    if region is None or all(
        size == ops.as_int(whole) for (_, size), whole in zip(region, buffer.shape, strict=True)
    ):
        return node
    small = decl_buffer(
        [ops.const(size) for _, size in region], buffer.dtype, buffer.name, scope=buffer.scope
    )
    an = Analyzer()
    for loop in (*above, *(n for n in walk(node.body) if isinstance(n, S.For))):
        an.bind_range(loop.loop_var, E.Range(loop.min, loop.extent))

    def moved(one: Any) -> Any:
        if not isinstance(one, E.BufferLoad | S.BufferStore) or one.buffer is not buffer:
            return None
        pairs = zip(one.indices, region, strict=True)
        indices = tuple(an.simplify(ops.sub(index, low)) for index, (low, _) in pairs)
        return one.replace(buffer=small, indices=indices)

    body = rewrite_bottom_up(node.body, moved)
    if any(n is buffer.data or getattr(n, "buffer", None) is buffer for n in walk(body)):
        return node  # something takes its address
    made: S.Allocate = node.replace(buffer=small, body=body)
    return made


def _region(node: S.Allocate, above: Sequence[S.For]) -> Region | None:
    """Return what is used of a buffer, None where that is not known."""
    buffer, an = node.buffer, Analyzer()
    runs: dict[Any, Interval] = {}
    shared = buffer.scope.startswith("shared")
    for loop in above:
        if not _bounded(an, loop):
            return None
        if shared and is_in_block(loop):
            _run(an, loop, runs)
    found: list[Interval | None] = [None] * buffer.ndim
    unknown: set[E.Var] = set()
    stack: list[Any] = [node.body]
    while stack:
        one = stack.pop()
        if isinstance(one, S.For):
            if not _bounded(an, one):
                return None
            _run(an, one, runs)
        elif isinstance(one, S.LetStmt | E.Let):
            unknown.add(one.var)
        elif isinstance(one, E.BufferLoad | S.BufferStore) and one.buffer is buffer:
            for dimension, index in enumerate(one.indices):
                if any(isinstance(n, E.Ramp | E.BufferLoad) or n in unknown for n in walk(index)):
                    return None
                used = interval_of(an, an.linear(index), runs)
                known = found[dimension]
                if used is None:
                    return None
                found[dimension] = used if known is None else union(an, known, used)
        stack += list(children(one))[::-1]
    region: Region = []
    for whole, interval in zip(map(ops.as_int, buffer.shape), found, strict=True):
        if interval is None:
            return None
        size = an.recombine(interval[1].minus(interval[0])).shifted(1)
        if not size.is_const or size.const >= (whole or 0):
            region.append((ops.const(0), whole or 0))
        else:
            region.append((an.to_expr(interval[0]), size.const))
    return region


def _bounded(an: Analyzer, loop: S.For) -> bool:
    extent = ops.as_int(loop.extent)
    if extent is None or ops.as_int(loop.min) != 0:
        return False
    an.bind(loop.loop_var, 0, max(extent - 1, 0))
    return True


def _run(an: Analyzer, loop: S.For, runs: dict[Any, Interval]) -> None:
    last = an.linear(ops.sub(loop.extent, 1))
    runs[an.var_atom(loop.loop_var)] = (an.constant(0, loop.loop_var.dtype), last)
