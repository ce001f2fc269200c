"""Pain 1: a hung or slow call surfaces as an internal code, and the device stays gone."""

import time

import numpy as np
import pytest

import slipway as tvm
from slipway import rpc, te
from slipway.errors import RPCTimeoutError


@pytest.fixture(scope="module")
def server():
    running = rpc.Server("127.0.0.1", 0, key="pi", silent=True)
    yield running
    running.terminate()


@pytest.fixture(scope="module")
def slow_kernel(tmp_path_factory):
    """A sum that takes about half an hour: no endless loop, just far too slow."""
    x = te.placeholder((16,), "float32", name="x")
    k = te.reduce_axis((0, 1 << 40), name="k")
    y = te.compute((1,), lambda i: te.sum(x[k % 16], axis=k), name="y")
    path = tmp_path_factory.mktemp("slow") / "slow.tar"
    tvm.build(te.create_schedule(y.op), [x, y], "llvm", name="far_too_slow").export_library(path)
    return path


@pytest.mark.parametrize("limit", ["of the call", "of the session"])
def test_it_ends_in_time_and_says_what_ran_where_and_which_limit(server, slow_kernel, limit):
    whole = 0.4 if limit == "of the session" else 0
    session = rpc.connect("127.0.0.1", server.port, session_timeout=whole)
    session.upload(str(slow_kernel))
    run = session.load_module("slow.tar")["far_too_slow"]
    if not whole:
        session.timeout = 0.4
    device = session.cpu(0)
    x, y = (tvm.nd.array(np.ones(n, "float32"), device) for n in (16, 1))
    start = time.monotonic()
    with pytest.raises(RPCTimeoutError) as told:
        run(x, y)
    assert time.monotonic() - start < 20
    words = str(told.value)
    assert "far_too_slow" in words
    assert "0.400 s" in words
    assert f"127.0.0.1:{server.port}" in words
    assert "timeout" in words  # the option that changes it
    with rpc.connect("127.0.0.1", server.port) as after:
        assert after.ping(b"x") == b"x"


def test_waiting_for_a_device_is_not_waiting_for_a_call(server):
    """The queue's limit is one of its own, and names who to look at."""
    with rpc.Tracker("127.0.0.1", 0, silent=True) as tracker:
        address = ("127.0.0.1", tracker.port)
        with (
            rpc.Server("127.0.0.1", 0, key="pi", tracker_addr=address, silent=True),
            rpc.connect_tracker(*address) as client,
        ):
            with client.request("pi", timeout=60), pytest.raises(RPCTimeoutError) as told:
                client.request("pi", timeout=0.3)
            assert "'pi'" in str(told.value)
            assert "free" in str(told.value) or "busy" in str(told.value)
            with client.request("pi", timeout=60) as session:
                assert session.ping(b"x") == b"x"
