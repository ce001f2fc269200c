"""AMD's GPUs: code objects by LLVM, and HIP's interface against a driver that the tests make.

The kernels that run are those of the code objects' LLVM IR, compiled for this processor.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from simulated import HEADERS
from tests.backends.gpu import test_cuda_driver, test_kernels

import slipway as tvm
from slipway.errors import CodegenError, TargetError
from slipway.target import Target

PROGRAM = test_cuda_driver.PROGRAM.replace('Target("cuda"', 'Target("rocm"')


@pytest.fixture(scope="session")
def fakes(tmp_path_factory):
    """A folder with a libamdhip64.so.6, and with the kernels that it finds."""
    compiler = shutil.which("clang++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: apt-get install g++")
    folder = tmp_path_factory.mktemp("fake_hip")
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", str(HEADERS / "fake_hip.cc")]
    subprocess.run([*command, "-o", str(folder / "libamdhip64.so.6"), "-ldl"], check=True)
    return folder


def check(fakes, body, **environment):
    """Run a program that has the driver."""
    folder = str(Path(__file__).parent)
    text = PROGRAM.format(folder=folder, fakes=str(fakes), body=textwrap.dedent(body))
    paths = {"LD_LIBRARY_PATH": str(fakes), "SLW_FAKE_CUDA": str(fakes)}
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, **paths, **environment}, check=False,
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_devices_and_kernels(fakes, tmp_path):
    check(fakes, f"""
        dev = tvm.rocm(1)
        assert dev.exist and not tvm.rocm(2).exist
        assert (dev.device_name, dev.compute_version, dev.warp_size) == ("Fake GPU 1", "8.6", 32)
        assert dev.max_thread_dimensions == [1024, 1024, 64]
        assert (dev.max_clock_rate, dev.multi_processor_count) == (1500000, 7)
        assert dev.driver_version == "HIP 6.4", dev.driver_version
        fails(tvm.rocm(2).sync, "there is no rocm(2)", "2 HIP devices")

        folder = {str(tmp_path)!r}
        add = built(*test_kernels.vector_add(tvm.te.var("n")), name="add")
        product = built(*test_kernels.matmul(61, 67, 33, True), name="product")
        for number in (0, 1):
            dev = tvm.rocm(number)
            x, y = random(1000), random(1000, seed=1)
            np.testing.assert_array_equal(run(add, dev, (x, y), (1000,)), x + y)
        x, y = random(61, 33), random(33, 67, seed=1)
        np.testing.assert_allclose(run(product, dev, (x, y), (61, 67)), x @ y, 1e-4, 1e-5)
        here, there = (tvm.nd.array(random(8), tvm.rocm(n)) for n in (0, 1))
        fails(lambda: add(here, there, here), "tensors of rocm(0) and rocm(1)")
        timed = add.time_evaluator(add.entry_name, tvm.rocm(0), number=2)(here, here, here)
        assert timed.mean == 1.0, timed

        add.save(folder + "/elsewhere.o")
        add.imported_modules[0].save(folder + "/elsewhere.hsaco")
        add.export_library(folder + "/lib.tar")
        host = tvm.runtime.load_module(folder + "/elsewhere.o")
        host.import_module(tvm.runtime.load_module(folder + "/elsewhere.hsaco"))
        x, y = random(40), random(40, seed=1)
        for function in (host, tvm.runtime.load_module(folder + "/lib.tar")):
            np.testing.assert_array_equal(run(function, tvm.rocm(0), (x, y), (40,)), x + y)

        target = Target("rocm", host="llvm")
        unknown = run_kernels.built(*test_kernels.vector_add(56), target, name="unknown")
        x = random(56)
        fails(lambda: run(unknown, tvm.rocm(0), (x, x), (56,)), "refused the code", "-mcpu=gfx")
    """)  # fmt: skip


def test_no_driver_is_told(fakes):
    check(fakes, """
        assert not tvm.rocm(0).exist
        fails(tvm.rocm(0).sync, "HIP does not work on this machine", "rocminfo")
    """, SLW_FAKE_CUDA_BROKEN="1")  # fmt: skip


@pytest.mark.parametrize("cpu", ["gfx803", "gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100"])
def test_a_code_object_holds_the_kernels(cpu):
    product = tvm.build(
        *test_kernels.matmul(64, 64, 64, True), Target(f"rocm -mcpu={cpu}", host="llvm"),
        name="product",
    )  # fmt: skip
    module = product.imported_modules[0]
    assert module.code[:4] == b"\x7fELF"
    assert int.from_bytes(module.code[18:20], "little") == 224  # EM_AMDGPU
    assert b"product_kernel0.kd" in module.code
    assembly = module.get_source("asm")
    assert f"gfx{cpu[3:]}" in assembly
    assert "ds_read" in assembly or "ds_load" in assembly
    # A wave of 64 threads, which is a block's, needs no barrier.
    assert ("s_barrier" in assembly) == cpu.startswith("gfx1")
    assert set(re.findall(r"vgpr_spill_count: (\d+)", assembly)) == {"0"}
    assert "__global__ void" in module.get_source("hip")
    assert module.get_source() == assembly


def test_what_amd_does_not_have_is_refused():
    with pytest.raises(TargetError, match="gfx9000"):
        tvm.build(*test_kernels.vector_add(64), Target("rocm -mcpu=gfx9000", host="llvm"))
    with pytest.raises(CodegenError, match="2048 threads"):
        tvm.build(*test_kernels.vector_add(4096, factor=2048), Target("rocm", host="llvm"))


def test_streams_are_the_drivers_and_in_the_order_that_is_asked_for(fakes):
    check(fakes, test_cuda_driver.STREAMS.format(kind="rocm"))


def test_a_launch_gives_shared_memory(fakes):
    check(fakes, f"""
        sys.path.append({str(Path(__file__).parents[3])!r})
        from tests.backends.gpu.lowering.test_dynamic_shared import mirrored
        rows = built(*mirrored(tvm.te.var("n")), name="rows")
        for n in (7, 12288):
            x = random(3, n)
            assert (run(rows, tvm.rocm(0), (x,), x.shape) == x[:, ::-1]).all(), n
        x = random(3, 12289)
        too_long = lambda: run(rows, tvm.rocm(0), (x,), x.shape)
        fails(too_long, "rows_kernel0 has 49280 bytes", "sizes")
    """)  # fmt: skip
