"""Loop partition moves boundary checks out, and changes no number."""

import numpy as np

from slipway import te
from slipway.ir.interpret import run
from slipway.ir.verify import verify
from slipway.transform.context import PassContext
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.loop_partition import loop_partition
from slipway.transform.loop.pipeline import run_pipeline


def tiled(n=100, parallel=False):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], 8)
    if parallel:
        s[b].parallel(outer)
    return te.lower(s, [a, b]), s, b, inner, a


def test_the_check_is_made_once_per_tile():
    func = loop_partition(flatten_storage(tiled()[0]))
    assert str(func) == (
        "def main(A: float32[100], B: float32[100]):\n"
        "    for i.outer in range(13):\n"
        "        if likely(i.outer * 8 - 93 < 0):\n"
        "            for i.inner in range(8):\n"
        "                B[i.outer * 8 + i.inner] = A[i.outer * 8 + i.inner] * 2f\n"
        "        else:\n"
        "            for i.inner in range(8):\n"
        "                if likely(i.outer * 8 + i.inner < 100):\n"
        "                    B[i.outer * 8 + i.inner] = A[i.outer * 8 + i.inner] * 2f"
    )


def test_parallel_loops_stay_one_and_numbers_stay_the_same():
    func = tiled(parallel=True)[0]
    ready = verify(run_pipeline(func), "ready")
    assert str(ready).count("parallel for") == 1
    x, y = np.arange(100, dtype="float32"), np.zeros(100, "float32")
    run(ready, x, y)
    np.testing.assert_array_equal(y, x * 2)


def test_a_vector_loop_keeps_one_check_and_one_scalar_rest():
    _, s, b, inner, a = tiled()
    s[b].vectorize(inner)
    text = str(run_pipeline(te.lower(s, [a, b])))
    assert text.count("ramp(i.outer * 8, 1, 8)") == 2  # one load, one store
    assert text.count("likely") == 2


def test_nothing_happens_where_nothing_is_guarded():
    a = te.placeholder((96,), name="A")
    b = te.compute((96,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], 8)
    func = flatten_storage(te.lower(s, [a, b]))
    assert loop_partition(func) is func


def test_padding_is_partitioned_on_request():
    a = te.placeholder((64,), name="A")
    b = te.compute(
        (64,), lambda i: te.if_then_else(te.all(i >= 1, i < 63), a[i - 1] + a[i + 1], 0.0), name="B"
    )
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], 16)
    func = te.lower(s, [a, b])
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": True}}):
        ready = run_pipeline(func)
    assert str(ready).count("if_then_else") == 1
    x, y = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    run(ready, x, y)
    want = np.zeros(64, "float32")
    want[1:63] = x[:62] + x[2:]
    np.testing.assert_array_equal(y, want)
