"""Hardware intrinsics for s[T].tensorize: TensorIntrins of the declarations.

ir/hardware.py declares them: the meaning, how LLVM and C spell them, the features they need.
`hardware_intrinsic(name, target)` makes the TensorIntrin; `available(target)` lists the names a
target can run.

`b` must be contiguous: pack weights as [.., lanes, k] (cache_read or a compute of its own).
"""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.errors import TargetError, did_you_mean
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import PrimExpr
from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.target import Target
from slipway.te.declare import compute, placeholder
from slipway.te.reduction import reduce_axis
from slipway.te.reduction import sum as te_sum
from slipway.te.tensor import Tensor
from slipway.te.tensor_intrin import TensorIntrin, decl_tensor_intrin


def byte_of(word: PrimExpr, k: PrimExpr) -> PrimExpr:
    """Return byte k of an int32, 0 the lowest, as what an intrinsic on words takes for it."""
    return ops.bitwise_and(ops.shift_right(word, ops.mul(k, 8)), 255)


def meaning(entry: HardwareIntrinsic, words: bool = False) -> Tensor:
    """Return the te compute that says what the instruction computes.

    With `words`, `a` is an int32 that holds the elements of a dot product of four bytes.
    """
    vector = entry.rows == 0
    shape = (entry.depth,) if vector else (entry.rows, entry.depth)
    if entry.taps:
        shape = (entry.depth, entry.columns)
    a = placeholder((1,) if words else shape, "int32" if words else entry.a_dtype, "a")
    b = placeholder((entry.columns, entry.depth), entry.b_dtype, "b")
    k = reduce_axis((0, entry.depth), "k")
    at = entry.depth - 1 - k.var if entry.mirrored else k

    def product(left: PrimExpr, right: PrimExpr) -> PrimExpr:
        wide = ops.cast(left, entry.c_dtype) * ops.cast(right, entry.c_dtype)
        return te_sum(wide, axis=k)  # type: ignore[no-any-return]

    if entry.taps:
        made = compute((entry.columns,), lambda i: product(a[k, i], b[i, k]), "c")
    elif words:

        def sums(i: PrimExpr) -> PrimExpr:
            wide = byte_of(a[0], k.var) * ops.cast(b[i, k], entry.c_dtype)
            return te_sum(wide, axis=k)  # type: ignore[no-any-return]

        made = compute((entry.columns,), sums, "c")
    elif vector:
        made = compute((entry.columns,), lambda i: product(a[at], b[i, k]), "c")
    else:
        made = compute((entry.rows, entry.columns), lambda i, j: product(a[i, at], b[j, k]), "c")
    return made  # type: ignore[no-any-return]


def _statements(
    entry: HardwareIntrinsic, ins: list[Buffer], outs: list[Buffer]
) -> tuple[S.Stmt, S.Stmt, S.Stmt]:
    """Return (body, reset, update) on the given buffers."""
    (a, b), c = ins, outs[0]
    here = _first(c, entry.c_size)
    kind = dtypes.with_lanes(entry.c_dtype, entry.c_size)
    reset = S.BufferStore(c, ops.const(0, kind), here)
    if a.dtype == "int32":  # four bytes
        four = dtypes.with_lanes(entry.a_dtype, entry.depth)
        left: list[PrimExpr] = [E.Call(four, "reinterpret", (E.BufferLoad(a, (ops.const(0),)),))]
    else:
        left = [E.BufferLoad(a, _first(a, entry.a_size))]
    if entry.taps:
        run = E.Ramp(ops.const(0), ops.const(1), entry.columns)
        left = [E.BufferLoad(a, (ops.const(row), run)) for row in range(entry.depth)]
    right = E.BufferLoad(b, _first(b, entry.b_size))
    update = S.BufferStore(c, entry.call(*left, right, E.BufferLoad(c, here)), here)
    return S.seq((reset, update)), reset, update


def _first(buffer: Buffer, lanes: int) -> tuple[PrimExpr, ...]:
    """Indices of the first `lanes` elements of a buffer, as one vector."""
    zero = ops.const(0)
    last: PrimExpr = zero if lanes == 1 else E.Ramp(zero, ops.const(1), lanes)
    return (*[zero] * (buffer.ndim - 1), last)


def available(target: Target) -> list[str]:
    """Return the names of the intrinsics that `target` can run."""
    return [name for name, entry in HARDWARE.items() if not entry.missing(target)]


def hardware_intrinsic(
    name: str, target: Target | str | None = None, words: bool = False
) -> TensorIntrin:
    """Return the TensorIntrin of a hardware instruction.

    With `words`, for LLVM, an instruction on four bytes takes them from an int32 (`byte_of`).
    With a target, raises TargetError when it lacks the features; also for an unknown name.
    """
    entry = HARDWARE.get(name)
    if entry is None:
        raise TargetError(
            f"there is no hardware intrinsic {name!r}.{did_you_mean(name, HARDWARE)} "
            f"Known: {', '.join(HARDWARE)}"
        )
    if target is not None:
        chosen = target if isinstance(target, Target) else Target(target)
        lacking = entry.missing(chosen)
        if lacking:
            raise TargetError(
                f"the intrinsic {name!r} needs {', '.join(lacking)}, which the target {chosen} "
                f"has not. Add -mattr=+{lacking[0]} if the processor has it; this target can use: "
                f"{', '.join(available(chosen)) or 'none'}"
            )
    result = meaning(entry, words)
    binds: dict[Tensor, Any] = {}
    for tensor in (*result.op.input_tensors, result):
        strides: list[Any] = []
        step = 1
        for extent in reversed(tensor.shape):
            strides.append(step)
            step *= int(extent)
        if entry.taps and tensor is result.op.input_tensors[0]:
            strides = [1, E.Var("a.stride")]
        offset = E.Var(f"{tensor.name}.offset")
        binds[tensor] = decl_buffer(
            tensor.shape, tensor.dtype, tensor.name, strides=strides[::-1], elem_offset=offset
        )
    return decl_tensor_intrin(
        result.op, lambda ins, outs: _statements(entry, ins, outs), name, binds
    )
