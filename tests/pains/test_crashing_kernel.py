"""Pain 5: one crashing kernel takes the device server down."""

import numpy as np
import pytest

import slipway as tvm
from slipway import rpc, te, topi
from slipway.errors import RemoteError


@pytest.fixture(scope="module")
def wild_gather(tmp_path_factory):
    """A gather that trusts its indices, as mode "fast" does."""
    x = te.placeholder((16,), "float32", name="x")
    at = te.placeholder((4,), "int64", name="at")
    y = topi.take(x, at, axis=0, mode="fast")
    path = tmp_path_factory.mktemp("wild") / "wild.tar"
    kernel = tvm.build(te.create_schedule(y.op), [x, at, y], "llvm", name="wild_gather")
    kernel.export_library(path)
    return path


def gather(port, path, indices):
    with rpc.connect("127.0.0.1", port) as session:
        session.upload(str(path))
        device = session.cpu(0)
        x = tvm.nd.array(np.arange(16, dtype="float32"), device)
        y = tvm.nd.empty((4,), "float32", device)
        run = session.load_module("wild.tar")["wild_gather"]
        run(x, tvm.nd.array(np.array(indices, "int64"), device), y)
        return y.numpy()


def test_the_crash_has_a_name_and_the_server_goes_on(wild_gather):
    with (
        rpc.Server("127.0.0.1", 0, silent=True) as server,
        rpc.connect("127.0.0.1", server.port) as bystander,
    ):
        for _ in range(3):  # not once only
            with pytest.raises(RemoteError, match=r"SIGSEGV.*'wild_gather'"):
                gather(server.port, wild_gather, [0, 1, 2, 1 << 45])
        assert gather(server.port, wild_gather, [3, 2, 1, 0]).tolist() == [3, 2, 1, 0]
        assert bystander.ping(b"still here") == b"still here"
