"""Vulkan's devices: memory, batches of work, limits, and what is said where something is wrong."""

import hashlib

import numpy as np
import pytest
from run_kernels import VULKAN, random, run
from tests.backends.gpu.test_kernels import vector_add

import slipway as tvm
from slipway import te
from slipway.codegen.spirv.sink import SpirvSink
from slipway.errors import CodegenError, DeviceError
from slipway.runtime.device_module import DeviceModule
from slipway.target import Target


def build(schedule_and_args, name="kernel", target=VULKAN):
    return tvm.build(*schedule_and_args, target, name=name)


def test_a_device_tells_what_it_is(vulkan):
    assert vulkan.device_name
    assert vulkan.max_threads_per_block >= 128
    assert vulkan.max_shared_memory_per_block >= 16384
    assert len(vulkan.max_thread_dimensions) == 3
    assert vulkan.api_version.startswith("Vulkan 1.")
    assert vulkan.total_global_memory > 0
    with pytest.raises(DeviceError, match=r"there is no vulkan\(99\): this machine has"):
        tvm.vulkan(99).sync()


def test_more_work_than_a_batch_takes_is_done_in_order(vulkan):
    add = build(vector_add(64))
    total = tvm.nd.array(np.zeros(64, "float32"), vulkan)
    one = tvm.nd.array(np.ones(64, "float32"), vulkan)
    for _ in range(200):
        add(total, one, total)
    np.testing.assert_array_equal(total.numpy(), np.full(64, 200, "float32"))


def test_memory_that_is_given_back_is_used_again_and_copies_wait_for_kernels(vulkan):
    add = build(vector_add(256))
    x = random(256)
    for number in range(80):  # more than are kept spare
        given = tvm.nd.array(x + number, vulkan)
        out = tvm.nd.empty((256,), device=vulkan)
        add(given, given, out)
        again = out.copyto(vulkan)
        del out
        np.testing.assert_array_equal(again.numpy(), 2 * (x + number))


def test_memory_that_the_processor_does_not_see_is_copied_through_another(vulkan, monkeypatch):
    monkeypatch.setenv("SLIPWAY_VULKAN_STAGING", "1")
    n = (9 << 20) // 4 + 3  # more than one piece
    x = np.arange(n, dtype="float32")
    held = tvm.nd.array(x, vulkan)
    np.testing.assert_array_equal(held.numpy(), x)
    np.testing.assert_array_equal(run(build(vector_add(n, 256)), vulkan, (held, held), (n,)), 2 * x)


def test_code_is_carried_by_libraries_and_files(vulkan, tmp_path):
    x, y = random(40), random(40, seed=1)
    for ending in ("so", "tar"):
        build(vector_add(40, 8), f"in_{ending}").export_library(tmp_path / f"lib.{ending}")
        again = tvm.runtime.load_module(tmp_path / f"lib.{ending}")
        np.testing.assert_array_equal(run(again, vulkan, (x, y), (40,)), x + y)
    apart = build(vector_add(40, 8), "apart")
    apart.save(tmp_path / "apart.o")
    host = tvm.runtime.load_module(tmp_path / "apart.o")
    with pytest.raises(DeviceError, match=r"kernel apart_kernel0 is not loaded.*\.spv"):
        run(host, vulkan, (x, y), (40,))
    apart.imported_modules[0].save(tmp_path / "apart.spv")
    host.import_module(tvm.runtime.load_module(tmp_path / "apart.spv"))
    function = host["apart"]
    del host
    np.testing.assert_array_equal(run(function, vulkan, (x, y), (40,)), x + y)


def test_what_is_no_code_is_told_with_its_kernel(vulkan, tmp_path):
    made = build(vector_add(24, 8), "spoilt")
    made.save(tmp_path / "spoilt.o")
    code = made.imported_modules[0].code
    wrong = b"text" + code[4:]
    old, new = (hashlib.sha256(c).hexdigest().encode() for c in (code, wrong))
    host = (tmp_path / "spoilt.o").read_bytes()
    (tmp_path / "spoilt.o").write_bytes(host.replace(old, new))
    held = DeviceModule("vulkan", 7, wrong, ["spoilt_kernel0"]).load()
    function = tvm.runtime.load_module(tmp_path / "spoilt.o")
    function.import_module(held)
    with pytest.raises(DeviceError, match=r"the code of kernel spoilt_kernel0 is no SPIR-V"):
        run(function, vulkan, (random(24), random(24)), (24,))


def test_launches_over_a_limit_name_kernel_device_and_limit(vulkan):
    most = vulkan.max_threads_per_block
    wide = build(
        vector_add(4 * most, 2 * most),
        "wide",
        Target(f"vulkan -max_threads_per_block={2 * most}", host="llvm"),
    )
    x = random(4 * most)
    with pytest.raises(
        DeviceError, match=rf"kernel wide_kernel0 .* {2 * most} threads in a block, and vulkan\(0\)"
    ):
        run(wide, vulkan, (x, x), (4 * most,))
    add = build(vector_add(te.var("n"), 1), "long")
    many = np.zeros(70_000, "float32")
    with pytest.raises(DeviceError, match=r"kernel long_kernel0 .* 70000 blocks along an axis"):
        run(add, vulkan, (many, many), (70_000,))
    # The device goes on.
    np.testing.assert_array_equal(run(add, vulkan, (x[:9], x[:9]), (9,)), 2 * x[:9])


def test_a_model_of_more_blocks_than_an_axis_has(vulkan):
    n = 65535 * 64 + 77
    x = tvm.relay.var("x", shape=(n,))
    mod = tvm.IRModule.from_expr(tvm.relay.Function([x], x + tvm.relay.const(1.0)))
    module = tvm.contrib.graph_executor.GraphModule(
        tvm.relay.build(mod, target=VULKAN)["default"](vulkan)
    )
    values = np.arange(n, dtype="float32") % 1000
    module.run(x=values)
    np.testing.assert_array_equal(module.get_output(0).numpy(), values + 1)


def test_numbers_of_a_kernel_have_a_limit():
    sizes = [te.var(f"n{i}") for i in range(40)]
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + sum(sizes).astype("float32"), name="b")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(CodegenError, match=r"is given 160 bytes of numbers.*takes 128"):
        tvm.build(s, [a, b, *sizes], VULKAN, name="kernel")


def test_wgsl_has_no_floats_of_64_bits():
    a = te.placeholder((8,), name="a", dtype="float64")
    b = te.compute((8,), lambda i: a[i] + a[i], name="b")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(CodegenError, match="kernel kernel_kernel0 uses float64, which WGSL"):
        tvm.build(s, [a, b], Target("webgpu", host="llvm"), name="kernel")


def test_integers_of_two_bits_are_refused_in_words():
    with pytest.raises(CodegenError, match="kernels for Vulkan have no int2"):
        SpirvSink().module.type_of("int2")
