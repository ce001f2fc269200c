"""Finding and exchanging loops and blocks in a function's statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.errors import ScheduleError, did_you_mean
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.expr import BufferLoad, PrimExpr, Var
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.structural import structural_equal
from slipway.ir.visit import children, map_children, substitute, walk

ROOT = "root"  # the block that stands for a function's body


@dataclass(frozen=True, eq=False)
class StmtSRef:
    """Where a block or loop stands in a function."""

    stmt: S.Stmt
    parent: StmtSRef | None = None

    def same_as(self, other: object) -> bool:
        """Return whether both are one statement of one state of the function."""
        return isinstance(other, StmtSRef) and self.stmt is other.stmt


def sref(root: S.Stmt, target: S.Stmt) -> StmtSRef:
    """Return where a block or loop stands under a function's body."""
    found = StmtSRef(find_block(root, ROOT))
    if isinstance(target, S.Block) and target.body is root:
        return found
    for node in path_to(root, target):
        if isinstance(node, S.Block | S.For) and node is not found.stmt:
            found = StmtSRef(node, found)
    return found


def outermost_blocks(root: Node) -> list[S.Block]:
    """Return the blocks under `root` that lie in no other one, in order of the text."""
    if isinstance(root, S.Block):
        return [root]
    return [block for child in children(root) for block in outermost_blocks(child)]


def blocks_of(root: Node) -> list[S.Block]:
    """Return all blocks in order of the text."""
    return [node for node in _statements(root) if isinstance(node, S.Block)]


def _statements(root: Node) -> list[S.Stmt]:
    """Return the statements of a function or under a statement, without the expressions."""
    inner = root.body if isinstance(root, PrimFunc) else root
    return S.statements(inner) if isinstance(inner, S.Stmt) else []


def leaf_blocks(root: Node) -> list[S.Block]:
    """Return the blocks that hold no others: what computes."""
    return [b for b in blocks_of(root) if len(blocks_of(b)) == 1]


def find_block(root: Node, name: str) -> S.Block:
    """Return the block of a name.  Raises ScheduleError where there is none."""
    for block in blocks_of(root):
        if block.name == name:
            return block
    if name == ROOT and isinstance(root, S.Stmt):
        return S.Block(ROOT, (), (), ops.TRUE, root)
    names = [block.name for block in blocks_of(root)]
    raise ScheduleError(
        f"there is no block {name!r}.{did_you_mean(name, names)} The blocks are: "
        f"{', '.join(names) or 'none'}"
    )


def find_loop(root: Node, var: Var) -> S.For:
    """Return the loop of a variable.  Raises ScheduleError for one that is gone."""
    for node in _statements(root):
        if isinstance(node, S.For) and node.loop_var is var:
            return node
    raise ScheduleError(
        f"the loop {var.name!r} is gone: it was split, fused or moved. Get the loops of its block "
        "again with get_loops"
    )


def path_to(root: Node, target: Node) -> list[Node]:
    """Return the nodes from `root` to `target`, both included."""
    above: dict[int, Node] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node is target:
            path = [node]
            while node is not root:
                node = above[id(node)]
                path.append(node)
            return path[::-1]
        for child in children(node):
            if id(child) not in above and isinstance(child, S.Stmt):
                above[id(child)] = node
                stack.append(child)
    raise ScheduleError("the statement is no part of the function")


def own_loops(root: Node, block: S.Block) -> list[S.For]:
    """Return the loops around a block, up to the block that it lies in."""
    found: list[S.For] = []
    if block.body is root:  # the body itself, as a block
        return found
    for node in path_to(root, block)[:-1]:
        if isinstance(node, S.Block):
            found = []
        elif isinstance(node, S.For):
            found.append(node)
    return found


def loops_above(root: Node, target: Node) -> list[S.For]:
    """Return the loops around a statement, the outermost first."""
    return [n for n in path_to(root, target)[:-1] if isinstance(n, S.For)]


def values_of(root: Node, block: S.Block) -> dict[Any, PrimExpr]:
    """Return the value of each axis of a block in loops alone, those of blocks around it too."""
    values: dict[Any, PrimExpr] = {}
    for node in path_to(root, block):
        if isinstance(node, S.Block):
            own = [substitute(value, values) for value in node.bindings]
            values.update(zip((axis.var for axis in node.axes), own, strict=True))
    return values


def exchanged(root: Node, old: Node, new: Node) -> Any:
    """Return `root` with one statement replaced."""
    return substitute(root, {old: new})


def removed(root: Node, target: S.Stmt) -> Any:
    """Return `root` without a statement and the loops that hold nothing else."""
    path = path_to(root, target)
    gone: Node = target
    for node in reversed(path[:-1]):
        if isinstance(node, S.SeqStmt):
            kept = S.seq(s for s in node.stmts if s is not gone)
            return exchanged(root, node, kept)
        if not isinstance(node, S.For | S.IfThenElse):
            break
        gone = node
    return exchanged(root, gone, S.NOP)


def with_allocation(root: Any, buffer: Buffer) -> Any:
    """Return `root` with memory for a buffer, after that which is there around all."""
    if isinstance(root, S.Allocate):
        return root.replace(body=with_allocation(root.body, buffer))
    return S.Allocate(buffer, root)


def without_allocation(root: Node, buffer: Buffer) -> Any:
    """Return `root` without the memory of a buffer that nothing uses any more."""
    for node in _statements(root):
        if isinstance(node, S.Allocate) and node.buffer is buffer:
            return exchanged(root, node, node.body)
    return root


def is_allocated(root: Node, buffer: Buffer) -> bool:
    """Return whether a buffer is the function's own."""
    return any(isinstance(n, S.Allocate) and n.buffer is buffer for n in _statements(root))


def map_blocks(root: Node, change: Callable[[S.Block], S.Block]) -> Any:
    """Return `root` with its outermost blocks changed."""

    def visit(node: Any) -> Any:
        if isinstance(node, S.Block):
            return change(node)
        return map_children(node, visit) if isinstance(node, S.Stmt) else node

    return visit(root)


def written(root: Node) -> list[Buffer]:
    """Return the buffers that are stored into, in order, each once."""
    stored = [n.buffer for n in _statements(root) if isinstance(n, S.BufferStore)]
    return list(dict.fromkeys([*stored, *(b for one in blocks_of(root) for b in one.writes)]))


def read(block: S.Block) -> list[Buffer]:
    """Return the buffers that a block loads from, without those it writes, in order."""
    own = set(written(block))
    found = dict.fromkeys(n.buffer for n in walk(block.body) if isinstance(n, BufferLoad))
    found.update((b, None) for one in blocks_of(block) for b in one.reads)
    return [buffer for buffer in found if buffer not in own]


def replace_buffer(root: Node, old: Buffer, new: Buffer) -> Any:
    """Return `root` using another buffer of the same shape."""
    return substitute(root, {old: new, old.data: new.data})


def fresh_name(root: Node, name: str) -> str:
    """Return a name that no block has."""
    taken = {block.name for block in blocks_of(root)}
    number, made = 0, name
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    return made


def check_scopes(func: PrimFunc) -> None:
    """Raise ScheduleError for a buffer that is used outside of the statement it lives in."""
    given = {id(buffer) for _, buffer in func.buffer_map}
    stack: list[tuple[Node, frozenset[int]]] = [(func.body, frozenset(given))]
    while stack:
        node, known = stack.pop()
        if isinstance(node, BufferLoad | S.BufferStore) and id(node.buffer) not in known:
            raise ScheduleError(
                f"buffer {node.buffer.name!r} would be used outside of the loop that it was put "
                "into with compute_at"
            )
        if isinstance(node, S.Allocate):
            known = known | {id(node.buffer)}
        stack += [(child, known) for child in children(node) if child.INNER]


def check_ready(root: Node, block: S.Block, at: S.Block, but: Buffer) -> None:
    """Raise ScheduleError unless what `block` reads, `but` aside, is there when `at` runs."""
    later: set[Buffer] = set()
    reached = False
    for one in leaf_blocks(root):
        reached = reached or one is at
        if reached and one is not block:
            later.update(written(one))
    late = [b for b in read(block) if b is not but and b in later]
    if late:
        raise ScheduleError(
            f"cannot move block {block.name!r} up to {at.name!r}: it reads {late[0].name!r}, "
            "which is computed later"
        )


def check_only_writer(root: Node, block: S.Block, buffer: Buffer, what: str) -> None:
    """Raise ScheduleError where another block writes a buffer too: starts its reduction, say."""
    others = [b.name for b in leaf_blocks(root) if b is not block and buffer in written(b)]
    if others:
        raise ScheduleError(
            f"cannot {what} block {block.name!r} writes: block {others[0]!r} writes "
            f"{buffer.name!r} too. Do so before decompose_reduction"
        )


def same_place(one: Sequence[PrimExpr], other: Sequence[PrimExpr]) -> bool:
    """Return whether two accesses write their indices alike."""
    return structural_equal(tuple(one), tuple(other))


def uses(expr: PrimExpr, var: Var) -> bool:
    """Return whether a variable is part of an expression."""
    return any(node is var for node in walk(expr))


def nest(loops: list[tuple[Var, PrimExpr]], body: S.Stmt) -> S.Stmt:
    """Return serial loops from zero around a statement."""
    for var, extent in reversed(loops):
        body = S.For(var, ops.const(0, var.dtype), extent, S.ForKind.SERIAL, body)
    return body


def top_of(root: Node, block: S.Block) -> S.Stmt:
    """Return the statement at the function's root that holds a block."""
    for node in path_to(root, block):
        if not isinstance(node, S.SeqStmt | S.Allocate | S.LetStmt | S.AttrStmt | S.AssertStmt):
            return node  # type: ignore[return-value]
    return block
