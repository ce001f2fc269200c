"""No two threads meet at a location without a barrier between: kernels of LLVM IR, watched."""

import numpy as np
import pytest
import run_kernels
from random_schedules import draw
from random_vocabulary import draw_rare
from tests.backends.gpu import test_kernels

import slipway as tvm
from slipway.backends.gpu.lowering import threads
from slipway.errors import DeviceError
from slipway.script import tir as T
from slipway.target import Target

CUDA = Target("cuda", host="llvm")


@pytest.fixture
def watched(simulators, monkeypatch):
    """A device that tells of races."""
    simulator = simulators("ll")
    monkeypatch.setattr(run_kernels, "current", (CUDA, simulator))
    simulator.enter()
    yield tvm.cuda(0)
    simulator.leave()


def check(seed, device, draw=draw):
    """Compile a random schedule, run it, and hold it against NumPy."""
    case = draw(seed)
    function = run_kernels.built(case.schedule, case.args, name=f"random_{seed}")
    rng = np.random.default_rng(seed)
    *inputs, out = case.args
    values = [rng.uniform(-2, 2, [int(n) for n in t.shape]).astype("float32") for t in inputs]
    shape = tuple(int(n) for n in out.shape)
    found = run_kernels.run(function, device, values, shape)
    wanted = case.reference(*(v.astype("float64") for v in values))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=case.what)


@pytest.mark.parametrize("seed", range(12))
def test_random_schedules_compute_what_they_say_without_races(seed, watched):
    check(seed, watched)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 25))
def test_many_random_schedules(first, watched):
    for seed in range(first, first + 25):
        check(seed, watched)


@pytest.mark.parametrize("seed", range(11))
def test_random_schedules_with_the_rarer_words(seed, watched):
    check(seed, watched, draw_rare)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 25))
def test_many_random_schedules_with_the_rarer_words(first, watched):
    for seed in range(first, first + 25):
        check(seed, watched, draw_rare)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 25))
def test_many_random_rarer_schedules_on_opencl(first, device):
    for seed in range(first, first + 25):
        check(seed, device, draw_rare)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 25))
def test_many_random_rarer_schedules_on_vulkan(first, vulkan, monkeypatch):
    monkeypatch.setattr(run_kernels, "current", (run_kernels.VULKAN, None))
    for seed in range(first, first + 25):
        check(seed, vulkan, draw_rare)


@pytest.mark.parametrize("seed", [46, 66])
def test_barriers_in_loops_of_conditions_on_pocl(seed, device):
    """Which PoCL 3.1 ends the process on, where it has optimised such a kernel."""
    check(seed, device)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 25))
def test_many_random_schedules_on_opencl(first, device):
    for seed in range(first, first + 25):
        check(seed, device)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 25))
def test_many_random_schedules_on_vulkan(first, vulkan, monkeypatch):
    monkeypatch.setattr(run_kernels, "current", (run_kernels.VULKAN, None))
    for seed in range(first, first + 25):
        check(seed, vulkan)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 25))
def test_many_random_schedules_in_wgsl(first, simulators, monkeypatch):
    simulator = simulators("wgsl")
    monkeypatch.setattr(run_kernels, "current", (Target("webgpu", host="llvm"), simulator))
    simulator.enter()
    for seed in range(first, first + 25):
        check(seed, tvm.webgpu(0))
    simulator.leave()


SHARED_RACE = (
    r"unguarded_kernel0: a race: threads \(0, 0, 0\) of block \(0, 0, 0\) and \(\d, \d, 0\) "
    r"of block \(0, 0, 0\), apart along threadIdx\.\w.*, meet in shared memory [AB]_shared$"
)
GLOBAL_RACE = (
    r"a race: threads \(0, 0, 0\) of block \(0, 0, 0\) and \(0, 0, 0\) of block \(1, 0, 0\), "
    r"apart along blockIdx\.x, meet in global memory b$"
)


def test_a_missing_barrier_is_a_race(watched, monkeypatch):
    monkeypatch.setattr(threads, "insert_barriers", lambda body, scopes, name: body)
    x, y = run_kernels.random(32, 16), run_kernels.random(16, 32, seed=1)
    product = run_kernels.built(*test_kernels.matmul(32, 32, 16, False), name="unguarded")
    with pytest.raises(DeviceError, match=SHARED_RACE):
        run_kernels.run(product, watched, (x, y), (32, 32))


def test_blocks_that_write_one_location_race(watched):
    @T.prim_func
    def clash(a: T.Buffer((8,), "float32"), b: T.Buffer((1,), "float32")):
        for i in T.thread_binding(8, thread="blockIdx.x"):
            b[0] = a[i]

    function = tvm.build(clash, target=CUDA, name="clash")
    run_kernels.current[1].learn(function.imported_modules[0])
    with pytest.raises(DeviceError, match=GLOBAL_RACE):
        run_kernels.run(function, watched, (run_kernels.random(8),), (1,))


def test_a_barrier_that_only_some_threads_reach_is_told_with_the_axis(watched):
    @T.prim_func
    def apart(a: T.Buffer((8, 4), "float32"), b: T.Buffer((8, 4), "float32")):
        for x in T.thread_binding(8, thread="threadIdx.x"):
            for y in T.thread_binding(4, thread="threadIdx.y"):
                b[x, y] = a[x, y]
                if y < 2:
                    T.evaluate(T.call_intrin("int32", "tir.tvm_storage_sync", "shared"))

    function = tvm.build(apart, target=CUDA, name="apart")
    run_kernels.current[1].learn(function.imported_modules[0])
    wanted = r"only some .*: thread \(0, 0, 0\) of block .* waits .*, apart along threadIdx\.y, has"
    with pytest.raises(DeviceError, match=wanted):
        run_kernels.run(function, watched, (run_kernels.random(8, 4),), (8, 4))
