"""Banks of shared memory: what the simulated device counts, and what layouts do about it."""

import numpy as np
import pytest
import run_kernels
from run_kernels import axis, random

import slipway as tvm
from slipway import te
from slipway.target import Target

TARGET = Target("cuda -arch=sm_80 -max_threads_per_block=1024", host="llvm")


@pytest.fixture
def simulated(simulators, monkeypatch):
    """A simulated GPU that counts passes over the banks."""
    found = simulators("ll")
    monkeypatch.setattr(run_kernels, "current", (TARGET, found))
    found.enter()
    found.banks = []
    yield found
    found.banks = None
    found.leave()


def transposed(pad=0, dtype="float32", together=1):
    """A tile of 32 x 32 that rows of threads fill and columns of threads read."""
    a = te.placeholder((32, 32), dtype, name="A")
    b = te.compute((32, 32), lambda i, j: a[j, i], name="B")
    s = te.create_schedule(b.op)
    tile = s.cache_read(a, "shared", [b])
    i, j = s[b].op.axis
    s[b].bind(i, axis("threadIdx.y"))
    s[b].bind(j, axis("threadIdx.x"))
    s[tile].compute_at(s[b], j)  # filled once, by all threads
    row, column = s[tile].op.axis
    if together > 1:
        column, several = s[tile].split(column, factor=together)
        s[tile].vectorize(several)
    s[tile].bind(row, axis("threadIdx.y"))
    s[tile].bind(column, axis("threadIdx.x"))
    if pad:
        s[tile].storage_align(row, 32, pad)
    return s, [a, b]


def counted(simulated, schedule, args):
    x = (random(*(int(n) for n in args[0].shape)) * 64).astype(args[0].dtype)
    function = run_kernels.built(schedule, args)
    found = run_kernels.run(function, tvm.cuda(0), [x], (32, 32), args[0].dtype)
    np.testing.assert_array_equal(found, x.T)
    return simulated.banks[-1]


def test_columns_of_a_tile_lie_in_one_bank_unless_rows_are_apart(simulated):
    """Requests and passes as NVIDIA's documents count them."""
    assert counted(simulated, *transposed()) == (32, 32 * 32, 32, 32)
    assert counted(simulated, *transposed(1)) == (32, 32, 32, 32)
    assert counted(simulated, *transposed(2)) == (32, 64, 32, 32)
    # Four bytes hold two halves: of 16 words a row, columns are in two banks.
    assert counted(simulated, *transposed(dtype="int16")) == (32, 32 * 16, 32, 32)
    # Eight bytes of each thread: two requests of half a warp.
    assert counted(simulated, *transposed(dtype="float64")) == (64, 64 * 16, 64, 64)
    assert counted(simulated, *transposed(1, "float64")) == (64, 64, 64, 64)
    # Four elements at once; 8 threads of a row, each warp fills a row.
    assert counted(simulated, *transposed(4, together=4))[2:] == (32, 32)
