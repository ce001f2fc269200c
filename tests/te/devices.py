"""Run compiled te programs here, or on another processor through its static server in QEMU."""

import os
import subprocess
import time

import numpy as np
import pytest

import slipway as tvm
from slipway import rpc
from slipway.toolchain import emulators, native

TARGETS = {
    "host": "llvm",
    "aarch64": "llvm -mtriple=aarch64-linux-gnu",
    "armv7": "llvm -mtriple=armv7l-linux-gnueabihf -mattr=+neon",
}
SERVER_TRIPLES = {"aarch64": "aarch64-linux-musl", "armv7": "arm-linux-musleabihf"}


class Device:
    """A processor to build for and run on; `host` is this process."""

    def __init__(self, name, folder):
        self.name = name
        self.target = TARGETS[name]
        self.folder = folder
        self.process = None
        self.session = None
        self.count = 0
        if name != "host":
            self._start()

    def _start(self):
        emulator = emulators.find(self.name)
        if emulator is None:
            pytest.skip(emulators.install_hint(self.name))
        server = native.build_device_server(SERVER_TRIPLES[self.name])
        log = self.folder / "log"
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [*emulator, str(server), "--port", "0"],
                stderr=errors,
                env={**os.environ, "TMPDIR": str(self.folder), "SLIPWAY_RPC_TOKEN": ""},
            )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and "\n" not in log.read_text():
            time.sleep(0.01)
        port = int(log.read_text().partition("\n")[0].rsplit(":", 1)[1])
        self.session = rpc.connect("127.0.0.1", port)

    def build(self, schedule, args, target=None):
        """Return the function compiled for `target` (this device's), loaded on the device."""
        module = tvm.build(schedule, args, target or self.target, name="kernel")
        if self.session is None:
            return module["kernel"]
        self.count += 1
        path = self.folder / f"kernel{self.count}.tar"
        module.export_library(str(path))
        self.session.upload(str(path))
        return self.session.load_module(path.name)["kernel"]

    def array(self, data):
        """Return `data` in the device's memory."""
        device = tvm.cpu(0) if self.session is None else self.session.cpu(0)
        return tvm.nd.array(np.ascontiguousarray(data), device)

    def stop(self):
        """End the emulated server."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
