"""te.extern: parts of a program computed by functions from outside, here one in Python."""

import numpy as np

import slipway as tvm
from slipway import te


@tvm.register_func("example.sort_rows")
def sort_rows(source, target):
    """Sort every row; the tensors are views of the program's own memory."""
    target[:] = np.sort(source.numpy(), axis=1)


n, m = 6, 9
A = te.placeholder((n, m), name="A")
B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")
C = te.extern(
    (n, m),
    [B],
    lambda ins, outs: tvm.tir.call_packed("example.sort_rows", ins[0], outs[0]),
    name="C",
)
D = te.compute((n, m), lambda i, j: C[i, j] - C[i, 0], name="D")

s = te.create_schedule(D.op)
s[D].vectorize(D.op.axis[1])
func = tvm.build(s, [A, D], target="llvm")
a = np.random.default_rng(0).random((n, m)).astype("float32")
out = tvm.nd.array(np.zeros((n, m), "float32"))
func(tvm.nd.array(a), out)
want = np.sort(a * 2, axis=1)
np.testing.assert_allclose(out.numpy(), want - want[:, :1], rtol=1e-6)
print(tvm.lower(s, [A, D], simple_mode=True))


# Statements may also be written by hand, with the IR builder.
def running_maximum(ins, outs):
    """out[i] = the largest of the first i + 1 values."""
    ib = tvm.tir.ir_builder.create()
    x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    y[0] = x[0]
    with ib.for_range(1, n * m, name="i") as i:
        with ib.if_scope(x[i] > y[i - 1]):
            y[i] = x[i]
        with ib.else_scope():
            y[i] = y[i - 1]
    return ib.get()


X = te.placeholder((n * m,), name="X")
Y = te.extern((n * m,), [X], running_maximum, name="Y")
s = te.create_schedule(Y.op)
func = tvm.build(s, [X, Y], target="llvm")
out = tvm.nd.array(np.zeros(n * m, "float32"))
func(tvm.nd.array(a.reshape(-1)), out)
np.testing.assert_array_equal(out.numpy(), np.maximum.accumulate(a.reshape(-1)))
