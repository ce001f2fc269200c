"""Shared memory that a launch gives a kernel: scope "shared.dyn"."""

import numpy as np
import pytest
from run_kernels import axis, built, random, run, source
from tests.backends.gpu.test_kernels import matmul, vector_add
from tests.backends.gpu.test_ptx import assembled, spilt

import slipway as tvm
from slipway import te
from slipway.errors import CodegenError, DeviceError
from slipway.target import Target


def mirrored(n, scope="shared.dyn", copies=1):
    """A block for each of three rows, which mirrors it by way of memory that its threads share."""
    a = te.placeholder((3, n), name="A")
    b = te.compute((3, n), lambda i, j: a[i, n - 1 - j], name="B")
    s = te.create_schedule(b.op)
    held = [s.cache_read(a, scope, [b])]
    while len(held) < copies:
        held.append(s.cache_read(held[-1], scope, [b]))
    s[b].bind(b.op.axis[0], axis("blockIdx.x"))
    for tensor in held:
        s[tensor].compute_at(s[b], b.op.axis[0])
    for tensor in (*held, b):
        _, thread = s[tensor].split(s[tensor].op.axis[1], factor=32)
        s[tensor].bind(thread, axis("threadIdx.x"))
    return s, [a, b]


@pytest.mark.parametrize("scopes", [("shared.dyn", "shared.dyn"), ("shared", "shared.dyn")])
def test_products_from_memory_of_the_launch(any_device, scopes):
    x, y = random(61, 33), random(33, 67, seed=1)
    function = built(*matmul(61, 67, 33, True, scopes=scopes))
    np.testing.assert_allclose(run(function, any_device, (x, y), (61, 67)), x @ y, atol=1e-4)


@pytest.fixture(params=["opencl", "metal", "cuda", "ll", "amd"])
def giving_device(request, simulators, monkeypatch):
    """A device whose launches give memory."""
    import run_kernels

    if request.param == "opencl":
        yield request.getfixturevalue("device")
        return
    simulator = simulators(request.param)
    target = Target(simulator.kind, host="llvm")
    monkeypatch.setattr(run_kernels, "current", (target, simulator))
    simulator.enter()
    yield tvm.device(simulator.kind, 0)
    simulator.leave()


def test_rows_of_a_length_that_only_the_caller_knows(giving_device):
    """Each of three pieces lies behind the one before, at a multiple of sixteen bytes."""
    function = built(*mirrored(te.var("n"), copies=3))
    for n in (1, 31, 70, 500):
        x = random(3, n)
        np.testing.assert_array_equal(run(function, giving_device, (x,), (3, n)), x[:, ::-1])


def test_the_sources_declare_it_once():
    for kind, language, words in (
        ("opencl", "opencl", "__local ulong2* slw_dynamic)"),
        ("cuda", "cuda", "extern __shared__ __align__(16) uint8_t slw_dynamic[];"),
        ("cuda", "ptx", ".extern .shared .align 16 .b8 slw_dynamic[];"),
        ("rocm", "hip", "extern __shared__ __align__(16) uint8_t slw_dynamic[];"),
        ("metal", "metal", "threadgroup uint8_t* slw_dynamic [[threadgroup(0)]]"),
    ):
        function = built(*mirrored(100, copies=2), Target(kind, host="llvm"))
        assert source(function, language).count(words) == 1


@pytest.mark.parametrize("kind", ["vulkan", "webgpu"])
def test_elsewhere_its_size_is_constant(kind):
    target = Target(kind, host="llvm")
    language = {"vulkan": "spirv", "webgpu": "wgsl"}[kind]
    texts = [
        source(built(*mirrored(100, scope), target), language) for scope in ("shared.dyn", "shared")
    ]
    assert texts[0].replace("_dyn", "") == texts[1]
    with pytest.raises(CodegenError, match=r"has the shape .* it must be constant"):
        built(*mirrored(te.var("n")), target)


def test_rows_that_are_read_where_another_tensor_says(giving_device):
    """What that holds is not known outside: each block holds its whole row."""
    n, m = te.var("n"), te.placeholder((3,), "int32", name="m")
    a = te.placeholder((3, n), name="A")
    b = te.compute((3, n), lambda i, j: a[i, (m[i] + j) % n], name="B")
    s = te.create_schedule(b.op)
    held = s.cache_read(a, "shared.dyn", [b])
    s[b].bind(b.op.axis[0], axis("blockIdx.x"))
    s[held].compute_at(s[b], b.op.axis[0])
    for tensor in (held, b):
        _, thread = s[tensor].split(s[tensor].op.axis[1], factor=32)
        s[tensor].bind(thread, axis("threadIdx.x"))
    x, by = random(3, 50), np.array([0, 7, 49], "int32")
    want = np.stack([np.roll(row, -shift) for row, shift in zip(x, by, strict=True)])
    function = built(s, [a, m, b])
    np.testing.assert_array_equal(run(function, giving_device, (x, by), (3, 50)), want)


def test_a_size_that_the_kernel_finds_is_refused():
    def body(ins, outs):
        builder = tvm.tir.ir_builder.create()
        block = axis("blockIdx.x")
        builder.scope_attr(block, "thread_extent", 3)
        held = builder.allocate("float32", (block.var + 1,), "held", scope="shared.dyn")
        held[block.var] = 1.0
        builder.buffer_ptr(outs[0])[block.var] = held[block.var]
        return builder.get()

    out = te.extern((3,), [], body, name="out", dtype="float32")
    with pytest.raises(CodegenError, match=r"'shared.dyn' it takes depends on .* before it runs"):
        tvm.build(te.create_schedule(out.op), [out], Target("opencl", host="llvm"))


def test_panels_of_several_steps_are_fetched_ahead_into_it(simulators, monkeypatch):
    import run_kernels

    simulator = simulators("ll")
    monkeypatch.setattr(
        run_kernels, "current", (Target("cuda -arch=sm_80", host="llvm"), simulator)
    )
    simulator.enter()
    s, args = matmul(40, 64, 96, False, scopes=("shared.dyn", "shared.dyn"))
    for stage in s.stages:
        if stage.scope == "shared.dyn":
            stage.double_buffer(3)
    function = built(s, args)
    assert "cp.async" in source(function, "ptx")
    x, y = random(40, 96), random(96, 64, seed=1)
    found = run(function, tvm.cuda(0), (x, y), (40, 64))
    simulator.leave()
    np.testing.assert_allclose(found, x @ y, atol=1e-4)


KB_OF_LAUNCHES = {
    "sm_53": 48, "sm_72": 96, "sm_75": 64, "sm_80": 163, "sm_87": 163, "sm_89": 99, "sm_90a": 227,
    "sm_100": 227, "sm_120": 99,
}  # fmt: skip


@pytest.mark.parametrize("arch", KB_OF_LAUNCHES)
def test_an_architecture_has_more_for_launches(arch):
    target, kb = Target(f"cuda -arch={arch}", host="llvm"), KB_OF_LAUNCHES[arch]
    built(*mirrored(kb * 256), target)
    message = rf"kernel_kernel0 uses {kb + 1} KB .* has {kb} KB for a block.*shared.dyn"
    with pytest.raises(CodegenError, match=message):
        built(*mirrored((kb + 1) * 256), target)


def test_the_targets_own_number_holds():
    """That which every device has says nothing of launches, and tags have it."""
    built(*mirrored(163 * 256), Target("nvidia/nvidia-a100", host="llvm"))
    for given in (8, 100):
        options = f"cuda -arch=sm_80 -max_shared_memory_per_block={given * 1024}"
        built(*mirrored(given * 256), Target(options, host="llvm"))
        with pytest.raises(CodegenError, match=rf"has {given} KB for a block"):
            built(*mirrored(given * 256 + 4), Target(options, host="llvm"))


@pytest.mark.parametrize("arch", ["sm_72", "sm_80", "sm_90a"])
def test_the_assembler_takes_it(arch, tmp_path):
    target = Target(f"cuda -arch={arch}", host="llvm")
    dynamic = ("shared.dyn", "shared.dyn")
    schedule = matmul(512, 512, 512, True, tile=64, scopes=dynamic)
    ptx = source(built(*schedule, target), "ptx")
    assert "ld.shared" in ptx
    assert " smem" not in (report := assembled(ptx, arch, tmp_path))
    assert spilt(report) == 0


def test_more_than_the_device_has_is_refused(device):
    n = te.var("n")
    function = built(*mirrored(n), name="long_rows")
    most = device.max_shared_memory_per_block // 4
    x = random(3, most + 32)
    with pytest.raises(DeviceError, match=r"long_rows_kernel0 has \d+ bytes .* opencl\(0\) has "):
        run(function, device, (x,), x.shape)
    add = built(*vector_add(64), name="after")
    np.testing.assert_array_equal(run(add, device, (x[0, :64], x[0, :64]), (64,)), 2 * x[0, :64])
