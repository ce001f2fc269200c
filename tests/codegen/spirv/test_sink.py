"""SPIR-V, against Khronos' own tools and the numbers that kernels give on a device."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor
from slipway.errors import CodegenError
from slipway.target import Target

sys.path.insert(0, str(Path(__file__).parents[2] / "backends" / "gpu"))
VULKAN = Target("vulkan", host="llvm")


def elementwise(function, *dtypes, n=24):
    """A kernel that computes `function` of each element, one thread each."""
    inputs = [te.placeholder((n,), name=f"a{i}", dtype=d) for i, d in enumerate(dtypes)]
    out = te.compute((n,), lambda i: function(*(t[i] for t in inputs)), name="out")
    schedule = te.create_schedule(out.op)
    block, thread = schedule[out].split(out.op.axis[0], factor=8)
    schedule[out].bind(block, te.thread_axis("blockIdx.x"))
    schedule[out].bind(thread, te.thread_axis("threadIdx.x"))
    return tvm.build(schedule, [*inputs, out], VULKAN, name="kernel"), out.dtype


@pytest.fixture
def device():
    found = tvm.vulkan(0)
    if not found.exist:
        pytest.skip("no Vulkan device: apt-get install libvulkan1 mesa-vulkan-drivers")
    return found


def computed(device, function, *arrays):
    kernel, dtype = elementwise(function, *(str(a.dtype) for a in arrays), n=len(arrays[0]))
    out = tvm.nd.array(np.zeros(len(arrays[0]), dtype), device)
    kernel(*(tvm.nd.array(a, device) for a in arrays), out)
    return out.numpy()


def checked(module, tmp_path):
    """Validate a module of kernels, and its text as another form of the same words."""
    if shutil.which("spirv-val") is None:
        pytest.skip("no spirv-val: apt-get install spirv-tools")
    module.save(tmp_path / "kernels.spv")
    text = tmp_path / "kernels.spvasm"
    text.write_text(module.get_source("spirv"))
    environment = ["--target-env", "vulkan1.1"]
    subprocess.run(["spirv-val", *environment, tmp_path / "kernels.spv"], check=True)
    assembled = ["spirv-as", *environment, "--preserve-numeric-ids", text, "-o", tmp_path / "again"]
    subprocess.run(assembled, check=True)
    words = [np.frombuffer((tmp_path / f).read_bytes(), "<u4") for f in ("kernels.spv", "again")]
    np.testing.assert_array_equal(words[0][4:], words[1][4:])  # behind versions and the generator


def test_modules_are_valid_and_their_text_is_the_same_module(tmp_path):
    from tests.backends.gpu import test_kernels

    schedules = {
        "add": test_kernels.vector_add(te.var("n")),
        "product": test_kernels.matmul(61, 67, 33, True),
        "sums": test_kernels.row_sums(7, 100, 48),
    }
    for name, (schedule, args) in schedules.items():
        made = tvm.build(schedule, args, VULKAN, name=name).imported_modules[0]
        checked(made, tmp_path)


def test_all_types_and_branches_are_valid(tmp_path):
    def many(a, b, c, d, e):
        chosen = tvm.tir.if_then_else(a > 0, te.exp(a), te.fmod(a, a + 2.5))
        whole = tvm.tir.popcount(b) + te.floordiv(b, c.astype("int64")) + tvm.tir.clz(b)
        total = chosen.astype("float64") + whole.astype("float64") * te.sqrt(d)
        return total.astype("float16") + e

    made, _ = elementwise(many, "float32", "int64", "int8", "float64", "float16")
    checked(made.imported_modules[0], tmp_path)


def test_a_barrier_orders_memory_of_the_block_and_of_buffers():
    from tests.backends.gpu import test_kernels

    schedule, args = test_kernels.matmul(64, 64, 32, False)
    text = tvm.build(schedule, args, VULKAN).imported_modules[0].get_source("spirv")
    (semantics,) = {line.split()[-1] for line in text.splitlines() if "OpControlBarrier" in line}
    constant = next(line for line in text.splitlines() if line.startswith(f"{semantics} = "))
    word = int(constant.split()[-1])
    assert word & 0x8  # acquire and release
    assert word & 0x40  # of buffers
    assert word & 0x100  # of what the block shares


@pytest.mark.parametrize(("function", "reference"), [
    (lambda a, b: te.floordiv(a, b), np.floor_divide),
    (lambda a, b: te.floormod(a, b), np.mod),
    (lambda a, b: te.truncmod(a, b), np.fmod),
    (lambda a, b: te.max(a, b) - te.min(a, b), lambda a, b: np.maximum(a, b) - np.minimum(a, b)),
    (lambda a, b: a ^ b, np.bitwise_xor),
    (lambda a, b: (a << 3) - (b >> 1), lambda a, b: (a << 3) - (b >> 1)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integers(device, function, reference, dtype):
    rng = np.random.default_rng(3)
    a = rng.integers(-100, 100, 64).astype(dtype)
    b = rng.integers(1, 9, 64).astype(dtype) * rng.choice(np.array([-1, 1], dtype), 64)
    np.testing.assert_array_equal(computed(device, function, a, b), reference(a, b))


def test_bits_of_every_width(device):
    for dtype in ("uint8", "uint32", "uint64"):
        bits = np.dtype(dtype).itemsize * 8
        a = np.array([0, 1, 5, 2 ** (bits - 1), 2**bits - 1], dtype)
        counts = computed(device, lambda x: tvm.tir.popcount(x).astype("int32"), a)
        np.testing.assert_array_equal(counts, [0, 1, 2, 1, bits])
        zeros = computed(device, lambda x: tvm.tir.clz(x).astype("int32"), a)
        np.testing.assert_array_equal(zeros, [bits, bits - 1, bits - 3, 0, 0])


def test_remainders_of_floats_are_exact(device):
    a = np.array([5.3, -5.3, 1e30, 0.1, 7.0, np.inf, 1.0, np.nan, -6.0], "float32")
    b = np.array([2.0, 2.0, 3.7, -0.03, 7.0, 2.0, 0.0, 1.0, 4.0], "float32")
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(computed(device, te.fmod, a, b), np.fmod(a, b))


def test_extremes_and_tests_of_what_is_no_number(device):
    values = [1.0, np.nan, np.inf, -np.inf, -0.0, 3.0]
    a, b = np.array(values, "float32"), np.array(values[::-1], "float32")
    np.testing.assert_array_equal(computed(device, te.max, a, b), np.maximum(a, b))
    is_nan = computed(device, lambda x: te.isnan(x).astype("int32"), a)
    np.testing.assert_array_equal(is_nan, np.isnan(a).astype("int32"))


def test_halves_are_their_sixteen_bits(device):
    a = np.array([1.5, -2.25, 6e-5, 250.0, np.inf], "float16")
    np.testing.assert_array_equal(computed(device, lambda x: x * x + x, a), a * a + a)


def test_threads_whose_number_is_not_known_are_refused():
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(CodegenError, match=r"kernel_kernel0 has n.* threads along threadIdx\.x"):
        tvm.build(s, [a, b], VULKAN, name="kernel")


def test_a_loop_that_no_thread_can_report_from_is_refused():
    with pytest.raises(CodegenError, match=r"a kernel cannot call_extern"):
        elementwise(lambda x: tvm.tir.call_extern("float32", "sinf", x), "float32")


def counted(text, instruction):
    return sum(f" {instruction} " in f" {line} " for line in text.splitlines())


def model_source(body, *shapes, target="vulkan"):
    given = [relay.var(f"x{k}", shape=shape) for k, shape in enumerate(shapes)]
    module = tvm.IRModule.from_expr(relay.Function(given, body(*given)))
    lib = relay.build(module, target=Target(target, host="llvm"))
    return lib, lib.lib.imported_modules[0].get_source("spirv")


def run(lib, device, *arrays):
    module = graph_executor.GraphModule(lib["default"](device))
    module.run(**{f"x{k}": array for k, array in enumerate(arrays)})
    return module.get_output(0).numpy()


def test_a_tile_reads_each_element_once_and_its_sums_are_variables(device, tmp_path):
    """Drivers that look for nothing twice (SwiftShader) compile and run what is written."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal((32, 24)).astype("float32") for _ in range(2))
    target = "mesa/lavapipe"
    lib, text = model_source(relay.nn.dense, x.shape, w.shape, target=target)
    checked(lib.lib.imported_modules[0], tmp_path)
    products = text.count(" Fma ")
    assert products >= 16
    assert "OpTypeArray" not in text
    sums = counted(text, "OpVariable") - text.count("StorageBuffer\n") - 2
    loads = counted(text, "OpLoad")
    assert loads < 3 * products  # of a sum at each step and at its end, and of a row and a column
    assert sums >= products
    np.testing.assert_allclose(run(lib, device, x, w), x @ w.T, rtol=1e-5, atol=1e-5)


def test_what_one_side_of_a_branch_computes_is_not_known_to_the_other(device):
    """Nor behind it: each computes the same square, in a block of its own."""

    def body(a):
        square = a * a + 0.25
        low = tvm.tir.if_then_else(a < -0.5, te.exp(square), te.sqrt(square))
        return tvm.tir.if_then_else(a < 0.0, low, te.log(square)) + square

    x = np.linspace(-1, 1, 24).astype("float32")
    square = x * x + 0.25
    wanted = np.where(x < -0.5, np.exp(square), np.where(x < 0, np.sqrt(square), np.log(square)))
    np.testing.assert_allclose(computed(device, body, x), wanted + square, rtol=1e-6)


def test_an_element_is_read_again_after_it_was_written(device):
    """Loads of what a kernel does not write are alike; of what it writes they are not."""
    n = 16
    a = te.placeholder((n,), name="a")
    body = te.extern(
        (n,), [a], lambda ins, outs: _twice(ins[0], outs[0], n), name="out", dtype="float32"
    )
    schedule = te.create_schedule(body.op)
    kernel = tvm.build(schedule, [a, body], VULKAN, name="kernel")
    x = np.arange(n).astype("float32")
    out = tvm.nd.array(np.zeros(n, "float32"), device)
    kernel(tvm.nd.array(x, device), out)
    np.testing.assert_array_equal(out.numpy(), 4 * x + 1)


def _twice(source, target, n):
    build = tvm.tir.ir_builder.create()
    read, write = build.buffer_ptr(source), build.buffer_ptr(target)
    thread = te.thread_axis("threadIdx.x")
    build.scope_attr(thread, "thread_extent", n)
    at = thread.var
    write[at] = read[at] * 2.0
    write[at] = write[at] + read[at]
    write[at] = write[at] + read[at] + 1.0
    return build.get()


@pytest.mark.parametrize("groups", [1, 8])
def test_a_processor_asks_no_branch_for_padding(device, groups):
    """It would run both sides, for the lanes of each: an index is chosen sooner."""
    rng = np.random.default_rng(groups)
    x = rng.standard_normal((1, 8, 12, 12)).astype("float32")
    w = rng.standard_normal((8, 8 // groups, 3, 3)).astype("float32")

    def body(data, weight):
        return relay.nn.conv2d(
            data, weight, padding=(1, 1), groups=groups, channels=8, kernel_size=(3, 3)
        )

    found = {}
    for target in ("vulkan", "mesa/lavapipe", "google/swiftshader"):
        lib, text = model_source(body, x.shape, w.shape, target=target)
        found[target] = run(lib, device, x, w)
        branches, loops = counted(text, "OpSelectionMerge"), counted(text, "OpLoopMerge")
        assert loops == (groups == 1) + (2 if target == "vulkan" else 1)  # taps beside each other
        assert (branches > 0) == (target == "vulkan"), target
    for target, values in found.items():
        np.testing.assert_allclose(values, found["vulkan"], rtol=1e-5, atol=1e-5, err_msg=target)
