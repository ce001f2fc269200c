"""Which variables and memories a piece of loop code takes from around it."""

from __future__ import annotations

from typing import Any

from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.node import Node
from slipway.ir.ops import as_int
from slipway.ir.visit import children

_LEAVES = frozenset((E.IntImm, E.FloatImm, E.StringImm))


def is_region(node: S.For) -> bool:
    """Return whether tasks run the whole of a loop, and of parallel loops in it their share.

    Not where one of those wants all tasks to wait behind it: each is launched by itself then.
    """
    if all(key != S.REGION for key, _ in node.annotations):
        return False
    found = S.statements(node.body)
    inside = [n for n in found if isinstance(n, S.For) and n.kind == S.ForKind.PARALLEL]
    return bool(inside) and all(key != S.BARRIER for n in inside for key, _ in n.annotations)


def nested_steps(node: S.For) -> int:
    """Return how many steps each step of a parallel loop has that tasks share too.

    Those of a parallel loop that is all the body does; 1 where there is none.
    """
    inner = node.body
    if not isinstance(inner, S.For) or not inner.kind == node.kind == S.ForKind.PARALLEL:
        return 1
    if as_int(node.min) != 0 or as_int(inner.min) != 0:
        return 1
    return as_int(inner.extent) or 1


def captured(root: Node) -> list[E.Var]:
    """Return the Vars used under `root` and not defined there, in order of first use.

    Data pointers of buffers count as variables, except those of buffers allocated inside.
    Parallel loops call this on large unrolled bodies: the common nodes are taken apart here
    rather than by the generic walk.
    """
    used: dict[int, E.Var] = {}
    defined: set[int] = set()
    seen: set[int] = set()
    stack: list[Any] = [root]
    push = stack.append
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _LEAVES:
            continue
        key = id(node)
        if kind is E.Var or kind is E.SizeVar:
            used.setdefault(key, node)
            continue
        if key in seen:
            continue
        seen.add(key)
        if kind is E.BufferLoad:
            push(node.buffer)
            stack.extend(node.indices)
        elif isinstance(node, (E.BinaryOp, E.CmpOp)):
            push(node.b)
            push(node.a)
        elif kind is E.Broadcast:
            push(node.value)
        elif kind is E.Ramp:
            push(node.stride)
            push(node.base)
        elif kind is S.BufferStore:
            push(node.buffer)
            stack.extend(node.indices)
            push(node.value)
        else:
            if kind is S.For:
                defined.add(id(node.loop_var))
            elif kind is S.LetStmt or kind is E.Let:
                defined.add(id(node.var))
            elif kind is S.Allocate:
                defined.add(id(node.buffer.data))
            stack.extend(reversed(children(node)))
    return [var for key, var in used.items() if key not in defined]
