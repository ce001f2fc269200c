"""Recurrences: te.scan computes each step from the ones before."""

import numpy as np

import slipway as tvm
from slipway import te

# state[0] = X[0]; state[t] = state[t - 1] + X[t]: a cumulative sum along the first axis.
m, n = 16, 32
X = te.placeholder((m, n), name="X")
state = te.placeholder((m, n), name="state")
init = te.compute((1, n), lambda _, i: X[0, i], name="init")
update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="update")
total = te.scan(init, update, state, inputs=[X])

s = te.create_schedule(total.op)
s[update].vectorize(update.op.axis[1])  # the time axis runs in order, the others as one likes
func = tvm.build(s, [X, total], target="llvm")
x = np.random.default_rng(0).random((m, n)).astype("float32")
out = tvm.nd.array(np.zeros((m, n), "float32"))
func(tvm.nd.array(x), out)
np.testing.assert_allclose(out.numpy(), np.cumsum(x, axis=0), rtol=1e-5)

# Two states that read each other: Fibonacci-like growth of columns.
first, second = te.placeholder((m, n), name="first"), te.placeholder((m, n), name="second")
init_1 = te.compute((1, n), lambda _, i: X[0, i], name="init_1")
init_2 = te.compute((1, n), lambda _, i: X[0, i] * 2.0, name="init_2")
step_1 = te.compute((m, n), lambda t, i: second[t - 1, i] * 0.5, name="step_1")
step_2 = te.compute((m, n), lambda t, i: second[t - 1, i] * 0.5 + first[t - 1, i], name="step_2")
one, two = te.scan([init_1, init_2], [step_1, step_2], [first, second], inputs=[X])
s = te.create_schedule(one.op)
func = tvm.build(s, [X, one, two], target="llvm")
a, b = (tvm.nd.array(np.zeros((m, n), "float32")) for _ in range(2))
func(tvm.nd.array(x), a, b)
want_1, want_2 = x.copy(), x * 2
for t in range(1, m):
    want_1[t] = want_2[t - 1] * 0.5
    want_2[t] = want_2[t - 1] * 0.5 + want_1[t - 1]
np.testing.assert_allclose(a.numpy(), want_1, rtol=1e-5)
np.testing.assert_allclose(b.numpy(), want_2, rtol=1e-5)
print(tvm.lower(s, [X, one, two], simple_mode=True))
