"""Drivers that are watched: calls are counted, and a chosen one fails.

`languages/watched_driver.c` stands between the runtime and the machine's own OpenCL or Vulkan.
"""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
DRIVERS = FOLDER.parents[2] / "src/slipway/crt/posix/devices/drivers"
NAMES = {"opencl": "libOpenCL.so.1", "vulkan": "libvulkan.so.1"}
PROGRAM = """
import ctypes, gc, sys
sys.path[:0] = [{folder!r}]
import numpy as np
import slipway as tvm
from slipway import te
from slipway.errors import DeviceError
from slipway.target import Target
import run_kernels, test_kernels
from run_kernels import random

KIND = {kind!r}
driver = ctypes.CDLL({name!r})
device = tvm.device(KIND, 0)

def calls(name):
    return driver.watched_calls(name.encode())

def fail(name, left, code, how="watched_fail"):
    getattr(driver, how)(name.encode(), ctypes.c_int64(left), ctypes.c_int64(code))

def built(number=1.0, n=128, name="scaled"):
    x = te.placeholder((n,), name="x")
    y = te.compute((n,), lambda i: x[i] * float(number), name="y")
    schedule = te.create_schedule(y.op)
    block, thread = schedule[y].split(y.op.axis[0], factor=32)
    schedule[y].bind(block, te.thread_axis("blockIdx.x"))
    schedule[y].bind(thread, te.thread_axis("threadIdx.x"))
    return tvm.build(schedule, [x, y], Target(KIND, host="llvm"), name=name)

def fails(call, *words):
    try:
        call()
    except DeviceError as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, (missing, str(error))
    else:
        raise AssertionError("it did not fail")

{body}
"""


def real_driver(kind):
    """Return the path of the machine's own library."""
    try:
        ctypes.CDLL(NAMES[kind])
    except OSError:
        pytest.skip(f"no {NAMES[kind]}: apt-get install pocl-opencl-icd mesa-vulkan-drivers")
    found = re.search(rf"\S*/{re.escape(NAMES[kind][:-1])}\S*", Path("/proc/self/maps").read_text())
    assert found
    return found[0]


def watched_driver(kind, folder):
    """Compile the library for a kind of device into a folder; return the environment to use it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("no C compiler for x86-64: apt-get install gcc")
    source = FOLDER / "languages" / "watched_driver.c"
    includes = [f"-I{DRIVERS}", f"-I{DRIVERS}/opencl", f"-I{DRIVERS.parents[2] / 'include'}"]
    define = ["-DWATCH_VULKAN"] if kind == "vulkan" else []
    command = [compiler, "-O1", "-shared", "-fPIC", *define, *includes, str(source), "-ldl"]
    subprocess.run([*command, "-o", str(folder / NAMES[kind])], check=True)
    return {"LD_LIBRARY_PATH": str(folder), "SLW_REAL_DRIVER": real_driver(kind)}


def run_watched(kind, environment, body):
    """Run a program whose driver is watched; return what it prints."""
    text = PROGRAM.format(
        folder=str(FOLDER), kind=kind, name=NAMES[kind], body=textwrap.dedent(body)
    )
    path = os.pathsep.join([str(FOLDER), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": path, **environment},
        check=False, capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
