"""Metal's interface as the runtime uses it, against a framework that the tests make.

The kernels are those that a Mac would compile, compiled as C++ for this processor.  The runtime
library of this machine has no Metal: these programs compile one that has.
"""

import os
import platform
import shutil
import subprocess
import sys
import textwrap

import pytest
from simulated import HEADERS
from tests.backends.gpu.test_cuda_driver import PROGRAM

from slipway.toolchain import zig

FOLDER = HEADERS.parent
WITH_METAL = """
from slipway.toolchain import native, runtime_library
native.OPTIMISE = ("-O0", "-DSLW_HAS_METAL", *runtime_library._C11)
runtime_library.OPTIMISE = native.OPTIMISE
import ctypes
metal = ctypes.CDLL("libMetal.dylib")
"""
BEGIN = PROGRAM.replace('Target("cuda"', 'Target("metal"').replace("fake_cuda", "fake_metal")


@pytest.fixture(scope="session")
def fakes(tmp_path_factory):
    """A folder with the framework, and with the kernels that it finds."""
    compiler = shutil.which("clang++") or shutil.which("g++")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("no C++ compiler for x86-64: apt-get install g++")
    folder = tmp_path_factory.mktemp("fake_metal")
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", str(HEADERS / "fake_metal.cc")]
    subprocess.run([*command, "-o", str(folder / "libMetal.dylib"), "-ldl"], check=True)
    return folder


def check(fakes, body, **environment):
    """Run a program that has the framework."""
    text = BEGIN.format(
        folder=str(FOLDER), fakes=str(fakes), body=WITH_METAL + textwrap.dedent(body)
    )
    paths = {"LD_LIBRARY_PATH": str(fakes), "SLW_FAKE_METAL": str(fakes)}
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, **paths, **environment}, check=False,
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_devices_kernels_copies_and_times(fakes):
    check(fakes, """
        dev = tvm.metal(1)
        assert dev.exist and not tvm.metal(2).exist
        assert (dev.device_name, dev.warp_size) == ("Fake Apple GPU 1", 1)
        assert dev.max_thread_dimensions == [1024, 1024, 64]
        assert (dev.max_threads_per_block, dev.max_shared_memory_per_block) == (1024, 32768)
        assert dev.driver_version == "Metal of macOS Version 14.5 (Build 23F79)"
        fails(tvm.metal(2).sync, "there is no metal(2)", "2 Metal devices")

        add = built(*test_kernels.vector_add(tvm.te.var("n")), name="add")
        product = built(*test_kernels.matmul(32, 32, 16, False), name="product")
        for dev in (tvm.metal(0), tvm.metal(1)):  # that shares its memory, and that does not
            x, y = random(1000), random(1000, seed=1)
            np.testing.assert_array_equal(run(add, dev, (x, y), (1000,)), x + y)
            a, b = random(32, 16), random(16, 32, seed=1)
            np.testing.assert_allclose(run(product, dev, (a, b), (32, 32)), a @ b, rtol=1e-4)
            big = random(2_500_000)  # 10 MB: in pieces
            there = tvm.nd.array(big, dev)
            other = tvm.nd.empty(big.shape, "float32", dev)
            there.copyto(other)
            del there
            np.testing.assert_array_equal(other.numpy(), big)
            took = add.time_evaluator("add", dev, number=5)(
                *(tvm.nd.array(z, dev) for z in (x, y, x)))
            assert took.mean == 1.0, took  # by its clock a command takes a second
        across = tvm.nd.array(x, tvm.metal(0)).copyto(tvm.metal(1))  # by way of the host
        np.testing.assert_array_equal(across.numpy(), x)
    """)  # fmt: skip


def test_a_network_runs_and_nothing_is_left(fakes):
    check(fakes, """
        import gc
        from slipway import relay
        from slipway.contrib import graph_executor
        x = relay.var("x", shape=(1, 3, 12, 12), dtype="float32")
        w = relay.const(random(8, 3, 3, 3))
        y = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1), channels=8, kernel_size=(3, 3)))
        y = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)))
        mod = tvm.IRModule.from_expr(relay.Function([x], y))
        data, results = random(1, 3, 12, 12), []
        for target, dev in (("llvm", tvm.cpu(0)), ("metal", tvm.metal(1))):
            lib = relay.build(mod, Target(target, host="llvm") if target == "metal" else target)
            if target == "metal":
                simulated.write_for_fake_metal(lib.lib.imported_modules[0], {fakes!r})
            module = graph_executor.GraphModule(lib["default"](dev))
            for _ in range(40):
                module.set_input("x", data)
                module.run()
                results.append(module.get_output(0).numpy())
                if len(results) == 60:
                    before = metal.fake_metal_living()
        np.testing.assert_allclose(results[-1], results[0], rtol=1e-5)
        assert metal.fake_metal_living() <= before
        del module, lib
        gc.collect()
        tvm.metal(1).sync()
        assert metal.fake_metal_living() < 16, metal.fake_metal_living()  # devices, queues, classes
    """.replace("{fakes!r}", repr(str(fakes))))  # fmt: skip


def test_faults_are_told(fakes):
    check(fakes, """
        dev = tvm.metal(0)
        x, y = tvm.nd.array(random(64), dev), tvm.nd.empty((64,), "float32", dev)
        add = built(*test_kernels.vector_add(64), name="add")
        fails(lambda: tvm.nd.empty((1 << 28,), "float32", dev), "metal(0) (Fake Apple GPU 0)",
              "asking for 1073741824 bytes", "its memory is full")
        add(x, x, y)
        metal.fake_metal_fail(1)
        fails(y.numpy, "its work failed with error 3", "read or wrote outside of its tensors",
              "Caused GPU Address Fault", "The last kernel that it was given is add")
        add(x, x, y)  # the device goes on
        np.testing.assert_array_equal(y.numpy(), 2 * x.numpy())
        other = run_kernels.built(*test_kernels.vector_add(48), Target("metal", host="llvm"))
        x, y = (tvm.nd.empty((48,), "float32", dev) for _ in range(2))
        fails(lambda: other(x, x, y), "error: unknown type name")
    """)  # fmt: skip


def test_without_a_device_or_a_framework_it_says_so(fakes):
    check(fakes, """
        assert not tvm.metal(0).exist
        fails(tvm.metal(0).sync, "a session without a GPU")
    """, SLW_FAKE_METAL_EMPTY="1")  # fmt: skip


@pytest.mark.parametrize("target", ["aarch64-macos", "x86_64-macos"])
def test_it_compiles_for_macs(target, tmp_path):
    drivers = FOLDER.parents[2] / "src/slipway/crt/posix/devices/drivers"
    for source in sorted(drivers.glob("metal/*.c")):
        words = ["cc", "-target", target, "-std=c11", "-Wall", "-Wextra", "-Werror", "-c"]
        words += ["-I", str(drivers.parents[2] / "include"), str(source)]
        zig.run_zig([*words, "-o", str(tmp_path / "object.o")], purpose=f"compiling {source.name}")


def test_a_launch_gives_memory_of_a_group(fakes):
    check(fakes, f"""
        sys.path.append({str(FOLDER.parents[2])!r})
        from tests.backends.gpu.lowering.test_dynamic_shared import mirrored
        rows = built(*mirrored(tvm.te.var("n")), name="rows")
        for n in (7, 8192):
            x = random(3, n)
            assert (run(rows, tvm.metal(0), (x,), x.shape) == x[:, ::-1]).all(), n
        x = random(3, 8193)
        too_long = lambda: run(rows, tvm.metal(0), (x,), x.shape)
        fails(too_long, "rows_kernel0 has 32896 bytes", "has 32768")
    """)  # fmt: skip
