"""Uploaded libraries: calls, timing, and what happens when their code goes wrong."""

import contextlib
import os
import threading
import time

import numpy as np
import pytest

import slipway
from slipway import rpc, te
from slipway.errors import (
    ExecutionError,
    RemoteError,
    RPCArgumentError,
    RPCError,
    RPCTimeoutError,
)


@pytest.fixture
def module(remote, kernels):
    remote.upload(kernels)
    return remote.load_module("kernels.so")


def test_kernel_on_remote_tensors(remote, module):
    a = remote.cpu(0).empty((1024,), "float32")
    b = remote.cpu(0).empty((1024,), "float32")
    data = np.random.default_rng(0).random(1024, "float32")
    a.copyfrom(data)
    module["myadd"](a, b)
    np.testing.assert_array_equal(b.numpy(), data + 1)


def test_arrays_of_numpys_default_dtype_are_converted(remote, tmp_path):
    """As for a kernel here; what it wrote into a converted array comes back."""
    x = te.placeholder((64,), name="x")
    y = te.compute(x.shape, lambda i: x[i] + 1.0, name="y")
    library = tmp_path / "plus_one.so"
    slipway.build(te.create_schedule(y.op), [x, y], "llvm", name="plus_one").export_library(library)
    remote.upload(library)
    plus_one = remote.load_module("plus_one.so")["plus_one"]
    data = np.random.default_rng(1).random(64)
    a, b = (remote.cpu(0).empty((64,), "float64") for _ in range(2))
    a.copyfrom(data)
    with pytest.warns(UserWarning, match="is converted from float64 to float32"):
        plus_one(a, b)
    np.testing.assert_array_equal(b.numpy(), (data.astype("float32") + 1).astype("float64"))
    np.testing.assert_array_equal(a.numpy(), data)
    a.copyfrom(np.full(64, 1e300))
    with pytest.raises(ExecutionError, match=r"float64 with 1e\+300, which that cannot hold"):
        plus_one(a, b)
    with pytest.raises(TypeError, match="has dtype int8, expected float32"):
        plus_one(remote.cpu(0).empty((64,), "int8"), b)


def test_kernel_on_scalars(module):
    assert module["add_ints"](2, -5) == -3


def test_kernel_error_arrives(module):
    with pytest.raises(ValueError, match="myadd: expects 2 arguments"):
        module["myadd"](1)


def test_timing_on_the_device(remote, module):
    a = remote.cpu(0).empty((1024,), "float32")
    evaluate = module.time_evaluator("myadd", ctx=remote.cpu(0), number=5, repeat=4)
    result = evaluate(a, a)
    assert len(result.results) == 4
    assert 0 < result.mean < 1
    # One run warms up, then 4 times 5.
    assert (a.numpy() == 21).all()


def test_timing_of_a_failing_kernel(remote, module):
    with pytest.raises(ValueError, match="myadd: expects 2"):
        module.time_evaluator("myadd", remote.cpu(0))()
    with pytest.raises(ValueError, match="number, repeat"):
        module.time_evaluator("add_ints", remote.cpu(0), number=0)(1, 2)


def test_missing_kernel(module):
    with pytest.raises(AttributeError, match="no function 'nothing'"):
        module["nothing"]


def test_function_keeps_its_module_alive(remote, kernels):
    remote.upload(kernels)
    function = remote.load_module("kernels.so")["add_ints"]
    remote.ping()  # by now the module's handle is freed on the device
    assert function(1, 2) == 3


def test_damaged_library_is_refused(remote, kernels):
    content = kernels.read_bytes()
    for damaged in (b"", b"not a library", content[:200], content[: len(content) // 2]):
        remote.upload(damaged, "damaged.so")
        with pytest.raises(RemoteError, match=r"damaged\.so"):
            remote.load_module("damaged.so")
    remote.ping()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("segfault", r"signal 11 \(SIGSEGV.*while it ran 'segfault'"),
        ("trap", r"signal [45] \(SIG(ILL|TRAP).*while it ran 'trap'"),
    ],
)
def test_crash_ends_its_session_only(server, kernels, function, words):
    with rpc.connect("127.0.0.1", server.port) as bystander:
        session = rpc.connect("127.0.0.1", server.port)
        session.upload(kernels)
        bad = session.load_module("kernels.so")[function]
        with pytest.raises(RemoteError, match=words):
            bad()
        assert session.link.is_closed
        assert bystander.get_function("test.rpc.addone")(1) == 2
    with rpc.connect("127.0.0.1", server.port) as after:
        assert after.get_function("test.rpc.addone")(1) == 2


def test_endless_loop_meets_the_call_timeout(server, kernels):
    session = rpc.connect("127.0.0.1", server.port)
    session.upload(kernels)
    spin = session.load_module("kernels.so")["spin"]
    session.timeout = 0.3
    start = time.monotonic()
    with pytest.raises(RPCTimeoutError, match=r"call exceeded .* 0\.300 s while it ran 'spin'"):
        spin()
    assert time.monotonic() - start < 2


def test_endless_loop_meets_the_session_timeout(server, kernels):
    session = rpc.connect("127.0.0.1", server.port, session_timeout=0.5)
    session.upload(kernels)
    spin = session.load_module("kernels.so")["spin"]
    with pytest.raises(RPCTimeoutError, match=r"session exceeded .* 0\.500 s while it ran 'spin'"):
        spin()


def test_memory_limit(kernels):
    options = rpc.ServerOptions(max_memory_bytes=512 << 20, is_quiet=True)
    with rpc.Server("127.0.0.1", 0, use_popen=False, options=options) as limited:
        session = rpc.connect("127.0.0.1", limited.port, tls=False)
        session.upload(kernels)
        module = session.load_module("kernels.so")
        with pytest.raises(MemoryError, match="no memory is left"):
            module["eat_memory"]()
        assert module["add_ints"](1, 1) == 2
        with pytest.raises(MemoryError, match="--max-memory"):
            session.cpu(0).empty((1 << 30,), "int8")


@pytest.mark.parametrize("limit", ["max_memory_bytes", "session_timeout_s", "max_sessions"])
def test_a_limit_below_zero_is_none(limit):
    with pytest.raises(RPCArgumentError, match=f"{limit} is -1: a limit is 0"):
        rpc.ServerOptions(**{limit: -1})


def test_processor_time_limit(kernels):
    options = rpc.ServerOptions(max_cpu_s=1, is_quiet=True)
    with rpc.Server("127.0.0.1", 0, use_popen=False, options=options) as limited:
        with rpc.connect("127.0.0.1", limited.port, tls=False) as session:
            session.upload(kernels)
            spin = session.load_module("kernels.so")["spin"]
            with pytest.raises(RemoteError, match=r"SIGXCPU.*while it ran 'spin'"):
                spin()
        with rpc.connect("127.0.0.1", limited.port, tls=False) as session:
            assert session.ping(b"next") == b"next"


def test_open_files_limit(server):
    del server  # with it, the functions are there
    options = rpc.ServerOptions(max_files=64, is_quiet=True)
    with (
        rpc.Server("127.0.0.1", 0, use_popen=False, options=options) as limited,
        rpc.connect("127.0.0.1", limited.port, tls=False) as session,
    ):
        open_files = session.get_function("test.rpc.open_files")
        assert open_files(20) == 20
        with pytest.raises(RemoteError, match="Too many open files"):
            open_files(100)
        with pytest.raises(RemoteError, match="Too many open files"):  # they are still open
            session.upload(b"x", "x")
        assert session.ping(b"x") == b"x"


def test_process_that_leaves(server, remote):
    with pytest.raises(RemoteError, match=r"exited with status 3 while it ran 'test\.rpc\.exit'"):
        remote.get_function("test.rpc.exit")(3)


def test_closing_frees_a_busy_device(server, kernels):
    session = rpc.connect("127.0.0.1", server.port)
    pid = session.get_function("test.rpc.pid")()
    session.upload(kernels)
    spin = session.load_module("kernels.so")["spin"]

    def run():
        with contextlib.suppress(RPCError):
            spin()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    session.close()
    thread.join(5)
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("the session's process still runs 3 s after its client closed")
