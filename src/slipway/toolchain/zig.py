"""The `zig` program of the ziglang wheel: C compiler, ld.lld, wasm-ld and ar for every target."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from slipway.errors import ToolchainError, with_words
from slipway.toolchain.elf import architecture_of
from slipway.toolchain.tempdir import lasting
from slipway.version import install_line

INSTALL_LINE = install_line("compile")
_CACHE_VARIABLE = "ZIG_GLOBAL_CACHE_DIR"

# LLVM architecture -> (zig architecture, zig ABI with musl).
_MUSL_TARGETS = {
    "x86_64": "x86_64-linux-musl",
    "aarch64": "aarch64-linux-musl",
    "armv7": "arm-linux-musleabihf",
    "riscv64": "riscv64-linux-musl",
    "hexagon": "hexagon-linux-musl",
}


@lru_cache(maxsize=1)
def find_zig() -> Path | None:
    """Return the zig program: ``$SLIPWAY_ZIG``, the ziglang wheel's, or one on PATH; else None."""
    named = os.environ.get("SLIPWAY_ZIG")
    if named:
        return Path(named)
    try:
        spec = importlib.util.find_spec("ziglang")
    except ImportError:
        spec = None
    for folder in spec.submodule_search_locations or () if spec else ():
        for name in ("zig", "zig.exe"):
            candidate = Path(folder) / name
            if candidate.is_file():
                return candidate
    on_path = shutil.which("zig")
    return Path(on_path) if on_path else None


def zig_path() -> Path:
    """Return the zig program; ToolchainError with the install line if there is none."""
    found = find_zig()
    if found is None:
        raise ToolchainError(
            "this step needs the ziglang package (compiler and linker for every target), which "
            f"is not installed. Install it: {INSTALL_LINE} (or: pip install ziglang)."
        )
    return found


def run_zig(arguments: Sequence[str], *, purpose: str, cwd: Path | None = None) -> str:
    """Run zig and return what it printed; ToolchainError with its words when it fails."""
    command = [str(zig_path()), *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=cwd,
        check=False,
        env=environment(),
    )
    if done.returncode != 0:
        shown = shlex.join(["zig", *arguments[:6]]) + (" ..." if len(arguments) > 6 else "")
        told = f"{purpose} failed: `{shown}` ended with {_ending(done.returncode)}"
        raise ToolchainError(with_words(told, done.stderr or done.stdout))
    return done.stdout + done.stderr


def environment() -> dict[str, str]:
    """Return the environment that zig runs in: this process's, with a folder for its cache."""
    return {**os.environ, _CACHE_VARIABLE: str(cache_folder())}


def cache_folder() -> Path:
    """Return the folder of zig's cache, without which it ends.

    A service without a home, or one that cannot write there, gets a folder for this process.
    """
    if _CACHE_VARIABLE in os.environ:
        return Path(os.environ[_CACHE_VARIABLE])
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zig"
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK)
    except (OSError, RuntimeError):
        usable = False
    return folder if usable else _temporary_cache()


@lru_cache(maxsize=1)
def _temporary_cache() -> Path:
    return lasting("slipway-zig-")


def _ending(status: int) -> str:
    if status >= 0:
        return str(status)
    name = signal.Signals(-status).name
    if name != "SIGBUS":
        return name
    free = shutil.disk_usage(tempfile.gettempdir()).free
    return (
        f"{name}. It writes through a memory map, so that this is what a full file system looks "
        f"like: {tempfile.gettempdir()} has {free >> 10} KiB left. Make room there, or name "
        "another folder in TMPDIR"
    )


def musl_target(triple: str) -> str:
    """Return zig's name of the static-musl target for a Linux triple or an architecture.

    ``arm`` means ARMv7 with hardware floating point.  Raises ToolchainError for architectures
    that no device server is built for.
    """
    architecture = architecture_of(triple)
    if architecture not in _MUSL_TARGETS:
        known = ", ".join(f"{name}-linux" for name in _MUSL_TARGETS)
        raise ToolchainError(
            f"there is no static Linux target for {triple!r}; those there are: {known}."
        )
    return _MUSL_TARGETS[architecture]
