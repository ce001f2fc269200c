"""The static server on every processor it is built for, under emulation where that must be."""

import numpy as np
import pytest
from tests.rpc.faults.waiting import wait_for

from slipway import nd, rpc
from slipway.errors import RemoteError, RPCTimeoutError
from slipway.runtime.graph.graph_executor import GraphModule


@pytest.fixture
def remote(static_device):
    with rpc.connect("127.0.0.1", static_device.port) as session:
        yield session


@pytest.fixture
def module(static_device, remote):
    remote.upload(static_device.kernels)
    return remote.load_module("kernels.so")


def test_library_is_uploaded_loaded_called_and_timed(remote, module):
    assert remote.description.startswith("slipway-server ")
    data = np.random.default_rng(0).random(1000, "float32")
    a, b = nd.array(data, remote.cpu(0)), nd.empty((1000,), "float32", remote.cpu(0))
    module["myadd"](a, b)
    np.testing.assert_array_equal(b.numpy(), data + 1)
    assert module["add_ints"](2**40, -5) == 2**40 - 5
    assert len(module.time_evaluator("add_ints", remote.cpu(0), repeat=3)(1, 2).results) == 3
    with pytest.raises(ValueError, match="expects 2 arguments"):
        module["myadd"](1)


def test_model_runs(static_device, remote):
    remote.upload(static_device.model)
    model = GraphModule(remote.load_module("model.tar")["default"](remote.cpu(0)))
    data = np.arange(6, dtype="float32").reshape(2, 3)
    model.run(data=data)
    np.testing.assert_array_equal(model.get_output(0).numpy(), data + 11)


def test_large_transfers(remote):
    data = np.random.default_rng(1).random(1_500_000)
    tensor = nd.array(data, remote.cpu(0))
    np.testing.assert_array_equal(tensor.numpy(), data)
    remote.upload(data.tobytes(), "data")
    assert remote.download("data") == data.tobytes()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/b", ".."])
def test_no_name_leads_out_of_the_folder(remote, name):
    with pytest.raises(ValueError, match="is not a name"):
        remote.upload(b"x", name)
    with pytest.raises(ValueError, match="is not a name"):
        remote.download(name)


@pytest.mark.parametrize("function", ["segfault", "trap"])
def test_crash_is_reported_and_the_next_session_served(static_device, function):
    session = rpc.connect("127.0.0.1", static_device.port)
    session.upload(static_device.kernels)
    with pytest.raises(RemoteError, match=rf"died of signal \d+ .*while it ran '{function}'"):
        session.load_module("kernels.so")[function]()
    with rpc.connect("127.0.0.1", static_device.port) as after:
        assert after.ping(b"x") == b"x"


def test_endless_loop_is_ended(static_device):
    session = rpc.connect("127.0.0.1", static_device.port)
    session.upload(static_device.kernels)
    session.timeout = 0.4
    with pytest.raises(RPCTimeoutError, match=r"0\.400 s while it ran 'spin'"):
        session.load_module("kernels.so")["spin"]()


def test_library_for_another_processor_is_refused(static_device, remote, tmp_path):
    content = bytearray(static_device.kernels.read_bytes())
    content[18] = 8  # MIPS
    remote.upload(bytes(content), "other.so")
    with pytest.raises(RemoteError, match=r"other\.so"):
        remote.load_module("other.so")


def test_session_folder_is_removed(static_device):
    with rpc.connect("127.0.0.1", static_device.port) as session:
        session.upload(b"x", "x")
        assert list(static_device.folder.glob("slipway-rpc-*/x"))

    wait_for(lambda: not list(static_device.folder.glob("slipway-rpc-*/x")), 3)
