"""Where the compiled C runtime of this machine lies, for who only loads it.

In the package (``crt/prebuilt/``, where a wheel may carry it), or in the cache.  What compiles it
where it is in neither is `slipway.toolchain.native`, which needs much more.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import sys
from functools import lru_cache
from pathlib import Path

from slipway.toolchain.elf import architecture_of

LIBRARY_NAME = "libslipway_runtime.so"
CRT = Path(__file__).resolve().parent.parent / "crt"
# Of a 32-bit Python on a 64-bit system, as Raspberry Pi OS has them together.
_NARROW = {"aarch64": "armv7", "x86_64": "x86"}
IN_SECTIONS = ("-ffunction-sections", "-fdata-sections")
NOTHING_UNUSED = (*IN_SECTIONS, "-Wl,--gc-sections")
# Nothing unwinds through C: errors are returned, and tables for it were a sixth of the library.
_NO_TABLES = ("-fno-unwind-tables", "-fno-asynchronous-unwind-tables")
_C11 = ("-std=c11", "-D_GNU_SOURCE=", "-pthread", *_NO_TABLES)
OPTIMISE, SMALL = ("-O2", *_C11), ("-Os", *_C11)


@lru_cache(maxsize=1)
def source_hash() -> str:
    """Return a short hash of everything that the runtime is compiled from, and of how."""
    digest = hashlib.sha256(shlex.join((*OPTIMISE, *SMALL, *NOTHING_UNUSED)).encode())
    # Plain strings: every process that runs a model comes by here, and paths took half of the time.
    found = (os.path.join(at, name) for at, _, names in os.walk(CRT) for name in names)  # noqa: PTH118
    for path in sorted(path for path in found if path.endswith((".c", ".h"))):
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            name = path[len(str(CRT)) + 1 :].replace(os.sep, "/")
            digest.update(name.encode() + b"\0" + file.readall())
    return digest.hexdigest()[:16]


def cache_dir() -> Path:
    """Return the cache folder: ``$SLIPWAY_CACHE``, else ``~/.cache/slipway``.

    Where that cannot be written (a service without a home), a folder of this process's own.
    """
    named = os.environ.get("SLIPWAY_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        chosen = Path(named or base or Path.home() / ".cache")
        folder = chosen if named else chosen / "slipway"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return _temporary_cache()
    return folder if os.access(folder, os.W_OK) else _temporary_cache()


def lasts(cached: Path) -> bool:
    """Return whether a file of the cache folder is there for later processes, too."""
    has_temporary = _temporary_cache.cache_info().currsize > 0
    return not (has_temporary and cached.is_relative_to(_temporary_cache()))


@lru_cache(maxsize=1)
def _temporary_cache() -> Path:
    from slipway.toolchain.tempdir import lasting

    return lasting("slipway-cache-")


def host_name() -> str:
    """Return this machine's name in paths: ``x86_64-linux-gnu`` and the like."""
    system = {"linux": "linux-gnu", "darwin": "macos"}.get(sys.platform, sys.platform)
    architecture = architecture_of(platform.machine())
    if sys.maxsize < 1 << 32:
        architecture = _NARROW.get(architecture, architecture)
    return f"{architecture}-{system}"


def prebuilt_file(machine: str, name: str) -> Path:
    """Return where a file compiled into the package lies, whether it is there or not.

    The folder names the sources it was compiled from, so that newer sources do not find it.
    """
    return CRT / "prebuilt" / f"{machine}-{source_hash()}" / name


def host_runtimes() -> tuple[Path, Path]:
    """Return where this machine's library may be: in the package, and in the cache."""
    machine = host_name()
    cached = cache_dir() / "runtime" / f"{machine}-{source_hash()}" / LIBRARY_NAME
    return prebuilt_file(machine, LIBRARY_NAME), cached


def compiled_runtime() -> Path | None:
    """Return this machine's library; None where it has to be compiled first."""
    return next((path for path in host_runtimes() if path.is_file()), None)
