"""Devices that are lost or full, and drivers that fail: what is said, and that the host goes on."""

import os
import subprocess
import sys

import numpy as np
import pytest
from run_kernels import OPENCL, random
from tests.backends.gpu.test_kernels import vector_add
from watched import run_watched, watched_driver

import slipway as tvm
from slipway import rpc
from slipway.errors import DeviceError, RPCError

LOST = "the device is lost, with what was in its memory; arrays of the host are not"
FULL = "its memory is full: delete arrays"
SPARE = "the host's memory is full: end other programs"
LAST = "last kernel that it was given is scaled_kernel0"
NAMED = "kernel scaled_kernel0"
# What fails, with which code; what then says so; and its words.
FAULTS = {
    "opencl": [
        ("EnqueueNDRangeKernel", -5, "launch", (NAMED, LOST, "-max_threads_per_block")),
        ("EnqueueNDRangeKernel", -54, "launch", (NAMED, "WORK_GROUP_SIZE: a block has more")),
        ("Finish", -36, "sync", (LAST, LOST)),
        ("EnqueueReadBuffer", -5, "read", (LAST, LOST)),
        ("EnqueueWriteBuffer", -4, "write", (LAST, FULL)),
        ("EnqueueCopyBuffer", -34, "copy", (LAST, LOST)),
        ("BuildProgram", -11, "launch", ("refused the code of " + NAMED, "says no more")),
        ("BuildProgram", -6, "launch", ("compiling " + NAMED, SPARE)),
        ("CreateBuffer", -4, "write", ("asking for 4000 bytes", FULL)),
        ("CreateKernel", -5, "launch", ("making " + NAMED,)),
    ],
    "vulkan": [
        ("QueueSubmit", -4, "read", (LAST, LOST)),
        ("WaitForFences", -4, "sync", (LAST, LOST)),
        ("ResetFences", -2, "sync", (LAST, FULL)),
        ("BeginCommandBuffer", -2, "copy", (LAST, FULL)),
        ("AllocateDescriptorSets", -12, "launch", (NAMED, "FRAGMENTED_POOL")),
        ("CreateComputePipelines", -13, "launch", ("refused the code of " + NAMED,)),
        ("CreateComputePipelines", -4, "launch", ("compiling " + NAMED, LOST)),
        ("CreateShaderModule", -1, "launch", ("compiling " + NAMED, SPARE)),
        ("AllocateMemory", -2, "write", ("asking for 4096 bytes", FULL)),
        ("MapMemory", -5, "write", ("asking for 4096 bytes", "MEMORY_MAP_FAILED")),
    ],
}
PROGRAM = """
x0 = np.arange(128, dtype="float32")
for number, (name, code, where, words) in enumerate(FAULTS):
    creates = KIND == "opencl" and name.startswith("Create")
    how = "watched_fail_create" if creates else "watched_fail"
    scale = built(2.0 + number)
    x, out = tvm.nd.array(x0, device), tvm.nd.array(x0, device)
    if where != "launch":
        scale(x, out)  # the kernel that the device was given last
    if where == "write":
        device.sync()
        device.trim()
    fail(name, 0, code, how)
    operations = {
        "launch": lambda: scale(x, out), "sync": device.sync, "read": out.numpy,
        "write": lambda: tvm.nd.array(np.ones(1000, "float32"), device),
        "copy": lambda: x.copyto(device),
    }
    if where == "copy":
        device.sync()
    fails(operations[where], KIND + "(0) (", *words)
    fail(name, -1, 0, how)
    np.testing.assert_array_equal(x0, np.arange(128))
    try:
        device.sync()  # of what was queued, something may have been lost: that was told
    except DeviceError:
        pass
    x, out = tvm.nd.array(x0, device), tvm.nd.array(x0, device)
    scale(x, out)
    np.testing.assert_array_equal(out.numpy(), x0 * (2.0 + number), name)
"""


@pytest.fixture(scope="module", params=["opencl", "vulkan"])
def kind(request):
    """A kind of device that this machine has."""
    request.getfixturevalue("device" if request.param == "opencl" else request.param)
    return request.param


@pytest.fixture(scope="module")
def environment(kind, tmp_path_factory):
    """What a process is started with whose driver is watched."""
    return watched_driver(kind, tmp_path_factory.mktemp(kind))


def test_each_failure_names_kernel_and_device_and_the_next_run_is_right(kind, environment):
    run_watched(kind, environment, f"FAULTS = {FAULTS[kind]}\n{PROGRAM}")


# OpenCL's queues remember failures themselves.
@pytest.mark.parametrize("kind", ["vulkan"], indirect=True, scope="module")
def test_a_failure_that_nobody_could_be_told_of_is_told_to_who_waits_next(environment, kind):
    run_watched(kind, environment, """
        scale, other = built(2.0), built(3.0)
        x, out = (tvm.nd.array(np.ones(128, "float32"), device) for _ in range(2))
        other(x, out)
        device.sync()
        scale(x, out)
        fail("QueueSubmit", 0, -2)
        del other  # its code is dropped once the queue is empty
        gc.collect()
        fail("QueueSubmit", -1, 0)
        fails(out.numpy, "work that it was given before", "OUT_OF_DEVICE_MEMORY")
        scale(x, out)
        np.testing.assert_array_equal(out.numpy(), np.full(128, 2, "float32"))
    """)  # fmt: skip


@pytest.mark.parametrize("kind", ["opencl"], indirect=True, scope="module")
def test_a_server_goes_on_after_a_session_whose_device_is_lost(kind, environment, tmp_path):
    code = (
        "import sys\nfrom slipway import rpc\n"
        "server = rpc.Server('127.0.0.1', 0)\nprint(server.port, flush=True)\nsys.stdin.read()\n"
    )
    faults = {**environment, "SLW_FAULTS": "EnqueueNDRangeKernel 1 -36, EnqueueReadBuffer 1 -36"}
    add = tvm.build(*vector_add(64), OPENCL, name="added")
    add.export_library(tmp_path / "added.so")
    server = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **faults}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        port = int(server.stdout.readline())
        x = random(64)
        for _ in range(2):
            remote = rpc.connect("127.0.0.1", port)
            device = remote.cl(0)
            remote.upload(tmp_path / "added.so")
            function = remote.load_module("added.so")
            given, out = tvm.nd.array(x, device), tvm.nd.array(x, device)
            host = tvm.nd.array(x, remote.cpu(0))
            function(given, given, out)
            np.testing.assert_array_equal(out.numpy(), x + x)
            with pytest.raises(RPCError, match=r"kernel added_kernel0 failed .* device is lost"):
                function(given, given, out)
            with pytest.raises(RPCError, match=r"reading its memory failed .* added_kernel0"):
                out.numpy()
            np.testing.assert_array_equal(host.numpy(), x)
            del given, out, host, function, remote, device
    finally:
        server.communicate("", timeout=60)


@pytest.mark.parametrize("kind", ["opencl"], indirect=True, scope="module")
def test_a_driver_without_devices_says_who_may_know_more(kind, environment):
    code = (
        "import slipway as tvm\nfrom slipway.errors import DeviceError\n"
        "assert not tvm.opencl(0).exist\n"
        "try:\n    tvm.nd.array([1.0], tvm.opencl(0))\n"
        "except DeviceError as error:\n    print(error)"
    )
    faults = {**environment, "SLW_FAULTS": "GetDeviceIDs 0 -1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **faults}, text=True, check=True,
        capture_output=True, timeout=250,
    )  # fmt: skip
    assert "its driver has no device (clinfo may say why" in done.stdout


FILLED = """
import resource
import numpy as np
import numpy.testing
import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import SlipwayError

device = tvm.device(KIND, 0)
x = relay.var("x", shape=(4, 512, 512))
y = x
for _ in range(3):
    y = relay.nn.relu(relay.nn.batch_matmul(y, y, transpose_b=False))
module = tvm.IRModule.from_expr(relay.Function([x], y))
library = relay.build(module, tvm.target.Target(KIND, host="llvm"))
first = graph_executor.GraphModule(library["default"](tvm.device(KIND, 0)))
first.run(x=np.zeros((4, 512, 512), "float32"))
here = np.arange(8, dtype="float32")
there = tvm.nd.array(here, device)
large = tvm.nd.array(np.ones(1 << 20, "float32"), device)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
held, messages = [], []
resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20),) * 2)
for make in (lambda: held.append(large.copyto(device)),
             lambda: held.append(graph_executor.GraphModule(library["default"](device)))):
    try:
        for _ in range(200):
            make()
    except (SlipwayError, MemoryError) as error:
        messages.append(str(error))
    np.testing.assert_array_equal(there.numpy(), here)
assert len(messages) == 2, messages
assert all("bytes" in text and ("full" in text or "release" in text) for text in messages), messages
del held
np.testing.assert_array_equal(tvm.nd.array(here, device).numpy(), here)
print("goes on")
"""


@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
def test_a_process_whose_memory_is_full_is_told_and_goes_on(kind):
    """PoCL ended the process, when a kernel or a copy first used memory that was not there."""
    if not tvm.device(kind, 0).exist:
        pytest.skip(f"no {kind} device")
    program = FILLED.replace("KIND", repr(kind))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "goes on" in done.stdout


def test_a_tensor_of_more_bytes_than_there_are_addresses_is_an_error():
    if not tvm.opencl(0).exist:
        pytest.skip("no OpenCL device")
    with pytest.raises(DeviceError, match="more bytes than an address counts"):
        tvm.nd.empty((1 << 62,), "float32", tvm.opencl(0))
