"""Kernels in PTX, as NVIDIA's assembler takes them."""

import re
import subprocess

import pytest
import run_kernels
from tests.backends.gpu import test_kernels

import slipway as tvm
from slipway import relay, te
from slipway.errors import CodegenError, TargetError
from slipway.target import Target

ARCHITECTURES = ["sm_53", "sm_62", "sm_72", "sm_75", "sm_80", "sm_87", "sm_89", "sm_90a", "sm_100"]


def assembled(ptx, arch, folder):
    """Return what the assembler says of a program: registers, spills, stack."""
    from nvidia import cuda_nvcc

    tool = next(iter(cuda_nvcc.__path__)) + "/bin/ptxas"
    source = folder / "kernels.ptx"
    source.write_text(ptx)
    command = [tool, "-v", f"-arch={arch}", str(source), "-o", str(folder / "kernels.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def spilt(report):
    """Return the bytes that kernels store to and load from memory for want of registers."""
    return sum(int(n) for n in re.findall(r"(\d+) bytes spill", report))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_products_in_shared_memory_are_assembled_without_spills(arch, tmp_path):
    target = Target(f"cuda -arch={arch}", host="llvm")
    schedule, args = test_kernels.matmul(512, 512, 512, virtual=True, tile=64)
    module = run_kernels.built(schedule, args, target).imported_modules[0]
    ptx = module.get_source("ptx")
    assert f".target {arch}" in ptx
    assert "st.shared" in ptx
    assert "bar.sync" in ptx
    report = assembled(ptx, arch, tmp_path)
    assert "Compiling entry function 'kernel_kernel0'" in report
    assert spilt(report) == 0


@pytest.mark.parametrize("arch", ["sm_53", "sm_80"])
@pytest.mark.parametrize("kind", ["convolution", "grouped", "dense", "batch_matmul"])
def test_kernels_of_models_are_assembled_without_spills(kind, arch, tmp_path):
    def var(name, *shape):
        return relay.var(name, shape=shape)

    x = {
        "convolution": lambda: relay.nn.conv2d(
            var("x", 1, 64, 28, 28), var("w", 64, 64, 3, 3), padding=(1, 1)
        ),
        "grouped": lambda: relay.nn.conv2d(
            var("x", 1, 48, 15, 15), var("w", 48, 1, 5, 5), groups=48, strides=(2, 2)
        ),
        "dense": lambda: relay.nn.dense(var("x", 7, 300), var("w", 129, 300)),
        "batch_matmul": lambda: relay.nn.batch_matmul(var("x", 3, 65, 40), var("w", 3, 33, 40)),
    }[kind]()
    function = relay.Function(relay.analysis.free_vars(x), relay.nn.relu(x))
    target = Target(f"cuda -arch={arch}", host="llvm")
    made = relay.build(tvm.IRModule.from_expr(function), target=target)
    report = assembled(made.lib.imported_modules[0].get_source("ptx"), arch, tmp_path)
    assert spilt(report) == 0


@pytest.mark.parametrize(
    ("arch", "filters", "window"),
    [("sm_87", 1024, 1), ("sm_89", 1024, 1), ("sm_90a", 1024, 1), ("sm_87", 64, 3)],
)
def test_the_assembler_does_not_spill_for_more_blocks(arch, filters, window, tmp_path):
    """It took 64 registers where 72 are wanted, so that four blocks have room instead of three.

    And 80 in place of 87 for the product of a 3x3 convolution in Winograd's form.
    """
    size = 14 if window == 1 else 56
    channels = 256 if window == 1 else 64
    x = relay.var("x", shape=(1, channels, size, size))
    w = relay.const(run_kernels.random(filters, channels, window, window))
    body = relay.nn.relu(relay.nn.conv2d(x, w, padding=(window // 2, window // 2)))
    target = Target(f"cuda -arch={arch}", host="llvm")
    made = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target=target)
    ptx = made.lib.imported_modules[0].get_source("ptx")
    assert ".minnctapersm 1" in ptx
    assert spilt(assembled(ptx, arch, tmp_path)) == 0


def test_functions_that_a_gpu_lacks_come_along(tmp_path):
    """A remainder of floats is a function of ours, and 64 bits divide by LLVM's own code."""
    x, y = relay.var("x", shape=(70,)), relay.var("y", shape=(70,))
    n = relay.var("n", shape=(70,), dtype="int64")
    out = relay.Tuple([relay.mod(x, y), relay.floor_mod(n, n), relay.exp(x), relay.erf(y)])
    target = Target("cuda -arch=sm_75", host="llvm")
    made = relay.build(tvm.IRModule.from_expr(relay.Function([x, y, n], out)), target=target)
    ptx = made.lib.imported_modules[0].get_source("ptx")
    assembled(ptx, "sm_75", tmp_path)
    assert ".extern" not in ptx


def test_an_architecture_that_is_none_is_refused():
    with pytest.raises(TargetError, match=r"sm_1234.*Did you mean"):
        run_kernels.built(*test_kernels.vector_add(64), Target("cuda -arch=sm_1234", host="llvm"))


def mirrored(n):
    """A block that mirrors a row of `n` floats by way of shared memory."""
    a = te.placeholder((1, n), name="A")
    b = te.compute((1, n), lambda i, j: a[i, n - 1 - j], name="B")
    s = te.create_schedule(b.op)
    held = s.cache_read(a, "shared", [b])
    s[b].bind(b.op.axis[0], run_kernels.axis("blockIdx.x"))
    s[held].compute_at(s[b], b.op.axis[0])
    for tensor in (held, b):
        _, thread = s[tensor].split(s[tensor].op.axis[1], factor=256)
        s[tensor].bind(thread, run_kernels.axis("threadIdx.x"))
    return s, [a, b]


@pytest.mark.parametrize("arch", ["sm_53", "sm_80", "sm_90a", "sm_100"])
def test_shared_memory_ends_where_the_assembler_says(arch, tmp_path):
    options = f"cuda -arch={arch} -max_threads_per_block=1024 -max_shared_memory_per_block=232448"
    target = Target(options, host="llvm")
    module = run_kernels.built(*mirrored(49152 // 4), target).imported_modules[0]
    assert "49152 bytes smem" in assembled(module.get_source("ptx"), arch, tmp_path)
    most = 227  # as the target says
    message = rf'49 KB .* has 48 KB .* or set_scope\("shared.dyn"\): .* it has {most} KB'
    with pytest.raises(CodegenError, match=message):
        run_kernels.built(*mirrored(49 * 256), target)


def test_small_tiles_are_left_to_the_assembler():
    """Told that one block is enough, it takes registers that they do not need."""
    module = run_kernels.built(*test_kernels.vector_add(64), Target("cuda", host="llvm"))
    assert ".minnctapersm" not in module.imported_modules[0].get_source("ptx")
