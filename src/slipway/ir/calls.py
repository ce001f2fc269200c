"""Calls out of loops: packed functions, C symbols, LLVM intrinsics (classic ``tir.call_*``).

A Buffer among the arguments becomes what the callee can take: a tensor for a packed function, a
pointer to its first element for a C symbol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import ArgumentTypeError
from slipway.ir.buffer import Buffer
from slipway.ir.expr import BufferLoad, Call, IntImm, PrimExpr, Shuffle, StringImm
from slipway.ir.ops import add, as_expr, call_intrin, floordiv, mul, sub
from slipway.ir.stmt import Evaluate, SeqStmt, Stmt, seq

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike


def call_packed(name: str, *args: PrimExprLike, dtype: str = "int32") -> PrimExpr:
    """Call the packed function registered as `name`; Buffers are handed over as tensors."""
    return Call(dtype, "call_packed", (StringImm(name), *(_tensor(a) for a in args)))


def _tensor(value: Any) -> PrimExpr:
    if isinstance(value, Buffer):
        return Call("handle", "tensor_view", (value.data, *value.shape))
    return as_expr(value)


def _pointer(value: Any) -> PrimExpr:
    return value.access_ptr("rw") if isinstance(value, Buffer) else as_expr(value)


def _returned(dtype: str) -> str:
    """Return the dtype of what a C function returns; "" of one that returns nothing."""
    return "" if dtype in ("", "void") else dtypes.canonical(dtype)


def call_extern(dtype: str, func_name: str, *args: PrimExprLike | Buffer) -> PrimExpr:
    """Call the C function `func_name`; Buffers are handed over as pointers."""
    arguments = (StringImm(func_name), *(_pointer(a) for a in args))
    return Call(_returned(dtype), "call_extern", arguments)


def call_pure_extern(dtype: str, func_name: str, *args: PrimExprLike | Buffer) -> PrimExpr:
    """Call a C function that has no effect besides its result."""
    arguments = (StringImm(func_name), *(_pointer(a) for a in args))
    return Call(dtypes.canonical(dtype), "call_pure_extern", arguments)


def prefetch(buffer: Buffer, indices: tuple[PrimExpr, ...], level: int = 1) -> Evaluate:
    """Ask for the memory of ``buffer[indices]``, to be read and kept in caches from `level` on."""
    address = Call("handle", "address_of", (BufferLoad(buffer, indices),))
    read, keep, data = (as_expr(v) for v in (0, 4 - level, 1))
    return Evaluate(Call("int32", "prefetch", (address, read, keep, data)))


def ret(value: PrimExprLike) -> PrimExpr:
    """Return a number from the function, as a statement: ``tir.Evaluate(tir.ret(x + y))``."""
    given = as_expr(value)
    return Call(given.dtype, "ret", (given,))


def _llvm(op: str, dtype: str, name: str, args: tuple[Any, ...]) -> PrimExpr:
    given = [as_expr(a) for a in args]
    # Classic TVM puts the number of signature types in front, as a uint32 constant.
    if given and isinstance(given[0], IntImm) and given[0].dtype == "uint32":
        given = given[1:]
    return Call(dtypes.canonical(dtype), op, (StringImm(name), *given))


def call_llvm_intrin(dtype: str, name: str, *args: PrimExprLike) -> PrimExpr:
    """Call the LLVM intrinsic `name`, for its effect."""
    return _llvm("call_llvm_intrin", dtype, name, args)


def call_llvm_pure_intrin(dtype: str, name: str, *args: PrimExprLike) -> PrimExpr:
    """Call the LLVM intrinsic `name`, for its result."""
    return _llvm("call_llvm_pure_intrin", dtype, name, args)


def reinterpret(dtype: str, value: PrimExprLike) -> PrimExpr:
    """Return the bits of a value as another dtype of as many bits, of other lanes too."""
    return Call(dtypes.canonical(dtype), "reinterpret", (as_expr(value),))


def likely(condition: PrimExprLike) -> PrimExpr:
    """Mark a condition as mostly true."""
    return Call("bool", "likely", (as_expr(condition),))


def address_of(element: BufferLoad) -> PrimExpr:
    """Return a pointer to an element of a buffer, given as ``B[i]``."""
    if not isinstance(element, BufferLoad):
        raise ArgumentTypeError(f"address_of takes an element of a buffer, B[i], not {element!r}")
    return Call("handle", "address_of", (element,))


def ceildiv(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Return the quotient rounded up, of whole numbers."""
    return floordiv(add(lhs, sub(rhs, 1)), rhs)


def hypot(x1: PrimExprLike, x2: PrimExprLike) -> PrimExpr:
    """Return the square root of the sum of two squares."""
    total = add(mul(x1, x1), mul(x2, x2))
    return Call(total.dtype, "sqrt", (total,))


def vectorlow(dtype: str, vec: PrimExpr) -> PrimExpr:
    """Return the first half of a vector."""
    return _half(dtype, vec, 0)


def vectorhigh(dtype: str, vec: PrimExpr) -> PrimExpr:
    """Return the second half of a vector."""
    return _half(dtype, vec, 1)


def _half(dtype: str, vec: PrimExpr, which: int) -> PrimExpr:
    lanes = vec.lanes // 2
    made = Shuffle((vec,), tuple(range(which * lanes, (which + 1) * lanes)))
    if vec.lanes % 2 or made.dtype != dtypes.canonical(dtype):
        raise ArgumentTypeError(f"half of a vector of {vec.dtype} is not {dtype}")
    return made


def vectorcombine(dtype: str, vec1: PrimExpr, vec2: PrimExpr) -> PrimExpr:
    """Return a vector of the lanes of two."""
    made = Shuffle((vec1, vec2), tuple(range(vec1.lanes + vec2.lanes)))
    if vec1.dtype != vec2.dtype or made.dtype != dtypes.canonical(dtype):
        raise ArgumentTypeError(f"vectors of {vec1.dtype} and {vec2.dtype} do not make {dtype}")
    return made


def stmt_seq(*args: PrimExpr | Stmt) -> Stmt:
    """Return statements in order; an expression is evaluated for its effect."""
    return seq(a if isinstance(a, Stmt) else Evaluate(as_expr(a)) for a in args)


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """Return the statements of a sequence; of any other statement, itself."""
    return list(stmt.stmts) if isinstance(stmt, SeqStmt) else [stmt]


__all__ = [
    "address_of",
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
    "ceildiv",
    "hypot",
    "likely",
    "reinterpret",
    "stmt_list",
    "stmt_seq",
    "vectorcombine",
    "vectorhigh",
    "vectorlow",
]
