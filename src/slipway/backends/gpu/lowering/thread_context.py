"""The axes of threads, and where a statement stands among the loops over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.instructions.async_copies import GROUPING
from slipway.ir.instructions.warp_products import PRODUCT, ZERO
from slipway.ir.visit import map_children, substitute, walk

TAGS = ("blockIdx.z", "blockIdx.y", "blockIdx.x", "threadIdx.z", "threadIdx.y", "threadIdx.x")
_BESIDE_WARPS = ("threadIdx.y", "threadIdx.z")
_TOGETHER = (PRODUCT, ZERO, *GROUPING)


@dataclass(frozen=True)
class ThreadContext:
    """Where a statement stands: the axes whose loops are around it, and what they make of it.

    `active` are the tags of those loops, `conditions` what must hold there and differs between the
    threads of a block, `path` the loops themselves: statements of one path are of one thread.
    """

    active: frozenset[str] = frozenset()
    conditions: tuple[E.PrimExpr, ...] = ()
    path: tuple[int, ...] = ()


class KernelContext(Protocol):
    """What a kernel that is being made can be asked."""

    name: str
    extents: dict[str, E.PrimExpr]
    vars: dict[str, E.Var]
    scopes: dict[int, str]
    warp: int  # threads that exchange values; 1: none do

    def token(self) -> int:
        """Return a number that no other path has."""
        ...

    def enter(self, loop: S.For) -> tuple[S.Stmt, E.PrimExpr | None]:
        """Return a loop's body for one thread, and under what condition the thread has a step."""
        ...

    def leaf(self, node: S.Stmt, at: ThreadContext) -> S.Stmt:
        """Return a statement without thread loops, done by the threads that are to do it."""
        ...


def tag_of(loop: S.For, name: str) -> str:
    """Return the axis that a thread loop is bound to.  Raises LoweringError for an unknown one."""
    tag = loop.thread.thread_tag if loop.thread is not None else ""
    if tag not in TAGS:
        raise LoweringError(
            f"{name}: loop {loop.loop_var.name} is bound to {tag!r}, which is no axis of threads. "
            f"There are {', '.join(reversed(TAGS))} and vthread"
        )
    return tag


def is_shared(scope: str) -> bool:
    """Return whether the threads of a block share memory of a scope."""
    return scope.startswith("shared") or scope == "warp"


def is_together(node: S.Stmt) -> bool:
    """Return whether `node` has an instruction that all do: of a warp, or for what they fill."""
    return any(isinstance(n, E.Call) and n.op in _TOGETHER for n in walk(node))


def named_outside(node: Any, names: Mapping[E.Var, E.Var]) -> Any:
    """Return a statement whose mentions of threads outside of their loops are by other variables.

    A predicate of a store may ask for a thread of an axis that loops beside it are bound to.
    """
    if isinstance(node, S.For) and node.thread is not None:
        names = {k: v for k, v in names.items() if k is not node.thread.var}
    if not names:
        return node
    if not isinstance(node, S.Stmt):
        return substitute(node, names)
    return map_children(node, lambda child: named_outside(child, names))


def kept_inside(node: S.Stmt, conditions: Iterable[E.PrimExpr]) -> S.Stmt:
    """Return what whole warps do, those without a step of their own the last one's.

    Nobody reads what these compute, but what they read must be there.
    """
    last = {
        c.a: E.Min(c.a, ops.sub(c.b, 1))
        for c in conditions
        if isinstance(c, E.LT) and isinstance(c.a, E.Var) and c.a.name in _BESIDE_WARPS
    }
    return substitute(node, last) if last else node
