"""Uploads where file systems and kernels lack what others have, and where the space runs out."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.rpc import without_calls

from slipway import rpc
from slipway.errors import RemoteError, RPCError

WITHOUT = Path(without_calls.__file__)


@pytest.fixture(params=["static", "python"])
def start(request, tmp_path, static_server_for_this_machine):
    """Start a server of one kind behind a command; return its port."""
    running = []

    def static(*prefix, token=""):
        device = static_server_for_this_machine("--require-token", prefix=prefix, token=token)
        running.append(device.stop)
        return device.port

    def python(*prefix, token=""):
        log = tmp_path / "log"
        command = [sys.executable, "-m", "slipway.exec.rpc_server", "--port", "0"]
        with log.open("w") as out:
            environment = {**os.environ, "TMPDIR": str(tmp_path), "SLIPWAY_RPC_TOKEN": token}
            started = subprocess.Popen(
                [*prefix, *command, "--require-token"], stderr=out, env=environment
            )
        running.append(lambda: (started.terminate(), started.wait(10)))
        deadline = time.monotonic() + 60
        while "bind to" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        return int(log.read_text().partition("\n")[0].rsplit(":", 1)[1])

    yield static if request.param == "static" else python
    for stop in running:
        stop()


def mounted(kind, folder, options="rw"):
    """Return a command that mounts a file system at `folder`, for itself and what follows it."""
    script = f'mount -t {kind} -o {options} none "{folder}" && exec "$@"'
    prefix = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh")
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"{kind} cannot be mounted here (it needs root): {tried.stderr.strip()}")
    return prefix


@contextlib.contextmanager
def session(port):
    with rpc.connect("127.0.0.1", port, token="a token") as remote:
        yield remote


def test_file_system_without_fallocate(start, tmp_path):
    """As ramfs; JFFS2, UBIFS, FAT and NFS take the same way."""
    port = start(*mounted("ramfs", tmp_path), token="a token")
    content = os.urandom(3_000_000)
    with session(port) as remote:
        remote.upload(content, "data")
        remote.upload(b"", "empty")
        assert remote.download("data") == content
        assert remote.listdir() == ["data", "empty"]


def test_full_disk_is_named_before_the_bytes_travel(start, tmp_path):
    port = start(*mounted("tmpfs", tmp_path, "size=4m"), token="a token")
    with session(port) as remote:
        remote.upload(bytes(1 << 20), "fits")
        with pytest.raises(RemoteError, match=r"reserve space for 'large': No space left on dev"):
            remote.upload(bytes(8 << 20), "large")
        assert remote.listdir() == ["fits"]
        remote.upload(bytes(2 << 20), "fits, too")  # nothing is left of the large one
        assert remote.listdir() == ["fits", "fits, too"]


def lacking(calls):
    if not without_calls.is_possible():
        pytest.skip("the seccomp filter is written for Linux on x86_64 and aarch64")
    return sys.executable, str(WITHOUT), calls


def test_full_disk_without_fallocate(start, tmp_path):
    """The same where nothing can be reserved: the file system says what it has."""
    prefix = (*mounted("tmpfs", tmp_path, "size=4m"), *lacking("fallocate"))
    port = start(*prefix, token="a token")
    with session(port) as remote:
        with pytest.raises(RemoteError, match=r"'large': No space left on device"):
            remote.upload(bytes(8 << 20), "large")
        remote.upload(bytes(2 << 20), "fits")
        assert remote.listdir() == ["fits"]


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM])
def test_fallocate_that_is_refused(start, code):
    port = start(*lacking(f"fallocate={code}"), token="a token")
    with session(port) as remote:
        remote.upload(b"content", "file")
        assert remote.download("file") == b"content"


def test_old_kernel(start, kernels):
    """None of what came after Linux 3.10; a container that forbids them looks the same."""
    calls = "fallocate,getrandom,memfd_create,prlimit64,renameat2,statx,flock"
    port = start(*lacking(calls), token="a token")
    with session(port) as remote:
        remote.upload(kernels)
        assert remote.load_module(kernels.name)["add_ints"](40, 2) == 42


def test_no_random_numbers(start, tmp_path):
    """Neither the call nor the file: the reason is told, and nobody is let in without proof."""
    script = 'mount -t tmpfs none /dev && exec "$@"'
    mounted("tmpfs", tmp_path)
    prefix = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh")
    if start.__name__ == "python":
        pytest.skip("Python itself does not start so")
    port = start(*lacking("getrandom"), *prefix, token="a token")
    with pytest.raises(RPCError, match="no source of random numbers"):
        rpc.connect("127.0.0.1", port, token="a token")
