"""An exported library runs without Slipway: from plain tvm-ffi, and from C through dlopen."""

import shutil
import subprocess
import sys

import pytest

import slipway


@pytest.fixture(scope="module")
def examples(repository):
    return repository / "examples" / "export"


@pytest.fixture(scope="module")
def library(examples, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "add_one.so"
    subprocess.run([sys.executable, examples / "build_add_one.py", path], check=True)
    return path


def test_library_runs_with_plain_tvm_ffi(examples, library, tmp_path):
    """In this process an import of Slipway would fail, as where it is not installed."""
    blocker = tmp_path / "run.py"
    blocker.write_text(
        "import sys, runpy\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'slipway': raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    script = examples / "call_from_tvm_ffi.py"
    done = subprocess.run(
        [sys.executable, blocker, script, library], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "without Slipway: [1. 2. 3. 4.]" in done.stdout


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_library_runs_from_c(examples, library, tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"apt-get install {compiler}")
    program = tmp_path / "call"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-ldl"]
    include = slipway.libinfo.find_include_path()[0]
    source = examples / "call_from_c.c"
    command = [compiler, "-I", include, str(source), "-o", str(program), *flags]
    subprocess.run(command, check=True)
    done = subprocess.run([program, library], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "b[0] = 1, b[1023] = 1024\n"
