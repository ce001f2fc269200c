"""Shared memory that is filled some steps ahead, by copies that go on while threads compute."""

import numpy as np
import pytest
import run_kernels
from tests.backends.gpu import test_kernels, test_ptx

import slipway as tvm
from slipway import relay, te
from slipway.backends.gpu.lowering import fill_ahead, threads
from slipway.backends.gpu.schedules import shared
from slipway.backends.gpu.schedules.shared import SharedKnobs, Sizes, legal_knobs, product_cost
from slipway.contrib import graph_executor
from slipway.errors import DeviceError, ScheduleError
from slipway.target import Target

TARGET = Target("cuda -arch=sm_80", host="llvm")
OLDER = Target("cuda -arch=sm_75", host="llvm")


@pytest.fixture(params=["cuda", "ll"])
def simulated(request, simulators, monkeypatch):
    """A simulated GPU whose copies come when they are waited for."""
    found = simulators(request.param)
    monkeypatch.setattr(run_kernels, "current", (TARGET, found))
    found.enter()
    yield found
    found.leave()


def product(stages, rows=40, columns=36, depth=70, dtype="float32"):
    """Rows times rows, from panels of `stages` steps."""
    a = te.placeholder((rows, depth), dtype, name="A")
    b = te.placeholder((columns, depth), dtype, name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[j, k], axis=[k]), name="C")
    s = te.create_schedule(c.op)
    tile = s.cache_write(c, "local")
    tiling = shared.Tiling(s, SharedKnobs(16, 16, 2, 2, 8, stages))
    tiling.bind(c, [], *s[c].op.axis)
    step = tiling.sum_up(tile)
    for operand in (a, b):
        tiling.share(s.cache_read(operand, "shared", [tile]), tile, step, True, 16)
    return tvm.lower(s, [a, b, c], name=f"of_{stages}_{depth}_{dtype}", simple_mode=True)


CASES = [(2, 70, "float32"), (3, 70, "float32"), (4, 70, "float32"), (4, 11, "float32"),
         (3, 64, "int32"), (2, 70, "float64"), (3, 40, "float16")]  # fmt: skip


def test_every_depth_and_type_has_the_numbers_of_one_stage(simulated):
    """More steps ahead than there are, types that are copied and such that are not; no races."""
    functions = [product(n, depth=d, dtype=t) for n, d, t in (*CASES, (1, 70, "float32"))]
    built = run_kernels.built(functions, None, TARGET)
    text = run_kernels.source(built, "cuda")
    assert text.count("slw_async_wait<2>") == 2
    kernels = text.split("__global__")[1:]
    assert [kernel.count("__syncthreads") for kernel in kernels] == [1] * len(CASES) + [2]
    for stages, depth, dtype in CASES:
        shape_a, shape_b = (40, depth), (36, depth)
        x = (run_kernels.random(*shape_a) * 8).astype(dtype)
        y = (run_kernels.random(*shape_b, seed=1) * 8).astype(dtype)
        name = f"of_{stages}_{depth}_{dtype}"
        found = run_kernels.run(built[name], tvm.cuda(0), [x, y], (40, 36), dtype)
        wanted = x.astype("float64") @ y.astype("float64").T
        if dtype == "int32":
            np.testing.assert_array_equal(found, wanted)
        elif dtype != "float16":
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
        if (depth, dtype) == (70, "float32"):
            plain = run_kernels.run(built["of_1_70_float32"], tvm.cuda(0), [x, y], (40, 36))
            np.testing.assert_array_equal(found, plain)


def network(pads):
    x = relay.var("x", shape=(1, 32, 13, 13))
    w = relay.const(run_kernels.random(40, 32, 3, 3))
    return x, relay.nn.relu(relay.nn.conv2d(x, w, padding=(pads, pads), strides=(2, 2)))


def test_a_convolution_copies_the_image_and_fills_its_border(simulated):
    """What is padding is stored, what is image is copied; default knobs of a target of sm_80."""
    x, body = network(1)
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target=TARGET)
    code = library.lib.imported_modules[0]
    assert "cp.async" in code.get_source("ptx")
    simulated.learn(code)
    module = graph_executor.GraphModule(library["default"](tvm.cuda(0)))
    given = run_kernels.random(1, 32, 13, 13)
    module.run(x=given)
    plain = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target="llvm")
    here = graph_executor.GraphModule(plain["default"](tvm.cpu(0)))
    here.run(x=given)
    np.testing.assert_allclose(
        module.get_output(0).numpy(), here.get_output(0).numpy(), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("lost", ["wait", "barrier"])
def test_what_is_not_waited_for_is_noticed(simulators, monkeypatch, lost):
    """The simulated device has no number there before, and tells of a race."""
    simulator = simulators("ll")
    monkeypatch.setattr(run_kernels, "current", (TARGET, simulator))
    if lost == "wait":
        wait_for = fill_ahead.wait_for
        monkeypatch.setattr(fill_ahead, "wait_for", lambda groups: wait_for(groups + 9))
    else:
        monkeypatch.setattr(threads, "insert_barriers", lambda body, scopes, name: body)
    function = run_kernels.built([product(3)], None, TARGET)
    simulator.enter()
    x, y = run_kernels.random(40, 70), run_kernels.random(36, 70, seed=1)
    if lost == "wait":
        found = run_kernels.run(function["of_3_70_float32"], tvm.cuda(0), [x, y], (40, 36))
        assert np.isnan(found).all()
    else:
        with pytest.raises(DeviceError, match=r"a race: threads .* shared memory"):
            run_kernels.run(function["of_3_70_float32"], tvm.cuda(0), [x, y], (40, 36))
    simulator.leave()


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_100"])
def test_kernels_are_assembled_without_spills(arch, tmp_path):
    target = Target(f"cuda -arch={arch}", host="llvm")
    functions = [product(n, depth=d, dtype=t) for n, d, t in CASES]
    ptx = run_kernels.source(tvm.build(functions, target=target), "ptx")
    assert "cp.async.ca.shared.global" in ptx
    assert test_ptx.spilt(test_ptx.assembled(ptx, arch, tmp_path)) == 0


def test_the_target_says_how_many_stages():
    """Where nothing copies while threads compute, there is one; else memory has to be enough."""
    assert {k.stages for k in legal_knobs("float32", OLDER)} == {1}
    assert {k.stages for k in legal_knobs("float16", TARGET)} == {1}
    wide = legal_knobs("float32", TARGET)
    assert {k.stages for k in wide} == {1, 2, 3, 4}
    best = min(wide, key=lambda k: product_cost(Sizes(1, 512, 512, 512), k))
    assert best.stages == 2
    small = Target("cuda -arch=sm_80 -max_shared_memory_per_block=4096")
    assert max(k.stages * (k.block_rows + k.block_columns) for k in legal_knobs("float32", small))
    older = tvm.build([product(3)], target=OLDER)
    assert "async" not in run_kernels.source(older, "ptx")
    assert "float A_shared[143]" in run_kernels.source(older, "cuda")


def test_four_steps_take_what_a_launch_gives(simulated, tmp_path):
    """More than the 48 KB that a kernel's code may say; the result of one step's panels."""
    knobs = {"block_rows": 128, "block_columns": 128, "rows": 8, "columns": 8, "depth": 16}
    chosen = SharedKnobs(*knobs.values(), stages=4)
    assert chosen.panel_bytes("float32") > 49152
    assert chosen in legal_knobs("float32", TARGET)
    a, b = relay.var("a", shape=(130, 70)), relay.var("b", shape=(60, 70))
    mod = tvm.IRModule.from_expr(relay.Function([a, b], relay.nn.dense(a, b)))
    x, y = run_kernels.random(130, 70), run_kernels.random(60, 70, seed=1)
    found = []
    for stages in (1, 4):
        force = {"nn.dense": {"strategy": "threads.shared", **knobs, "stages": stages}}
        with tvm.transform.PassContext(opt_level=3, config={"schedules.force": force}):
            library = relay.build(mod, target=TARGET)
        code = library.lib.imported_modules[0]
        simulated.learn(code)
        module = graph_executor.GraphModule(library["default"](tvm.cuda(0)))
        module.run(a=x, b=y)
        found.append(module.get_output(0).numpy())
        ptx = code.get_source("ptx")
        assert (".extern .shared" in ptx) == (stages == 4)
        assert test_ptx.spilt(test_ptx.assembled(ptx, "sm_80", tmp_path)) == 0
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], x @ y.T, rtol=1e-4, atol=1e-4)


def test_a_schedule_by_hand_is_filled_ahead(simulated):
    """double_buffer of the classic system's own schedules."""
    schedule, args = test_kernels.matmul(32, 32, 48, False)
    panels = [stage for stage in schedule.stages if stage.scope == "shared"]
    for stage in panels:
        stage.double_buffer()
    function = run_kernels.built(schedule, args, TARGET)
    assert len(panels) == 2
    assert "slw_async_wait<0>" in run_kernels.source(function, "cuda")
    x, y = run_kernels.random(32, 48), run_kernels.random(48, 32, seed=1)
    found = run_kernels.run(function, tvm.cuda(0), [x, y], (32, 32))
    np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-4)
    for copies in (1, 0, "two"):
        with pytest.raises(ScheduleError, match="copies of its storage: give a whole number"):
            panels[0].double_buffer(copies)
