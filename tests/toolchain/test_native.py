import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from slipway.errors import ToolchainError
from slipway.toolchain import emulators, native, runtime_library, waiting, zig


def test_musl_targets_of_triples():
    assert zig.musl_target("aarch64-linux") == "aarch64-linux-musl"
    assert zig.musl_target("armv7l-none-linux-gnueabihf") == "arm-linux-musleabihf"
    assert zig.musl_target("arm") == "arm-linux-musleabihf"
    assert zig.musl_target("riscv64-unknown-linux-gnu") == "riscv64-linux-musl"
    with pytest.raises(ToolchainError, match="no static Linux target for 'sparc64'"):
        zig.musl_target("sparc64")


def test_the_host_runtime_is_small():
    # 150 KB, classic C functions with checked pointers, four drivers, JSON, images of OpenCL and
    # models of any open size for C, Rust and Java; gcc 12: 306,688 bytes
    assert native.host_runtime().stat().st_size < 310_000


@pytest.mark.parametrize("locks", [True, False])
def test_what_is_built_is_built_once(tmp_path, monkeypatch, locks):
    """Also where several want it at the same time, but on a file system without locks."""
    built = []
    together = threading.Barrier(4)

    def build(path):
        built.append(path)
        time.sleep(0.1)
        path.write_bytes(b"runtime")

    def want():
        together.wait()
        assert native.host_runtime().read_bytes() == b"runtime"

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "build_host_runtime", build)
    if not locks:
        monkeypatch.setattr(fcntl, "flock", refuse)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: want(), range(4)))
    assert len(built) == 1 if locks else built
    del built[:]
    assert native.host_runtime().read_bytes() == b"runtime"
    assert not built


def test_whoever_waits_is_told_what_for(tmp_path, monkeypatch):
    """Seconds pass at the first run of a command, which said nothing."""
    told = []
    monkeypatch.setattr(waiting, "_told", None)
    monkeypatch.setattr(waiting, "_last", "")
    waiting.tell_to(told.append)

    def fail(path):
        raise ToolchainError("no compiler")

    def build(path):
        assert len(told) == 1
        path.write_bytes(b"runtime")

    for one in (fail, fail):  # many parts of a program ask for it
        with pytest.raises(ToolchainError):
            native.made_once(tmp_path / "made", one, "the runtime")
    for _ in range(2):
        native.made_once(tmp_path / "made", build, "the runtime")
    assert told == ["Compiling the runtime, once for all later runs ..."]
    native.made_once(tmp_path / "small", build)
    assert len(told) == 1


def test_whoever_waits_is_not_promised_what_no_folder_can_keep(tmp_path, monkeypatch):
    """Where no home can be written, each process compiles it again."""
    told = []
    monkeypatch.setattr(waiting, "_told", told.append)
    monkeypatch.setattr(waiting, "_last", "")
    (tmp_path / "file").touch()
    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path / "file" / "no folder"))
    runtime_library._temporary_cache.cache_clear()
    own = runtime_library.cache_dir()
    native.made_once(own / "made", lambda path: path.touch(), "the runtime")
    native.made_once(tmp_path / "made", lambda path: path.touch(), "the server")
    assert "for this run alone (no cache folder can be written; SLIPWAY_CACHE" in told[0]
    assert told[1] == "Compiling the server, once for all later runs ..."
    runtime_library._temporary_cache.cache_clear()


def test_without_compilers_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(zig, "find_zig", lambda: None)
    with pytest.raises(ToolchainError, match="apt-get install gcc"):
        native.host_runtime()
    with pytest.raises(ToolchainError, match=r"pip install 'slipway-ml\[compile\]'"):
        zig.zig_path()


@pytest.mark.parametrize(
    ("machine", "bits", "name", "target"),
    [
        ("x86_64", 64, "x86_64-linux-gnu", "x86_64-linux-gnu.2.17"),
        ("aarch64", 64, "aarch64-linux-gnu", "aarch64-linux-gnu.2.17"),
        ("armv7l", 32, "armv7-linux-gnu", "arm-linux-gnueabihf.2.17"),
        ("aarch64", 32, "armv7-linux-gnu", "arm-linux-gnueabihf.2.17"),  # Raspberry Pi OS, 32-bit
        ("riscv64", 64, "riscv64-linux-gnu", "riscv64-linux-gnu.2.27"),
    ],
)
def test_a_host_is_what_its_python_is(monkeypatch, tmp_path, machine, bits, name, target):
    """Of a 32-bit ARM the runtime was compiled for armv7-linux-gnu, which zig does not know."""
    host = SimpleNamespace(platform="linux", maxsize=2 ** (bits - 1) - 1)
    monkeypatch.setattr(runtime_library, "sys", host)
    monkeypatch.setattr(runtime_library.platform, "machine", lambda: machine)
    commands = []
    monkeypatch.setattr(native.zig, "run_zig", lambda words, **_: commands.append(words))
    assert native.host_name() == name
    native.compile_host_runtime_with_zig(native.host_name(), tmp_path / "made.so")
    assert commands[0][:3] == ["cc", "-target", target]
    assert ("-mcpu=cortex_a7" in commands[0]) == (bits == 32)


def test_emulator_hint():
    assert emulators.find("x86_64-linux-gnu") is not None or "qemu" in emulators.install_hint("x86")
    assert "qemu-arm" in emulators.install_hint("armv7l-linux-gnueabihf")


def test_import_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys, slipway; "
        "heavy = [m for m in ('llvmlite', 'tvm_ffi', 'numpy', 'onnx') if m in sys.modules]; "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ), timeout=60)


def test_prebuilt_server_is_made_executable(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path / "cache"))
    carried = tmp_path / "slipway-server"
    carried.write_bytes(b"#!/bin/sh\n")
    monkeypatch.setattr(native, "prebuilt_file", lambda machine, name: carried)
    made = native.build_device_server("aarch64-linux")
    assert made != carried
    assert os.access(made, os.X_OK)
    assert made.read_bytes() == carried.read_bytes()
    copied = native.build_device_server("aarch64-linux", tmp_path / "out" / "server")
    assert os.access(copied, os.X_OK)


def test_a_server_is_of_objects_that_other_programs_have(monkeypatch, tmp_path):
    """One object knows the path of the child, which is another one in each build."""
    commands = []
    monkeypatch.setattr(native.zig, "run_zig", lambda words, **_: commands.append(list(words)))
    monkeypatch.setattr(native.musl, "link_static", lambda *_: None)
    native.compile_server("aarch64-linux-musl", tmp_path / "server")
    native.compile_static("aarch64-linux-musl", tmp_path / "other", "src", "posix")
    *before, server, other = ([w for w in words if w.startswith("-")] for words in commands)
    assert server == other
    (child,) = (words for words in before if any("SLW_DEVICE_CHILD" in word for word in words))
    assert [w for w in commands[before.index(child)] if w.endswith(".c")] == [
        str(native.CRT / "server" / "device_child_file.c")
    ]


def test_what_is_no_file_is_written_to_and_stays(tmp_path):
    """A device such as /dev/null, or a pipe, is not replaced by a file of its name."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        native.atomically(pipe, lambda made: made.write_bytes(b"a library"))
        assert read.result(timeout=60) == b"a library"
    assert pipe.is_fifo()
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]
