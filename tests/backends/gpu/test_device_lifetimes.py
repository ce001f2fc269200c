"""What a driver made is released when the code, the array or the library that it is for goes."""

import pytest
from watched import run_watched, watched_driver

# What makes an object, and what releases it.
PAIRS = {
    "opencl": [
        ("CreateProgramWithSource", "ReleaseProgram"),
        ("CreateKernel", "ReleaseKernel"),
        ("CreateBuffer", "ReleaseMemObject"),
        ("EnqueueMarkerWithWaitList", "ReleaseEvent"),
    ],
    "vulkan": [
        ("CreateShaderModule", "DestroyShaderModule"),
        ("CreateComputePipelines", "DestroyPipeline"),
        ("CreatePipelineLayout", "DestroyPipelineLayout"),
        ("CreateDescriptorSetLayout", "DestroyDescriptorSetLayout"),
        ("CreatePipelineCache", "DestroyPipelineCache"),
        ("CreateBuffer", "DestroyBuffer"),
        ("AllocateMemory", "FreeMemory"),
    ],
}


@pytest.fixture(scope="module", params=["opencl", "vulkan"])
def watched(request, tmp_path_factory):
    """A function that runs a program on a kind of device whose driver is watched."""
    request.getfixturevalue("device" if request.param == "opencl" else request.param)
    environment = watched_driver(request.param, tmp_path_factory.mktemp(request.param))

    def run(body, path=None):
        known = f"PAIRS, PATH = {PAIRS[request.param]}, {str(path)!r}\n"
        return run_watched(request.param, environment, known + body)

    return run


def test_code_is_released_with_the_last_library_that_has_it(watched, tmp_path):
    body = """
def live():
    gc.collect()
    return [calls(made) - calls(gone) for made, gone in PAIRS]

def once():
    scale = tvm.runtime.load_module(PATH)["scaled"]
    x = tvm.nd.array(np.ones(128, "float32"), device)
    out = tvm.nd.array(np.zeros(128, "float32"), device)
    scale(x, out)
    np.testing.assert_array_equal(out.numpy(), np.full(128, 3, "float32"))
    return scale, x, out

built(3.0).export_library(PATH)
evaluator = tvm.runtime.load_module(PATH).time_evaluator("scaled", device, number=1)
assert evaluator(*once()[1:]).mean > 0
del evaluator
before, compiled = live(), calls(PAIRS[0][0])
for _ in range(60):
    once()
assert calls(PAIRS[0][0]) - compiled == 60
assert live() == before, (PAIRS, before, live())

first, *_ = once()
function, *arrays = once()  # of a second library with the same code
compiled = calls(PAIRS[0][0])
del first
gc.collect()
function(*arrays)
assert calls(PAIRS[0][0]) == compiled
"""
    watched(body, tmp_path / "scaled.so")


def test_memory_kept_for_later_has_a_bound_and_is_given_back(watched):
    watched("""
created, gone = ("AllocateMemory", "FreeMemory") if KIND == "vulkan" else (
    "CreateBuffer", "ReleaseMemObject")

def live():
    gc.collect()
    return calls(created) - calls(gone)

device.sync()
tvm.nd.array(np.ones(8, "float32"), device)
device.trim()
before = live()
for size in range(1, 200):  # sizes that do not fit each other's memory
    tvm.nd.empty((size * size * 64,), device=device)
assert live() <= before + 32
device.trim()
assert live() == before
huge = device.total_global_memory // 20  # more than two of them may lie spare
for _ in range(3):
    tvm.nd.empty((huge // 4,), device=device)
    held = [tvm.nd.empty((huge // 4 + 1000 * i,), device=device) for i in range(2)]
    del held
assert live() <= before + 1
""")
