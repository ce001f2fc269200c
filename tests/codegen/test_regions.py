"""What tasks share: a parallel loop, nested ones together, and those of a region.

Of a region every task runs the whole, but for its share of the parallel loops inside.
"""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.codegen.capture import is_region, nested_steps
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.interpreter.interpret import run as interpret
from slipway.ir.intrin import SHARE
from slipway.ir.visit import walk

IMAGES, PANELS, WIDTH = 3, 7, 5


@pytest.fixture(params=[1, 2, 3, 16])
def threads(request):
    before = tvm.runtime.num_threads()
    tvm.runtime.set_num_threads(request.param)
    yield request.param
    tvm.runtime.set_num_threads(before)


def scheduled(*pragmas):
    """Twice a copy of the row, which every task makes, plus the ends of the panel's share."""
    a = te.placeholder((IMAGES, WIDTH), name="a", dtype="int32")
    copy = te.compute((IMAGES, WIDTH), lambda b, i: a(b, i) + 1, name="copy")
    double = te.compute((IMAGES, PANELS, WIDTH), lambda b, p, i: 2 * copy(b, i), name="double")
    out = te.compute((IMAGES, PANELS, WIDTH), lambda b, p, i: double(b, p, i) + p, name="out")
    begin, end = (
        te.compute(
            (IMAGES, PANELS), lambda b, p, op=op: ops.call_intrin("int32", op, PANELS), name=op
        )
        for op in SHARE
    )
    s = te.create_schedule([out.op, begin.op, end.op])
    b, p, _ = s[out].op.axis
    s[double].compute_at(s[out], b)
    s[copy].compute_at(s[out], b)
    s[double].parallel(s[double].op.axis[1])
    s[out].parallel(p)
    s[out].pragma(b, "parallel_launch_point")
    for pragma in pragmas:
        s[out].pragma(p, pragma)
    for stage in (s[begin], s[end]):
        stage.parallel(stage.op.axis[1])
        stage.pragma(stage.op.axis[0], "parallel_launch_point")
    return s, [a, out, begin, end]


def run(function):
    a = np.arange(IMAGES * WIDTH, dtype="int32").reshape(IMAGES, WIDTH)
    outs = [np.full((IMAGES, PANELS, WIDTH), -1, "int32")]
    outs += [np.full((IMAGES, PANELS), -1, "int32") for _ in SHARE]
    arrays = [tvm.nd.array(x) for x in (a, *outs)]
    function(*arrays)
    expected = 2 * (a[:, None, :] + 1) + np.arange(PANELS, dtype="int32")[:, None]
    np.testing.assert_array_equal(arrays[1].numpy(), expected)
    return [x.numpy() for x in arrays[2:]]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_every_task_runs_its_share_of_each_loop(target, threads):
    begins, ends = run(tvm.build(*scheduled(), target=target))
    each = -(-PANELS // threads)
    first = np.arange(PANELS) // each * each
    np.testing.assert_array_equal(begins, np.broadcast_to(first, (IMAGES, PANELS)))
    np.testing.assert_array_equal(ends, np.minimum(begins + each, PANELS))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_barrier_launches_the_loops_one_by_one(target, threads):
    run(tvm.build(*scheduled("parallel_barrier_when_finish"), target=target))


@pytest.mark.parametrize("barrier", [False, True])
def test_which_loops_are_regions(barrier):
    s, args = scheduled(*["parallel_barrier_when_finish"] * barrier)
    func = tvm.lower(s, args)["main"]
    regions = [n for n in walk(func.body) if isinstance(n, S.For) and is_region(n)]
    assert len(regions) == 3 - barrier


def test_the_interpreter_runs_one_task():
    s, args = scheduled()
    func = tvm.lower(s, args)["main"]
    a = np.arange(IMAGES * WIDTH, dtype="int32").reshape(IMAGES, WIDTH)
    out = np.zeros((IMAGES, PANELS, WIDTH), "int32")
    begins, ends = (np.full((IMAGES, PANELS), -1, "int32") for _ in SHARE)
    interpret(func, a, out, begins, ends)
    np.testing.assert_array_equal(out[0, 3], 2 * (a[0] + 1) + 3)
    assert (begins == 0).all()
    assert (ends == PANELS).all()


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(("outer", "inner"), [(1, 5), (2, 3), (3, 7), (16, 1), (5, 4)])
def test_nested_parallel_loops_are_shared_together(target, threads, outer, inner):
    """Each step once, and in the order of the loops."""
    a = te.placeholder((outer, inner), name="a", dtype="int32")
    b = te.compute((outer, inner), lambda i, j: a(i, j) * 3 + i - j, name="b")
    s = te.create_schedule(b.op)
    for axis in s[b].op.axis:
        s[b].parallel(axis)
    given = np.arange(outer * inner, dtype="int32").reshape(outer, inner)
    arrays = [tvm.nd.array(given), tvm.nd.array(np.full_like(given, -1))]
    tvm.build(s, [a, b], target=target)(*arrays)
    i, j = np.indices(given.shape)
    np.testing.assert_array_equal(arrays[1].numpy(), given * 3 + i - j)


def test_a_loop_beside_other_work_is_not_shared_with_the_one_around():
    a = te.placeholder((4, 6), name="a", dtype="int32")
    copy = te.compute((4, 6), lambda i, j: a(i, j) + 1, name="copy")
    b = te.compute((4, 6), lambda i, j: copy(i, 5 - j), name="b")
    s = te.create_schedule(b.op)
    i, j = s[b].op.axis
    s[copy].compute_at(s[b], i)
    s[b].parallel(i)
    s[b].parallel(j)
    loops = [n for n in walk(tvm.lower(s, [a, b])["main"].body) if isinstance(n, S.For)]
    assert nested_steps(loops[0]) == 1
    s[copy].compute_inline()
    loops = [n for n in walk(tvm.lower(s, [a, b])["main"].body) if isinstance(n, S.For)]
    assert nested_steps(loops[0]) == 6
