"""A device host has the base packages only: it loads artifacts and serves RPC all the same."""

import subprocess
import sys

import pytest

# Refuses every package that the base installation lacks.
REFUSE = """
import sys

class Refuse:
    ABSENT = {"llvmlite", "ziglang", "onnx", "tflite", "flatbuffers", "typer", "rich", "xgboost"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    import slipway
    from slipway import te

    a = te.placeholder((16,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    library = slipway.build(te.create_schedule(b.op), [a, b], target="llvm", name="add_one")
    path = tmp_path_factory.mktemp("artifact") / "add_one.tar"
    library.export_library(str(path))
    return path


def run(program, *arguments):
    command = [sys.executable, "-c", REFUSE + program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_artifact_loads_and_runs(artifact):
    done = run(
        "import numpy as np, slipway\n"
        "f = slipway.runtime.load_module(sys.argv[1])\n"
        "b = slipway.nd.empty((16,), 'float32')\n"
        "f['add_one'](slipway.nd.array(np.arange(16, dtype='float32')), b)\n"
        "print(b.numpy()[15])\n",
        artifact,
    )
    assert done.stdout.strip() == "16.0", done.stderr


def test_rpc_server_starts():
    done = run(
        "import slipway\n"
        "server = slipway.rpc.Server('127.0.0.1', use_popen=False)\n"
        "remote = slipway.rpc.connect('127.0.0.1', server.port)\n"
        "print(remote.cpu(0).device_id)\n"
        "server.terminate()\n"
    )
    assert done.stdout.strip().endswith("0"), done.stderr


def test_the_command_line_says_what_to_install():
    done = run("from slipway.cli.main import main\nmain()")
    assert done.returncode == 7
    assert "pip install 'slipway-ml[cli]'" in done.stderr


def test_compiling_says_what_to_install():
    done = run(
        "from slipway import te\nimport slipway\n"
        "a = te.placeholder((16,), name='a')\n"
        "b = te.compute(a.shape, lambda i: a[i] + 1.0, name='b')\n"
        "try: slipway.build(te.create_schedule(b.op), [a, b], target='llvm')\n"
        "except Exception as error: print(error)\n"
    )
    assert "slipway-ml[compile]" in done.stdout, done.stderr
