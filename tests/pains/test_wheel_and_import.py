"""Pain 8: no wheel, the wrong wheel, an import that fails."""

import subprocess
import sys
import tomllib

import pytest

BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
EXTRAS = ("llvmlite", "ziglang", "onnx", "tflite", "torch", "typer", "rich", "starlette", "xgboost",
          "ml_dtypes", "scipy", "serial", "tokenizers")  # fmt: skip


def run_without(names, program):
    return subprocess.run(
        [sys.executable, "-c", BLOCK.format(names=set(names)) + program],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_wheel_is_for_every_python_and_needs_two_packages(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert sorted(d.split(">")[0] for d in project["dependencies"]) == ["apache-tvm-ffi", "numpy"]
    assert not list(repository.glob("src/**/*.pyx"))
    assert not (repository / "setup.py").exists()


def test_a_device_is_used_without_any_extra():
    done = run_without(
        EXTRAS,
        "import slipway, numpy\n"
        "from slipway import rpc\n"
        "with rpc.Server('127.0.0.1', 0, silent=True) as server:\n"
        "    with rpc.connect('127.0.0.1', server.port) as session:\n"
        "        x = slipway.nd.array(numpy.arange(4), session.cpu(0))\n"
        "        print(x.numpy().sum())\n",
    )
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr


@pytest.mark.parametrize(
    ("missing", "program", "extra"),
    [
        ("llvmlite", "slipway.compile(model)", "compile"),
        ("onnx", "slipway.compile(model)", "onnx"),
        ("typer", "sys.argv = ['slipway']; import slipway.cli.main as m; m.main()", "cli"),
    ],
)
def test_what_is_missing_is_named_with_the_line_that_installs_it(missing, program, extra):
    done = run_without(
        [missing],
        "import slipway, pathlib\n"
        "model = pathlib.Path(slipway.__file__).parent / 'models/digits/digits.onnx'\n" + program,
    )
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert missing in last
    assert "pip install" in last
    assert f"[{extra}" in last or f",{extra}" in last
