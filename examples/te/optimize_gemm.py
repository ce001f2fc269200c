"""How to make a matrix product fast, one primitive at a time.

Every version computes the same numbers; the time of each is printed beside NumPy's.
"""

import time

import numpy as np

import slipway as tvm
from slipway import te

M = N = K = 256
TARGET = "llvm -mcpu=native"
a = np.random.default_rng(0).random((M, K)).astype("float32")
b = np.random.default_rng(1).random((K, N)).astype("float32")
want = a @ b
A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
k = te.reduce_axis((0, K), "k")
C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def evaluate(title, s, args):
    """Compile, check the numbers, print the time."""
    func = tvm.build(s, args, TARGET, name="mmult")
    buffers = [tvm.nd.array(a), tvm.nd.array(b), tvm.nd.array(np.zeros((M, N), "float32"))]
    func(*buffers)
    np.testing.assert_allclose(buffers[2].numpy(), want, rtol=1e-4)
    seconds = func.time_evaluator("mmult", tvm.cpu(0), number=3)(*buffers).mean
    print(f"{title:28} {seconds * 1e3:8.3f} ms")
    return seconds


start = time.perf_counter()
a @ b
print(f"{'NumPy':28} {(time.perf_counter() - start) * 1e3:8.3f} ms")

# As written: the inner loop walks down a column of B.
s = te.create_schedule(C.op)
plain = evaluate("as written", s, [A, B, C])

# Blocking: work on 32 x 32 blocks, which stay in the cache.
s = te.create_schedule(C.op)
io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 32, 32)
ko, ki = s[C].split(k, factor=4)
s[C].reorder(io, jo, ko, ki, ii, ji)
evaluate("blocked", s, [A, B, C])

# Vectorize the innermost loop, which walks along rows of B and C.
s[C].vectorize(ji)
evaluate("blocked, vectorised", s, [A, B, C])

# Packing: a copy of B in which each block column is contiguous.
width = 32
packed = te.compute((N // width, K, width), lambda j, k, v: B[k, j * width + v], name="packed")
C = te.compute(
    (M, N), lambda i, j: te.sum(A[i, k] * packed[j // width, k, j % width], axis=k), name="C"
)
s = te.create_schedule(C.op)
io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 32, 32)
ko, ki = s[C].split(k, factor=4)
s[C].reorder(io, jo, ko, ki, ii, ji)
s[C].vectorize(ji)
s[packed].vectorize(packed.op.axis[2])
evaluate("and packed", s, [A, B, C])

# A register tile: 8 x 32 sums are kept in registers for the whole reduction.  cache_write makes
# the stage that computes them; unrolled and vectorised, its storage becomes registers.
s = te.create_schedule(C.op)
tile = s.cache_write(C, "local")
io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 32)
s[C].unroll(ii)
s[C].vectorize(ji)
s[tile].compute_at(s[C], jo)
ic, jc = s[tile].op.axis
ko, ki = s[tile].split(s[tile].op.reduce_axis[0], factor=2)
s[tile].reorder(ko, ki, ic, jc)
s[tile].unroll(ki)
s[tile].unroll(ic)
s[tile].vectorize(jc)
s[packed].vectorize(packed.op.axis[2])
tiled = evaluate("and register-tiled", s, [A, B, C])

# All cores.
s[C].parallel(io)
evaluate("and parallel", s, [A, B, C])
assert tiled < plain, "the register tile must beat the loops as written"
