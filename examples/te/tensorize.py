"""Tensorize: let a declared hardware operation do the inner loops.

The operation here is a matrix-vector product, whose statements are loops; a real one would call
an instruction of the processor.  What matters: it is declared once, with its meaning, and
tensorize checks that the loops it replaces mean the same.
"""

import numpy as np

import slipway as tvm
from slipway import te
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir.expr import Var
from slipway.ir.stmt import BufferStore, For, seq


def gemv(rows, depth):
    """c[i] (+)= sum over k of b[i, k] * a[k]."""
    a, b = te.placeholder((depth,), name="a"), te.placeholder((rows, depth), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")

    def loop(extent, body):
        i = Var("i")
        return For(i, ops.const(0), ops.const(extent), "serial", body(i))

    def statements(ins, outs):
        vector, matrix, result = ins[0], ins[1], outs[0]

        def add(i, k):
            return BufferStore(result, result[i] + vector[k] * matrix[i, k], (i,))

        reset = loop(rows, lambda i: BufferStore(result, ops.const(0.0), (i,)))
        update = loop(rows, lambda i: loop(depth, lambda k: add(i, k)))
        return seq([reset, update]), reset, update

    return te.decl_tensor_intrin(c.op, statements, name="gemv")


n, m, depth, factor = 20, 32, 64, 16
A, B = te.placeholder((n, depth), name="A"), te.placeholder((m, depth), name="B")
k = te.reduce_axis((0, depth), name="k")
C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
s = te.create_schedule(C.op)
i, j = C.op.axis
jo, ji = s[C].split(j, factor=factor)
ko, ki = s[C].split(k, factor=factor)
s[C].reorder(i, jo, ko, ji, ki)
s[C].tensorize(ji, gemv(factor, factor))

func = tvm.build(s, [A, B, C], target="llvm")
rng = np.random.default_rng(0)
a, b = rng.random((n, depth)).astype("float32"), rng.random((m, depth)).astype("float32")
out = tvm.nd.array(np.zeros((n, m), "float32"))
func(tvm.nd.array(a), tvm.nd.array(b), out)
np.testing.assert_allclose(out.numpy(), a @ b.T, rtol=1e-5)

# An operation that means something else is refused, with both formulas in the message.
D = te.compute((n, m), lambda i, j: te.sum(A[i, k] + B[j, k], axis=k), name="D")
s = te.create_schedule(D.op)
jo, ji = s[D].split(D.op.axis[1], factor=factor)
s[D].tensorize(ji, gemv(factor, depth))
try:
    tvm.lower(s, [A, B, D])
except ScheduleError as error:
    print(error)
else:
    raise AssertionError("the formulas differ, and nobody noticed")
