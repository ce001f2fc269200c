"""Calls out of loops: packed functions, C symbols, LLVM intrinsics (classic ``tir.call_*``).

A Buffer among the arguments becomes what the callee can take: a tensor for a packed function, a
pointer to its first element for a C symbol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.ir.buffer import Buffer
from slipway.ir.expr import BufferLoad, Call, IntImm, PrimExpr, StringImm
from slipway.ir.ops import as_expr, call_intrin
from slipway.ir.stmt import Evaluate

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


def call_extern(dtype: str, func_name: str, *args: PrimExprLike | Buffer) -> PrimExpr:
    """Call the C function `func_name`; Buffers are handed over as pointers."""
    arguments = (StringImm(func_name), *(_pointer(a) for a in args))
    return Call(dtypes.canonical(dtype), "call_extern", arguments)


def call_pure_extern(dtype: str, func_name: str, *args: PrimExprLike | Buffer) -> PrimExpr:
    """Call a C function that has no effect besides its result."""
    arguments = (StringImm(func_name), *(_pointer(a) for a in args))
    return Call(dtypes.canonical(dtype), "call_pure_extern", arguments)


def prefetch(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> Evaluate:
    """Ask for the memory of ``buffer[indices]``, to be read and kept in all caches."""
    address = Call("handle", "address_of", (BufferLoad(buffer, indices),))
    read, keep, data = (as_expr(v) for v in (0, 3, 1))
    return Evaluate(Call("int32", "prefetch", (address, read, keep, data)))


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


__all__ = [
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
]
