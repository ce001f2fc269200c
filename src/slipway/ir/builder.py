"""The IR builder: write statements as nested ``with`` blocks (classic ``tir.ir_builder``).

::

    ib = ir_builder.create()
    with ib.for_range(0, n, name="i") as i:
        with ib.if_scope(i < 10):
            ib.store(b, i, ib.load(a, i) + 1)
    body = ib.get()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import IntImm, PrimExpr, Var

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike, ShapeLike


class BufferVar:
    """A buffer to index in Python: ``x[i]`` loads, ``x[i] = v`` stores."""

    def __init__(self, builder: IRBuilder, buffer: Buffer) -> None:
        self._builder = builder
        self.buffer = buffer

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.buffer.dtype

    def as_prim_expr(self) -> PrimExpr:
        """Return the pointer to its memory, as an argument of a call or of ``tir.Load`` has it."""
        return self.buffer.data

    def asobject(self) -> Buffer:
        """Return the buffer, as an argument of a PrimFunc (the classic name)."""
        return self.buffer

    def _indices(self, index: PrimExprLike | tuple[PrimExprLike, ...]) -> tuple[PrimExpr, ...]:
        picked = index if isinstance(index, (tuple, list)) else (index,)
        indices = tuple(ops.as_expr(i) for i in picked)
        if len(indices) == 1 < self.buffer.ndim:  # as a pointer to the first element has it
            indices = self._unflattened(indices[0])
        if len(indices) != self.buffer.ndim:
            raise LoweringError(
                f"buffer {self.buffer.name!r} has {self.buffer.ndim} dimensions, but is indexed "
                f"with {len(indices)}"
            )
        return indices

    def _unflattened(self, offset: PrimExpr) -> tuple[PrimExpr, ...]:
        """Return the indices of the element that lies `offset` elements after the first."""
        if offset.lanes != 1:
            raise LoweringError(
                f"buffer {self.buffer.name!r} has {self.buffer.ndim} dimensions: a vector of "
                "elements is at that many indices"
            )
        found: list[PrimExpr] = []
        for extent in reversed(self.buffer.shape[1:]):
            found.append(ops.floormod(offset, extent))
            offset = ops.floordiv(offset, extent)
        return (offset, *reversed(found))

    def __getitem__(self, index: PrimExprLike | tuple[PrimExprLike, ...]) -> PrimExpr:
        return E.BufferLoad(self.buffer, self._indices(index))

    def __setitem__(
        self, index: PrimExprLike | tuple[PrimExprLike, ...], value: PrimExprLike
    ) -> None:
        indices = self._indices(index)
        lanes = max((i.lanes for i in indices), default=1)
        given = ops.as_expr(value, self.buffer.dtype)
        if lanes > 1:  # of a vector of elements each has its own value, or all have one
            given = given if given.lanes > 1 else E.Broadcast(given, lanes)
            given = ops.cast(given, dtypes.with_lanes(self.buffer.dtype, lanes))
        else:
            given = ops.cast(given, self.buffer.dtype)
        self._builder.emit(S.BufferStore(self.buffer, given, indices))


class IRBuilder:
    """Collects statements; `get` returns them."""

    def __init__(self) -> None:
        self._stack: list[list[Callable[[S.Stmt], S.Stmt] | S.Stmt]] = [[]]

    def emit(self, stmt: Any) -> None:
        """Add a statement, or a call for its effect."""
        if isinstance(stmt, PrimExpr):
            stmt = S.Evaluate(stmt)
        self._stack[-1].append(stmt)

    def _close(self) -> S.Stmt:
        """Build the innermost block; what wraps the rest of it (allocate, let) is a function."""
        result: S.Stmt = S.NOP
        for item in reversed(self._stack.pop()):
            result = S.seq((item, result)) if isinstance(item, S.Stmt) else item(result)
        return result

    @contextmanager
    def for_range(
        self,
        begin: PrimExprLike,
        end: PrimExprLike,
        name: str = "i",
        dtype: str | None = None,
        kind: str = "serial",
        for_type: str | None = None,
    ) -> Iterator[Var]:
        """Loop over [begin, end); `for_type` is what `kind` was called once.

        The variable is int32, int64 where a constant bound needs it, or of `dtype`; LoweringError
        for a constant that is beyond that.
        """
        kind = kind if for_type is None else for_type
        first, extent = ops.as_expr(begin), ops.sub(end, begin)
        bounds = [value for value in (first, extent) if isinstance(value, IntImm)]
        if dtype is None:
            low, high = dtypes.int_range("int32")
            dtype = "int32" if all(low <= b.value <= high for b in bounds) else "int64"
        low, high = dtypes.int_range(dtype)
        for bound in bounds:
            if not low <= bound.value <= high:
                raise LoweringError(
                    f"the loop {name!r} has a bound of {bound.value}, which its variable of "
                    f"{dtype} cannot count to; leave dtype out, or give int64"
                )
        var = Var(name, dtype)
        self._stack.append([])
        yield var
        body = self._close()
        kind = {"vectorize": "vectorized", "unroll": "unrolled"}.get(kind, kind)
        self.emit(S.For(var, ops.cast(first, dtype), ops.cast(extent, dtype), kind, body))

    @contextmanager
    def while_loop(self, condition: PrimExprLike) -> Iterator[None]:
        """Repeat while the condition holds."""
        self._stack.append([])
        yield
        self.emit(S.While(ops.as_expr(condition), self._close()))

    @contextmanager
    def if_scope(self, condition: PrimExprLike) -> Iterator[None]:
        """Run the block where the condition holds."""
        self._stack.append([])
        yield
        self.emit(S.IfThenElse(ops.as_expr(condition), self._close()))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Run the block where the condition of the if_scope just before does not hold."""
        last = self._stack[-1][-1] if self._stack[-1] else None
        if not isinstance(last, S.IfThenElse) or last.else_case is not None:
            raise LoweringError("else_scope must follow directly after an if_scope")
        self._stack.append([])
        yield
        other = self._close()
        self._stack[-1][-1] = last.replace(else_case=other)

    def allocate(
        self, dtype: str, shape: ShapeLike, name: str = "buf", scope: str = ""
    ) -> BufferVar:
        """Return memory that exists for the rest of the block."""
        buffer = decl_buffer(shape, dtype, name, scope=scope or "global")
        self._stack[-1].append(lambda body: S.Allocate(buffer, body))
        return BufferVar(self, buffer)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "global") -> BufferVar:
        """Return an argument of the function that is made: memory whose size the caller knows."""
        return BufferVar(self, decl_buffer((Var(f"{name}_size", "int32"),), content_type, name,
                                           scope=scope))  # fmt: skip

    def new_scope(self) -> Any:
        """Return a block in which what is allocated lives; ``with ib.new_scope():``."""
        return self._scope()

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self._stack.append([])
        yield
        self.emit(self._close())

    def let(self, name: str, value: PrimExprLike) -> Var:
        """Return a variable that stands for `value` for the rest of the block."""
        given = ops.as_expr(value)
        var = Var(name, given.dtype)
        self._stack[-1].append(lambda body: S.LetStmt(var, given, body))
        return var

    def scope_attr(self, node: object, key: str, value: PrimExprLike) -> None:
        """Put a note for later passes on the rest of the block.

        A `thread_extent` of the number 0 is one of 1, as classic TVM launches it.
        """
        if key == "thread_extent" and isinstance(value, int):
            value = max(value, 1)
        given = ops.as_expr(value) if isinstance(value, (int, float, str)) else value
        self._stack[-1].append(lambda body: S.AttrStmt(key, node, given, body))

    def buffer_ptr(self, buffer: Buffer) -> BufferVar:
        """Return `buffer` in a form that Python can index."""
        return BufferVar(self, buffer)

    def likely(self, condition: PrimExprLike) -> PrimExpr:
        """Mark a condition as mostly true."""
        return E.Call("bool", "likely", (ops.as_expr(condition),))

    def get(self) -> S.Stmt:
        """Return everything that was emitted, as one statement."""
        if len(self._stack) != 1:
            raise LoweringError("a with block of the IR builder is still open")
        result = self._close()
        self._stack.append([])
        return result


def create() -> IRBuilder:
    """Return a new builder."""
    return IRBuilder()
