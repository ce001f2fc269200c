"""The schedule primitives one by one: what each does to the loops."""

import numpy as np

import slipway as tvm
from slipway import te


def build_and_compare(s, args, *inputs, want):
    """Compile for this machine, run, and compare with NumPy."""
    func = tvm.build(s, args, target="llvm")
    out = tvm.nd.array(np.zeros(want.shape, "float32"))
    func(*[tvm.nd.array(x) for x in inputs], out)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5)


def loops(s, args):
    """The readable loops of a schedule."""
    return str(tvm.lower(s, args, simple_mode=True))


m, n = 48, 80
x = np.random.default_rng(0).random((m, n)).astype("float32")
y = np.random.default_rng(1).random((m, n)).astype("float32")
A, B = te.placeholder((m, n), name="A"), te.placeholder((m, n), name="B")
C = te.compute((m, n), lambda i, j: A[i, j] * B[i, j], name="C")
D = te.compute((m, n), lambda i, j: C[i, j] + 1.0, name="D")

# The default schedule: one loop nest per stage, row by row.
s = te.create_schedule(D.op)
assert loops(s, [A, B, D]).count("for ") == 4
build_and_compare(s, [A, B, D], x, y, want=x * y + 1)

# split: one loop becomes two; `nparts` fixes the outer one instead of the inner.
s = te.create_schedule(D.op)
outer, inner = s[D].split(D.op.axis[0], factor=32)
assert "range(2)" in loops(s, [A, B, D])
assert "if likely(i.outer * 32 + i.inner < 48)" in loops(s, [A, B, D])
build_and_compare(s, [A, B, D], x, y, want=x * y + 1)

# tile: two splits and a reorder.  fuse: the opposite of split.
s = te.create_schedule(D.op)
io, jo, ii, ji = s[D].tile(D.op.axis[0], D.op.axis[1], x_factor=8, y_factor=16)
fused = s[D].fuse(io, jo)
assert "in range(30)" in loops(s, [A, B, D])
build_and_compare(s, [A, B, D], x, y, want=x * y + 1)

# compute_at: compute C where D needs it, just as much as it needs.
s[C].compute_at(s[D], fused)
assert "allocate C: float32[8, 16]" in loops(s, [A, B, D])
build_and_compare(s, [A, B, D], x, y, want=x * y + 1)

# compute_inline: no storage for C at all.
s = te.create_schedule(D.op)
s[C].compute_inline()
assert "D[i, j] = A[i, j] * B[i, j] + 1f" in loops(s, [A, B, D])

# vectorize, unroll, parallel: how the steps of a loop run.
j_outer, j_inner = s[D].split(D.op.axis[1], factor=16)
s[D].vectorize(j_inner)
s[D].unroll(j_outer)
s[D].parallel(D.op.axis[0])
text = loops(s, [A, B, D])
assert "parallel for i" in text
assert "vectorized for j.inner" in text
build_and_compare(s, [A, B, D], x, y, want=x * y + 1)

# The schedule is data: replayed from JSON it gives the same loops.
from slipway.te.steps import apply_steps, schedule_to_json, steps_from_json  # noqa: E402

again = apply_steps(te.create_schedule(D.op), steps_from_json(schedule_to_json(s)))
assert loops(again, [A, B, D]) == text
print(text)
