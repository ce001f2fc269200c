"""float16 that the device computes with, where the target says so (-supports_float16)."""

import numpy as np
import pytest
import run_kernels
from run_kernels import axis, built
from tests.backends.gpu.test_ptx import assembled, spilt

import slipway as tvm
from slipway import relay, te
from slipway.compiler.precision import in_precision
from slipway.contrib import graph_executor
from slipway.errors import CodegenError, DeviceError, TargetError
from slipway.target import Target

OPTIONS = {"cuda": "-arch=sm_80", "rocm": "-mcpu=gfx90a"}
LANGUAGES = ["vulkan", "metal", "cuda", "ll", "amd", "wgsl"]


def target_of(kind, more=""):
    return Target(f"{kind} {OPTIONS.get(kind, '')} -supports_float16=1 {more}", host="llvm")


@pytest.fixture(params=LANGUAGES)
def half_device(request, monkeypatch):
    """A device for each language, which computes in float16; `built` compiles for it."""
    if request.param == "vulkan":
        monkeypatch.setattr(run_kernels, "current", (target_of("vulkan"), None))
        yield request.getfixturevalue("vulkan")
        return
    simulator = request.getfixturevalue("simulators")(request.param)
    monkeypatch.setattr(run_kernels, "current", (target_of(simulator.kind), simulator))
    simulator.enter()
    yield tvm.device(simulator.kind, 0)
    simulator.leave()


def run(function, device, inputs, shape, dtype="float16"):
    """Return what a kernel computes."""
    return run_kernels.run(function, device, inputs, shape, dtype)


def elementwise(n, body, count, dtype="float16"):
    given = [te.placeholder((n,), "float16", name=name) for name in "abc"[:count]]
    out = te.compute((n,), lambda i: body(*(t[i] for t in given)).astype(dtype), name="out")
    s = te.create_schedule(out.op)
    block, thread = s[out].split(out.op.axis[0], factor=64)
    s[out].bind(block, axis("blockIdx.x"))
    s[out].bind(thread, axis("threadIdx.x"))
    return s, [*given, out]


def numbers(n, seed):
    """Halves of all sizes whose sums and products are normal numbers."""
    r = np.random.default_rng(seed)
    return (r.uniform(1, 2, n) * 2.0 ** r.integers(-4, 5, n) * r.choice([-1, 1], n)).astype(
        "float16"
    )


def test_each_operation_is_rounded_once(half_device):
    """A product, a choice, and a comparison at once: the bits are NumPy's."""
    a, b, c = (numbers(500, seed) for seed in range(3))

    def body(x, y, z):
        return tvm.tir.Select(x < y, te.max(x * y, z), te.min(x * z, y))

    found = run(built(*elementwise(500, body, 3)), half_device, [a, b, c], (500,))
    wanted = np.where(a < b, np.maximum(a * b, c), np.minimum(a * c, b))
    np.testing.assert_array_equal(found.view("uint16"), wanted.view("uint16"))


def test_a_product_and_its_sum_are_rounded_once(half_device):
    a, b, c = (numbers(500, seed + 7) for seed in range(3))
    found = run(
        built(*elementwise(500, lambda x, y, z: z - x * y, 3)), half_device, [a, b, c], (500,)
    )
    exact = c.astype("float64") - a.astype("float64") * b.astype("float64")
    once, twice = exact.astype("float16"), c - a * b
    assert (once != twice).any()
    if run_kernels.current[0].kind.name in ("vulkan", "webgpu", "cuda", "rocm"):
        # lavapipe rounds a product before it adds, and so may this processor LLVM's fmuladd
        assert ((found == once) | (found == twice)).all()
    else:
        np.testing.assert_array_equal(found, once)


def test_what_is_no_number_stays_none(half_device):
    a = np.array([np.nan, 1, np.nan, 2, np.inf, -np.inf] * 8, "float16")
    b = np.array([1, np.nan, np.nan, 3, 1, 1] * 8, "float16")
    found = run(built(*elementwise(48, lambda x, y: te.max(x, y), 2)), half_device, [a, b], (48,))
    np.testing.assert_array_equal(found, np.maximum(a, b))


def test_every_half_converts_both_ways(half_device):
    """Also those that the device may take for zero in arithmetic, but for SPIR-V's conversion."""
    halves = np.arange(1 << 16, dtype="uint16").view("float16")
    halves = halves[~np.isnan(halves) & ((np.abs(halves) >= 2.0**-14) | (halves == 0))]
    s, args = elementwise(len(halves), lambda x: x.astype("float32"), 1, "float16")
    found = run(built(s, args), half_device, [halves], halves.shape)
    np.testing.assert_array_equal(found.view("uint16"), halves.view("uint16"))


@pytest.mark.parametrize("shape", [(33, 65, 47), (64, 64, 64)])
def test_products_are_summed_in_float16_where_that_is_chosen(half_device, shape):
    """By tiles in shared memory, of pairs of rows; the numbers are small integers, so exact."""
    rows, columns, depth = shape
    x, w = (relay.var(n, shape=s) for n, s in (("x", (rows, depth)), ("w", (columns, depth))))
    target, simulator = run_kernels.current
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    mod, _ = in_precision(relay.transform.InferType()(mod), None, "float16_acc16", target)
    force = {"nn.dense": {"strategy": "threads.shared", "block_rows": 16, "block_columns": 16,
                          "rows": 4, "columns": 2, "depth": 8, "stages": 1}}  # fmt: skip
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": force}):
        lib = relay.build(mod, target=target)
    if simulator is not None:
        simulator.learn(lib.lib.imported_modules[0])
    module = graph_executor.GraphModule(lib["default"](half_device))
    r = np.random.default_rng(1)
    given = [r.integers(-3, 4, s).astype("float32") for s in ((rows, depth), (columns, depth))]
    module.set_input(x=given[0], w=given[1])
    module.run()
    found = module.get_output(0).numpy()
    np.testing.assert_array_equal(found, np.maximum(given[0] @ given[1].T, 0))


def text_of(kind, format_, more=""):
    s, args = elementwise(64, lambda x, y: x * y + y, 2)
    module = tvm.build(s, args, target_of(kind, more)).imported_modules[0]
    return module.get_source(format_)


def test_kernels_say_what_they_need():
    assert "cl_khr_fp16 : enable" in text_of("opencl", "opencl")
    assert "fma.rn.f16" in text_of("cuda", "ptx")
    assert "v_fma" in text_of("rocm", "asm")
    assert "enable f16;" in text_of("webgpu", "wgsl")
    assert "OpCapability Float16" in text_of("vulkan", "spirv")
    assert "fma" not in text_of("opencl", "opencl", "-strict=1").split("__kernel")[-1]


def test_a_driver_of_opencl_without_it_says_so(device):
    """As PoCL's for processors."""
    a, b = numbers(64, 0), numbers(64, 1)
    function = tvm.build(*elementwise(64, lambda x, y: x * y, 2), target_of("opencl"))
    with pytest.raises(DeviceError, match=r"does not compute in float16 \(cl_khr_fp16\)"):
        run(function, device, [a, b], (64,))


def test_nothing_changes_for_a_target_that_does_not_say_so():
    s, args = elementwise(64, lambda x, y: x * y + y, 2)
    for kind, format_, word in (
        ("opencl", "opencl", "cl_khr_fp16"), ("vulkan", "spirv", "Capability Float16"),
        ("webgpu", "wgsl", "f16"), ("metal", "metal", "slw_half"),
    ):  # fmt: skip
        module = tvm.build(s, args, Target(kind, host="llvm")).imported_modules[0]
        assert word not in module.get_source(format_)


def test_pairs_of_halves_are_added_up_by_one_instruction(tmp_path):
    x, w = (relay.var(n, shape=(256, 256)) for n in "xw")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    for arch in ("sm_53", "sm_80"):
        target = Target(f"cuda -arch={arch} -supports_float16=1", host="llvm")
        made, _ = in_precision(relay.transform.InferType()(mod), None, "float16_acc16", target)
        ptx = relay.build(made, target=target).lib.imported_modules[0].get_source("ptx")
        assert "fma.rn.f16x2" in ptx
        assert spilt(assembled(ptx, arch, tmp_path)) == 0


def test_what_does_not_compute_in_float16_is_said():
    s, args = elementwise(64, lambda x, y: x * y, 2)
    with pytest.raises(
        CodegenError, match=r"sm_50 .*has no arithmetic in float16: it came with sm_53"
    ):
        tvm.build(s, args, Target("cuda -arch=sm_50 -supports_float16=1", host="llvm"))
    x = relay.var("x", shape=(4, 4))
    mod = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, x)))
    )
    for target in (Target("opencl", host="llvm"), Target("llvm -mcpu=haswell")):
        with pytest.raises(TargetError, match="does not say that its device computes in it"):
            in_precision(mod, None, "float16_acc16", target)
