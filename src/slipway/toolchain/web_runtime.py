"""The C runtime as one WebAssembly object, which every exported ``.wasm`` has inside it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from slipway.toolchain.native import CRT, cache_dir, include_path, prebuilt_file, source_hash
from slipway.toolchain.zig import run_zig

NAME = "slipway_web.o"
_MACHINE = "wasm32"
_PARTS = (
    "aot_module", "error", "format", "graph", "graph_check", "graph_module", "graph_module_info",
    "graph_module_params", "graph_module_places", "image_module", "module", "object", "params",
    "status", "tensor", "timer",
)  # fmt: skip
# What every engine since 2021 has; kernels say for themselves whether they need SIMD.
_FEATURES = "generic+bulk_memory+sign_ext+nontrapping_fptoint+mutable_globals"
_FLAGS = (
    "-target", "wasm32-wasi", f"-mcpu={_FEATURES}", "-std=c11", "-Os", "-fno-builtin",
    "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-DSLW_NO_THREADS",
    "-DSLW_STATIC",
)  # fmt: skip


def web_runtime() -> Path:
    """Return the runtime's object, compiling it if that must be.

    The headers of the C library that zig brings are used, and nothing else of it.
    """
    prebuilt = prebuilt_file(_MACHINE, NAME)
    if prebuilt.is_file():
        return prebuilt
    cached = cache_dir() / "runtime" / f"{_MACHINE}-{source_hash()}" / NAME
    if not cached.is_file():
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cached.parent) as folder:
            made = Path(folder) / NAME
            build_web_runtime(made)
            made.replace(cached)
    return cached


def build_web_runtime(out: Path) -> None:
    """Compile the runtime for WebAssembly into the object `out`."""
    sources = [*sorted((CRT / "web").glob("*.c")), *(CRT / "src" / f"{n}.c" for n in _PARTS)]
    with tempfile.TemporaryDirectory(prefix="slipway-web-") as folder:
        objects = []
        for source in sources:
            objects.append(str(Path(folder) / f"{source.parent.name}_{source.stem}.o"))
            command = ["cc", *_FLAGS, "-I", str(include_path()), "-c", str(source)]
            run_zig([*command, "-o", objects[-1]], purpose="compiling the runtime for WebAssembly")
        run_zig(["wasm-ld", "-r", "-o", str(out), *objects], purpose="joining the runtime")
