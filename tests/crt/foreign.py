"""What tests of C, C++, Rust and Java share: tools, flags, running a program."""

import shutil
import subprocess
from pathlib import Path

import pytest

from slipway import libinfo
from slipway.toolchain import native

HERE = Path(__file__).parent
CPP = HERE / "cpp"  # programs in C++, and scripts that run in one process with them


def needed(tool):
    """Return a tool's path; the test is skipped, with the reason, where it is not installed."""
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    return found


def compile_flags():
    return ["-I", str(native.include_path())]


def link_flags():
    folder = str(Path(libinfo.find_lib_path()[0]).parent)
    return [f"-L{folder}", "-lslipway_runtime", f"-Wl,-rpath,{folder}"]


def build_with_tvm_ffi(compiler, source, out):
    import tvm_ffi

    ffi = Path(tvm_ffi.libinfo.find_libtvm_ffi()).parent
    include = [f"-isystem{ffi.parent / 'include'}"]
    link = [f"-L{ffi}", "-ltvm_ffi", f"-Wl,-rpath,{ffi}"]
    command = [compiler, "-std=c++17", *include, *compile_flags(), str(source), "-o", str(out)]
    done = subprocess.run([*command, *link_flags(), *link], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def run(command, **options):
    """Run a program and return what it printed; a failure shows what it said."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout
