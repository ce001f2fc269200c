"""Emulated devices for whole models."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from slipway import rpc
from slipway.toolchain import emulators, native

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends" / "tflite"))  # litert
sys.path.insert(0, str(Path(__file__).parents[1] / "compiler"))  # aot_models
sys.path.insert(0, str(Path(__file__).parent))  # open_models

TARGETS = {
    "x86_64": "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v2",
    "aarch64": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon",
    "armv7": "llvm -mtriple=armv7l-none-linux-gnueabihf -mcpu=cortex-a53 -mattr=+neon",
    "riscv64": "llvm -mtriple=riscv64-unknown-linux-gnu",
}


@pytest.fixture
def device():
    """A function from "aarch64" to (session with such a device, its target); skips without QEMU."""
    with contextlib.ExitStack() as stack:

        def start(architecture):
            emulator = emulators.find(architecture)
            if emulator is None:
                pytest.skip(emulators.install_hint(architecture))
            server = native.build_device_server(architecture)
            command = [*emulator, str(server), "--port", "0"]
            process = stack.enter_context(
                subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)
            port = int(process.stderr.readline().rsplit(":", 1)[1])
            return stack.enter_context(rpc.connect("127.0.0.1", port)), TARGETS[architecture]

        yield start
