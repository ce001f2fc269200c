"""Starting and stopping servers: in Python, from a shell, and what they leave behind."""

import errno
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.rpc.faults.waiting import wait_for

from slipway import rpc
from slipway.errors import RPCConnectionError, RPCError
from slipway.rpc.server import listen


@pytest.fixture
def program(tmp_path):
    """Start ``python -m slipway.exec.rpc_server``; returns (process, port, read more lines)."""
    running = []

    def start(*arguments, **environment):
        process = subprocess.Popen(
            [sys.executable, "-m", "slipway.exec.rpc_server", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path), "SLIPWAY_RPC_TOKEN": "", **environment},
        )
        running.append(process)
        line = process.stderr.readline()
        found = re.fullmatch(r"INFO:root:RPCServer: bind to (\S+):(\d+)\n", line)
        assert found, line
        return process, int(found.group(2))

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_server_in_a_fresh_interpreter():
    with rpc.Server("127.0.0.1", 0, silent=True) as server:
        assert server.is_alive
        with rpc.connect("127.0.0.1", server.port) as session:
            assert "Python" in session.description
            tensor = session.cpu(0).empty((3,), "int32").copyfrom(np.arange(3))
            assert tensor.numpy().tolist() == [0, 1, 2]
    assert not server.is_alive
    with pytest.raises(RPCConnectionError):
        rpc.connect("127.0.0.1", server.port)
    server.terminate()  # a second time does nothing


def test_two_servers_find_two_ports():
    with rpc.Server("127.0.0.1", 9300, 9399, silent=True, use_popen=False) as first:
        with rpc.Server("127.0.0.1", first.port, 9399, silent=True, use_popen=False) as second:
            assert first.port != second.port
        with pytest.raises(RPCConnectionError, match=f"127.0.0.1, port {first.port}: "):
            rpc.Server("127.0.0.1", first.port, first.port + 1, silent=True)


def test_init_callback_runs_in_the_server():
    def register():
        import tvm_ffi

        tvm_ffi.register_global_func("test.rpc.from_callback", lambda: "here", override=True)

    with (
        rpc.Server("127.0.0.1", 0, silent=True, server_init_callback=register) as server,
        rpc.connect("127.0.0.1", server.port, timeout=120) as session,
    ):
        assert session.get_function("test.rpc.from_callback")() == "here"


def test_program_announces_serves_and_stops(program, tmp_path):
    process, port = program("--port", "0", "--key", "board")
    with rpc.connect("127.0.0.1", port, key="board") as session:
        session.upload(b"x", "file")
        assert list(tmp_path.glob("slipway-rpc-*/file"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
        assert not list(tmp_path.glob("slipway-rpc-*"))
        with pytest.raises(RPCError):
            session.ping()


def test_program_says_that_others_will_be_refused(program):
    process, _ = program("--host", "0.0.0.0", "--port", "0")
    assert "no token is set" in process.stderr.readline()


def test_program_takes_a_token_from_a_file(program, tmp_path):
    path = tmp_path / "token"
    path.write_text("from a file\n")
    _, port = program("--port=0", "--token-file", str(path), "--require-token")
    with rpc.connect("127.0.0.1", port, token="from a file") as session:
        assert session.ping(b"x") == b"x"
    with pytest.raises(RPCError, match="token is not the one"):
        rpc.connect("127.0.0.1", port, token="another")


def test_program_without_a_port_to_listen_on(program):
    done = subprocess.run(
        [sys.executable, "-m", "slipway.exec.rpc_server", "--host", "192.0.2.1", "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 9
    assert "cannot listen on 192.0.2.1, port 0: " in done.stderr


def test_ports_that_cannot_be_had_say_which_and_what_to_do(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = f"127.0.0.1, port {port}: Address already in use. Choose others: --port and"
        with pytest.raises(RPCConnectionError, match=message):
            listen("127.0.0.1", port, port)
        with pytest.raises(RPCConnectionError, match=r"Choose others: --web-port\."):
            listen("127.0.0.1", port, port, "--web-port")

    class Refused(socket.socket):
        def bind(self, address):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(socket, "socket", Refused)
    message = r"port 80: Permission denied \(ports below 1024 are the administrator's\)"
    with pytest.raises(RPCConnectionError, match=message):
        listen("127.0.0.1", 80, 180)


def test_the_last_port_has_none_behind_it(monkeypatch):
    class Taken(socket.socket):
        def bind(self, address):
            assert address[1] < 65536
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))

    monkeypatch.setattr(socket, "socket", Taken)
    with pytest.raises(RPCConnectionError, match="ports 65530 to 65535: Address already in use"):
        listen("127.0.0.1", 65530, 65630)


def test_killed_session_process_is_reported(program):
    process, port = program("--port", "0")
    session = rpc.connect("127.0.0.1", port)
    children = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    if not children:
        pytest.skip("needs pgrep")
    os.kill(int(children[0]), signal.SIGKILL)
    wait_for(lambda: not alive(int(children[0])))
    with pytest.raises(RPCError, match=r"SIGKILL: most likely the device ran out of memory"):
        session.ping()
    with rpc.connect("127.0.0.1", port) as after:
        assert after.ping(b"x") == b"x"


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_killed_server_takes_its_sessions_along(program):
    process, port = program("--port", "0")
    session = rpc.connect("127.0.0.1", port)
    process.kill()
    process.wait()
    with pytest.raises(RPCError):
        for _ in range(50):
            session.ping()
            time.sleep(0.02)


def test_interrupt_in_a_call_frees_the_device(server):
    """Ctrl-C while a call runs raises KeyboardInterrupt at once and closes the session."""
    session = rpc.connect("127.0.0.1", server.port)
    pid = session.get_function("test.rpc.pid")()
    sleep = session.get_function("test.rpc.sleep")
    import threading

    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sleep(20.0)
    assert time.monotonic() - start < 5
    timer.join()
    assert session.link.is_closed
    wait_for(lambda: not alive(pid))


def test_other_signals_do_not_disturb_a_call(server):
    handled = []
    previous = signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
    import threading

    try:
        with rpc.connect("127.0.0.1", server.port) as session:
            sleep = session.get_function("test.rpc.sleep")
            timers = [
                threading.Timer(0.05 * k, os.kill, (os.getpid(), signal.SIGUSR1))
                for k in range(1, 6)
            ]
            for timer in timers:
                timer.start()
            sleep(0.5)
            for timer in timers:
                timer.join()
            assert session.ping(b"x") == b"x"
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert handled


def test_server_that_hangs_meets_the_clients_deadline(monkeypatch):
    from slipway.errors import RPCTimeoutError
    from slipway.rpc import client

    monkeypatch.setattr(client, "STEP_TIMEOUT_S", 0.3)
    with rpc.Server("127.0.0.1", 0, silent=True) as server:
        session = rpc.connect("127.0.0.1", server.port)
        child = subprocess.run(
            ["pgrep", "-P", str(server._pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        if not child:
            pytest.skip("needs pgrep")
        os.kill(int(child[0]), signal.SIGSTOP)
        with pytest.raises(RPCTimeoutError, match=r"did not answer PING within 0\.3 s"):
            session.ping()
        # Its client gone, the supervisor ends even a stopped process.
        wait_for(lambda: not alive(int(child[0])))


def test_folders_of_killed_servers_are_swept(program, tmp_path):
    process, port = program("--port", "0")
    session = rpc.connect("127.0.0.1", port)
    session.upload(b"x", "file")
    (left,) = tmp_path.glob("slipway-rpc-*")
    process.kill()
    process.wait()
    program("--port", "0")
    assert left.exists()  # it is young: a server might just be making it
    os.utime(left, (0, 0))
    program("--port", "0")
    wait_for(lambda: not left.exists())


def test_folders_in_use_are_not_swept(program, tmp_path):
    _, port = program("--port", "0")
    with rpc.connect("127.0.0.1", port) as session:
        session.upload(b"x", "file")
        (used,) = tmp_path.glob("slipway-rpc-*")
        os.utime(used, (0, 0))
        _, other = program("--port", "0")
        rpc.connect("127.0.0.1", other).close()
        assert session.download("file") == b"x"
