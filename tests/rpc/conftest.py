import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slipway import rpc
from slipway.toolchain import native

HERE = Path(__file__).parent


def load_functions():
    """Register the test functions (under importlib mode, test folders are no packages)."""
    if "slipway_test_rpc_functions" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "slipway_test_rpc_functions", HERE / "functions.py"
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)


@pytest.fixture(scope="session")
def server():
    load_functions()
    running = rpc.Server("127.0.0.1", 0, use_popen=False, silent=True)
    yield running
    running.terminate()


@pytest.fixture
def remote(server):
    session = rpc.connect("127.0.0.1", server.port)
    yield session
    session.close()


@pytest.fixture(scope="session")
def kernels(tmp_path_factory):
    """Path of kernels.c as a library for this machine."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler for the kernels under test")
    out = tmp_path_factory.mktemp("kernels") / "kernels.so"
    subprocess.run(
        [
            compiler, "-shared", "-fPIC", "-nostdlib", "-ffreestanding", "-O1", "-std=c11",
            "-fno-stack-protector", "-I", str(native.include_path()), "-o", str(out),
            str(HERE / "kernels.c"),
        ],
        check=True,
    )  # fmt: skip
    return out
