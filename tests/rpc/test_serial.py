"""Device servers behind a serial line: a pseudo-terminal, as true to bytes as the test lets it."""

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import threading
import tty

import numpy as np
import pytest

from slipway import micro, nd, rpc
from slipway.errors import RemoteError, RPCError, RPCTimeoutError
from slipway.exec import rpc_server
from slipway.toolchain import native


class Wire:
    """Two terminals, `local` and `far`, joined by a thread that may change bytes."""

    def __init__(self, errors=0.0):
        self._errors = errors
        self.changed = 0
        pairs = [os.openpty(), os.openpty()]
        for _, end in pairs:
            tty.setraw(end)
        self._inner = [inner for inner, _ in pairs]
        self._ends = [end for _, end in pairs]  # kept open: a terminal without an end hangs up
        self.local, self.far = (os.ttyname(end) for end in self._ends)
        self._stop = os.pipe()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def close(self):
        os.write(self._stop[1], b"x")
        self._thread.join(60)
        for fd in (*self._inner, *self._ends, *self._stop):
            os.close(fd)

    def _carry(self):
        chooser = random.Random(1)
        while True:
            ready, _, _ = select.select([*self._inner, self._stop[0]], [], [])
            if self._stop[0] in ready:
                return
            for fd in ready:
                content = bytearray(os.read(fd, 4096))
                if chooser.random() < self._errors:
                    content[chooser.randrange(len(content))] ^= 1 << chooser.randrange(8)
                    self.changed += 1
                other = self._inner[1 - self._inner.index(fd)]
                while content:
                    del content[: os.write(other, content)]


@pytest.fixture
def wire(request):
    made = Wire(getattr(request, "param", 0.0))
    yield made
    made.close()


@contextlib.contextmanager
def serving(kind, wire, tmp_path):
    if kind == "static":
        machine = native.host_name().split("-")[0]
        command = [str(native.build_device_server(f"{machine}-linux-gnu"))]
    else:
        command = [sys.executable, "-m", "slipway.exec.rpc_server"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "SLIPWAY_RPC_TOKEN": ""}
    with subprocess.Popen(
        [*command, "--serial", wire.far, "--max-upload", "8"],
        stderr=subprocess.DEVNULL, env=environment,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
    assert process.returncode in (0, -signal.SIGTERM)
    assert not list(tmp_path.glob("slipway-rpc-*"))


@pytest.mark.parametrize("wire", [0.0, 0.02], indirect=True, ids=["true", "lying"])
@pytest.mark.parametrize("kind", ["static", pytest.param("python", marks=pytest.mark.long)])
def test_sessions_over_a_serial_line(wire, kind, tmp_path, kernels):
    data = np.random.default_rng(0).random(20_000, "float32")
    with serving(kind, wire, tmp_path):
        for _ in range(2):
            with micro.SerialSession(wire.local, timeout=30) as session:
                assert session.ping(bytes(range(256))) == bytes(range(256))
                session.upload(kernels)
                module = session.load_module("kernels.so")
                x = nd.array(data, session.cpu(0))
                y = nd.empty(data.shape, "float32", session.cpu(0))
                module["myadd"](x, y)
                np.testing.assert_array_equal(y.numpy(), data + 1)
                assert session.call_many(module["add_ints"], [(i, 1) for i in range(500)]) == [
                    i + 1 for i in range(500)
                ]
    assert (wire.changed > 0) == (wire._errors > 0)


def test_faults_over_a_serial_line(wire, tmp_path, kernels):
    """Crash and deadline are told as on a network, and the next session is served."""
    with serving("static", wire, tmp_path):
        for function, error, words in (
            ("segfault", RemoteError, "SIGSEGV.*while it ran 'segfault'"),
            ("spin", RPCTimeoutError, "time limit of 0.500 s while it ran 'spin'"),
        ):
            with micro.SerialSession(wire.local, timeout=30) as session:
                session.upload(kernels)
                session.timeout = 0.5
                bad = session.load_module("kernels.so")[function]
                with pytest.raises(error, match=words):
                    bad()
        with micro.SerialSession(wire.local, timeout=30) as session:
            assert session.listdir() == []
            with pytest.raises(RemoteError, match="uploads up to"):
                session.upload(bytes(9 << 20), "large")


def test_client_that_leaves_without_a_word(wire, tmp_path):
    """The next START ends its session."""
    with serving("static", wire, tmp_path):
        first = micro.SerialSession(wire.local, timeout=30)
        first.upload(b"x", "x")
        first._line._closing = True
        first._line._transport = Silent()
        with micro.SerialSession(wire.local, timeout=30) as second:
            assert second.listdir() == []
        first._line.close()


class Silent:
    """A transport that nobody hears."""

    def read(self, n, timeout):
        raise OSError("gone")

    def write(self, data, timeout):
        pass


def test_no_such_line(capsys, tmp_path):
    assert rpc_server.main(["--serial", str(tmp_path / "nothing")]) == 9
    assert "nothing at 115200 baud: No such file or directory." in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert rpc_server.main(["--serial", str(tmp_path / "file")]) == 9
    assert "it is no serial line" in capsys.readouterr().err
    assert rpc_server.main(["--serial", "/dev/null", "--tracker", "h:1", "--key", "k"]) == 2
    with pytest.raises(RPCError, match="cannot open the serial port"):
        micro.SerialSession(tmp_path / "nothing")
    assert rpc  # the same sessions as there
