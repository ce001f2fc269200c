"""CUDA's driver interface as the runtime uses it, against a driver that the tests make.

The kernels are those that a GPU would get, compiled from LLVM IR for this processor.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from simulated import HEADERS

FOLDER = Path(__file__).parent
PROGRAM = """
import sys
sys.path[:0] = [{folder!r}, {folder!r} + "/drivers"]
import numpy as np
import slipway as tvm
from slipway.target import Target
import run_kernels, simulated, test_kernels
from run_kernels import random, run
from slipway.errors import DeviceError

def built(schedule, args, **options):
    function = run_kernels.built(schedule, args, Target("cuda", host="llvm"), **options)
    simulated.write_for_fake_cuda(function.imported_modules[0], {fakes!r})
    return function

def fails(call, *words):
    try:
        call()
    except DeviceError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("it did not fail")

{body}
"""


@pytest.fixture(scope="session")
def fakes(tmp_path_factory):
    """A folder with a libcuda.so.1, and with the kernels that it finds."""
    compiler = shutil.which("clang++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: apt-get install g++")
    folder = tmp_path_factory.mktemp("fake_cuda")
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", str(HEADERS / "fake_cuda.cc")]
    subprocess.run([*command, "-o", str(folder / "libcuda.so.1"), "-ldl"], check=True)
    return folder


def check(fakes, body, **environment):
    """Run a program that has the driver."""
    text = PROGRAM.format(folder=str(FOLDER), fakes=str(fakes), body=textwrap.dedent(body))
    paths = {"LD_LIBRARY_PATH": str(fakes), "SLW_FAKE_CUDA": str(fakes)}
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, **paths, **environment}, check=False,
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_devices_and_their_properties(fakes):
    check(fakes, """
        dev = tvm.cuda(1)
        assert dev.exist and not tvm.cuda(2).exist
        assert (dev.device_name, dev.compute_version, dev.warp_size) == ("Fake GPU 1", "8.6", 32)
        assert dev.max_thread_dimensions == [1024, 1024, 64]
        assert (dev.max_clock_rate, dev.multi_processor_count) == (1500000, 7)
        assert (dev.driver_version, dev.total_global_memory) == ("CUDA 12.9", 1 << 30)
        fails(tvm.cuda(2).sync, "there is no cuda(2)", "2 CUDA devices")
    """)  # fmt: skip


def test_kernels_run_on_each_device(fakes):
    check(fakes, """
        add = built(*test_kernels.vector_add(tvm.te.var("n")), name="add")
        product = built(*test_kernels.matmul(61, 67, 33, True), name="product")
        for number in (0, 1):
            dev = tvm.cuda(number)
            for n in (1, 1000):
                x, y = random(n), random(n, seed=1)
                np.testing.assert_array_equal(run(add, dev, (x, y), (n,)), x + y)
            x, y = random(61, 33), random(33, 67, seed=1)
            np.testing.assert_allclose(run(product, dev, (x, y), (61, 67)), x @ y, 1e-4, 1e-5)
        here, there = (tvm.nd.array(random(8), tvm.cuda(n)) for n in (0, 1))
        fails(lambda: add(here, there, here), "tensors of cuda(0) and cuda(1)")
    """)  # fmt: skip


def test_times_are_those_of_the_devices_clock(fakes):
    """By which each kernel takes a second; what launches none is timed by the host's."""
    check(fakes, """
        add = built(*test_kernels.vector_add(64), name="timed")
        here, there = (tvm.nd.array(random(64), tvm.cuda(n)) for n in (0, 1))
        for dev, value in ((tvm.cuda(0), here), (tvm.cuda(1), there)):
            found = add.time_evaluator(add.entry_name, dev, number=3, repeat=2)(value, value, value)
            assert found.results == (1.0, 1.0), found.results
        at_home = tvm.build(*test_kernels.vector_add(64), "llvm")
        value = tvm.nd.array(random(64))
        assert at_home.time_evaluator(at_home.entry_name, tvm.cpu(0))(value, value, value).mean < 1

        from slipway import relay
        from slipway.contrib import graph_executor
        x = relay.var("x", shape=(8, 40))
        y = relay.nn.softmax(relay.nn.dense(x, relay.var("w", shape=(6, 40))))
        mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))
        made = relay.build(mod, target=Target("cuda", host="llvm"))
        simulated.write_for_fake_cuda(made.lib.imported_modules[0], {fakes!r})
        module = graph_executor.GraphModule(made["default"](tvm.cuda(0)))
        nodes = [seconds for _, _, seconds in module.profile(number=2, repeat=1) if seconds]
        assert nodes == [1.0, 3.0], nodes  # a product; the softmax is three kernels
        assert module.benchmark(tvm.cuda(0), number=2, repeat=1).mean == 4.0
    """.replace("{fakes!r}", repr(str(fakes))))  # fmt: skip


def test_code_comes_with_libraries_and_files(fakes, tmp_path):
    check(fakes, f"""
        folder = {str(tmp_path)!r}
        add = built(*test_kernels.vector_add(40, factor=8), name="elsewhere")
        x, y = random(40), random(40, seed=1)
        add.save(folder + "/elsewhere.o")
        add.imported_modules[0].save(folder + "/elsewhere.ptx")
        assert ".visible .entry elsewhere_kernel0" in open(folder + "/elsewhere.ptx").read()
        add.export_library(folder + "/lib.tar")
        host = tvm.runtime.load_module(folder + "/elsewhere.o")
        fails(lambda: run(host, tvm.cuda(0), (x, y), (40,)), "kernel0 is not loaded", ".ptx")
        host.import_module(tvm.runtime.load_module(folder + "/elsewhere.ptx"))
        for function in (host, tvm.runtime.load_module(folder + "/lib.tar")):
            np.testing.assert_array_equal(run(function, tvm.cuda(0), (x, y), (40,)), x + y)
    """)  # fmt: skip


def test_what_the_driver_refuses_is_told(fakes):
    check(fakes, """
        dev = tvm.cuda(0)
        target = Target("cuda", host="llvm")
        args = test_kernels.vector_add(56, factor=8)
        unknown = run_kernels.built(*args, target, name="unknown")
        x = random(56)
        fails(lambda: run(unknown, dev, (x, x), (56,)), "refused the code of kernel unknown",
              "ptxas fatal: no such program", "-arch=")
        wide = built(*test_kernels.vector_add(2048, factor=1024), name="wide")
        x = random(2048)
        fails(lambda: run(wide, dev, (x, x), (2048,)), "1024 threads", "512 at most")
        fails(lambda: tvm.nd.empty((1 << 29,), "float32", dev), "asking for 2147483648 bytes",
              "CUDA_ERROR_OUT_OF_MEMORY", "its memory is full: delete arrays")
    """)  # fmt: skip


def test_a_fault_in_a_kernel_is_an_error_and_the_hosts_data_stay(fakes):
    check(fakes, """
        add = built(*test_kernels.vector_add(64), name="faulty")
        x = random(64)
        given, out = tvm.nd.array(x, tvm.cuda(0)), tvm.nd.array(x, tvm.cuda(0))
        add(given, given, out)
        fails(out.numpy, "CUDA_ERROR_ILLEGAL_ADDRESS", "outside of its tensors; the device is lost",
              "The last kernel that it was given is faulty_kernel0")
        fails(tvm.cuda(0).sync, "cuda(0) (Fake GPU 0)", "CUDA_ERROR_ILLEGAL_ADDRESS")
    """, SLW_FAKE_CUDA_FAULT="1")  # fmt: skip


def test_a_driver_that_does_not_start_is_told(fakes):
    check(fakes, """
        assert not tvm.cuda(0).exist
        fails(tvm.cuda(0).sync, "CUDA does not work on this machine", "nvidia-smi")
    """, SLW_FAKE_CUDA_BROKEN="1")  # fmt: skip


STREAMS = """
    import test_streams
    dev = tvm.{kind}(1)
    test_streams.check_random(dev, built, range(12))

    # The driver puts off what a stream is given: an order that nobody asked for is not there.
    kernel = test_streams.summed(built)
    ones = np.ones(test_streams.N, "float32")
    x, out = tvm.nd.array(ones, dev), tvm.nd.array(0 * ones, dev)
    host, stream = tvm.nd.empty_pinned(ones.shape, "float32", dev), dev.create_raw_stream()
    host.copyfrom(7 * ones)
    dev.set_raw_stream(stream)
    kernel(x, x, out)
    out.copyto_async(host)
    assert host.numpy()[0] == 7
    dev.sync(stream)
    np.testing.assert_array_equal(host.numpy(), 2 * ones)
    fails(lambda: out.copyto_async(tvm.nd.array(ones)), "pinned memory", "nd.empty_pinned")
    many = [dev.create_raw_stream() for _ in range(31)]
    fails(dev.create_raw_stream, "{kind}(1) has 32 streams already")
    other = many.pop()
    dev.set_raw_stream(other)
    dev.free_raw_stream(other)
    fails(lambda: kernel(x, x, out), "it was freed while this thread gave it work")
    dev.set_raw_stream(None)
    kernel(x, out, x)
    np.testing.assert_array_equal(x.numpy(), 3 * ones)
"""


def test_streams_are_the_drivers_and_in_the_order_that_is_asked_for(fakes):
    check(fakes, STREAMS.format(kind="cuda"))


def test_the_command_for_a_lent_gpu_runs_and_holds_numbers(fakes, tmp_path):
    """Prepared here, run where the driver is: each step a line, wrong numbers told."""
    check(fakes, f"""
        import json
        from pathlib import Path
        from benchmarks.gpu import nvidia
        folder = Path({str(tmp_path)!r})
        nvidia.prepare(folder, "sm_80", None, "layer norm")
        body = nvidia.CASES["layer norm 128x768"]()
        made = nvidia.compiled(body, Target("cuda -arch=sm_80", host="llvm"))
        simulated.write_for_fake_cuda(made.lib.imported_modules[0], {str(fakes)!r})
        record = folder / "seen.jsonl"
        assert nvidia.measure(folder, 600, 1, record) == 0
        head, row = map(json.loads, record.read_text().splitlines())
        assert head["device"] == "Fake GPU 0" and row["right"] and row["ms"] == 1000.0, row
        np.save(folder / "case0.npy", np.load(folder / "case0.npy") + 1)
        assert not nvidia.judged(folder, 0, 1)["right"]
        assert nvidia.measure(folder, -1, 1, record) == 1
        assert "not begun" in record.read_text()
        (folder / "case0.tar").unlink()
        assert "case0.tar" in nvidia.begun(folder, 0, 1, 100)["problem"]
    """, PYTHONPATH=os.pathsep.join(sys.path))  # fmt: skip


def test_memory_is_kept_for_the_next_of_its_size_with_a_bound(fakes):
    """The driver waits for the whole device where memory is given back to it."""
    check(fakes, """
        import ctypes
        pieces = ctypes.CDLL("libcuda.so.1").fake_cuda_pieces
        dev = tvm.cuda(0)
        x = random(64)
        assert (tvm.nd.array(x, dev).numpy() == x).all()
        assert pieces() == 1
        for _ in range(5):
            held = tvm.nd.array(x, dev)
            assert (held.numpy() == x).all()
            del held
        assert pieces() == 1
        dev.trim()
        assert pieces() == 0
        for size in range(1, 100):  # that do not fit each other's memory
            tvm.nd.empty((size * size * 64,), "float32", dev)
        assert 0 < pieces() <= 32
        half = tvm.nd.empty((1 << 27,), "float32", dev)  # what lies spare is a sixteenth at most
        del half
        assert pieces() <= 32
        dev.trim()
        stream = dev.create_raw_stream()
        dev.set_raw_stream(stream)
        tvm.nd.array(x, dev)
        assert pieces() == 0
    """)  # fmt: skip


def test_a_launch_gives_more_than_48_kb(fakes):
    check(fakes, f"""
        sys.path.append({str(FOLDER.parents[2])!r})
        from tests.backends.gpu.lowering.test_dynamic_shared import mirrored
        rows = built(*mirrored(tvm.te.var("n")), name="rows")
        for n in (7, 12288, 25344):
            x = random(3, n)
            assert (run(rows, tvm.cuda(0), (x,), x.shape) == x[:, ::-1]).all(), n
        x = random(3, 25345)
        too_long = lambda: run(rows, tvm.cuda(0), (x,), x.shape)
        fails(too_long, "rows_kernel0 has 101504 bytes", "has 101376")
    """)  # fmt: skip
