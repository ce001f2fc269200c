"""The devices that the demo can start by itself: the static server, emulated where needed."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING

from slipway.errors import RPCConnectionError, ToolchainError, did_you_mean
from slipway.libinfo import find_js_path
from slipway.toolchain import native, web_runtime
from slipway.toolchain.elf import architecture_of

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession
    from slipway.target import Target

START_TIMEOUT_S = 30.0
_BOUND = re.compile(r"bind to \S*:(\d+)")


PAGE = "web"
_NODE_HINT = (
    "node, which plays the browser, is not installed; on Debian: sudo apt-get install nodejs"
)


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device: its name, what to compile for, and the triple of its static server.

    `suffix` is that of the file that is uploaded.  `target` is for the processor; a GPU beside it
    has a `gpu` target, of which the processor is the host.
    """

    name: str
    processor: str
    target: str
    server: str
    suffix: str = ".tar"
    gpu: str = ""

    @property
    def compiled_for(self) -> Target:
        """The target of the model."""
        from slipway.target import Target

        return Target(self.gpu, host=self.target) if self.gpu else Target(self.target)


KINDS = {
    kind.name: kind
    for kind in (
        DeviceKind(
            "aarch64",
            "Cortex-A72, a Raspberry Pi 4",
            "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
            "aarch64-linux",
        ),
        DeviceKind(
            "armv7",
            "Cortex-A7, a Raspberry Pi 2",
            "llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon",
            "armv7-linux",
        ),
        DeviceKind(
            "riscv64",
            "RV64GC",
            "llvm -mtriple=riscv64-linux-gnu -mcpu=generic-rv64 -mattr=+m,+a,+f,+d,+c",
            "riscv64-linux",
        ),
        DeviceKind(
            "x86_64",
            "x86-64-v3, any PC since 2015",
            "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3",
            "x86_64-linux",
        ),
        DeviceKind(PAGE, "WebAssembly with SIMD", "llvm -mtriple=wasm32", PAGE, ".wasm"),
    )
}


def kind_named(name: str) -> DeviceKind:
    """Return the kind of that name; ToolchainError lists them when there is none."""
    if name not in KINDS:
        known = ", ".join(KINDS)
        raise ToolchainError(
            f"--device {name}: not a device that the demo can start; it can start {known}."
            f"{did_you_mean(name, KINDS)}"
        )
    return KINDS[name]


def gpu_kind(target: str) -> DeviceKind:
    """Return this machine with its first GPU of a target's kind.

    Raises ToolchainError for a target of processors, DeviceError where there is no such device.
    """
    from slipway.runtime.devices import Device
    from slipway.target import Target

    chosen = Target(target)
    if chosen.kind.device_type == 1:
        raise ToolchainError(
            f"--target {target}: the demo takes a GPU's, opencl, vulkan, cuda or rocm; processors "
            f"are --device {', '.join(KINDS)}"
        )
    device = Device(chosen.kind.device_type)
    device.check()
    here = this_machine()
    return replace(here, name=chosen.kind.name, processor=str(device.device_name), gpu=target)


def node() -> list[str]:
    """Return the command of node; ToolchainError says where it comes from."""
    found = shutil.which("node")
    if found is None:
        raise ToolchainError(_NODE_HINT + ".")
    return [found]


def build_server(kind: DeviceKind) -> Path:
    """Return the program that is all a device of that kind needs, building it if that must be."""
    if kind.name == PAGE:
        return web_runtime.web_device()
    return native.build_device_server(kind.server)


@contextmanager
def session_with(
    kind: DeviceKind, server: Path, emulator: list[str], folder: Path
) -> Iterator[RPCSession]:
    """Start a device with that server and emulator, and yield a session with it."""
    from slipway import rpc

    if kind.name == PAGE:
        script = f"{find_js_path()[0]}/device/stdio.mjs"
        with rpc.PopenSession([*emulator, script, str(server)]) as session:
            yield session
    else:
        with serve(server, emulator, folder) as port, rpc.connect("127.0.0.1", port) as session:
            yield session


def this_machine() -> DeviceKind:
    """Return the kind that runs here without an emulator."""
    return kind_named(architecture_of(platform.machine()))


@contextmanager
def serve(server: Path, emulator: list[str], folder: Path) -> Iterator[int]:
    """Run the static `server` on a free loopback port, in `folder`; yield the port; end it after.

    Raises RPCConnectionError, with what the server printed, when it does not say that it listens.
    """
    command = [*emulator, str(server), "--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        lines: Queue[str | None] = Queue()
        threading.Thread(target=_read_lines, args=(process, lines), daemon=True).start()
        yield _wait_for_port(lines, command)
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _read_lines(process: subprocess.Popen[str], lines: Queue[str | None]) -> None:
    """Move what the server prints into `lines`, so that a full pipe never stops it."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line.rstrip())
    process.stdout.close()
    lines.put(None)


def _wait_for_port(lines: Queue[str | None], command: list[str]) -> int:
    """Return the port of the server's "bind to HOST:PORT" line."""
    said: list[str] = []
    while True:
        try:
            line = lines.get(timeout=START_TIMEOUT_S)
        except Empty:
            line = None
        if line is None:
            message = "\n".join(said) or "nothing"
            raise RPCConnectionError(
                f"the device server did not start ({' '.join(command)}); it said: {message}"
            )
        said.append(line)
        match = _BOUND.search(line)
        if match is not None:
            return int(match.group(1))
