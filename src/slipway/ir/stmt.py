"""Statements of the loop language.

The whole grammar::

    s = BufferStore(buffer, value, (e, ...))
      | For(var, min, extent, kind, body, thread, annotations)
      | While(cond, body)
      | IfThenElse(cond, s, s?)
      | SeqStmt((s, ...))
      | LetStmt(var, e, body)
      | Allocate(buffer, body)              memory that lives while body runs
      | AttrStmt(key, node, value, body)    a note for a later pass
      | AssertStmt(cond, message, body)
      | Block(name, (axis, ...), (e, ...), predicate, init?, body)   gone after lower_blocks
      | Evaluate(e)                         e for its effect; Evaluate(0) does nothing

    ForKind = serial | parallel | vectorized | unrolled | thread

Before storage is made concrete, te lowering also uses
``ProducerStore(tensor, value, indices)`` and
``ProducerRealize(tensor, bounds, cond, body, scope)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from slipway.ir.buffer import Buffer
from slipway.ir.expr import IntImm, IterVar, PrimExpr, Range, StringImm, Var
from slipway.ir.node import Node, node
from slipway.ir.operators import BUILDERS
from slipway.ir.visit import children


class ForKind:
    """How the steps of a loop run; the values are what For.kind holds."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    THREAD = "thread"


# An annotation of a loop that is compiled as it stands: a code generator is not to unroll it.
KEEP_LOOP = ("unroll", False)
# On a loop that all tasks run as a whole, but for the parallel loops in it, of which each runs its
# share: the key of classic TVM's pragma.
REGION = "pragma_parallel_launch_point"
BARRIER = "pragma_parallel_barrier_when_finish"
# The key of an annotation of a loop over threads: the CommReducer that combines what they compute.
REDUCES = "reduces"
# On memory whose rows are permuted: how many elements stay beside each other.
SWIZZLE = "swizzle"
# The keys of an AttrStmt that is a loop over threads, as classic scripts write one.
CLASSIC_THREADS = ("thread_extent", "virtual_thread")


class Stmt(Node):
    """Base of all statements."""

    __slots__ = ()


@node
class BufferStore(Stmt):
    """buffer[indices] = value; a last index with lanes stores a vector."""

    buffer: Buffer
    value: PrimExpr
    indices: tuple[PrimExpr, ...]

    @property
    def buffer_var(self) -> Var:
        """The pointer to the buffer's memory (the classic name)."""
        return self.buffer.data


@node
class ProducerStore(Stmt):
    """Element `indices` of te tensor `producer` = value; gone after te lowering."""

    producer: Any
    value: PrimExpr
    indices: tuple[PrimExpr, ...]


@node
class ProducerRealize(Stmt):
    """Storage for the region `bounds` of te tensor `producer` exists in body."""

    producer: Any
    bounds: tuple[Range, ...]
    condition: PrimExpr
    body: Stmt
    scope: str = ""


@node
class For(Stmt):
    """for loop_var in [min, min + extent): body."""

    loop_var: Var
    min: PrimExpr
    extent: PrimExpr
    kind: str
    body: Stmt
    thread: IterVar | None = None
    annotations: tuple[tuple[str, Any], ...] = ()

    # Kinds under the names of TVM 0.6.
    Serial: ClassVar[str] = ForKind.SERIAL
    Parallel: ClassVar[str] = ForKind.PARALLEL
    Vectorized: ClassVar[str] = ForKind.VECTORIZED
    Unrolled: ClassVar[str] = ForKind.UNROLLED

    def __post_init__(self) -> None:
        if not (isinstance(self.min, PrimExpr) and isinstance(self.extent, PrimExpr)):
            for name in ("min", "extent"):
                getattr(type(self), name).__set__(self, BUILDERS.as_expr(getattr(self, name)))

    @property
    def for_type(self) -> str:
        """The kind (of TVM 0.6)."""
        return self.kind

    @property
    def thread_binding(self) -> IterVar | None:
        """The thread that each step is (the classic name)."""
        return self.thread


@node
class While(Stmt):
    """While condition holds: body."""

    condition: PrimExpr
    body: Stmt


@node
class IfThenElse(Stmt):
    """If condition holds then_case, else else_case (if there is one)."""

    condition: PrimExpr
    then_case: Stmt
    else_case: Stmt | None = None


@node
class SeqStmt(Stmt):
    """The statements in order; build it with `seq`, which flattens."""

    stmts: tuple[Stmt, ...]

    def __getitem__(self, index: int) -> Stmt:
        return self.stmts[index]

    def __len__(self) -> int:
        return len(self.stmts)

    @property
    def seq(self) -> tuple[Stmt, ...]:
        """The statements (the classic name)."""
        return self.stmts

    @property
    def first(self) -> Stmt:
        """The first statement (of TVM 0.6's Block, as `rest`)."""
        return self.stmts[0]

    @property
    def rest(self) -> Stmt:
        """What follows the first statement."""
        return seq(self.stmts[1:])


@node
class LetStmt(Stmt):
    """`var` stands for `value` in body."""

    var: Var
    value: PrimExpr
    body: Stmt


@node
class Allocate(Stmt):
    """Memory for `buffer` exists while body runs."""

    buffer: Buffer
    body: Stmt
    annotations: tuple[tuple[str, Any], ...] = ()

    @property
    def buffer_var(self) -> Var:
        """The variable of the memory (the classic name, as those below)."""
        return self.buffer.data

    @property
    def dtype(self) -> str:
        """The type of its elements."""
        return self.buffer.dtype

    @property
    def extents(self) -> tuple[PrimExpr, ...]:
        """How many elements it has along each axis."""
        return self.buffer.shape

    @property
    def condition(self) -> PrimExpr:
        """Where it is made: always."""
        return BUILDERS.as_expr(True)


@node
class AttrStmt(Stmt):
    """A note for a later pass: `key` says what, about `node`, with `value`, while body runs."""

    key: str
    node: Any
    value: Any
    body: Stmt

    @property
    def attr_key(self) -> str:
        """What the note says (the classic name)."""
        return self.key


@node
class AssertStmt(Stmt):
    """Where condition fails the function returns an error of `kind` with `message`; then body."""

    condition: PrimExpr
    message: StringImm
    body: Stmt
    kind: str = "AssertionError"

    def __post_init__(self) -> None:
        if isinstance(self.message, str):
            message = StringImm(self.message)
            AssertStmt.message.__set__(self, message)


@node
class Block(Stmt):
    """One instance of a computation that a tir.Schedule moves as a whole.

    While `body` runs, each of `axes` has its value of `bindings`; where `predicate` does not hold,
    nothing runs.  `init` runs before the first of the steps that differ in reduced axes only.
    `reads` and `writes` are buffers that calls in the body use, beside those it loads and stores.
    """

    name: str
    axes: tuple[IterVar, ...]
    bindings: tuple[PrimExpr, ...]
    predicate: PrimExpr
    body: Stmt
    init: Stmt | None = None
    annotations: tuple[tuple[str, Any], ...] = ()
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()

    @property
    def name_hint(self) -> str:
        """The name, as classic scripts ask for it."""
        return self.name

    @property
    def iter_vars(self) -> tuple[IterVar, ...]:
        """The axes, as classic scripts ask for them."""
        return self.axes


@node
class Evaluate(Stmt):
    """`value` for its effect."""

    value: PrimExpr


NOP = Evaluate(IntImm("int32", 0))


def is_nop(stmt: Stmt) -> bool:
    """Return whether `stmt` does nothing."""
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, IntImm)


def statements(root: Stmt) -> list[Stmt]:
    """Return `root` and every statement under it once, parents before children.

    Expressions, most of what a program consists of, are left out.
    """
    found: dict[int, Stmt] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            if type(node) is not BufferStore:
                stack += [child for child in children(node) if isinstance(child, Stmt)][::-1]
    return list(found.values())


def seq(stmts: Iterable[Stmt | None]) -> Stmt:
    """Return the statements in order as one: nested sequences flattened, no-ops dropped."""
    flat: list[Stmt] = []
    for stmt in stmts:
        if stmt is None or is_nop(stmt):
            continue
        if isinstance(stmt, SeqStmt):
            flat.extend(stmt.stmts)
        else:
            flat.append(stmt)
    if not flat:
        return NOP
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))
