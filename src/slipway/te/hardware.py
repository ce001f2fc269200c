"""Hardware intrinsics for s[T].tensorize: one declaration each.

A declaration holds the meaning (a te compute), the LLVM intrinsic that does it, and the processor
features it needs.  `hardware_intrinsic(name, target)` makes the TensorIntrin; `available(target)`
lists the names a target can run.  Every one is a sum over small integers or bfloat16 pairs::

    dot:     c[i]    += sum over k of a[k] * b[i, k]
    matmul:  c[i, j] += sum over k of a[i, k] * b[j, k]

`b` must be contiguous: pack weights as [.., lanes, k] (cache_read or a compute of its own).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slipway import dtypes
from slipway.errors import TargetError, did_you_mean
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import PrimExpr
from slipway.target import Target
from slipway.te.declare import compute, placeholder
from slipway.te.reduction import reduce_axis
from slipway.te.reduction import sum as te_sum
from slipway.te.tensor import Tensor
from slipway.te.tensor_intrin import TensorIntrin, decl_tensor_intrin


@dataclass(frozen=True)
class HardwareIntrinsic:
    """One instruction: shapes and types of its meaning, its LLVM name, the features it needs.

    `rows` is 0 for a dot product of one vector `a` with `columns` rows of `b`; otherwise the
    instruction multiplies a rows x depth by a columns x depth matrix.
    """

    name: str
    llvm: str
    architectures: tuple[str, ...]
    features: tuple[str, ...]
    rows: int
    columns: int
    depth: int
    a_dtype: str
    b_dtype: str
    c_dtype: str
    operand: str = ""  # dtype in which the instruction takes its packed operands
    flags: tuple[int, ...] = ()  # constants in front of its arguments
    sum_last: bool = False  # the running sum is its last argument, not its first

    def meaning(self) -> Tensor:
        """Return the te compute that says what the instruction computes."""
        vector = self.rows == 0
        a = placeholder((self.depth,) if vector else (self.rows, self.depth), self.a_dtype, "a")
        b = placeholder((self.columns, self.depth), self.b_dtype, "b")
        k = reduce_axis((0, self.depth), "k")

        def wide(value: PrimExpr) -> PrimExpr:
            return ops.cast(value, self.c_dtype)

        if vector:
            return compute(  # type: ignore[no-any-return]
                (self.columns,), lambda i: te_sum(wide(a[k]) * wide(b[i, k]), axis=k), "c"
            )
        return compute(  # type: ignore[no-any-return]
            (self.rows, self.columns),
            lambda i, j: te_sum(wide(a[i, k]) * wide(b[j, k]), axis=k),
            "c",
        )

    def statements(self, ins: list[Buffer], outs: list[Buffer]) -> tuple[S.Stmt, S.Stmt, S.Stmt]:
        """Return (body, reset, update) on the given buffers."""
        a, b, c = ins[0], ins[1], outs[0]
        lanes = max(self.rows, 1) * self.columns
        here = _all_of(c, lanes)
        zero = ops.const(0, dtypes.with_lanes(self.c_dtype, lanes))
        if lanes == 1:
            zero = ops.const(0, self.c_dtype)
        reset = S.BufferStore(c, zero, here)
        left = E.BufferLoad(a, _all_of(a, max(self.rows, 1) * self.depth))
        right = E.BufferLoad(b, _all_of(b, self.columns * self.depth))
        if self.rows == 0 and self.columns > 1:
            word = dtypes.make("int", dtypes.bits_of(self.a_dtype) * self.depth)
            left = _reinterpret(left, word)  # type: ignore[assignment]
            left = E.Broadcast(left, self.columns)  # type: ignore[assignment]
        operands = [_reinterpret(v, self.operand or v.dtype) for v in (left, right)]
        old = E.BufferLoad(c, here)
        result = dtypes.with_lanes(self.c_dtype, lanes)
        flags = [ops.const(f) for f in self.flags]
        order = (*operands, old) if self.sum_last else (old, *operands)
        arguments = (*flags, *order)
        call = E.Call(result, "call_llvm_pure_intrin", (E.StringImm(self.llvm), *arguments))
        update = S.BufferStore(c, call, here)
        return S.seq((reset, update)), reset, update


def _all_of(buffer: Buffer, lanes: int) -> tuple[PrimExpr, ...]:
    """Indices of the first `lanes` elements of a buffer, as one vector."""
    zero = ops.const(0)
    last: PrimExpr = zero if lanes == 1 else E.Ramp(zero, ops.const(1), lanes)
    return (*[zero] * (buffer.ndim - 1), last)


def _reinterpret(value: PrimExpr, dtype: str) -> PrimExpr:
    return value if value.dtype == dtype else E.Call(dtype, "reinterpret", (value,))


_X86, _ARM64, _ARM32 = ("x86_64",), ("aarch64",), ("arm", "armv7", "thumb", "armv7l")


_HELIUM = ("thumb", "thumbv8.1m.main", "arm")


def _neon(
    name: str, llvm: str, feature: str, rows: int, depth: int, kind: str
) -> HardwareIntrinsic:
    columns = 2 if rows else 4
    wide = "uint32" if kind == "uint8" else "int32"
    return HardwareIntrinsic(
        name, llvm, _ARM64, (feature,), rows, columns, depth, kind, kind, wide, f"{kind}x16"
    )


INTRINSICS: dict[str, HardwareIntrinsic] = {
    entry.name: entry
    for entry in (
        HardwareIntrinsic(
            "x86.vnni", "llvm.x86.avx512.vpdpbusd.512", _X86, ("avx512vnni",),
            0, 16, 4, "uint8", "int8", "int32", "int8x64",
        ),
        HardwareIntrinsic(
            "x86.vnni.256", "llvm.x86.avx512.vpdpbusd.256", _X86, ("avx512vnni", "avx512vl"),
            0, 8, 4, "uint8", "int8", "int32", "int8x32",
        ),
        HardwareIntrinsic(
            "x86.bf16", "llvm.x86.avx512bf16.dpbf16ps.512", _X86, ("avx512bf16",),
            0, 16, 2, "bfloat16", "bfloat16", "float32", "bfloat16x32",
        ),
        _neon("neon.sdot", "llvm.aarch64.neon.sdot.v4i32.v16i8", "dotprod", 0, 4, "int8"),
        _neon("neon.udot", "llvm.aarch64.neon.udot.v4i32.v16i8", "dotprod", 0, 4, "uint8"),
        _neon("neon.smmla", "llvm.aarch64.neon.smmla.v4i32.v16i8", "i8mm", 2, 8, "int8"),
        _neon("neon.ummla", "llvm.aarch64.neon.ummla.v4i32.v16i8", "i8mm", 2, 8, "uint8"),
        HardwareIntrinsic(
            "arm.smlad", "llvm.arm.smlad", _ARM32, ("dsp",),
            0, 1, 2, "int16", "int16", "int32", "int32", sum_last=True,
        ),
        HardwareIntrinsic(
            "mve.vmladava.s8", "llvm.arm.mve.vmldava.v16i8", _HELIUM, ("mve",),
            0, 1, 16, "int8", "int8", "int32", "int8x16", flags=(0, 0, 0),
        ),
        HardwareIntrinsic(
            "mve.vmladava.u8", "llvm.arm.mve.vmldava.v16i8", _HELIUM, ("mve",),
            0, 1, 16, "uint8", "uint8", "uint32", "uint8x16", flags=(1, 0, 0),
        ),
        HardwareIntrinsic(
            "mve.vmladava.s16", "llvm.arm.mve.vmldava.v8i16", _HELIUM, ("mve",),
            0, 1, 8, "int16", "int16", "int32", "int16x8", flags=(0, 0, 0),
        ),
    )
}  # fmt: skip


def available(target: Target) -> list[str]:
    """Return the names of the intrinsics that `target` can run."""
    return [name for name, entry in INTRINSICS.items() if not _missing(entry, target)]


def _missing(entry: HardwareIntrinsic, target: Target) -> list[str]:
    if target.parsed_triple.arch not in entry.architectures:
        return [f"a processor of kind {entry.architectures[0]}"]
    return [f for f in entry.features if not target.has_feature(f)]


def hardware_intrinsic(name: str, target: Target | str | None = None) -> TensorIntrin:
    """Return the TensorIntrin of a hardware instruction.

    With a target, raises TargetError when it lacks the features; also for an unknown name.
    """
    entry = INTRINSICS.get(name)
    if entry is None:
        raise TargetError(
            f"there is no hardware intrinsic {name!r}.{did_you_mean(name, INTRINSICS)} "
            f"Known: {', '.join(INTRINSICS)}"
        )
    if target is not None:
        chosen = target if isinstance(target, Target) else Target(target)
        lacking = _missing(entry, chosen)
        if lacking:
            raise TargetError(
                f"the intrinsic {name!r} needs {', '.join(lacking)}, which the target {chosen} "
                f"has not. Add -mattr=+{lacking[0]} if the processor has it; this target can use: "
                f"{', '.join(available(chosen)) or 'none'}"
            )
    result = entry.meaning()
    binds: dict[Tensor, Any] = {}
    for tensor in (*result.op.input_tensors, result):
        strides, step = [], 1
        for extent in reversed(tensor.shape):
            strides.append(step)
            step *= int(extent)
        offset = E.Var(f"{tensor.name}.offset")
        binds[tensor] = decl_buffer(
            tensor.shape, tensor.dtype, tensor.name, strides=strides[::-1], elem_offset=offset
        )
    return decl_tensor_intrin(result.op, entry.statements, name, binds)
