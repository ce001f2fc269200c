"""A tiny kernel: compiled, carried to where it is to run, and compared with NumPy there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from slipway import te
from slipway.compiler.driver import build
from slipway.doctor.finding import Finding, absent, ok, wrong
from slipway.errors import SlipwayError, ToolchainError
from slipway.runtime.ndarray import array
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.version import install_line

SIZE = 1000  # no multiple of a vector, so that the kernel has a tail
BOARD_SIZE = 50  # over a serial line
BOARD_FILE_NAME = "slipway-doctor.a"  # which is linked for the board as it is uploaded
FILE_NAME = "slipway-doctor.tar"

# The least that a device of an architecture has: what runs there runs on all of them.
TARGETS = {
    "x86_64": "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64",
    "aarch64": "llvm -mtriple=aarch64-linux-gnu",
    "armv7": "llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon",
    "riscv64": "llvm -mtriple=riscv64-linux-gnu -mcpu=generic-rv64 -mattr=+m,+a,+f,+d,+c",
}

Load = Callable[[Path], tuple[Any, Any]]


def examine_kernel(
    target: str, load: Load, where: str, size: int = SIZE, file_name: str = FILE_NAME
) -> Finding:
    """Return whether a kernel of `size` numbers, compiled for `target`, gives the right ones.

    `load` carries the exported file to where it runs, and returns the loaded module and the
    device there.
    """
    try:
        import llvmlite  # noqa: F401
    except ImportError:
        return absent(
            "kernel", "not tried: there is no compiler on this machine", install_line("compile")
        )
    x = np.linspace(-2, 2, size, dtype="float32")
    start = time.perf_counter()
    try:
        with tempdir() as folder:
            path = folder.path / file_name
            _compiled(target, size).export_library(str(path))
            compiled = time.perf_counter()
            module, device = load(path)
            given = array(x, device)
            result = array(np.zeros_like(x), device)
            module["doctor"](given, result)
            got = result.numpy()
    except ToolchainError as error:
        return wrong("kernel", f"cannot be compiled: {error}", install_line("compile"))
    except SlipwayError as error:
        return wrong(
            "kernel",
            f"compiled for {target}, it does not run on {where}: {error}",
            "compile models for what `processor` says above, with --target; if that is what this "
            "was compiled for, report it",
        )
    if not np.allclose(got, np.tanh(x) * 2 + 1, rtol=1e-5, atol=1e-6):
        far = float(np.max(np.abs(got - (np.tanh(x) * 2 + 1))))
        return wrong(
            "kernel",
            f"runs on {where} and gives wrong numbers, {far:.3g} off",
            "report this with the line `processor` above; `slipway bisect` tells more of a model",
        )
    done = time.perf_counter()
    return ok(
        "kernel",
        f"compiled ({compiled - start:.1f} s), loaded and run on {where} "
        f"({(done - compiled) * 1e3:.0f} ms); its {size} numbers are NumPy's",
    )


def _compiled(target: str, size: int) -> Any:
    x = te.placeholder((size,), name="x", dtype="float32")
    y = te.compute((size,), lambda i: te.tanh(x[i]) * 2.0 + 1.0, name="y")
    return build(te.create_schedule(y.op), [x, y], target=Target(target), name="doctor")
