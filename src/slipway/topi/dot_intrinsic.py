"""`dp4a`: the tensor intrinsic for sums of four products of bytes, as schedules of GPUs use it.

It is NVIDIA's instruction from sm_61 on, and the same sum by shifts and products elsewhere
(`slipway.ir.instructions.dot4`), so that a schedule with it runs on every target.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway.errors import ArgumentValueError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.instructions.dot4 import BYTES, dot_name, packed
from slipway.te.declare import compute, placeholder
from slipway.te.reduction import reduce_axis
from slipway.te.reduction import sum as te_sum
from slipway.te.tensor_intrin import TensorIntrin, decl_tensor_intrin


def dp4a(
    x_scope: str = "local",
    y_scope: str = "local",
    z_scope: str = "local",
    dtypes: Sequence[str] = ("int8", "int8"),
) -> TensorIntrin:
    """Return the intrinsic of ``z[0] += sum over k of x[k] * y[k]``, k below 4.

    Scopes are those of the buffers that it takes; `dtypes`, of x and y, are int8 or uint8.  The sum
    is of int32, and of uint32 where y is of uint8.
    """
    name = dot_name(*dtypes) if len(dtypes) == 2 else None
    if name is None:
        raise ArgumentValueError(f"dp4a: dtypes must be two of int8 and uint8, got {dtypes!r}")
    kind = "int32" if dtypes[1] == "int8" else "uint32"
    x, y = (placeholder((BYTES,), dtype, n) for n, dtype in zip("xy", dtypes, strict=True))
    k = reduce_axis((0, BYTES), "rc")
    z = compute((1,), lambda _: te_sum(ops.cast(x[k], kind) * ops.cast(y[k], kind), axis=k), "z")

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> tuple[S.Stmt, S.Stmt, S.Stmt]:
        out, here = outs[0], (ops.const(0),)
        words = [packed([E.BufferLoad(b, (ops.const(j),)) for j in range(BYTES)]) for b in ins]

        def added(start: E.PrimExpr) -> S.Stmt:
            total = E.Call("int32", name, (*words, ops.cast(start, "int32")))
            return S.BufferStore(out, ops.cast(total, kind), here)

        reset = S.BufferStore(out, ops.const(0, kind), here)
        return added(ops.const(0)), reset, added(E.BufferLoad(out, here))

    scopes = {x: x_scope, y: y_scope, z: z_scope}
    binds = {
        tensor: decl_buffer(
            tensor.shape, tensor.dtype, tensor.name, scope=scope, strides=[1],
            elem_offset=E.Var(f"{tensor.name}.offset"),
        )
        for tensor, scope in scopes.items()
    }  # fmt: skip
    return decl_tensor_intrin(z.op, statements, "dp4a", binds)
