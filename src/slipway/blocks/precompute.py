"""Formulas of a block's axes, computed before it into memory that the block reads."""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.blocks import tree
from slipway.blocks.move import need_scope
from slipway.errors import ScheduleError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.intrin import is_pure
from slipway.ir.node import Node
from slipway.ir.visit import children, post_order, rewrite_bottom_up, substitute, walk

_DIVISIONS = (E.Div, E.Mod, E.FloorDiv, E.FloorMod)


def cache_index(root: Any, block: S.Block, scope: str, threshold: int) -> tuple[Any, list[str]]:
    """Return (statements, names of the blocks that compute the formulas).

    Of `threshold` 0 these are the indices of what the block loads; of another the formulas that it
    has as often, the largest first.
    """
    need_scope(scope)
    if threshold < 0:
        raise ScheduleError(f"cache_index takes a threshold from 0 on, not {threshold}")
    axes = [a for a in block.axes if _extent(a) is not None]
    known = {a.var for a in axes}
    top, body = tree.top_of(root, block), _shared(block.body)
    loads: dict[Any, E.PrimExpr] = {}  # by the variable that stands for a formula meanwhile
    stages: list[S.Stmt] = []
    names: list[str] = []
    buffers: list[Buffer] = []
    while (formula := _next_formula(body, known, threshold)) is not None:
        own = [a for a in axes if tree.uses(formula, a.var)]
        buffer = decl_buffer([a.extent for a in own], formula.dtype,
                             f"index_var_{len(buffers)}", scope=scope)  # fmt: skip
        names.append(tree.fresh_name(root, f"index_{len(buffers)}"))
        buffers.append(buffer)
        stages.append(_stage(formula, own, buffer, names[-1]))
        var = E.Var(buffer.name, formula.dtype)
        loads[var] = E.BufferLoad(buffer, tuple(ops.sub(a.var, _begin(a)) for a in own))
        body = substitute(body, {formula: var})
    if not buffers:
        return root, []
    made = block.replace(body=substitute(body, loads))
    whole = S.seq((*stages, tree.exchanged(top, block, made)))
    root = tree.exchanged(root, top, whole)
    for buffer in buffers:
        root = tree.with_allocation(root, buffer)
    return root, names


def _shared(body: S.Stmt) -> Any:
    """Return a statement in which equal expressions are one node."""
    known: dict[Any, E.PrimExpr] = {}

    def rule(node: Node) -> Node | None:
        if not isinstance(node, E.PrimExpr) or isinstance(node, E.Var):
            return None
        fields = (getattr(node, name) for name in node.FIELDS)
        key = (type(node), *(tuple(map(_identity, v)) if isinstance(v, tuple) else _identity(v)
                             for v in fields))  # fmt: skip
        return known.setdefault(key, node)

    return rewrite_bottom_up(body, rule)


def _identity(value: Any) -> Any:
    return id(value) if isinstance(value, Node) else (type(value), repr(value))


def _begin(axis: E.IterVar) -> E.PrimExpr:
    return ops.const(0, axis.dtype) if axis.dom is None else axis.dom.min


def _extent(axis: E.IterVar) -> int | None:
    return None if axis.dom is None else ops.as_int(axis.dom.extent)


def _stage(formula: E.PrimExpr, axes: list[E.IterVar], buffer: Buffer, name: str) -> S.Stmt:
    loops = [(E.Var(f"ax{n}", a.dtype), a.extent) for n, a in enumerate(axes)]
    own = tuple(
        E.IterVar(E.Range.of(a.extent), E.Var(f"v{n}", a.dtype), "data") for n, a in enumerate(axes)
    )
    here: dict[Any, Any] = {
        a.var: ops.add(o.var, _begin(a)) for a, o in zip(axes, own, strict=True)
    }
    store = S.BufferStore(buffer, substitute(formula, here), tuple(o.var for o in own))
    return tree.nest(loops, S.Block(name, own, tuple(v for v, _ in loops), ops.TRUE, store))


def _next_formula(body: S.Stmt, known: set[E.Var], threshold: int) -> E.PrimExpr | None:
    """Return the next formula to compute before a block; None where there is none left."""
    order = post_order(body)
    counts: dict[Node, int] = {body: 1}  # in the text, where a shared node stands several times
    for node in reversed(order):
        for child in children(node):
            counts[child] = counts.get(child, 0) + counts[node]
    indices = {i for n in order if isinstance(n, E.BufferLoad) for i in n.indices}
    wanted = [
        n for n in order if isinstance(n, E.PrimExpr)
        and (counts[n] >= threshold if threshold else n in indices)
    ]  # fmt: skip
    sizes = [_size(n, known) for n in wanted]
    largest = max(sizes, default=0)
    return wanted[sizes.index(largest)] if largest else None


def _size(formula: E.PrimExpr, known: set[E.Var]) -> int:
    """Return how many operations a formula of known axes has; 0 for what cannot stand elsewhere."""
    operations = 0
    for node in walk(formula):
        if isinstance(node, E.Var):
            if node not in known:
                return 0
        elif isinstance(node, E.IntImm | E.FloatImm):
            continue
        elif not isinstance(node, E.PrimExpr) or not _is_movable(node):
            return 0
        else:
            operations += 1
    return operations if any(isinstance(n, E.Var) for n in walk(formula)) else 0


def _is_movable(node: E.PrimExpr) -> bool:
    if isinstance(node, _DIVISIONS) and not dtypes.is_float(node.dtype):
        return bool(ops.as_int(node.b))  # another one might be zero where the block does not run
    if isinstance(node, E.Call):
        return is_pure(node.op)
    moved = E.BinaryOp | E.CmpOp | E.Cast | E.Not | E.Select
    return isinstance(node, moved) and dtypes.lanes_of(node.dtype) == 1
