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

# The statements may call C, which the schedule brings along: it becomes part of the library.
SOURCE = """
int gemv_reset(float* c, int rows) {
  for (int i = 0; i < rows; ++i) { c[i] = 0.0f; }
  return 0;
}
int gemv_update(float* c, float* a, float* b, int rows, int depth, int stride) {
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < depth; ++k) { c[i] += a[k] * b[i * stride + k]; }
  }
  return 0;
}
"""


def gemv_in_c(rows, depth):
    a, b = te.placeholder((depth,), name="a"), te.placeholder((rows, depth), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")

    def statements(ins, outs):
        vector, matrix, result = ins[0], ins[1], outs[0]
        pointers = [result.access_ptr("w"), vector.access_ptr("r"), matrix.access_ptr("r")]
        sizes = [rows, depth, matrix.strides[0]]
        reset = tvm.tir.call_extern("int32", "gemv_reset", pointers[0], rows)
        update = tvm.tir.call_extern("int32", "gemv_update", *pointers, *sizes)
        return [reset, update], reset, update

    return te.decl_tensor_intrin(c.op, statements, name="gemv_in_c")


s = te.create_schedule(C.op)
jo, ji = s[C].split(j, factor=factor)
ko, ki = s[C].split(k, factor=factor)
s[C].reorder(i, jo, ko, ji, ki)
s[C].tensorize(ji, gemv_in_c(factor, factor))
s[C].pragma(jo, "import_c", SOURCE)
out = tvm.nd.array(np.zeros((n, m), "float32"))
tvm.build(s, [A, B, C], target="llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
np.testing.assert_allclose(out.numpy(), a @ b.T, rtol=1e-5)
