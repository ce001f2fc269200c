"""The same session over a Unix socket, a socket pair, and standard input and output."""

import os
import platform
import sys

import numpy as np
import pytest

from slipway import nd, rpc
from slipway.errors import RemoteError, RPCConnectionError, RPCError
from slipway.rpc import local
from slipway.toolchain import native


def check(session):
    values = np.arange(1 << 19, dtype="float32")
    tensor = nd.array(values, session.cpu(0))
    np.testing.assert_array_equal(tensor.numpy(), values)
    session.upload(b"content", "f")
    assert session.download("f") == b"content"


def test_unix_socket(tmp_path):
    path = tmp_path / "socket"
    url = f"unix:{path}"
    with pytest.raises(RPCConnectionError, match=r"rpc_server --host unix:"):
        rpc.connect(url)
    with rpc.Server(url, silent=True):
        assert path.stat().st_mode & 0o777 == 0o600
        with rpc.connect(url) as session:
            check(session)
        with pytest.raises(RPCError, match="another server does"):
            rpc.Server(url, silent=True)
    with rpc.Server(url, silent=True), rpc.connect(url) as session:  # what the first one left
        check(session)
    with pytest.raises(RPCError, match="needs a port"):
        rpc.connect("127.0.0.1")


def test_local_session_has_the_functions_of_this_process(server):
    with rpc.LocalSession() as session:
        assert session.get_function("test.rpc.addone")(1) == 2
        assert session.get_function("test.rpc.pid")() != os.getpid()
        check(session)
        pid = session._pid
        session.get_function("test.rpc.sleep")(0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_crash_in_a_local_session_is_told(kernels):
    with rpc.LocalSession() as session:
        session.upload(kernels)
        with pytest.raises(RemoteError, match="SIGSEGV"):
            session.load_module("kernels.so")["segfault"]()


def test_program_of_this_installation(capfd):
    printed = []
    with rpc.PopenSession(output=lambda stream, text: printed.append(text)) as session:
        check(session)
        assert session.ping(b"x") == b"x"
    assert session._process.returncode is not None


def test_the_runtime_is_there_before_a_server_has_to_answer(monkeypatch):
    events = []
    library, started = local.native.library, local.subprocess.Popen

    def start(*arguments, **options):
        events.append("server")
        return started(*arguments, **options)

    monkeypatch.setattr(local.native, "library", lambda: events.append("runtime") or library())
    monkeypatch.setattr(local.subprocess, "Popen", start)
    rpc.PopenSession().close()
    assert events.index("runtime") < events.index("server")


def test_static_server_as_a_program():
    server = native.build_device_server(f"{platform.machine()}-linux-gnu")
    with rpc.PopenSession(server) as session:
        assert session.description.startswith("slipway-server")
        check(session)


def test_server_between_pipes():
    """As over ssh: the server's standard input and output are two pipes."""
    server = native.build_device_server(f"{platform.machine()}-linux-gnu")
    command = f"cat | {server} --stdio | cat"
    with rpc.PopenSession(["sh", "-c", command]) as session:
        check(session)


def test_program_that_is_no_server():
    with pytest.raises(RPCConnectionError, match="broke in the greeting"):
        rpc.PopenSession([sys.executable, "-c", ""])
