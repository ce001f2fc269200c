"""Vectorize loops: the steps of a loop become lanes.

before: ``vectorized for v in range(8): B[i * 8 + v] = A[i * 8 + v] + 1f``
after:  ``B[ramp(i * 8, 1, 8)] = A[ramp(i * 8, 1, 8)] + broadcast(1f, 8)``

A loop is cut into pieces of 64 bytes of its widest element type (16 float32 lanes) and a tail:
two pieces of 12 lanes would take more registers and instructions than 16 and 8.  So is a tail
that no register of the target holds, in powers of two: a sum of 14 lanes that passes from step to
step in two registers is 14 scalars to LLVM.  Up to 16 pieces are unrolled, more run in a serial
loop.  `slipway.transform.loop.lanes` writes a body for all lanes of a piece; what has no such form
becomes a serial loop, and so does the tail of a loop of open extent.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF, Linear
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import PrimExpr, Var
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children, substitute, walk
from slipway.transform.context import PassContext
from slipway.transform.loop.ends import INDEX_TYPES, ends_of, guards_of
from slipway.transform.loop.lanes import in_lanes
from slipway.transform.loop.loop_partition import decided

VECTOR_BYTES = 64
MOST_UNROLLED = 16
_MOST_OF_A_TAIL = 60  # nodes of a body that is written for vectors of each length


def vectorize_loop(func: PrimFunc) -> PrimFunc:
    """Return `func` without vectorized loops."""
    off = bool(PassContext.current().option("tir.disable_vectorize"))
    bits = getattr(func.attr("target"), "vector_bits", 0)
    outer = _Outer(off, bits // 8 or VECTOR_BYTES)
    return func.replace(body=outer.visit(func.body))  # type: ignore[no-any-return]


class _Outer:
    """Finds vectorized loops, keeping the bounds of the loops around them."""

    def __init__(self, off: bool, register_bytes: int) -> None:
        self.off = off
        self.register_bytes = register_bytes
        self.an = Analyzer()

    def visit(self, node: Any) -> Any:
        if not isinstance(node, S.Stmt):
            return node
        if isinstance(node, S.For):
            if node.kind == S.ForKind.VECTORIZED:
                return self.vectorized(node)
            if node.loop_var.dtype in INDEX_TYPES:
                self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        return map_children(node, self.visit)

    def vectorized(self, node: S.For) -> S.Stmt:
        extent = ops.as_int(node.extent)
        if self.off or _holds_loop(node.body, S.ForKind.VECTORIZED):
            return self.serial(node)
        each = _widest_bytes(node.body)
        if extent is None:
            return self.open_pieces(node, VECTOR_BYTES // each)
        return self.pieces(node, extent, VECTOR_BYTES // each, self.register_bytes // each)

    def open_pieces(self, node: S.For, lanes: int) -> S.Stmt:
        """Cut a loop of open extent where its guards change, and what is between into vectors.

        A vector has `lanes`, or as many as the loop may have; the tail is a serial loop.
        """
        an = self.an
        extent = an.linear(node.extent)
        if extent.high < lanes:
            lanes = 1 << max(1, int(extent.high)).bit_length() - 1
        if extent.low < 0 or lanes < 2:
            return self.serial(node)
        zero = an.constant(0, extent.dtype)
        start = an.linear(node.min)
        end = start.plus(extent)
        an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        first, last, known = ends_of(
            an, an.var_atom(node.loop_var), (start, end), guards_of(node.body), ()
        )
        first = an.minimum(first, end)
        steps = an.maximum(an.recombine(last.minus(first)), zero)
        vectors = self.open_vectors(self.part(node, first, steps, decided(node.body, known)), lanes)
        if vectors is None:
            return self.serial(node)
        before = an.recombine(first.minus(start))
        after = first.plus(steps)
        sides = [
            self.serial(self.part(node, at, length, node.body))
            for at, length in ((start, before), (after, an.recombine(end.minus(after))))
            if length.high > 0
        ]
        return S.seq((vectors, *sides))

    def part(self, node: S.For, first: Linear, steps: Linear, body: S.Stmt) -> S.For:
        """Return a loop of `steps` from `first`, with a variable of its own."""
        an, var = self.an, Var(node.loop_var.name, node.loop_var.dtype)
        made = node.replace(min=an.to_expr(first), extent=an.to_expr(steps), loop_var=var)
        return made.replace(body=substitute(body, {node.loop_var: var}))  # type: ignore[no-any-return]

    def open_vectors(self, node: S.For, lanes: int) -> S.Stmt | None:
        """Return a loop of open extent as one of vectors and a tail; None where that cannot be."""
        an, dtype = self.an, node.loop_var.dtype
        extent = an.linear(node.extent)
        count = an.floordiv(extent, lanes)
        outer, inner = Var(node.loop_var.name + ".vec", dtype), Var(node.loop_var.name, dtype)
        an.bind(outer, 0, INF if extent.high == INF else max(0, int(extent.high) // lanes - 1))
        at = ops.add(ops.add(node.min, ops.mul(outer, lanes)), inner)
        zero = ops.const(0, dtype)
        made = self.lanes(inner, zero, lanes, substitute(node.body, {node.loop_var: at}))
        if isinstance(made, S.For) and made.kind == S.ForKind.SERIAL:
            return None
        whole = S.For(outer, zero, an.to_expr(count), S.ForKind.SERIAL, made)
        return S.seq((whole, *self.open_tail(node, extent, lanes)))

    def open_tail(self, node: S.For, extent: Linear, lanes: int) -> list[S.Stmt]:
        """Return what follows vectors of `lanes`: one of half as many if that fits, and so on."""
        an, dtype = self.an, node.loop_var.dtype
        done = an.floordiv(extent, lanes).scaled(lanes)
        if lanes == 2 or len(list(islice(walk(node.body), _MOST_OF_A_TAIL + 1))) > _MOST_OF_A_TAIL:
            first = an.linear(node.min).plus(done)
            tail = self.part(node, first, an.recombine(extent.minus(done)), node.body)
            return [self.serial(tail)]
        half = lanes // 2
        inner, zero = Var(node.loop_var.name, dtype), ops.const(0, dtype)
        start = ops.add(node.min, an.to_expr(done))
        body = substitute(node.body, {node.loop_var: ops.add(start, inner)})
        made = self.lanes(inner, zero, half, body)
        fits = E.EQ(ops.floormod(an.to_expr(an.floordiv(extent, half)), 2), ops.const(1, dtype))
        return [S.IfThenElse(fits, made), *self.open_tail(node, extent, half)]

    def pieces(self, node: S.For, extent: int, lanes: int, together: int) -> S.Stmt:
        """Cut a vectorized loop into vectors of at most `lanes`, its tail by halves.

        So many lanes as stay `together` are a vector whatever their number.
        """
        if extent < lanes and extent > together:
            lanes = 1 << (extent.bit_length() - 1)
        if extent <= min(lanes, together) or extent == lanes:
            return self.lanes(node.loop_var, node.min, extent, node.body)
        count, remainder = divmod(extent, lanes)
        name, kind = node.loop_var.name, node.loop_var.dtype
        outer, inner = Var(name + ".vec", kind), Var(name, kind)
        at = ops.add(ops.add(node.min, ops.mul(outer, lanes)), inner)
        zero = ops.const(0, kind)
        if count <= MOST_UNROLLED and self.is_uneven(node):
            whole = S.seq(self.piece(node, n * lanes, lanes) for n in range(count))
        else:
            self.an.bind(outer, 0, count - 1)
            body = self.lanes(inner, zero, lanes, substitute(node.body, {node.loop_var: at}))
            how = S.ForKind.UNROLLED if count <= MOST_UNROLLED else S.ForKind.SERIAL
            whole = S.For(outer, zero, ops.const(count, kind), how, body)
        if not remainder:
            return whole
        first = ops.add(node.min, count * lanes)
        tail = self.pieces(node.replace(min=first), remainder, lanes, together)
        return S.seq((whole, tail))

    def piece(self, node: S.For, first: int, lanes: int) -> S.Stmt:
        """Return `lanes` steps of a loop, from step `first`, at once."""
        step = Var(node.loop_var.name, node.loop_var.dtype)
        at = ops.add(ops.add(node.min, first), step)
        body = substitute(node.body, {node.loop_var: at})
        return self.lanes(step, ops.const(0, step.dtype), lanes, body)

    def is_uneven(self, node: S.For) -> bool:
        """Return whether what a step loads moves by no constant: at each place in its own way."""
        self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        atom = self.an.var_atom(node.loop_var)
        indices = [i for n in walk(node.body) if isinstance(n, E.BufferLoad) for i in n.indices]
        terms = [a for i in indices if i.dtype == "int32" for a in self.an.linear(i).terms]
        return any(a is not atom and a.pure and atom in a.variables for a in terms)

    def serial(self, node: S.For) -> S.Stmt:
        self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
        return node.replace(kind=S.ForKind.SERIAL, body=self.visit(node.body))  # type: ignore[no-any-return]

    def lanes(self, var: Var, first: PrimExpr, lanes: int, body: S.Stmt) -> S.Stmt:
        """Return `body` for all steps of `var` at once, or as a serial loop if that cannot be."""
        if lanes == 1:
            return substitute(body, {var: first})  # type: ignore[no-any-return]
        start = self.an.linear(first)
        self.an.bind(var, start.low, start.high + lanes - 1)
        made = in_lanes(self.an, var, start, lanes, body)
        if made is not None:
            return made
        step = Var(var.name, var.dtype)
        loop_body = substitute(body, {var: step})
        return S.For(step, first, ops.const(lanes, var.dtype), S.ForKind.SERIAL, loop_body)


def _holds_loop(stmt: S.Stmt, kind: str) -> bool:
    return any(isinstance(n, S.For) and n.kind == kind for n in S.statements(stmt))


def _widest_bytes(stmt: S.Stmt) -> int:
    """The bytes of the widest element type that the body loads or stores."""
    widest = 1
    for n in walk(stmt):
        if isinstance(n, S.BufferStore):
            widest = max(widest, dtypes.bytes_of(n.value.dtype))
        elif isinstance(n, E.BufferLoad) or (isinstance(n, E.Cast) and n.dtype not in ("int64",)):
            widest = max(widest, dtypes.bytes_of(n.dtype))
    return widest
