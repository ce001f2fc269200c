"""Long sequences in functions of their own: what LLVM does with a function grows faster than it.

A kernel that cuts a tensor into 1,600, or joins as many, is a sequence of statements, each of which
reads or writes a few of them.  As one function it takes LLVM 15 s; as functions of some dozen
pointers each it takes what its parts take.  So it is with many loops one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from slipway.codegen.capture import captured
from slipway.ir import expr as E
from slipway.ir import stmt as S

MANY = 48  # pointers, or loops in a sequence, of a function that is left whole
MOST = 24  # pointers or statements of a piece

# What ends where it stands: no memory that what follows uses, no return, no task's share.
_PLAIN = (S.For, S.BufferStore, S.IfThenElse, S.LetStmt, S.SeqStmt, S.AttrStmt)


def is_long(statements: Sequence[S.Stmt]) -> bool:
    """Return whether a sequence has many loops; stores of an unrolled one stay together."""
    loops = (S.ForKind.SERIAL, S.ForKind.PARALLEL)
    return len(statements) > MANY < sum(
        isinstance(inner, S.For) and inner.kind in loops for inner in statements
    )  # fmt: skip


def pieces(statements: Sequence[S.Stmt]) -> Iterator[tuple[S.Stmt, ...]]:
    """Yield the statements in order, in groups of `MOST` that use as many pointers at most.

    One that uses more by itself is a group too.
    """
    group: list[S.Stmt] = []
    used: set[int] = set()
    for statement in statements:
        own = {id(v) for v in captured(statement) if v.dtype == "handle"}
        full = len(group) == MOST or len(used | own) > MOST
        if group and (full or not _is_plain(statement)):
            yield tuple(group)
            group, used = [], set()
        group.append(statement)
        used |= own
        if not _is_plain(statement):
            yield tuple(group)
            group, used = [], set()
    if group:
        yield tuple(group)


def _is_plain(statement: S.Stmt) -> bool:
    return all(isinstance(inner, _PLAIN) for inner in S.statements(statement))


def emit_piece(emitter: Any, piece: tuple[S.Stmt, ...]) -> None:
    """Emit the statements as a function of what they use, and the call of it."""
    whole = S.SeqStmt(piece)
    variables: list[E.Var] = captured(whole)
    if not all(map(_is_plain, piece)) or sum(v.dtype == "handle" for v in variables) > MOST:
        for statement in piece:  # what is inside of it may be long, too
            emitter.stmt(statement)
        return
    emitter.new_statement()
    emitter.pieces += 1
    inner = emitter.inner(f"{emitter.name}.piece{emitter.pieces}", variables)
    text = inner.parameters(variables, noalias=emitter.noalias)
    inner.widen_scalars(variables)
    inner.stmt(whole)
    inner.finish(text, attributes="" if "noinline" in emitter.module.attributes else " noinline")
    arguments = ", ".join(f"{emitter.ty(v.dtype)} {emitter.value(v)}" for v in variables)
    w = emitter.w
    status = w.put(f"call i32 @{inner.name}({arguments})")
    bad, good = w.label("bad"), w.label("good")
    w.branch_if(w.put(f"icmp ne i32 {status}, 0"), bad, good)
    w.start(bad)
    emitter.leave(status)
    w.start(good)
