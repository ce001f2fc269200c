"""Sums that a subgroup holds as matrices: every thread gets its own when they are done.

before: ``products[..] @local`` that ``warp_zero`` and ``warp_product`` name, and threads read
after:  matrices in their place, and behind the last product, for each of them::

    warp_store(name, &given[warp * 256], &products.matrices[0])
    barrier of the subgroup
    products[i] = given[warp * 256 + (a thread's element i)]

`given` is shared memory of one matrix for each subgroup (the calls are those of
`ir/instructions/cooperative_products.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.instructions.cooperative_products import (
    MATRIX,
    STORE,
    CooperativeProduct,
    named,
)
from slipway.ir.instructions.warp_products import PRODUCT, ZERO, sums_of
from slipway.ir.visit import map_children, walk
from slipway.transform.loop.simplify import simplify

_MEET = S.Evaluate(E.Call("int32", "storage_sync", (E.StringImm("warp"),)))


def spread_sums(func: PrimFunc) -> PrimFunc:
    """Return `func` with matrices where its products are of Vulkan's cooperative matrices."""
    sums = {id(data): entry for data, entry in _sums(func.body)}
    if not sums:
        return func
    return simplify(func.replace(body=_Spread(func.name, sums, {}).visit(func.body)))


def _sums(node: S.Stmt) -> Iterator[tuple[E.Var, CooperativeProduct]]:
    """Yield the memory of the sums of such products."""
    for inner in walk(node):
        if isinstance(inner, E.Call) and inner.op == PRODUCT:
            entry = named(inner.args[0].value)  # type: ignore[attr-defined]
            if entry is not None:
                yield sums_of(inner)[0].buffer.data, entry


@dataclass(frozen=True)
class _Spread:
    """Gives memory of sums to matrices; `threads` are the loops over threads around a statement."""

    name: str
    sums: dict[int, CooperativeProduct]
    threads: dict[str, S.For]

    def visit(self, node: Any) -> Any:
        if not isinstance(node, S.Stmt):
            return node
        if isinstance(node, S.For) and node.kind == S.ForKind.THREAD and node.thread is not None:
            inside = {**self.threads, node.thread.thread_tag: node}
            below = _Spread(self.name, self.sums, inside)
            return map_children(node, below.visit)
        if isinstance(node, S.Allocate) and id(node.buffer.data) in self.sums:
            return self._spread(node, self.sums[id(node.buffer.data)])
        return map_children(node, self.visit)

    def _spread(self, node: S.Allocate, entry: CooperativeProduct) -> S.Stmt:
        own = node.buffer
        (count,) = (ops.as_int(n) for n in own.shape)
        assert count is not None
        held = decl_buffer((count,), own.dtype, f"{own.name}.matrices", scope=MATRIX)
        lane, warp, warps = self._place(entry)
        size = entry.rows * entry.columns
        given = decl_buffer((warps * size,), own.dtype, f"{own.name}.given", scope="shared")
        layout, first = entry.layout, warp * size
        row = ops.floordiv(lane, layout.low_columns) * layout.rows
        column = ops.floormod(lane, layout.low_columns)
        spread: list[S.Stmt] = []
        for at in range(0, count, entry.sums):
            spread += [_call(STORE, entry, _at(given, first), _at(held, at)), _MEET]
            for i in range(entry.sums):
                element = first + (row + i) * entry.columns + column
                load = E.BufferLoad(given, (ops.as_expr(element),))
                spread.append(S.BufferStore(own, load, (ops.const(at + i),)))
            spread.append(_MEET)
        made = self._behind(_with_matrices(node.body, own, held), held, own, S.seq(spread))
        return S.Allocate(own, S.Allocate(held, S.Allocate(given, made)))

    def _place(self, entry: CooperativeProduct) -> tuple[E.PrimExpr, E.PrimExpr, int]:
        """Return a thread's number in its subgroup, that one's number, and how many there are."""
        number, threads = ops.const(0), 1
        for axis in "xyz":
            loop = self.threads.get(f"threadIdx.{axis}")
            if loop is not None:
                number = number + loop.loop_var * threads
                threads *= ops.as_int(loop.extent) or 0
        if threads == 0 or threads % entry.lanes:
            raise LoweringError(
                f"{self.name}: products of cooperative matrices need blocks of whole subgroups of "
                f"{entry.lanes} threads, and a block has {threads or 'a number that varies'}"
            )
        lane, warp = ops.floormod(number, entry.lanes), ops.floordiv(number, entry.lanes)
        return lane, warp, threads // entry.lanes

    def _behind(self, node: S.Stmt, held: Buffer, own: Buffer, added: S.Stmt) -> S.Stmt:
        """Return `node` with a statement behind the last that names the matrices."""
        match node:
            case S.SeqStmt():
                last = max(n for n, inner in enumerate(node.stmts) if _names(inner, held))
                stmts = list(node.stmts)
                stmts[last] = self._behind(stmts[last], held, own, added)
                return S.seq(stmts)
            case S.Allocate() | S.AttrStmt() | S.LetStmt():
                return node.replace(body=self._behind(node.body, held, own, added))  # type: ignore[no-any-return]
            case S.For() if _names(node, own):
                return node.replace(body=self._behind(node.body, held, own, added))  # type: ignore[no-any-return]
        return S.seq((node, added))


def _names(node: S.Stmt, buffer: Buffer) -> bool:
    return any(isinstance(n, E.BufferLoad) and n.buffer.data is buffer.data for n in walk(node))


def _with_matrices(node: Any, own: Buffer, held: Buffer) -> Any:
    """Return `node` whose products and zeros are of `held` in place of `own`."""

    def address(inner: Any) -> Any:
        if isinstance(inner, E.BufferLoad) and inner.buffer.data is own.data:
            return E.BufferLoad(held, inner.indices)
        return map_children(inner, address) if isinstance(inner, E.PrimExpr) else inner

    if isinstance(node, E.Call) and node.op in (PRODUCT, ZERO):
        return map_children(node, address)
    if isinstance(node, E.PrimExpr | S.Stmt):
        return map_children(node, lambda child: _with_matrices(child, own, held))
    return node


def _at(buffer: Buffer, index: Any) -> E.PrimExpr:
    return E.Call("handle", "address_of", (E.BufferLoad(buffer, (ops.as_expr(index),)),))


def _call(op: str, entry: CooperativeProduct, *operands: E.PrimExpr) -> S.Stmt:
    return S.Evaluate(E.Call("int32", op, (E.StringImm(entry.name), *operands)))
