"""One compiled kernel for every size: shapes with variables."""

import numpy as np

import slipway as tvm
from slipway import te

n, m = te.size_var("n"), te.size_var("m")
A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, m), name="k")
B = te.compute((n,), lambda i: te.sum(A[i, k] * 2.0, axis=k), name="B")
s = te.create_schedule(B.op)
outer, inner = s[B].split(B.op.axis[0], factor=8)
s[B].parallel(outer)
func = tvm.build(s, [A, B], target="llvm")

for size in ((1, 1), (7, 30), (8, 3), (100, 9)):
    x = np.random.default_rng(0).random(size).astype("float32")
    out = tvm.nd.array(np.zeros(size[0], "float32"))
    func(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), 2 * x.sum(1), rtol=1e-5)
print(tvm.lower(s, [A, B], simple_mode=True))
