"""Sketches and templates of GPUs: blocks and threads, searched on PoCL where it is installed."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import auto_scheduler, autotvm, te, topi
from slipway.auto_scheduler.loop_state import StateObject
from slipway.auto_scheduler.sketch_gpu import GpuSketches
from slipway.auto_scheduler.tiles_read import parts_read
from slipway.errors import CodegenError, TuningError

RNG = np.random.default_rng(3)
needs_opencl = pytest.mark.skipif(
    not tvm.opencl(0).exist, reason="no OpenCL device: README names the packages that bring one"
)


@auto_scheduler.register_workload
def product_and_sum(n, k, m):
    a = te.placeholder((n, k), name="a")
    b = te.placeholder((k, m), name="b")
    c = te.placeholder((n, m), name="c")
    step = te.reduce_axis((0, k), name="k")
    ab = te.compute((n, m), lambda i, j: te.sum(a[i, step] * b[step, j], axis=step), name="ab")
    return [a, b, c, te.compute((n, m), lambda i, j: ab[i, j] + c[i, j], name="out")]


@auto_scheduler.register_workload
def padded_convolution(size, channels, filters):
    data = te.placeholder((1, channels, size, size), name="data")
    kernel = te.placeholder((filters, channels, 3, 3), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, 1, 1, 1, "float32"))]


@auto_scheduler.register_workload
def soft(n, m):
    a = te.placeholder((n, m), name="a")
    return [a, topi.nn.softmax(a)]


@auto_scheduler.register_workload
def total(n, m):
    a = te.placeholder((n, m), name="a")
    i, j = te.reduce_axis((0, n), name="i"), te.reduce_axis((0, m), name="j")
    return [a, te.compute((1,), lambda _: te.max(te.abs(a[i, j]), axis=[i, j]), name="out")]


WORKLOADS = [
    (product_and_sum, (37, 64, 48)), (product_and_sum, (1, 301, 11)),
    (padded_convolution, (7, 10, 24)), (soft, (33, 70)), (total, (9, 41)),
]  # fmt: skip


def values_of(tensors):
    return [RNG.standard_normal([int(n) for n in t.shape]).astype("float32") for t in tensors]


def result(schedule, args, target, values):
    device = tvm.device(target, 0)
    arrays = [tvm.nd.array(v, device) for v in values]
    tvm.build(schedule, args, target)(*arrays)
    return arrays[-1].numpy()


@needs_opencl
@pytest.mark.parametrize(("func", "args"), WORKLOADS, ids=lambda p: getattr(p, "__name__", ""))
def test_schedules_in_threads_compute_the_same(func, args):
    """The default and random ones, by shared memory too."""
    task = auto_scheduler.SearchTask(func=func, args=args, target="opencl")
    space, rng = task.space, random.Random(0)
    values = values_of(task.compute_dag.tensors)
    _, tensors = task.scheduled(space.default)
    plain = te.create_schedule([tensors[-1].op])
    wanted = result(plain, tensors, "llvm", values)
    drawn = [space.default, *(space.sample(rng) for _ in range(2))]
    shared = next((n for n in space.values["tiles"] if n.endswith(".shared")), None)
    if shared is not None:
        drawn.append(space.with_values(space.defaults["tiles"], **{shared: 1}))
    for candidate in dict.fromkeys(drawn):
        found = result(*task.scheduled(candidate), "opencl", values)
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-4, err_msg=str(candidate))


def test_threads_sum_a_result_together():
    """A long sum, and a product of few results: a product of many is tiled alone."""
    spaces = {
        name: auto_scheduler.SearchTask(func=func, args=args, target="opencl")
        for name, func, args in (
            ("row", product_and_sum, (1, 301, 11)), ("total", total, (9, 41)),
            ("many", product_and_sum, (512, 64, 512)),
        )
    }  # fmt: skip
    assert {name: tuple(task.space.values) for name, task in spaces.items()} == {
        "row": ("parts", "tiles"), "total": ("tiles",), "many": ("tiles",),
    }  # fmt: skip
    row = spaces["row"]
    assert set(row.space.values["parts"]) == {"ab.parts"}
    assert dict(spaces["total"].space.default.knobs)["out.parts"] == 32
    shown = row.compute_dag.print_python_code_from_state(row.config_of(row.space.default))
    assert 's[ab].bind(k_inner, te.thread_axis("threadIdx.x"))' in shown


def test_a_block_has_no_more_threads_than_are_allowed():
    task = auto_scheduler.SearchTask(func=product_and_sum, args=(512, 64, 512), target="opencl")
    rng = random.Random(0)
    few = [task.space.sample(rng) for _ in range(40)]
    assert sum(max(task.space._threads(c)) <= 256 for c in few) >= 38
    both = {"ab.i.1": 64, "ab.j.1": 64, "ab.i.2": 1, "ab.j.2": 1}
    many = task.space.with_values(task.space.default, **both)
    assert task.space.predicted(many) >= 1e5 * task.space.predicted(task.space.default)
    shown = task.compute_dag.print_python_code_from_state(task.config_of(task.space.default))
    for mark in ("blockIdx.x", "vthread", "threadIdx.x"):
        assert f'te.thread_axis("{mark}")' in shown


@needs_opencl
def test_a_search_in_threads_finds_what_is_right(tmp_path):
    log = str(tmp_path / "product.json")
    task = auto_scheduler.SearchTask(func=product_and_sum, args=(37, 64, 48), target="opencl")
    task.tune(
        auto_scheduler.TuningOptions(
            num_measure_trials=6, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0
        )
    )
    assert "__kernel " in task.print_best(log, print_mode="cuda")
    with pytest.raises(TuningError, match="neither 'schedule' nor"):
        task.print_best(log, print_mode="c")
    values = values_of(task.compute_dag.tensors)
    found = result(*task.apply_best(log), "opencl", values)
    a, b, c, _ = values
    np.testing.assert_allclose(found, a @ b + c, 1e-4, 1e-4)


@autotvm.template("test/rows_in_threads")
def rows_in_threads(n):
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] * 2 + 1, name="b")
    schedule, config = te.create_schedule([b.op]), autotvm.get_config()
    (i,) = schedule[b].op.axis
    config.define_knob("threads", [8, 16, 64, 4096])
    block, thread = schedule[b].split(i, factor=config["threads"].val)
    schedule[b].bind(block, te.thread_axis("blockIdx.x"))
    schedule[b].bind(thread, te.thread_axis("threadIdx.x"))
    return schedule, [a, b]


@needs_opencl
def test_a_template_in_threads_is_searched(tmp_path):
    log = str(tmp_path / "rows.log")
    task = autotvm.task.create("test/rows_in_threads", args=(8192,), target="opencl")
    tuner, seen = autotvm.tuner.GridSearchTuner(task), []
    option = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner(repeat=3))
    tuner.tune(
        4, option,
        callbacks=[
            autotvm.callback.log_to_file(log), lambda _, i, r: seen.extend(zip(i, r, strict=True))
        ],
    )  # fmt: skip
    errors = {i.config["threads"].val: r.error_no for i, r in seen}
    assert errors[4096] != 0  # more threads than the target allows
    assert not any(errors[n] for n in (8, 16, 64))
    with autotvm.apply_history_best(log), tvm.target.Target("opencl"):
        schedule, args = rows_in_threads(8192)
    values = values_of(args)
    np.testing.assert_allclose(result(schedule, args, "opencl", values), values[0] * 2 + 1, 1e-6)


def test_most_candidates_fit_into_a_block():
    data, kernel = te.placeholder((1, 96, 14, 14), name="data"), te.placeholder((64, 96, 3, 3))
    conv = topi.nn.conv2d_nchw(data, kernel, 1, 1, 1)
    dag = auto_scheduler.ComputeDAG([data, kernel, conv])
    target = tvm.target.Target("opencl -max_shared_memory_per_block=16384")
    sketches = GpuSketches(dag, target)
    rng, refused = random.Random(5), 0
    for _ in range(24):
        candidate = sketches.sample(rng)
        schedule, args = dag.apply_steps_from_state(StateObject(dag, sketches.steps_of(candidate)))
        try:
            tvm.build(schedule, args, target)
        except CodegenError:  # of shared memory
            refused += 1
            assert sketches.predicted(candidate) > 1e3 * sketches.predicted(sketches.default)
    assert refused <= 2


def test_a_tile_is_as_large_as_what_its_loops_reach():
    a = te.placeholder((1, 8, 20, 20), name="A", dtype="float16")
    k, r = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 3), name="r")
    b = te.compute(
        (9, 20), lambda i, j: te.sum(a[0, k, 2 * i + r, j] * a[0, k, 2 * i, j], axis=[k, r])
    )
    (part,) = parts_read(b.op)
    i, j, k, r = (axis.var for axis in b.op.root_iter_vars)
    assert part.bytes({}) == 2
    assert part.bytes({i: 3, j: 5, k: 4, r: 3}) == 2 * 4 * 7 * 5
    assert part.bytes({i: 9, j: 20, k: 8, r: 3}) == 2 * 8 * 19 * 20
    assert part.bytes({i: 90}) == 2 * 20  # no more than there is


@needs_opencl
@pytest.mark.parametrize("shape", [(11, 151), (3,), (1, 1), (40, 60)])
def test_a_sum_to_a_single_number_is_of_threads(shape):
    a = te.placeholder(shape, name="A")
    dag = auto_scheduler.ComputeDAG([a, topi.sum(topi.exp(a))])
    sketches = GpuSketches(dag, tvm.target.Target("opencl"))
    value, rng = RNG.random(shape).astype("float32"), random.Random(2)
    for candidate in {sketches.default, *(sketches.sample(rng) for _ in range(4))}:
        schedule, args = dag.apply_steps_from_state(StateObject(dag, sketches.steps_of(candidate)))
        result = tvm.nd.array(np.zeros((), "float32"), tvm.opencl(0))
        tvm.build(schedule, args, "opencl")(tvm.nd.array(value, tvm.opencl(0)), result)
        np.testing.assert_allclose(result.numpy(), np.exp(value).sum(), rtol=1e-5)
