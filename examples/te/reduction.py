"""Reductions: sums, a reducer of one's own, and partial sums in vector lanes with rfactor."""

import numpy as np

import slipway as tvm
from slipway import te

rng = np.random.default_rng(0)


def run(s, args, *inputs, shape):
    """Compile for this machine, run, and return the output."""
    func = tvm.build(s, args, target="llvm")
    out = tvm.nd.array(np.zeros(shape, "float32"))
    func(*[tvm.nd.array(x) for x in inputs], out)
    return out.numpy()


# B[i] = sum over k of A[i, k]: a reduction axis says what is summed over.
n, m = 64, 256
A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, m), name="k")
B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
s = te.create_schedule(B.op)
x = rng.random((n, m)).astype("float32")
np.testing.assert_allclose(run(s, [A, B], x, shape=(n,)), x.sum(1), rtol=1e-5)

# A reduction axis can be split and reordered like any other ...
s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
io, ii = s[B].split(B.op.axis[0], factor=32)
s[B].reorder(io, ko, ii, ki)
np.testing.assert_allclose(run(s, [A, B], x, shape=(n,)), x.sum(1), rtol=1e-5)

# ... but its steps depend on each other.  rfactor makes one of its loops a data axis of a stage
# of partial sums, which can then be vectorised; the partial sums are added up afterwards.
s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
BF = s.rfactor(B, ki, 1)
s[BF].compute_at(s[B], s[B].op.axis[0])
s[BF].reorder(s[BF].op.reduce_axis[0], s[BF].op.axis[1])
s[BF].vectorize(s[BF].op.axis[1])
np.testing.assert_allclose(run(s, [A, B], x, shape=(n,)), x.sum(1), rtol=1e-5)
assert "16 x float" in tvm.build(s, [A, B], target="llvm").get_source("ll")

# A two-dimensional convolution is a reduction over two axes.
size = 20
image, kernel = te.placeholder((size, size), name="image"), te.placeholder((3, 3), name="kernel")
dy, dx = te.reduce_axis((0, 3), name="dy"), te.reduce_axis((0, 3), name="dx")
conv = te.compute(
    (size - 2, size - 2),
    lambda i, j: te.sum(image[i + dy, j + dx] * kernel[dy, dx], axis=[dy, dx]),
    name="conv",
)
s = te.create_schedule(conv.op)
p, w = rng.random((size, size)).astype("float32"), rng.random((3, 3)).astype("float32")
want = sum(p[i : size - 2 + i, j : size - 2 + j] * w[i, j] for i in range(3) for j in range(3))
np.testing.assert_allclose(
    run(s, [image, kernel, conv], p, w, shape=(size - 2, size - 2)), want, rtol=1e-5
)

# A reducer of one's own: a function of two values, and the value to start from.
product = te.comm_reducer(lambda a, b: a * b, lambda t: te.const(1, t), name="product")
k = te.reduce_axis((0, m), name="k")
P = te.compute((n,), lambda i: product(A[i, k], axis=k), name="P")
s = te.create_schedule(P.op)
near_one = (1 + rng.random((n, m)) / m).astype("float32")
np.testing.assert_allclose(run(s, [A, P], near_one, shape=(n,)), near_one.prod(1), rtol=1e-4)
print(tvm.lower(s, [A, P], simple_mode=True))
