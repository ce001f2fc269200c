import importlib
import os
import platform
import shutil
import subprocess
import time
import types
from pathlib import Path

import numpy as np
import pytest

from slipway import rpc
from slipway.runtime.artifact_writer import write_artifact
from slipway.runtime.graph.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.runtime.params import save_param_dict
from slipway.toolchain import emulators, native, zig
from slipway.toolchain.link import link_shared

HERE = Path(__file__).parent
RUNTIME_KERNELS = HERE.parent / "runtime" / "kernels.c"
HOST = zig.architecture_of(platform.machine())


def load_functions():
    """Register the test functions."""
    importlib.import_module("tests.rpc.functions")


@pytest.fixture(scope="session")
def server():
    load_functions()
    elsewhere = os.environ.get("SLIPWAY_TEST_RPC_PORT")  # of one that leads across a network
    if elsewhere:
        yield types.SimpleNamespace(port=int(elsewhere))
        return
    running = rpc.Server("127.0.0.1", 0, use_popen=False, silent=True)
    yield running
    running.terminate()


@pytest.fixture
def remote(server):
    session = rpc.connect("127.0.0.1", server.port)
    yield session
    session.close()


TRIPLES = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "armv7": "armv7l-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu",
}
_FLAGS = ["-std=c11", "-O1", "-ffreestanding", "-fno-stack-protector", "-fPIC", "-c"]


def build_library(architecture, source, folder):
    """Compile a C file in the exported ABI and link it, as the compiler's libraries are."""
    triple = TRIPLES[architecture]
    define = [f'-DTRIPLE="{triple}"', '-DISA=""', "-I", str(native.include_path())]
    compiler = shutil.which("gcc") or shutil.which("cc")
    if architecture == HOST and compiler:
        command = [compiler, "-fvisibility=hidden"]
    else:
        command = [str(zig.zig_path()), "cc", "-target", zig.musl_target(triple)]
        command += ["-fvisibility=hidden", "-fno-sanitize=all"]
        command += ["-mcpu=cortex_a7"] if architecture == "armv7" else []
    out = folder / f"{source.stem}.o"
    subprocess.run([*command, *_FLAGS, *define, "-o", str(out), str(source)], check=True)
    return link_shared([out], triple, out.with_suffix(".so"))


def build_model(library, path):
    """Write the artifact of y = (data + 10) + 1 over the functions of tests/runtime/kernels.c."""
    tables = make_tables()
    return write_artifact(
        path,
        library.read_bytes(),
        metadata={"target": "llvm", "compiler": "test"},
        graph_json=tables.to_json(),
        graph_binary=tables.to_binary(),
        params=save_param_dict({"weight": np.full((2, 3), 10, "float32")}),
    )


def make_tables():
    return GraphTables(
        nodes=(
            GraphNode("data", None, ()),
            GraphNode("weight", None, ()),
            GraphNode("sum", "add", ((0, 0), (1, 0))),
            GraphNode("plus", "add_one", ((2, 0),)),
        ),
        entries=tuple(GraphEntry((2, 3), "float32", i) for i in range(4)),
        inputs=(0, 1),
        outputs=((3, 0),),
    )


@pytest.fixture(scope="session")
def kernels(tmp_path_factory):
    """Path of kernels.c as a library for this machine."""
    return build_library(HOST, HERE / "kernels.c", tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="session")
def model_tar(tmp_path_factory):
    """Path of a small model for this machine."""
    folder = tmp_path_factory.mktemp("model")
    library = build_library(HOST, RUNTIME_KERNELS, folder)
    return build_model(library, folder / "model.tar")


@pytest.fixture
def model_tables():
    return make_tables()


class StaticDevice:
    """A static server for one architecture, and what to run on it."""

    def __init__(self, architecture, folder, *arguments, prefix=(), token=""):
        emulator = emulators.find(architecture)
        if emulator is None:
            pytest.skip(emulators.install_hint(architecture))
        server = native.build_device_server(TRIPLES[architecture])
        (folder / "runtime").mkdir()
        self.kernels = build_library(architecture, HERE / "kernels.c", folder)
        library = build_library(architecture, RUNTIME_KERNELS, folder / "runtime")
        self.model = build_model(library, folder / "model.tar")
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [*prefix, *emulator, str(server), "--port", "0", *arguments],
            stderr=self.log,
            env={**os.environ, "TMPDIR": str(folder), "SLIPWAY_RPC_TOKEN": token},
        )
        self.folder = folder
        self.port = self._wait_for_port()

    def _wait_for_port(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            line = self.text().partition("\n")
            if line[1]:
                return int(line[0].rsplit(":", 1)[1])
            time.sleep(0.01)
        raise AssertionError(f"the server did not start: {self.text()}")

    def text(self):
        return Path(self.log.name).read_text()

    def stop(self):
        self.process.terminate()
        status = self.process.wait(10)
        self.log.close()
        return status


@pytest.fixture(scope="session", params=list(TRIPLES))
def static_device(request, tmp_path_factory):
    device = StaticDevice(request.param, tmp_path_factory.mktemp(request.param))
    yield device
    assert device.stop() == 0
    assert not list(device.folder.glob("slipway-rpc-*"))


@pytest.fixture
def static_server_for_this_machine(tmp_path):
    """Start static servers with the arguments given."""
    return lambda *arguments, **how: StaticDevice(HOST, tmp_path, *arguments, **how)
