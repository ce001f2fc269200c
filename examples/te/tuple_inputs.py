"""Several values computed together: tuples of outputs, and reductions over tuples (argmax)."""

import numpy as np

import slipway as tvm
from slipway import te

m, n = 24, 40
rng = np.random.default_rng(0)

# One loop nest, two outputs.
A, B = te.placeholder((m, n), name="A"), te.placeholder((m, n), name="B")
both = te.compute((m, n), lambda i, j: (A[i, j] + 2.0, B[i, j] * 3.0), name="both")
s = te.create_schedule(both[0].op)
func = tvm.build(s, [A, B, both[0], both[1]], target="llvm")
x, y = (rng.random((m, n)).astype("float32") for _ in range(2))
p, q = (tvm.nd.array(np.zeros((m, n), "float32")) for _ in range(2))
func(tvm.nd.array(x), tvm.nd.array(y), p, q)
np.testing.assert_allclose(p.numpy(), x + 2, rtol=1e-6)
np.testing.assert_allclose(q.numpy(), y * 3, rtol=1e-6)


# argmax reduces pairs (index, value): the pair with the greater value stays.
def combine(left, right):
    """Keep the pair with the greater value; on a tie the one met first."""
    keep = left[1] >= right[1]
    return tvm.te.select(keep, left[0], right[0]), tvm.te.select(keep, left[1], right[1])


def identity(index_type, value_type):
    """The pair that loses against every other."""
    return te.const(-1, index_type), te.min_value(value_type)


argmax = te.comm_reducer(combine, identity, name="argmax")
index, value = te.placeholder((m, n), "int32", name="index"), te.placeholder((m, n), name="value")
k = te.reduce_axis((0, n), name="k")
where, top = te.compute((m,), lambda i: argmax((index[i, k], value[i, k]), axis=k), name="top")
s = te.create_schedule(where.op)
func = tvm.build(s, [index, value, where, top], target="llvm")
numbers = np.tile(np.arange(n, dtype="int32"), (m, 1))
got, best = tvm.nd.array(np.zeros(m, "int32")), tvm.nd.array(np.zeros(m, "float32"))
func(tvm.nd.array(numbers), tvm.nd.array(x), got, best)
np.testing.assert_array_equal(got.numpy(), x.argmax(1))
np.testing.assert_array_equal(best.numpy(), x.max(1))
print(tvm.lower(s, [index, value, where, top], simple_mode=True))
