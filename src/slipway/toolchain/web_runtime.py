"""The C runtime as one WebAssembly object, which every exported ``.wasm`` has inside it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from slipway.toolchain.link import WASM_FLAGS
from slipway.toolchain.native import include_path, made_once
from slipway.toolchain.runtime_library import CRT, cache_dir, prebuilt_file, source_hash
from slipway.toolchain.tempdir import scratch
from slipway.toolchain.zig import run_zig

NAME = "slipway_web.o"
THREADED_NAME = "slipway_web_threads.o"
DEVICE_NAME = "slipway_device.wasm"
_MACHINE = "wasm32"
# Of crt/src, what no page has: memory that code is loaded to, files, and lines.
_ELSEWHERE = {
    "device_code", "device_session", "elf", "elf_load", "metadata", "registry", "serial_link",
    "tar",
}  # fmt: skip
# And what only a page that is a device has.
_SESSION = ("rpc_*.c",)
# What every engine since 2021 has; kernels say for themselves whether they need SIMD.
_FEATURES = "generic+bulk_memory+sign_ext+nontrapping_fptoint+mutable_globals"
_FLAGS = (
    "-target", "wasm32-wasi", "-std=c11", "-Os", "-fno-builtin", "-fvisibility=hidden",
    "-ffunction-sections", "-fdata-sections", "-DSLW_NO_THREADS", "-DSLW_STATIC", "-DSLW_WEB",
    f"-mcpu={_FEATURES}",
)  # fmt: skip
_THREADED = ("-DSLW_WEB_THREADS", f"-mcpu={_FEATURES}+atomics")


def web_runtime(threaded: bool = False) -> Path:
    """Return the runtime's object, for memory that workers share if `threaded`.

    It is compiled if that must be.  The headers of the C library that zig brings are used, and
    nothing else of it.
    """
    if threaded:
        return _built(THREADED_NAME, build_threaded_runtime)
    return _built(NAME, build_web_runtime)


def web_device() -> Path:
    """Return the RPC session of a page, a WebAssembly module, compiling it if that must be."""
    return _built(DEVICE_NAME, build_web_device)


def _built(name: str, build: Callable[[Path], None]) -> Path:
    prebuilt = prebuilt_file(_MACHINE, name)
    if prebuilt.is_file():
        return prebuilt
    flags = (_FLAGS, _THREADED, WASM_FLAGS, sorted(_ELSEWHERE))
    recipe = hashlib.sha256(repr(flags).encode()).hexdigest()
    cached = cache_dir() / "runtime" / f"{_MACHINE}-{source_hash()}-{recipe[:8]}" / name
    return made_once(cached, build, "Slipway's runtime for pages")


def build_web_runtime(out: Path) -> None:
    """Compile the runtime for WebAssembly into the object `out`."""
    _compile(out, _runtime_sources(), "-r")


def build_threaded_runtime(out: Path) -> None:
    """Compile the runtime for memory that workers share into the object `out`."""
    _compile(out, _runtime_sources(), "-r", flags=_THREADED)


def _runtime_sources() -> list[Path]:
    return [*_sources("web"), *sorted(_common() - _session())]


def build_web_device(out: Path) -> None:
    """Compile the session of a page, with what it needs of the runtime, into the module `out`."""
    _compile(out, [*_sources("web"), *_sources("web/device"), *sorted(_common())], *WASM_FLAGS)


def _sources(folder: str) -> list[Path]:
    return sorted((CRT / folder).glob("*.c"))


def _common() -> set[Path]:
    return {path for path in _sources("src") if path.stem not in _ELSEWHERE}


def _session() -> set[Path]:
    return {path for pattern in _SESSION for path in (CRT / "src").glob(pattern)}


def _compile(out: Path, sources: Sequence[Path], *link: str, flags: Sequence[str] = ()) -> None:
    with scratch("slipway-web-") as folder:
        objects = []
        for source in sources:
            objects.append(str(Path(folder) / f"{source.parent.name}_{source.stem}.o"))
            command = ["cc", *_FLAGS, *flags, "-I", str(include_path()), "-c", str(source)]
            run_zig([*command, "-o", objects[-1]], purpose="compiling the runtime for WebAssembly")
        run_zig(["wasm-ld", *link, "-o", str(out), *objects], purpose="joining the runtime")
